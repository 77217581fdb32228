"""Binding: what the policy says of a column and what the column is must go together."""

from __future__ import annotations

from typing import Any

import pytest

from kinfold.errors import DataError, KinfoldError, PolicyError
from kinfold.policy.binding import BoundPolicy, bind
from kinfold.policy.model import Policy
from kinfold.tables.schema import Column, Kind, Role, Schema, Storage

AGE = Column("age", Storage.INTEGER, 10, distinct=9, numbers=10, decimals=0)
SEX = Column("sex", Storage.TEXT, 10, nulls=1, distinct=2)
WORD = Column("word", Storage.TEXT, 10, distinct=5)
DAY = Column("day", Storage.DATE, 10, distinct=5, date_format="%Y-%m-%d")
TABLE = Schema.from_columns([AGE, SEX, WORD, DAY], 10)


def bound(columns: dict[str, Any], table: Schema = TABLE, **output: Any) -> BoundPolicy:
    output = {"others": "release", **output}
    return bind(Policy.parse({"privacy": {"k": 2}, "columns": columns, "output": output}), table)


def problem(columns: dict[str, Any], table: Schema = TABLE, kind: type[KinfoldError] = PolicyError) -> str:
    with pytest.raises(kind) as caught:
        bound(columns, table)
    (found,) = caught.value.problems
    assert found.fix
    return found.what


def test_kinds_are_inferred_where_the_policy_is_silent() -> None:
    found = bound({name: {"role": "key"} for name in ("age", "sex", "word", "day")})
    assert [c.kind for c in found.columns] == [Kind.CONTINUOUS, Kind.NOMINAL, Kind.NOMINAL, Kind.DATE]
    assert [c.average for c in found.columns] == ["mean", "mode", "mode", "mean"]
    assert all(c.inferred for c in found.columns)


def test_an_order_makes_a_column_ordinal() -> None:
    found = bound({"word": {"role": "key", "order": ["a", "b"]}})["word"]
    assert (found.kind, found.average) == (Kind.ORDINAL, "median")


def test_columns_that_nobody_named_are_released_or_dropped_as_asked() -> None:
    released = bound({"age": {"role": "key"}})
    dropped = bound({"age": {"role": "key"}}, others="drop")
    assert [c.role for c in released.columns] == [Role.QUASI, Role.OTHER, Role.OTHER, Role.OTHER]
    assert [c.role for c in dropped.columns] == [Role.QUASI, Role.REMOVE, Role.REMOVE, Role.REMOVE]


def test_columns_that_nobody_named_stop_the_run_all_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        bound({"age": {"role": "key"}, "wrod": {"role": "key"}}, others="refuse")
    assert [p.what for p in caught.value.problems] == [
        "no column 'wrod', did you mean 'word'?",
        "column 'word' is in the table but not in the policy, did you mean 'wrod'?",
        "2 columns are in the table but not in the policy: 'sex', 'day'",
    ]


def test_of_many_columns_that_nobody_named_some_are_shown() -> None:
    table = Schema.from_columns([AGE, *(Column(f"age{i}", Storage.TEXT, 10, distinct=5) for i in range(30))], 10)
    with pytest.raises(PolicyError) as caught:
        bound({"age": {"role": "key"}}, table, others="refuse")
    (problem,) = caught.value.problems
    assert problem.what.startswith("30 columns are in the table but not in the policy: 'age0', 'age1', ")
    assert problem.what.endswith("'age19', …")


def test_the_fix_writes_odd_names_as_toml_does() -> None:
    table = Schema.from_columns([AGE, Column("date of birth", Storage.TEXT, 10, distinct=5)], 10)
    with pytest.raises(PolicyError, match=r'\[columns."date of birth"\]'):
        bound({"age": {"role": "key"}}, table, others="refuse")


@pytest.mark.parametrize(
    ("name", "asked", "words"),
    [
        ("age", {"average": "mode"}, "no mode of continuous values"),
        ("word", {"average": "mean"}, "no mean of nominal values"),
        ("word", {"type": "ordinal"}, "an ordinal column of text needs an order"),
        ("word", {"type": "nominal", "order": ["a"]}, "'order' is for ordinal columns"),
        ("word", {"order": ["a", "a"]}, "'order' names a category twice"),
        ("word", {"missing": "drop"}, "'missing' is for continuous and date columns"),
        ("age", {"missing": "mean", "average": "generalize"}, "an imputed value cannot be generalized truthfully"),
    ],
)
def test_what_does_not_go_together(name: str, asked: dict[str, Any], words: str) -> None:
    assert words in problem({name: {"role": "key", **asked}})
    other = {"role": "other", "average": "mode"}
    assert "are for quasi-identifiers" in problem({"age": {"role": "key"}, "word": other})


def number(**changes: Any) -> Schema:
    base = {"rows": 10, "nulls": 0, "distinct": 9, "numbers": 10, "decimals": 1}
    return Schema.from_columns([Column("x", Storage.NUMBER, **{**base, **changes})], 10)


@pytest.mark.parametrize("role", ["quasi-identifier", "confidential"])
def test_values_are_held_against_what_was_declared(role: str) -> None:
    columns = {"x": {"role": role, "type": "continuous"}, "age": {"role": "key" if role == "confidential" else "other"}}
    more = Schema.from_columns([*number(numbers=7).columns, AGE], 10)
    assert "3 of 10 values are not numbers" in problem(columns, more, DataError)
    infinite = Schema.from_columns([*number(numbers=8, not_finite=2).columns, AGE], 10)
    assert "2 values that are infinite or not a number" in problem(columns, infinite, DataError)


def test_an_ordinal_column_of_numbers_has_no_place_for_what_is_none() -> None:
    asked = {"x": {"role": "key", "type": "ordinal"}}
    assert "not a number" in problem(asked, number(numbers=9, not_finite=1), DataError)


@pytest.mark.parametrize("missing", ["separate", "mean", "drop"])
def test_missing_numbers_ask_for_a_choice(missing: str) -> None:
    table = number(nulls=2, numbers=8)
    assert "2 of its values are missing" in problem({"x": {"role": "key"}}, table, DataError)
    assert bound({"x": {"role": "key", "missing": missing}}, table)["x"].request.missing == missing


def test_missing_categories_and_missing_confidential_numbers_need_no_choice() -> None:
    table = Schema.from_columns([*number(nulls=2, numbers=8).columns, SEX], 10)
    assert bound({"sex": {"role": "key"}, "x": {"role": "confidential"}}, table)


def test_what_identifiers_and_others_hold_is_nobodys_business() -> None:
    table = Schema.from_columns([*number(nulls=2, numbers=3, not_finite=4).columns, AGE], 10)
    for role in ("identifier", "other"):
        assert bound({"age": {"role": "key"}, "x": {"role": role, "type": "continuous"}}, table)


def test_a_release_may_hold_labels_where_the_source_had_numbers() -> None:
    asked = {
        "age": {"role": "key", "average": "median", "missing": "separate"},
        "x": {"role": "key", "type": "ordinal"},
    }
    policy = Policy.parse({"privacy": {"k": 2}, "columns": asked})
    table = Schema.from_columns(
        [Column("age", Storage.TEXT, 10, distinct=2), Column("x", Storage.TEXT, 10, distinct=3)], 10
    )
    assert bind(policy, table, released=True).rows == 10
    with pytest.raises(PolicyError):
        bind(policy, table)
