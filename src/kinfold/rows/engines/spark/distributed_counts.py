"""Counting: tallies of columns, grouped in Spark and held in the embedded engine: distinct rows with their counts.

Whatever is asked of a table but its rows is asked of such a tally there, by the same SQL. A tally of some columns is
made of one that has more, where there is one; the tally of a short table has all its columns from the start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import Frame, text
from kinfold.rows.engines.spark.carried import inward
from kinfold.rows.engines.spark.frame import Distributed
from kinfold.rows.engines.spark.running_spark import RunningSpark
from kinfold.rows.engines.tallying import keys_of

SHORT = 20_000  # rows of a table that is tallied by all its columns at once
MOST = 1_000_000  # distinct values by which a column is described; of more, a sample

WEIGHT = "n"


class Counts:
    """The tallies of the tables of a run."""

    def __init__(self, session: RunningSpark, db: Database) -> None:
        self._session, self._db = session, db
        self._made: dict[str, list[Frame]] = {}
        self._rows: dict[str, int] = {}

    def rows(self, frame: Distributed) -> int:
        """Return how many rows a table has."""
        if frame.dense:
            return frame.end
        if frame.seen.table not in self._rows:
            with self._session.job():
                self._rows[frame.seen.table] = frame.rows.count()
        return self._rows[frame.seen.table]

    def of(self, frame: Distributed, names: Sequence[str]) -> Frame:
        """Return the tally of some columns."""
        made = self._made.setdefault(frame.seen.table, [])
        wanted = tuple(name for name in frame.seen.names if name in {*names})
        if not made and self.rows(frame) <= SHORT:
            made.append(self._counted(frame, frame.seen.names))
        for known in made:
            if known.names == wanted:
                return known
        wider = [known for known in made if {*wanted} <= {*known.names}]
        found = self._narrowed(min(wider, key=_width), wanted) if wider else self._counted(frame, wanted)
        made.append(found)
        return found

    def _counted(self, frame: Distributed, names: tuple[str, ...]) -> Frame:
        """Group the rows in Spark."""
        keys = [f"k{i}" for i in range(len(names))]
        with self._session.job():
            arrow = frame.rows.select(*frame.keys(names)).groupBy(*keys).count().toArrow() if names else None
        if arrow is None:
            table = self._db.table(f"SELECT CAST({self.rows(frame)} AS BIGINT) AS {WEIGHT}")
            return _held(frame.seen, table, names)
        return self._taken(frame, names, arrow)

    def _taken(self, frame: Distributed, names: tuple[str, ...], arrow: Any) -> Frame:
        typed = [f"{inward(f'k{i}', frame.seen.type_of(name))} AS c{i}" for i, name in enumerate(names)]
        with self._db.registered(arrow) as view:
            table = self._db.table(f"SELECT {', '.join([*typed, f'count AS {WEIGHT}'])} FROM {view}")
        return _held(frame.seen, table, names)

    def _narrowed(self, known: Frame, names: tuple[str, ...]) -> Frame:
        columns = [f"{known.at(name)} AS c{i}" for i, name in enumerate(names)]
        select = ", ".join([*columns, f"{known.many} AS {WEIGHT}"])
        groups = f" GROUP BY {', '.join(keys_of(known, names))}" if names else ""
        return _held(known, self._db.table(f"SELECT {select} FROM {known.table}{groups}"), names)

    def sizes(self, frame: Distributed, names: Sequence[str]) -> list[tuple[int, int]]:
        """Count the classes of some columns by how many rows they have: (rows, classes), ascending; none comes here."""
        with self._session.job():
            found = self._grouped(frame, names).groupBy("count").agg({"*": "count"}).toArrow()
        return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def alone(self, frame: Distributed, names: Sequence[str]) -> int:
        """Count the rows that no other row is like in some columns; none comes here."""
        with self._session.job():
            return int(self._grouped(frame, names).where("count = 1").count())

    def unmet(self, original: Distributed, released: Distributed, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Count for each pair of columns the released rows whose two texts no original row has; none comes here."""
        keys = ["pair", "one", "other"]
        with self._session.job():
            before, after = (_in_pairs(side, pairs).groupBy(*keys).count() for side in (original, released))
            met = before.select(*(before[key].alias(f"met_{key}") for key in keys))
            same = [after[key].eqNullSafe(met[f"met_{key}"]) for key in keys]
            found = after.join(met, same, "left_anti").groupBy("pair").agg({"count": "sum"}).toArrow().to_pydict()
        counted = dict(zip(found["pair"], found["sum(count)"], strict=True))
        return [int(counted.get(at, 0)) for at in range(len(pairs))]

    def _grouped(self, frame: Distributed, names: Sequence[str]) -> Any:
        return frame.rows.select(*frame.keys(tuple(names))).groupBy(*(f"k{i}" for i in range(len(names)))).count()

    def here(self, frame: Distributed, names: Sequence[str]) -> bool:
        """Whether a tally of some columns is here already, or comes with that of a short table."""
        made = self._made.get(frame.seen.table, [])
        return self.rows(frame) <= SHORT or any({*names} <= {*known.names} for known in made)

    def sample(self, frame: Distributed, name: str) -> Frame:
        """Return the tally of a column, or of `MOST` of its values where it has more, always the same ones."""
        made = self._made.get(frame.seen.table, [])
        if any(name in known.names for known in made) or self.rows(frame) <= MOST:
            return self.of(frame, [name])
        with self._session.job():
            counted = frame.rows.select(*frame.keys((name,))).groupBy("k0").count()
            some = counted.orderBy(_scattered(), "k0").limit(MOST).toArrow()
        return self._taken(frame, (name,), some)

    def summed(self, frame: Distributed, counts: Sequence[str]) -> list[int]:
        """Return counts of rows, given as SQL of the embedded engine; of a long table, which is not asked by values."""
        with self._session.job():
            return [int(each or 0) for each in frame.counted(counts).collect()[0]]

    def facts(self, frame: Distributed, name: str) -> tuple[int, int]:
        """Return how many rows have a value in a column, and about how many different ones."""
        from pyspark.sql.functions import approx_count_distinct, col, count

        c = col(frame.seen.at(name))
        with self._session.job():
            filled, distinct = frame.rows.select(count(c), approx_count_distinct(c)).collect()[0]
        return int(filled), int(distinct)


def _in_pairs(frame: Distributed, pairs: Sequence[tuple[str, str]]) -> Any:
    """Return a row for each row and pair of columns: the number of the pair, and the two values as text."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    texts = {f"t{i}": text(frame.seen, name) for i, name in enumerate(names)}
    rows = frame.computed(texts, dict.fromkeys(texts, "VARCHAR"))
    told = ", ".join(f"{at}, t{names.index(one)}, t{names.index(other)}" for at, (one, other) in enumerate(pairs))
    return rows.selectExpr(f"stack({len(pairs)}, {told}) AS (pair, one, other)")


def _scattered() -> Any:
    from pyspark.sql.functions import xxhash64

    return xxhash64("k0")


def _width(frame: Frame) -> int:
    return len(frame.names)


def _held(seen: Frame, table: str, names: tuple[str, ...]) -> Frame:
    orders = tuple(seen.order_of(seen.names.index(name)) for name in names) if seen.orders else ()
    types = tuple(seen.type_of(name) for name in names)
    return replace(seen, table=table, names=names, types=types, orders=orders, order="rowid", weight=WEIGHT)
