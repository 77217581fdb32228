"""Events of people: generalize codes, leave rare events empty, and count dates from the first event of the person.

codes       every column with a hierarchy is generalized by the same number of steps, in the whole table; of all
            numbers of steps, the one that loses least (empty events, and levels of the others) is taken
rare        an event of every combination of at most m events that fewer than k people of the class have is left empty,
            the rarest of the combination; this repeats until there is no such combination
dates       the first event of a person gets a random day within `shift_days` of the mean first day of the class; the
            days between the events of a person stay as they were

The random days are drawn again in each release and not kept. Only rows of a person whose events remain are moved: the
other values of an empty event stay.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError, plural
from kinfold.hierarchies import Hierarchy
from kinfold.methods.aggregation import numbers_to_arrow
from kinfold.models.known_events import NO_DAY, KnownEvents, choose_rare, find_first_days, number_events
from kinfold.policy.encoding import Attribute, CategoricalAttribute, NumericAttribute, encode, get_leaves
from kinfold.policy.table import Table
from kinfold.tables.recoding import Replace

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Code:
    """A column of codes: its labels at a number of steps, as numbers and as texts."""

    attribute: Attribute
    hierarchy: Hierarchy | None

    def label(self, steps: int) -> tuple[Ints, NDArray[Any], float]:
        """Return the number of each row's label, 0 for null; the texts by number; and the share of levels lost."""
        attribute = self.attribute
        if self.hierarchy is None:
            assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  numbers have a hierarchy
            codes = np.where(attribute.codes == attribute.null_code, 0, attribute.codes.astype(np.int64) + 1)
            return codes, np.array([None, *attribute.texts[:-1]], object), 0.0
        level = min(steps, self.hierarchy.height)
        texts, number = np.unique(self.hierarchy.labels[:, level].astype(str), return_inverse=True)
        leaves = get_leaves(attribute)
        codes = np.where(leaves < 0, 0, number[leaves] + 1).astype(np.int64)
        return codes, np.array([None, *texts.tolist()], object), level / max(self.hierarchy.height, 1)


@dataclass(frozen=True, eq=False)
class ReleasedEvents:
    """The new values of the columns of events, a value for each row, their loss (0 to 1), and notes."""

    columns: Mapping[str, Replace]
    loss: float
    notes: tuple[str, ...]


def protect_events(table: Table, known: KnownEvents, classes: Ints, owner: Ints) -> ReleasedEvents:
    """Return the released events of the rows, given the class of each (-1: dropped) and its person."""
    rows = np.flatnonzero(classes >= 0)
    classes, owner = classes[rows], np.unique(owner[rows], return_inverse=True)[1]
    dates = [_read_days(table, name) for name in known.dates]
    days = [np.where(date.null, NO_DAY, np.nan_to_num(date.numbers).astype(np.int64))[rows] for date in dates]
    codes = [*_read_codes(table, known.codes)]
    best: tuple[float, int, Mask] | None = None
    for steps in range(1 + max([code.hierarchy.height for code in codes if code.hierarchy], default=0)):
        labels = [code.label(steps) for code in codes]
        empty = leave_rare_empty(classes, owner, days, [each[0][rows] for each in labels], known)
        lost = float(np.mean([each[2] for each in labels])) if labels else 0.0
        loss = empty.mean() + (1 - empty.mean()) * lost
        if best is None or loss < best[0]:
            best = loss, steps, empty
    loss, steps, empty = best or (0.0, 0, np.zeros(len(rows), np.bool_))
    columns: dict[str, Replace] = {}
    visible = np.zeros(table.policy.rows, np.bool_)
    visible[rows] = ~empty
    moved = _move_days(classes, owner, days, empty, known.shift)
    for date, new in zip(dates, moved, strict=True):
        numbers = np.full(len(visible), np.nan)
        numbers[rows] = new
        columns[date.bound.name] = Replace(numbers_to_arrow(date, numbers, exact=False))
    for code in codes:
        numbers, texts, lost = code.label(steps)
        values = pa.array(texts[np.where(visible, numbers, 0)].tolist(), pa.string())
        columns[code.attribute.bound.name] = Replace(values, as_stored=code.hierarchy is None)
    events = int(
        np.logical_or.reduce([*(day != NO_DAY for day in days), *(c.label(0)[0][rows] > 0 for c in codes)]).sum()
    )
    return ReleasedEvents(columns, float(loss), tuple(_describe(known, int(empty.sum()), events, steps)))


def leave_rare_empty(
    classes: Ints, owner: Ints, days: Sequence[Ints], codes: Sequence[Ints], known: KnownEvents
) -> Mask:
    """Mark the events to leave empty, so that every combination of known events matches k people of its class."""
    empty = np.logical_and.reduce([*(day == NO_DAY for day in days), *(code == 0 for code in codes)])
    blank = np.zeros(len(owner), np.bool_)
    while True:
        rows = np.flatnonzero(~empty & ~blank)
        people = np.unique(owner[rows], return_inverse=True)[1]
        own_days, own_codes = ([column[rows] for column in columns] for columns in (days, codes))
        events = number_events(classes[rows], people, own_days, own_codes, known.days)
        rare = choose_rare(events, known.k, known.known)
        if not len(rare):
            return blank
        blank[rows[rare]] = True


def _move_days(classes: Ints, owner: Ints, days: Sequence[Ints], empty: Mask, shift: int) -> Iterator[Floats]:
    """Yield the new days (NaN: none): a person's first one near the mean of the class, the others as far from it."""
    visible = [np.where(empty, NO_DAY, day) for day in days]
    first = find_first_days(owner, visible)
    moving = first != NO_DAY
    group = np.zeros(len(first), np.int64)
    group[owner] = classes
    people = np.maximum(np.bincount(group[moving], minlength=group.max(initial=0) + 1), 1)
    sums = np.bincount(group[moving], first[moving], minlength=len(people))
    random = np.random.default_rng(secrets.randbits(128)).integers(-shift, shift + 1, len(first))
    start = np.floor(sums / people).astype(np.int64)[group] + random
    for day in visible:
        yield np.where(day == NO_DAY, np.nan, day - first[owner] + start[owner])


def _read_days(table: Table, name: str) -> NumericAttribute:
    (date,) = encode(table.engine, table.frame, [replace(table.policy[name], average="mean")])
    assert isinstance(date, NumericAttribute)  # noqa: S101  it is a date
    if (np.nan_to_num(date.numbers) % 1).any():
        what = f"columns.{name}: the dates of events have a time, which could identify a person"
        raise DataError(what, fix="leave out the time of day")
    return date


def _read_codes(table: Table, names: Sequence[str]) -> Iterator[_Code]:
    for name in names:
        bound = table.policy[name]
        average = "generalize" if bound.request.hierarchy else "mode"
        (attribute,) = encode(table.engine, table.frame, [replace(bound, average=average)])
        yield _Code(attribute, attribute.hierarchy if bound.request.hierarchy else None)


def _describe(known: KnownEvents, empty: int, events: int, steps: int) -> Iterator[str]:
    what = (
        f"{empty:,} of {plural(events, 'event')} were left empty, because too few people of their class have the same"
    )
    advice = "; coarser codes, longer periods (days_known) or fewer events_known would keep more"
    yield what + (advice if 2 * empty > events else "")
    if steps:
        yield f"codes of events were generalized by up to {plural(steps, 'level')}"
    if known.dates:
        yield (
            "dates of events are counted from the first event of the person, whose day is random within "
            f"{plural(known.shift, 'day')} of the mean of the class; the days between events are kept"
        )
