"""The appearance of a column: what its values look like, in counts, without asking what they mean.

Everything is counted over the distinct values, each as often as it is held, so that a million rows cost little more
than grouping them once.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_VALUES = 2_000  # of a column that are looked at one by one, the most frequent first


@dataclass(frozen=True)
class Appearance:
    """The values of one column: how they repeat, how they are written, and, of numbers, how far they reach."""

    filled: int  # rows that hold a value
    distinct: int
    alone: int = 0  # rows that no other row is like in this column; null is like null
    least: int = 0  # rows of the rarest value
    most: int = 0  # rows of the most frequent one
    whole: int = 0  # rows with a number that has no fraction: 3, 3.0
    low: float = 0.0  # of numbers
    high: float = 0.0
    mean: float = 0.0
    letters: float = 0.0  # a text, on average
    words: float = 0.0
    values: tuple[str, ...] = ()  # as text, the most frequent first, at most `MOST_VALUES`
    counts: tuple[int, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every value is among those looked at one by one."""
        return len(self.values) == self.distinct

    @property
    def rows_each(self) -> float:
        """How many rows hold a value, on average."""
        return self.filled / self.distinct if self.distinct else 0.0


@dataclass(frozen=True)
class Succession:
    """How the values of a column follow one another, from the first row to the last; nulls are passed over."""

    runs: int  # stretches of the same value
    rises: int  # rows whose value is not below the one before
