"""Runs of a session: start, cancel, compare and inspect them; download the release or save it into the workspace.

A saved folder appears complete or not at all, and never replaces an existing file or folder. Nothing outside the
workspace is written: the name of a folder is one plain name.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping
from functools import partial
from typing import Any

from starlette.responses import FileResponse, JSONResponse

from kinfold.comparison import Outcome, Setting, rank
from kinfold.errors import Unreachable
from kinfold.policy.toml_values import KeyPath
from kinfold.release.report.risk_utility_map import MAP_HEIGHTS, MAP_WIDTH
from kinfold.studio.guard import Call, route
from kinfold.studio.job_queue import Job
from kinfold.studio.policy_routes import (
    check_policy,
    describe_download,
    edit_policy_text,
    get_policy,
    locate_files,
    make_download,
    query_table,
    read_changes,
    replace_policy,
    require_current_policy,
)
from kinfold.studio.refusals import Refusal
from kinfold.studio.release_files import describe_repeat, get_table_stem, pack_folder, save_folder, write_repeat_policy
from kinfold.studio.release_rows import FILTERS, RECORDS_FILE, ReleaseRows, collect_texts, compare_pair
from kinfold.studio.sessions import StudioRun, StudioSession, read_json
from kinfold.studio.table_jobs import make_chart
from kinfold.studio.table_loading import clean_name, get_bounds

REPORT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
RELEASE_PARTS = ("public", "internal")
MIN_MAP_WIDTH, MAX_MAP_WIDTH, MIN_MAP_HEIGHT = 180, 1200, 220  # pixels
FACT_NAMES = ("verdict", "classes", "records", "task", "suda", "stages")


@route("/api/runs", "POST")
async def begin(call: Call) -> Any:
    """Queue a run."""
    session, body = call.session, call.body
    changes = read_changes(body) if body.get("set") or body.get("unset") else {}
    async with session.policy_lock:  # a pending decision comes first
        require_current_policy(session, body.get("policy"))
        run = start_run(session, changes)
    return JSONResponse({"id": run.job.ident}, 202)


@route("/api/map")
async def show_map(call: Call) -> Any:
    """Return the risk-utility map of the runs."""
    width = min(max(call.get_integer("width", MAP_WIDTH, MAX_MAP_WIDTH), MIN_MAP_WIDTH), MAX_MAP_WIDTH)
    return await asyncio.to_thread(build_map, call.session, width)


@route("/api/runs/{run}")
async def show(call: Call) -> Any:
    """Return a run with its progress."""
    session, run = _get_run(call)
    return describe_run(session, run)


@route("/api/runs/{run}", "DELETE")
async def remove(call: Call) -> None:
    """Cancel and remove a run."""
    session, run = _get_run(call)
    await session.sessions.jobs.cancel(run.job)
    remove_run(session, run.job.ident)
    session.mark_changed()


@route("/api/runs/{run}/cancel", "POST")
async def cancel(call: Call) -> Any:
    """Cancel a run."""
    session, run = _get_run(call)
    await session.sessions.jobs.cancel(run.job)
    return {"state": run.job.state}


@route("/api/runs/{run}/take", "POST")
async def adopt_policy(call: Call) -> None:
    """Make the policy of a run the current policy."""
    session, run = _get_run(call)
    await replace_policy(session, run.policy_text, f"the policy of {name_run(session, run)}", "run")


@route("/api/runs/{run}/verify", "POST")
async def verify(call: Call) -> Any:
    """Queue a check of the released file by both checkers."""
    session, run = _get_run(call, finished=True)
    job = start_inspection(session, "verify", release=str(run.job.folder / "release"))
    return JSONResponse({"job": job.ident}, 202)


@route("/api/runs/{run}/columns")
async def list_columns(call: Call) -> Any:
    """List the columns of a run."""
    _, run = _get_run(call, finished=True)
    columns = read_json(run.job.folder / "columns.json")
    brief = ("name", "role", "kind", "treatment", "lost", "changed", "shift")
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


@route("/api/runs/{run}/rows")
async def show_rows(call: Call) -> Any:
    """Return records before and after, filtered and sorted."""
    session, run = _get_run(call, finished=True)
    rows, wanted = await _load_rows(session, run), call.request.query_params
    if wanted.get("show", "all") not in FILTERS:
        raise Refusal(400, "there is no such filter", f"use {', '.join(FILTERS)}")
    group = call.get_integer("class", 0, 10**9) if "class" in wanted else None
    chosen = (wanted.get("show", "all"), wanted.get("column"), group, wanted.get("sort", "record"))
    start, count = call.get_range()

    def answer() -> dict[str, Any]:
        records = rows.select(*chosen, down=wanted.get("down") == "1")
        page = rows.describe_page(records[start : start + count])
        return {"total": len(records), "columns": rows.describe_columns(), "counts": rows.counts, "rows": page}

    return await asyncio.to_thread(answer)


@route("/api/runs/{run}/groups")
async def show_classes(call: Call) -> Any:
    """Return classes of the release with their released values."""
    session, run = _get_run(call, finished=True)
    rows, wanted = await _load_rows(session, run), call.request.query_params
    start, count = call.get_range()
    order, down = wanted.get("sort", "size"), wanted.get("down") == "1"
    page = await asyncio.to_thread(partial(rows.describe_classes, order, start, count, down=down))
    return {"total": len(rows.sizes), "columns": list(rows.released_quasi), "rows": page}


@route("/api/runs/{run}/pair")
async def show_pair(call: Call) -> Any:
    """Return two columns before and after: contingency tables, quantiles, correlation."""
    session, run = _get_run(call, finished=True)
    rows, wanted = await _load_rows(session, run), call.request.query_params
    names = [wanted.get("one", ""), wanted.get("other", "")]
    if not set(names) <= set(rows.changed):
        raise Refusal(404, "the release has no such column", "choose two of its columns")
    return await asyncio.to_thread(compare_pair, *map(rows.get_sides, names))


async def _load_rows(session: StudioSession, run: StudioRun) -> ReleaseRows:
    """Return the rows of a run; only the last few runs that were looked at stay in memory."""
    if not (run.job.folder / RECORDS_FILE).is_file():
        raise Refusal(409, "the rows of a table of this size are not shown", "download the release")
    if run.rows is None:
        if describe_run(session, run, brief=True)["stale"]:
            raise Refusal(409, "the table is now read with other options", "run again")
        before = await query_table(session, collect_texts, ("texts",))
        form = get_policy(session, run.policy_text)[0].form
        run.rows = await asyncio.to_thread(ReleaseRows.load, before, form, run.job.folder)
        for other in [each for each in session.runs.values() if each.rows is not None and each is not run][:-1]:
            other.rows = None
    rows: ReleaseRows = run.rows
    return rows


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
    archive = await asyncio.to_thread(pack_folder, run.job.folder / "release" / part, session.folder)
    headers = {"content-disposition": describe_download(f"{get_table_stem(session)}-{part}.zip")}
    return FileResponse(archive, media_type="application/zip", headers=headers)


@route("/api/runs/{run}/{part}/save", "POST")
async def save(call: Call) -> Any:
    """Save a folder of the release in the workspace."""
    session, run = _get_run(call, finished=True)
    part = _get_part(call)
    name = str(call.body.get("folder") or f"{get_table_stem(session)}-{part}")
    if not name or name != clean_name(name) or set(name) & set('/\\:*?"<>|'):
        raise Refusal(422, "this is not a folder name", "use a plain name without a path")
    folder = run.job.folder / "release" / part
    saved = await asyncio.to_thread(save_folder, folder, session.folder, session.sessions.workspace / name)
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
    facts = read_json(run.job.folder / "result.json")[name]
    if facts is None:
        return JSONResponse(None)
    return {**facts, "again": describe_repeat(session)} if name == "verdict" else facts


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


def build_map(session: StudioSession, width: int) -> dict[str, Any]:
    """Return the risk-utility map of the finished runs, by the first risk and loss that all of them have."""
    done = [run for run in session.runs.values() if run.job.state == "done"]
    try:
        ranking = rank([_make_outcome(run) for run in done])
    except Unreachable:  # no run is done, or the runs have no measure in common
        return {"points": [], "chart": None}
    points = [
        {"run": each.measures["run"], "risk": each.risk, "loss": each.loss, "pareto": each.best}
        for each in ranking.ranked
    ]
    return {"points": points, "chart": make_chart(ranking.map(width, (MIN_MAP_HEIGHT, *MAP_HEIGHTS)))}


def _make_outcome(run: StudioRun) -> Outcome:
    measures = read_json(run.job.folder / "result.json")["measures"]
    setting = Setting(str((run.job.summary or {})["method"]), run.requested["k"], run.requested["t"])
    return Outcome(setting, {**measures, "run": run.job.ident})


def start_run(session: StudioSession, changes: Mapping[KeyPath, Any]) -> StudioRun:
    """Queue a run of the policy, with some keys changed for this run only."""
    table, text = session.table, session.history.text
    text = edit_policy_text(text, changes) if changes else text
    policy, _ = check_policy(session, text)
    if policy.review.open_questions:
        raise Refusal(409, "a question of the policy is open", "answer it in step 1, Open")
    over = [ident for ident, run in session.runs.items() if run.job.is_over]
    if len(session.runs) >= session.limits.runs and over:
        remove_run(session, over[0])
    job = _submit_job(session, "run", text)
    requested = {
        "method": policy.method.name,
        **{key: getattr(policy.privacy, key) for key in ("k", "t", "l", "unit")},
        **{key: getattr(policy.method, key) for key in ("refine", "suppression", "seed")},
    }
    run = session.runs[job.ident] = StudioRun(job, text, requested, dict(table.read_options))
    session.mark_changed()
    return run


def start_inspection(session: StudioSession, kind: str, **arguments: Any) -> Job:
    """Queue another job on the table, with the current policy."""
    for old in [each for each in session.inspections.values() if each.is_over][: -session.limits.waiting]:
        del session.inspections[old.ident]
        shutil.rmtree(old.folder, ignore_errors=True)
    job = _submit_job(session, kind, session.history.text, arguments)
    session.inspections[job.ident] = job
    return job


def _submit_job(session: StudioSession, kind: str, text: str, arguments: Mapping[str, Any] | None = None) -> Job:
    """Queue a job on the open table; its policy is in the session's folder, next to its hierarchies."""
    source, lane = str(session.table.path), "run" if kind == "run" else "short"
    ident = session.new_id("r" if kind == "run" else "j")
    path = session.folder / f"policy-{ident}.toml"
    path.write_text(locate_files(session, text), encoding="utf-8")
    request = {"source": source, "policy": str(path), "bounds": get_bounds(session), **(arguments or {})}
    job = Job(ident, kind, session, session.make_folder(ident), request, partial(_publish, session), lane)
    try:
        session.sessions.jobs.submit(job)
    except Refusal:
        shutil.rmtree(job.folder, ignore_errors=True)
        raise
    return job


def _publish(session: StudioSession, job: Job) -> None:
    progress = job.describe_progress()
    if job.kind != "run":
        session.publish("job", {key: value for key, value in progress.items() if key != "loss"})
        return
    session.publish("run", progress)
    if job.is_over or job.stage == "queued":
        session.mark_changed()


def remove_run(session: StudioSession, ident: str) -> None:
    """Remove a finished run and its files."""
    run = session.runs.pop(ident)
    shutil.rmtree(run.job.folder, ignore_errors=True)
    (session.folder / f"policy-{ident}.toml").unlink(missing_ok=True)


def name_run(session: StudioSession, run: StudioRun) -> str:
    """Return a short unique name of a run; a repeated label gets a number."""
    label = _label_run(run)
    same = [other for other in session.runs.values() if _label_run(other) == label]
    number = same.index(run) + 1 if run in same else 1
    return label if number == 1 else f"{label} ({number})"


def _label_run(run: StudioRun) -> str:
    method = (run.job.summary or {}).get("method", run.requested["method"])
    levels = "".join(f", {key} = {run.requested[key]:g}" for key in ("t", "l") if run.requested[key] is not None)
    refine = run.requested["refine"]
    refined = f", refined {refine:g} s" if isinstance(refine, float) and refine else ", refined" if refine else ""
    return f"{method}, k = {run.requested['k']}{levels}{refined}"


def describe_run(session: StudioSession, run: StudioRun, *, brief: bool = False) -> dict[str, Any]:
    """Return a run as JSON values; `brief` omits its policy and its curve."""
    job = run.job
    values = {
        **job.describe_progress(),
        "queued": session.sessions.jobs.count_ahead(job),
        "method": (job.summary or {}).get("method"),
        "asked": dict(run.requested),
        "name": name_run(session, run),
        "problems": job.problems,
        "summary": job.summary,
        "stale": session.source is None or dict(session.source.read_options) != dict(run.read_options),
    }
    bound = (job.summary or {}).get("bound")
    return values if brief else {**values, "policy": run.policy_text, "curve": job.curve, "bound": bound}
