"""Jobs on a table, run by a worker: open it, list its lattice, count mu-Argus's outliers, verify a release.

Opening detects how the file is written, profiles the columns with histograms, and proposes a policy. Two more jobs
prepare the server: the script that draws charts, and the compilation of the kernels.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from kinfold import pipeline
from kinfold.hierarchies import build_from_rows, write_arx
from kinfold.measures.risk import measure_column_risk
from kinfold.pipeline import MISSING_TEXTS, open_detected, open_engine, resolve_source
from kinfold.policy.model import Policy
from kinfold.policy.toml_values import parse_toml
from kinfold.profiling.profile import ColumnProfile, Profile, profile
from kinfold.profiling.starter_policy import list_hierarchy_files, write_starter_policy
from kinfold.release.report.facts import MAX_LABELS, compute_edges, count_bins
from kinfold.studio.worker import EventSender
from kinfold.tables.engine import Engine
from kinfold.tables.queries import read_page
from kinfold.tables.schema import Column, Kind, Role

FIRST_ROWS = 200  # rows that the page gets without opening the table again
HIERARCHY_FOLDER = "hierarchies"  # of a session, for hierarchies that are too long for a policy
EPOCH = date(1970, 1, 1)
ARX_SUFFIX = ".deid"
MAX_NODES_LISTED = 20_000  # of a larger lattice only the best node is listed


def open_table(request: Mapping[str, Any], send: EventSender) -> Mapping[str, Any]:
    """Read and profile a table; write what a page shows to `opening.json`."""
    folder = Path(request["folder"])
    if request.get("address"):
        with open_engine() as engine:  # rows of a database are read once, into a file that keeps their types
            frame = engine.read(resolve_source(request["address"]), MISSING_TEXTS)
            engine.write(frame, Path(request["source"]), engine.schema(frame), ordered=False)
    source, policy = _unpack_project(Path(request["source"]), Path(request["workspace"]), request.get("policy"))
    keys = request.get("written") or (parse_toml(policy).get("source", {}) if policy else {})
    form = Policy.parse({"privacy": {"k": 2}, "source": dict(keys)}).source.form
    send({"event": "progress", "stage": "read", "share": 0.05})
    with open_detected(source, form, guessing=request["detect"]) as (engine, frame, readings):
        send({"event": "progress", "stage": "columns", "share": 0.3})

        def report(done: int, total: int) -> None:
            send({"event": "progress", "stage": "combinations", "share": 0.4 + 0.5 * done / max(total, 1)})

        form = frame.form
        result = readings.complete(profile(engine, frame, report), form)
        schema = engine.schema(frame)
        columns = [_describe_column(engine, frame, each, schema[each.name]) for each in result.columns]
        first = read_page(engine, frame, 0, FIRST_ROWS)
        policy = policy or (_write_starter(result, Path(request["workspace"])) if request["fresh"] else None)
        risk = _compute_risk(engine, frame, policy) if policy else None
    facts = {
        **{key: value for key, value in result.to_dict().items() if key != "columns"},
        "options": asdict(form),
        "columns": columns,
        "first": first,
        "path": str(source),
        "policy": policy,
        "risk": risk,
    }
    (folder / "opening.json").write_text(json.dumps(facts, allow_nan=False), encoding="utf-8")
    return {}


def _unpack_project(source: Path, workspace: Path, policy: str | None) -> tuple[Path, str | None]:
    """Return the table and the policy of an ARX project; other sources are unchanged."""
    if source.suffix.lower() != ARX_SUFFIX:
        return source, policy
    from kinfold.convert import convert_project, read_deid

    folder = workspace / f"{source.stem}-arx"
    shutil.rmtree(folder, ignore_errors=True)
    convert_project(read_deid(source)).write(folder)
    for file in folder.glob(f"{HIERARCHY_FOLDER}/*.csv"):
        (workspace / HIERARCHY_FOLDER).mkdir(exist_ok=True)
        shutil.copyfile(file, workspace / HIERARCHY_FOLDER / file.name)
    return folder / "data.csv", (folder / "policy.toml").read_text("utf-8")


def _compute_risk(engine: Engine, frame: Any, policy: str) -> dict[str, Any]:
    """Return the risk that a page shows first, while the table is open."""
    names = engine.schema(frame).names
    parsed = Policy.parse(parse_toml(policy)).for_columns(names)
    roles = {name: column.role for name, column in parsed.columns.items()}
    quasi = [name for name in names if roles.get(name) is Role.QUASI]
    return measure_column_risk(engine, frame, quasi, parsed.privacy.k)


def _write_starter(result: Profile, workspace: Path) -> str:
    """Return the proposed policy, and write the hierarchies that are too long for it to files."""
    for _, file, rows in list_hierarchy_files(result):
        (workspace / HIERARCHY_FOLDER).mkdir(exist_ok=True)
        write_arx(build_from_rows(rows), workspace / HIERARCHY_FOLDER / file)
    return write_starter_policy(result, folder=HIERARCHY_FOLDER)


def _describe_column(engine: Engine, frame: Any, result: ColumnProfile, column: Column) -> dict[str, Any]:
    facts = result.to_dict()
    proposed = {key: facts.pop(key) for key in ("role", "reason", "t", "l", "hierarchy")} | {"type": result.kind}
    return {**facts, "proposed": proposed, "histogram": _build_histogram(engine, frame, result, column)}


def _build_histogram(engine: Engine, frame: Any, result: ColumnProfile, column: Column) -> dict[str, Any]:
    if result.kind in (Kind.CONTINUOUS, Kind.DATE) and column.storage.kind.is_numeric:
        values = engine.collect(frame, {column.name: column}).column(0)
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        numbers = np.where(np.isfinite(numbers), numbers, np.nan)
        weights = np.ones(len(numbers), np.int64)
        bins = count_bins(numbers, weights, compute_edges(numbers), _format_day if result.kind == Kind.DATE else None)
        return {"form": "bins", **asdict(bins)}
    values = engine.profile(frame, [column])[column.name]
    return {
        "form": "labels",
        "labels": list(values.values[:MAX_LABELS]),
        "counts": list(values.counts[:MAX_LABELS]),
        "rest": values.filled - sum(values.counts[:MAX_LABELS]),
        "rest_labels": max(values.distinct - MAX_LABELS, 0),
        "missing": column.nulls,
    }


def _format_day(day: float) -> str:
    first, last = ((end - EPOCH).days for end in (date.min, date.max))
    return (EPOCH + timedelta(days=int(min(max(day, first), last)))).isoformat()


def list_lattice(request: Mapping[str, Any], send: EventSender) -> Mapping[str, Any]:
    """Write the nodes of the lattice; of a large one only the best."""
    send({"event": "progress", "stage": "plan", "share": 0.1})
    lattice = pipeline.build_lattice(Path(request["source"]), Policy.load(request["policy"]))
    domain, partial = lattice.nodes.domain, lattice.size > MAX_NODES_LISTED
    if not partial:
        result = lattice.to_dict()
    else:
        result = {"columns": list(domain.names), "proved": lattice.proved, "nodes": []}
        if lattice.best is not None:
            result |= {"best": lattice.best.levels, "nodes": [lattice.best.to_dict() | {"minimal": False}]}
    return _save_result(request, {**result, "heights": list(domain.heights), "size": lattice.size, "partial": partial})


def count_outliers(request: Mapping[str, Any], send: EventSender) -> Mapping[str, Any]:
    """Write the outliers of mu-Argus after the data holder's choices, and after each possible next choice."""
    send({"event": "progress", "stage": "plan", "share": 0.1})
    policy = Policy.load(request["policy"])
    state = pipeline.find_outliers(Path(request["source"]), policy)
    combinations = [{"columns": list(names), "records": count} for names, count in state.combinations.items()]
    choices = [{"column": name, "level": state.levels[name] + 1, "outliers": n} for name, n in state.next.items()]
    result = {"levels": state.levels, "heights": state.heights, "outliers": state.outliers}
    result |= {"combinations": combinations[:50], "choices": list(policy.method.choices), "next": choices}
    return _save_result(request, result)


def verify_release(request: Mapping[str, Any], send: EventSender) -> Mapping[str, Any]:
    """Run both checkers on the released file."""
    public = Path(request["release"]) / "public"
    checkers = []
    for name, twice in {"engine": False, "plain": True}.items():
        send({"event": "progress", "stage": "verify", "share": 0.5 if twice else 0.1})
        verdict = pipeline.verify(public, twice=twice)
        promises = [asdict(finding) for finding in verdict.findings]
        checkers.append({"name": name, "holds": verdict.holds, "promises": promises})
    return _save_result(request, {"checkers": checkers})


def write_chart_script(request: Mapping[str, Any], send: EventSender) -> Mapping[str, Any]:
    """Write the script that draws charts in a browser."""
    from kinfold.release.report.chart import get_script

    send({"event": "progress", "stage": "script", "share": 0.1})
    (Path(request["folder"]) / "vega.js").write_text(get_script(), encoding="utf-8")
    return {}


def compile_kernels(_: Mapping[str, Any], send: EventSender) -> Mapping[str, Any]:
    """Compile the kernels that most runs need."""
    pipeline.compile_kernels(lambda done, total: send({"event": "progress", "stage": "compile", "share": done / total}))
    return {}


def _save_result(request: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
    path = Path(request["folder"]) / "result.json"
    path.write_text(json.dumps(value, allow_nan=False, default=str), encoding="utf-8")
    return {}
