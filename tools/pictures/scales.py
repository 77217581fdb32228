"""From numbers to places on a sheet: an axis, a panel with two of them, the hull of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tools.pictures.sheet import LINE, SOFT, Place, Sheet


@dataclass(frozen=True)
class Panel:
    """A rectangle of a sheet in which numbers have places."""

    at: Place
    size: Place
    x: tuple[float, float]
    y: tuple[float, float]

    def __call__(self, x: float, y: float) -> Place:
        """Return the place of a point."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.at[0] + across * self.size[0], self.at[1] + (1 - up) * self.size[1]

    def frame(self, sheet: Sheet, below: str = "", beside: str = "", head: str = "") -> None:
        """Draw the two axes, and write what they are."""
        (left, top), (width, height) = self.at, self.size
        sheet.line((left, top + height), (left + width, top + height), SOFT)
        sheet.line((left, top), (left, top + height), LINE)
        if below:
            sheet.words((left + width, top + height + 18), f"{below} →", anchor="end", colour=SOFT, size=11)
        if beside:
            sheet.words((left, top - 8), f"↑ {beside}", colour=SOFT, size=11)
        if head:
            sheet.words((left + width, top - 8), head, anchor="end", bold=True)


def hull(points: Sequence[Place]) -> list[Place]:
    """Return the corners of the convex hull, anticlockwise."""
    rest = sorted(set(points))
    if len(rest) < 3:
        return rest

    def half(order: Sequence[Place]) -> list[Place]:
        made: list[Place] = []
        for point in order:
            while len(made) > 1 and _turn(made[-2], made[-1], point) <= 0:
                made.pop()
            made.append(point)
        return made[:-1]

    return half(rest) + half(rest[::-1])


def _turn(a: Place, b: Place, c: Place) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def around(points: Sequence[Place], room: float = 7) -> list[Place]:
    """Return a hull that leaves some room around its points."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    return hull([(x + room * float(np.cos(a)), y + room * float(np.sin(a))) for x, y in points for a in angles])
