"""The charts of the method pages, drawn from what the package computes.

python -m tools.charts    writes docs/charts/approximate.svg: the loss of the approximate method against dependence
"""

from __future__ import annotations

import re
from pathlib import Path

from kinfold.papers import make_pictures
from kinfold.papers.exhibits import plot_trials
from kinfold.papers.paper_001 import measure_dependence
from kinfold.release.report.chart import draw

FOLDER = Path(__file__).parents[1] / "docs" / "charts"


def main() -> None:
    """Draw."""
    runs = measure_dependence()
    axes = ("noise beside two common factors", "SSE/SST")
    made = make_pictures(
        plot_trials("Loss against dependence", {"20,000 records, 9 attributes, k = 20": runs}, "loss", axes)
    )
    (FOLDER / "approximate.svg").write_text(_by_itself(draw(made[0], "dependence")), "utf-8")


def _by_itself(svg: str) -> str:
    """Return the element of a page as a picture of its own: half as large again, on white."""
    width, height = (float(side) for side in re.findall(r"[\d.]+", svg[: svg.index(">")].partition("viewBox=")[2])[2:4])
    sized = svg.replace("<svg ", f'<svg width="{1.5 * width:g}" height="{1.5 * height:g}" ', 1)
    return sized.replace("</desc>", '</desc><rect width="100%" height="100%" fill="white"/>', 1)


if __name__ == "__main__":
    main()
