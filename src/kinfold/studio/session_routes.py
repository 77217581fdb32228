"""Routes of the session: its state, its events, longer jobs, and texts for the choices of a policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from functools import cache
from typing import Any, Literal, get_args, get_origin

from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from kinfold import __version__
from kinfold.policy.binding import AVERAGES
from kinfold.policy.model import ColumnPolicy, Method, Output, Policy
from kinfold.policy.privacy import PopulationKeys, Privacy
from kinfold.policy.registry import AUTO, NEED_TEXTS, list_methods
from kinfold.policy.review import UNIT_KEY
from kinfold.release.report.sentences import explain_model
from kinfold.release.report.wording import format_share
from kinfold.studio.guard import Call, route
from kinfold.studio.job_queue import Job
from kinfold.studio.policy_routes import get_policy, require_current_policy
from kinfold.studio.refusals import Refusal
from kinfold.studio.run_routes import describe_run, start_inspection
from kinfold.studio.sessions import StudioSession, read_json
from kinfold.studio.table_loading import get_read_options
from kinfold.tables.schema import Role

REMAINING_RISK = {
    "k": "An attacker who knows a person's quasi-identifiers finds the record with a chance of at most {risk}. A value "
    "that all records of a class share is still disclosed.",
    "l": "A confidential value is not disclosed with certainty. A value that is frequent in a class is still likely.",
    "t": "The release discloses little more about a person than about everyone.",
    "beta": "A value can be ruled out for a person, but no value becomes much more likely.",
    "delta": "No value can be ruled out for a person, and none becomes much more likely.",
}
POLICY_SECTIONS = (Privacy, PopulationKeys, Method, ColumnPolicy, Output)
INSPECTION_KINDS = ("lattice", "outliers")
HEARTBEAT_SECONDS = 15.0  # of silence; browsers and proxies close a stream after 30 to 60


@cache
def list_choices() -> dict[str, list[Any]]:
    """Return the allowed texts of the keys of a policy that have a fixed set of them.

    >>> list_choices()["others"]
    ['refuse', 'release', 'drop']
    """
    choices: dict[str, list[Any]] = {}
    for section in POLICY_SECTIONS:
        for name, field in section.model_fields.items():
            if texts := [each for each in _find_literals(field.annotation) if isinstance(each, str)]:
                choices[name] = texts
    return choices


def _find_literals(kind: Any) -> list[Any]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [each for part in get_args(kind) for each in _find_literals(part)]


def describe_promises(policy: Policy) -> dict[str, str]:
    """Return the meaning of the promises at their levels in a policy, and the remaining risk."""
    privacy = policy.privacy
    risk = f"1 in {privacy.k}, {format_share(1 / privacy.k)}"
    promises = {}
    kinds = {"k": "k", "l": privacy.l_kind, "t": "t", "beta": privacy.beta_kind, "delta": "delta"}
    for letter, kind in kinds.items():
        level = getattr(privacy, letter)
        meaning = explain_model(kind, letter if level is None else f"{level:g}")
        promises[letter] = f"{meaning} {REMAINING_RISK[letter].format(risk=risk)}"
    return promises


@cache
def describe_methods() -> list[dict[str, Any]]:
    """Return the methods that a policy can name, with what a page needs to know about each."""
    auto = {"name": AUTO, "family": None, "sentence": "the method that suits the table best"}
    return [auto | {"needs": [], "objectives": [], "keys": []}] + [
        {"name": each.name, "family": each.family, "sentence": each.summary}
        | {"needs": [NEED_TEXTS[need] for need in each.needs], "objectives": each.objectives, "keys": each.keys}
        for each in list_methods().values()
    ]


def describe_state(session: StudioSession) -> dict[str, Any]:
    """Return the state of a session as JSON values."""
    limits, table, warmup = session.limits, session.source, session.sessions.warmup_job
    facts = table.facts if table else {}
    policy = get_policy(session)[0] if session.history.text else None
    return {
        "version": session.version,
        "kinfold": __version__,
        "state": "empty" if table is None else table.state,
        "step": session.step,
        "limits": {key: getattr(limits, key) for key in ("upload_bytes", "upload_seconds", "runs", "waiting")},
        "workspace": str(session.sessions.workspace),
        "compiling": warmup is not None and not warmup.is_over,
        "source": _describe_source(session, policy),
        "columns": [_describe_column(column, policy) for column in facts.get("columns", ())] if policy else [],
        "combinations": facts.get("combinations", []),
        "policy": _describe_policy(session, policy),
        "questions": _list_questions(policy) if policy else [],
        **session.history.to_dict(),
        "runs": [describe_run(session, run, brief=True) for run in session.runs.values()],
        "methods": describe_methods(),
        "choices": list_choices(),
        "averages_by_type": {str(kind): list(names) for kind, names in AVERAGES.items()},
    }


def _describe_source(session: StudioSession, policy: Policy | None) -> dict[str, Any] | None:
    table = session.source
    if table is None:
        return None
    values: dict[str, Any] = {"name": table.name, "kind": table.kind, "problems": table.problems, "progress": None}
    if table.state == "opening" and table.job is not None:
        values["progress"] = {"stage": table.job.stage, "share": table.job.share}
    values |= {"tables": list(table.tables), "address": table.address, "reading": get_read_options(table)}
    values["options"] = {key: table.read_options.get(key) for key in values["reading"]}
    if facts := table.facts:
        values |= {key: facts[key] for key in ("rows", "options", "readings", "unit", "sampling_weights")}
        values["warnings"] = [each for each in facts["warnings"] if policy is None or not _is_settled(each, policy)]
        values |= {"form": facts["source"], "bytes": table.size}
    return values


def _is_settled(warning: str, policy: Policy) -> bool:
    """Whether a decision has settled a warning of the profile about roles."""
    if warning.startswith("no column can be a quasi-identifier"):
        return any(column.role is Role.QUASI for column in policy.columns.values())
    named = next((each for name, each in policy.columns.items() if warning.startswith(f"'{name}' ")), None)
    if "looks like an identifier but repeats" in warning:
        answered = any(UNIT_KEY in each.keys and each.answer for each in policy.review.questions.values())
        return policy.privacy.unit is not None or answered or (named is not None and named.role is not Role.IDENTIFIER)
    if "set `missing` in the policy" in warning and named is not None:
        return named.role is not Role.QUASI or named.missing != "refuse"
    return False


def _describe_column(column: Mapping[str, Any], policy: Policy) -> dict[str, Any]:
    """Return a column with its role and type in the policy."""
    named = policy.columns.get(column["name"])
    if named is None:
        return {**column, "role": None, "type": None, "declared": {}}
    declared = named.model_dump(mode="json", exclude_unset=True)
    kind = declared.get("type") or ("ordinal" if declared.get("order") else column["kind"])
    return {**column, "role": str(named.role), "type": kind, "declared": declared}


def _describe_policy(session: StudioSession, policy: Policy | None) -> dict[str, Any] | None:
    if policy is None:
        return None
    values = policy.model_dump(mode="json", exclude_unset=True)  # as in the TOML text, dates as texts
    complete = policy.model_dump(mode="json")
    texts = {"text": session.history.text, "draft": session.draft, "promises": describe_promises(policy)}
    return {**texts, "values": values, "complete": complete}


def _list_questions(policy: Policy) -> list[dict[str, Any]]:
    """Return the questions of a policy; without an answer one is open, unless all proposals are accepted."""
    accepted = policy.review.accept_proposal
    return [
        {"name": name, **each.model_dump(mode="json"), "accepted": accepted and not each.answer}
        for name, each in policy.review.questions.items()
    ]


@route("/api/session")
async def show_state(call: Call) -> Any:
    """Return the state, unless the page has this version; it is rendered once for each version."""
    session = call.session
    if call.request.query_params.get("since") == str(session.version):
        return Response(status_code=304)
    if session.cached_state is None or session.cached_state[0] != session.version:
        session.cached_state = session.version, json.dumps(describe_state(session), allow_nan=False).encode()
    return Response(session.cached_state[1], media_type="application/json")


@route("/api/events")
async def stream_events(call: Call) -> Any:
    """Stream the events of the session."""
    return EventStream(call.session)


@route("/api/jobs", "POST")
async def begin(call: Call) -> Any:
    """Queue a job."""
    kind = call.body.get("kind")
    if kind not in INSPECTION_KINDS:
        raise Refusal(400, "there is no such job", f"there are {', '.join(INSPECTION_KINDS)}")
    require_current_policy(call.session)
    return JSONResponse({"id": start_inspection(call.session, kind).ident}, 202)


@route("/api/jobs/{job}")
async def show(call: Call) -> Any:
    """Return the progress of a job, and its result."""
    job = _get_job(call)
    result = read_json(job.folder / "result.json") if job.state == "done" else None
    return {**job.describe_progress(), "kind": job.kind, "problems": job.problems, "result": result}


@route("/api/jobs/{job}/cancel", "POST")
async def cancel(call: Call) -> Any:
    """Cancel a job."""
    job = _get_job(call)
    await call.session.sessions.jobs.cancel(job)
    return {"state": job.state}


class EventStream(StreamingResponse):
    """Events of a session, until the page closes the connection."""

    def __init__(self, session: StudioSession) -> None:
        self._session, self._reader = session, session.subscribe()
        super().__init__(_stream_events(session, self._reader), media_type="text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events, and end the subscription with the connection."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._session.unsubscribe(self._reader)


async def _stream_events(session: StudioSession, reader: asyncio.Queue[tuple[str, Any]]) -> AsyncIterator[str]:
    yield "retry: 1000\n\n"
    name, data = "session", {"version": session.version}
    while True:
        yield f"event: {name}\ndata: {json.dumps(data)}\n\n" if name else ": still here\n\n"
        if name == "gone":
            return
        try:
            name, data = await asyncio.wait_for(reader.get(), HEARTBEAT_SECONDS)
        except TimeoutError:
            name = ""


def _get_job(call: Call) -> Job:
    jobs, ident = call.session.inspections, call.request.path_params["job"]
    if ident not in jobs:
        raise Refusal(404, "there is no such job in this session", "start one")
    return jobs[ident]
