"""ARX's privacy models, read from the words in which it writes them down, and as promises of a policy.

ARX stores a model as an object and, beside it, as a sentence: `5-anonymity`, `distinct-2-diversity for attribute 'x'`,
`0.2-closeness with equal distance for attribute 'x'`. The sentence says all there is to say of k, l and t.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

LEVEL = r"(?P<level>[0-9.]+(?:E-?[0-9]+)?)"
OF_COLUMN = r" for attribute '(?P<column>.*)'"
K = re.compile(r"(?P<level>[0-9]{1,9})-anonymity")
DISTINCT = re.compile(rf"(?P<how>distinct)-{LEVEL}-diversity{OF_COLUMN}", re.DOTALL)
ENTROPY = re.compile(rf"(?:shannon-)?(?P<how>entropy)-{LEVEL}-diversity{OF_COLUMN}", re.DOTALL)
RECURSIVE = re.compile(rf"(?P<how>recursive)-\((?P<c>[0-9.E-]+),(?P<level>[0-9]+)\)-diversity{OF_COLUMN}", re.DOTALL)
CLOSENESS = re.compile(rf"{LEVEL}-closeness with (?P<how>equal|ordered|hierarchical) distance{OF_COLUMN}", re.DOTALL)

PATTERNS = (("k", K), ("l", DISTINCT), ("l", ENTROPY), ("l", RECURSIVE), ("t", CLOSENESS))


@dataclass(frozen=True)
class Criterion:
    """A promise: k, or the l or t of a column in one of its kinds."""

    letter: str  # k, l, t
    level: float
    column: str = ""
    how: str = ""  # l: distinct, entropy, recursive; t: equal, ordered, hierarchical
    c: float | None = None  # of recursive l-diversity
    text: str = ""  # as ARX has it


def parse_criterion(text: str) -> Criterion | None:
    """Return the promise that a sentence of ARX states, or None where it states another.

    >>> parse_criterion("5-anonymity").level, parse_criterion("0.2-closeness with equal distance for attribute 'a'").how
    (5.0, 'equal')
    >>> parse_criterion("(0.1, 0.5)-presence") is None
    True
    """
    for letter, pattern in PATTERNS:
        if match := pattern.fullmatch(text):
            found = match.groupdict()
            try:
                level, c = float(found["level"]), float(found["c"]) if found.get("c") else None
            except ValueError:  # 1.2.3
                return None
            criterion = Criterion(letter, level, found.get("column", ""), found.get("how", ""), c, text)
            return criterion if _is_sound(criterion) else None
    return None


def _is_sound(criterion: Criterion) -> bool:
    """Whether a policy can promise it: k from 2 up, l from 1 up, t above 0 and at most 1."""
    if criterion.letter == "t":
        return 0 < criterion.level <= 1
    if criterion.c is not None and not 0 < criterion.c < math.inf:
        return False
    return (2 if criterion.letter == "k" else 1) <= criterion.level < math.inf


@dataclass(frozen=True)
class PrivacyKeys:
    """What a policy promises: the keys of its `[privacy]`, those of each confidential column, and what was left."""

    privacy: dict[str, Any]
    columns: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def privacy_keys(criteria: Iterable[Criterion], confidential: Iterable[str]) -> PrivacyKeys:
    """Sort criteria into the keys of a policy; the strictest of equals counts, and what does not fit is said.

    >>> privacy_keys([Criterion("k", 5), Criterion("l", 2, "illness", "distinct")], ["illness"]).columns
    {'illness': {'l': 2}}
    """
    given, known = list(criteria), list(confidential)
    notes = []
    ks = [int(each.level) for each in given if each.letter == "k"]
    if not ks:
        notes.append("the project asks for no k-anonymity that can be read, and a policy has to: k = 2 was put in")
    privacy: dict[str, Any] = {"k": max(ks, default=2)}
    columns: dict[str, dict[str, Any]] = {name: {} for name in known}
    kind = next(((each.how, each.c) for each in given if each.letter == "l" and each.column in known), None)
    if kind and kind[0] != "distinct":
        privacy |= {"l_kind": kind[0]} | ({"c": kind[1]} if kind[1] else {})
    for each in given:
        if each.letter == "k":
            continue
        if each.column not in known:
            notes.append(f"left out, for its column is not confidential: {each.text}")
        elif each.letter == "l" and (each.how, each.c) != kind:
            notes.append(f"left out, for a policy has one kind of l-diversity: {each.text}")
        else:
            notes += _put(each, columns[each.column])
    return PrivacyKeys(privacy, columns, tuple(notes))


def _put(each: Criterion, column: dict[str, Any]) -> list[str]:
    """Add a promise to a column's keys, and say what could not be added."""
    if each.letter == "l":
        l = float(max(each.level, column.get("l", 1.0)))
        column["l"] = int(l) if l.is_integer() else l
        return []
    if column.get("distance", each.how) != each.how:
        return [f"left out, for a column has one distance: {each.text}"]
    column |= {"t": min(each.level, column.get("t", 1.0)), "distance": each.how}
    return []
