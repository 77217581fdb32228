"""Runs: the policy as it stands, tried in a process of its own; and what is told of one."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kinfold.request.policy import Policy
from kinfold.request.policy_text import Key
from kinfold.studio.background_jobs import Job
from kinfold.studio.error_answers import Refused
from kinfold.studio.policy_decisions import changed_text, checked, policy_of
from kinfold.studio.sessions import Sessions, StudioSession, Tried
from kinfold.studio.tables import bounds_of, clean_name


def begin(sessions: Sessions, session: StudioSession, changes: Mapping[Key, Any]) -> Tried:
    """Queue a run of the policy, with some keys set for this once."""
    table = session.table
    text = changed_text(policy_text(session), changes) if changes else policy_text(session)
    policy, _ = checked(session, text)
    _make_room(session)
    job = _job(session, "run", text)
    run = Tried(job, text, _asked(policy), dict(table.read))
    session.runs[job.ident] = run
    try:
        sessions.jobs.submit(job)
    except Refused:
        del session.runs[job.ident]
        shutil.rmtree(job.folder, ignore_errors=True)
        raise
    session.changed()
    return run


def look(sessions: Sessions, session: StudioSession, kind: str, more: Mapping[str, Any]) -> Job:
    """Queue a longer look at the table by the policy as it stands."""
    job = _job(session, kind, policy_text(session), more)
    for old in [each for each in session.looks.values() if each.over][: -session.limits.waiting]:
        del session.looks[old.ident]
        shutil.rmtree(old.folder, ignore_errors=True)
    sessions.jobs.submit(job)
    session.looks[job.ident] = job
    return job


def policy_text(session: StudioSession) -> str:
    """Return the policy as it stands, or a refusal."""
    policy_of(session)
    return session.history.text


def _job(session: StudioSession, kind: str, text: str, more: Mapping[str, Any] | None = None) -> Job:
    """Return a job on the open table; its policy stands in the session's folder, for its hierarchies do."""
    ident = session.number("r" if kind == "run" else "j")
    folder = session.room(ident)
    path = session.folder / f"policy-{ident}.toml"
    path.write_text(text, encoding="utf-8")
    request = {"source": str(session.table.path), "policy": str(path), "bounds": bounds_of(session), **(more or {})}
    lane, told = ("run", _run_told) if kind == "run" else ("look", _look_told)
    return Job(ident, kind, session, folder, request, partial(told, session), lane)


def _run_told(session: StudioSession, job: Job) -> None:
    session.tell("run", job.progress())
    if job.over or job.stage == "queued":
        session.changed()


def _look_told(session: StudioSession, job: Job) -> None:
    session.tell("job", {key: value for key, value in job.progress().items() if key != "loss"})


def _make_room(session: StudioSession) -> None:
    """Forget the oldest run that is over where there are too many."""
    over = [ident for ident, run in session.runs.items() if run.job.over]
    if len(session.runs) >= session.limits.runs and over:
        forget(session, over[0])


def forget(session: StudioSession, ident: str) -> None:
    """Forget a run that is over, with all it left."""
    run = session.runs.pop(ident)
    shutil.rmtree(run.job.folder, ignore_errors=True)
    (session.folder / f"policy-{ident}.toml").unlink(missing_ok=True)


def _asked(policy: Policy) -> dict[str, Any]:
    privacy = policy.privacy
    told = {"method": policy.method.name, "k": privacy.k, "t": privacy.t, "l": privacy.l, "unit": privacy.unit}
    return {
        **told,
        "refine": policy.method.refine,
        "suppression": policy.method.suppression,
        "seed": policy.method.seed,
    }


def name_of(session: StudioSession, run: Tried) -> str:
    """Return a run in a few words; of several that read alike each but the first has its number."""
    alike = [other for other in session.runs.values() if _in_words(other) == _in_words(run)]
    number = alike.index(run) + 1 if run in alike else 1
    return _in_words(run) if number == 1 else f"{_in_words(run)} ({number})"


def _in_words(run: Tried) -> str:
    """Return the method that was taken, and what was asked."""
    method = (run.job.summary or {}).get("method", run.asked["method"])
    levels = "".join(f", {key} = {run.asked[key]:g}" for key in ("t", "l") if run.asked[key] is not None)
    refined = run.asked["refine"]
    spent = f", refined {refined:g} s" if isinstance(refined, float) and refined else ", refined" if refined else ""
    return f"{method}, k = {run.asked['k']}{levels}{spent}"


def run_told(sessions: Sessions, session: StudioSession, run: Tried, *, brief: bool = False) -> dict[str, Any]:
    """Return a run as plain values; in brief without its policy and its curve."""
    job = run.job
    stale = session.source is None or dict(session.source.read) != dict(run.read)
    told = {
        **job.progress(),
        "queued": sessions.jobs.before(job),
        "method": (job.summary or {}).get("method"),
        "asked": dict(run.asked),
        "name": name_of(session, run),
        "problems": job.problems,
        "summary": job.summary,
        "stale": stale,
    }
    return told if brief else {**told, "policy": run.text, "curve": job.curve, "bound": job.bound}


def finished(session: StudioSession, ident: str) -> Tried:
    """Return a run that is done, or a refusal."""
    run = found(session, ident)
    if run.job.state != "done":
        raise Refused(409, "this run is not done", "wait for it")
    return run


def found(session: StudioSession, ident: str) -> Tried:
    """Return a run of this session, or a refusal."""
    if ident not in session.runs:
        raise Refused(404, "there is no such run in this session", "see the list of runs")
    return session.runs[ident]


def stem(session: StudioSession) -> str:
    """Return the name of the table without its ending."""
    return Path(clean_name(session.table.name)).stem or "table"


def again(session: StudioSession) -> dict[str, str]:
    """Return the command and the lines of Python that do a run again."""
    name = session.table.address or session.table.name
    command = f"kinfold anonymize {shlex.quote(name)} --policy policy.toml --out release"
    lines = ["import kinfold", "", f'release = kinfold.anonymize({name!r}, "policy.toml")', 'release.save("release")']
    return {"command": command, "python": "\n".join(lines)}
