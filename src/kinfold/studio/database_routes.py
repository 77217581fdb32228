"""Routes of databases: take a table of PostgreSQL by its address, or one of an SQLite file that was sent.

The rows are read once, into a file of the session; an address may hold a password, and is not kept.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kinfold.rows.databases.address import POSTGRESQL, DatabaseAddress, located, narrowed
from kinfold.studio.error_answers import Refused
from kinfold.studio.guard import session_of
from kinfold.studio.request_bodies import json_of
from kinfold.studio.sessions import Opened, Sessions
from kinfold.studio.tables import clean_name, opened, place_for

FILES = (".sqlite", ".sqlite3", ".db")
TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"


class DatabaseRoutes:
    """What a page says of databases."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/api/source/database", self.connect, methods=["POST"]),
            Route("/api/source/table", self.choose, methods=["POST"]),
        ]

    async def connect(self, request: Request) -> Response:
        """Take rows of a server."""
        session = session_of(request)
        body = await json_of(request, session.limits)
        table, query = (body.get(key) or None for key in ("table", "query"))
        found = narrowed(located(str(body.get("address", ""))), _text(table), _text(query))
        if not isinstance(found, DatabaseAddress) or found.system != POSTGRESQL:
            raise Refused(
                422, "that is no address of PostgreSQL", "write postgresql://user@host/name; send a file of SQLite"
            )
        path = place_for(session, f"{found.name}.parquet")
        taken = Opened(found.name, path, "database", 0, address=str(found), asked=_with_password(found))
        return JSONResponse({"version": await opened(self.sessions, session, taken)})

    async def choose(self, request: Request) -> Response:
        """Take a table of the file that was sent."""
        session = session_of(request)
        name = (await json_of(request, session.limits)).get("table")
        held = session.source
        if held is None or held.state != "choosing":
            raise Refused(409, "there is no file of SQLite to choose from", "send one first")
        if name not in held.tables:
            raise Refused(404, "the file has no such table", "choose one of its tables")
        rows = f"table={quote(_quoted(str(name)), safe='')}"
        asked = f"sqlite:///{quote(str(held.path))}?{rows}"
        file = clean_name(f"{name}.parquet")
        path = place_for(session, file) if held.kind == "given" else held.path.with_name(file)
        shown = f"sqlite:///{quote(held.name)}?{rows}"
        table = Opened(str(name), path, "database", held.size, address=shown, asked=asked)
        session.source = None  # the file stays where the table is read from
        return JSONResponse({"version": await opened(self.sessions, session, table)})


def is_sqlite(name: str) -> bool:
    """Whether a file is one of SQLite, by its name."""
    return Path(name).suffix.lower() in FILES


async def tables_in(path: Path) -> tuple[str, ...]:
    """Return the tables and views of a file of SQLite."""
    try:
        return await asyncio.to_thread(_tables, path)
    except sqlite3.Error:
        raise Refused(422, "the file is none of SQLite, or is broken", "send another one") from None


def _tables(path: Path) -> tuple[str, ...]:
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
        return tuple(str(row[0]) for row in file.execute(TABLES).fetchmany(1000))


def _quoted(name: str) -> str:
    """Return a name as an address has it: in quotes, for it may have a dot."""
    return '"' + name.replace('"', '""') + '"'


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _with_password(address: DatabaseAddress) -> str:
    """Return the address for the one who reads, password and all: it is not kept."""
    rows = {"table": str(address.table) if address.table else None, "query": address.query}
    told = "&".join(f"{key}={quote(value, safe='')}" for key, value in rows.items() if value)
    return address.uri + ("&" if "?" in address.uri else "?") + told
