"""The names that the columns of a file have in it: the database gives new ones where some differ in case only."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kinfold.rows.column_names import check_names
from kinfold.rows.engines.database import Database


def names_in(db: Database, scan: str) -> tuple[str, ...]:
    """Return the names of the columns as the database scans them."""
    return tuple(row[0] for row in db.connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall())


def check_parquet(db: Database, source: str, where: str) -> None:
    """Refuse a file of Parquet whose columns share a name."""
    nodes = iter(db.connection.execute(f"SELECT name, num_children FROM parquet_schema({source})").fetchall())
    _, columns = next(nodes)  # the table itself
    names = []
    for _ in range(columns or 0):
        name, parts = next(nodes)
        names.append(name)
        _pass_over(nodes, parts or 0)
    check_names(names, where)


def _pass_over(nodes: Iterator[tuple[str, int | None]], parts: int) -> None:
    """Leave out what a nested column is made of."""
    while parts:
        parts += (next(nodes)[1] or 0) - 1


def check_json(db: Database, objects: str, names: Sequence[str], where: str) -> None:
    """Refuse JSON whose objects have keys that differ in case only; they are looked for where a name could be new."""
    known = {name.casefold() for name in names}
    numbered = (re.fullmatch(r"(.+?)_\d+(_\d+)*", name, re.DOTALL) for name in names)
    if any(found and found[1].casefold() in known for found in numbered):
        keys = db.connection.execute(f"SELECT DISTINCT unnest(json_keys(json)) FROM {objects}").fetchall()
        check_names(sorted(key for (key,) in keys), where)
