"""Addresses of databases: which system, how to get there, and which rows: a table, or what a query gives.

    postgresql://user@host:5432/name?table=schema.table
    sqlite:///folder/file.db?table=name           a relative path; four slashes before one that starts at the root

No other address is read: whatever has `://` in it and is neither is refused. What `table=` and `query=` say is for
kinfold, other parameters are for the driver. A password goes to the driver and nowhere else: it is in no text that
this file makes, and an address that cannot be read is not quoted, for nobody knows where its password ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, unquote

from kinfold.errors import DataError, PolicyError

POSTGRESQL, SQLITE = "postgresql", "sqlite"
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # one letter is a drive; a path has one of its two slashes left
HOST = r"(?:[\w.%~-]+|\[[0-9A-Fa-f:.%]+\])?(?::[0-9]+)?"
SERVER = re.compile(
    rf"postgresql://(?:(?P<user>[^:@/?#\s]*)(?::(?P<password>[^@/?#\s]*))?@)?"
    rf"(?P<hosts>{HOST}(?:,{HOST})*)(?:/(?P<name>[^/?#\s]*))?"
)
PART = r'"(?:[^"]|"")+"|[^".]+'
TABLE = re.compile(rf"(?:({PART})\.)?({PART})")
FORMS = "write postgresql://user@host/name?table=NAME or sqlite:///file.db?table=NAME"
ROWS = ("table", "query")  # parameters that are ours


@dataclass(frozen=True)
class TableName:
    """A table's name, and that of its schema where it is given; capitals count."""

    table: str
    schema: str | None = None

    def __str__(self) -> str:
        return ".".join(map(_written, (self.schema, self.table) if self.schema else (self.table,)))


@dataclass(frozen=True)
class DatabaseAddress:
    """Where rows are in a database; as text it has no password."""

    system: str
    place: str  # for people
    uri: str = field(repr=False)  # for the driver
    table: TableName | None = None
    query: str | None = None

    def __str__(self) -> str:
        rows = {"table": str(self.table) if self.table else None, "query": self.query}
        told = "&".join(f"{key}={quote(value, safe='')}" for key, value in rows.items() if value)
        return self.place + (("&" if "?" in self.place else "?") + told if told else "")

    @property
    def name(self) -> str:
        """What the rows are called."""
        return str(self.table) if self.table else "query"

    @property
    def described(self) -> str:
        """The rows, as messages name them."""
        return f"table '{self.table}'" if self.table else "the query"


def narrowed(source: Path | DatabaseAddress, table: str | None, query: str | None) -> Path | DatabaseAddress:
    """Return the address of these rows in the same database."""
    if table is None and query is None:
        return source
    if isinstance(source, Path):
        raise PolicyError("a table or a query is named, but no database", fix="leave --table and --query out")
    if source.table or source.query:
        raise PolicyError("the rows are named twice", fix="say table or query once, in the address or as an option")
    return _checked(replace(source, table=_table(table), query=_query(query)))


def located(source: str | Path) -> Path | DatabaseAddress:
    """Tell a path from the address of a database; any other address is refused."""
    text = str(source)
    scheme = SCHEME.match(text)
    if isinstance(source, str) and scheme and text.startswith(f"{scheme[1]}://") and scheme[1] in (POSTGRESQL, SQLITE):
        return _read(text, scheme[1])
    path = Path(source)
    try:
        there = path.exists()
    except OSError as error:  # a name that is too long
        raise DataError(f"the path cannot be used: {error.strerror}", fix="check the path") from None
    if scheme is None or there:
        return path
    raise DataError(f"no such file: '{scheme[1]}://…'", fix=f"give a path; or, for a database, {FORMS}")


def table_at(text: str) -> DatabaseAddress:
    """Return the address of a table in a database; whatever else is refused."""
    found = located(text)
    if isinstance(found, DatabaseAddress) and found.table:
        return found
    raise PolicyError("that is no address of a table in a database", fix=FORMS)


def _read(text: str, system: str) -> DatabaseAddress:
    base, _, parameters = text.partition("?")
    given = [part.partition("=")[::2] for part in parameters.split("&") if part]
    ours = {key: unquote(value) for key, value in given if key in ROWS}
    others = [(key, value) for key, value in given if key not in ROWS]
    make = _server if system == POSTGRESQL else _file
    found = make(base, others)
    return _checked(replace(found, table=_table(ours.get("table")), query=_query(ours.get("query"))))


def _server(base: str, parameters: list[tuple[str, str]]) -> DatabaseAddress:
    found = SERVER.fullmatch(base)
    if found is None or not all(value and "@" not in value for _, value in parameters):
        what = "the address of the database cannot be read"
        raise PolicyError(what, fix=f"{FORMS}; write signs such as @ / : ? in a user or password as %40 %2F %3A %3F")
    user = f"{found['user']}@" if found["user"] else ""
    place = f"postgresql://{user}{found['hosts']}" + (f"/{found['name']}" if found["name"] else "")
    shown = "&".join(f"{key}={value}" for key, value in parameters if "password" not in key.lower())
    driven = "&".join(f"{key}={value}" for key, value in parameters)
    return DatabaseAddress(POSTGRESQL, place + (f"?{shown}" if shown else ""), base + (f"?{driven}" if driven else ""))


def _file(base: str, parameters: list[tuple[str, str]]) -> DatabaseAddress:
    if not base.startswith("sqlite:///") or not base.removeprefix("sqlite:///"):
        raise PolicyError("the address of the database names no file", fix="write sqlite:///file.db?table=NAME")
    if parameters:
        known = f"'{parameters[0][0]}' in the address of the database is not known"
        raise PolicyError(known, fix="say table= or query=, and nothing else")
    path = unquote(base.removeprefix("sqlite:///"))
    return DatabaseAddress(SQLITE, f"sqlite:///{quote(path)}", path)


def _table(text: str | None) -> TableName | None:
    if text is None:
        return None
    found = TABLE.fullmatch(text.strip())
    if found is None:
        raise PolicyError("the name of the table cannot be read", fix='write table, schema.table or "a.table"')
    schema, table = (part and _bare(part) for part in found.groups())
    return TableName(str(table), schema)


def _query(text: str | None) -> str | None:
    """Return a query without the mark that ends a statement."""
    return text.strip().rstrip(";").strip() if text else None


def _checked(address: DatabaseAddress) -> DatabaseAddress:
    if address.table and address.query is not None:
        raise PolicyError("a table and a query are named", fix="name one of them")
    return address


def _bare(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def _written(part: str) -> str:
    return '"' + part.replace('"', '""') + '"' if re.search(r'["./\s]', part) else part
