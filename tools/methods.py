"""The table of methods, from what their files declare.

python -m tools.methods            writes docs/methods/README.md
python -m tools.methods --check    says what is wrong and ends with code 1: the table is old, or a page is missing
"""

from __future__ import annotations

import sys
from pathlib import Path

from kinfold.policy.registry import NEED_TEXTS, Declaration, list_methods

FOLDER = Path(__file__).parents[1] / "docs" / "methods"
FAMILIES = {"partition": "partitions", "generalize": "generalizes"}


def page() -> str:
    """Return the table as a page."""
    rows = [
        f"| [`{each.name}`]({each.page}.md) | {each.summary} | {FAMILIES[each.family]} | {_needs(each)} |"
        for each in list_methods().values()
    ]
    return "\n".join(
        [
            "# Methods",
            "",
            "What a policy may say as `method.name`, from what the files of the methods declare; made by `make docs`.",
            "",
            "A method that *partitions* puts records into classes and releases the average of each, or the narrowest",
            "statement that is true of it (`average`); its classes can be [refined](refinement.md), those of",
            "large tables are made in [blocks](blocks.md). One that",
            "*generalizes* goes up the hierarchies. What `auto` takes is in [the policy file](../policy.md#methods).",
            "",
            *("| name | what it is | family | needs |", "| --- | --- | --- | --- |", *rows, ""),
            *("```python", ">>> from kinfold.policy.registry import list_methods", ">>> list(list_methods())"),
            *(str(list(list_methods())), "```", ""),
        ]
    )


def _needs(method: Declaration) -> str:
    return "; ".join(NEED_TEXTS[need] for need in method.needs) or "nothing"


def problems(folder: Path = FOLDER) -> list[str]:
    """Say what the pages lack."""
    found = [
        f"{each.page}.md: there is no such page, or it does not name `{each.name}`"
        for each in list_methods().values()
        if not _tells(folder / f"{each.page}.md", each.name)
    ]
    index = folder / "README.md"
    if not index.exists() or index.read_text("utf-8") != page():
        found.append("README.md: the table is not what the methods declare; make it anew with make docs")
    return found


def _tells(path: Path, name: str) -> bool:
    return path.exists() and any(mark + name + mark in path.read_text("utf-8") for mark in '`"')


def main() -> None:
    """Write the page, or check the pages."""
    if "--check" not in sys.argv[1:]:
        (FOLDER / "README.md").write_text(page(), "utf-8")
    if wrong := problems():
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
