"""Jobs on a table, done by a worker: open it, make a release, list its lattice, count outliers, verify a release.

Opening detects how the file is written, profiles the columns with histograms, and proposes a policy. A run makes a
release and writes more files for the page:

    release/       public and internal, as `kinfold anonymize` writes them
    columns.json   every column before and after, with the charts of the report
    attack.json    results of the linkage attack
    released.csv, records.npz   the rows in the order of the original, and their classes and risks

Two more jobs prepare the server: the script that draws charts, and the compilation of the kernels. The worker writes
the value that a job returns to `result.json` in the folder of the job.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from kinfold import pipeline
from kinfold.hierarchies import build_from_rows, write_arx
from kinfold.measures.risk import measure_column_risk
from kinfold.pipeline import MISSING_TEXTS, is_compiling, open_detected, open_engine, resolve_source
from kinfold.policy.model import Policy
from kinfold.policy.toml_values import parse_toml
from kinfold.profiling.profile import ColumnProfile, Profile, profile
from kinfold.profiling.starter_policy import list_hierarchy_files, write_starter_policy
from kinfold.progress import SearchCurve, watch_search
from kinfold.release.folder import MAX_RECORDS_CHECKED_TWICE
from kinfold.release.release import Release
from kinfold.release.report.chart import VEGA_LITE, Chart, build_specification, load_script, load_theme
from kinfold.release.report.description import ReleaseContents, describe
from kinfold.release.report.distribution_charts import chart_class_sizes, chart_column
from kinfold.release.report.facts import MAX_BAR_LABELS, Bins, ColumnFacts, Facts, compute_edges, count_bins
from kinfold.release.report.page import describe_unique_columns
from kinfold.release.report.sentences import LIMITS, explain_promise, write_details, write_headline
from kinfold.studio.release_rows import write_rows
from kinfold.tables.engine import Engine
from kinfold.tables.queries import read_page
from kinfold.tables.schema import Column, Kind, Role

FIRST_ROWS = 200  # rows that the page gets without opening the table again
HIERARCHY_FOLDER = "hierarchies"  # of a session, for hierarchies that are too long for a policy
EPOCH = date(1970, 1, 1)
ARX_SUFFIX = ".deid"
MAX_NODES_LISTED = 20_000  # of a larger lattice only the best node is listed
STAGE_SHARES = {  # part of the whole progress, 0 to 1, that each stage takes
    "read": (0.0, 0.08),
    "cut": (0.1, 0.15),
    "blocks": (0.15, 0.4),
    "borders": (0.4, 0.42),
    "repair": (0.42, 0.5),
    "refine": (0.5, 0.6),
    "apply": (0.6, 0.65),
    "verify": (0.65, 0.7),
    "measure": (0.7, 0.8),
    "regions": (0.1, 0.6),
    "write": (0.8, 0.84),
    "report": (0.84, 0.92),
    "check": (0.92, 0.95),
    "explain": (0.95, 1.0),
}
PLANNING_SHARE = (0.08, 0.6)  # of stages that a method names itself
MAX_ATTACK_RECORDS = 50_000  # the attack on a larger table takes too long

EventSender: TypeAlias = Callable[[Mapping[str, Any]], None]


def open_table(request: Mapping[str, Any], send: EventSender) -> Any:
    """Read and profile a table; return what a page shows of it."""
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
    return {
        **{key: value for key, value in result.to_dict().items() if key != "columns"},
        "options": asdict(form),
        "columns": columns,
        "first": first,
        "path": str(source),
        "policy": policy,
        "risk": risk,
    }


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
        "labels": list(values.values[:MAX_BAR_LABELS]),
        "counts": list(values.counts[:MAX_BAR_LABELS]),
        "rest": values.filled - sum(values.counts[:MAX_BAR_LABELS]),
        "rest_labels": max(values.distinct - MAX_BAR_LABELS, 0),
        "missing": column.nulls,
    }


def _format_day(day: float) -> str:
    first, last = ((end - EPOCH).days for end in (date.min, date.max))
    return (EPOCH + timedelta(days=int(min(max(day, first), last)))).isoformat()


def list_lattice(request: Mapping[str, Any], send: EventSender) -> Any:
    """Return the nodes of the lattice; of a large one only the best."""
    send({"event": "progress", "stage": "plan", "share": 0.1})
    lattice = pipeline.build_lattice(Path(request["source"]), Policy.load(request["policy"]))
    domain, partial = lattice.nodes.domain, lattice.size > MAX_NODES_LISTED
    if not partial:
        result = lattice.to_dict()
    else:
        result = {"columns": list(domain.names), "proved": lattice.proved, "nodes": []}
        if lattice.best is not None:
            result |= {"best": lattice.best.levels, "nodes": [lattice.best.to_dict() | {"minimal": False}]}
    return {**result, "heights": list(domain.heights), "size": lattice.size, "partial": partial}


def count_outliers(request: Mapping[str, Any], send: EventSender) -> Any:
    """Return the outliers of mu-Argus after the data holder's choices, and after each possible next choice."""
    send({"event": "progress", "stage": "plan", "share": 0.1})
    policy = Policy.load(request["policy"])
    state = pipeline.find_outliers(Path(request["source"]), policy)
    combinations = [{"columns": list(names), "records": count} for names, count in state.combinations.items()]
    choices = [{"column": name, "level": state.levels[name] + 1, "outliers": n} for name, n in state.next.items()]
    result = {"levels": state.levels, "heights": state.heights, "outliers": state.outliers}
    return result | {"combinations": combinations[:50], "choices": list(policy.method.choices), "next": choices}


def verify_release(request: Mapping[str, Any], send: EventSender) -> Any:
    """Run both checkers on the released file."""
    public = Path(request["release"]) / "public"
    checkers = []
    for name, twice in {"engine": False, "plain": True}.items():
        send({"event": "progress", "stage": "verify", "share": 0.5 if twice else 0.1})
        verdict = pipeline.verify(public, twice=twice)
        promises = [finding.to_dict() for finding in verdict.findings]
        checkers.append({"name": name, "holds": verdict.holds, "promises": promises})
    return {"checkers": checkers}


def write_chart_script(request: Mapping[str, Any], send: EventSender) -> None:
    """Write the script that draws charts in a browser; it is made once for each version of the renderer."""
    send({"event": "progress", "stage": "script", "share": 0.1})
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kinfold"
    script = load_script(cache / f"charts-{version('vl-convert-python')}-{VEGA_LITE}.js")
    (Path(request["folder"]) / "vega.js").write_text(script, encoding="utf-8")


def compile_kernels(_: Mapping[str, Any], send: EventSender) -> None:
    """Compile the kernels that most runs need."""
    pipeline.compile_kernels(lambda done, total: send({"event": "progress", "stage": "compile", "share": done / total}))


def write_json(path: Path, value: Any) -> None:
    """Write a result as strict JSON; dates and other values become texts."""
    path.write_text(json.dumps(value, allow_nan=False, default=str), encoding="utf-8")


@dataclass
class RunReporter:
    """Sends the progress of a run, and the curve of the search's cost."""

    send: EventSender
    started: float = field(default_factory=time.monotonic)
    max_share: float = 0.0  # progress never goes back
    stages: list[tuple[str, float]] = field(default_factory=list)  # and when each began, in seconds

    def report_progress(self, stage: str, done: int, total: int) -> None:
        """Send the progress of a stage."""
        if stage == "done":  # the release is not saved yet
            return
        begin, end = STAGE_SHARES.get(stage, PLANNING_SHARE)
        self.max_share = max(self.max_share, begin + (end - begin) * (min(done / total, 1.0) if total else 0.0))
        seconds = time.monotonic() - self.started
        if not self.stages or self.stages[-1][0] != stage:
            self.stages.append((stage, seconds))
        known = self.max_share > 0.1 and seconds > 0.5
        left = round(seconds * (1 - self.max_share) / self.max_share, 1) if known else None
        stage = "compile" if is_compiling() else stage
        progress = {"stage": stage, "share": round(self.max_share, 4), "seconds": round(seconds, 2), "left": left}
        self.send({"event": "progress", **progress})

    def sum_stages(self) -> dict[str, float]:
        """Return the seconds of each stage so far, in the order in which they began."""
        ends = [*(begin for _, begin in self.stages[1:]), time.monotonic() - self.started]
        seconds: dict[str, float] = {}
        for (stage, begin), end in zip(self.stages, ends, strict=True):
            seconds[stage] = seconds.get(stage, 0.0) + end - begin
        return {stage: round(total, 3) for stage, total in seconds.items()}

    def report_curve(self, curve: SearchCurve) -> None:
        """Send the last point of the curve of the search."""
        seconds, share = round(time.monotonic() - self.started, 3), round(curve.share, 5)
        self.send({"event": "cost", "seconds": seconds, "share": share})


def make_run(request: Mapping[str, Any], send: EventSender) -> Any:
    """Make and save a release; return what a page shows of it: verdict, class sizes, records at risk, measures."""
    folder, reporter = Path(request["folder"]), RunReporter(send)
    policy = Policy.load(request["policy"])
    with watch_search(reporter.report_curve) as curve:
        release = pipeline.anonymize(Path(request["source"]), policy, progress=reporter.report_progress)
    release.save(folder / "release", progress=reporter.report_progress)
    reporter.report_progress("explain", 0, 1)
    facts = describe(ReleaseContents(release), internal=True)
    write_json(folder / "columns.json", {column.name: describe_column(column) for column in facts.columns})
    bound = None if release.plan.gap is None else curve.share * (1 - release.plan.gap)
    send({"event": "summary", "summary": _summarize(release, facts) | {"bound": bound}})
    write_json(folder / "attack.json", _run_attack(release))
    write_rows(release, folder)
    k = release.policy.request.privacy.k
    chart = chart_class_sizes(facts.class_sizes, k)
    return {
        "verdict": _describe_verdict(release, facts),
        "classes": {"sizes": facts.class_sizes, "k": k, "chart": make_chart(chart) if chart else None},
        "records": _describe_records(release),
        "task": release.measures["loss"].get("task"),
        "suda": _describe_scores(release),
        "stages": reporter.sum_stages(),
        "measures": release.measures.to_dict(),
        "steps": release.plan.steps,
    }


def _summarize(release: Release, facts: Facts) -> dict[str, Any]:
    measures = release.measures
    kept = {key: measures[key] for key in ("records", "released", "suppressed", "classes", "k", "l", "t")}
    risk, before = measures["risk"], measures["risk_before"]
    return {
        **kept,
        "loss": measures["loss"]["overall"],
        "risk": risk["linkage"] if risk["linkage"] is not None else risk["prosecutor_mean"],
        "risk_max": risk["prosecutor_max"],
        "risk_before": before["prosecutor_mean"],
        "method": release.plan.method,
        "made_by": release.method_summary,
        "holds": release.verdict.holds,
        "headline": _strip_markup(write_headline(facts)),
    }


def _describe_verdict(release: Release, facts: Facts) -> dict[str, Any]:
    promises = [{**finding.to_dict(), "meaning": _strip_markup(explain_promise(finding))} for finding in facts.findings]
    twice = True if release.verdict.records <= MAX_RECORDS_CHECKED_TWICE else None
    return {
        "holds": release.verdict.holds,
        "headline": _strip_markup(write_headline(facts)),
        "further": [_strip_markup(each) for each in write_details(facts)],
        "not_promised": list(LIMITS),
        "promises": promises,
        "checkers": [{"name": "engine", "holds": release.verdict.holds}, {"name": "plain", "holds": twice}],
        "warnings": [*facts.warnings, *facts.cautions, *map(_strip_markup, describe_unique_columns(facts))],
        "notes": list(facts.notes),
    }


def describe_column(column: ColumnFacts) -> dict[str, Any]:
    """Return a column before and after as JSON values, with its charts."""
    values = dict(vars(column))
    for side in ("original", "released"):
        spread = values[side]
        if spread is not None:
            values[side] = {"form": "bins" if isinstance(spread, Bins) else "labels", **asdict(spread)}
    return {**values, "charts": [make_chart(each) for each in chart_column(column)]}


def make_chart(chart: Chart) -> dict[str, Any]:
    """Return a chart of the report as a Vega-Lite specification, with a title and a text description."""
    spec = {**build_specification(chart.name, chart.values, chart.settings), "config": load_theme()}
    return {"spec": spec, "title": chart.title, "description": chart.description}


def _describe_records(release: Release) -> dict[str, Any] | None:
    """Return the number of records by risk, before and after."""
    risks = release.measures.risk_by_record
    if risks is None:
        return None
    return {"before": _count_risks(risks.before), "after": _count_risks(risks.after)}


def _describe_scores(release: Release) -> dict[str, Any] | None:
    """Return the SUDA2 scores of both tables, and the original records with the highest ones."""
    measures = release.measures
    before, after = measures["risk_before"].get("suda"), measures["risk"].get("suda")
    return None if before is None else {"before": before, "after": after, "worst": list(measures.worst_records)}


def _count_risks(risks: Any) -> dict[str, Any]:
    known = risks[~np.isnan(risks)]
    counts = sorted(Counter(np.round(known, 6).tolist()).items(), reverse=True)
    return {"counts": counts[:200], "left_out": int(np.isnan(risks).sum())}


def _run_attack(release: Release) -> dict[str, Any]:
    risk, k = release.measures["risk"], release.verdict.k
    result: dict[str, Any] = {"linkage": risk["linkage"], "bound": 1 / k if k else None}
    if release.verdict.records > MAX_ATTACK_RECORDS:
        note = f"more than {MAX_ATTACK_RECORDS:,} records: run kinfold measure --linkage-subsets"
        return {**result, "notes": [note]}
    risks = pipeline.attack(release)
    result |= {"subsets": risks["linkage_subsets"], "untouched": risks["linkage_untouched"], "notes": risks["notes"]}
    return result


def _strip_markup(sentence: Any) -> str:
    return str(sentence.striptags())  # names are escaped in markup; the page escapes them again
