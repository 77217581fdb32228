"""The R-U map: risk and loss of each method at each k, with the Pareto front, and the placement of its labels.

A point is on the Pareto front if no other point has at most its risk and at most its loss, and less of one of them.
Points on the front are labelled first. Points within `CLOSE_DISTANCE` pixels of each other share one block of labels.
Blocks are placed one after the other; each takes the first free place: right, left, above or below its point, then
farther away with a leader line that crosses no label, and no point if possible. If a block finds no place, the map
grows taller and all are placed again; at the largest height, a label without a place is omitted.
Label boxes are upper estimates of what a browser draws. Cost: blocks times places times labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin

from kinfold.errors import plural
from kinfold.release.report.chart import Chart
from kinfold.release.report.wording import make_visible, measure_text

# pixels: upper estimates of the width of a letter, the height of a line, a point with its margin
LETTER_WIDTH, LINE_HEIGHT, POINT_RADIUS = 6.4, 13.0, 9.0
RING_DISTANCES = tuple(range(18, 260, 12))  # distances of labels with a leader line
DIRECTIONS = 24  # in which a label may stand from its point
CLOSE_DISTANCE = 12.0  # pixels
MAP_HEIGHTS = (326, 400, 480, 560)

Point = tuple[float, float]
Line = tuple[Point, Point]
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class LabelPlace:
    """The box of a label, its alignment, and the end of its leader line, if it has one."""

    box: Box
    align: str = "left"
    end: Point | None = None

    @property
    def anchor(self) -> Point:
        """The position of the aligned end of the text, or of its middle."""
        left, top, right, bottom = self.box
        x = {"left": left, "right": right, "center": (left + right) / 2}[self.align]
        return x, (top + bottom) / 2


def place_labels(points: Sequence[Point], names: Sequence[str], size: tuple[float, float]) -> list[LabelPlace | None]:
    """Return the place of each label on a map of this size, None if there is no space."""
    dots = [(x - POINT_RADIUS, y - POINT_RADIUS, x + POINT_RADIUS, y + POINT_RADIUS) for x, y in points]
    occupied: list[Box] = []
    lines: list[Line] = []
    chosen: list[LabelPlace | None] = [None] * len(points)
    for block in _group_points(points):
        point, own_dots = points[block[0]], [dots[i] for i in block]
        shape = LETTER_WIDTH * max(measure_text(names[i]) for i in block), LINE_HEIGHT * len(block)
        inside = (place for place in _list_places(point, shape) if _is_inside(place.box, size))
        free = (place for place in inside if _is_free(point, place, [*dots, *occupied], occupied, lines))
        others = [dot for dot in dots if not any(boxes_overlap(dot, each) for each in own_dots)]
        place = _choose_clearest(point, free, others)
        if place is not None:
            occupied.append(place.box)
            lines += [(point, place.end)] if place.end else []
            left, top, right, _ = place.box
            for line, i in enumerate(block):  # the first label of a block has the leader line
                box = (left, top + line * LINE_HEIGHT, right, top + (line + 1) * LINE_HEIGHT)
                chosen[i] = LabelPlace(box, place.align, None if line else place.end)
    return chosen


def _group_points(points: Sequence[Point]) -> list[list[int]]:
    """Group each point with the first one that is close to it."""
    blocks: list[list[int]] = []
    for number, (x, y) in enumerate(points):
        near = (block for block in blocks if hypot(points[block[0]][0] - x, points[block[0]][1] - y) < CLOSE_DISTANCE)
        block = next(near, None)
        if block is None:
            blocks.append([number])
        else:
            block.append(number)
    return blocks


def _choose_clearest(point: Point, free: Iterator[LabelPlace], dots: list[Box]) -> LabelPlace | None:
    """Return the first place whose leader line crosses no other point, else the first place."""
    first = None
    for place in free:
        first = first or place
        if place.end is None or not _crosses_any(point, place.end, dots):
            return place
    return first


def _list_places(point: Point, shape: tuple[float, float]) -> Iterator[LabelPlace]:
    """Yield the places around a point for a block of this width and height, the nearest first."""
    (x, y), (width, height) = point, shape
    for left, top, align in (
        (x + POINT_RADIUS, y - height / 2, "left"),
        (x - POINT_RADIUS - width, y - height / 2, "right"),
        (x - width / 2, y - POINT_RADIUS - height, "center"),
        (x - width / 2, y + POINT_RADIUS, "center"),
    ):
        yield LabelPlace((left, top, left + width, top + height), align)
    for ring in RING_DISTANCES:
        for step in range(DIRECTIONS):
            over, down = cos(2 * pi * step / DIRECTIONS), sin(2 * pi * step / DIRECTIONS)
            align = "center" if abs(over) < 0.3 else "left" if over > 0 else "right"
            end = (x + ring * over, y + ring * down)
            left = end[0] - {"left": 0.0, "right": width, "center": width / 2}[align]
            top = end[1] - height / 2 + (height / 2) * (round(down) if align == "center" else down)
            yield LabelPlace((left, top, left + width, top + height), align, end)


def _is_free(point: Point, place: LabelPlace, occupied: list[Box], names: list[Box], lines: list[Line]) -> bool:
    """Whether a label overlaps nothing, lies on no line, and has a leader line that crosses no label."""
    if any(boxes_overlap(place.box, other) for other in occupied) or any(
        line_crosses_box(*line, place.box) for line in lines
    ):
        return False
    return place.end is None or not _crosses_any(point, place.end, names)


def _crosses_any(start: Point, end: Point, boxes: list[Box]) -> bool:
    return any(line_crosses_box(start, end, box) for box in boxes)


def _is_inside(box: Box, size: tuple[float, float]) -> bool:
    return box[0] >= 0 and box[1] >= -LINE_HEIGHT and box[2] <= size[0] + 20 and box[3] <= size[1]


def boxes_overlap(one: Box, other: Box) -> bool:
    """Whether two boxes share more than an edge."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def line_crosses_box(start: Point, end: Point, box: Box) -> bool:
    """Whether a line runs through a box, by clipping (Liang & Barsky, ACM Trans. Graph. 3, 1984)."""
    enters, leaves = 0.0, 1.0
    for axis in (0, 1):
        step, low, high = end[axis] - start[axis], box[axis] - start[axis], box[axis + 2] - start[axis]
        if step == 0:
            if low >= 0 or high <= 0:
                return False
            continue
        first, last = sorted((low / step, high / step))
        enters, leaves = max(enters, first), min(leaves, last)
    return enters < leaves


MAP_WIDTH = 474  # default width of the plot in pixels


@dataclass(frozen=True)
class Trial:
    """One method at one k with its risk and its loss; smaller is better."""

    method: str
    k: int
    risk: float
    loss: float


def find_pareto_front(costs: Sequence[tuple[float, float]]) -> list[bool]:
    """Return for each pair of risk and loss whether no other beats it.

    >>> find_pareto_front([(0.5, 0.1), (0.2, 0.3), (0.5, 0.3)])
    [True, True, False]
    """
    return [not any(a <= risk and b <= loss and (a, b) != (risk, loss) for a, b in costs) for risk, loss in costs]


def chart_trials(
    trials: Sequence[Trial],
    risk: str = "disclosure risk",
    loss: str = "information lost",
    width: int = MAP_WIDTH,
    heights: Sequence[int] = MAP_HEIGHTS,
) -> Chart:
    """Return the map of the trials; `risk` and `loss` are axis titles, the width and possible heights are in pixels."""
    most_risk = 1.08 * max((trial.risk for trial in trials), default=0.0) or 1.0
    most_loss = 1.08 * max((trial.loss for trial in trials), default=0.0) or 1.0
    best = find_pareto_front([(trial.risk, trial.loss) for trial in trials])
    order = sorted(range(len(trials)), key=lambda i: not best[i])  # the front first
    named = [trials[i] for i in order]

    def points(height: int) -> list[Point]:
        return [(width * trial.loss / most_loss, height * (1 - trial.risk / most_risk)) for trial in named]

    for height in heights:  # the smallest at which every label has a place, or the largest
        chosen = place_labels(points(height), [_name_trial(trial) for trial in named], (width, height))
        if None not in chosen:
            break
    rows = [
        _build_row(trial, best[i], point, place)
        for i, trial, point, place in zip(order, named, points(height), chosen, strict=True)
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
    if unnamed := sum(1 for place in chosen if place is None):
        description += f" {plural(unnamed, 'point')} without a label, because there is no space; the table has all."
    return Chart("risk_utility", rows, "Risk and utility of each method and k", description, settings)


def _name_trial(trial: Trial) -> str:
    return f"{make_visible(trial.method)} {trial.k}"


def _build_row(trial: Trial, best: bool, point: Point, place: LabelPlace | None) -> dict[str, object]:
    """Return the values of a point: its label with its place in pixels, and the end of its leader line."""
    row = {"method": make_visible(trial.method), "risk": trial.risk, "loss": trial.loss, "pareto": best}
    if place is None:
        return row
    row |= {"label": _name_trial(trial), "align": place.align, "at_x": place.anchor[0], "at_y": place.anchor[1]}
    if place.end is None:
        return row
    return row | {"led": True, "x": point[0], "y": point[1], "end_x": place.end[0], "end_y": place.end[1]}
