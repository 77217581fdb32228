"""The worked example of Sun, Wang, Li & Zhang, Expert Syst. Appl. 39 (2012): Table 1 and section 3.

The printed values and how they are read are those of `kinfold reproduce` (`kinfold.papers.paper_001`).
"""

import numpy as np
import pytest

from kinfold.methods.partition.approximate import approximate, dependency, entropy, joint_entropy
from kinfold.papers.exhibits import PrintedValues
from kinfold.papers.paper_001 import ATTRIBUTES, PAPER, TABLE_1

ENTROPIES = {
    row: cell.reading or cell.printed for (row, _), cell in PrintedValues("001").read_examples("Section 3.1").items()
}


def test_entropies_of_section_3_1():
    one, two = TABLE_1[:, 0], TABLE_1[:, 1]
    both = joint_entropy(one, two)
    found = {"H(A1)": entropy(one), "H(A2)": entropy(two), "H(A1, A2)": both}
    found |= {"H(A1|A2)": both - entropy(two), "H(A2|A1)": both - entropy(one)}
    assert {name: f"{bits:.4f}" for name, bits in found.items()} == ENTROPIES


def test_dependency_matrix_of_definition_3():
    (matrix,) = (exhibit.expected for exhibit in PAPER.exhibits if exhibit.place == "Definition 3")
    cells = {key: float(cell.reading or cell.printed) for key, cell in matrix.items()}
    printed = [[cells[one, other] for other in ATTRIBUTES] for one in ATTRIBUTES]
    assert np.round(dependency(TABLE_1).matrix, 4).tolist() == printed


def test_minimum_spanning_tree_and_key_attributes():
    """Figure 2 prints a heavier tree with deg(A2) = 4; in the minimum one A2 and A3 have 3 edges each."""
    found = dependency(TABLE_1)
    edges = {tuple(ATTRIBUTES[end] for end in edge) for edge in found.edges}
    assert edges == {("A2", "A6"), ("A3", "A4"), ("A2", "A3"), ("A1", "A2"), ("A3", "A5")}
    assert found.degrees == (1, 3, 3, 1, 1, 1)
    assert found.keys == (1, 2)
    assert sum(found.matrix[edge] for edge in found.edges) == pytest.approx(7.0314, abs=1e-4)


def test_groups_on_the_key_attributes_worked_out_by_hand():
    """k = 4: centre (0.75, 0.83); r1 (0,0) is farthest; with it r4, r6 (0,1) and r3 (1,0), all at 1.

    Of the rest all are (1,1) and tie: r2 is farthest from r1, and r5, r7, r8 join it. Four remain, the last group.
    """
    assert approximate(TABLE_1, 4).tolist() == [0, 1, 0, 0, 1, 0, 1, 1, 2, 2, 2, 2]
