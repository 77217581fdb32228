"""Promises about households, judged by brute force on a released file alone: the surrogate tells who lives together."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

Row = dict[str, str]


def read_release(public: Path) -> tuple[list[Row], dict[str, Any]]:
    """Return the rows of a release as text, and its certificate."""
    certificate = json.loads((public / "certificate.json").read_text(encoding="utf-8"))
    with (public / certificate["release"]["file"]).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=certificate["release"]["separator"])), certificate


def reveal(rows: list[Row], household: str, attributes: list[str]) -> list[Row]:
    """Return the rows with every empty cell filled that another member of the household shows."""
    shown: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        for name in attributes:
            if row[name]:
                shown[row[household], name].add(row[name])
    return [{**row, **{name: _one(shown[row[household], name], row[name]) for name in attributes}} for row in rows]


def _one(values: set[str], own: str) -> str:
    return own or min(values, default="")


def smallest_class(rows: list[Row], quasi: list[str]) -> int:
    return min(len(group) for group in _group(rows, quasi))


def fewest_households(rows: list[Row], quasi: list[str], household: str) -> int:
    return min(len({row[household] for row in group}) for group in _group(rows, quasi))


def split_households(rows: list[Row], household: str, attributes: list[str]) -> int:
    """Return how many households show two values of an attribute, empty ones included."""
    return sum(any(len({row[name] for row in group}) > 1 for name in attributes) for group in _group(rows, [household]))


def _group(rows: list[Row], by: list[str]) -> list[list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in by)].append(row)
    return list(groups.values())
