"""Strips: wide tables in pieces that are cheap to ask, for what a query costs grows with the width of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame

WIDE, STRIP = 400, 100  # columns of a table that is asked in strips, and of a strip


class Strips:
    """The strips of the tables of a database, each cut once."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._cut: dict[str, list[Frame]] = {}

    def of(self, frame: Frame) -> list[Frame]:
        """Return a table in strips that are cheap to ask: what a query costs grows with the width of its table."""
        if len(frame.names) <= WIDE:
            return [frame]
        if frame.table not in self._cut:
            starts = range(0, len(frame.names), STRIP)
            self._cut[frame.table] = [self._copied(frame, slice(start, start + STRIP)) for start in starts]
        return self._cut[frame.table]

    def _copied(self, frame: Frame, part: slice) -> Frame:
        columns = frame.columns[part]
        select = ", ".join(f"{c} AS c{i}" for i, c in enumerate(columns))
        table = self._db.table(f"SELECT {select} FROM {frame.table}")
        orders = frame.orders[part]
        return replace(frame, table=table, names=frame.names[part], types=frame.types[part], orders=orders)

    def holding(self, frame: Frame, names: Sequence[str]) -> Frame:
        """Return the strip that has these columns, or the table where it is narrow or they are in several."""
        if len(frame.names) <= WIDE or not names:
            return frame
        strips = {frame.names.index(name) // STRIP for name in names}
        return self.of(frame)[strips.pop()] if len(strips) == 1 else frame
