"""The glossary of the studio, from the page of the documentation.

python -m tools.glossary            writes src/kinfold/studio/static/glossary.json
"""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "glossary.md"
ENTRIES = ROOT / "src" / "kinfold" / "studio" / "static" / "glossary.json"
ENTRY = re.compile(r"^\*\*(?P<term>[^*]+)\.\*\* (?P<text>.+?)$", re.MULTILINE | re.DOTALL)
PARAGRAPH = re.compile(r"\n{2,}")
LINK_ALONE = re.compile(r"\s*(\[More\]\([^)]*\)|\(\[[^\]]*\]\([^)]*\)\))")  # it leads to another page only
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
MARKS = re.compile(r"\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)|`")


def read_entries(page: str) -> list[dict[str, str]]:
    """Return the terms of the page with their meaning, without markup.

    >>> read_entries("**Loss.** What is `lost` ([measures](measures.md)), as a *number*.")
    [{'term': 'Loss', 'text': 'What is lost, as a number.'}]
    """
    entries = [ENTRY.fullmatch(paragraph.strip()) for paragraph in PARAGRAPH.split(page)]
    return [{"term": each["term"], "text": _strip_markup(each["text"])} for each in entries if each]


def _strip_markup(text: str) -> str:
    return MARKS.sub("", LINK.sub(r"\1", LINK_ALONE.sub("", " ".join(text.split()))))


def page() -> str:
    """Return the whole file."""
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in read_entries(PAGE.read_text("utf-8")))
    return f"[\n{lines}\n]\n"


if __name__ == "__main__":
    ENTRIES.write_text(page(), "utf-8")
