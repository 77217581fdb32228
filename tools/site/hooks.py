"""What the site does to pages that are also read in the repository: mkdocs calls these by their names.

- Pages that the navigation does not name go under "More", so that none is left out.
- Links to files outside of docs/ lead to copies of them: documents as pages, sources as text.
- What the tests do not run says so, where the reader sees it.
- Formulas, `$...$` in a line and `$$...$$` on lines of their own, become MathML: browsers draw it without a script.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from pymdownx.slugs import slugify

ROOT = Path(__file__).parents[2]
ICON = "src/kinfold/studio/static/icon.svg"
OUTSIDE = re.compile(r"\]\((?P<up>(?:\.\./)+)(?P<path>[\w./-]+)(?P<anchor>#[\w-]+)?\)")
NOT_RUN = re.compile(r"^<!-- not run: (?P<why>.+?) -->\n", re.MULTILINE)
SESSION = re.compile(r"^```python\n(?=>>>)", re.MULTILINE)
FORMULA = re.compile(  # code comes first, so that no formula is found in it
    r"""(?P<fenced>^[ ]*(?P<fence>`{3,}|~{3,}).*?^[ ]*(?P=fence)[ ]*$)
    |(?P<quoted>(?P<ticks>`+)(?!`)(?:(?!\n\n).)+?(?<!`)(?P=ticks)(?!`))
    |^\$\$(?P<block>[^$]+)\$\$$
    |(?<![\w$\\])\$(?P<inline>[^\s$](?:[^$\n]*[^\s$])?)\$(?![\w$])""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
LIMITS = re.compile(r"(\\(?:sum|prod|max|min))_")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name headings as the repository does, and put pages that nobody named under "More"."""
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")
    if left := sorted(_pages(Path(config.docs_dir)) - _named(config.nav)):
        config.nav = [*(config.nav or []), {"More": left}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the icon, and what pages link to outside of docs/."""
    files.append(File.generated(config, "images/icon.svg", abs_src_path=str(ROOT / ICON)))
    for page in [file for file in files if file.is_documentation_page()]:
        for path in _outside(page.src_uri, page.content_string):
            if files.get_file_from_path(_copied(path)) is None:
                text = (ROOT / path).read_text("utf-8")
                copy = File.generated(config, _copied(path), content=_shown(path, text))
                copy.inclusion = InclusionLevel.NOT_IN_NAV
                files.append(copy)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead links to the copies, show what is not run, tell sessions from programs, and convert formulas."""
    here = Path(page.file.src_uri).parent

    def led(found: re.Match[str]) -> str:
        path = _target(page.file.src_uri, found)
        if path is None:
            return found[0]
        return f"]({os.path.relpath(_copied(path), here)}{found['anchor'] or ''})"

    shown = NOT_RUN.sub(r"*Not run by the tests: \g<why>.*\n{ .not-run }\n\n", OUTSIDE.sub(led, markdown))
    return FORMULA.sub(_drawn, SESSION.sub("```pycon\n", shown))


def _drawn(found: re.Match[str]) -> str:
    """Return a formula as MathML, and code as it is."""
    if found["block"]:
        formula = LIMITS.sub(r"\1\\limits_", " ".join(found["block"].split()))
        return f'<div class="formula">{convert(formula, display="block")}</div>'
    if found["inline"]:
        # in a span, because Markdown takes <math> at the start of a line as a block
        return f'<span class="formula">{convert(found["inline"])}</span>'
    return found[0]


def _pages(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")}


def _named(nav: Any) -> set[str]:
    """Return the pages that a part of the navigation names."""
    if isinstance(nav, str):
        return {nav}
    parts = nav.values() if isinstance(nav, dict) else nav or ()
    return set().union(*map(_named, parts))


def _outside(page: str, text: str) -> set[str]:
    return {path for found in OUTSIDE.finditer(text) if (path := _target(page, found)) is not None}


def _target(page: str, found: re.Match[str]) -> str | None:
    """Return the file of the repository that a link leads to, if that is outside of docs/."""
    path = os.path.normpath(Path("docs", page).parent / found["up"] / found["path"])
    return None if path.startswith("docs/") or not (ROOT / path).is_file() else Path(path).as_posix()


def _copied(path: str) -> str:
    """Return where the copy of a file of the repository is: documents are pages, all else is text."""
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.txt"


def _shown(path: str, text: str) -> str:
    """Return what a copy says: links of a document that lead into docs/ stay links, others become words."""
    if not path.endswith(".md"):
        return text

    def led(found: re.Match[str]) -> str:
        if re.match(r"[a-z]+:|#", found["to"]):
            return found[0]
        inside = os.path.normpath(Path(path).parent / found["to"])
        return (
            f"[{found['words']}]({os.path.relpath(inside, Path('docs/repository', path).parent)})"
            if inside.startswith("docs/")
            else found["words"]
        )

    return re.sub(r"\[(?P<words>[^\]]+)\]\((?P<to>[^)\s]+)\)", led, text)
