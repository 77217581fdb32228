"""The R-U map: what each method risks and loses at each k, with the points that nothing beats.

A point is on the Pareto front if no other has as little risk and as little loss, and less of one of them. Those on the
front are named first; where every name has its place says `map_labels`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kinfold.release.report.chart import Picture
from kinfold.release.report.map_labels import Point, Spot, places
from kinfold.release.report.wording import plural, visible

WIDTH = 474  # of the plot where nobody asks for another


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


def picture(
    trials: Sequence[Trial], risk: str = "disclosure risk", loss: str = "information lost", width: int = WIDTH
) -> Picture:
    """Return the map of the trials; `risk` and `loss` name what was measured, `width` is the plot's in pixels."""
    most_risk, most_loss = _top([trial.risk for trial in trials]), _top([trial.loss for trial in trials])
    best = pareto(trials)
    order = sorted(range(len(trials)), key=lambda i: not best[i])  # the front first
    named = [trials[i] for i in order]

    def points(height: int) -> list[Point]:
        return [(width * trial.loss / most_loss, height * (1 - trial.risk / most_risk)) for trial in named]

    height, found = places(points, [_name(trial) for trial in named], width)
    rows = [
        _row(trial, best[i], point, place)
        for i, trial, point, place in zip(order, named, points(height), found, strict=True)
    ]
    settings = {
        "width": width,
        "height": height,
        "encoding.x.title": f"{loss} →",
        "encoding.y.title": f"↑ {risk}",
        "encoding.x.scale.domain": [0, most_loss],
        "encoding.y.scale.domain": [0, most_risk],
    }
    front = plural(sum(1 for row in rows if row["pareto"]), "point")
    description = f"{plural(len(trials), 'trial')} by {loss} and {risk}; {front} that no other beats."
    if unnamed := sum(1 for place in found if place is None):
        description += f" {plural(unnamed, 'point')} without a name, for want of room: the table has all."
    return Picture("risk_utility", rows, "Risk and utility of each method and k", description, settings)


def _name(trial: Trial) -> str:
    return f"{visible(trial.method)} {trial.k}"


def _row(trial: Trial, best: bool, point: Point, place: Spot | None) -> dict[str, object]:
    """Return a point, its name with the place of that in pixels, and where the line between them ends."""
    row = {"method": visible(trial.method), "risk": trial.risk, "loss": trial.loss, "pareto": best}
    if place is None:
        return row
    row |= {"label": _name(trial), "align": place.align, "at_x": place.anchor[0], "at_y": place.anchor[1]}
    if place.end is None:
        return row
    return row | {"led": True, "x": point[0], "y": point[1], "end_x": place.end[0], "end_y": place.end[1]}


def _top(values: Sequence[float]) -> float:
    return 1.08 * max(values, default=0.0) or 1.0
