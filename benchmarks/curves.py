"""Time-to-quality curves of the refinement as a chart: the loss above the best found, against seconds, for each k.

    python -m benchmarks.curves [seconds]    refines the files of the literature, draws docs/charts/refinement.svg

Curves are kept in `results/` as they come, and drawn from there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.refine import FILES, RESULTS, ROOT, load
from kinfold.partition import mdav
from kinfold.partition.refine import improve

CHART = Path(__file__).with_name("curves.json")
PICTURE = ROOT / "docs" / "charts" / "refinement.svg"


def curve(name: str, k: int, seconds: float) -> dict[str, Any]:
    """Refine MDAV's classes for so long; return the loss whenever it fell."""
    x = load(name)
    total = float((x**2).sum())
    found = improve(x, mdav(x, k), k, seconds=seconds)
    marks = [[mark.steps, mark.seconds, 100 * mark.cost / total] for mark in found.history]
    return {"data": name, "k": k, "curve": marks, "final": 100 * found.cost / total, "steps": found.steps}


def rows(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a mark, and one at the end of each run."""
    made = []
    for each in curves:
        last = max(each["curve"][-1][1], 10.0)
        for _, seconds, loss in [*each["curve"], [0, last, each["final"]]]:
            above = 100 * (loss / each["final"] - 1)
            made.append({"data": each["data"], "k": f"k = {each['k']}", "seconds": max(seconds, 0.1), "above": above})
    return made


def draw(curves: list[dict[str, Any]]) -> str:
    """Return the chart as SVG."""
    import vl_convert

    spec = json.loads(CHART.read_text())
    spec["data"] = {"values": rows(curves)}
    return vl_convert.vegalite_to_svg(spec, vl_version="6.4", allowed_base_urls=[])


def main(seconds: float = 60.0) -> None:
    RESULTS.mkdir(exist_ok=True)
    for name in FILES:
        for k in (3, 5, 10):
            found = curve(name, k, seconds)
            (RESULTS / f"curve_{name}_{k}.json").write_text(json.dumps(found))
            print(f"{name} {k}: {found['final']:.4f}")
    kept = [json.loads(path.read_text()) for path in sorted(RESULTS.glob("curve_*.json"))]
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(kept))


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
