"""What `auto` takes, and why: generalization where values must stay true, else what it took ever since."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import kinfold
from kinfold.errors import PolicyError
from kinfold.methods.planning import choice
from kinfold.request.methods import registry
from kinfold.request.policy import Policy

TABLE = pa.table(
    {
        "age": [20 + 3 * i % 17 for i in range(30)],
        "zip": [f"0{i % 7}{i % 3}" for i in range(30)],
        "wage": [1000 + i % 5 for i in range(30)],
        "who": [f"p{i % 24}" for i in range(30)],
    }
)
TRUE: dict[str, dict[str, Any]] = {
    "age": {"role": "quasi", "type": "continuous", "average": "generalize", "hierarchy": {"intervals": [5, 10]}},
    "zip": {"role": "quasi", "type": "nominal", "average": "generalize", "hierarchy": {"mask": 3}},
    "wage": {"role": "confidential", "type": "continuous"},
    "who": {"role": "identifier"},
}


def policy(columns: dict[str, dict[str, Any]], method: dict[str, Any] | None = None, **privacy: Any) -> dict[str, Any]:
    return {"privacy": {"k": 3, **privacy}, "method": {"name": "auto", **(method or {})}, "columns": columns}


def plan(columns: dict[str, dict[str, Any]], method: dict[str, Any] | None = None, **privacy: Any) -> Any:
    return kinfold.anonymize(TABLE, policy(columns, method, **privacy)).plan


def without(column: str, key: str) -> dict[str, dict[str, Any]]:
    return {**TRUE, column: {name: value for name, value in TRUE[column].items() if name != key}}


def test_where_values_must_stay_true_it_generalizes_and_says_why() -> None:
    found = plan(TRUE)
    assert found.method == "mingen-cell"
    assert "values must stay true" in found.reason
    assert plan(TRUE, t=0.4).method == "mingen-cell"  # which keeps it


@pytest.mark.compiled  # a partition is refined for as many steps however small the table
@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (without("age", "average"), "numbers are averaged"),
        (without("zip", "average"), "categories are averaged"),
        (without("age", "hierarchy"), "a range is narrower than any level"),
        (without("zip", "hierarchy"), "there is nothing to go up"),
    ],
)
def test_otherwise_it_partitions(columns: dict[str, dict[str, Any]], why: str) -> None:
    assert plan(columns).method == "mdav", why
    assert plan(columns, t=0.5).method == "t-first", why
    assert "t-closeness is asked for" in plan(columns, t=0.5).reason


@pytest.mark.compiled
def test_what_generalizers_cannot_do_is_left_to_partitioners() -> None:
    assert plan(TRUE, unit="who").method == "mdav"
    assert plan(TRUE, joint=True).method == "mdav"
    assert plan(TRUE, {"objective": "discernibility"}).method == "mdav"
    assert plan(TRUE, {"refine": "exact"}).method == "mdav"


@pytest.mark.compiled
def test_a_method_that_takes_too_long_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(registry()["mingen-cell"], auto_up_to=TABLE.num_rows - 1)
    monkeypatch.setattr(choice, "registry", lambda: {**registry(), "mingen-cell": slow})
    assert plan(TRUE).method == "mdav"
    monkeypatch.setattr(choice, "registry", lambda: {**registry(), "mingen-cell": replace(slow, auto_up_to=30)})
    assert plan(TRUE).method == "mingen-cell"


def test_what_it_took_is_recorded_and_repeats_the_release() -> None:
    release = kinfold.anonymize(TABLE, policy(TRUE))
    applied = release.policy.applied(release.plan.method, release.plan.steps)
    assert applied.method.name == "mingen-cell"
    again = kinfold.anonymize(TABLE, Policy.parse(applied.model_dump(mode="json", exclude_none=True)))
    assert again.frame.equals(release.frame)


def test_a_named_method_is_refused_what_it_cannot_search_by() -> None:
    with pytest.raises(PolicyError, match="'mingen-cell' cannot search by discernibility"):
        plan(TRUE, {"name": "mingen-cell", "objective": "discernibility"})
