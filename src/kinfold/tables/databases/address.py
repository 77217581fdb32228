"""Addresses of databases: which system, how to connect, and which rows: a table or a query.

    postgresql://user@host:5432/name?table=schema.table
    sqlite:///folder/file.db?table=name           a relative path; an absolute path has four slashes

    s3a://bucket/folder, hdfs://…, abfss://…       a place that only Spark reads
    jdbc:oracle:thin:@host:1521/name?table=NAME    rows that only Spark reads, with a driver of its session

Any other text with `://` is refused. kinfold reads the parameters `table` and `query`; the driver gets the others. Only
the driver gets the password. An address that cannot be parsed is not quoted in a message, because it may contain one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import quote, unquote

from kinfold.errors import DataError, PolicyError

POSTGRESQL, SQLITE, SPARK = "postgresql", "sqlite", "spark"
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # one letter is a drive; `Path` removes one of two slashes
HOST = r"(?:[\w.%~-]+|\[[0-9A-Fa-f:.%]+\])?(?::[0-9]+)?"
SERVER = re.compile(
    rf"postgresql://(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    rf"(?P<hosts>{HOST}(?:,{HOST})*)(?:/(?P<name>[^/?#\s]*))?"
)
PART = r'"(?:[^"]|"")+"|[^".]+'
TABLE = re.compile(rf"(?:({PART})\.)?({PART})")
ADDRESS_HINT = "write postgresql://user@host/name?table=NAME or sqlite:///file.db?table=NAME"
SPARK_SCHEMES = ("s3", "s3a", "s3n", "gs", "hdfs", "viewfs", "abfs", "abfss", "wasb", "wasbs", "dbfs", "file")
SPARK_FORMATS = ("parquet", "orc", "delta", "iceberg", "csv", "json", "jsonl", "table")
CONTENT_FORMATS = ("csv", "json", "jsonl")  # files without types, which the embedded engine reads from their bytes
CATALOGUE_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*){0,3}")
ROW_PARAMETERS = ("table", "query")  # the others are for the driver


Address = TypeVar("Address", bound="DatabaseAddress")


@dataclass(frozen=True)
class TableName:
    """The name of a table, and of its schema if given; case-sensitive."""

    table: str
    schema: str | None = None

    @property
    def sql(self) -> str:
        """The name as SQL."""
        return ".".join('"' + part.replace('"', '""') + '"' for part in (self.schema, self.table) if part)

    def __str__(self) -> str:
        return ".".join(map(_quote_part, (self.schema, self.table) if self.schema else (self.table,)))


@dataclass(frozen=True)
class DatabaseAddress:
    """The address of rows in a database; as text it has no password."""

    system: str
    place: str  # for messages, without the password
    uri: str = field(repr=False)  # for the driver
    table: TableName | None = None
    query: str | None = None

    def __str__(self) -> str:
        rows = {"table": str(self.table) if self.table else None, "query": self.query}
        parameters = "&".join(f"{key}={quote(value, safe='')}" for key, value in rows.items() if value)
        return self.place + (("&" if "?" in self.place else "?") + parameters if parameters else "")

    @property
    def name(self) -> str:
        """The name of the rows."""
        return str(self.table) if self.table else "query"

    @property
    def description(self) -> str:
        """The rows, for messages."""
        return f"table '{self.table}'" if self.table else "the query"


@dataclass(frozen=True)
class SparkPlace(DatabaseAddress):
    """A place that only Spark reads: a URL, a table of its catalogue, or rows that JDBC reads."""

    kind: Literal["url", "table", "jdbc"] = "url"
    format: str | None = None

    @property
    def name(self) -> str:
        """The name of the rows."""
        return super().name if self.kind == "jdbc" else self.place.rstrip("/").rpartition("/")[2]

    @property
    def holds_files(self) -> bool:
        """Whether the place has files without types."""
        return self.kind == "url" and self.format in CONTENT_FORMATS


def locate(source: str | Path | DatabaseAddress, form: str | None, engine: str) -> Path | DatabaseAddress:
    """Return what an engine reads; a place that only Spark reads has its format then, declared or by its ending."""
    source = source if isinstance(source, DatabaseAddress) else parse_source(source)
    if engine != "spark":
        if isinstance(source, SparkPlace) or form is not None:
            what = f"'{source.place}'" if isinstance(source, SparkPlace) else f'source.format = "{form}"'
            raise PolicyError(f"{what} is for Spark alone", fix='set engine.name = "spark" (--engine spark)')
        return source
    if isinstance(source, SparkPlace) and source.kind == "url":
        words = [word.lower() for word in source.name.split(".")]
        form = form or next((word for word in reversed(words) if word in SPARK_FORMATS), None)
        if form is None or form == "table":
            fix = f"set source.format (--source-format): {', '.join(SPARK_FORMATS[:-1])}"
            raise PolicyError(f"the format of '{source.place}' is not known", fix=fix)
        return replace(source, format=form)
    if not isinstance(source, Path) or form is None:
        return source
    if source.exists():
        if form in (*CONTENT_FORMATS, "parquet"):
            return source  # its ending says the format
        return SparkPlace(SPARK, source.name, f"file://{source.absolute()}", format=form)
    if CATALOGUE_NAME.fullmatch(str(source)):
        return SparkPlace(SPARK, str(source), str(source), kind="table", format=form)
    raise DataError(f"no such file, and no name of a table: '{source}'", fix="write catalogue.schema.table")


def select_rows(source: Path | DatabaseAddress, table: str | None, query: str | None) -> Path | DatabaseAddress:
    """Return the address of these rows in the same database."""
    if table is None and query is None:
        return source
    if isinstance(source, Path):
        raise PolicyError("--table and --query need a database, but the source is a file", fix="leave them out")
    if source.table or source.query:
        what = "the rows are named twice"
        raise PolicyError(what, fix="name a table or a query once, in the address or as an option")
    return _name_rows(source, {key: text for key, text in (("table", table), ("query", query)) if text is not None})


def parse_source(source: str | Path) -> Path | DatabaseAddress:
    """Return a path, or the address of a database; refuse any other address."""
    text = str(source)
    scheme = SCHEME.match(text)
    if isinstance(source, str) and scheme and text.startswith(f"{scheme[1]}://") and scheme[1] in (POSTGRESQL, SQLITE):
        return _parse_address(text, scheme[1])
    if isinstance(source, str) and scheme and text.startswith(f"{scheme[1]}://") and scheme[1] in SPARK_SCHEMES:
        return SparkPlace(SPARK, re.sub(r"//[^/@]*:[^/@]*@", "//", text), text)
    if isinstance(source, str) and text.startswith("jdbc:"):
        return _parse_jdbc(text)
    path = Path(source)
    try:
        exists = path.exists()
    except OSError as error:  # a name that is too long
        raise DataError(f"the path cannot be used: {error.strerror}", fix="check the path") from None
    if scheme is None or exists:
        return path
    raise DataError(f"no such file: '{scheme[1]}://…'", fix=f"give a path; or, for a database, {ADDRESS_HINT}")


def parse_table_address(text: str) -> DatabaseAddress:
    """Return the address of a table in a database; refuse anything else."""
    address = parse_source(text)
    if isinstance(address, DatabaseAddress) and address.table:
        return address
    raise PolicyError("this is not the address of a table in a database", fix=ADDRESS_HINT)


def _parse_address(text: str, system: str) -> DatabaseAddress:
    base, others, rows = _split_parameters(text)
    return _name_rows((_parse_server if system == POSTGRESQL else _parse_file)(base, others), rows)


def _split_parameters(text: str) -> tuple[str, list[tuple[str, str]], dict[str, str]]:
    """Return an address without its parameters, those for the driver, and those that name rows."""
    base, _, parameters = text.partition("?")
    given = [part.partition("=")[::2] for part in parameters.split("&") if part]
    rows = {key: unquote(value) for key, value in given if key in ROW_PARAMETERS}
    return base, [(key, value) for key, value in given if key not in ROW_PARAMETERS], rows


def _name_rows(address: Address, rows: Mapping[str, str]) -> Address:
    """Return the address of a table or of a query; refuse both together."""
    table, query = _parse_table(rows.get("table")), _parse_query(rows.get("query"))
    if table and query is not None:
        raise PolicyError("both a table and a query are named", fix="name one of them")
    return replace(address, table=table, query=query)


def _parse_server(base: str, parameters: list[tuple[str, str]]) -> DatabaseAddress:
    server = SERVER.fullmatch(base)
    if server is None or not all(value and "@" not in value for _, value in parameters):
        fix = f"{ADDRESS_HINT}; write @ / : ? in a user or password as %40 %2F %3A %3F"
        raise PolicyError("the address of the database cannot be read", fix=fix)
    user = f"{server['user']}@" if server["user"] else ""
    place = f"postgresql://{user}{server['hosts']}" + (f"/{server['name']}" if server["name"] else "")
    public = "&".join(f"{key}={value}" for key, value in parameters if "password" not in key.lower())
    private = "&".join(f"{key}={value}" for key, value in parameters)
    uri = base + (f"?{private}" if private else "")
    return DatabaseAddress(POSTGRESQL, place + (f"?{public}" if public else ""), uri)


def _parse_jdbc(text: str) -> SparkPlace:
    base, parameters, rows = _split_parameters(text)
    others = "&".join(f"{key}={value}" for key, value in parameters)
    public = re.sub(r"//[^/@]*@", "//", base.partition(";")[0])
    return _name_rows(SparkPlace(SPARK, public, f"{base}?{others}" if others else base, kind="jdbc"), rows)


def _parse_file(base: str, parameters: list[tuple[str, str]]) -> DatabaseAddress:
    if not base.startswith("sqlite:///") or not base.removeprefix("sqlite:///"):
        raise PolicyError("the address of the database names no file", fix="write sqlite:///file.db?table=NAME")
    if parameters:
        what = f"unknown parameter '{parameters[0][0]}' in the address of the database"
        raise PolicyError(what, fix="use only table= or query=")
    path = unquote(base.removeprefix("sqlite:///"))
    return DatabaseAddress(SQLITE, f"sqlite:///{quote(path)}", path)


def _parse_table(text: str | None) -> TableName | None:
    if text is None:
        return None
    match = TABLE.fullmatch(text.strip())
    if match is None:
        raise PolicyError("the name of the table cannot be read", fix='write table, schema.table or "a.table"')
    schema, table = (part and _unquote_part(part) for part in match.groups())
    return TableName(str(table), schema)


def _parse_query(text: str | None) -> str | None:
    return text.strip().rstrip(";").strip() if text else None


def _unquote_part(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _quote_part(part: str) -> str:
    return '"' + part.replace('"', '""') + '"' if re.search(r'["./\s]', part) else part
