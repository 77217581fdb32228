"""The minimality attack: the measure equals what an attacker finds by running the method on every possible original."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from kinfold.errors import PolicyError
from kinfold.hierarchy import Hierarchy
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.minimality import strongest_belief
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.request.policy import Policy
from kinfold.rows.tally import Tally, of_labels

ZIP, DISEASE = list("AABBBB"), list("HHfgij")
TREE = {"role": "quasi-identifier", "type": "nominal", "hierarchy": {"levels": [["A", "*"], ["B", "*"]]}}
VILLAGES = Hierarchy.of([("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*")])
MODELS = {
    "distinct": lambda: LDiversity(2, "disease"),
    "entropy": lambda: LDiversity(1.8, "disease", "entropy"),
    "closeness": lambda: TCloseness(0.45, "disease", "equal"),
}


def _released(**method: object) -> kinfold.Release:
    table = pa.table({"zip": ZIP, "disease": DISEASE})
    policy = {
        "privacy": {"k": 2, "l": 2},
        "method": {"name": "lattice", **method},
        "columns": {"zip": TREE, "disease": {"role": "confidential"}},
    }
    return kinfold.anonymize(table, policy)


def test_a_minimal_generalization_tells_who_holds_what() -> None:
    measures = _released().measures.to_dict()
    assert measures["risk"]["minimality"] == {"belief": 1.0, "by_class": pytest.approx(1 / 3)}
    assert any(note.startswith("risk.minimality: someone who knows the method") for note in measures["notes"])


def test_a_level_that_may_be_a_random_one_proves_nothing() -> None:
    seeds = [10**12 + seed for seed in range(8)]
    measured = [_released(extra_level=0.5, seed=seed).measures["risk"]["minimality"]["belief"] for seed in seeds]
    assert measured == pytest.approx([0.375] * 8)  # nothing is above the top: always the same level


def test_levels_are_raised_at_random_by_a_secret_seed() -> None:
    table = pa.table({"zip": list("aabbccdd"), "disease": list("fgfgfgfg")})
    tree = {"levels": [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"], ["d", "y", "*"]]}
    columns = {"zip": {**TREE, "hierarchy": tree}, "disease": {"role": "confidential"}}

    def first(seed: int) -> str:
        method = {"name": "lattice", "extra_level": 0.5, "seed": seed}
        released = kinfold.anonymize(table, {"privacy": {"k": 2, "l": 2}, "method": method, "columns": columns})
        return str(released.frame["zip"][0])

    labels = [first(10**11 + seed) for seed in range(12)]
    assert set(labels) == {"a", "x"}
    assert labels == [first(10**11 + seed) for seed in range(12)]


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ({"extra_level": 0.5}, "needs a seed that nobody can guess"),
        ({"extra_level": 0.5, "seed": 10**12, "suppression": 1}, "does not go with suppression"),
        ({"extra_level": 0.5, "seed": 10**12, "levels": {"zip": 1}}, "does not go with suppression or levels"),
        ({"extra_level": 1.0, "seed": 10**12}, "extra_level"),
        ({"name": "datafly", "extra_level": 0.5, "seed": 10**12}, 'extra_level is for name = "lattice"'),
    ],
)
def test_a_remedy_that_would_not_work_is_refused(method: dict[str, object], wrong: str) -> None:
    with pytest.raises(PolicyError, match=wrong):
        Policy.parse({"privacy": {"k": 2, "l": 2}, "method": {"name": "lattice", **method}})


def _domain(villages: list[str], diseases: list[str]) -> Domain:
    kinds = sorted(set(villages))
    labels = np.array([kinds.index(village) for village in villages])
    tally = of_labels(labels, {"disease": diseases})
    return Domain.of_tally(
        Tally({"village": np.array(kinds, object)}, tally.sizes, tally.spreads), {"village": VILLAGES}
    )


def _labels(villages: list[str], level: int) -> list[str]:
    return [(village, "xxyy"["abcd".index(village)], "*")[level] for village in villages]


def _attacked(villages: list[str], diseases: list[str], models: list[object], level: int) -> float:
    """Run the search on every original that has the values of each released class, and believe what is left.

    Of people whose class would not be split by a lower level, nothing is learnt but what their class shows.
    """
    released, below = _labels(villages, level), _labels(villages, level - 1)
    places = [[i for i, label in enumerate(released) if label == known] for known in sorted(set(released))]
    orders = [sorted(permutations([diseases[i] for i in members])) for members in places]
    held = np.zeros((len(villages), 4))
    for chosen in product(*orders):
        original = list(diseases)
        for members, values in zip(places, chosen, strict=True):
            for i, value in zip(members, values, strict=True):
                original[i] = value
        if Lattice(_domain(villages, original), models).search().levels == (level,):
            held[np.arange(len(villages)), ["fghi".index(value) for value in original]] += 1
    split = [i for members in places if len({below[i] for i in members}) > 1 for i in members]
    return float((held / held.sum(axis=1, keepdims=True))[split].max())


@pytest.mark.parametrize("kind", MODELS)
def test_what_is_measured_is_what_the_attack_finds(kind: str) -> None:
    random, compared = np.random.default_rng(7), 0
    for _ in range(20):
        villages = sorted(random.choice(list("abcd"), 5).tolist())
        diseases = random.choice(list("fghi"), 5, p=[0.5, 0.3, 0.1, 0.1]).tolist()
        models = [KAnonymity(1), MODELS[kind]()]
        found = Lattice(_domain(villages, diseases), models)
        try:
            levels = found.search().levels
        except kinfold.errors.Unreachable:
            continue
        belief = strongest_belief(_domain(villages, diseases), models, levels)
        if belief is not None:
            assert belief.known == pytest.approx(_attacked(villages, diseases, models, levels[0]))
            compared += 1
    assert compared > 2
