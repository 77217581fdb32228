"""Comparison: run several methods on one table, rank the settings, and draw an R-U map."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kinfold.comparison.grid import Outcome, Setting, build_grid, run_grid
from kinfold.comparison.ranking import Comparison, check_measures, rank
from kinfold.disk import folders
from kinfold.errors import PolicyError
from kinfold.progress import Progress, no_progress

__all__ = ["Comparison", "Outcome", "Setting", "build_grid", "check_measures", "rank", "run_grid", "save"]

CSV_HEADER = ("method", "k", "t", "risk", "loss", "score", "pareto", "classes", "suppressed", "seconds")


def save(comparison: Comparison, folder: Path) -> None:
    """Write the table as CSV, the facts as JSON, and the R-U map as a page, SVG and PNG."""
    from kinfold.release.report.chart import draw, draw_png
    from kinfold.release.report.page import write_comparison_page

    chart = comparison.map()
    svg = draw(chart, "map")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folders.record_event("kept", f"the comparison is in '{folder}'")
        (folder / "comparison.csv").write_text(to_csv(comparison), encoding="utf-8")
        (folder / "comparison.json").write_text(json.dumps(comparison.to_dict(), indent=2) + "\n", encoding="utf-8")
        (folder / "map.svg").write_text(svg, encoding="utf-8")
        (folder / "map.png").write_bytes(draw_png(chart))
        (folder / "comparison.html").write_text(write_comparison_page(comparison.to_dict(), svg), encoding="utf-8")
    except OSError as error:
        raise PolicyError(f"cannot write '{folder}': {error.strerror}", fix="choose another folder") from error


def to_csv(comparison: Comparison) -> str:
    """Return the settings as CSV, from the best score to the worst."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for each in comparison.ranked:
        setting, facts = each.setting, [each.measures[name] for name in CSV_HEADER[-3:]]
        numbers = (f"{each.risk:.6g}", f"{each.loss:.6g}", f"{each.score:.4g}")
        writer.writerow((each.method, setting.k, setting.t, *numbers, "yes" if each.best else "", *facts))
    return text.getvalue()


def compare(
    source: Any,
    policy: Any,
    *,
    methods: Sequence[str],
    k: Sequence[int],
    t: Sequence[float] = (),
    progress: Progress = no_progress,
) -> Comparison:
    """Run methods at several k (and t) on one table, a path or a frame, and return a ranked `Comparison`.

    The steps are functions of this package: `build_grid`, `run_grid`, `rank` and `save`. Use them for other measures,
    for cached results and for pages.
    """
    from kinfold.pipeline import resolve_source
    from kinfold.policy.model import Policy

    resolve_source(source)  # raises here if it is not a table, not in a worker
    return rank(run_grid(source, Policy.of(policy), build_grid(methods, k, t), progress=progress))
