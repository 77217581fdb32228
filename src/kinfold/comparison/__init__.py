"""Comparison: methods side by side on one table, which setting to take, and an R-U map to look at."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kinfold.comparison.grid import run, settings
from kinfold.comparison.outcome import Outcome, Setting
from kinfold.comparison.ranking import Comparison, check_measures, rank
from kinfold.disk import journal
from kinfold.errors import PolicyError
from kinfold.progress import Progress, silent

__all__ = ["Comparison", "Outcome", "Setting", "check_measures", "rank", "run", "save", "settings"]

HEAD = ("method", "k", "t", "risk", "loss", "score", "pareto", "classes", "suppressed", "seconds")


def save(comparison: Comparison, folder: Path) -> None:
    """Write the table, the facts, and the R-U map as a page and as pictures."""
    from kinfold.release.report.chart import draw, draw_png
    from kinfold.release.report.comparison_page import comparison_page

    drawn = comparison.map()
    svg = draw(drawn, "map")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        journal.tell("kept", f"what was compared is kept in '{folder}'")
        (folder / "comparison.csv").write_text(table(comparison), encoding="utf-8")
        (folder / "comparison.json").write_text(json.dumps(comparison.to_dict(), indent=2) + "\n", encoding="utf-8")
        (folder / "map.svg").write_text(svg, encoding="utf-8")
        (folder / "map.png").write_bytes(draw_png(drawn))
        (folder / "comparison.html").write_text(comparison_page(comparison.to_dict(), svg), encoding="utf-8")
    except OSError as error:
        raise PolicyError(f"cannot write '{folder}': {error.strerror}", fix="choose another folder") from error


def table(comparison: Comparison) -> str:
    """Return the settings as CSV, from the best score to the worst."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(rows(comparison))
    return text.getvalue()


def rows(comparison: Comparison) -> Sequence[tuple[Any, ...]]:
    """Return the settings as rows under `HEAD`."""
    return [
        (
            each.setting.method,
            each.setting.k,
            "" if each.setting.t is None else each.setting.t,
            f"{each.risk:.6g}",
            f"{each.loss:.6g}",
            f"{each.score:.4g}",
            "yes" if each.best else "",
            each.measures["classes"],
            each.measures["suppressed"],
            each.measures["seconds"],
        )
        for each in comparison.ranked
    ]


def compare(
    source: Any,
    policy: Any,
    *,
    methods: Sequence[str],
    k: Sequence[int],
    t: Sequence[float] = (),
    progress: Progress = silent,
) -> Comparison:
    """Run methods at several k (and t) on one table, a path or a frame, and rank them: a `Comparison`.

    `rank`, `run` and `save` of this package are the steps one by one: other measures, results that are kept, pages.
    """
    from kinfold.flow import rows_of
    from kinfold.request.policy import Policy

    rows_of(source)  # what is no table is an error here, not in a worker
    return rank(run(source, Policy.of(policy), settings(methods, k, t), progress=progress))
