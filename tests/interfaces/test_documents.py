"""The documentation as a whole: no link is broken, no page is without an example, no measure without its page."""

import importlib
import re
from dataclasses import fields, is_dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from documents import DOCUMENTS, FORMULA, FORMULAS, anchors, broken, links, prose
from examples import PAGES, ROOT, blocks
from kinfold.measures.measure_table import CATALOGUE
from kinfold.policy.registry import list_methods
from tools import api_page, commands_page, glossary

DOCS = ROOT / "docs"
MEASURES = sorted((DOCS / "measures").glob("*.md"))
MODELS = sorted((DOCS / "models").glob("*.md"))
METHODS = sorted({DOCS / "methods" / f"{method.page}.md" for method in list_methods().values()})
TEN_LINES = set((DOCS / "decisions").glob("?-*.md"))  # records of choices, with nothing to run


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_no_link_of_any_document_is_broken() -> None:
    assert {name(page): found for page in DOCUMENTS if (found := broken(page))} == {}


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    """A file that is not there, a heading that is not there; not what stands in code."""
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`, three\n[a](nowhere.md) [b](#one-two-three) [c](#four) `[d](e.md)`\n```\n[f](g.md)\n```\n"
    )
    assert broken(page) == ["nowhere.md", "#four"]
    assert anchors(page) == {"one-two-three"}


def test_every_page_has_an_example() -> None:
    without = {page for page in PAGES if not blocks(page)}
    assert {name(page) for page in without - TEN_LINES} == set()


@pytest.mark.parametrize("page", [*MODELS, *METHODS, *MEASURES], ids=name)
def test_a_page_of_a_model_a_method_or_a_measure_has_output_a_picture_and_says_when_not_to_use_it(page: Path) -> None:
    text = page.read_text("utf-8")
    assert any(">>>" in block.text for block in blocks(page)), "no example with its output"
    assert re.search(r"!\[[^\]]+\]\(\.\./(images|charts)/", text), "no picture"
    assert re.search(r"(?i)(\*\*|## )when\s+(to use it, and when )?not", text), "it does not say when not to use it"
    assert "## Cost" in text or "**Cost" in text or "| cost |" in text or "seconds" in text, (
        "it does not say what it costs"
    )


def test_every_measure_has_one_page_with_its_definition_and_the_list_leads_there() -> None:
    told = {page: re.findall(r"^\| (.+?) \|", page.read_text("utf-8"), re.MULTILINE) for page in MEASURES}
    listed = dict(
        re.findall(
            r"^\| `([\w.]+)` \| [^|]+ \| \[[^\]]+\]\(measures/([\w-]+)\.md\) \|$", _text("measures.md"), re.MULTILINE
        )
    )
    assert set(listed) == set(CATALOGUE)
    for key, page in listed.items():
        cells = told[DOCS / "measures" / f"{page}.md"]
        assert any(re.search(rf"`{re.escape(key)}[`.]", cell) for cell in cells), f"{key} is not defined on its page"


def _text(path: str) -> str:
    return (DOCS / path).read_text("utf-8")


def test_every_picture_is_shown_somewhere_and_says_in_words_what_it_shows() -> None:
    shown = {(page.parent / link).resolve() for page in DOCUMENTS for link in links(page)}
    assert {path.name for path in (DOCS / "images").glob("*.svg") if path not in shown} == set()
    assert [name(page) for page in DOCUMENTS if "![](" in page.read_text("utf-8")] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lists_and_tables_stand_apart_from_the_lines_above_them(page: Path) -> None:
    """The site wants an empty line there, the repository does not: without it a list becomes one paragraph."""
    lines = prose(page).splitlines()
    near = [
        below
        for above, below in pairwise(lines)
        if re.match(r"(- |1\. |\| )", below) and above.strip() and not re.match(r"\s*(- |\d+\. |\||<!--)|  ", above)
    ]
    assert near == []


@pytest.mark.parametrize("page", FORMULAS, ids=name)
def test_formulas_are_written_so_that_the_repository_shows_them_too(page: Path) -> None:
    """There Markdown comes before LaTeX: it takes a backslash before a sign, a pipe in a table, a loose underscore."""
    formulas = ["".join(found) for found in FORMULA.findall(prose(page))]
    assert [each for each in formulas if re.search(r"\\[^a-zA-Z]|[|*<>]|[^\w\s]_|\]\(", each)] == []
    assert not re.search(r"\w\0|\0\w", FORMULA.sub("\0", prose(page))), "a formula touches a word"


@pytest.mark.parametrize("page", [*MODELS, *MEASURES], ids=name)
def test_a_page_of_a_model_or_a_measure_has_a_formula(page: Path) -> None:
    assert FORMULA.search(prose(page)) or page.stem == "plausibility"  # its measures are counts


def test_the_page_of_kinfold_in_python_is_what_the_docstrings_say() -> None:
    assert api_page.PAGE.read_text("utf-8") == api_page.page(), "make it anew with make docs"


def test_the_glossary_of_the_studio_is_that_of_the_documentation() -> None:
    assert glossary.ENTRIES.read_text("utf-8") == glossary.page(), "make it anew with make docs"
    assert glossary.page().count('"term"') == _text("glossary.md").count("\n**")


def test_the_page_of_python_names_every_field_that_users_read() -> None:
    text = _text("api.md")
    for path in api_page.VALUES:
        module, _, kind = path.rpartition(".")
        value = getattr(importlib.import_module(module), kind)
        public = {field.name for field in fields(value)} if is_dataclass(value) and kind != "Release" else set()
        assert public <= {*api_page.MEMBERS[kind], "compute_by_record"}, kind
    for member in ("verdict", "measures", "k", "ranked", "combinations"):
        assert f"| `{member}` |" in text


def test_the_page_of_the_commands_is_what_they_say() -> None:
    assert commands_page.PAGE.read_text("utf-8") == commands_page.page(), "make it anew with make docs"
    for option in ("--ask", "--everyday", "--format", "--identifier", "--keep-order", "--seed", "--quasi"):
        assert f"`{option}`" in commands_page.page()


def test_what_the_first_pages_say_of_the_loss_is_what_the_table_of_refinement_has() -> None:
    """MDAV against ten seconds of refinement, nine settings on three public files."""
    rows = re.findall(
        r"^\| (?:Census|Tarragona|EIA), .+?\| ([\d.]+) \| [\d.]+ \| ([\d.]+) \|", _text("methods/refinement.md"), re.M
    )
    gains = [100 * (1 - float(refined) / float(mdav)) for mdav, refined in rows]
    assert len(gains) == 9
    for page in (ROOT / "README.md", DOCS / "README.md"):
        told = re.search(r"lose (\d+) to (\d+) % less than\s+those of MDAV", page.read_text("utf-8"))
        assert told is not None
        assert (int(told[1]), int(told[2])) == (round(min(gains)), round(max(gains)))


@pytest.mark.parametrize(
    "claim",
    ["anybody has published", "least information lost", "every one checked against", "text and pictures are removed"],
)
def test_no_page_makes_a_claim_that_nothing_supports(claim: str) -> None:
    assert [name(page) for page in DOCUMENTS if claim in " ".join(page.read_text("utf-8").split())] == []


def test_no_page_and_no_message_installs_kinfold_from_an_index() -> None:
    """It is on none: whoever took the name there would be installed. A checkout or a wheel is named instead."""
    files = [*DOCUMENTS, *(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.js"), *(ROOT / "src").rglob("*.html")]
    asked = re.compile(r"""\b(install|add)\s+(-\S+\s+)*["']?kinfold(?!-)|kinfold\[\w""")
    assert [name(path) for path in files if asked.search(path.read_text("utf-8"))] == []
    assert all(map(asked.search, ("%pip install -U kinfold==1", "pip install 'kinfold[excel]'")))
    assert not any(map(asked.search, ("pip install wheels/kinfold-*.whl", 'pip install "kinfold-0.1.0.whl[excel]"')))
