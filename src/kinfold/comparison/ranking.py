"""Ranking: one number for risk, one for loss, their weighted mean, and the settings that nothing beats.

The score is that of Domingo-Ferrer & Torra 2005, section 3.1: the average of a loss and a risk, here in percent and
with weights. No score does justice to all methods, so every measure stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kinfold.comparison.outcome import Outcome, Setting
from kinfold.errors import PolicyError, Unreachable
from kinfold.measures.catalogue import CATALOGUE
from kinfold.release.report.chart import Picture
from kinfold.release.report.risk_utility import WIDTH, Trial, pareto, picture
from kinfold.release.report.wording import percent, plural, share
from kinfold.rows.displayed import Displayed

RISKS = ("linkage", "prosecutor_mean", "prosecutor_max", "dr_max", "interval")
LOSSES = ("overall", "sse_ratio", "granularity", "prec", "normalized_sse")
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
class Comparison(Displayed):
    """Settings from the best score to the worst, what could not be made, and what was compared."""

    ranked: tuple[Ranked, ...]
    failed: tuple[tuple[Setting, str], ...]
    risk: str
    loss: str
    weight: float  # of the risk; the loss has the rest

    def trials(self) -> list[Trial]:
        """Return the points of the R-U map."""
        several = len({r.setting.t for r in self.ranked}) > 1
        return [Trial(_name(r.setting, several), r.setting.k, r.risk, r.loss) for r in self.ranked]

    def map(self, width: int = WIDTH) -> Picture:
        """Return the R-U map, its plot so many pixels wide."""
        risk, loss = self.titles
        return picture(self.trials(), f"risk: {risk.lower()}", f"loss: {loss.lower()}", width)

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return what a notebook shows."""
        return "comparison", {"facts": self.to_dict(), "map": self.map()}

    def __repr__(self) -> str:
        return f"<Comparison: {plural(len(self.ranked), 'setting')}; the best is {_told(self.ranked[0].setting)}>"

    @property
    def titles(self) -> tuple[str, str]:
        """What the risk and the loss are called."""
        return _title("risk", self.risk), _title("loss", self.loss)

    def advice(self) -> str:
        """Say which setting to take, and what it costs against the next."""
        return f"{self.choice()} {self.price()}"

    def choice(self) -> str:
        """Say which setting to take."""
        return f"Take {_told(self.ranked[0].setting)}."

    def price(self) -> str:
        """Say what the first setting risks and loses, and how the next differs."""
        first = self.ranked[0]
        risk, loss = (title[:1].lower() + title[1:] for title in self.titles)
        told = f"Its risk ({risk}) is {percent(first.risk)}, its loss ({loss}) {percent(first.loss)}"
        told += f", at {share(self.weight)} weight on the risk."
        if len(self.ranked) == 1:
            return told
        second = self.ranked[1]
        gaps = _more(second.risk - first.risk, "risk"), _more(second.loss - first.loss, "loss")
        return f"{told} The next, {_told(second.setting)}, has {gaps[0]} and {gaps[1]}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
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
    """Compare outcomes by a named risk and a named loss, or by the first that all of them have."""
    check_measures(risk, loss, weight)
    made = [outcome for outcome in outcomes if outcome.measures is not None]
    failed = tuple((outcome.setting, outcome.failure) for outcome in outcomes if outcome.measures is None)
    if not made:
        raise Unreachable(
            "no setting could be met", fix=f"the first one says: {failed[0][1]}" if failed else "name methods"
        )
    risk = _chosen(made, "risk", risk, RISKS)
    loss = _chosen(made, "loss", loss, LOSSES)
    points = [(o.setting, _value(o, "risk", risk), _value(o, "loss", loss), dict(o.measures or {})) for o in made]
    best = pareto([Trial(setting.method, setting.k, r, l) for setting, r, l, _ in points])
    ranked = [
        Ranked(setting, r, l, 100 * (weight * r + (1 - weight) * l), front, measures)
        for (setting, r, l, measures), front in zip(points, best, strict=True)
    ]
    order = sorted(ranked, key=lambda each: (each.score, not each.best))  # then as asked
    return Comparison(tuple(order), failed, risk, loss, weight)


def check_measures(risk: str | None, loss: str | None, weight: float) -> None:
    """Refuse measures that cannot be compared by, and a weight that is none."""
    if not 0 <= weight <= 1:
        raise PolicyError(f"the weight of the risk is {weight}", fix="give a number from 0 to 1")
    for section, asked, known in (("risk", risk, RISKS), ("loss", loss, LOSSES)):
        if asked is not None and asked not in known:
            raise PolicyError(f"no {section} named '{asked}' can be compared", fix=f"name one of {', '.join(known)}")


def _chosen(made: Sequence[Outcome], section: str, asked: str | None, known: Sequence[str]) -> str:
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


def _name(setting: Setting, several: bool) -> str:
    """Name a method on the map, with its t where several are compared."""
    return f"{setting.method} t={setting.t:g}," if several and setting.t is not None else setting.method


def _told(setting: Setting) -> str:
    return f"{setting.method} with k = {setting.k}" + ("" if setting.t is None else f" and t = {setting.t:g}")


def _more(gap: float, what: str) -> str:
    if abs(gap) < 5e-5:
        return f"the same {what}"
    return f"{percent(abs(gap))} {'more' if gap > 0 else 'less'} {what}"


def _title(section: str, name: str) -> str:
    title = CATALOGUE[f"{section}.{name}"].title
    return f"{title} lost" if name in MORE_IS_BETTER else title
