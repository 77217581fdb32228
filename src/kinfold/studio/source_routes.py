"""Routes of the table: open one, read it otherwise, look at its rows and at whom it singles out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kinfold.demo import demo_policy, demo_table
from kinfold.errors import KinfoldError
from kinfold.evaluation.chosen_columns import risk_of_columns
from kinfold.flow import fit
from kinfold.request.policy_text import Key
from kinfold.rows.schema import Role
from kinfold.studio.database_routes import is_sqlite, tables_in
from kinfold.studio.error_answers import Misfit, Refused, told
from kinfold.studio.guard import session_of
from kinfold.studio.policy_decisions import changed_text, policy_of, taken, usable
from kinfold.studio.request_bodies import json_of, saved, whole
from kinfold.studio.sessions import Opened, Sessions, StudioSession
from kinfold.studio.table_opening import FIRST
from kinfold.studio.tables import clean_name, let_go, opened, place_for, retry

MOST_ROWS = 500  # of a page
OPTIONS = ("na", "decimal", "thousands", "dates", "encoding", "separator", "sheet", "header", "skip")


class SourceRoutes:
    """What a page says of the table."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/api/source/demo", self.demo, methods=["POST"]),
            Route("/api/source/upload", self.upload, methods=["POST"]),
            Route("/api/source/options", self.options, methods=["POST"]),
            Route("/api/source/close", self.close, methods=["POST"]),
            Route("/api/rows", self.rows),
            Route("/api/risk", self.risk, methods=["GET", "POST"]),
            Route("/api/check", self.check),
        ]

    async def demo(self, request: Request) -> Response:
        """Open the demo table, with its policy."""
        session = session_of(request)
        await json_of(request, session.limits)
        path = place_for(session, "patients.csv")
        await asyncio.to_thread(demo_table, path)
        table = Opened(path.name, path, "demo", path.stat().st_size, demo_policy())
        return JSONResponse({"version": await opened(self.sessions, session, table)})

    async def upload(self, request: Request) -> Response:
        """Take a file and open it."""
        session = session_of(request)
        path = place_for(session, request.query_params.get("name", ""))
        size = await saved(request, session.limits, path)
        table = Opened(clean_name(path.name), path, "file", size)
        return JSONResponse({"version": await taken_in(self.sessions, session, table)})

    async def options(self, request: Request) -> Response:
        """Read the table otherwise, also one that could not be opened so far; a null goes back to guessing."""
        session = session_of(request)
        given = await json_of(request, session.limits)
        if session.source is None:
            raise Refused(409, "no table is open", "open one first")
        if strange := sorted(set(given) - set(OPTIONS)):
            raise Refused(400, f"no option is called {strange[0]!r}", f"known are {', '.join(OPTIONS)}")
        if not session.history.text:
            return JSONResponse({"version": retry(self.sessions, session, given)})
        changes: dict[Key, Any] = {("source", key): value for key, value in given.items()}
        async with session.deciding:
            text = changed_text(session.history.text, changes)
            what = "reading options: " + ", ".join(f"{key} = {value!r}" for key, value in given.items())
            guessing = any(value is None for value in given.values())
            version = await taken(self.sessions, session, text, what, "source", guessing=guessing)
        return JSONResponse({"version": version})

    async def close(self, request: Request) -> Response:
        """Forget the table, its runs and its files."""
        session = session_of(request)
        await json_of(request, session.limits)
        await let_go(self.sessions, session)
        return JSONResponse({"version": session.changed()})

    async def rows(self, request: Request) -> Response:
        """Return some rows as text."""
        session = session_of(request)
        facts = session.table.facts
        start, many = whole(request, "from", 0, 10**12), whole(request, "count", 100, MOST_ROWS)
        if start + many <= FIRST or facts["rows"] <= FIRST:
            cells = facts["first"][start : start + many]
        else:
            cells = await self._ask(session, lambda engine, frame: engine.page(frame, start, many))
        told = {"from": start, "rows": facts["rows"], "columns": list(session.columns), "cells": cells}
        return JSONResponse(told)

    async def risk(self, request: Request) -> Response:
        """Say what the quasi-identifiers, those of the policy or others, do before anything is done."""
        session = session_of(request)
        policy = policy_of(session)[0]
        quasi = [name for name, column in policy.columns.items() if column.role is Role.QUASI]
        if request.method == "POST":
            quasi = [str(name) for name in (await json_of(request, session.limits)).get("quasi", [])]
        quasi = [name for name in session.columns if name in set(quasi)]
        k = policy.privacy.k
        known = session.table.facts.get("risk")
        if known and (known["quasi"], known["k"]) == (quasi, k):  # looked at when the table was opened
            return JSONResponse(known)
        key = ("risk", tuple(quasi), k)
        return JSONResponse(
            await self._ask(session, lambda engine, frame: risk_of_columns(engine, frame, quasi, k), key)
        )

    async def check(self, request: Request) -> Response:
        """Say what would stop a run, without running."""
        session = session_of(request)
        text, policy = session.history.text, usable(session)
        try:
            await self._ask(session, lambda engine, frame: fit(engine, frame, policy))
        except KinfoldError as error:
            return JSONResponse({"problems": told(Misfit(error, text, session.columns))})
        return JSONResponse({"problems": []})

    async def _ask(self, session: StudioSession, question: Any, key: Any = None) -> Any:
        """Ask the table as the policy says that it is written."""
        form = policy_of(session)[0].source.form
        return await self.sessions.desks.ask(session, session.table.path, form, question, key)


async def taken_in(sessions: Sessions, session: StudioSession, table: Opened) -> int:
    """Open a file, or ask which of its tables where it is one of SQLite."""
    if not is_sqlite(table.name):
        return await opened(sessions, session, table)
    tables = await tables_in(table.path)
    await let_go(sessions, session)
    table.state, table.tables, session.source = "choosing", tables, table
    return session.changed()


def opened_by_command(path: Path) -> Opened:
    """Return the table that the command named, read where it is."""
    return Opened(path.name, path, "given", path.stat().st_size if path.exists() else 0)
