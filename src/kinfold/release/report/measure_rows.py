"""The measures of a release as rows of a table, group by group, in words from a catalogue.

The catalogue is passed in: a page knows how to show measures, not which there are. A measure that the catalogue does
not have is shown by its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from kinfold.release.report.wording import quantity, visible

GROUPS = {
    "risk": ("Risk that remains", "What one could still do who holds the original quasi-identifiers, or some of them."),
    "loss": ("Information lost", "How far the released quasi-identifiers are from the original ones."),
    "plausibility": ("Plausibility", "What the release holds that the original never did, and what it holds no more."),
}
BEFORE = "_before"  # ends the key of a group that was measured on the original by itself, to stand beside the other
SHOWN_ELSEWHERE = frozenset(
    {"records", "released", "suppressed", "classes", "k", "l", "t", "p", "alpha"}
    | {"measures", "asked", "method", "start", "steps", "seconds", "notes"}
)


class Words(Protocol):
    """What a catalogue says about a measure."""

    @property
    def title(self) -> str:
        """A short name."""
        ...

    @property
    def meaning(self) -> str:
        """What it says, in a sentence."""
        ...

    @property
    def range(self) -> str:
        """Where its values can lie, for example "0 to 1"."""
        ...

    @property
    def better(self) -> str:
        """Which end is better: "less" or "more"."""
        ...


Catalogue: TypeAlias = Mapping[str, Words]  # by the key of the JSON contract: "risk.linkage"


@dataclass(frozen=True)
class MeasureRow:
    """One row: a title, what it means, and a value, or a value for each part (a column)."""

    title: str
    meaning: str
    value: str
    parts: tuple[tuple[str, str], ...] = ()
    scale: str = ""  # "0 to 1; less is better."
    before: str = ""  # what the original has by itself


@dataclass(frozen=True)
class Group:
    """Measures that belong together, and the titles of those that do not apply to this table."""

    title: str
    text: str
    rows: tuple[MeasureRow, ...]
    absent: tuple[str, ...]


def groups(measures: Mapping[str, Any], catalogue: Catalogue) -> list[Group]:
    """Return the measures by group: risk, loss, then whatever else there is."""
    nested = {key: value for key, value in measures.items() if isinstance(value, Mapping)}
    before = {key.removesuffix(BEFORE): nested.pop(key) for key in tuple(nested) if key.endswith(BEFORE)}
    rest = {key: value for key, value in measures.items() if not isinstance(value, Mapping)}
    made = [
        _group(GROUPS.get(key, (visible(key).capitalize(), "")), nested[key], before.get(key, {}), f"{key}.", catalogue)
        for key in (*GROUPS, *(key for key in nested if key not in GROUPS))
        if key in nested and key not in SHOWN_ELSEWHERE
    ]
    made.append(_group(("Other measures", ""), rest, {}, "", catalogue))
    return [group for group in made if group.rows or group.absent]


def _group(
    words: tuple[str, str],
    measures: Mapping[str, Any],
    before: Mapping[str, Any],
    prefix: str,
    catalogue: Catalogue,
) -> Group:
    known = {key: value for key, value in measures.items() if prefix or key not in SHOWN_ELSEWHERE}
    rows = tuple(_rows(known, before, prefix, catalogue))
    absent = tuple(_title(prefix, key, catalogue) for key, value in known.items() if _empty(value))
    return Group(*words, rows, absent)


def _rows(
    measures: Mapping[str, Any], before: Mapping[str, Any], prefix: str, catalogue: Catalogue
) -> Iterator[MeasureRow]:
    for key, value in measures.items():
        if _empty(value):
            continue
        words = catalogue.get(prefix + key)
        title, meaning = _title(prefix, key, catalogue), words.meaning if words else ""
        scale = f"{words.range[:1].upper()}{words.range[1:]}; {words.better} is better." if words else ""
        was = _told(before.get(key))
        if isinstance(value, Mapping) and value:
            parts = tuple((visible(str(part)), _shown(number)) for part, number in value.items())
            yield MeasureRow(title, meaning, "", parts, scale, was)
        else:
            yield MeasureRow(title, meaning, _shown("none" if value == {} else value), (), scale, was)


def _told(value: object) -> str:
    """Return a measure of the original in a few words."""
    if _empty(value):
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{visible(str(part))} {_shown(number)}" for part, number in value.items())
    return _shown(value)


def _empty(value: object) -> bool:
    return value is None or (isinstance(value, Mapping) and bool(value) and all(v is None for v in value.values()))


def _shown(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        return visible(str(value))
    return quantity(value)


def _title(prefix: str, key: str, catalogue: Catalogue) -> str:
    words = catalogue.get(prefix + key)
    return words.title if words else visible(key).replace("_", " ")
