"""Truta, Fotouhi & Barth-Jones 2006: global disclosure risk, and minimal generalizations under a suppression threshold.

Figure 3 is lost in the scan; its counts are derived from Table 2. No table with two sexes has these counts: an outlier
at <S0, Z2> is also an outlier at <S0, Z1>, so all other records have one sex, and <S0, Z0> and <S1, Z0> cannot differ.
A third value of sex makes the counts possible, and the lattice is searched on such a table.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from kinfold.hierarchies import build_from_rows
from kinfold.measures.formulas.arrays import group_rows
from kinfold.measures.formulas.global_risk import (
    ClassificationMatrix,
    SizeCounts,
    WeightMatrix,
    dr_min,
    dr_weighted,
    unique_from_larger,
)
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.partition.univariate import univariate
from kinfold.models import KAnonymity
from kinfold.papers.data import PaperData, class_means, smallest_class
from kinfold.papers.exhibits import CellKey, CellValue, ExhibitResult, Plot, PrintedValues, Values, plot_lattice
from kinfold.tables.tally import Ints, Tally

PRINTED = PrintedValues("003")
FIGURE_4 = {name: [row[name] for row in PRINTED.read_table("figure_4")] for name in ("Sex", "IM", "MM1", "MM2", "MM3")}
MASKED = {"MM1": 2, "MM2": 4, "MM3": 8}  # and the size of the groups
WEIGHT = PRINTED.read_examples("W2")["the one weight of W2", "value"]
WEIGHTS: dict[str, NDArray[np.float64]] = {
    "W1": np.array([[8.0]]),
    "W2": np.tril(np.full((8, 8), float(Fraction(str(WEIGHT.reading))))),
    "W3": np.array([[4.0, 0.0], [2.0, 2.0]]),
}
THRESHOLDS = [int(row["TS"]) for row in PRINTED.read_table("table_2")]
PEOPLE = [  # sex, zip code, records
    ("male", "41075", 5),
    ("female", "41075", 3),
    ("female", "41076", 3),
    ("female", "48201", 1),
    ("not stated", "48201", 3),
]
SEX = build_from_rows([["male"], ["female"], ["not stated"]])
ZIP = build_from_rows([["41075", "410**"], ["41076", "410**"], ["48201", "482**"]])


def people() -> Domain:
    """Return a table that has the counts of Figure 3 at k = 5."""
    sex, zips, records = (np.array(column, object) for column in zip(*PEOPLE, strict=True))
    return Domain.from_tally(Tally({"sex": sex, "zip": zips}, records.astype(np.int64)), {"sex": SEX, "zip": ZIP})


def class_labels(name: str) -> Ints:
    """Return the class of each record of a file of Figure 4, by age and sex."""
    return group_rows(np.array([FIGURE_4[name], FIGURE_4["Sex"]], object).T.astype(str))[0]


def classification_matrix(name: str) -> ClassificationMatrix:
    """Return the classification matrix of a masked file of Figure 4."""
    return ClassificationMatrix.from_classes(class_labels("IM"), class_labels(name))


def format_node(levels: tuple[int, ...]) -> str:
    """Format a node of the lattice as in the paper.

    >>> format_node((1, 2))
    '<S1, Z2>'
    """
    return f"<S{levels[0]}, Z{levels[1]}>"


def _table_1(_: PaperData) -> Values:
    return {("Patient masked microdata", "k"): smallest_class(np.array(PRINTED.read_rows("table_1")))}


def _figure_2(_: PaperData) -> Values:
    return {("Zip and Sex", "nodes of the lattice"): len(list(Lattice(people(), [KAnonymity(5)])))}


def _figure_3(_: PaperData) -> ExhibitResult:
    outliers = {node.levels: node.outliers for node in Lattice(people(), [KAnonymity(5)])}
    minimal = {allowed: find_minimal_nodes(allowed) for allowed in THRESHOLDS}
    texts = {}
    for levels, count in outliers.items():
        thresholds = [str(allowed) for allowed, nodes in minimal.items() if levels in nodes]
        below = f"minimal for TS {', '.join(thresholds)}" if thresholds else ""
        texts[levels] = (f"{format_node(levels)}: {count}", below)
    plot = plot_lattice("Figures 2 and 3: the lattice with the outliers at k = 5", texts, (3, 2))
    return ExhibitResult({(format_node(levels), "outliers"): count for levels, count in outliers.items()}, (plot,))


def find_minimal_nodes(allowed: int) -> list[tuple[int, ...]]:
    """Return the minimal generalizations of the table of Figure 3 for a suppression threshold."""
    return [node.levels for node in Lattice(people(), [KAnonymity(5)], suppression=allowed).minimal()]


def _table_2(_: PaperData) -> Values:
    nodes = {allowed: map(format_node, find_minimal_nodes(allowed)) for allowed in THRESHOLDS}
    return {(f"TS = {allowed}", "node"): " and ".join(names) for allowed, names in nodes.items()}


def _figure_4(_: PaperData) -> Values:
    ages = np.array([[float(age)] for age in FIGURE_4["IM"]])
    means = {name: class_means(ages, univariate(ages, size)).ravel() for name, size in MASKED.items()}
    return {
        (f"record {i}", name): float(mean) for name, column in means.items() for i, mean in enumerate(column, start=1)
    }


def _figure_5(_: PaperData) -> Values:
    values: dict[CellKey, CellValue] = {}
    for name in ("IM", *MASKED):
        by_size = SizeCounts.from_classes(class_labels(name))
        values[name, "clusters"] = int(by_size.classes.sum())
        for column, counts in (("clusters", by_size.classes), ("records in clusters", by_size.records)):
            pairs = zip(by_size.sizes.tolist(), counts.tolist(), strict=True)
            values[name, f"{column} of each size"] = ", ".join(f"{size}: {count}" for size, count in pairs)
    return values


def _matrices(_: PaperData) -> ExhibitResult:
    values = {}
    points: list[dict[str, object]] = []
    for number, name in enumerate(MASKED, start=1):
        matrix = classification_matrix(name)
        places = zip(matrix.masked.tolist(), matrix.initial.tolist(), strict=True)
        counts = dict(zip(places, matrix.count.tolist(), strict=True))
        entries = ", ".join(f"c{i}{j} = {count}" for (i, j), count in counts.items())
        values[f"C{number}", "entries that are not 0"] = entries
        points += [
            {"x": j, "y": i, "label": str(counts.get((i, j), 0)), "filled": (i, j) in counts, "panel": f"C{number}"}
            for i, j in product(range(1, 9), repeat=2)
        ]
    axes = ("size in the initial file", "size in the masked file")
    return ExhibitResult(values, (Plot("Classification matrices", *axes, points, chart="reproduced_matrix"),))


def _table_3(_: PaperData) -> Values:
    return {(name, weights): weighted_risk(name, weights) for name in MASKED for weights in WEIGHTS}


def weighted_risk(name: str, weights: str) -> float:
    """Return the weighted disclosure risk of a masked file."""
    return round(dr_weighted(classification_matrix(name), WeightMatrix.from_matrix(WEIGHTS[weights], 8)), 12)


def _eq_4(_: PaperData) -> Values:
    matrix = classification_matrix("MM1")
    counted = matrix.count[matrix.initial <= matrix.masked].sum() / matrix.released
    return {("MM1", "DRmax as printed"): float(counted)}


def _section_4(_: PaperData) -> Values:
    values: dict[CellKey, CellValue] = {(name, "k"): int(np.bincount(class_labels(name)).min()) for name in MASKED}
    falls = all(weighted_risk("MM1", w) >= weighted_risk("MM2", w) >= weighted_risk("MM3", w) for w in WEIGHTS)
    values["MM1 to MM3", "risk falls with the size of the groups"] = falls
    split = ClassificationMatrix.from_classes([0, 0, 1, 1], [0, 1, 2, 2])
    counterexample = dr_min(split) == 0 and unique_from_larger(split) > 0
    values["any masked file", "DRmin = 0 if and only if 2-anonymous"] = not counterexample
    first_rows = "DRw with weights on the first k rows is 0 if and only if k-anonymous"
    values["any masked file", first_rows] = weighted_risk("MM1", "W3") == 0  # k = 2: MM1 is 2-anonymous
    return values


PAPER = PRINTED.make_paper(
    {
        "Table 1": _table_1,
        "Figure 2": _figure_2,
        "Figure 3": _figure_3,
        "Table 2": _table_2,
        "Figure 4": _figure_4,
        "Figure 5": _figure_5,
        "C1, C2, C3": _matrices,
        "W2": lambda _: {("the one weight of W2", "value"): str(Fraction(8, 8 * 9 // 2))},  # 8 over the entries
        "Table 3": _table_3,
        "Eq. (4)": _eq_4,
        "Section 4": _section_4,
    },
)
