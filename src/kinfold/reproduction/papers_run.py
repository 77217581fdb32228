"""Running through the papers: each exhibit worked out, and each of its cells judged."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from kinfold.errors import PolicyError
from kinfold.progress import Progress, silent
from kinfold.reproduction.bench import Bench
from kinfold.reproduction.cell_verdicts import Comparandum, judged, not_computable, number
from kinfold.reproduction.expectation import NO_NUMBERS, Exhibit, Paper, Worked

PAPERS = ("000", "001", "002", "003", "004")
VERDICTS = ("match", "close", "differs", "not-computable")
NEEDS = "needs "
LEFT_OUT = "takes longer than a quick run has: run without --quick"
NOT_HERE = "the extract that the paper used is not available here; ours is of a generated stand-in"

CAUSES = {
    "match": "`match`: equal to every digit or word that is printed",
    "close": "`close`: within 3 %, or one unit of the last decimal",
    "misprint": "`differs`: the print or the claim is wrong, and what is right is known",
    "differs": "`differs`: does not come out of what is printed",
    "guard": "`not-computable`, a guard: made to come out here, or ours alone",
    "stand-in": "`not-computable`: the data is not available here, ours is of a stand-in",
    "no number": "`not-computable`: a drawing, or an algorithm as steps, without numbers",
    "not stated": "`not-computable`: the paper does not say how",
    "not run": "`not-computable`: a file is missing, or the run was a quick one",
}


@dataclass(frozen=True, eq=False)
class Reproduced:
    """One exhibit: its cells with their verdicts, and what came out of the work besides."""

    exhibit: Exhibit
    cells: Sequence[Comparandum]
    worked: Worked
    seconds: float

    @property
    def counts(self) -> dict[str, int]:
        """How many cells have each verdict."""
        found = Counter(cell.verdict for cell in self.cells)
        return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}

    @property
    def verdict(self) -> str:
        """The worst verdict of a cell; cells without one do not count where others have one."""
        known = [verdict for verdict in VERDICTS[:3] if verdict in self.counts]
        return known[-1] if known else "not-computable"

    @property
    def failed(self) -> int:
        """How many cells should have come out better."""
        return sum(cell.failed for cell in self.cells)

    @property
    def causes(self) -> Counter[str]:
        """How many cells there are of each cause, matches included."""
        return Counter(self._cause(cell) for cell in self.cells)

    def _cause(self, cell: Comparandum) -> str:
        if cell.verdict == "not-computable":
            return _not_computed(self.exhibit, cell)
        wrong = cell.verdict == "differs" and self.exhibit.expected[cell.row, cell.column].reading is not None
        return CAUSES["misprint" if wrong else cell.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return the exhibit as JSON shows it."""
        return {
            "place": self.exhibit.place,
            "title": self.exhibit.title,
            "data": self.exhibit.source,
            "stand_in": self.exhibit.stand_in,
            "verdict": self.verdict,
            "counts": self.counts,
            "failed": self.failed,
            "reading": self.exhibit.reading,
            "note": self.worked.note,
            "seconds": round(self.seconds, 3),
            "items": [cell.to_dict() for cell in self.cells],
        }


@dataclass(frozen=True, eq=False)
class Reproduction:
    """The papers with what came out of each."""

    papers: Sequence[tuple[Paper, Sequence[Reproduced]]]
    quick: bool
    data: str | None
    seconds: float

    @property
    def every(self) -> Iterator[Reproduced]:
        """Every exhibit of every paper."""
        return (found for _, exhibits in self.papers for found in exhibits)

    @property
    def counts(self) -> dict[str, int]:
        """How many cells have each verdict."""
        return {verdict: sum(found.counts.get(verdict, 0) for found in self.every) for verdict in VERDICTS}

    @property
    def causes(self) -> dict[str, dict[str, int]]:
        """How many cells there are of each cause, by paper."""
        by_paper = {
            paper.number: sum((found.causes for found in exhibits), Counter[str]()) for paper, exhibits in self.papers
        }
        return {
            cause: {number: counts[cause] for number, counts in by_paper.items()}
            for cause in CAUSES.values()
            if any(counts[cause] for counts in by_paper.values())
        }

    @property
    def failed(self) -> int:
        """How many cells should have come out better."""
        return sum(found.failed for found in self.every)

    def to_dict(self) -> dict[str, Any]:
        """Return everything, item by item."""
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
                    "exhibits": [found.to_dict() for found in exhibits],
                }
                for paper, exhibits in self.papers
            ],
        }


def reproduce(
    papers: Sequence[str] = PAPERS, data: Path | None = None, quick: bool = False, progress: Progress = silent
) -> Reproduction:
    """Work out every exhibit of the papers and judge each of its cells."""
    began = time.perf_counter()
    if data is not None and not data.is_dir():
        raise PolicyError(f"no such folder: '{data}'", fix="name the folder of the public files, or leave --data out")
    chosen = [load(number) for number in papers]
    bench = Bench(data, quick)
    total, done = sum(len(paper.exhibits) for paper in chosen), 0
    found: list[tuple[Paper, list[Reproduced]]] = []
    for paper in chosen:
        found.append((paper, []))
        for exhibit in paper.exhibits:
            progress(done, total)
            found[-1][1].append(reproduced(exhibit, bench))
            done += 1
    return Reproduction(found, quick, str(data) if data else None, time.perf_counter() - began)


def load(number: str) -> Paper:
    """Return a paper by its number."""
    if number not in PAPERS:
        raise PolicyError(f"there is no paper '{number}'", fix=f"name one of {', '.join(PAPERS)}")
    paper: Paper = import_module(f"kinfold.reproduction.paper_{number}").PAPER
    return paper


def reproduced(exhibit: Exhibit, bench: Bench) -> Reproduced:
    """Return one exhibit with its verdicts; what cannot be computed says why."""
    began = time.perf_counter()
    if reason := _hindered(exhibit, bench):
        cells = [not_computable(key, expected, reason) for key, expected in exhibit.expected.items()]
        return Reproduced(exhibit, cells, Worked({}), 0.0)
    worked = exhibit.work(bench)
    return Reproduced(exhibit, list(_judged(exhibit, worked)), worked, time.perf_counter() - began)


def _judged(exhibit: Exhibit, worked: Worked) -> Iterator[Comparandum]:
    for key, expected in exhibit.expected.items():
        ours = worked.values.get(key)
        if exhibit.stand_in and number(expected.printed) is not None and expected.due != "guard":
            yield not_computable(key, expected, expected.why or NOT_HERE, ours)
        elif ours is None:
            yield not_computable(key, expected, expected.why or "the paper does not say how")
        else:
            yield judged(key, expected, ours)


def _not_computed(exhibit: Exhibit, cell: Comparandum) -> str:
    if cell.guard:
        return CAUSES["guard"]
    if exhibit.source == NO_NUMBERS:
        return CAUSES["no number"]
    if cell.ours is not None:
        return CAUSES["stand-in"]
    return CAUSES["not run" if cell.reason == LEFT_OUT or cell.reason.startswith(NEEDS) else "not stated"]


def _hindered(exhibit: Exhibit, bench: Bench) -> str:
    if missing := bench.missing(exhibit.needs):
        return f"{NEEDS}{', '.join(missing)}: name the folder with --data"
    return LEFT_OUT if exhibit.long and bench.quick else ""
