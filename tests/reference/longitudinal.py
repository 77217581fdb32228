"""What a release shows of people with several rows, by the definitions: plain rows, every combination, no shortcut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import combinations
from typing import Any

Row = Mapping[str, str]


def people(rows: Sequence[Row], unit: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[unit]].append(row)
    return found


def classes(rows: Sequence[Row], unit: str, quasi: Sequence[str]) -> list[list[list[Row]]]:
    """The rows of each person, by the attributes of the person."""
    found: dict[Any, list[list[Row]]] = defaultdict(list)
    for own in people(rows, unit).values():
        (key,) = {tuple(row[name] for name in quasi) for row in own}  # the same in all rows
        found[key].append(own)
    return list(found.values())


def first_day(own: Sequence[Row], dates: Sequence[str]) -> date | None:
    return min((date.fromisoformat(row[name][:10]) for row in own for name in dates if row[name]), default=None)


def sequence(own: Sequence[Row], codes: Sequence[str], dates: Sequence[str], period: int) -> list[tuple[Any, ...]]:
    """The events of a person as an attacker knows them: periods since the first one, and codes."""
    first, events = first_day(own, dates), []
    for row in own:
        if any(row[name] for name in (*codes, *dates)):
            days = [(date.fromisoformat(row[name][:10]) - first).days if row[name] else None for name in dates]
            periods = [None if day is None else day // period for day in days] if period else []
            events.append((*periods, *(row[name] for name in codes)))
    return events


def contains(events: Sequence[Any], known: Sequence[Any]) -> bool:
    """Whether a person can be the one of whom these events are known, each as often as it is known."""
    return all(list(events).count(event) >= list(known).count(event) for event in known)


def least_match(
    rows: Sequence[Row],
    unit: str,
    quasi: Sequence[str],
    codes: Sequence[str],
    dates: Sequence[str],
    known: int,
    period: int,
) -> int:
    """The least number of people whom an attacker cannot tell apart, whatever at most `known` events they know."""
    least = len(rows)
    for members in classes(rows, unit, quasi):
        sequences = [sequence(own, codes, dates, period) for own in members]
        least = min(least, len(members))
        for events in sequences:
            for size in range(1, known + 1):
                for some in {*combinations(sorted(events, key=repr), size)}:
                    least = min(least, sum(contains(other, some) for other in sequences))
    return least
