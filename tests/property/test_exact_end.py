"""`refine = "exact"`: the least loss there is on small tables, steps that repeat, and reasons where it cannot be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from kinfold.errors import PolicyError
from kinfold.methods.partition.exact import exact
from kinfold.methods.partition.gaps import Gaps
from kinfold.methods.planning import refinement
from kinfold.request.policy import Policy
from kinfold.rows.points import Points
from ledger import tally_up
from reference.mdav_plain import mdav_plain
from reference.partitions import least_cost


def numbers(seed: int, n: int, columns: int = 2) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {f"q{i}": random.normal(size=n).round(2) for i in range(columns)}


def released(table: dict[str, Any], k: int, **method: Any) -> kinfold.Release:
    """A release whose averages are not rounded, so that its loss is that of its classes."""
    columns = {name: {"role": "quasi-identifier", "type": "continuous"} for name in table}
    policy = {"privacy": {"k": k}, "method": method, "columns": columns, "output": {"round": False}}
    return kinfold.anonymize(pa.table(table), policy)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("method", ["auto", "v-mdav"])
def test_no_division_into_classes_loses_less(seed: int, method: str) -> None:
    k, table = 2 + seed % 2, numbers(seed, 6 + seed % 5)
    release = released(table, k, name=method, refine="exact")
    x = np.column_stack([(column - column.mean()) / column.std() for column in table.values()])
    optimum = least_cost(Gaps.of(Points.of(x)).pairs, k) / x.size  # every column has the sum of squares n
    assert release.measures.to_dict()["loss"]["sse_ratio"] == pytest.approx(optimum, rel=1e-9)
    assert release.plan.gap == pytest.approx(0.0, abs=1e-6)
    assert f"proved: no classes of at least {k} records lose less" in release.plan.notes
    tally_up("optima compared with brute force")


@pytest.mark.compiled
def test_the_steps_that_are_recorded_repeat_it() -> None:
    table = numbers(5, 80, columns=3)
    release = released(table, 3, name="mdav", refine="exact", seed=4)
    applied = release.policy.applied(release.plan.method, release.plan.steps)
    assert applied.method.refine == "exact"
    assert applied.method.refine_steps == release.plan.steps
    again = kinfold.anonymize(pa.table(table), Policy.parse(applied.model_dump(mode="json", exclude_none=True)))
    assert again.plan.steps == release.plan.steps
    assert (again.labels == release.labels).all()


@pytest.mark.compiled
def test_it_never_loses_more_than_refinement_by_size() -> None:
    table = numbers(6, 90)
    losses = [
        released(table, 4, name="mdav", refine=refine).measures.to_dict()["loss"]["sse_ratio"]
        for refine in (0, "auto", "exact")
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < losses[0]


@pytest.mark.compiled
def test_the_same_steps_give_the_same_classes_whatever_the_clock_says() -> None:
    x = np.random.default_rng(7).normal(size=(60, 2))
    start = mdav_plain(x, 3)
    first = exact(x, 3, start, steps=40)
    again = exact(x, 3, start, steps=first.steps, seconds=0.0)
    assert (first.labels == again.labels).all()
    assert (first.cost, first.bound, first.steps) == (again.cost, again.bound, again.steps)
    few = exact(x, 3, start, steps=1)
    assert few.steps == 1
    assert few.bound <= first.bound <= first.cost <= few.cost + 1e-12


# Where it cannot be


def refused(table: dict[str, Any], policy: dict[str, Any]) -> str:
    with pytest.raises(PolicyError) as caught:
        kinfold.anonymize(pa.table(table), policy)
    assert all(problem.fix for problem in caught.value.problems)
    return str(caught.value)


def asked(**sections: dict[str, Any]) -> dict[str, Any]:
    columns = {"age": {"role": "quasi", "type": "continuous"}, "wage": {"role": "confidential", "type": "continuous"}}
    sections["columns"] = columns | sections.get("columns", {})
    return {"privacy": {"k": 2}, "method": {"name": "mdav", "refine": "exact"}} | sections


TABLE = {"age": list(range(20, 40)), "wage": [1, 2] * 10}


def test_it_knows_no_promise_but_k() -> None:
    assert '"exact" knows no promise but k' in refused(TABLE, asked(privacy={"k": 2, "l": 2}))
    people = {**TABLE, "who": [str(i % 15) for i in range(20)]}
    unit = asked(privacy={"k": 2, "unit": "who"}, columns={"who": {"role": "identifier"}})
    assert '"exact" knows no promise but k' in refused(people, unit)


def test_it_keeps_no_strata_apart() -> None:
    missing = {"age": [None, None, None, *range(20, 37)], "wage": TABLE["wage"]}
    column = {"age": {"role": "quasi", "type": "continuous", "missing": "separate"}}
    assert "records with missing values are grouped apart" in refused(missing, asked(columns=column))


def test_it_is_for_small_tables() -> None:
    many = refinement.EXACT_UP_TO + 1
    table = {"age": list(range(many)), "wage": [1] * many}
    assert f"is for up to {refinement.EXACT_UP_TO:,} records, there are {many:,}" in refused(table, asked())


def test_it_is_for_methods_that_partition() -> None:
    column = {"age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [5, 10]}}}
    told = refused(TABLE, asked(method={"name": "lattice", "refine": "exact"}, columns=column))
    assert '"exact" is for methods that partition, and the method is lattice' in told


def test_what_is_none_of_it_is_told() -> None:
    with pytest.raises(PolicyError, match=r"method.refine"):
        Policy.parse({"privacy": {"k": 2}, "method": {"refine": "best"}})
