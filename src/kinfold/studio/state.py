"""The whole state of a session, as a page shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kinfold import __version__
from kinfold.request.methods import registry
from kinfold.request.policy import Policy
from kinfold.studio.policy_decisions import policy_of
from kinfold.studio.runs import run_told
from kinfold.studio.sessions import Sessions, StudioSession
from kinfold.studio.tables import reading_options


def shown(sessions: Sessions, session: StudioSession) -> bytes:
    """Return the state as JSON; it is made once for each version."""
    if session.shown is None or session.shown[0] != session.version:
        version = session.version
        session.shown = version, json.dumps(told(sessions, session), allow_nan=False).encode()
    return session.shown[1]


def told(sessions: Sessions, session: StudioSession) -> dict[str, Any]:
    """Return the state as plain values."""
    limits, table = session.limits, session.source
    policy = policy_of(session) if session.history.text else None
    return {
        "version": session.version,
        "kinfold": __version__,
        "state": "empty" if table is None else table.state,
        "step": session.step,
        "limits": {"upload_bytes": limits.upload_bytes, "upload_seconds": limits.upload_seconds}
        | {"runs": limits.runs, "waiting": limits.waiting},
        "workspace": str(sessions.workspace),
        "compiling": sessions.warming is not None and not sessions.warming.over,
        "source": _source(session),
        "columns": _columns(session, policy[0] if policy else None),
        "combinations": table.facts.get("combinations", []) if table else [],
        "policy": _policy(session, policy),
        **session.history.to_dict(),
        "runs": [run_told(sessions, session, run, brief=True) for run in session.runs.values()],
        "methods": [_method(each) for each in registry().values()],
    }


def _source(session: StudioSession) -> dict[str, Any] | None:
    table = session.source
    if table is None:
        return None
    told: dict[str, Any] = {"name": table.name, "kind": table.kind, "problems": table.problems, "progress": None}
    if table.state == "opening" and table.job is not None:
        told["progress"] = {"stage": table.job.stage, "share": table.job.share}
    told |= {"tables": list(table.tables), "address": table.address, "reading": reading_options(table)}
    told["options"] = {key: table.read.get(key) for key in told["reading"]}
    facts = table.facts
    if facts:
        told |= {key: facts[key] for key in ("rows", "options", "readings", "warnings", "unit", "sampling_weights")}
        told |= {"form": facts["source"], "bytes": table.size}
    return told


def _columns(session: StudioSession, policy: Policy | None) -> list[dict[str, Any]]:
    if session.source is None or policy is None:
        return []
    return [_column(column, policy) for column in session.source.facts.get("columns", ())]


def _column(column: Mapping[str, Any], policy: Policy) -> dict[str, Any]:
    """Return a column with the role and the type that it has by now."""
    asked = policy.columns.get(column["name"])
    declared = asked.model_dump(mode="json", exclude_unset=True) if asked else {}
    kind = (declared.get("type") or ("ordinal" if declared.get("order") else None) or column["kind"]) if asked else None
    return {**column, "role": str(asked.role) if asked else None, "type": kind, "declared": declared}


def _policy(session: StudioSession, policy: tuple[Policy, dict[str, Any]] | None) -> dict[str, Any] | None:
    if policy is None:
        return None
    complete = policy[0].model_dump(mode="json")
    values = policy[0].model_dump(mode="json", exclude_unset=True)  # as TOML has them, dates as text
    return {"text": session.history.text, "values": values, "complete": complete, "draft": session.draft}


def _method(each: Any) -> dict[str, Any]:
    told = {"name": each.name, "family": each.family, "summary": each.summary, "page": each.page}
    return told | {"needs": list(each.needs), "objectives": list(each.objectives), "keys": list(each.keys)}
