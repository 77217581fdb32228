"""JSON: a table of objects, in which whole numbers that a double does not hold are taken as they are written.

The database makes doubles of a column where a number has a fraction, or more digits than 64 bits hold; two accounts of
18 digits would be one there. Such a column is read again as it is written, and judged like a column of a CSV file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kinfold.rows.engines.database import Database
from kinfold.rows.engines.expressions import identifier
from kinfold.rows.engines.formula_cells import string
from kinfold.rows.engines.names_in_files import check_json, names_in

INEXACT = 2**53  # from here on a double stands for several whole numbers


def read_json(db: Database, source: str, where: str, *, lines: bool) -> tuple[tuple[str, ...], str]:
    """Read a file of JSON, one object a line or a list of them; return the names of its columns and the table."""
    names = names_in(db, _scan(source, lines, {}))
    check_json(db, f"read_json_objects({source}, {_options(lines)})", names, where)
    table = loaded(db, _scan(source, lines, {}), names)
    types = db.types(table)
    if not (long := _long(db, table, types)):
        return names, table
    told = {name: "JSON" if i in long else kind for i, (name, kind) in enumerate(zip(names, types, strict=True))}
    db.drop(table)
    return names, loaded(db, _scan(source, lines, told), names)


def loaded(db: Database, scan: str, names: Sequence[str]) -> str:
    """Make a table of what is scanned, its columns by number."""
    select = ", ".join(f"{identifier(name)} AS c{i}" for i, name in enumerate(names))
    return db.table(f"SELECT {select} FROM {scan}")


def _scan(source: str, lines: bool, types: Mapping[str, str]) -> str:
    told = ", ".join(f"{string(name)}: {string(kind)}" for name, kind in types.items())
    columns = f", columns={{{told}}}" if told else ", sample_size=-1"
    return f"read_json({source}, {_options(lines)}{columns})"


def _options(lines: bool) -> str:
    form = "newline_delimited" if lines else "auto"
    return f"format='{form}', compression='none', hive_partitioning=false"


def _long(db: Database, table: str, types: Sequence[str]) -> set[int]:
    """Return the places of columns of doubles that whole numbers may have been rounded to."""
    doubles = [i for i, kind in enumerate(types) if kind == "DOUBLE"]
    asked = [f"count(*) FILTER (WHERE abs(c{i}) >= {INEXACT})" for i in doubles]
    return {i for i, rows in zip(doubles, db.answers(asked, table), strict=True) if rows}
