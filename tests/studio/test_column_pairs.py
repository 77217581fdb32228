"""Two columns before and after, against counts by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kinfold.release.report.facts import Bins, Shares
from kinfold.studio.release_rows import compare_pair, measure_shift


def texts(*values: str | None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.string())])


def test_categories_are_counted_in_pairs() -> None:
    sex = texts("m", "m", "f", "f"), texts("m", "f", "f", "f")
    ill = texts("flu", "flu", None, "cold"), texts("flu", "flu", None, "cold")
    told = compare_pair(sex, ill)
    assert told["tables"][0] == {
        "rows": ("f", "m"),
        "columns": ("cold", "flu", "missing"),
        "counts": [[1, 0, 1], [0, 2, 0]],
    }
    assert told["tables"][1]["counts"] == [[1, 1, 1], [0, 1, 0]]
    assert told["moved"] == 0.25  # one record of four
    assert told["quantiles"] == [None, None]
    assert told["correlation"] is None


def test_numbers_have_the_bins_of_the_original() -> None:
    age = [str(20 + row) for row in range(50)]
    released = [str(20 + row // 5 * 5 + 2) for row in range(50)]
    income = [str(1000 + 7 * row) for row in range(50)]
    told = compare_pair((texts(*age), texts(*released)), (texts(*income), texts(*income[:-1], None)))
    before, after = told["tables"]
    assert before["rows"] == after["rows"] == ("to 29.8", "to 39.6", "to 49.4", "to 59.2", "above 59.2")
    assert before["columns"][-1] == "missing"  # of one income, after
    assert np.sum(before["counts"]) == np.sum(after["counts"]) == 50
    assert np.array(after["counts"])[:, -1].sum() == 1
    assert told["moved"] == pytest.approx(0.02)
    assert told["quantiles"][0][0][:2] == [20.0, pytest.approx(22.45)]
    assert told["quantiles"][0][1][-1] == 67.0
    assert told["correlation"][0] == pytest.approx(1.0)
    expected = np.corrcoef([int(each) for each in released[:-1]], [int(each) for each in income[:-1]])[0, 1]
    assert told["correlation"][1] == pytest.approx(expected)


def test_generalized_numbers_are_categories_and_rare_values_are_together() -> None:
    zips = [f"0{row % 12:02d}" for row in range(60)]
    sides = texts(*zips), texts(*("0**" for _ in zips))
    told = compare_pair(sides, sides)
    assert told["tables"][0]["rows"][-1] == "others"
    assert len(told["tables"][0]["rows"]) == 9
    assert told["tables"][1] == {"rows": ("0**",), "columns": ("0**",), "counts": [[60]]}
    assert told["moved"] is None


def test_a_shift_is_no_more_than_the_distributions_differ() -> None:
    assert measure_shift(Bins((0, 1, 2), (5, 5)), Bins((0, 1, 2), (10, 0))) == 0.5
    assert measure_shift(Shares(("a", "b"), (5, 5)), Shares(("c", "d"), (5, 5))) == 1.0
    assert (
        measure_shift(Shares(("a", "b"), (5, 3), 2, 2), Shares(("a", "c"), (5, 3), 2, 2)) == 0.0
    )  # c may be in the rest
    assert measure_shift(Shares(("a",), (5,), missing=5), Shares(("a",), (10,))) == 0.5
    assert measure_shift(Shares(("a",), (5,)), Bins((0, 1), (5,))) is None
    assert measure_shift(Shares((), ()), Shares((), ())) is None
