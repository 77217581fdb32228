"""The page: verdicts set as the papers set their tables, and the papers' figures drawn anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinfold.disk.exchange import naming
from kinfold.errors import PolicyError
from kinfold.release.report.chart import Picture, draw
from kinfold.release.report.reproduction_page import reproduction_page
from kinfold.reproduction.cell_verdicts import number, shown
from kinfold.reproduction.expectation import NO_NUMBERS

if TYPE_CHECKING:
    from kinfold.reproduction.cell_verdicts import Comparandum
    from kinfold.reproduction.expectation import Plot
    from kinfold.reproduction.papers_run import Reproduced, Reproduction


def save(found: Reproduction, path: Path) -> None:
    """Write the page."""
    text = page(found)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with naming(path, f"'{path}' is written"):
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PolicyError(f"cannot write '{path}': {error.strerror}", fix="choose another place") from error


def page(found: Reproduction) -> str:
    """Return the page as HTML."""
    facts = found.to_dict()
    charts: dict[str, list[str]] = {}
    for (paper, exhibits), told in zip(found.papers, facts["papers"], strict=True):
        for each, shown_ in zip(exhibits, told["exhibits"], strict=True):
            name = f"{paper.number}-{each.exhibit.place}"
            grid = None if each.exhibit.source == NO_NUMBERS else _grid(each.cells)
            shown_ |= {"name": name, "grid": grid, "reasons": _reasons(each)}
            charts[name] = list(_drawn(each, f"paper-{paper.number}-{len(charts)}"))
    return reproduction_page(facts, charts)


def _grid(cells: Sequence[Comparandum]) -> dict[str, Any]:
    """Return columns and rows as the paper sets them; of claims that share no columns, one below the other."""
    columns = list(dict.fromkeys(cell.column for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    if 2 * len(cells) <= len(columns) * len(rows) or len(columns) == 1 or len(rows) == 1:
        names = [cell.row if cell.column in ("value", "tuple") else f"{cell.row}: {cell.column}" for cell in cells]
        return {"columns": [], "rows": [(name, [_told(cell)]) for name, cell in zip(names, cells, strict=True)]}
    places = {(cell.row, cell.column): _told(cell) for cell in cells}
    return {"columns": columns, "rows": [(row, [places.get((row, column)) for column in columns]) for row in rows]}


def _told(cell: Comparandum) -> dict[str, Any]:
    return {
        "theirs": cell.theirs or "nothing",
        "ours": "" if cell.ours is None else _ours(cell),
        "verdict": cell.verdict,
        "failed": cell.failed,
    }


def _ours(cell: Comparandum) -> str:
    if cell.verdict == "match" or number(cell.theirs) is None or isinstance(cell.ours, str | bool | None):
        return shown("" if cell.ours is None else cell.ours, cell.theirs)
    return f"{float(cell.ours):.4g}" if abs(cell.ours) < 1e4 else f"{cell.ours:,.0f}"


def _reasons(found: Reproduced) -> list[str]:
    """Return why cells do not match, how to read the exhibit, and what to know of this run, each once."""
    apart = [cell.reason for cell in found.cells if cell.verdict != "match"]
    sentences = dict.fromkeys([*apart, found.exhibit.reading, found.worked.note])
    return [text[0].upper() + text[1:] for text in sentences if text]


def _drawn(found: Reproduced, ident: str) -> Iterator[str]:
    for plot in found.worked.plots:
        for place, picture in enumerate(pictures(plot)):
            yield draw(picture, f"{ident}-{place}")


def pictures(plot: Plot) -> list[Picture]:
    """Return a figure as pictures, one for each of its panels."""
    panels = list(dict.fromkeys(str(point.get("panel", "")) for point in plot.points))
    return [_picture(plot, panel, [p for p in plot.points if str(p.get("panel", "")) == panel]) for panel in panels]


def _picture(plot: Plot, panel: str, points: Sequence[Mapping[str, Any]]) -> Picture:
    title = f"{plot.title}: {panel}" if panel else plot.title
    settings: dict[str, object] = {"title.text": panel or plot.title}
    if plot.chart == "reproduced_lattice":
        return Picture(plot.chart, _with_lines(points), title, _described(points), settings)
    settings["encoding.x.title"] = plot.x or panel
    settings["encoding.y.title" if plot.chart == "reproduced_matrix" else "title.subtitle"] = plot.y
    if plot.log:
        settings |= {"encoding.y.scale": {"type": "log"}, "encoding.y.axis": {"values": _powers(points)}}
    return Picture(plot.chart, points, title, _described(points), settings)


def _powers(points: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the powers of ten that an axis over these points marks.

    >>> _powers([{"y": 0.07}, {"y": 51.0}])
    [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    logs = [log10(point["y"]) for point in points if point["y"] > 0]
    return [10.0**power for power in range(floor(min(logs)), ceil(max(logs)) + 1)]


def _with_lines(points: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Return the nodes of a lattice and, before them, the lines to the nodes above."""
    ends = [(point, end) for point in points for end in point["lines"]]
    lines = [{"kind": "line", "x": p["x"], "y": p["y"], "x2": end[0], "y2": end[1]} for p, end in ends]
    nodes = [{"kind": "node", **{key: point[key] for key in ("x", "y", "label", "below")}} for point in points]
    return [*lines, *nodes]


def _described(points: Sequence[Mapping[str, Any]]) -> str:
    series = dict.fromkeys(str(point["series"]) for point in points if "series" in point)
    return f"{len(points)} points" + (f" of {', '.join(series)}." if series else ".")
