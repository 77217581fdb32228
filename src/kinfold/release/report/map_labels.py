"""Names on a map: where each one stands so that none touches another, or a point that is not its own.

Points that lie within `CLOSE` pixels of each other have their names in one block, line by line. Blocks are placed one
after the other. Each takes the first free place: beside its point to the right, left, above or below, then farther and
farther around it, with a line that leads there and runs through no name, and through no point if that can be. Where one
finds no place the map grows taller and all are placed anew; at the tallest, one without a place is left out.
Boxes are upper guesses of what a browser draws. Cost: blocks times places times names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import cos, hypot, pi, sin

from kinfold.release.report.wording import text_width

LETTER, LINE, RADIUS = 6.4, 13.0, 9.0  # an upper guess of a letter's width; the height of a line; a point and some air
RINGS = tuple(range(18, 260, 12))  # distances of a name that does not stand beside its point
DIRECTIONS = 24
CLOSE = 12.0  # pixels
HEIGHTS = (326, 400, 480, 560)

Point = tuple[float, float]
Line = tuple[Point, Point]
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Spot:
    """Where a name stands, which end of it is at its point, and where the line to that ends, if it needs one."""

    box: Box
    align: str = "left"
    end: Point | None = None

    @property
    def anchor(self) -> Point:
        """The end of the text that is at its point, or the middle of it where it is above or below."""
        left, top, right, bottom = self.box
        x = {"left": left, "right": right, "center": (left + right) / 2}[self.align]
        return x, (top + bottom) / 2


def places(
    points: Callable[[int], Sequence[Point]], names: Sequence[str], width: float
) -> tuple[int, list[Spot | None]]:
    """Return the least height at which every name has its place, and those places; `points` are those of a height."""
    found: list[Spot | None] = []
    for height in HEIGHTS:
        found = placed(points(height), names, (width, float(height)))
        if None not in found:
            break
    return height, found


def placed(points: Sequence[Point], names: Sequence[str], size: tuple[float, float]) -> list[Spot | None]:
    """Return where each name stands on a map of this size, None where there is no room."""
    dots = [(x - RADIUS, y - RADIUS, x + RADIUS, y + RADIUS) for x, y in points]
    taken: list[Box] = []
    lines: list[Line] = []
    chosen: list[Spot | None] = [None] * len(points)
    for block in _blocks(points):
        point, own = points[block[0]], [dots[i] for i in block]
        shape = LETTER * max(text_width(names[i]) for i in block), LINE * len(block)
        free = (
            place
            for place in _tried(point, shape)
            if _inside(place.box, size) and _is_free(point, place, [*dots, *taken], taken, lines)
        )
        place = _clearest(point, free, [dot for dot in dots if not any(touch(dot, each) for each in own)])
        if place is not None:
            taken.append(place.box)
            lines += [(point, place.end)] if place.end else []
            for line, i in enumerate(block):
                chosen[i] = _line(place, line)
    return chosen


def _blocks(points: Sequence[Point]) -> list[list[int]]:
    """Put the points together that lie as good as on each other: each with the first one that is close to it."""
    found: list[list[int]] = []
    for number, (x, y) in enumerate(points):
        near = (block for block in found if hypot(points[block[0]][0] - x, points[block[0]][1] - y) < CLOSE)
        block = next(near, None)
        if block is None:
            found.append([number])
        else:
            block.append(number)
    return found


def _line(block: Spot, line: int) -> Spot:
    """Return the place of one name in its block; the first one has the line that leads to it."""
    left, top, right, _ = block.box
    box = (left, top + line * LINE, right, top + (line + 1) * LINE)
    return Spot(box, block.align, None if line else block.end)


def _clearest(point: Point, free: Iterator[Spot], dots: list[Box]) -> Spot | None:
    """Return the first free place that is led to through no other point, or the first one at all."""
    first = None
    for place in free:
        first = first or place
        if place.end is None or not _hits(point, place.end, dots):
            return place
    return first


def _tried(point: Point, shape: tuple[float, float]) -> Iterator[Spot]:
    """Yield the places around a point for a block of this width and height, the nearest first."""
    (x, y), (width, height) = point, shape
    for left, top, align in (
        (x + RADIUS, y - height / 2, "left"),
        (x - RADIUS - width, y - height / 2, "right"),
        (x - width / 2, y - RADIUS - height, "center"),
        (x - width / 2, y + RADIUS, "center"),
    ):
        yield Spot((left, top, left + width, top + height), align)
    for ring in RINGS:
        for step in range(DIRECTIONS):
            over, down = cos(2 * pi * step / DIRECTIONS), sin(2 * pi * step / DIRECTIONS)
            align = "center" if abs(over) < 0.3 else "left" if over > 0 else "right"
            end = (x + ring * over, y + ring * down)
            left = end[0] - {"left": 0.0, "right": width, "center": width / 2}[align]
            top = end[1] - height / 2 + (height / 2) * (round(down) if align == "center" else down)
            yield Spot((left, top, left + width, top + height), align, end)


def _is_free(point: Point, place: Spot, taken: list[Box], names: list[Box], lines: list[Line]) -> bool:
    """Whether a name would touch nothing, stand on no line, and be led to through no other name."""
    if any(touch(place.box, other) for other in taken) or any(crosses(*line, place.box) for line in lines):
        return False
    return place.end is None or not _hits(point, place.end, names)


def _hits(start: Point, end: Point, boxes: list[Box]) -> bool:
    return any(crosses(start, end, box) for box in boxes)


def _inside(box: Box, size: tuple[float, float]) -> bool:
    return box[0] >= 0 and box[1] >= -LINE and box[2] <= size[0] + 20 and box[3] <= size[1]


def touch(one: Box, other: Box) -> bool:
    """Whether two boxes share more than an edge."""
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def crosses(start: Point, end: Point, box: Box) -> bool:
    """Whether a line runs through a box: it is cut where it enters and leaves, side by side (Liang & Barsky 1984)."""
    enters, leaves = 0.0, 1.0
    for axis in (0, 1):
        step, low, high = end[axis] - start[axis], box[axis] - start[axis], box[axis + 2] - start[axis]
        if step == 0:
            if low >= 0 or high <= 0:
                return False
            continue
        near, far = sorted((low / step, high / step))
        enters, leaves = max(enters, near), min(leaves, far)
    return enters < leaves
