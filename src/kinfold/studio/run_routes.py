"""Routes of runs: start, cancel, compare and inspect them, and download the release."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import FileResponse, JSONResponse

from kinfold.comparison import Comparison, Outcome, Setting, rank
from kinfold.errors import Unreachable
from kinfold.release.report.risk_utility_map import MAP_WIDTH
from kinfold.studio import runs
from kinfold.studio.guard import Call, route
from kinfold.studio.policy_routes import (
    edit_policy_text,
    get_policy,
    inline_hierarchies,
    make_download,
    read_changes,
    replace_policy,
    require_current_policy,
)
from kinfold.studio.refusals import Refusal, describe_problems
from kinfold.studio.run_job import make_chart
from kinfold.studio.sessions import StudioRun, StudioSession, read_json

REPORT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
RELEASE_PARTS = ("public", "internal")
MIN_MAP_WIDTH, MAX_MAP_WIDTH = 180, 1200  # pixels
FACT_NAMES = ("verdict", "classes", "records", "measures")


@route("/api/runs")
async def list_runs(call: Call) -> Any:
    """List the runs of the session."""
    session = call.session
    return {"runs": [runs.describe_run(session, run, brief=True) for run in session.runs.values()]}


@route("/api/runs", "POST")
async def begin(call: Call) -> Any:
    """Queue a run."""
    session, body = call.session, call.body
    changes = read_changes(body) if body.get("set") or body.get("unset") else {}
    async with session.policy_lock:  # a pending decision comes first
        require_current_policy(session, body.get("policy"))
        run = runs.start_run(session, changes)
    return JSONResponse({"id": run.job.ident}, 202)


@route("/api/map")
async def show_map(call: Call) -> Any:
    """Return the risk-utility map of the runs."""
    risk, loss = (call.request.query_params.get(key) or None for key in ("risk", "loss"))
    width = min(max(call.get_integer("width", MAP_WIDTH, MAX_MAP_WIDTH), MIN_MAP_WIDTH), MAX_MAP_WIDTH)
    return await asyncio.to_thread(build_map, call.session, risk, loss, width)


@route("/api/runs/{run}")
async def show(call: Call) -> Any:
    """Return a run with its progress."""
    session, run = _get_run(call)
    return runs.describe_run(session, run)


@route("/api/runs/{run}", "DELETE")
async def remove(call: Call) -> Any:
    """Cancel and remove a run."""
    session, run = _get_run(call)
    await session.sessions.jobs.cancel(run.job)
    runs.remove_run(session, run.job.ident)
    return {"version": session.mark_changed()}


@route("/api/runs/{run}/cancel", "POST")
async def cancel(call: Call) -> Any:
    """Cancel a run."""
    session, run = _get_run(call)
    await session.sessions.jobs.cancel(run.job)
    return {"state": run.job.state}


@route("/api/runs/{run}/take", "POST")
async def adopt_policy(call: Call) -> Any:
    """Make the policy of a run the current policy."""
    session, run = _get_run(call)
    what = f"the policy of {runs.name_run(session, run)}"
    return {"version": await replace_policy(session, run.policy_text, what, "run")}


@route("/api/runs/{run}/verify", "POST")
async def verify(call: Call) -> Any:
    """Queue a check of the released file by both checkers."""
    session, run = _get_run(call, finished=True)
    arguments = {"release": str(run.job.folder / "release")}
    return JSONResponse({"job": runs.start_inspection(session, "verify", arguments).ident}, 202)


@route("/api/runs/{run}/columns")
async def list_columns(call: Call) -> Any:
    """List the columns of a run."""
    _, run = _get_run(call, finished=True)
    columns = read_json(run.job.folder / "columns.json")
    brief = ("name", "role", "kind", "treatment", "lost", "changed")
    return {"columns": [{key: column[key] for key in brief} for column in columns.values()]}


@route("/api/runs/{run}/column")
async def show_column(call: Call) -> Any:
    """Return a column before and after."""
    _, run = _get_run(call, finished=True)
    columns = read_json(run.job.folder / "columns.json")
    name = call.request.query_params.get("column", "")
    if name not in columns:
        raise Refusal(404, "the table has no such column", "choose one of its columns")
    return columns[name]


@route("/api/runs/{run}/attack")
async def show_attack(call: Call) -> Any:
    """Return the results of the linkage attack."""
    _, run = _get_run(call, finished=True)
    return FileResponse(run.job.folder / "attack.json", media_type="application/json")


@route("/api/runs/{run}/policy.toml")
async def download_policy(call: Call) -> Any:
    """Download the policy that repeats a run with the command."""
    session, run = _get_run(call)
    return make_download(write_repeat_policy(session, run), "policy.toml")


@route("/api/runs/{run}/{part}.zip")
async def download(call: Call) -> Any:
    """Download a folder of the release."""
    session, run = _get_run(call, finished=True)
    part = _get_part(call)
    archive = await asyncio.to_thread(runs.pack_folder, run.job.folder / "release" / part, session.folder)
    return make_download(archive, f"{runs.get_table_stem(session)}-{part}.zip", "application/zip")


@route("/api/runs/{run}/{part}/save", "POST")
async def save(call: Call) -> Any:
    """Save a folder of the release in the workspace."""
    session, run = _get_run(call, finished=True)
    part = _get_part(call)
    name = str(call.body.get("folder") or f"{runs.get_table_stem(session)}-{part}")
    folder = run.job.folder / "release" / part
    saved = await asyncio.to_thread(runs.save_folder, folder, session.folder, session.sessions.workspace, name)
    return {"folder": saved.name, "path": str(saved)}


@route("/api/runs/{run}/{part}/report.html")
async def show_report(call: Call) -> Any:
    """Return a report page, which has no script and loads nothing."""
    _, run = _get_run(call, finished=True)
    path = run.job.folder / "release" / _get_part(call) / "report.html"
    return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_SECURITY_POLICY})


@route("/api/runs/{run}/{name}")
async def show_facts(call: Call) -> Any:
    """Return the verdict, the class sizes, the records at risk or the measures."""
    name = call.request.path_params["name"]
    session, run = _get_run(call, finished=True)
    if name not in FACT_NAMES:
        raise Refusal(404, "there is no such part of a run", f"use {', '.join(FACT_NAMES)}")
    facts = read_json(run.job.folder / "facts.json")[name]
    return {**facts, "again": runs.describe_repeat(session)} if name == "verdict" else facts


def _get_run(call: Call, *, finished: bool = False) -> tuple[StudioSession, StudioRun]:
    run = call.session.runs.get(call.request.path_params["run"])
    if run is None:
        raise Refusal(404, "there is no such run in this session", "see the list of runs")
    if finished and run.job.state != "done":
        raise Refusal(409, "this run is not done", "wait for it")
    return call.session, run


def _get_part(call: Call) -> str:
    part = str(call.request.path_params["part"])
    if part not in RELEASE_PARTS:
        raise Refusal(404, "a release has no such part", "use public or internal")
    return part


def build_map(session: StudioSession, risk: str | None, loss: str | None, width: int = MAP_WIDTH) -> dict[str, Any]:
    """Return the risk-utility map of the finished runs, by the first risk and loss that all of them have."""
    done = [run for run in session.runs.values() if run.job.state == "done"]
    failed = [
        {"run": run.job.ident, "name": runs.name_run(session, run), "reason": run.job.problems[0]["what"]}
        for run in session.runs.values()
        if run.job.state == "failed" and run.job.problems
    ]
    if not done:
        return {"points": [], "failed": failed, "chart": None, "advice": None, "risk": None, "loss": None}
    try:
        ranking = rank([_make_outcome(session, run) for run in done], risk, loss)
    except Unreachable as error:
        return {"points": [], "failed": failed, "chart": None, "advice": None, "problems": describe_problems(error)}
    points = [
        {"run": each.measures["run"], "name": str(each.measures["name"]), "method": each.setting.method}
        | {"k": each.setting.k, "t": each.setting.t, "risk": each.risk, "loss": each.loss}
        | {"score": each.score, "pareto": each.best}
        for each in ranking.ranked
    ]
    values = {key: value for key, value in ranking.to_dict().items() if key not in ("settings", "failed")}
    return {**values, "points": points, "failed": failed, "chart": _build_chart(ranking, points, width)}


def _build_chart(ranking: Comparison, points: list[dict[str, Any]], width: int) -> dict[str, Any]:
    """Return the map, with the run of each point."""
    chart, left = make_chart(ranking.map(width)), list(points)
    for row in chart["spec"]["data"]["values"]:
        point = next(each for each in left if (each["risk"], each["loss"]) == (row["risk"], row["loss"]))
        left.remove(point)
        row |= {"run": point["run"], "name": point["name"]}
    return chart


def _make_outcome(session: StudioSession, run: StudioRun) -> Outcome:
    measures = read_json(run.job.folder / "facts.json")["measures"]
    setting = Setting(str((run.job.summary or {})["method"]), run.requested["k"], run.requested["t"])
    return Outcome(setting, {**measures, "run": run.job.ident, "name": runs.name_run(session, run)})


def write_repeat_policy(session: StudioSession, run: StudioRun) -> str:
    """Return the self-contained policy of a run; a timed refinement becomes a number of steps."""
    method = get_policy(session, run.policy_text)[0].method
    text = inline_hierarchies(session, run.policy_text)
    timed = isinstance(method.refine, float) and method.refine > 0 and method.refine_steps is None
    if timed and run.job.state == "done":
        steps = read_json(run.job.folder / "facts.json")["steps"]
        return edit_policy_text(text, {("method", "refine_steps"): steps or 0})
    return text
