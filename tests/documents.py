"""The pages of the documentation as they are read in the repository: their links, their headings, what they lead to."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

from examples import PAGES, ROOT

DOCUMENTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
FENCED = re.compile(r"^(```+)\w*\n.*?^\1$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FORMULA = re.compile(r"\$\$([^$]+)\$\$|\$([^$\n]+)\$")
FORMULAS = [page for page in PAGES if page.parent.name in ("methods", "models", "measures") and page.stem != "README"]
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def prose(page: Path) -> str:
    """Return a page without what is fenced or quoted as code."""
    return CODE.sub("", FENCED.sub("", page.read_text("utf-8")))


def links(page: Path) -> list[str]:
    """Return what the links and pictures of a page lead to."""
    return LINK.findall(prose(page))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the names of the headings of a page, as the repository and the site both make them."""
    seen: Counter[str] = Counter()
    found = set()
    for text in HEADING.findall(FENCED.sub("", page.read_text("utf-8"))):
        words = re.sub(r"\]\([^)]*\)", "", text).replace("[", "")
        name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(name if not seen[name] else f"{name}-{seen[name]}")
        seen[name] += 1
    return frozenset(found)


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere; those that leave the project are not followed."""
    found = []
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(link)
    return found
