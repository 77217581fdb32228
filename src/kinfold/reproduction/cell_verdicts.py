"""Judging: ours beside theirs.

    match           equal to every digit that is printed; texts: equal
    close           within 3 % of the printed value, or one unit of its last decimal
    differs         neither
    not-computable  ours is missing, or is of a stand-in for data that is not available here

A cell fails if its verdict is worse than what is due, or if a reading is known and ours does not equal it. A guard is
not-computable, and fails if ours is not what it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kinfold.reproduction.expectation import Expectation, Key, Ours

CLOSE = 0.03  # of the printed value
ORDER = ("match", "close", "differs")
EXACT, NEAR = "equal to every printed digit", "within 3 % or one unit of the last decimal"


@dataclass(frozen=True)
class Comparandum:
    """One cell: theirs, ours, how far apart, and the verdict with its reason."""

    row: str
    column: str
    theirs: str
    ours: Ours | None
    difference: float | None
    verdict: str
    reason: str
    failed: bool = False
    guard: bool = False  # ours was made to come out, or is ours alone: no verdict on the paper

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as JSON shows it."""
        return {
            "row": self.row,
            "column": self.column,
            "theirs": self.theirs,
            "ours": self.ours,
            "difference": self.difference,
            "verdict": self.verdict,
            "reason": self.reason,
            "failed": self.failed,
            "guard": self.guard,
        }


def judged(key: Key, expected: Expectation, ours: Ours) -> Comparandum:
    """Return the verdict on one cell."""
    if expected.due == "guard":
        changed = compared(expected.reading or expected.printed, ours) != "match"
        kept = not_computable(key, expected, expected.why, ours)
        return replace(kept, guard=True, failed=changed)
    verdict = compared(expected.printed, ours)
    known = expected.reading is None or compared(expected.reading, ours) == "match"
    failed = ORDER.index(verdict) > ORDER.index(expected.due) or not known
    return Comparandum(
        *key, expected.printed, ours, difference(expected.printed, ours), verdict, _reason(verdict, expected), failed
    )


def not_computable(key: Key, expected: Expectation, reason: str, ours: Ours | None = None) -> Comparandum:
    """Return a cell that cannot be compared, with ours of a stand-in where there is one."""
    return Comparandum(*key, expected.printed, ours, None, "not-computable", reason)


def compared(printed: str, ours: Ours) -> str:
    """Return match, close or differs.

    >>> compared("0.131", 0.13149), compared("0.131", 0.1332), compared("0.131", 0.2), compared("{A2, A3}", "{A2, A3}")
    ('match', 'close', 'differs', 'match')
    """
    theirs = number(printed)
    if theirs is None or isinstance(ours, str | bool):
        return "match" if printed == shown(ours, printed) else "differs"
    if shown(ours, printed) == shown(theirs, printed):
        return "match"
    unit = 10.0 ** -decimals(printed) if decimals(printed) else 0.0  # a count is not close because it is off by one
    return "close" if abs(ours - theirs) <= max(CLOSE * abs(theirs), 1.0001 * unit) else "differs"


def difference(printed: str, ours: Ours) -> float | None:
    """Return ours less theirs, where both are numbers."""
    theirs = number(printed)
    if theirs is None or isinstance(ours, str | bool):
        return None
    return round(float(ours) - theirs, decimals(printed) + 3)


def number(printed: str) -> float | None:
    """Return a printed number, or nothing where a text is printed.

    >>> number("31.10"), number("1080"), number("2/7"), number("{t8}")
    (31.1, 1080.0, None, None)
    """
    try:
        return float(printed)
    except ValueError:
        return None


def decimals(printed: str) -> int:
    """Return how many decimals are printed.

    >>> decimals("31.10"), decimals("1080")
    (2, 0)
    """
    return len(printed.partition(".")[2])


def shown(ours: Ours, printed: str) -> str:
    """Return a value of ours as the paper would print it: yes or no, and as many decimals."""
    if isinstance(ours, bool):
        return "yes" if ours else "no"
    if isinstance(ours, str) or number(printed) is None:
        return str(ours)
    return f"{round(float(ours), decimals(printed)) + 0.0:.{decimals(printed)}f}"


def _reason(verdict: str, expected: Expectation) -> str:
    if verdict == "match":
        return EXACT if number(expected.printed) is not None else "equal"
    return expected.why or (NEAR if verdict == "close" else "")
