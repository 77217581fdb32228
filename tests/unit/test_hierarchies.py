"""Hierarchies: every builder, and what must hold of any of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import text
from kinfold.errors import DataError, PolicyError
from kinfold.hierarchy import Hierarchy, by_dates, by_intervals, by_mask, by_rows, by_tree, read_arx, write_arx
from reference.public_data import found


def labels(hierarchy: Hierarchy) -> dict[str, list[str]]:
    return {row[0]: list(row[1:]) for row in hierarchy.labels.tolist()}


def refused(rows: list[list[str]]) -> tuple[str, tuple[str, ...]]:
    with pytest.raises(PolicyError) as caught:
        by_rows(rows)
    (problem,) = caught.value.problems
    return problem.what, problem.values


# Builders


def test_a_mask_hides_the_last_characters_first() -> None:
    assert labels(by_mask(["02138", "02139"], 5))["02138"] == ["0213*", "021**", "02***", "0****", "*"]


def test_a_mask_over_values_of_different_length() -> None:
    masked = labels(by_mask(["1", "12", "1234"], 4))
    assert masked == {"1": ["1", "1", "1", "*"], "12": ["1*", "1*", "1*", "*"], "1234": ["123*", "12**", "1***", "*"]}


def test_a_mask_longer_than_the_values_adds_no_empty_steps() -> None:
    assert by_mask(["02138"], 9).height == 5


@given(st.sets(st.text("ab1", min_size=1, max_size=5), min_size=1), st.integers(1, 6))
def test_any_mask_is_a_hierarchy(values: set[str], characters: int) -> None:
    assert set(by_mask(values, characters).values) == values


def test_intervals_nest() -> None:
    assert labels(by_intervals(["21", "24", "38", "-1"], [5, 20])) == {
        "-1": ["-5--1", "-20--1", "*"],
        "21": ["20-24", "20-39", "*"],
        "24": ["20-24", "20-39", "*"],
        "38": ["35-39", "20-39", "*"],
    }


def test_intervals_start_at_their_origin() -> None:
    assert labels(by_intervals(["17", "18"], [10], origin=18)) == {"17": ["8-17", "*"], "18": ["18-27", "*"]}


@pytest.mark.parametrize("value", ["0.3", "0.7", "1.1", "2.3", "0.1"])
def test_a_value_on_the_edge_of_an_interval_is_inside_it(value: str) -> None:
    label = labels(by_intervals([value], [0.1]))[value][0]
    low, high = label.strip("[)").split(", ")
    assert float(low) == float(value) < float(high)


def test_decimal_widths_nest_where_decimals_do() -> None:
    assert by_intervals(["0.35"], [0.1, 0.3]).height == 3


@pytest.mark.parametrize("widths", [[5, 12], [10, 5], [0], [-5], []], ids=str)
def test_intervals_that_do_not_nest_or_have_no_width(widths: list[float]) -> None:
    with pytest.raises(PolicyError):
        by_intervals(["1"], widths)


def test_dates_climb_the_calendar() -> None:
    units = ["day", "month", "quarter", "year", "decade"]
    assert labels(by_dates(["2024-11-09 10:30:00", "0999-01-02"], units)) == {
        "0999-01-02": ["0999-01-02", "0999-01", "0999-Q1", "0999", "0990s", "*"],
        "2024-11-09 10:30:00": ["2024-11-09", "2024-11", "2024-Q4", "2024", "2020s", "*"],
    }


@pytest.mark.parametrize("units", [["week"], ["year", "month"], ["year", "year"], []], ids=str)
def test_dates_by_units_that_are_not_known_or_not_in_order(units: list[str]) -> None:
    with pytest.raises(PolicyError, match="other units"):
        by_dates(["2024-11-09"], units)


def test_a_tree_may_hold_values_at_different_depths() -> None:
    tree = {"lung": ["flu", "asthma"], "stomach": {"ulcers": ["gastric"]}, "well": "well"}
    assert labels(by_tree(tree)) == {
        "flu": ["flu", "lung", "*"],
        "asthma": ["asthma", "lung", "*"],
        "gastric": ["ulcers", "stomach", "*"],
        "well": ["well", "well", "*"],
    }


# What must hold


def test_a_row_that_is_too_short_is_counted() -> None:
    assert refused([["a", "x", "*"], ["b", "y"]])[0] == "the hierarchy: 1 of 2 rows have fewer than 3 levels"


def test_a_value_that_stands_twice_is_counted_and_kept_for_who_asks() -> None:
    what, values = refused([["a", "x"], ["b", "x"], ["a", "y"]])
    assert "1 value stands in more than one row" in what
    assert values == ("a",)
    assert "'a'" not in what


def test_a_label_with_two_parents_is_no_tree() -> None:
    what, values = refused([["a", "x", "p"], ["b", "x", "q"]])
    assert "1 label of level 1 has more than one parent" in what
    assert values == ("x",)


def test_a_label_at_two_levels_covers_the_same_values_at_both() -> None:
    assert "at two levels" in refused([["a", "b"], ["b", "b"], ["c", "d"]])[0]
    assert by_rows([["a", "a"], ["b", "x"], ["c", "x"]]).height == 2


def test_an_empty_hierarchy() -> None:
    assert "is empty" in refused([])[0]


def test_the_top_is_put_on_where_it_is_missing() -> None:
    assert by_rows([["a", "x"], ["b", "y"]]).labels[:, -1].tolist() == ["*", "*"]
    assert by_rows([["a", "*"], ["b", "*"]]).height == 1


def test_subtrees_stand_together_in_the_order_of_their_first_value() -> None:
    rows = [["a", "x"], ["b", "y"], ["c", "x"], ["d", "y"]]
    assert by_rows(rows).values.tolist() == ["a", "c", "b", "d"]


def test_paths_and_leaves_number_and_count() -> None:
    hierarchy = by_rows([["a", "x"], ["b", "x"], ["c", "y"]])
    assert hierarchy.paths.tolist() == [[0, 0, 0], [1, 0, 0], [2, 1, 0]]
    assert hierarchy.leaves.tolist() == [[1, 2, 3], [1, 2, 3], [1, 1, 3]]
    assert hierarchy.index(["c", "nobody", "a"]).tolist() == [2, -1, 0]


def test_thirty_thousand_values_of_which_one_stands_twice_are_checked_at_once() -> None:
    rows = [[str(i), str(i // 10)] for i in range(30_000)] + [["7", "0"]]
    assert "1 value stands" in refused([["v" + row[0], "g" + row[1]] for row in rows])[0]


# ARX's files

ARX = ("age", "education", "marital-status", "native-country", "occupation", "race", "salary-class", "sex", "workclass")


@pytest.mark.parametrize("name", ARX)
def test_the_hierarchies_of_adult_are_read_and_written_as_arx_does(name: str, tmp_path: Path) -> None:
    path = found(f"adult/adult_hierarchy_{name}.csv")
    hierarchy = read_arx(path)
    write_arx(hierarchy, tmp_path / "h.csv")
    lines = path.read_text().split()
    assert sorted((tmp_path / "h.csv").read_text().split()) == sorted(lines)
    assert (read_arx(tmp_path / "h.csv").labels == hierarchy.labels).all()
    assert np.unique(hierarchy.labels[:, -1]).tolist() == ["*"]


def test_arx_files_with_commas_quotes_and_a_mark(tmp_path: Path) -> None:
    path = text(tmp_path, "h.csv", b'\xef\xbb\xbf"a,b",x,*\nc,x,*\n\n')
    assert read_arx(path).labels.tolist() == [["a,b", "x", "*"], ["c", "x", "*"]]


def test_an_arx_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_arx(tmp_path / "h.csv")
    with pytest.raises(DataError, match="not CSV text in UTF-8"):
        read_arx(text(tmp_path, "h.csv", "ä;*".encode("cp1252")))


def test_intervals_are_open_at_either_end():
    found = labels(by_intervals(["3", "17", "18", "22", "84", "85", "99"], [5, 20], ends=(18, 85)))
    assert found["3"] == found["17"] == ["under 18", "under 18", "*"]
    assert found["18"] == ["18-19", "18-19", "*"]
    assert found["22"] == ["20-24", "20-39", "*"]
    assert found["84"] == ["80-84", "80-84", "*"]
    assert found["85"] == found["99"] == ["85+", "85+", "*"]
    with pytest.raises(PolicyError, match="open intervals meet"):
        by_intervals(["3"], [5], ends=(85, 18))


@pytest.mark.parametrize("rows", [[], [[]], [[], []]], ids=str)
def test_rows_without_a_value_are_no_hierarchy(rows: list[list[str]]) -> None:
    with pytest.raises(PolicyError, match="is empty"):
        Hierarchy.of(rows)
