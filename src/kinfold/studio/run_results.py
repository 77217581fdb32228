"""A run, in a process of its own: the release as the command makes it, and beside it what a page shows of it.

release/       public and internal, as `kinfold anonymize` writes them
columns.json   every column before and after, with the charts of the report
facts.json     verdict, class sizes, records at risk, measures, what a linkage attacker gets
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

from kinfold.flow import anonymize, attack, is_compiling
from kinfold.progress import watching
from kinfold.release.description import Contents, describe
from kinfold.release.folder import CHECKED_TWICE
from kinfold.release.release import Release
from kinfold.release.report import class_sizes, verdict_sentences
from kinfold.release.report.chart import Picture, specification, theme
from kinfold.release.report.facts import Bins, ColumnFacts, Facts
from kinfold.release.report.limits import LIMITS
from kinfold.release.report.page import singled_told
from kinfold.release.report.spreads import pictures
from kinfold.request.policy import Policy
from kinfold.studio.worker import Tell

# from where to where each stage leads on the way from 0 to 1; parts of planning may have names of their own
PLANNING = (0.08, 0.6)
STAGES = {"read": (0.0, 0.08), "cut": (0.1, 0.15), "blocks": (0.15, 0.4), "borders": (0.4, 0.42), "repair": (0.42, 0.5)}
STAGES |= {"refine": (0.5, 0.6), "apply": (0.6, 0.65), "verify": (0.65, 0.7), "measure": (0.7, 0.8)}
STAGES |= {
    "regions": (0.1, 0.6),
    "write": (0.8, 0.84),
    "report": (0.84, 0.92),
    "check": (0.92, 0.95),
    "explain": (0.95, 1.0),
}
WORST = 50  # records that are listed
MOST_ATTACKED = 50_000  # records of a table whose attack is not worth a wait
THIN = 0.002  # a cost that fell by less is not worth a point of the curve


@dataclass
class Heard:
    """What is told of a run: its stage, its share, and how the cost of its classes falls."""

    tell: Tell
    started: float = field(default_factory=time.monotonic)
    first: float | None = None
    base: float = 1.0  # what the walks before this one reached, for there may be several
    share: float = 1.0  # of the first cost
    cost: float = 0.0
    far: float = 0.0  # on the way: never back

    def progress(self, stage: str, done: int, total: int) -> None:
        """Hear of a stage."""
        begin, end = STAGES.get(stage, PLANNING)
        share = self.far = max(self.far, begin + (end - begin) * (min(done / total, 1.0) if total else 0.0))
        seconds = time.monotonic() - self.started
        left = seconds * (1 - share) / share if share > 0.1 and seconds > 0.5 else None
        stage = "compile" if is_compiling() else stage
        told = {"stage": stage, "share": round(share, 4), "seconds": round(seconds, 2)}
        self.tell({"event": "progress", **told, "left": None if left is None else round(left, 1)})

    def falling(self, cost: float) -> None:
        """Hear of a cost: as a share of the first one; a search that begins anew goes on from where the last ended."""
        if self.first is None or cost > self.cost * (1 + 1e-9):
            self.first, self.base = cost, self.share
        share = self.base * cost / self.first if self.first else self.base
        self.cost = cost
        if share <= self.share - THIN or share == 1.0:
            self.share = share
            self.tell({"event": "cost", "seconds": round(time.monotonic() - self.started, 3), "share": round(share, 5)})


def make_run(request: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Anonymize, save, and write down what there is to see."""
    folder, heard = Path(request["folder"]), Heard(tell)
    policy = Policy.load(request["policy"])
    with watching(heard.falling):
        release = anonymize(Path(request["source"]), policy, progress=lambda *told: _pass_on(heard, *told))
    release.save(folder / "release", progress=heard.progress)
    heard.progress("explain", 0, 1)
    facts = describe(Contents(release), internal=True)
    _write(folder / "columns.json", {column.name: column_told(column) for column in facts.columns})
    _write(folder / "facts.json", _facts(release, facts))
    tell({"event": "summary", "summary": _summary(release, facts), "seconds": round(release.seconds, 3)})
    _write(folder / "attack.json", _attack(release))
    return {"bound": None if release.plan.gap is None else heard.share * (1 - release.plan.gap)}


def _pass_on(heard: Heard, stage: str, done: int, total: int) -> None:
    if stage != "done":  # which is not said before it is saved
        heard.progress(stage, done, total)


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, allow_nan=False, default=str), encoding="utf-8")


def _summary(release: Release, facts: Facts) -> dict[str, Any]:
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
        "made_by": release.made_by,
        "holds": release.verdict.holds,
        "headline": _plain(verdict_sentences.headline(facts)),
    }


def _facts(release: Release, facts: Facts) -> dict[str, Any]:
    asked = release.policy.request.privacy.k
    sizes = class_sizes.picture(facts.class_sizes, asked)
    return {
        "verdict": _verdict(release, facts),
        "classes": {"sizes": facts.class_sizes, "k": asked, "chart": drawn(sizes) if sizes else None},
        "records": _records(release),
        "measures": {**release.measures.to_dict(), "statistics": release.measures.statistics.to_dict()},
        "steps": release.plan.steps,
        "gap": release.plan.gap,
    }


def _verdict(release: Release, facts: Facts) -> dict[str, Any]:
    promises = [
        {**asdict(finding), "meaning": _plain(verdict_sentences.meaning(finding))} for finding in facts.findings
    ]
    twice = True if release.verdict.records <= CHECKED_TWICE else None
    return {
        "holds": release.verdict.holds,
        "headline": _plain(verdict_sentences.headline(facts)),
        "further": [_plain(each) for each in verdict_sentences.further(facts)],
        "not_promised": list(LIMITS),
        "promises": promises,
        "checkers": [{"name": "engine", "holds": release.verdict.holds}, {"name": "plain", "holds": twice}],
        "warnings": [*facts.warnings, *facts.cautions, *singled_told(facts)],
        "notes": list(facts.notes),
    }


def column_told(column: ColumnFacts) -> dict[str, Any]:
    """Return a column before and after as plain values, with its charts."""
    told = {key: value for key, value in vars(column).items() if key not in ("original", "released")}
    sides = {side: _spread(getattr(column, side)) for side in ("original", "released")}
    return {**told, **sides, "charts": [drawn(each) for each in pictures(column)]}


def _spread(spread: Any) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {"form": "bins" if isinstance(spread, Bins) else "labels", **asdict(spread)}


def drawn(picture: Picture) -> dict[str, Any]:
    """Return a chart of the report as a specification, with words for those who do not see it."""
    spec = {**specification(picture.name, picture.values, picture.settings), "config": theme()}
    return {"spec": spec, "title": picture.title, "description": picture.description}


def _records(release: Release) -> dict[str, Any] | None:
    """Return how many records have which risk, and those that have the most after: internal, as the table itself is."""
    risks = release.measures.risk_by_record
    if risks is None:
        return None
    order = np.lexsort((-risks.before, -np.nan_to_num(risks.after, nan=-1.0)))[:WORST]
    shown = _values(release, order)
    worst = [
        {"record": int(row), "before": float(risks.before[row]), "after": _number(risks.after[row]), "quasi": values}
        for row, values in zip(order, shown, strict=True)
    ]
    return {"before": _counted(risks.before), "after": _counted(risks.after), "worst": worst}


def _counted(risks: Any) -> dict[str, Any]:
    known = risks[~np.isnan(risks)]
    counts = sorted(Counter(np.round(known, 6).tolist()).items(), reverse=True)
    return {"counts": counts[:200], "left_out": int(np.isnan(risks).sum())}


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _values(release: Release, rows: Any) -> list[dict[str, list[str | None]]]:
    """Return the quasi-identifiers of some records, original and released."""
    names: dict[str, None] = dict.fromkeys(release.terms.quasi)
    place = np.cumsum(release.recoding.kept) - 1  # of a record among the released ones
    kept = release.recoding.kept[rows]
    before = release.engine.collect(release.original, names).take(rows)
    after = release.engine.collect(release.released, names).take(np.where(kept, place[rows], 0))
    sides = {name: (before.column(name).to_pylist(), after.column(name).to_pylist()) for name in names}
    return [
        {name: [one[i], other[i] if kept[i] else None] for name, (one, other) in sides.items()}
        for i in range(len(rows))
    ]


def _attack(release: Release) -> dict[str, Any]:
    risk, k = release.measures["risk"], release.verdict.k
    told: dict[str, Any] = {"linkage": risk["linkage"], "bound": 1 / k if k else None, "notes": []}
    if release.verdict.records > MOST_ATTACKED:
        return {**told, "notes": [f"more than {MOST_ATTACKED:,} records: ask kinfold measure --linkage-subsets"]}
    found = attack(release)
    return {
        **told,
        "subsets": found["linkage_subsets"],
        "untouched": found["linkage_untouched"],
        "notes": found["notes"],
    }


def _plain(sentence: Any) -> str:
    return str(sentence.striptags())  # markup, in which names are escaped; a page escapes them again
