"""Domingo-Ferrer & Torra 2005, Tables 2 and 3, on the Census file with the readings of the measures' docstrings.

The release is made by a plain twin; the printed tables are those of `kinfold reproduce`.
"""

from functools import cache

import pytest

from kinfold.measures.probabilistic import pil
from kinfold.measures.variation import Moments, il, il1, il2, il3, il4, il5
from kinfold.reproduction.paper_000 import EXACT
from kinfold.reproduction.printed import table
from reference.mdav_plain import paper_release
from reference.public_data import census

TABLE_2 = {(int(row["length"]), int(row["k"])): row for row in table("000", "table_2")}
TABLE_3 = {(int(row["length"]), int(row["k"])): row for row in table("000", "table_3")}
PARTS = ("IL1", "IL2", "IL3", "IL4", "IL5")


@cache
def losses(quasi: int, k: int) -> tuple[float, float, float, float, float]:
    x = census()
    y = paper_release(x, quasi, k)
    before, after = Moments.of(x), Moments.of(y)
    return il1(x, y), il2(before, after), il3(before, after), il4(before, after), il5(before, after)


@pytest.mark.parametrize("row", EXACT, ids=str)
def test_table_2_comes_out_to_every_printed_digit(row):
    parts = tuple(round(part, 3) for part in losses(*row))
    assert parts == tuple(float(TABLE_2[row][name]) for name in PARTS)
    assert round(il(parts), 2) == float(TABLE_2[row]["IL"])


@pytest.mark.parametrize("row", sorted(set(TABLE_2) - set(EXACT)), ids=str)
def test_the_other_rows_of_table_2_are_within_3_percent(row):
    assert il(losses(*row)) == pytest.approx(float(TABLE_2[row]["IL"]), rel=0.03)


@pytest.mark.parametrize("row", EXACT, ids=str)
def test_table_3_comes_out_for_covariances_and_correlations(row):
    x = census()
    found = pil(x, paper_release(x, *row))
    assert found.means == 0
    assert found.variances < 1e-9
    assert found.covariances == pytest.approx(float(TABLE_3[row]["PIL(m11)"]), abs=0.001)
    assert found.correlations == pytest.approx(float(TABLE_3[row]["PIL(r)"]), abs=0.001)
