"""Promises on tables of the awkward kinds: ties, rare values, several columns, people. Each release keeps them all."""

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from everyday import first
from kinfold.errors import Unreachable
from kinfold.methods.partition.geometry import compute_cost, number_places
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.repair import KindIndex, find_best_start, settle_classes
from kinfold.methods.partition.requirement import Requirement, measure_misses
from kinfold.models import LDiversity, TCloseness
from kinfold.progress import no_progress
from kinfold.tables.points import Points
from reference.nearest_kinds import nearest_of_kind

pytestmark = pytest.mark.compiled

N = 1200


def table() -> pa.Table:
    chance = np.random.default_rng(11)
    age = chance.integers(20, 32, N)
    return pa.table(
        {
            "age": age,
            "sex": chance.choice(["f", "m"], N),
            "rich": np.where(chance.random(N) < (age - 18) / 30, "yes", "no"),
            "rare": np.where(np.arange(N) % 400 == 7, "rare", chance.choice(["a", "b", "c"], N)),
            "income": np.where(chance.random(N) < 0.6, 0, chance.integers(1, 500, N)),
            "person": [f"p{i // 2}" for i in range(N)],
        }
    )


REQUESTS = {
    "binary t": (["rich"], {"t": 0.15}),
    "binary, tight": (["rich"], {"t": 0.03}),
    "a rare value": (["rare"], {"t": 0.2}),
    "many equal amounts": (["income"], {"t": 0.15}),
    "t and l": (["rare"], {"t": 0.3, "l": 3}),
    "several columns": (["rich", "rare"], {"t": 0.25}),
    "l": (["rich"], {"l": 2}),
    "entropy": (["rare"], {"l": 2.5, "l_kind": "entropy"}),
    "p and alpha": (["rare"], {"p": 3, "alpha": 0.6}),
    "people": (["rich"], {"t": 0.25, "unit": "person"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("k", first([3, 20]))
@pytest.mark.parametrize("name", REQUESTS)
def test_every_promise_is_kept_and_the_release_is_always_the_same(name: str, k: int) -> None:
    confidential, promise = REQUESTS[name]
    columns = {c: {"role": "confidential"} for c in confidential}
    policy = {
        "privacy": {"k": k, **promise},
        "method": {"refine": 0},
        "columns": {"age": {"role": "quasi"}, "sex": {"role": "quasi"}, **columns},
        "output": {"others": "drop"},
    }
    if "unit" in promise:
        policy["columns"]["person"] = {"role": "identifier"}
    one, same = (kinfold.anonymize(table(), policy) for _ in range(2))
    assert one.verdict.holds
    assert one.measures.to_dict()["classes"] > 1
    assert one.labels.tolist() == same.labels.tolist()


def test_what_is_heard_of_a_run_never_goes_back_and_no_stage_comes_twice() -> None:
    heard: list[tuple[str, float]] = []
    kinfold.anonymize(
        table(), quasi=["age", "sex"], confidential=["rich"], k=5, t=0.1, others="drop",
        progress=lambda stage, done, total: heard.append((stage, done / total)),
    )  # fmt: skip
    stages = [stage for i, (stage, _) in enumerate(heard) if i == 0 or heard[i - 1][0] != stage]
    assert len(stages) == len(set(stages))
    for stage in stages:
        shares = [share for each, share in heard if each == stage]
        assert shares == sorted(shares)
        assert shares[-1] <= 1
    assert len({share for stage, share in heard if stage == "plan"}) > 3


@pytest.mark.parametrize("seed", range(4))
def test_settling_lowers_the_cost_and_several_starts_cost_no_more_than_one(seed: int) -> None:
    chance = np.random.default_rng(seed)
    points = Points.from_array(chance.integers(0, 9, (300, 2)).astype(float))
    column = (points.numbers[:, 0] + chance.normal(size=300) > 5).astype(int)
    required = [Requirement.of(TCloseness(0.2, "x", "equal"), column), Requirement.of(LDiversity(2, "x"), column)]
    found = find_best_start(points, mdav(points, 4), 4, required)
    assert measure_misses(required, found.labels).max() == 0
    assert np.bincount(found.labels).min() >= 4
    again = settle_classes(points, found.labels, 4, required, no_progress)
    assert compute_cost(points, again) <= compute_cost(points, found.labels) + 1e-9
    assert measure_misses(required, again).max() == 0


@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_of_each_kind_are_those_of_the_plain_twin(seed: int) -> None:
    chance = np.random.default_rng(seed)
    points = Points.from_array(chance.integers(0, 5, (120, 2)).astype(float))
    kind = chance.integers(0, 3, 120).astype(np.int32)
    among = chance.random(120) < 0.6
    found = KindIndex(points, number_places(points), kind, among).find_around(np.arange(0, 120, 7), 5)
    for t, (place, lists) in enumerate(zip(range(0, 120, 7), found, strict=True)):
        for v in range(3):
            assert lists[v].tolist() == nearest_of_kind(points.numbers, kind, among, place, v, 5, 3 * t + v)


def test_where_no_record_is_to_be_found_none_is() -> None:
    points, kind = Points.from_array(np.arange(8.0)[:, None]), np.arange(8, dtype=np.int32) % 2
    found = KindIndex(points, number_places(points), kind, np.zeros(8, np.bool_)).find_around(np.arange(8), 3)
    assert found.shape == (8, 2, 3)
    assert (found == -1).all()


def test_what_cannot_be_kept_is_said_at_once() -> None:
    with pytest.raises(Unreachable, match="one class"):
        kinfold.anonymize(table(), quasi=["age"], confidential=["rich"], k=5, l=3, others="drop")
