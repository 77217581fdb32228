"""Comparison: run several methods on one table, rank the settings, and draw an R-U map.

Each setting gets one number for risk, one for loss, and their weighted mean, the score; settings that no other beats
are on the Pareto front. The score is that of Domingo-Ferrer & Torra 2005, section 3.1: the average of a loss and a
risk, here in percent and with weights. No score is fair to all methods, so every measure is listed as well.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kinfold.comparison.grid import Outcome, Setting, build_grid, run_grid
from kinfold.disk import folders
from kinfold.errors import PolicyError, Unreachable, check_arguments, plural, report_failed_write
from kinfold.measures.measure_table import CATALOGUE
from kinfold.pipeline import resolve_source
from kinfold.policy.model import Policy
from kinfold.progress import Progress, no_progress
from kinfold.release.report.chart import Chart, draw, draw_png
from kinfold.release.report.page import write_comparison_page
from kinfold.release.report.risk_utility_map import MAP_HEIGHTS, MAP_WIDTH, Trial, chart_trials, find_pareto_front
from kinfold.release.report.wording import format_percent, format_share
from kinfold.tables.display import Displayable

__all__ = ["Comparison", "Outcome", "Setting", "build_grid", "check_measures", "rank", "run_grid", "save"]

CSV_HEADER = ("method", "k", "t", "risk", "loss", "score", "pareto", "classes", "suppressed", "seconds")
RISKS = ("linkage", "prosecutor_mean", "prosecutor_max", "dr_max", "interval")
LOSSES = ("overall", "sse_ratio", "granularity", "prec", "normalized_sse")
MORE_IS_BETTER = {"granularity", "prec"}


@dataclass(frozen=True)
class RankedSetting:
    """A setting with its risk and loss (0 to 1, less is better) and its score in percent."""

    setting: Setting
    risk: float
    loss: float
    score: float
    best: bool  # on the Pareto front
    measures: dict[str, Any]
    method: str  # as shown; what auto chose stands in brackets


@dataclass(frozen=True)
class Comparison(Displayable):
    """Settings from the best score to the worst, the settings that failed, and the measures compared."""

    ranked: tuple[RankedSetting, ...]
    failed: tuple[tuple[Setting, str], ...]
    risk: str
    loss: str
    weight: float  # of the risk, 0 to 1

    def map(self, width: int = MAP_WIDTH, heights: Sequence[int] = MAP_HEIGHTS) -> Chart:
        """Return the R-U map, with a plot of this size in pixels; names have their t if several are compared."""
        risk, loss = self.titles
        several = len({each.setting.t for each in self.ranked}) > 1
        trials = [
            Trial(f"{each.method} t={t:g}," if several and t is not None else each.method, k, each.risk, each.loss)
            for each in self.ranked
            for k, t in [(each.setting.k, each.setting.t)]
        ]
        return chart_trials(trials, f"risk: {risk.lower()}", f"loss: {loss.lower()}", width, heights)

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return the kind of display and its values for a notebook."""
        return "comparison", {"facts": self.to_dict(), "map": self.map()}

    def __repr__(self) -> str:
        best = _describe_setting(self.ranked[0])
        return f"<Comparison: {plural(len(self.ranked), 'setting')}; the best is {best}>"

    @property
    def titles(self) -> tuple[str, str]:
        """The titles of the risk and of the loss."""
        return _get_title("risk", self.risk), _get_title("loss", self.loss)

    def advice(self) -> str:
        """Return the recommended setting, and its price compared with the next."""
        return f"{self.choice()} {self.price()}"

    def choice(self) -> str:
        """Return the recommended setting in a sentence."""
        return f"Take {_describe_setting(self.ranked[0])}."

    def price(self) -> str:
        """Return the risk and the loss of the first setting, and the difference to the next."""
        first = self.ranked[0]
        risk, loss = (title[:1].lower() + title[1:] for title in self.titles)
        text = f"Its risk ({risk}) is {format_percent(first.risk)}, its loss ({loss}) {format_percent(first.loss)}"
        text += f", at {format_share(self.weight)} weight on the risk."
        if len(self.ranked) == 1:
            return text
        second = self.ranked[1]
        gaps = _describe_gap(second.risk - first.risk, "risk"), _describe_gap(second.loss - first.loss, "loss")
        return f"{text} The next, {_describe_setting(second)}, has {gaps[0]} and {gaps[1]}."

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "risk": self.risk,
            "loss": self.loss,
            "titles": {"risk": self.titles[0], "loss": self.titles[1]},
            "weight": self.weight,
            "advice": self.advice(),
            "choice": self.choice(),
            "price": self.price(),
            "settings": [asdict(ranked) for ranked in self.ranked],
            "failed": [{**asdict(setting), "reason": reason} for setting, reason in self.failed],
        }


def rank(
    outcomes: Sequence[Outcome], risk: str | None = None, loss: str | None = None, weight: float = 0.5
) -> Comparison:
    """Rank outcomes by a risk and a loss, or by the first of each that all outcomes have."""
    check_measures(risk, loss, weight)
    measured = [outcome for outcome in outcomes if outcome.measures is not None]
    failed = tuple((outcome.setting, outcome.failure) for outcome in outcomes if outcome.measures is None)
    if not measured:
        fix = f"the first one says: {failed[0][1]}" if failed else "name methods"
        raise Unreachable("no setting could be met", fix=fix)
    risk = _choose_measure(measured, "risk", risk, RISKS)
    loss = _choose_measure(measured, "loss", loss, LOSSES)
    points = [(_get_value(outcome, "risk", risk), _get_value(outcome, "loss", loss)) for outcome in measured]
    ranked = [
        RankedSetting(
            o.setting, r, l, 100 * (weight * r + (1 - weight) * l), best, dict(o.measures or {}), _label_method(o)
        )
        for o, (r, l), best in zip(measured, points, find_pareto_front(points), strict=True)
    ]
    order = sorted(ranked, key=lambda each: (each.score, not each.best))  # ties: in the order of the grid
    return Comparison(tuple(order), failed, risk, loss, weight)


def check_measures(risk: str | None, loss: str | None, weight: float) -> None:
    """Raise if a measure or the weight is not valid."""
    if not 0 <= weight <= 1:
        raise PolicyError(f"the weight of the risk is {weight}", fix="give a number from 0 to 1")
    for section, name, known in (("risk", risk, RISKS), ("loss", loss, LOSSES)):
        if name is not None and name not in known:
            raise PolicyError(f"no {section} named '{name}' can be compared", fix=f"name one of {', '.join(known)}")


def _choose_measure(outcomes: Sequence[Outcome], section: str, name: str | None, known: Sequence[str]) -> str:
    for candidate in [name] if name else known:
        if all((outcome.measures or {})[section].get(candidate) is not None for outcome in outcomes):
            return candidate
    what = f"no {section} applies to every setting" if name is None else f"'{name}' does not apply to every setting"
    raise Unreachable(what, fix="compare methods of one kind: averages, or generalizations")


def _get_value(outcome: Outcome, section: str, name: str) -> float:
    value = float((outcome.measures or {})[section][name])
    return 1 - value if name in MORE_IS_BETTER else value


def _label_method(outcome: Outcome) -> str:
    """Return the name of a method, for auto with its choice: refinement makes a choice of auto lose less than alone."""
    facts, name = outcome.measures or {}, outcome.setting.method
    chosen = facts.get("method", name)
    return name if chosen == name else f"{name} ({chosen}{', refined' if facts.get('steps') else ''})"


def _describe_setting(ranked: RankedSetting) -> str:
    t = ranked.setting.t
    return f"{ranked.method} with k = {ranked.setting.k}" + ("" if t is None else f" and t = {t:g}")


def _describe_gap(gap: float, what: str) -> str:
    if abs(gap) < 5e-5:
        return f"the same {what}"
    return f"{format_percent(abs(gap))} {'more' if gap > 0 else 'less'} {what}"


def _get_title(section: str, name: str) -> str:
    title = CATALOGUE[f"{section}.{name}"].title
    return f"{title} lost" if name in MORE_IS_BETTER else title


def save(comparison: Comparison, folder: Path) -> None:
    """Write the table as CSV, the facts as JSON, and the R-U map as a page, SVG and PNG."""
    chart = comparison.map()
    svg = draw(chart, "map")
    with report_failed_write(folder):
        folder.mkdir(parents=True, exist_ok=True)
        folders.record_event("kept", f"the comparison is in '{folder}'")
        (folder / "comparison.csv").write_text(to_csv(comparison), encoding="utf-8")
        (folder / "comparison.json").write_text(json.dumps(comparison.to_dict(), indent=2) + "\n", encoding="utf-8")
        (folder / "map.svg").write_text(svg, encoding="utf-8")
        (folder / "map.png").write_bytes(draw_png(chart))
        (folder / "comparison.html").write_text(write_comparison_page(comparison.to_dict(), svg), encoding="utf-8")


def to_csv(comparison: Comparison) -> str:
    """Return the settings as CSV, from the best score to the worst."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for each in comparison.ranked:
        setting, facts = each.setting, [each.measures[name] for name in CSV_HEADER[-3:]]
        numbers = (f"{each.risk:.6g}", f"{each.loss:.6g}", f"{each.score:.4g}")
        writer.writerow((each.method, setting.k, setting.t, *numbers, "yes" if each.best else "", *facts))
    return text.getvalue()


@check_arguments
def compare(
    source: Any,
    policy: Any,
    *,
    methods: Sequence[str],
    k: Sequence[int],
    t: Sequence[float] = (),
    progress: Progress = no_progress,
) -> Comparison:
    """Run methods at several k (and t) on one table, a path or a frame, and return a ranked `Comparison`.

    The steps are functions of this package: `build_grid`, `run_grid`, `rank` and `save`. Use them for other measures,
    for cached results and for pages.
    """
    resolve_source(source)  # raises here if it is not a table, not in a worker
    return rank(run_grid(source, Policy.of(policy), build_grid(methods, k, t), progress=progress))
