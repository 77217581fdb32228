"""The site of the documentation: it builds strictly, loads nothing from elsewhere, fits screens and can be searched."""

import json
import re
import shutil
import time
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from documents import FORMULA, FORMULAS, prose
from examples import PAGES, ROOT
from kinfold.measures.measure_table import CATALOGUE

pytestmark = pytest.mark.slow

LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "source": "src",
    "iframe": "src",
    "image": "href",
    "use": "href",
}
LOOKED_AT = ("index.html", "choose.html", "methods/mdav.html", "measures/disclosure.html", "api.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does it; a warning ends it."""
    pytest.importorskip("material", reason="what builds the site is not installed: make docs does it")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()
    return folder


class Loaded(HTMLParser):
    """What a page makes a browser load."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        told = dict(attributes)
        if (
            tag in LOADED
            and (address := told.get(LOADED[tag]))
            and told.get("rel") not in ("canonical", "prev", "next")
        ):
            self.found.append(address)


def test_every_page_is_there_and_nothing_comes_from_elsewhere(site: Path) -> None:
    loaded = {page: Loaded(page).found for page in sorted(site.rglob("*.html"))}
    assert len(loaded) > len(PAGES)  # all but README, and copies of what is outside of docs/
    every = {address for found in loaded.values() for address in found}
    assert len(every) > 20
    assert [address for address in every if re.match(r"(?:\w+:)?//", address)] == []
    assert [address for page, found in loaded.items() for address in found if not _there(page, address, site)] == []
    for sheet in site.rglob("*.css"):
        assert re.findall(r"url\(['\"]?(?:https?:)?//|@import", sheet.read_text("utf-8")) == [], sheet.name


def _there(page: Path, address: str, site: Path) -> bool:
    path = address.partition("#")[0].partition("?")[0]
    start = site if path.startswith("/") or page.name == "404.html" else page.parent
    return address.startswith("data:") or (start / path.lstrip("/")).exists()


def test_what_is_looked_for_is_in_the_index_of_the_search(site: Path) -> None:
    documents = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    text = " ".join(document["text"] for document in documents)
    assert [key for key in CATALOGUE if key not in text] == []


def test_what_is_not_run_says_so_where_a_reader_sees_it(site: Path) -> None:
    page = (site / "guides" / "hundred-million-rows.html").read_text("utf-8")
    assert 'class="not-run"' in page
    assert "Not run by the tests: it takes a table of a hundred million rows" in page


def test_formulas_become_mathml_and_code_is_left_alone(site: Path) -> None:
    from tools.site.hooks import on_page_markdown

    code = "```sh\n$ echo $HOME $x$\n$$a$$\n```\n`$y$`, ``a`$z$``, 5$ and $6"
    page: Any = SimpleNamespace(file=SimpleNamespace(src_uri="methods/toy.md"))
    assert on_page_markdown(code, page=page) == code
    drawn = on_page_markdown("$a_1$ is\n\n$$\\sum_{i} a_i$$\n\n" + code, page=page)
    assert drawn.endswith(code)
    assert re.findall("<math [^>]*display=.(\\w+)", drawn) == ["inline", "block"]
    assert "<munder><mo>&#x02211;</mo>" in drawn
    for path in FORMULAS:
        written = len(FORMULA.findall(prose(path)))
        built = (site / path.relative_to(ROOT / "docs")).with_suffix(".html").read_text("utf-8")
        assert built.count("<math ") == built.count("</math>") == written, path.name
        assert not re.search(
            r"\$\$|\\[a-z]+\b|&lt;m",
            re.sub(r"<pre.*?</pre>|<code>.*?</code>|<script.*?</script>", "", built, flags=re.DOTALL),
        ), path.name


def test_a_broken_link_ends_the_building(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="what builds the site is not installed: make docs does it")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    docs = tmp_path / "docs"
    docs.mkdir()
    shutil.copy(ROOT / "docs" / "mutants.md", docs / "README.md")
    (docs / "page.md").write_text("[nowhere](nowhere.md)\n")
    nav = ["README.md", "page.md"]
    config = load_config(
        str(ROOT / "mkdocs.yml"), docs_dir=str(docs), site_dir=str(tmp_path / "site"), nav=nav, strict=True
    )
    with pytest.raises(Abort):
        build(config)


def search(page: Any, words: str, expected: str) -> None:
    """Type words until a page is found by them: what is typed before the search is awake is not heard."""
    found = page.locator(f"a.md-search-result__link[href*='{expected}']")
    end = time.monotonic() + 60
    while not found.count() and time.monotonic() < end:
        page.fill("input.md-search__input", "")
        page.locator("input.md-search__input").press_sequentially(words)
        page.wait_for_timeout(1000)
    assert found.count()


def test_pages_fit_large_and_small_screens_by_day_and_night_ask_nobody_else_and_can_be_searched(
    browser: Any, site: Path
) -> None:
    """From disk, as whoever has no server opens them."""
    elsewhere: list[str] = []
    for width, scheme in ((1280, "light"), (400, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 860}, color_scheme=scheme)
        page = context.new_page()
        page.on("request", lambda asked: elsewhere.append(asked.url))
        for path in LOOKED_AT:
            page.goto((site / path).as_uri())
            assert page.evaluate("document.documentElement.scrollWidth - window.innerWidth") <= 0, (path, width)
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == (scheme == "dark"), (path, ground)
        if width > 1000:
            search(page, "earth mover", "t-closeness")
        context.close()
    assert [asked for asked in elsewhere if not asked.startswith((site.as_uri(), "data:", "blob:"))] == []
