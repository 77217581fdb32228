"""Routes of hierarchies: build one, change it step by step, see it as a tree, bring it in and take it out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kinfold.errors import KinfoldError
from kinfold.hierarchy import Hierarchy, by_rows, read_arx, write_arx
from kinfold.hierarchy.regrouping import Rows, merged, parted, renamed, rows_of_labels, tree_of
from kinfold.hierarchy.tables_of_labels import TOLD, tables_of_labels
from kinfold.profiling.profile import proposed_for
from kinfold.profiling.proposed_hierarchies import WRITTEN
from kinfold.request.hierarchy_trial import HeldValues, held_values, spec_of, tried
from kinfold.request.policy import HierarchySpec, Policy
from kinfold.request.policy_text import Key
from kinfold.studio.decision_routes import attached
from kinfold.studio.error_answers import Refused, told
from kinfold.studio.guard import session_of
from kinfold.studio.policy_decisions import decide, policy_of, usable
from kinfold.studio.request_bodies import json_of, text_of
from kinfold.studio.sessions import Sessions, StudioSession
from kinfold.studio.table_opening import HIERARCHIES
from kinfold.studio.tables import clean_name

MOST_ROWS = 2_000  # of labels that a page gets one by one


class HierarchyRoutes:
    """What a page says of the hierarchy of a column."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def routes(self) -> list[Route]:
        """Return the routes."""
        return [
            Route("/api/hierarchy", self.look),
            Route("/api/hierarchy", self.change, methods=["PUT"]),
            Route("/api/hierarchy/arx", self.take_out),
            Route("/api/hierarchy/arx", self.bring_in, methods=["POST"]),
        ]

    async def look(self, request: Request) -> Response:
        """Return the hierarchy as it stands."""
        session, name = _column(request)
        return JSONResponse(await self._told(session, name, await self._values(session, name), _spec(session, name)))

    async def change(self, request: Request) -> Response:
        """Build or change the hierarchy, or only try it."""
        session, name = _column(request)
        body = await json_of(request, session.limits)
        values = await self._values(session, name)
        keys = await asyncio.to_thread(_wanted, body, values, _spec(session, name))
        if body.get("try"):
            spec = None if keys is None else spec_of(name, keys)
            await asyncio.to_thread(tried, values, spec)  # or raise
            return JSONResponse(await self._told(session, name, values, spec))
        return await self._decided(session, name, values, keys)

    async def bring_in(self, request: Request) -> Response:
        """Take a file of ARX's form for the hierarchy."""
        session, name = _column(request)
        text = await text_of(request, session.limits)
        path = session.room(session.number("h")) / "hierarchy.csv"
        path.write_text(text, encoding="utf-8")
        rows = rows_of_labels(read_arx(path))
        path.unlink()
        return await self._decided(session, name, await self._values(session, name), _levels(rows))

    async def take_out(self, request: Request) -> Response:
        """Hand the hierarchy out in ARX's form."""
        session, name = _column(request)
        found = tried(await self._values(session, name), _spec(session, name))
        path = session.room(session.number("h")) / "hierarchy.csv"
        write_arx(found, path)
        content = path.read_bytes()
        path.unlink()
        return attached(content, f"{clean_name(name)}.csv", "text/csv")

    async def _decided(
        self, session: StudioSession, name: str, values: HeldValues, keys: Mapping[str, Any] | None
    ) -> Response:
        """Put a hierarchy into the policy, a long table of labels into a file beside it."""
        if keys is not None:
            await asyncio.to_thread(
                tried, values, spec_of(name, keys)
            )  # or raise: nothing is decided that is no hierarchy
            rows = keys.get("levels")
            if rows is not None and len(rows) > WRITTEN:
                keys = {"file": _kept(session, name, by_rows(rows))}
        changes: dict[Key, Any] = {("columns", name, "hierarchy"): keys}
        if name not in policy_of(session)[0].columns:
            changes = {("columns", name, "role"): "quasi-identifier", **changes}
        what = f"hierarchy of {name}" if keys is not None else f"no hierarchy of {name}"
        return JSONResponse({"version": await decide(self.sessions, session, changes, what)})

    async def _values(self, session: StudioSession, name: str) -> HeldValues:
        policy = usable(session)
        asked = policy.columns.get(name)
        key = ("values", name, asked.model_dump_json(exclude={"hierarchy"}) if asked else "")
        return await self._ask(session, lambda engine, frame: held_values(engine, frame, policy, name), key)  # type: ignore[no-any-return]

    async def _told(
        self, session: StudioSession, name: str, values: HeldValues, spec: HierarchySpec | None
    ) -> dict[str, Any]:
        proposed = await self._ask(session, lambda engine, frame: proposed_for(engine, frame, name), ("proposed", name))
        shown = None if spec is None else _shown(policy_of(session)[0], name, spec)
        return {"column": name, "spec": shown, **await asyncio.to_thread(_described, values, spec, proposed)}

    async def _ask(self, session: StudioSession, question: Any, key: Any) -> Any:
        form = policy_of(session)[0].source.form
        return await self.sessions.desks.ask(session, session.table.path, form, question, key)


def _described(values: HeldValues, spec: HierarchySpec | None, proposed: Any) -> dict[str, Any]:
    """Return a hierarchy level by level and as a tree, with what is wrong with it and what else could be built."""
    problems: list[Any] = []
    try:
        found = tried(values, spec)
    except KinfoldError as error:
        problems, found = told(error), tried(values, None)
    return {
        "height": found.height,
        "values": len(found),
        "levels": [{"level": n, "labels": len(set(found.labels[:, n]))} for n in range(found.height + 1)],
        "tree": tree_of(found.labels.tolist(), values.counts).to_dict(),
        "rows": rows_of_labels(found) if len(found) <= MOST_ROWS else None,
        "counts": dict(values.counts) if len(values.counts) <= MOST_ROWS else None,
        "problems": problems,
        **_builders(values, proposed, found),
    }


def _column(request: Request) -> tuple[StudioSession, str]:
    session, name = session_of(request), request.query_params.get("column", "")
    _ = session.table
    if name not in session.columns:
        raise Refused(404, "the table has no such column", "choose one of its columns")
    return session, name


def _spec(session: StudioSession, name: str) -> HierarchySpec | None:
    column = usable(session).columns.get(name)
    return column.hierarchy if column else None


def _shown(policy: Policy, name: str, spec: HierarchySpec) -> dict[str, Any]:
    """Return the keys of a hierarchy; of a file its name in the session."""
    keys = spec.model_dump(mode="json", exclude_unset=True)
    asked = policy.columns[name].hierarchy if name in policy.columns else None
    return {**keys, "file": str(asked.file)} if asked and asked.file and "file" in keys else keys


def _wanted(body: Mapping[str, Any], values: HeldValues, spec: HierarchySpec | None) -> Mapping[str, Any] | None:
    """Return the keys of the hierarchy that a request asks for; None for no hierarchy."""
    if "spec" in body:
        if isinstance(body["spec"], Mapping) and "file" in body["spec"]:
            raise Refused(422, "a file of the server is not read", "import the hierarchy instead")
        return None if body["spec"] is None else dict(body["spec"])
    if "build" in body:
        tables = tables_of_labels(values.counts, values.order)
        if body["build"] not in tables:
            raise Refused(
                422, "the values of this column do not allow that", f"choose of {', '.join(tables) or 'none'}"
            )
        return _levels(tables[body["build"]])
    rows = rows_of_labels(tried(values, spec))
    return _levels(_regrouped(rows, body))


def _regrouped(rows: Rows, body: Mapping[str, Any]) -> Rows:
    level, name = body.get("level", 1), str(body.get("name", ""))
    if not isinstance(level, int) or isinstance(level, bool):
        raise Refused(400, "level is no whole number", "levels count from 1")
    if isinstance(body.get("merge"), list):
        return merged(rows, [str(label) for label in body["merge"]], name, level)
    if "rename" in body:
        return renamed(rows, str(body["rename"]), name, level)
    if "part" in body:
        return parted(rows, str(body["part"]), level)
    raise Refused(400, "it is not said what to do", "send spec, build, merge, rename or part")


def _levels(rows: Rows) -> dict[str, Any]:
    return {"levels": [list(row) for row in rows]}


def _kept(session: StudioSession, name: str, hierarchy: Hierarchy) -> str:
    """Write a table of labels into a file of its own: one that an undo leads back to is never written over."""
    folder = session.folder / HIERARCHIES
    folder.mkdir(exist_ok=True)
    plain = "".join(char if char.isalnum() and char.isascii() else "_" for char in name)[:40]
    path = folder / f"{plain}-{session.number('h')}.csv"
    write_arx(hierarchy, path)
    return str(Path(HIERARCHIES) / path.name)


def _builders(values: HeldValues, proposed: Any, now: Hierarchy) -> dict[str, Any]:
    """Return what can be built of these values, and which of them it is that stands."""
    found: list[dict[str, Any]] = []
    if proposed is not None and proposed.keys:
        kind = next(iter(proposed.keys))
        found.append({"build": kind, "keys": dict(proposed.keys), "told": proposed.told})
    tables = tables_of_labels(values.counts, values.order)
    labels = now.labels.tolist()
    built = next((name for name, rows in tables.items() if by_rows(rows).labels.tolist() == labels), None)
    offered = [{"build": name, "told": TOLD[name], "rows": len(rows)} for name, rows in tables.items()]
    return {"builders": found + offered, "built": built}
