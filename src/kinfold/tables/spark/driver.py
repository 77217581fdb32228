"""What comes to the driver: the only place that collects rows of Spark. Each collect is bounded and counted.

A run collects tallies, samples and summaries of classes, never more than `driver_rows` of them at a time. More are
refused: the message names what they are, and what to do instead. The rows of a release that is one file go to the disk
of the driver, so many at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from kinfold.errors import PolicyError
from kinfold.tables.resources import MAX_DRIVER_ROWS, explain_driver_rows
from kinfold.tables.spark.session import JobSession


class Collected(NamedTuple):
    """What came to the driver at once."""

    what: str
    rows: int
    bytes: int


class Driver:
    """The driver of a run; `collected` lists what came to it."""

    def __init__(self, session: JobSession, limit: int = MAX_DRIVER_ROWS) -> None:
        self.session, self.limit = session, limit
        self.collected: list[Collected] = []

    def collect(self, frame: Any, what: str, *, at_most: int | None = None, rows: int | None = None) -> pa.Table:
        """Return the rows of a Spark frame, or refuse if there are too many.

        `at_most` is an upper bound that is known, so that Spark need not stop at the limit. `rows` is how many rows the
        values stand for, if several are packed into one.
        """
        known = max((each for each in (at_most, rows) if each is not None), default=None)
        self.require(known or 0, what)
        with self.session.job():
            arrow = (frame.limit(self.limit + 1) if known is None else frame).toArrow()
        self.collected.append(Collected(what, arrow.num_rows if rows is None else rows, arrow.nbytes))
        if arrow.num_rows > self.limit:
            raise self.refuse(what)
        return arrow

    def require(self, rows: int, what: str) -> None:
        """Refuse more rows than the driver may hold."""
        if rows > self.limit:
            raise self.refuse(what, rows)

    def refuse(self, what: str, rows: int | None = None) -> PolicyError:
        """Return the error for rows that the driver does not collect."""
        amount = f"more than {self.limit:,}" if rows is None else f"{rows:,}"
        return PolicyError(
            f"the driver of Spark would collect {amount} rows ({what}), and it may collect {self.limit:,} at a time",
            fix=explain_driver_rows(rows),
        )
