"""Opening a table, in a process of its own: how it is written, its columns with histograms, a policy to start from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.evaluation.chosen_columns import risk_of_columns
from kinfold.flow import MISSING, looked_at, open_engine, rows_of
from kinfold.hierarchy import by_rows, write_arx
from kinfold.profiling.profile import ColumnProfile, Profile, profile
from kinfold.profiling.starter_policy import hierarchy_files, starter
from kinfold.release.report.distributions import MOST_LABELS, bins, edges_of
from kinfold.request.policy import Policy, parse_toml
from kinfold.rows.engines import Engine
from kinfold.rows.schema import Column, Kind, Role
from kinfold.studio.worker import Tell

FIRST = 200  # rows that are at hand without opening the table again
HIERARCHIES = "hierarchies"  # the folder of those that are too long to stand in a policy
EPOCH = date(1970, 1, 1)
PROJECT = ".deid"


def open_table(request: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Read and profile a table; write down what a page shows of it in `opening.json`."""
    folder = Path(request["folder"])
    if request.get("address"):
        _fetch(request["address"], Path(request["source"]))
    source, policy = _unpacked(Path(request["source"]), Path(request["workspace"]), request.get("policy"))
    written = Policy.parse({"privacy": {"k": 2}, "source": request.get("written") or _source_of(policy)}).source.form
    tell({"event": "progress", "stage": "read", "share": 0.05})
    with looked_at(source, written, guessing=request["guessing"]) as (engine, frame, told):
        tell({"event": "progress", "stage": "columns", "share": 0.3})
        found = profile(engine, frame, lambda done, total: _tell_combinations(tell, done, total))
        form = engine.form(frame)
        found = replace(found, source=form.to_dict(), readings=told)
        schema = engine.schema(frame)
        columns = [_column(engine, frame, each, schema[each.name]) for each in found.columns]
        first = engine.page(frame, 0, FIRST)
        policy = policy or (_starter(found, Path(request["workspace"])) if request["fresh"] else None)
        risk = _risk(engine, frame, policy) if policy else None
    facts = {
        **{key: value for key, value in found.to_dict().items() if key != "columns"},
        "options": asdict(form),
        "columns": columns,
        "first": first,
        "path": str(source),
        "policy": policy,
        "risk": risk,
    }
    (folder / "opening.json").write_text(json.dumps(facts, allow_nan=False), encoding="utf-8")
    return {}


def _tell_combinations(tell: Tell, done: int, total: int) -> None:
    tell({"event": "progress", "stage": "combinations", "share": 0.4 + 0.5 * done / max(total, 1)})


def _fetch(address: str, into: Path) -> None:
    """Read rows of a database once, into a file that knows their types."""
    with open_engine() as engine:
        frame = engine.read(rows_of(address), MISSING)
        engine.write(frame, into, engine.schema(frame), ordered=False)


def _source_of(policy: str | None) -> dict[str, Any]:
    return dict(parse_toml(policy).get("source", {})) if policy else {}


def _unpacked(source: Path, workspace: Path, policy: str | None) -> tuple[Path, str | None]:
    """Return the table and its policy, which a project of ARX brings along."""
    if source.suffix.lower() != PROJECT:
        return source, policy
    from kinfold.interchange import convert, read_deid

    into = workspace / f"{source.stem}-arx"
    shutil.rmtree(into, ignore_errors=True)
    convert(read_deid(source)).write(into)
    for file in into.glob(f"{HIERARCHIES}/*.csv"):
        (workspace / HIERARCHIES).mkdir(exist_ok=True)
        shutil.copyfile(file, workspace / HIERARCHIES / file.name)
    return into / "data.csv", (into / "policy.toml").read_text("utf-8")


def _risk(engine: Engine, frame: Any, policy: str) -> dict[str, Any]:
    """Return the risk that a page shows first: it is at hand while the table is open here."""
    asked = Policy.parse(parse_toml(policy))
    roles = {name: column.role for name, column in asked.columns.items()}
    quasi = [name for name in engine.schema(frame).names if roles.get(name) is Role.QUASI]
    return risk_of_columns(engine, frame, quasi, asked.privacy.k)


def _starter(found: Profile, workspace: Path) -> str:
    """Write the proposed policy, and beside it the hierarchies that are too long to stand in it."""
    for _, file, rows in hierarchy_files(found):
        (workspace / HIERARCHIES).mkdir(exist_ok=True)
        write_arx(by_rows(rows), workspace / HIERARCHIES / file)
    return starter(found, folder=HIERARCHIES)


def _column(engine: Engine, frame: Any, found: ColumnProfile, column: Column) -> dict[str, Any]:
    told = found.to_dict()
    proposed = {key: told.pop(key) for key in ("role", "reason", "t", "l", "hierarchy")}
    return {**told, "proposed": {**proposed, "type": found.kind}, "histogram": _histogram(engine, frame, found, column)}


def _histogram(engine: Engine, frame: Any, found: ColumnProfile, column: Column) -> dict[str, Any]:
    if found.kind in (Kind.CONTINUOUS, Kind.DATE) and column.storage.kind.measured:
        held = engine.collect(frame, {column.name: column}).column(0)
        numbers = held.to_numpy(zero_copy_only=False).astype(np.float64)
        numbers = np.where(np.isfinite(numbers), numbers, np.nan)
        each = np.ones(len(numbers), np.int64)
        spread = bins(numbers, each, edges_of(numbers), _iso if found.kind == Kind.DATE else None)
        return {"form": "bins", **asdict(spread)}
    look = engine.appearances(frame, [column])[column.name]
    rest = look.filled - sum(look.counts[:MOST_LABELS])
    shown = {"labels": list(look.values[:MOST_LABELS]), "counts": list(look.counts[:MOST_LABELS])}
    more = {"rest": rest, "rest_labels": max(look.distinct - MOST_LABELS, 0), "missing": column.nulls}
    return {"form": "labels", **shown, **more}


def _iso(day: float) -> str:
    first, last = ((end - EPOCH).days for end in (date.min, date.max))
    return (EPOCH + timedelta(days=int(min(max(day, first), last)))).isoformat()
