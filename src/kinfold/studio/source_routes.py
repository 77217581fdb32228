"""Routes of the table: open a file or rows of a database, change how it is read, show its rows and its risk.

Rows of a database are read once, into a file of the session. An address can contain a password and is not kept.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kinfold.demo import read_demo_policy, write_demo_table
from kinfold.errors import KinfoldError, PolicyError, Problem
from kinfold.measures.risk import measure_column_risk
from kinfold.pipeline import bind_table
from kinfold.policy.toml_values import KeyPath
from kinfold.studio.guard import Call, route, save_upload
from kinfold.studio.policy_routes import apply_policy_text, edit_policy_text, get_policy, get_usable_policy, query_table
from kinfold.studio.refusals import PolicyTextError, Refusal
from kinfold.studio.sessions import SessionTable, StudioSession
from kinfold.studio.table_jobs import FIRST_ROWS
from kinfold.studio.table_loading import clean_name, close_table, load_table, make_table_path, retry
from kinfold.tables.databases.address import POSTGRESQL, DatabaseAddress, parse_source, select_rows
from kinfold.tables.queries import read_page
from kinfold.tables.schema import Role

SQLITE_SUFFIXES = (".sqlite", ".sqlite3", ".db")
TABLES_QUERY = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name"
)
READ_OPTIONS = ("na", "decimal", "thousands", "dates", "encoding", "separator", "sheet", "header", "skip")


@route("/api/source/demo", "POST")
async def open_demo(call: Call) -> None:
    """Open the demo table, with its policy."""
    session = call.session
    path = make_table_path(session, "patients.csv")
    await asyncio.to_thread(write_demo_table, path)
    table = SessionTable(path.name, path, "demo", path.stat().st_size, read_demo_policy())
    await load_table(session, table)


@route("/api/source/upload", "POST", upload=True)
async def open_upload(call: Call) -> None:
    """Save an uploaded file and open it."""
    session = call.session
    path = make_table_path(session, call.request.query_params.get("name", ""))
    table = SessionTable(clean_name(path.name), path, "file", await save_upload(call.request, path))
    await open_file(session, table)


@route("/api/source/database", "POST")
async def open_database_rows(call: Call) -> None:
    """Open rows of a PostgreSQL server."""
    session, body = call.session, call.body
    rows = (str(body[key]) if body.get(key) else None for key in ("table", "query"))
    address = select_rows(parse_source(str(body.get("address", ""))), *rows)
    if not isinstance(address, DatabaseAddress) or address.system != POSTGRESQL:
        fix = "write postgresql://user@host/name; upload an SQLite file"
        raise Refusal(422, "this is not an address of PostgreSQL", fix)
    path = make_table_path(session, f"{address.name}.parquet")
    chosen = {"table": str(address.table) if address.table else None, "query": address.query}
    query = "&".join(f"{key}={quote(value, safe='')}" for key, value in chosen.items() if value)
    full_address = address.uri + ("&" if "?" in address.uri else "?") + query  # with the password, for the worker
    table = SessionTable(address.name, path, "database", 0, address=str(address), full_address=full_address)
    await load_table(session, table)


@route("/api/source/table", "POST")
async def choose_table(call: Call) -> None:
    """Open a table of the uploaded SQLite file."""
    session, name = call.session, call.body.get("table")
    database = session.source
    if database is None or database.state != "choosing":
        raise Refusal(409, "there is no SQLite file to choose from", "upload one first")
    if name not in database.tables:
        raise Refusal(404, "the file has no such table", "choose one of its tables")
    session.source = None  # keep the file: the table is read from it
    await _open_sqlite_table(session, database, str(name))


async def _open_sqlite_table(session: StudioSession, database: SessionTable, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'  # a name can contain a dot
    rows = f"table={quote(quoted, safe='')}"
    file = clean_name(f"{name}.parquet")
    path = make_table_path(session, file) if database.kind == "given" else database.path.with_name(file)
    address, full_address = (f"sqlite:///{quote(str(part))}?{rows}" for part in (database.name, database.path))
    table = SessionTable(name, path, "database", database.size, address=address, full_address=full_address)
    await load_table(session, table)


@route("/api/source/options", "POST")
async def change_options(call: Call) -> None:
    """Read the table with other options, also after a failure; null means that the option is detected."""
    session, options = call.session, call.body
    if session.source is None:
        raise Refusal(409, "no table is open", "open one first")
    if unknown := sorted(set(options) - set(READ_OPTIONS)):
        raise Refusal(400, f"there is no option {unknown[0]!r}", f"use {', '.join(READ_OPTIONS)}")
    if not session.history.text:
        retry(session, options)
        return
    changes: dict[KeyPath, Any] = {("source", key): value for key, value in options.items()}
    async with session.policy_lock:
        text = edit_policy_text(session.history.text, changes)
        what = "reading options: " + ", ".join(f"{key} = {value!r}" for key, value in options.items())
        detect = any(value is None for value in options.values())
        await apply_policy_text(session, text, what, "source", detect=detect)


@route("/api/source/close", "POST")
async def close(call: Call) -> None:
    """Close the table; remove its runs and its files."""
    await close_table(call.session)
    call.session.mark_changed()


@route("/api/rows")
async def show_rows(call: Call) -> Any:
    """Return some rows as texts."""
    session = call.session
    facts = session.table.facts
    start, count = call.get_range()
    if start + count <= FIRST_ROWS or facts["rows"] <= FIRST_ROWS:
        cells = facts["first"][start : start + count]
    else:
        cells = await query_table(session, lambda engine, frame: read_page(engine, frame, start, count))
    return {"from": start, "rows": facts["rows"], "columns": list(session.columns), "cells": cells}


@route("/api/risk")
async def show_risk(call: Call) -> Any:
    """Return the risk of the original table by the quasi-identifiers of the policy."""
    session = call.session
    policy = get_policy(session)[0]
    roles = {name: column.role for name, column in policy.columns.items()}
    quasi, k = [name for name in session.columns if roles.get(name) is Role.QUASI], policy.privacy.k
    known = session.table.facts.get("risk")
    if known and (known["quasi"], known["k"]) == (quasi, k):  # computed when the table was opened
        return known
    key = ("risk", tuple(quasi), k)
    return await query_table(session, lambda engine, frame: measure_column_risk(engine, frame, quasi, k), key)


@route("/api/check")
async def find_problems(call: Call) -> Any:
    """Return the problems that would stop a run."""
    session = call.session
    text, policy = session.history.text, get_usable_policy(session)
    problems = [
        Problem(f"the question '{name}' is open", "answer it in step 1, Open", key=("review", name))
        for name in policy.review.open_questions
    ]
    try:
        await query_table(session, lambda engine, frame: bind_table(engine, frame, policy))
    except KinfoldError as error:
        problems += error.problems
    if not problems:
        return {"problems": []}
    return {"problems": PolicyTextError(PolicyError(problems), text, session.columns).problems}


async def open_file(session: StudioSession, table: SessionTable) -> None:
    """Open a file; for an SQLite file with several tables let the page choose one."""
    if Path(table.name).suffix.lower() not in SQLITE_SUFFIXES:
        await load_table(session, table)
        return
    try:
        tables = await asyncio.to_thread(_read_table_names, table.path)
    except sqlite3.Error:
        raise Refusal(422, "the file is not an SQLite file, or is damaged", "upload another file") from None
    await close_table(session)
    if len(tables) == 1:
        await _open_sqlite_table(session, table, tables[0])
        return
    table.state, table.tables, session.source = "choosing", tables, table
    session.mark_changed()


def make_given_table(path: Path) -> SessionTable:
    """Return the table of the command line, which is read in place."""
    return SessionTable(path.name, path, "given", path.stat().st_size if path.exists() else 0)


def _read_table_names(path: Path) -> tuple[str, ...]:
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
        return tuple(str(row[0]) for row in file.execute(TABLES_QUERY).fetchmany(1000))
