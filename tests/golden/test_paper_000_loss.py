"""Domingo-Ferrer & Torra 2005, Tables 2 and 3, on the Census file with the readings of the measures' docstrings."""

from functools import cache

import pytest

from kinfold.measures.probabilistic import pil
from kinfold.measures.variation import Moments, il, il1, il2, il3, il4, il5
from reference.mdav_plain import paper_release
from reference.public_data import census

TABLE_2 = {  # (quasi-identifier length, k): IL1, IL4, IL5, IL; IL2 = IL3 = 0 in every row
    (6, 3): (0.131, 0.036, 0.007, 3.48),
    (6, 6): (0.174, 0.075, 0.013, 5.24),
    (6, 9): (0.203, 0.129, 0.017, 6.98),
    (6, 12): (0.185, 0.166, 0.020, 7.42),
    (13, 3): (0.907, 0.058, 0.016, 19.62),
    (13, 6): (1.389, 0.134, 0.032, 31.10),
    (13, 9): (1.535, 0.161, 0.039, 34.70),
    (13, 12): (1.564, 0.164, 0.046, 35.48),
}
EXACT = [(6, 3), (13, 3), (13, 6), (13, 9)]
TABLE_3 = {(6, 3): (0.161, 0.255), (13, 3): (0.363, 0.534), (13, 6): (0.548, 0.674), (13, 9): (0.598, 0.705)}


@cache
def losses(quasi: int, k: int) -> tuple[float, float, float, float, float]:
    x = census()
    y = paper_release(x, quasi, k)
    before, after = Moments.of(x), Moments.of(y)
    return il1(x, y), il2(before, after), il3(before, after), il4(before, after), il5(before, after)


@pytest.mark.parametrize("row", EXACT, ids=str)
def test_table_2_comes_out_to_every_printed_digit(row):
    parts = tuple(round(part, 3) for part in losses(*row))
    assert parts == (TABLE_2[row][0], 0, 0, TABLE_2[row][1], TABLE_2[row][2])
    assert round(il(parts), 2) == TABLE_2[row][3]


@pytest.mark.parametrize("row", sorted(set(TABLE_2) - set(EXACT)), ids=str)
def test_the_other_rows_of_table_2_are_within_3_percent(row):
    assert il(losses(*row)) == pytest.approx(TABLE_2[row][3], rel=0.03)


@pytest.mark.parametrize("row", EXACT, ids=str)
def test_table_3_comes_out_for_covariances_and_correlations(row):
    x = census()
    found = pil(x, paper_release(x, *row))
    assert found.means == 0
    assert found.variances < 1e-9
    assert found.covariances == pytest.approx(TABLE_3[row][0], abs=0.001)
    assert found.correlations == pytest.approx(TABLE_3[row][1], abs=0.001)
