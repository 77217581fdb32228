"""Ranking: one number for risk, one for loss, their weighted mean, and the settings that nothing beats.

The score is that of Domingo-Ferrer & Torra 2005, section 3.1: the average of a loss and a risk, here in percent and
with weights. No score does justice to all methods, so every measure stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kinfold.comparison.grid import Outcome, Setting
from kinfold.errors import PolicyError, Unreachable
from kinfold.report.risk_utility import Trial, pareto

RISKS = ("linkage", "prosecutor_mean", "prosecutor_max", "dr_max", "interval")
LOSSES = ("sse_ratio", "granularity", "prec", "normalized_sse")
MORE_IS_BETTER = {"granularity", "prec"}


@dataclass(frozen=True)
class Ranked:
    """A setting with its risk, its loss (both in 0..1, less is better) and its score in percent."""

    setting: Setting
    risk: float
    loss: float
    score: float
    best: bool  # no other setting has as little of both and less of one
    measures: dict[str, Any]


@dataclass(frozen=True)
class Comparison:
    """Settings from the best score to the worst, what could not be made, and what was compared."""

    ranked: tuple[Ranked, ...]
    failed: tuple[tuple[Setting, str], ...]
    risk: str
    loss: str
    weight: float  # of the risk; the loss has the rest

    def trials(self) -> list[Trial]:
        """Return the points of the R-U map."""
        return [Trial(_name(r.setting), r.setting.k, r.risk, r.loss) for r in self.ranked]

    def advice(self) -> str:
        """Say in a sentence which setting to take, and what it costs against the next."""
        first = self.ranked[0]
        told = f"Take {_told(first.setting)}: risk ({self.risk}) {first.risk:.2%}, loss ({self.loss}) {first.loss:.2%}"
        if len(self.ranked) == 1:
            return told + "."
        second = self.ranked[1]
        risk, loss = second.risk - first.risk, second.loss - first.loss
        return f"{told}. The next, {_told(second.setting)}, has {_more(risk)} risk and {_more(loss)} loss."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "risk": self.risk,
            "loss": self.loss,
            "weight": self.weight,
            "advice": self.advice(),
            "settings": [asdict(ranked) for ranked in self.ranked],
            "failed": [{**asdict(setting), "reason": reason} for setting, reason in self.failed],
        }


def rank(
    outcomes: Sequence[Outcome], risk: str | None = None, loss: str | None = None, weight: float = 0.5
) -> Comparison:
    """Compare outcomes by a named risk and a named loss, or by the first that all of them have."""
    if not 0 <= weight <= 1:
        raise PolicyError(f"the weight of the risk is {weight}", fix="give a number from 0 to 1")
    made = [outcome for outcome in outcomes if outcome.measures is not None]
    failed = tuple((outcome.setting, outcome.failure) for outcome in outcomes if outcome.measures is None)
    if not made:
        raise Unreachable(
            "no setting could be met", fix=f"the first one says: {failed[0][1]}" if failed else "name methods"
        )
    risk = _chosen(made, "risk", risk, RISKS)
    loss = _chosen(made, "loss", loss, LOSSES)
    points = [(o.setting, _value(o, "risk", risk), _value(o, "loss", loss), dict(o.measures or {})) for o in made]
    best = pareto([Trial(_name(setting), setting.k, r, l) for setting, r, l, _ in points])
    ranked = [
        Ranked(setting, r, l, 100 * (weight * r + (1 - weight) * l), front, measures)
        for (setting, r, l, measures), front in zip(points, best, strict=True)
    ]
    return Comparison(tuple(sorted(ranked, key=lambda each: each.score)), failed, risk, loss, weight)


def _chosen(made: Sequence[Outcome], section: str, asked: str | None, known: Sequence[str]) -> str:
    if asked is not None and asked not in known:
        raise PolicyError(f"no {section} named '{asked}' can be compared", fix=f"name one of {', '.join(known)}")
    fits: Callable[[str], bool] = lambda name: all((o.measures or {})[section].get(name) is not None for o in made)  # noqa: E731
    found = next((name for name in ([asked] if asked else known) if fits(name)), None)
    if found is None:
        what = (
            f"no {section} applies to every setting" if asked is None else f"'{asked}' does not apply to every setting"
        )
        raise Unreachable(what, fix="compare methods of one kind: averages, or generalizations")
    return found


def _value(outcome: Outcome, section: str, name: str) -> float:
    value = float((outcome.measures or {})[section][name])
    return 1 - value if name in MORE_IS_BETTER else value


def _name(setting: Setting) -> str:
    return setting.method if setting.t is None else f"{setting.method} t={setting.t:g}"


def _told(setting: Setting) -> str:
    return f"{setting.method} with k = {setting.k}" + ("" if setting.t is None else f" and t = {setting.t:g}")


def _more(gap: float) -> str:
    return "the same" if abs(gap) < 5e-5 else f"{abs(gap):.2%} {'more' if gap > 0 else 'less'}"
