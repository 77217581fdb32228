"""The plain checker where it is easily off by one: nothing at all, ties, missing values, and the calendar."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from kinfold.checker import (
    _figures_match,
    check_promise,
    check_table,
    group_rows,
    judge,
    make_ordered_distance,
    meets_entropy,
    parse_moment,
    rank_values,
    read_table,
)

QUASI = {"name": "q", "role": "quasi-identifier"}
NOMINAL = {"name": "d", "role": "confidential", "type": "nominal", "distance": "equal"}


def told(*columns: dict[str, Any], joint: bool = False) -> dict[str, Any]:
    return {"columns": [QUASI, *columns], "joint": joint, "promises": []}


# Nothing at all


def test_a_file_that_cannot_be_read_has_no_figures(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('q,d\n"a')
    found = check_table(tmp_path / "t.csv", told(NOMINAL) | {"release": {"separator": ","}})
    assert found.pop("problems") == ["the table is not a CSV file in UTF-8"]
    assert found == {"found": {}, "promises": [], "people": [], "records": 0, "classes": 0, "holds": False}


def test_of_no_record_every_figure_is_nothing() -> None:
    found = judge({"q": [], "d": []}, told(NOMINAL))
    assert found["found"] == {"k": 0, "l": {"d": 0}, "t": {"d": 0.0}, "alpha": {"d": 0.0}}
    assert (found["records"], found["classes"]) == (0, 0)


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("KAnonymity", {"k": 2}),
        ("TCloseness", {"t": 0.5, "column": "d"}),
        ("AlphaK", {"alpha": 0.5, "column": "d"}),
        ("PSensitive", {"p": 2, "column": "d"}),
        ("LDiversity", {"l": 2, "kind": "distinct", "column": "d"}),
        ("LDiversity", {"l": 2, "kind": "entropy", "column": "d"}),
        ("LDiversity", {"l": 2, "kind": "recursive", "c": 1.0, "column": "d"}),
    ],
)
def test_of_no_class_a_promise_finds_nothing(model: str, asked: dict[str, Any]) -> None:
    assert check_promise({"model": model, "parameters": asked, "promise": "it"}, [], {"d": []}, {"d": []})["found"] == 0


def test_columns_of_different_lengths_are_no_table() -> None:
    with pytest.raises(ValueError, match="shorter"):
        group_rows({"a": ["1", "2"], "b": ["1"]}, ["a", "b"])


# Promises


def test_a_joint_promise_is_about_whoever_knows_the_others_and_not_the_column_itself() -> None:
    other = NOMINAL | {"name": "e"}
    table = {"q": ["a", "a", "b", "b"], "d": ["1", "2", "1", "2"], "e": ["x", "x", "y", "y"]}
    assert judge(table, told(NOMINAL, other, joint=True))["found"]["l"] == {"d": 2, "e": 1}


def test_entropy_is_compared_in_whole_numbers_where_l_is_none() -> None:
    held = {"a": 2, "b": 1}  # 1.88988157484...
    assert meets_entropy(held, 1.8898815748)
    assert not meets_entropy(held, 1.8898815749)


def test_two_values_are_an_order_and_one_is_none() -> None:
    assert make_ordered_distance([1, 1, 2])({1: 2}) == Fraction(1, 3)
    assert make_ordered_distance([1, 1])({1: 2}) == 0


# Values


def test_missing_comes_first_and_is_no_value() -> None:
    numbers = {"name": "d", "type": "continuous"}
    assert rank_values([None, "2.50", "-1e1", "2.5"], numbers) == [0, 2, 1, 2]
    assert rank_values(["high", None, "low"], numbers | {"type": "ordinal", "order": ["low", "high"]}) == [2, 0, 1]
    assert rank_values(["2020-02-01", None, " 2020-01-31"], numbers | {"type": "date"}) == [2, 0, 1]


@pytest.mark.parametrize("year", [1, 399, 400, 401, 800, 1600, 1999, 2000, 2001, 2399, 2400, 9999])
def test_moments_are_apart_as_the_calendar_says(year: int) -> None:
    for day in (date(year, 1, 1), date(year, 3, 1), date(year, 12, 31)):
        assert (
            parse_moment(f"{day.isoformat()}", None) - parse_moment("2000-01-01", None)
            == 86400 * (day - date(2000, 1, 1)).days
        )
    there, ahead = datetime(year, 5, 6, 7, 8, 9, tzinfo=UTC), timedelta(hours=5, minutes=30)
    exact = parse_moment(there.isoformat(), None)
    assert exact - parse_moment("2000-01-01", None) == int((there - datetime(2000, 1, 1, tzinfo=UTC)).total_seconds())
    assert parse_moment((there + ahead).isoformat().replace("+00:00", "+05:30"), None) == exact
    assert parse_moment((there - ahead).isoformat().replace("+00:00", "-05:30"), None) == exact
    assert parse_moment(there.isoformat().replace("+00:00", ".25Z"), None) == exact + Fraction(1, 4)


def test_the_calendar_goes_on_before_the_year_1_and_after_9999() -> None:
    assert parse_moment("0001-01-01", None) - parse_moment("0001-12-31 (BC)", None) == 86400
    assert parse_moment("10000-01-01", None) - parse_moment("9999-12-31", None) == 86400
    assert (
        parse_moment("0001-03-01 (BC)", None) - parse_moment("0001-02-29 (BC)", None) == 86400
    )  # the year 0, which leaps


# Files


def test_parquet_is_read_as_text_and_clocks_by_their_ticks(tmp_path: Path) -> None:
    at = pa.array([1, None, 3], pa.timestamp("ns"))
    days = pa.array([date(1970, 1, 2), None, date(1969, 12, 31)])
    columns = {"q": ["a", "b", None], "d": days, "at": at, "n": [Decimal("1.50"), None, Decimal("-2.00")]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    names = {"columns": [{"name": name, "role": "other"} for name in columns]}
    assert read_table(tmp_path / "t.parquet", names) == {
        "q": ["a", "b", None],
        "d": ["1", None, "-1"],
        "at": ["1", None, "3"],
        "n": ["1.50", None, "-2.00"],
    }


@pytest.mark.parametrize(
    ("stated", "found", "same"),
    [(0.0, 0.0, True), (1e-9, 0.0, True), (1.5e-9, 0.0, False), (4.0 + 3e-9, 4.0, True), (4.0 + 5e-9, 4.0, False)],
)
def test_figures_are_the_same_but_for_the_last_digits(stated: float, found: float, same: bool) -> None:
    def figures(t: float) -> dict[str, Any]:
        return {"found": {"k": 2, "l": {}, "t": {"d": t}}, "promises": [], "records": 4, "classes": 2}

    assert _figures_match(figures(found), figures(stated) | {"release": {"records": 4, "classes": 2}}) is same
