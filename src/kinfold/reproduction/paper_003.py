"""Truta, Fotouhi & Barth-Jones 2006: global disclosure risk, and minimal generalizations under a suppression threshold.

Figure 3's counts are those that Table 2 fixes. No table with two sexes has them: whoever is left over at <S0, Z2> is
left over at <S0, Z1> too, which leaves one sex for all other records, and then <S0, Z0> and <S1, Z0> could not differ.
A third value makes it possible, and the lattice is searched on such a table.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from kinfold.hierarchy import by_rows
from kinfold.measures.disclosure import (
    Classification,
    SizeCounts,
    dr_min,
    dr_weighted,
    unique_from_larger,
)
from kinfold.measures.grouping import group_rows
from kinfold.measures.weights import WeightMatrix
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.partition.univariate import univariate
from kinfold.models import KAnonymity
from kinfold.reproduction.bench import Bench, class_means
from kinfold.reproduction.expectation import Exhibit, Key, Ours, Paper, Plot, Worked, expect, mentioned
from kinfold.reproduction.printed import cells, examples, rows, table
from kinfold.rows.tally import Ints, Tally

FIGURE_4 = {name: [row[name] for row in table("003", "figure_4")] for name in ("Sex", "IM", "MM1", "MM2", "MM3")}
MASKED = {"MM1": 2, "MM2": 4, "MM3": 8}  # and the size of the groups
WEIGHT = examples("003", "W2")["the one weight of W2", "value"]
WEIGHTS: dict[str, NDArray[np.float64]] = {
    "W1": np.array([[8.0]]),
    "W2": np.tril(np.full((8, 8), float(Fraction(str(WEIGHT.reading))))),
    "W3": np.array([[4.0, 0.0], [2.0, 2.0]]),
}
THRESHOLDS = [int(row["TS"]) for row in table("003", "table_2")]
PEOPLE = [  # sex, zip code, records
    ("male", "41075", 5),
    ("female", "41075", 3),
    ("female", "41076", 3),
    ("female", "48201", 1),
    ("not stated", "48201", 3),
]
SEX = by_rows([["male"], ["female"], ["not stated"]])
ZIP = by_rows([["41075", "410**"], ["41076", "410**"], ["48201", "482**"]])


def people() -> Domain:
    """Return a table that has the counts of Figure 3 at k = 5."""
    sex, zips, records = (np.array(column, object) for column in zip(*PEOPLE, strict=True))
    return Domain.of_tally(Tally({"sex": sex, "zip": zips}, records.astype(np.int64)), {"sex": SEX, "zip": ZIP})


def classes(name: str) -> Ints:
    """Return the class of each record of a file of Figure 4, by age and sex."""
    return group_rows(np.array([FIGURE_4[name], FIGURE_4["Sex"]], object).T.astype(str))[0]


def matrix(name: str) -> Classification:
    """Return the classification matrix of a masked file of Figure 4."""
    return Classification.of(classes("IM"), classes(name))


def node(levels: tuple[int, ...]) -> str:
    """Return a node of the lattice as the paper writes it.

    >>> node((1, 2))
    '<S1, Z2>'
    """
    return f"<S{levels[0]}, Z{levels[1]}>"


def _table_1(_: Bench) -> Worked:
    found = group_rows(np.array(rows("003", "table_1")))[0]
    return Worked({("Patient masked microdata", "k"): int(np.bincount(found).min())})


def _figure_2(_: Bench) -> Worked:
    nodes = [each.levels for each in Lattice(people(), [KAnonymity(5)])]
    return Worked({("Zip and Sex", "nodes of the lattice"): len(nodes)})


def _figure_3(_: Bench) -> Worked:
    found = {each.levels: each.outliers for each in Lattice(people(), [KAnonymity(5)])}
    values: dict[Key, Ours] = {(node(levels), "outliers"): count for levels, count in found.items()}
    return Worked(values, (_lattice(found),))


def _lattice(found: dict[tuple[int, ...], int]) -> Plot:
    """Return the lattice as points: the height of a node is its sum of levels."""
    minimal = {allowed: minimal_nodes(allowed) for allowed in THRESHOLDS}
    points = [
        {
            "x": 2 * levels[1] - 3 * levels[0],
            "y": sum(levels),
            "label": f"{node(levels)}: {count}",
            "below": _told([allowed for allowed, nodes in minimal.items() if levels in nodes]),
            "lines": [[2 * z - 3 * s, s + z] for s, z in found if _covers((s, z), levels)],
        }
        for levels, count in found.items()
    ]
    return Plot("Figures 2 and 3: the lattice, tuples left over at k = 5", "", "", points, chart="reproduced_lattice")


def _covers(high: tuple[int, ...], low: tuple[int, ...]) -> bool:
    return sum(high) == sum(low) + 1 and all(a >= b for a, b in zip(high, low, strict=True))


def _told(thresholds: list[int]) -> str:
    return f"minimal for TS {', '.join(map(str, thresholds))}" if thresholds else ""


def minimal_nodes(allowed: int) -> list[tuple[int, ...]]:
    """Return the minimal generalizations of the table of Figure 3 where so many tuples may be suppressed."""
    return [each.levels for each in Lattice(people(), [KAnonymity(5)], suppression=allowed).minimal()]


def _table_2(_: Bench) -> Worked:
    return Worked(
        {(f"TS = {allowed}", "node"): " and ".join(map(node, minimal_nodes(allowed))) for allowed in THRESHOLDS}
    )


def _figure_4(_: Bench) -> Worked:
    ages = np.array([[float(age)] for age in FIGURE_4["IM"]])
    values: dict[Key, Ours] = {}
    for name, size in MASKED.items():
        means = class_means(ages, univariate(ages, size)).ravel()
        values |= {(f"record {i}", name): float(mean) for i, mean in enumerate(means, start=1)}
    return Worked(values)


def _figure_5(_: Bench) -> Worked:
    values: dict[Key, Ours] = {}
    for name in ("IM", *MASKED):
        found = SizeCounts.of(classes(name))
        sizes = found.sizes.tolist()
        values[(name, "clusters")] = int(found.classes.sum())
        for column, counts in (("clusters", found.classes), ("records in clusters", found.records)):
            told = ", ".join(f"{size}: {count}" for size, count in zip(sizes, counts.tolist(), strict=True))
            values[(name, f"{column} of each size")] = told
    return Worked(values)


def _matrices(_: Bench) -> Worked:
    values: dict[Key, Ours] = {}
    points = []
    for number, name in enumerate(MASKED, start=1):
        found = matrix(name)
        cells_ = list(zip(found.masked.tolist(), found.initial.tolist(), found.count.tolist(), strict=True))
        values[(f"C{number}", "entries that are not 0")] = ", ".join(f"c{i}{j} = {count}" for i, j, count in cells_)
        here = {(i, j): count for i, j, count in cells_}
        points += [
            {"x": j, "y": i, "label": str(here.get((i, j), 0)), "filled": (i, j) in here, "panel": f"C{number}"}
            for i in range(1, 9)
            for j in range(1, 9)
        ]
    axes = ("size in the initial file", "size in the masked file")
    return Worked(values, (Plot("Classification matrices", *axes, points, chart="reproduced_matrix"),))


def _weight(_: Bench) -> Worked:
    places = 8 * 9 // 2
    return Worked({("the one weight of W2", "value"): str(Fraction(8, places))})


def _table_3(_: Bench) -> Worked:
    return Worked({(name, weights): risk(name, weights) for name in MASKED for weights in WEIGHTS})


def risk(name: str, weights: str) -> float:
    """Return the weighted disclosure risk of a masked file."""
    return round(dr_weighted(matrix(name), WeightMatrix.of(WEIGHTS[weights], 8)), 12)


def _eq_4(_: Bench) -> Worked:
    found = matrix("MM1")
    counted = found.count[found.initial <= found.masked].sum() / found.released
    return Worked({("MM1", "DRmax as printed"): float(counted)})


def _section_4(_: Bench) -> Worked:
    values: dict[Key, Ours] = {(name, "k"): int(np.bincount(classes(name)).min()) for name in MASKED}
    falls = all(risk("MM1", w) >= risk("MM2", w) >= risk("MM3", w) for w in WEIGHTS)
    values["MM1 to MM3", "risk falls with the size of the groups"] = falls
    split = Classification.of([0, 0, 1, 1], [0, 1, 2, 2])
    values["any masked file", "DRmin = 0 if and only if 2-anonymous"] = not (
        dr_min(split) == 0 and unique_from_larger(split) > 0
    )
    one_row_more = dr_weighted(matrix("MM1"), WeightMatrix.of(WEIGHTS["W3"], 8))  # k = 2: MM1 is 2-anonymous
    first_rows = "DRw with weights on the first k rows is 0 if and only if k-anonymous"
    values["any masked file", first_rows] = one_row_more == 0
    return Worked(values)


def _labelled(name: str, label: str) -> dict[Key, str]:
    return cells("003", name, label)


MADE = "the figure is lost in the scan: the counts are those that Table 2 fixes, and the table was made to have them"
CIRCULAR = "the table was made to have the counts that this table fixes, so that it has to come out"

PAPER = Paper(
    "003",
    "Truta, Fotouhi & Barth-Jones 2006: Global disclosure risk measures and k-anonymity property for microdata",
    (
        Exhibit("Table 1", "A 2-anonymous file", examples("003", "Table 1"), _table_1),
        mentioned("Figure 1", "Hierarchies of Zip and Sex", "a drawing; the lattice that they span is Figure 2"),
        Exhibit("Figure 2", "The generalization lattice", examples("003", "Figure 2"), _figure_2),
        Exhibit(
            "Figure 3",
            "Tuples that miss k-anonymity, by node",
            expect(_labelled("figure_3", "{node}"), "guard", MADE),
            _figure_3,
            source="a table made to have these counts, of three sexes: no table of two has them",
        ),
        Exhibit(
            "Table 2",
            "Minimal generalizations by suppression threshold",
            expect(_labelled("table_2", "TS = {TS}"), "guard", CIRCULAR),
            _table_2,
            source="the same table",
        ),
        Exhibit(
            "Figure 4",
            "Ages microaggregated in groups of 2, 4 and 8",
            expect({key: age for key, age in _labelled("figure_4", "record {RecNo}").items() if key[1] in MASKED}),
            _figure_4,
        ),
        Exhibit("Figure 5", "Clusters and records by cluster size", expect(_labelled("figure_5", "{file}")), _figure_5),
        Exhibit("C1, C2, C3", "Classification matrices", expect(_labelled("matrices", "{matrix}")), _matrices),
        Exhibit("W2", "Equal weights", examples("003", "W2"), _weight),
        Exhibit("Table 3", "Disclosure risk by weights", expect(_labelled("table_3", "{file}")), _table_3),
        Exhibit("Eq. (4)", "Maximal disclosure risk", examples("003", "Eq. (4)"), _eq_4),
        Exhibit("Section 4", "Risk and k-anonymity", examples("003", "Section 4"), _section_4),
    ),
)
