"""Time-to-quality curves of the refinement as a chart: the loss above the best found, against seconds, for each k.

python -m benchmarks.curves    draws docs/charts/refinement.svg from what `python -m benchmarks.refine` has measured
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.refine import RESULTS, ROOT

CHART = Path(__file__).with_name("curves.json")
PICTURE = ROOT / "docs" / "charts" / "refinement.svg"


def rows(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a mark, and one for the end of each run, which the exact end may have brought down."""
    made = []
    for each in curves:
        for _, seconds, loss in [*each["curve"], [0, each["seconds"], each["end"]]]:
            above = 100 * (loss / each["end"] - 1)
            made.append({"data": each["data"], "k": f"k = {each['k']}", "seconds": max(seconds, 0.1), "above": above})
    return made


def draw(curves: list[dict[str, Any]]) -> str:
    """Return the chart as SVG."""
    import vl_convert

    spec = json.loads(CHART.read_text())
    spec["data"] = {"values": rows(curves)}
    return vl_convert.vegalite_to_svg(spec, vl_version="6.4", allowed_base_urls=[])


def main() -> None:
    kept = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("curve_*.json"))]
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(kept))


if __name__ == "__main__":
    main()
