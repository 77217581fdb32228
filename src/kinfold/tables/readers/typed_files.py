"""Parquet, JSON and Arrow: sources that have types.

Arrow types that DuckDB does not have are converted without loss: half floats to floats, decimals of 256 bits to
decimals of 128 bits if their digits suffice. Other types are refused, column by column. A Parquet file may mark whole
numbers as durations in metadata that DuckDB ignores: durations are refused.

In JSON, DuckDB reads a column as doubles if a number has a fraction or more than 64 bits; two account numbers of 18
digits could become equal. Such a column is read again as text, and treated like a column of a CSV file. Fractions with
digits that a double does not have are refused.
"""

from __future__ import annotations

import json
import mmap
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kinfold.errors import DataError, Problem
from kinfold.tables.column_names import check_column_names
from kinfold.tables.duckdb.connection import Database
from kinfold.tables.duckdb.expressions import quote_identifier, quote_string
from kinfold.tables.schema import MAX_DECIMAL_DIGITS, MAX_EXACT_INTEGER

# a name, and a number of more than 17 digits
LONG_NUMBER = re.compile(
    rb'"((?:[^"\\]|\\.)*)"\s*:\s*(-?(?:0\.0*)?[1-9](?:\.?[0-9]){17,}(?:[eE][-+]?[0-9]{1,3})?)(?=[\s,}])'
)
SPARK_METADATA_KEY = b"org.apache.spark.sql.parquet.row.metadata"


def convert_types(table: pa.Table, name: str) -> pa.Table:
    """Return a table with types that DuckDB has, for half floats and decimals of 256 bits."""
    problems = []
    for i, field in enumerate(table.schema):
        kind = _value_type(field.type)
        if (supported := _supported_type(kind)) is None:
            continue
        try:
            table = table.set_column(i, field.name, table.column(i).cast(kind).cast(supported))
        except pa.ArrowInvalid:  # its message quotes a value
            what = f"column '{field.name}' of {name} holds numbers of more than {MAX_DECIMAL_DIGITS} digits"
            problems.append(Problem(what, "round them, or convert them to text"))
    if problems:
        raise DataError(problems)
    return table


def check_parquet_types(path: Path, name: str) -> pa.Schema:
    """Return the Arrow schema of a Parquet file; refuse columns of durations."""
    try:
        schema = pq.read_schema(path)
        spark = json.loads((schema.metadata or {}).get(SPARK_METADATA_KEY, b"{}")).get("fields", ())
    except (pa.ArrowException, OSError, ValueError):
        fix = "check that the file is complete and that its ending is right"
        raise DataError(f"{name} cannot be read", fix=fix) from None
    durations = {field.name for field in schema if pa.types.is_duration(_value_type(field.type))}
    durations |= {field["name"] for field in spark if str(field["type"]).startswith("interval")}
    fix = "convert it to a number of seconds, hours or days, or leave the column out"
    if durations:
        raise DataError(Problem(f"column '{each}' of {name} holds durations", fix) for each in sorted(durations))
    return schema


def needs_arrow(schema: pa.Schema) -> bool:
    """Whether a Parquet file holds decimals that DuckDB would return as doubles."""
    return any(pa.types.is_decimal256(_value_type(field.type)) for field in schema)


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _supported_type(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal256(kind):
        return pa.decimal128(min(kind.precision, MAX_DECIMAL_DIGITS), min(kind.scale, MAX_DECIMAL_DIGITS))
    return None


def unsupported_types_error(table: pa.Table, name: str, is_supported: Callable[[pa.Table], bool]) -> DataError:
    """Return the error for columns of unsupported types; each is tested without its rows."""
    problems = [
        Problem(
            f"column '{field.name}' of {name} holds {field.type}, which cannot be read",
            "convert it to numbers, dates or text, or leave the column out",
        )
        for i, field in enumerate(table.schema)
        if not is_supported(table.select([i]).slice(0, 0))
    ]
    return DataError(problems or [Problem(f"{name} cannot be read", "give each column a simple type")])


def read_column_names(db: Database, scan: str) -> tuple[str, ...]:
    """Return the column names of a scan; DuckDB renames columns that differ in case only."""
    return tuple(name for name, _ in db.describe(f"SELECT * FROM {scan}"))


def check_parquet_names(db: Database, source: str, where: str) -> None:
    """Refuse a Parquet file whose columns share a name."""
    nodes = iter(db.execute(f"SELECT name, num_children FROM parquet_schema({source})"))
    _, columns = next(nodes)  # the root node
    names = []
    for _ in range(columns or 0):
        name, children = next(nodes)
        names.append(name)
        inner = children or 0
        while inner:  # skip the nodes inside this one
            inner += (next(nodes)[1] or 0) - 1
    check_column_names(names, where)


def check_json_names(db: Database, objects: str, names: Sequence[str], where: str) -> None:
    """Refuse JSON whose keys differ in case only; read all keys only if DuckDB may have renamed one."""
    known = {name.casefold() for name in names}
    numbered = (re.fullmatch(r"(.+?)_\d+(_\d+)*", name, re.DOTALL) for name in names)
    if any(match and match[1].casefold() in known for match in numbered):
        keys = db.execute(f"SELECT DISTINCT unnest(json_keys(json)) FROM {objects}")
        check_column_names(sorted(key for (key,) in keys), where)


def read_json(db: Database, source: str, path: Path, where: str, *, lines: bool) -> tuple[tuple[str, ...], str]:
    """Read a JSON file, a list of objects or one object per line; return the column names and the table."""
    names = read_column_names(db, _scan_sql(source, lines, {}))
    check_json_names(db, f"read_json_objects({source}, {_options_sql(lines)})", names, where)
    table = load_table(db, _scan_sql(source, lines, {}), names)
    types = db.types(table)
    if "DOUBLE" in types:
        _refuse_long_fractions(path, where)
    if not (rounded := _find_rounded_columns(db, table, types)):
        return names, table
    exact = {name: "JSON" if i in rounded else kind for i, (name, kind) in enumerate(zip(names, types, strict=True))}
    db.drop(table)
    return names, load_table(db, _scan_sql(source, lines, exact), names)


def _refuse_long_fractions(path: Path, where: str) -> None:
    """Refuse numbers with a decimal point that are not the nearest double, to as many decimals."""
    counts: Counter[str] = Counter()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for name, number in (match.groups() for match in LONG_NUMBER.finditer(content)):
            exact = Decimal(number.decode())
            decimals = max(0, -int(exact.as_tuple().exponent))
            if b"." in number and exact != Decimal(f"{float(exact):.{decimals}f}"):
                counts[json.loads(b'"' + name + b'"')] += 1
    if counts:
        fix = "write them as text, or round them"
        raise DataError(
            [Problem(f"column '{n}' of {where} holds numbers of more digits than JSON keeps", fix) for n in counts]
        )


def load_table(db: Database, scan: str, names: Sequence[str]) -> str:
    """Make a table of a scan, with columns c0, c1, ..."""
    select = ", ".join(f"{quote_identifier(name)} AS c{i}" for i, name in enumerate(names))
    return db.table(f"SELECT {select} FROM {scan}")


def _scan_sql(source: str, lines: bool, types: Mapping[str, str]) -> str:
    fields = ", ".join(f"{quote_string(name)}: {quote_string(kind)}" for name, kind in types.items())
    columns = f", columns={{{fields}}}" if fields else ", sample_size=-1"
    return f"read_json({source}, {_options_sql(lines)}{columns})"


def _options_sql(lines: bool) -> str:
    form = "newline_delimited" if lines else "auto"
    return f"format='{form}', compression='none', hive_partitioning=false"


def _find_rounded_columns(db: Database, table: str, types: Sequence[str]) -> set[int]:
    """Return the columns of doubles in which whole numbers may be rounded."""
    doubles = [i for i, kind in enumerate(types) if kind == "DOUBLE"]
    questions = [f"count(*) FILTER (WHERE abs(c{i}) >= {MAX_EXACT_INTEGER})" for i in doubles]
    return {i for i, rows in zip(doubles, db.answers(questions, table), strict=True) if rows}
