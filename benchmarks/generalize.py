"""Generalization on Adult with ARX's hierarchies, and a lattice too large to write down.

    python -m benchmarks.generalize [lattice|large|cells ...]      all of them if none is named

Times are processor seconds of one thread; kernels are compiled before any clock starts.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.hierarchies import TOP, Hierarchy, read_arx
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.local_suppression import local_suppression
from kinfold.methods.generalize.mingen_cell import mingen_cell
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.tables.tally import Tally, tally_labels

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("KINFOLD_DATA", ROOT.parent / "shared" / "data")) / "adult"
SALARY = "salary-class"


def records(quasi: int = 8) -> Domain:
    """Adult, one row a record, the first columns as quasi-identifiers."""
    with (DATA / "adult.csv").open(newline="") as lines:
        names, *rows = csv.reader(lines, delimiter=";")
    cells = np.array(rows, object)
    trees = {name: read_arx(DATA / f"adult_hierarchy_{name}.csv") for name in names[:quasi]}
    plain = tally_labels(np.arange(len(cells)), {SALARY: cells[:, names.index(SALARY)].astype(str)})
    return Domain.from_tally(
        Tally({name: cells[:, a] for a, name in enumerate(names[:quasi])}, plain.sizes, plain.spreads), trees
    )


def tallied(table: Domain, confidential: bool) -> Domain:
    """The same with equal rows counted once, as an engine would hand it over."""
    view = table.bottom
    tally = Tally({}, view.tally.sizes, view.tally.spreads if confidential else {})
    return Domain(table.names, table.hierarchies, np.ascontiguousarray(table.codes[view.rows]), tally)


def large(records: int = 100_000, attributes: int = 15) -> Domain:
    """Correlated columns of 27 values under a hierarchy of four levels: 4 to the power of 15 nodes."""
    random = np.random.default_rng(0)
    tree = Hierarchy.from_rows([(f"{v:02}", f"a{v // 3}", f"b{v // 9}", "*") for v in range(27)])
    hidden = random.normal(size=(records, 3))
    columns = []
    for a in range(attributes):
        x = hidden @ random.normal(size=3) + random.normal(size=records)
        rank = np.argsort(np.argsort(x)) / records
        columns.append(np.minimum((27 * rank ** (1 + a % 3)).astype(int), 26))
    rows, count = np.unique(np.column_stack(columns), axis=0, return_counts=True)
    names = tuple(f"q{a}" for a in range(attributes))
    return Domain(names, (tree,) * attributes, np.ascontiguousarray(rows, np.int32), Tally({}, count))


def run_lattice() -> list[dict[str, Any]]:
    """Optimum at k = 5 under four thresholds, with eight and nine quasi-identifiers, and with t-closeness."""
    found = []
    closeness = [KAnonymity(5), TCloseness(0.2, SALARY, "equal")]
    for quasi, models in ((8, [KAnonymity(5)]), (9, [KAnonymity(5)]), (8, closeness)):
        table = tallied(records(quasi), len(models) > 1)
        Lattice(table, models, 1.0).search(steps=20)
        for share in (0, 0.02, 0.05, 1.0):
            start = time.process_time()
            search = Lattice(table, models, share)
            best = search.search()
            found.append(
                {
                    "quasi": quasi,
                    "models": len(models),
                    "suppression": share,
                    "levels": best.levels,
                    "granularity": round(1 - best.loss, 4),
                    "evaluated": len(search.nodes.evaluated),
                    "seconds": round(time.process_time() - start, 3),
                }
            )
    return found


def run_large() -> list[dict[str, Any]]:
    """The best node, and the bound on all others, of a lattice of a thousand million nodes."""
    table, found = large(), []
    for share in (0, 0.05):
        start = time.process_time()
        search = Lattice(table, [KAnonymity(5)], share)
        best = search.search()
        seconds = round(time.process_time() - start, 1)
        found.append({"suppression": share, "loss": best.loss, "bound": search.bound, "seconds": seconds})
    return found


def run_cells() -> list[dict[str, Any]]:
    """Granularity at cell level at k = 5: alone, with distinct 2-diversity, with t-closeness 0.2."""
    table, found = records(), []
    mingen_cell(
        Domain(table.names, table.hierarchies, table.codes[:100], tally_labels(np.arange(100))), [KAnonymity(5)]
    )
    for others in ([], [LDiversity(2, SALARY)], [TCloseness(0.2, SALARY, "equal")]):
        start = time.process_time()
        done = mingen_cell(table, [KAnonymity(5), *others])
        seconds = round(time.process_time() - start, 1)
        granularity = round(done.generalization.granularity(), 4)
        classes = int(done.labels.max()) + 1
        found.append({"models": 1 + len(others), "granularity": granularity, "classes": classes, "seconds": seconds})
    return found


def run_suppression() -> list[dict[str, Any]]:
    """Cells left empty by local suppression at k = 3 and 5; hierarchies count for nothing but their values."""
    table, found = records(), []
    flat = tuple(Hierarchy.from_rows([(text, TOP) for text in tree.values]) for tree in table.hierarchies)
    plain = Domain(table.names, flat, table.codes, tally_labels(np.arange(len(table))))
    for k in (3, 3, 5):  # the first compiles
        start = time.process_time()
        done = local_suppression(plain, [KAnonymity(k)])
        found.append(
            {"k": k, "cells": int(done.cells_by_column.sum()), "seconds": round(time.process_time() - start, 1)}
        )
    return found[1:]


RUNS = {"lattice": run_lattice, "large": run_large, "cells": run_cells, "suppression": run_suppression}
SLOW = {"large", "cells"}


def run(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Return one row a measurement; quickly without the lattice of fifteen attributes and the cell level."""
    for name, measured in RUNS.items():
        if not quick or name not in SLOW:
            yield from ({"part": name, **row} for row in measured())


if __name__ == "__main__":
    for name in sys.argv[1:] or list(RUNS):
        for row in RUNS[name]():
            print(name, row, flush=True)
