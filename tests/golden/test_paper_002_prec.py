"""Sweeney 2002, Examples 5 and 6: the precision of the tables of Figure 4 (Race of height 2, ZIP of height 3)."""

import pytest

from kinfold.measures.generalized import prec
from kinfold.reproduction.paper_002 import FIGURE_4
from kinfold.reproduction.printed import value

HEIGHTS = [2, 3]


@pytest.mark.parametrize(("name", "levels"), list(FIGURE_4.items()))
def test_example_6_comes_out(name, levels):
    assert round(prec([levels], HEIGHTS), 2) == value("002", "Example 6", name, "Prec")
    assert prec([levels] * 12, HEIGHTS) == pytest.approx(prec([levels], HEIGHTS))


def test_example_5_is_1_for_the_table_itself_and_0_at_the_top():
    assert prec([[0, 0]], HEIGHTS) == 1
    assert prec([HEIGHTS], HEIGHTS) == 0


def test_a_suppressed_tuple_counts_1_in_each_of_its_cells():
    assert prec([[0, 0], [0, 0], [0, 0], HEIGHTS], HEIGHTS) == 0.75


def test_attributes_count_by_their_weights():
    assert prec([[1, 0]], HEIGHTS, weights=[3, 1]) == 1 - 0.5 * 3 / 4
