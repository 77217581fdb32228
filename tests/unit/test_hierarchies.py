"""Hierarchies: every builder, what must hold of any of them, and their editing."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinfold
from command import text
from kinfold.errors import DataError, PolicyError
from kinfold.hierarchies import (
    Hierarchy,
    build_from_dates,
    build_from_intervals,
    build_from_mask,
    build_from_rows,
    build_from_tree,
    read_arx,
    write_arx,
)
from kinfold.hierarchies.grouping import Rows, build_label_tree, get_label_rows, merge_labels, rename_label, split_group
from reference.public_data import found


def labels(hierarchy: Hierarchy) -> dict[str, list[str]]:
    return {row[0]: list(row[1:]) for row in hierarchy.labels.tolist()}


def refused(rows: list[list[str]]) -> tuple[str, tuple[str, ...]]:
    with pytest.raises(PolicyError) as caught:
        build_from_rows(rows)
    (problem,) = caught.value.problems
    return problem.what, problem.values


# Builders


def test_a_mask_hides_the_last_characters_first_of_values_of_any_length() -> None:
    assert labels(build_from_mask(["02138", "02139"], 5))["02138"] == ["0213*", "021**", "02***", "0****", "*"]
    masked = labels(build_from_mask(["1", "12", "1234"], 4))
    assert masked == {"1": ["1", "1", "1", "*"], "12": ["1*", "1*", "1*", "*"], "1234": ["123*", "12**", "1***", "*"]}
    assert build_from_mask(["02138"], 9).height == 5  # a mask that is too long adds no empty steps


@given(st.sets(st.text("ab1", min_size=1, max_size=5), min_size=1), st.integers(1, 6))
def test_any_mask_is_a_hierarchy(values: set[str], characters: int) -> None:
    assert set(build_from_mask(values, characters).values) == values


def test_intervals_nest_and_start_at_their_origin() -> None:
    assert build_from_intervals(["0.35"], [0.1, 0.3]).height == 3  # decimal widths nest where decimals do
    assert labels(build_from_intervals(["17", "18"], [10], origin=18)) == {"17": ["8-17", "*"], "18": ["18-27", "*"]}
    assert labels(build_from_intervals(["21", "24", "38", "-1"], [5, 20])) == {
        "-1": ["-5--1", "-20--1", "*"],
        "21": ["20-24", "20-39", "*"],
        "24": ["20-24", "20-39", "*"],
        "38": ["35-39", "20-39", "*"],
    }


@pytest.mark.parametrize("value", ["0.3", "0.7", "1.1", "2.3", "0.1"])
def test_a_value_on_the_edge_of_an_interval_is_inside_it(value: str) -> None:
    label = labels(build_from_intervals([value], [0.1]))[value][0]
    low, high = label.strip("[)").split(", ")
    assert float(low) == float(value) < float(high)


@pytest.mark.parametrize("widths", [[5, 12], [10, 5], [0], [-5], []], ids=str)
def test_intervals_that_do_not_nest_or_have_no_width(widths: list[float]) -> None:
    with pytest.raises(PolicyError):
        build_from_intervals(["1"], widths)


def test_dates_climb_the_calendar() -> None:
    units = ["day", "month", "quarter", "year", "5 years", "decade", "20 years", "40 years"]
    assert labels(build_from_dates(["2024-11-09 10:30:00", "0999-01-02"], units)) == {
        "0999-01-02": ["0999-01-02", "0999-01", "0999-Q1", "0999", "0995-0999", "0990s", "0980-0999", "0960-0999", "*"],
        "2024-11-09 10:30:00": [
            "2024-11-09",
            "2024-11",
            "2024-Q4",
            "2024",
            "2020-2024",
            "2020s",
            "2020-2039",
            "2000-2039",
            "*",
        ],
    }


@pytest.mark.parametrize("units", [["week"], ["year", "month"], ["year", "year"], []], ids=str)
def test_dates_by_units_that_are_not_known_or_not_in_order(units: list[str]) -> None:
    with pytest.raises(PolicyError, match="unknown or in the wrong order"):
        build_from_dates(["2024-11-09"], units)


def test_a_tree_may_hold_values_at_different_depths() -> None:
    tree = {"lung": ["flu", "asthma"], "stomach": {"ulcers": ["gastric"]}, "well": "well"}
    assert labels(build_from_tree(tree)) == {
        "flu": ["flu", "lung", "*"],
        "asthma": ["asthma", "lung", "*"],
        "gastric": ["ulcers", "stomach", "*"],
        "well": ["well", "well", "*"],
    }


# What must hold


@pytest.mark.parametrize(
    ("rows", "said", "named"),
    [
        ([["a", "x", "*"], ["b", "y"]], "the hierarchy: 1 of 2 rows have fewer than 3 levels", ()),
        ([["a", "x"], ["b", "x"], ["a", "y"]], "1 value is in more than one row", ("a",)),
        ([["a", "x", "p"], ["b", "x", "q"]], "1 label of level 1 has more than one parent", ("x",)),
        ([["a", "b"], ["b", "b"], ["c", "d"]], "at two levels", None),
        ([[f"v{i}", f"g{i // 10}"] for i in range(30_000)] + [["v7", "g0"]], "1 value is in", ("v7",)),
    ],
    ids=["short", "twice", "two parents", "two levels", "one of thirty thousand"],
)
def test_rows_that_are_no_hierarchy_are_counted_and_not_named(rows: list[list[str]], said: str, named: Any) -> None:
    what, values = refused(rows)
    assert said in what
    assert named is None or values == named
    assert not any(f"'{value}'" in what for value in values)


def test_a_label_at_two_levels_may_cover_the_same_values_at_both() -> None:
    assert build_from_rows([["a", "a"], ["b", "x"], ["c", "x"]]).height == 2


def test_the_top_is_put_on_where_it_is_missing() -> None:
    assert build_from_rows([["a", "x"], ["b", "y"]]).labels[:, -1].tolist() == ["*", "*"]
    assert build_from_rows([["a", "*"], ["b", "*"]]).height == 1


def test_subtrees_stand_together_in_the_order_of_their_first_value() -> None:
    rows = [["a", "x"], ["b", "y"], ["c", "x"], ["d", "y"]]
    assert build_from_rows(rows).values.tolist() == ["a", "c", "b", "d"]


def test_paths_and_leaves_number_and_count() -> None:
    hierarchy = build_from_rows([["a", "x"], ["b", "x"], ["c", "y"]])
    assert hierarchy.paths.tolist() == [[0, 0, 0], [1, 0, 0], [2, 1, 0]]
    assert hierarchy.leaves.tolist() == [[1, 2, 3], [1, 2, 3], [1, 1, 3]]
    assert hierarchy.index(["c", "nobody", "a"]).tolist() == [2, -1, 0]


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
    found = labels(build_from_intervals(["3", "17", "18", "22", "84", "85", "99"], [5, 20], ends=(18, 85)))
    assert found["3"] == found["17"] == ["under 18", "under 18", "*"]
    assert found["18"] == ["18-19", "18-19", "*"]
    assert found["22"] == ["20-24", "20-39", "*"]
    assert found["84"] == ["80-84", "80-84", "*"]
    assert found["85"] == found["99"] == ["85+", "85+", "*"]
    with pytest.raises(PolicyError, match="open intervals overlap"):
        build_from_intervals(["3"], [5], ends=(85, 18))


@pytest.mark.parametrize("rows", [[], [[]], [[], []]], ids=str)
def test_rows_without_a_value_are_no_hierarchy(rows: list[list[str]]) -> None:
    with pytest.raises(PolicyError, match="is empty"):
        Hierarchy.from_rows(rows)


# Editing of hierarchies: after merging, renaming or splitting the result is a hierarchy of the same values.


VALUES = [f"v{i}" for i in range(8)]


@given(st.data())
def test_merging_keeps_a_hierarchy_and_its_values(data: st.DataObject) -> None:
    rows: Rows = [(value,) for value in VALUES]
    for step in range(data.draw(st.integers(1, 5))):
        level = data.draw(st.integers(1, len(rows[0])))
        labels = sorted({row[level - 1] for row in rows})
        chosen = data.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True))
        try:
            rows = merge_labels(rows, chosen, f"g{step}", level)
            hierarchy = build_from_rows(rows)
        except PolicyError:
            return  # a label under two groups: not a hierarchy
        assert sorted(hierarchy.values) == VALUES
        assert get_label_rows(hierarchy) == [tuple(row) for row in hierarchy.labels[:, :-1].tolist()]
        tree = build_label_tree(hierarchy.labels.tolist(), dict.fromkeys(VALUES, 2))
        assert tree.count == 16
        assert sum(child.count for child in tree.children.values()) == 16


def test_a_group_is_renamed_and_split() -> None:
    rows = merge_labels([("a",), ("b",), ("c",)], ["a", "b"], "ab", 1)
    assert rename_label(rows, "ab", "both", 1) == [("a", "both"), ("b", "both"), ("c", "c")]
    assert split_group(rows, "ab", 1) == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize(
    "edit",
    [
        lambda rows: merge_labels(rows, ["z"], "x", 1),
        lambda rows: merge_labels(rows, [], "x", 1),
        lambda rows: merge_labels(rows, ["a"], "*", 1),
        lambda rows: merge_labels(rows, ["a"], " ", 1),
        lambda rows: merge_labels(rows, ["a"], "x", 3),
        lambda rows: merge_labels(rows, ["a"], "x", 0),
        lambda rows: rename_label(rows, "z", "x", 1),
        lambda rows: split_group(rows, "a", 0),
    ],
)
def test_an_impossible_edit_is_an_error(edit: object) -> None:
    with pytest.raises(PolicyError):
        edit([("a",), ("b",)])  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%d %b %Y", "%m/%d/%Y", "%Y-%m-%dT00:00:00Z"])
@pytest.mark.parametrize("gap", ["", " "])
def test_dates_of_a_nominal_column_climb_the_calendar_however_they_are_written(
    tmp_path: Path, form: str, gap: str
) -> None:
    days = [datetime(1950 + row % 20, 1 + row % 12, 1 + row) for row in range(24)]
    table = tmp_path / "people.csv"
    table.write_text("born,sex\n" + "".join(f"{gap}{day.strftime(form)},f\n" for day in days))
    born = {"role": "quasi", "average": "generalize", "hierarchy": {"dates": ["5 years", "decade"]}}
    columns = {"born": born | {"type": "nominal"}, "sex": {"role": "quasi"}}
    release = kinfold.anonymize(table, {"privacy": {"k": 4}, "source": {"dates": [form]}, "columns": columns})
    bands = {"1950-1954", "1955-1959", "1950s", "1960-1964", "1965-1969", "1960s"}
    assert {*release.frame["born"].to_pylist()} <= bands
