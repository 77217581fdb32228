"""Truta, Fotouhi & Barth-Jones: Table 2, on a table made to have the outlier counts of Figure 3.

The numbers and the table are those of `kinfold reproduce` (`kinfold.reproduction.paper_003`).
"""

import pytest

from kinfold.methods.generalize.lattice import Lattice
from kinfold.models import KAnonymity
from kinfold.reproduction.paper_003 import node, people
from kinfold.reproduction.printed import table


def test_the_table_has_the_counts_of_figure_3():
    found = {node(each.levels): each.outliers for each in Lattice(people(), [KAnonymity(5)])}
    assert found == {row["node"]: int(row["outliers"]) for row in table("003", "figure_3")}


@pytest.mark.parametrize("row", table("003", "table_2"), ids=lambda row: row["TS"])
def test_table_2_names_the_minimal_generalizations(row):
    found = Lattice(people(), [KAnonymity(5)], suppression=int(row["TS"])).minimal()
    assert " and ".join(node(each.levels) for each in found) == row["node"]
