"""The R-U map: what each method risks and loses at each k, with the points that nothing beats.

A point is on the Pareto front if no other has as little risk and as little loss, and less of one of them. Labels are
placed greedily, in the order of the points: the first of right, left, above, below that touches no point and no label
placed before; if all do, the first that stays inside the map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kinfold.release.report.chart import Picture
from kinfold.release.report.wording import plural, visible

WIDTH, HEIGHT = 474, 326  # of the plot, as in charts/risk_utility.json
LETTER, LINE, RADIUS = 6.2, 13.0, 9.0  # an upper guess of a letter's width; the height of a line; a point and some air

Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Trial:
    """One method at one k: its risk and its loss, each the better the smaller."""

    method: str
    k: int
    risk: float
    loss: float


def pareto(trials: Sequence[Trial]) -> list[bool]:
    """Say of each trial whether no other beats it.

    >>> pareto([Trial("a", 3, 0.5, 0.1), Trial("a", 5, 0.2, 0.3), Trial("b", 5, 0.5, 0.3)])
    [True, True, False]
    """
    return [not any(_beats(other, trial) for other in trials) for trial in trials]


def _beats(one: Trial, other: Trial) -> bool:
    no_worse = one.risk <= other.risk and one.loss <= other.loss
    return no_worse and (one.risk < other.risk or one.loss < other.loss)


def picture(trials: Sequence[Trial], risk: str = "disclosure risk", loss: str = "information lost") -> Picture:
    """Return the map of the trials; `risk` and `loss` name what was measured."""
    most_risk, most_loss = _top([trial.risk for trial in trials]), _top([trial.loss for trial in trials])
    places = [(WIDTH * trial.loss / most_loss, HEIGHT * (1 - trial.risk / most_risk)) for trial in trials]
    labels = [f"{visible(trial.method)} {trial.k}" for trial in trials]
    rows = [
        {
            "method": visible(trial.method), "label": label, "risk": trial.risk, "loss": trial.loss,
            "pareto": best, "side": side,
        }
        for trial, label, best, side in zip(trials, labels, pareto(trials), sides(places, labels), strict=True)
    ]  # fmt: skip
    settings = {
        "encoding.x.title": f"{loss} →",
        "encoding.y.title": f"↑ {risk}",
        "encoding.x.scale.domain": [0, most_loss],
        "encoding.y.scale.domain": [0, most_risk],
    }
    front = plural(sum(1 for row in rows if row["pareto"]), "point")
    description = f"{plural(len(trials), 'trial')} by {loss} and {risk}; {front} that no other beats."
    return Picture("risk_utility", rows, "Risk and utility of each method and k", description, settings)


def _top(values: Sequence[float]) -> float:
    return 1.08 * max(values, default=0.0) or 1.0


def sides(places: Sequence[tuple[float, float]], labels: Sequence[str]) -> list[str]:
    """Return on which side of its point each label stands."""
    taken = [(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in places]
    chosen: list[str] = []
    for number, ((x, y), label) in enumerate(zip(places, labels, strict=True)):
        boxes = _boxes(x, y, LETTER * len(label))
        others = taken[:number] + taken[number + 1 :]
        inside = [side for side, box in boxes.items() if _inside(box)] or ["left"]
        side = next((side for side in inside if not _hits(boxes[side], others)), inside[0])
        taken.append(boxes[side])
        chosen.append(side)
    return chosen


def _boxes(x: float, y: float, width: float) -> dict[str, Box]:
    return {
        "right": (x + RADIUS, y - LINE / 2, x + RADIUS + width, y + LINE / 2),
        "left": (x - RADIUS - width, y - LINE / 2, x - RADIUS, y + LINE / 2),
        "above": (x - width / 2, y - RADIUS - LINE, x + width / 2, y - RADIUS),
        "below": (x - width / 2, y + RADIUS, x + width / 2, y + RADIUS + LINE),
    }


def _inside(box: Box) -> bool:
    return box[0] >= 0 and box[1] >= -LINE and box[2] <= WIDTH + 20 and box[3] <= HEIGHT


def _hits(box: Box, others: Sequence[Box]) -> bool:
    return any(box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3] for other in others)
