"""The papers: compute their printed tables and figures again, judge each cell, and write a page with all of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from kinfold.disk.folders import protect_rename
from kinfold.errors import PolicyError, report_failed_write
from kinfold.papers.data import PaperData
from kinfold.papers.exhibits import (
    CellVerdict,
    Exhibit,
    ExhibitResult,
    Paper,
    Plot,
    judge_cell,
    mark_not_computable,
    parse_number,
)
from kinfold.progress import Progress, no_progress
from kinfold.release.report.chart import Chart, draw
from kinfold.release.report.page import write_reproduction_page

PAPERS = ("000", "001", "002", "003", "004")
VERDICTS = ("match", "close", "differs", "not-computable")
MISSING_FILE_PREFIX = "needs "
SKIPPED_REASON = "skipped in a quick run: run without --quick"
STAND_IN_REASON = "the data of the paper is not available; our value is of a generated stand-in"

CAUSES = {
    "match": "`match`: equal in every printed digit or word",
    "close": "`close`: within 3 %, or one unit of the last decimal",
    "misprint": "`differs`: the print or the claim is wrong, and the correct value is known",
    "differs": "`differs`: the printed description does not give the printed value",
    "guard": "`not-computable`, a guard: chosen to come out, or a value that only we have",
    "stand-in": "`not-computable`: the data is not available, and our value is of a stand-in",
    "no number": "`not-computable`: a drawing or an algorithm without numbers",
    "not stated": "`not-computable`: the paper does not describe how",
    "not run": "`not-computable`: a file is missing, or the run is a quick one",
}


@dataclass(frozen=True, eq=False)
class ExhibitOutcome:
    """One exhibit with the verdicts on its cells and the result of its computation."""

    exhibit: Exhibit
    cells: Sequence[CellVerdict]
    result: ExhibitResult
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """The number of cells by verdict."""
        counts = Counter(cell.verdict for cell in self.cells)
        return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}

    @property
    def verdict(self) -> str:
        """The worst verdict of a cell; not-computable only if all cells are."""
        known = [verdict for verdict in VERDICTS[:3] if verdict in self.counts]
        return known[-1] if known else "not-computable"

    @property
    def failed(self) -> int:
        """The number of cells that fail."""
        return sum(cell.failed for cell in self.cells)

    @property
    def remarks(self) -> list[str]:
        """The reasons of cells that do not match, and the notes on the exhibit and on this run."""
        reasons = [cell.reason for cell in self.cells if cell.verdict != "match"]
        texts = dict.fromkeys([*reasons, self.exhibit.reading, self.result.note])
        return [text[0].upper() + text[1:] for text in texts if text]

    @property
    def causes(self) -> Counter[str]:
        """The number of cells by cause, including matches."""
        return Counter(CAUSES[_find_cause(self.exhibit, cell)] for cell in self.cells)

    def to_dict(self) -> dict[str, Any]:
        """Return the exhibit as a dictionary for JSON."""
        return {
            "place": self.exhibit.place,
            "title": self.exhibit.title,
            "data": self.exhibit.source,
            "stand_in": self.exhibit.stand_in,
            "verdict": self.verdict,
            "counts": self.counts,
            "failed": self.failed,
            "reading": self.exhibit.reading,
            "note": self.result.note,
            "seconds": round(self.seconds, 3),
            "items": [asdict(cell) for cell in self.cells],
        }


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The papers with the outcomes of their exhibits."""

    papers: Sequence[tuple[Paper, Sequence[ExhibitOutcome]]]
    quick: bool
    data: str | None
    seconds: float

    @property
    def outcomes(self) -> Iterator[ExhibitOutcome]:
        """The outcomes of all exhibits."""
        return (outcome for _, outcomes in self.papers for outcome in outcomes)

    @property
    def counts(self) -> dict[str, int]:
        """The number of cells by verdict."""
        return {verdict: sum(outcome.counts.get(verdict, 0) for outcome in self.outcomes) for verdict in VERDICTS}

    @property
    def causes(self) -> dict[str, dict[str, int]]:
        """The number of cells by cause and paper."""
        by_paper = {
            paper.number: sum((outcome.causes for outcome in outcomes), Counter[str]())
            for paper, outcomes in self.papers
        }
        return {
            cause: {number: counts[cause] for number, counts in by_paper.items()}
            for cause in CAUSES.values()
            if any(counts[cause] for counts in by_paper.values())
        }

    @property
    def failed(self) -> int:
        """The number of cells that fail."""
        return sum(outcome.failed for outcome in self.outcomes)

    def to_dict(self) -> dict[str, Any]:
        """Return the reproduction as a dictionary for JSON."""
        return {
            "counts": self.counts,
            "causes": self.causes,
            "failed": self.failed,
            "quick": self.quick,
            "data": self.data,
            "seconds": round(self.seconds, 3),
            "papers": [
                {
                    "paper": paper.number,
                    "reference": paper.reference,
                    "exhibits": [outcome.to_dict() for outcome in outcomes],
                }
                for paper, outcomes in self.papers
            ],
        }


def reproduce(
    papers: Sequence[str] = PAPERS, data: Path | None = None, quick: bool = False, progress: Progress = no_progress
) -> Reproduction:
    """Compute every exhibit of the papers and judge each of its cells."""
    began = time.perf_counter()
    if data is not None and not data.is_dir():
        raise PolicyError(f"no such folder: '{data}'", fix="name the folder of the public files, or omit --data")
    chosen = [load_paper(number) for number in papers]
    paper_data = PaperData(data, quick)
    total, done = sum(len(paper.exhibits) for paper in chosen), 0
    results: list[tuple[Paper, list[ExhibitOutcome]]] = []
    for paper in chosen:
        results.append((paper, []))
        for exhibit in paper.exhibits:
            progress(done, total)
            results[-1][1].append(reproduce_exhibit(exhibit, paper_data))
            done += 1
    return Reproduction(results, quick, str(data) if data else None, time.perf_counter() - began)


def load_paper(number: str) -> Paper:
    """Return a paper by its number."""
    if number not in PAPERS:
        raise PolicyError(f"there is no paper '{number}'", fix=f"name one of {', '.join(PAPERS)}")
    paper: Paper = import_module(f"kinfold.papers.paper_{number}").PAPER
    return paper


def reproduce_exhibit(exhibit: Exhibit, data: PaperData) -> ExhibitOutcome:
    """Compute one exhibit and judge its cells; cells that cannot be computed have a reason."""
    began = time.perf_counter()
    reason = SKIPPED_REASON if exhibit.long and data.quick else ""
    if missing := data.find_missing(exhibit.needs):
        reason = f"{MISSING_FILE_PREFIX}{', '.join(missing)}: name the folder with --data"
    if reason:
        cells = [mark_not_computable(key, expected, reason) for key, expected in exhibit.expected.items()]
        return ExhibitOutcome(exhibit, cells, ExhibitResult({}), 0.0)
    computed = exhibit.compute(data)
    result = computed if isinstance(computed, ExhibitResult) else ExhibitResult(computed)
    return ExhibitOutcome(exhibit, list(_judge_cells(exhibit, result)), result, time.perf_counter() - began)


def _judge_cells(exhibit: Exhibit, result: ExhibitResult) -> Iterator[CellVerdict]:
    for key, expected in exhibit.expected.items():
        ours = result.values.get(key)
        if exhibit.stand_in and parse_number(expected.printed) is not None and expected.due != "guard":
            yield mark_not_computable(key, expected, expected.why or STAND_IN_REASON, ours)
        elif ours is None:
            yield mark_not_computable(key, expected, expected.why or "the paper does not describe how")
        else:
            yield judge_cell(key, expected, ours)


def _find_cause(exhibit: Exhibit, cell: CellVerdict) -> str:
    """Return the key of the cause in CAUSES."""
    if cell.verdict != "not-computable":
        wrong = cell.verdict == "differs" and exhibit.expected[cell.row, cell.column].reading is not None
        return "misprint" if wrong else cell.verdict
    if cell.guard:
        return "guard"
    if not exhibit.has_values:
        return "no number"
    if cell.ours is not None:
        return "stand-in"
    not_run = cell.reason == SKIPPED_REASON or cell.reason.startswith(MISSING_FILE_PREFIX)
    return "not run" if not_run else "not stated"


def save_page(reproduction: Reproduction, path: Path) -> None:
    """Write the page with all exhibits as HTML."""
    text = render_page(reproduction)
    with report_failed_write(path, "choose another place"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with protect_rename(path, f"'{path}' is written"):
            path.write_text(text, encoding="utf-8")


def render_page(reproduction: Reproduction) -> str:
    """Return the page as HTML."""
    facts = reproduction.to_dict()
    charts: dict[str, list[str]] = {}
    for (paper, outcomes), paper_facts in zip(reproduction.papers, facts["papers"], strict=True):
        for outcome, exhibit_facts in zip(outcomes, paper_facts["exhibits"], strict=True):
            name = f"{paper.number}-{outcome.exhibit.place}"
            grid = _arrange_cells(outcome.cells) if outcome.exhibit.has_values else None
            exhibit_facts |= {"name": name, "grid": grid, "remarks": outcome.remarks}
            ident = f"paper-{paper.number}-{len(charts)}"
            pictures = [picture for plot in outcome.result.plots for picture in make_pictures(plot)]
            charts[name] = [draw(picture, f"{ident}-{i}") for i, picture in enumerate(pictures)]
    return write_reproduction_page(facts, charts)


def _arrange_cells(cells: Sequence[CellVerdict]) -> dict[str, Any]:
    """Return the columns and rows of a table, or a list of rows if few cells share columns."""
    columns = list(dict.fromkeys(cell.column for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    if 2 * len(cells) <= len(columns) * len(rows) or len(columns) == 1 or len(rows) == 1:
        return {"columns": [], "rows": [(cell.label, [cell]) for cell in cells]}
    by_key = {(cell.row, cell.column): cell for cell in cells}
    return {"columns": columns, "rows": [(row, [by_key.get((row, column)) for column in columns]) for row in rows]}


def make_pictures(plot: Plot) -> list[Chart]:
    """Return one picture per panel of a figure."""
    panels: dict[str, list[Mapping[str, Any]]] = {}
    for point in plot.points:
        panels.setdefault(str(point.get("panel", "")), []).append(point)
    return [_make_picture(plot, panel, points) for panel, points in panels.items()]


def _make_picture(plot: Plot, panel: str, points: Sequence[Mapping[str, Any]]) -> Chart:
    title = f"{plot.title}: {panel}" if panel else plot.title
    series = dict.fromkeys(str(point["series"]) for point in points if "series" in point)
    description = f"{len(points)} points" + (f" of {', '.join(series)}." if series else ".")
    settings: dict[str, object] = {"title.text": panel or plot.title}
    if plot.chart == "reproduced_lattice":
        return Chart(plot.chart, _add_lines(points), title, description, settings)
    settings["encoding.x.title"] = plot.x or panel
    settings["encoding.y.title" if plot.chart == "reproduced_matrix" else "title.subtitle"] = plot.y
    if plot.log:
        settings |= {"encoding.y.scale": {"type": "log"}, "encoding.y.axis": {"values": _list_powers(points)}}
    return Chart(plot.chart, points, title, description, settings)


def _list_powers(points: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the powers of ten on a logarithmic axis.

    >>> _list_powers([{"y": 0.07}, {"y": 51.0}])
    [0.01, 0.1, 1.0, 10.0, 100.0]
    """
    logs = [log10(point["y"]) for point in points if point["y"] > 0]
    return [10.0**power for power in range(floor(min(logs)), ceil(max(logs)) + 1)]


def _add_lines(points: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Return the lines and the nodes of a lattice."""
    ends = [(point, end) for point in points for end in point["lines"]]
    lines = [{"kind": "line", "x": p["x"], "y": p["y"], "x2": end[0], "y2": end[1]} for p, end in ends]
    nodes = [{"kind": "node", **{key: point[key] for key in ("x", "y", "label", "below")}} for point in points]
    return [*lines, *nodes]
