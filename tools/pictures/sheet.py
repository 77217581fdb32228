"""A sheet to draw on: shapes at places, SVG out. Dark on white, so that a page at night and the repository show it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

INK, SOFT, LINE, PAPER = "#1d2830", "#4d5860", "#d5dade", "#ffffff"
ACCENT, SAND, EDGE, ALARM = "#175a6b", "#e0c796", "#a9884a", "#a8361f"
PALE = "#e3eef1"
SHADES = ("#175a6b", "#a8361f", "#8c6a2f", "#7a5195", "#4f7d3a", "#c2638d", "#5b6770", "#2f7fb8", "#b8862b", "#3f8f7a")
FONT = "Helvetica Neue, Arial, Liberation Sans, DejaVu Sans, sans-serif"

Place = tuple[float, float]


@dataclass
class Sheet:
    """Width, height, words for those who do not see it, and what was drawn so far."""

    width: float
    height: float
    title: str
    drawn: list[str] = field(default_factory=list)

    def box(self, at: Place, size: Place, fill: str = PAPER, edge: str = LINE, round: float = 4) -> None:  # noqa: A002
        """Draw a rectangle from its upper left corner."""
        self.drawn.append(
            f'<rect x="{at[0]:.5g}" y="{at[1]:.5g}" width="{size[0]:.5g}" height="{size[1]:.5g}" rx="{round:g}" '
            f'fill="{fill}" stroke="{edge}"/>'
        )

    def dot(self, at: Place, radius: float = 4, fill: str = ACCENT, edge: str = "none") -> None:
        """Draw a circle."""
        self.drawn.append(f'<circle cx="{at[0]:.5g}" cy="{at[1]:.5g}" r="{radius:g}" fill="{fill}" stroke="{edge}"/>')

    def line(self, a: Place, b: Place, colour: str = SOFT, width: float = 1, dashed: bool = False) -> None:
        """Draw a straight line."""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self.drawn.append(
            f'<line x1="{a[0]:.5g}" y1="{a[1]:.5g}" x2="{b[0]:.5g}" y2="{b[1]:.5g}" stroke="{colour}" '
            f'stroke-width="{width:g}"{dashes}/>'
        )

    def arrow(self, a: Place, b: Place, colour: str = SOFT) -> None:
        """Draw a line with a head at its end."""
        self.drawn.append(
            f'<line x1="{a[0]:.5g}" y1="{a[1]:.5g}" x2="{b[0]:.5g}" y2="{b[1]:.5g}" stroke="{colour}" '
            'stroke-width="1.3" marker-end="url(#head)"/>'
        )

    def outline(self, points: Iterable[Place], fill: str = "none", edge: str = ACCENT, width: float = 1.5) -> None:
        """Draw a polygon, or with two fills an area."""
        path = " ".join(f"{x:.5g},{y:.5g}" for x, y in points)
        self.drawn.append(
            f'<polygon points="{path}" fill="{fill}" fill-opacity=".16" stroke="{edge}" stroke-width="{width:g}" '
            'stroke-linejoin="round"/>'
        )

    def curve(self, points: Iterable[Place], colour: str = ACCENT, width: float = 2) -> None:
        """Draw a line through points."""
        path = " ".join(f"{x:.5g},{y:.5g}" for x, y in points)
        self.drawn.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>')

    def words(self, at: Place, text: str, **look: object) -> None:
        """Write a line of text; `look` may say size, colour, anchor (start, middle, end) and bold."""
        anchor = look.get("anchor", "start")
        weight = ' font-weight="700"' if look.get("bold") else ""
        self.drawn.append(
            f'<text x="{at[0]:.5g}" y="{at[1]:.5g}" font-size="{look.get("size", 12)}" '
            f'fill="{look.get("colour", INK)}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
        )

    def lines(self, at: Place, texts: Sequence[str], step: float = 16, **look: object) -> None:
        """Write some lines below each other."""
        for row, text in enumerate(texts):
            self.words((at[0], at[1] + row * step), text, **look)

    def table(
        self,
        at: Place,
        rows: Sequence[Sequence[str]],
        widths: Sequence[float],
        fills: Sequence[str] = (),
        marks: Collection[tuple[int, int]] = (),
    ) -> None:
        """Write a table, heads first; `fills` colours rows after the head, `marks` are cells in bold (row, column)."""
        for r, row in enumerate(rows):
            y = at[1] + 22 * r
            if r and r - 1 < len(fills) and fills[r - 1]:
                self.box((at[0] - 8, y - 15), (sum(widths) + 8, 22), fills[r - 1], "none", 0)
            x = at[0]
            for c, (cell, width) in enumerate(zip(row, widths, strict=True)):
                held = (r - 1, c) in marks
                self.words((x, y), cell, colour=SOFT if not r else ALARM if held else INK, bold=held, size=12)
                x += width
        self.line((at[0] - 8, at[1] + 7), (at[0] + sum(widths), at[1] + 7), INK)

    def svg(self) -> str:
        """Return the picture."""
        head = (
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="{SOFT}"/></marker></defs>'
        )
        body = "\n".join(self.drawn)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" role="img" font-family="{FONT}">\n'
            f"<title>{escape(self.title)}</title>\n{head}\n"
            f'<rect width="100%" height="100%" fill="{PAPER}"/>\n{body}\n</svg>\n'
        )
