"""The job `run`, done by a worker: make a release and write the files that a page shows.

release/       public and internal, as `kinfold anonymize` writes them
columns.json   every column before and after, with the charts of the report
facts.json     verdict, class sizes, records at risk, measures
attack.json    results of the linkage attack
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.pipeline import anonymize, attack, is_compiling
from kinfold.policy.model import Policy
from kinfold.progress import watch_cost
from kinfold.release.folder import MAX_RECORDS_CHECKED_TWICE
from kinfold.release.release import Release
from kinfold.release.report.chart import Chart, build_specification, load_theme
from kinfold.release.report.description import ReleaseContents, describe
from kinfold.release.report.distribution_charts import chart_class_sizes, chart_column
from kinfold.release.report.facts import Bins, ColumnFacts, Facts
from kinfold.release.report.page import describe_unique_columns
from kinfold.release.report.sentences import LIMITS, explain_promise, write_details, write_headline
from kinfold.studio.worker import EventSender

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
MAX_WORST_RECORDS = 50  # listed by their risk
MAX_ATTACK_RECORDS = 50_000  # the attack on a larger table takes too long
MIN_COST_STEP = 0.002  # smaller steps are not added to the curve


@dataclass
class RunReporter:
    """Sends the progress of a run, and the curve of the search's cost."""

    send: EventSender
    started: float = field(default_factory=time.monotonic)
    first: float | None = None
    base: float = 1.0  # share that the previous searches reached
    share: float = 1.0  # of the first cost
    cost: float = 0.0
    max_share: float = 0.0  # progress never goes back

    def report_progress(self, stage: str, done: int, total: int) -> None:
        """Send the progress of a stage."""
        if stage == "done":  # the release is not saved yet
            return
        begin, end = STAGE_SHARES.get(stage, PLANNING_SHARE)
        self.max_share = max(self.max_share, begin + (end - begin) * (min(done / total, 1.0) if total else 0.0))
        seconds = time.monotonic() - self.started
        known = self.max_share > 0.1 and seconds > 0.5
        left = round(seconds * (1 - self.max_share) / self.max_share, 1) if known else None
        stage = "compile" if is_compiling() else stage
        progress = {"stage": stage, "share": round(self.max_share, 4), "seconds": round(seconds, 2), "left": left}
        self.send({"event": "progress", **progress})

    def report_cost(self, cost: float) -> None:
        """Send a cost as a share of the first one; a new search continues where the last one ended."""
        if self.first is None or cost > self.cost * (1 + 1e-9):
            self.first, self.base = cost, self.share
        share = self.base * cost / self.first if self.first else self.base
        self.cost = cost
        if share <= self.share - MIN_COST_STEP or share == 1.0:
            self.share = share
            self.send({"event": "cost", "seconds": round(time.monotonic() - self.started, 3), "share": round(share, 5)})


def make_run(request: Mapping[str, Any], send: EventSender) -> Mapping[str, Any]:
    """Make and save a release, and write the files that a page shows."""
    folder, reporter = Path(request["folder"]), RunReporter(send)
    policy = Policy.load(request["policy"])
    with watch_cost(reporter.report_cost):
        release = anonymize(Path(request["source"]), policy, progress=reporter.report_progress)
    release.save(folder / "release", progress=reporter.report_progress)
    reporter.report_progress("explain", 0, 1)
    facts = describe(ReleaseContents(release), internal=True)
    _write_json(folder / "columns.json", {column.name: describe_column(column) for column in facts.columns})
    _write_json(folder / "facts.json", _collect_facts(release, facts))
    send({"event": "summary", "summary": _summarize(release, facts), "seconds": round(release.seconds, 3)})
    _write_json(folder / "attack.json", _run_attack(release))
    return {"bound": None if release.plan.gap is None else reporter.share * (1 - release.plan.gap)}


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, allow_nan=False, default=str), encoding="utf-8")


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


def _collect_facts(release: Release, facts: Facts) -> dict[str, Any]:
    k = release.policy.request.privacy.k
    chart = chart_class_sizes(facts.class_sizes, k)
    return {
        "verdict": _describe_verdict(release, facts),
        "classes": {"sizes": facts.class_sizes, "k": k, "chart": make_chart(chart) if chart else None},
        "records": _describe_records(release),
        "measures": {**release.measures.to_dict(), "statistics": release.measures.statistics.to_dict()},
        "steps": release.plan.steps,
        "gap": release.plan.gap,
    }


def _describe_verdict(release: Release, facts: Facts) -> dict[str, Any]:
    promises = [{**asdict(finding), "meaning": _strip_markup(explain_promise(finding))} for finding in facts.findings]
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
    """Return the number of records by risk, and the records with the highest risk after the release.

    They are internal, as the original table is.
    """
    risks = release.measures.risk_by_record
    if risks is None:
        return None
    order = np.lexsort((-risks.before, -np.nan_to_num(risks.after, nan=-1.0)))[:MAX_WORST_RECORDS]
    worst = [
        {
            "record": int(row),
            "before": float(risks.before[row]),
            "after": None if np.isnan(risks.after[row]) else float(risks.after[row]),
            "quasi": values,
        }
        for row, values in zip(order, _collect_values(release, order), strict=True)
    ]
    return {"before": _count_risks(risks.before), "after": _count_risks(risks.after), "worst": worst}


def _count_risks(risks: Any) -> dict[str, Any]:
    known = risks[~np.isnan(risks)]
    counts = sorted(Counter(np.round(known, 6).tolist()).items(), reverse=True)
    return {"counts": counts[:200], "left_out": int(np.isnan(risks).sum())}


def _collect_values(release: Release, rows: Any) -> list[dict[str, list[str | None]]]:
    """Return the original and the released quasi-identifiers of some records."""
    names: dict[str, None] = dict.fromkeys(release.terms.quasi)
    place = np.cumsum(release.recoding.kept) - 1  # of each record in the release
    kept = release.recoding.kept[rows]
    before = release.engine.collect(release.original, names).take(rows)
    after = release.engine.collect(release.released, names).take(np.where(kept, place[rows], 0))
    sides = {name: (before.column(name).to_pylist(), after.column(name).to_pylist()) for name in names}
    return [
        {name: [original[i], released[i] if kept[i] else None] for name, (original, released) in sides.items()}
        for i in range(len(rows))
    ]


def _run_attack(release: Release) -> dict[str, Any]:
    risk, k = release.measures["risk"], release.verdict.k
    result: dict[str, Any] = {"linkage": risk["linkage"], "bound": 1 / k if k else None}
    if release.verdict.records > MAX_ATTACK_RECORDS:
        note = f"more than {MAX_ATTACK_RECORDS:,} records: run kinfold measure --linkage-subsets"
        return {**result, "notes": [note]}
    risks = attack(release)
    result |= {"subsets": risks["linkage_subsets"], "untouched": risks["linkage_untouched"], "notes": risks["notes"]}
    return result


def _strip_markup(sentence: Any) -> str:
    return str(sentence.striptags())  # names are escaped in markup; the page escapes them again
