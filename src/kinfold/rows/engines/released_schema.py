"""The schema of a table after a recoding, known without asking its rows: from the source's, and the values of classes.

kept as it is     what the source says of the column; asked again only where rows or apostrophes changed formulas
replaced          what the values of the classes are: there are fewer classes than rows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.recoding import Keep, Treatment
from kinfold.rows.schema import Column, Schema


@dataclass(frozen=True, eq=False)
class AfterRecoding:
    """A table after a recoding, what its source was, and the values of its classes: a column for each replaced one."""

    frame: Frame
    source: Schema
    treated: Mapping[str, Treatment]
    classes: Frame | None

    def schema(self, rows: int, of: Callable[[Frame], Schema], ask: Callable[[Sequence[str]], Schema]) -> Schema:
        """Return what every column is; `of` describes a table, `ask` some columns of all rows."""
        found = {} if self.classes is None else {c.name: c for c in of(self.classes)}
        found |= {name: self.source[name] for name, how in self.treated.items() if isinstance(how, Keep)}
        again = [name for name, column in found.items() if self._is_open(column, rows)]
        found |= {c.name: c for c in ask(again)} if again else {}
        known = (replace(found[name], rows=rows, nulls=min(found[name].nulls, rows)) for name in self.frame.names)
        return Schema.of(known, rows)

    def _is_open(self, column: Column, rows: int) -> bool:
        """Whether only the rows can tell: how many cells are like formulas, or which are without an apostrophe."""
        how = self.treated[column.name]
        kept, quotes = isinstance(how, Keep), getattr(how, "quotes", 0)
        if kept and quotes < 0:
            return True
        return bool(column.formulas) and not (kept and not quotes and rows == self.source.rows)


def only(db: Database, frame: Frame, names: Sequence[str]) -> Frame:
    """Return some columns of a table."""
    select = ", ".join(f"{frame.at(name)} AS c{i}" for i, name in enumerate(names))
    table = db.table(f"SELECT {select} FROM {frame.table}")
    return replace(frame, table=table, names=tuple(names), types=db.types(table), orders=())
