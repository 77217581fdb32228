"""Look-alikes: values that a reader takes for one and a program for several.

`HIV`, `hiv` and `HIV ` are three values to whoever counts them, and so a class that holds nothing else seems diverse.
Two values look alike where they are equal after Unicode's compatibility composition (NFKC), folding of case, and
leaving out what has no width and spaces at the ends or in a row. Cost: one pass over the distinct values.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

WITHOUT_WIDTH = frozenset({"Cc", "Cf"})
VARIANTS = frozenset(map(chr, range(0xFE00, 0xFE10)))  # say how the character before them is drawn


@dataclass(frozen=True)
class LookAlikes:
    """How many groups of values look alike, how many values and how many records are in them."""

    groups: int
    values: int
    records: int


def folded(text: str) -> str:
    r"""Return what a reader sees of a text, whatever its case.

    >>> folded(" HIV\u200b "), folded("\uff28IV"), folded("Straße") == folded("STRASSE")
    ('hiv', 'hiv', True)
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.lower().split())
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    if not (text.isprintable() and VARIANTS.isdisjoint(text)):
        text = "".join(c for c in text if c.isspace() or _has_width(c))
    return " ".join(text.split())


def _has_width(character: str) -> bool:
    return unicodedata.category(character) not in WITHOUT_WIDTH and character not in VARIANTS


def look_alikes(counts: Mapping[str, int]) -> LookAlikes:
    """Find the values that look alike among those of a column, given how many records hold each.

    >>> look_alikes({"HIV": 5, "hiv": 2, "HIV ": 1, "flu": 9})
    LookAlikes(groups=1, values=3, records=8)
    """
    seen = [folded(text) for text in counts]
    shared = {text: members for text, members in Counter(seen).items() if members > 1}
    records = sum(count for text, count in zip(seen, counts.values(), strict=True) if text in shared) if shared else 0
    return LookAlikes(len(shared), sum(shared.values()), records)
