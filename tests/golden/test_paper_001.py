"""The worked example of Sun, Wang, Li & Zhang, Expert Syst. Appl. 39 (2012): Table 1 and section 3."""

import numpy as np
import pytest

from kinfold.methods.partition.approximate import approximate
from kinfold.methods.partition.dependency import dependency, entropy, joint_entropy

ROWS = "000111 011010 110100 001111 011100 001001 111001 011000 111011 011101 011100 111111"
TABLE = np.array([[int(cell) for cell in row] for row in ROWS.split()])

# Definition 3's example; (A2,A5) is printed 1.6681
MATRIX = [
    [0, 1.3796, 1.5339, 1.8777, 1.8777, 1.8126],
    [1.3796, 0, 1.3753, 1.7772, 1.6680, 1.3180],
    [1.5339, 1.3753, 0, 1.3368, 1.6217, 1.6217],
    [1.8777, 1.7772, 1.3368, 0, 1.9586, 1.9586],
    [1.8777, 1.6680, 1.6217, 1.9586, 0, 1.7510],
    [1.8126, 1.3180, 1.6217, 1.9586, 1.7510, 0],
]


def test_entropies_of_section_3_1():
    one, two = TABLE[:, 0], TABLE[:, 1]
    assert round(entropy(one), 4) == 0.9183
    assert round(entropy(two), 4) == 0.8113
    assert round(joint_entropy(one, two), 4) == 1.5546
    # printed the other way round
    assert round(joint_entropy(one, two) - entropy(two), 4) == 0.7433
    assert round(joint_entropy(two, one) - entropy(one), 4) == 0.6363


def test_dependency_matrix_of_definition_3():
    assert np.round(dependency(TABLE).matrix, 4).tolist() == MATRIX


def test_minimum_spanning_tree_and_key_attributes():
    """Figure 2 prints a heavier tree with deg(A2) = 4; in the minimum one A2 and A3 have 3 edges each."""
    found = dependency(TABLE)
    edges = {tuple(f"A{end + 1}" for end in edge) for edge in found.edges}
    assert edges == {("A2", "A6"), ("A3", "A4"), ("A2", "A3"), ("A1", "A2"), ("A3", "A5")}
    assert found.degrees == (1, 3, 3, 1, 1, 1)
    assert found.keys == (1, 2)
    assert sum(found.matrix[edge] for edge in found.edges) == pytest.approx(7.0314, abs=1e-4)


def test_groups_on_the_key_attributes_worked_out_by_hand():
    """k = 4: centre (0.75, 0.83); r1 (0,0) is farthest; with it r4, r6 (0,1) and r3 (1,0), all at 1.

    Of the rest all are (1,1) and tie: r2 is farthest from r1, and r5, r7, r8 join it. Four remain, the last group.
    """
    assert approximate(TABLE, 4).tolist() == [0, 1, 0, 0, 1, 0, 1, 1, 2, 2, 2, 2]
