"""Routes of runs: try, stop, compare, look closely, and take the release."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from kinfold.comparison import Comparison, Outcome, Setting, rank
from kinfold.errors import Unreachable
from kinfold.release.report.risk_utility import WIDTH
from kinfold.studio import runs
from kinfold.studio.decision_routes import attached, changes_in, self_contained
from kinfold.studio.error_answers import Refused, told
from kinfold.studio.guard import session_of
from kinfold.studio.handing_out import packed, saved
from kinfold.studio.policy_decisions import changed_text, policy_of, require_shown, rewrite
from kinfold.studio.request_bodies import json_of, whole
from kinfold.studio.run_results import drawn
from kinfold.studio.sessions import Sessions, StudioSession, Tried, read_json

REPORT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"  # besides the page's own
PARTS = ("public", "internal")
NARROWEST, WIDEST = 180, 1200  # pixels of the map
PIECES = ("verdict", "classes", "records", "measures")


class RunRoutes:
    """What a page says of runs."""

    def __init__(self, sessions: Sessions) -> None:
        self.sessions = sessions

    def routes(self) -> list[Route]:
        """Return the routes."""
        one = "/api/runs/{run}"
        return [
            Route("/api/runs", self.listed),
            Route("/api/runs", self.begin, methods=["POST"]),
            Route("/api/map", self.map),
            Route(one, self.look),
            Route(one, self.forget, methods=["DELETE"]),
            Route(f"{one}/cancel", self.cancel, methods=["POST"]),
            Route(f"{one}/take", self.take, methods=["POST"]),
            Route(f"{one}/verify", self.verify, methods=["POST"]),
            Route(f"{one}/columns", self.columns),
            Route(f"{one}/column", self.column),
            Route(f"{one}/attack", self.attack),
            Route(f"{one}/policy.toml", self.policy),
            Route(f"{one}/{{part}}.zip", self.download),
            Route(f"{one}/{{part}}/save", self.save, methods=["POST"]),
            Route(f"{one}/{{part}}/report.html", self.report),
            Route(f"{one}/{{piece}}", self.piece),
        ]

    async def listed(self, request: Request) -> Response:
        """List the runs of the session."""
        session = session_of(request)
        return JSONResponse({"runs": [self._told(session, run, brief=True) for run in session.runs.values()]})

    def _told(self, session: StudioSession, run: Tried, *, brief: bool = False) -> dict[str, Any]:
        return runs.run_told(self.sessions, session, run, brief=brief)

    async def begin(self, request: Request) -> Response:
        """Queue a run."""
        session = session_of(request)
        body = await json_of(request, session.limits)
        changes = changes_in(body) if body.get("set") or body.get("unset") else {}
        async with session.deciding:  # what is being decided is decided first
            require_shown(session, body.get("policy"))
            run = runs.begin(self.sessions, session, changes)
        return JSONResponse({"id": run.job.ident}, 202)

    async def look(self, request: Request) -> Response:
        """Tell how a run goes."""
        session, run = _run(request)
        return JSONResponse(self._told(session, run))

    async def forget(self, request: Request) -> Response:
        """Forget a run, and end it first."""
        session, run = _run(request)
        await self.sessions.jobs.cancel(run.job)
        runs.forget(session, run.job.ident)
        return JSONResponse({"version": session.changed()})

    async def cancel(self, request: Request) -> Response:
        """End a run."""
        session, run = _run(request)
        await json_of(request, session.limits)
        await self.sessions.jobs.cancel(run.job)
        return JSONResponse({"state": run.job.state})

    async def take(self, request: Request) -> Response:
        """Make the policy of a run the policy."""
        session, run = _run(request)
        await json_of(request, session.limits)
        what = f"the policy of {runs.name_of(session, run)}"
        return JSONResponse({"version": await rewrite(self.sessions, session, run.text, what, "run")})

    async def verify(self, request: Request) -> Response:
        """Ask both checkers again about the file as written."""
        session, run = _run(request, finished=True)
        await json_of(request, session.limits)
        more = {"release": str(run.job.folder / "release")}
        return JSONResponse({"job": runs.look(self.sessions, session, "verify", more).ident}, 202)

    async def map(self, request: Request) -> Response:
        """Put everything that was tried on one map."""
        session = session_of(request)
        asked = {key: request.query_params.get(key) or None for key in ("risk", "loss")}
        width = min(max(whole(request, "width", WIDTH, WIDEST), NARROWEST), WIDEST)
        return JSONResponse(await asyncio.to_thread(mapped, session, asked["risk"], asked["loss"], width))

    async def columns(self, request: Request) -> Response:
        """List the columns of a run in brief."""
        _, run = _run(request, finished=True)
        found = read_json(run.job.folder / "columns.json")
        brief = ("name", "role", "kind", "treatment", "lost", "changed")
        return JSONResponse({"columns": [{key: column[key] for key in brief} for column in found.values()]})

    async def column(self, request: Request) -> Response:
        """Show a column before and after."""
        _, run = _run(request, finished=True)
        found = read_json(run.job.folder / "columns.json")
        name = request.query_params.get("column", "")
        if name not in found:
            raise Refused(404, "the table has no such column", "choose one of its columns")
        return JSONResponse(found[name])

    async def attack(self, request: Request) -> Response:
        """Show what a linkage attacker gets."""
        _, run = _run(request, finished=True)
        return FileResponse(run.job.folder / "attack.json", media_type="application/json")

    async def piece(self, request: Request) -> Response:
        """Show a part of what is known: the verdict, class sizes, records at risk, measures."""
        name = request.path_params["piece"]
        session, run = _run(request, finished=True)
        if name not in PIECES:
            raise Refused(404, "there is no such part of a run", f"there are {', '.join(PIECES)}")
        found = read_json(run.job.folder / "facts.json")[name]
        return JSONResponse({**found, "again": runs.again(session)} if name == "verdict" else found)

    async def policy(self, request: Request) -> Response:
        """Hand out the policy that repeats a run at the command."""
        session, run = _run(request)
        return attached(repeating(session, run), "policy.toml")

    async def download(self, request: Request) -> Response:
        """Hand out a folder of the release."""
        session, run = _run(request, finished=True)
        part = _part(request)
        archive = await asyncio.to_thread(packed, run.job.folder / "release" / part, session.folder)
        return attached(archive, f"{runs.stem(session)}-{part}.zip", "application/zip")

    async def save(self, request: Request) -> Response:
        """Write a folder of the release into the workspace."""
        session, run = _run(request, finished=True)
        part = _part(request)
        name = str((await json_of(request, session.limits)).get("folder") or f"{runs.stem(session)}-{part}")
        folder = run.job.folder / "release" / part
        place = await asyncio.to_thread(saved, folder, session.folder, self.sessions.workspace, name)
        return JSONResponse({"folder": place.name, "path": str(place)})

    async def report(self, request: Request) -> Response:
        """Show a report page, which has no script and loads nothing."""
        _, run = _run(request, finished=True)
        path = run.job.folder / "release" / _part(request) / "report.html"
        return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT})


def _run(request: Request, *, finished: bool = False) -> tuple[StudioSession, Tried]:
    session, ident = session_of(request), request.path_params["run"]
    return session, runs.finished(session, ident) if finished else runs.found(session, ident)


def _part(request: Request) -> str:
    part = str(request.path_params["part"])
    if part not in PARTS:
        raise Refused(404, "a release has no such part", "there are public and internal")
    return part


def mapped(session: StudioSession, risk: str | None, loss: str | None, width: int = WIDTH) -> dict[str, Any]:
    """Return the R-U map of the runs that are done, by the first risk and loss that all of them have."""
    done = [run for run in session.runs.values() if run.job.state == "done"]
    failed = [
        {"run": run.job.ident, "name": runs.name_of(session, run), "reason": run.job.problems[0]["what"]}
        for run in session.runs.values()
        if run.job.state == "failed" and run.job.problems
    ]
    if not done:
        return {"points": [], "failed": failed, "chart": None, "advice": None, "risk": None, "loss": None}
    try:
        found = rank([_outcome(session, run) for run in done], risk, loss)
    except Unreachable as error:
        return {"points": [], "failed": failed, "chart": None, "advice": None, "problems": told(error)}
    points = [
        {"run": each.measures["run"], "name": str(each.measures["name"]), "method": each.setting.method}
        | {"k": each.setting.k, "t": each.setting.t, "risk": each.risk, "loss": each.loss}
        | {"score": each.score, "pareto": each.best}
        for each in found.ranked
    ]
    told_ = {key: value for key, value in found.to_dict().items() if key not in ("settings", "failed")}
    return {**told_, "points": points, "failed": failed, "chart": _chart(found, points, width)}


def _chart(found: Comparison, points: list[dict[str, Any]], width: int) -> dict[str, Any]:
    """Return the map with the run of each of its points."""
    chart, left = drawn(found.map(width)), list(points)
    for row in chart["spec"]["data"]["values"]:
        point = next(each for each in left if (each["risk"], each["loss"]) == (row["risk"], row["loss"]))
        left.remove(point)
        row |= {"run": point["run"], "name": point["name"]}
    return chart


def _outcome(session: StudioSession, run: Tried) -> Outcome:
    measures = read_json(run.job.folder / "facts.json")["measures"]
    setting = Setting(str((run.job.summary or {})["method"]), run.asked["k"], run.asked["t"])
    return Outcome(setting, {**measures, "run": run.job.ident, "name": runs.name_of(session, run)})


def repeating(session: StudioSession, run: Tried) -> str:
    """Return the policy of a run, self-contained; where a clock ended its refinement, with the steps it took."""
    method = policy_of(session, run.text)[0].method
    text = self_contained(session, run.text)
    timed = isinstance(method.refine, float) and method.refine > 0 and method.refine_steps is None
    if timed and run.job.state == "done":
        steps = read_json(run.job.folder / "facts.json")["steps"]
        return changed_text(text, {("method", "refine_steps"): steps or 0})
    return text
