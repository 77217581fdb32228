"""Truta, Fotouhi & Barth-Jones: Table 2, on a table made to have the outlier counts of Figure 3.

No table with two sexes has these counts: whoever is left over at <S0,Z2> is left over at <S0,Z1> too, which leaves one
sex for all other records, and then <S0,Z0> and <S1,Z0> could not differ. A third value makes it possible.
"""

import numpy as np
import pytest

from kinfold.hierarchy import by_rows
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.models import KAnonymity
from kinfold.rows.tally import Tally

SEX = by_rows([["male"], ["female"], ["not stated"]])
ZIP = by_rows([["41075", "410**"], ["41076", "410**"], ["48201", "482**"]])
CELLS = [
    ("male", "41075", 5),
    ("female", "41075", 3),
    ("female", "41076", 3),
    ("female", "48201", 1),
    ("not stated", "48201", 3),
]
TABLE_2 = {
    (0, 1, 2): [(1, 2)],
    (3,): [(0, 2)],
    (4, 5, 6): [(0, 1)],
    (7, 8, 9): [(0, 1), (1, 0)],
    (10, 11, 15): [(0, 0)],
}


def table() -> Domain:
    sex, zips, records = (np.array(column, object) for column in zip(*CELLS, strict=True))
    return Domain.of_tally(Tally({"sex": sex, "zip": zips}, records.astype(np.int64)), {"sex": SEX, "zip": ZIP})


def test_the_table_has_the_counts_of_figure_3():
    found = {node.levels: node.outliers for node in Lattice(table(), [KAnonymity(5)])}
    assert found == {(0, 0): 10, (1, 0): 7, (0, 1): 4, (1, 1): 4, (0, 2): 3, (1, 2): 0}


@pytest.mark.parametrize(("thresholds", "nodes"), TABLE_2.items())
def test_table_2_names_the_minimal_generalizations(thresholds, nodes):
    for allowed in thresholds:
        found = Lattice(table(), [KAnonymity(5)], suppression=allowed).minimal()
        assert [node.levels for node in found] == nodes
