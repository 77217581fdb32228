"""Sorting many rows that are alike: they are counted, the different ones are sorted, and each is written as often.

Rows that are equal in every column cannot be told apart, so the result is that of sorting them all. Floating numbers
are left out of it: 0.0 and -0.0 are equal, and written differently.
"""

from __future__ import annotations

from kinfold.rows.engines.database import Database

MANY = 200_000  # rows from which on counting may pay
TIMES = 3  # rows alike, in the mean, from which on it does


def sorted_counts(db: Database, rows: str) -> str | None:
    """SQL for rows, given as a query, in the order of all their values; None where it does not pay."""
    described = db.connection.execute(f"DESCRIBE {rows}").fetchall()
    names, kinds = [row[0] for row in described], [row[1] for row in described]
    if any(kind in ("FLOAT", "DOUBLE") for kind in kinds):
        return None
    quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names]
    hashed = f"hash({', '.join(f'w{i}' for i in range(len(names)))})"
    plain = f"SELECT {', '.join(f'{name} AS w{i}' for i, name in enumerate(quoted))} FROM ({rows})"
    count, different = db.row(f"SELECT count(*), approx_count_distinct({hashed}) FROM ({plain})")
    if count < MANY or different * TIMES > count:
        return None
    keys = ", ".join(f"w{i}" for i in range(len(names)))
    table = db.table(f"SELECT *, count(*) AS n FROM ({plain}) GROUP BY ALL ORDER BY {keys}")
    again = f"SELECT {keys}, unnest(range(n)) FROM {table}"
    return f"SELECT {', '.join(f'w{i} AS {name}' for i, name in enumerate(quoted))} FROM ({again})"
