"""Measurement of whole releases: random mixed tables, against plain twins and against itself."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kinfold
from everyday import first
from flow_tables import Case, usable


def leaves(values: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(values, dict):
        return {path: values}
    return {key: value for name, held in values.items() for key, value in leaves(held, f"{path}.{name}").items()}


def can_be_released(drawn: Case) -> bool:
    try:
        kinfold.anonymize(drawn.table, drawn.policy)
    except kinfold.Unreachable:
        return False
    return True


@pytest.mark.parametrize("seed", first(range(10), 4))
def test_every_measure_of_a_release_is_a_finite_number_or_null_with_a_reason(seed: int) -> None:
    drawn = usable(seed, can_be_released)
    release = kinfold.anonymize(drawn.table, drawn.policy)
    found = release.measures.to_dict()
    notes = " ".join(found["notes"])
    for section in ("risk", "loss"):
        for key, value in found[section].items():
            assert value is not None or f"{section}.{key}" in notes
        assert all(math.isfinite(value) for value in leaves(found[section]).values() if value is not None)
    assert "not true of its original" not in notes  # our own statements are
    for key in ("prec", "granularity", "non_uniform_entropy", "sse_ratio"):
        assert found["loss"][key] is None or -1e-9 <= found["loss"][key] <= 1 + 1e-9, key
    assert found["risk"]["linkage"] <= 1 / found["k"] + 1e-12


@pytest.mark.parametrize("seed", first(range(5), 2))
def test_measuring_a_released_frame_gives_what_the_release_recorded(seed: int) -> None:
    drawn = usable(seed, lambda drawn: bool(drawn.kept.all()) and can_be_released(drawn), round=False)
    release = kinfold.anonymize(drawn.table, drawn.policy)
    assert release.measures["suppressed"] == 0  # rows that were dropped could not be paired afterwards
    again = leaves(kinfold.measure(drawn.table, release.frame, drawn.policy).to_dict())
    told = leaves(release.measures.to_dict())
    assert again.pop(".pairing").startswith("paired by position: '")
    again.pop(".notes"), told.pop(".notes")
    assert again.keys() == told.keys()
    for key, value in told.items():
        close = value if value is None or isinstance(value, str) else pytest.approx(value, rel=1e-9, abs=1e-12)
        assert again[key] == close, key


@pytest.mark.parametrize("seed", range(3))
def test_a_released_frame_without_the_dropped_rows_is_not_paired_with_its_original(seed: int) -> None:
    drawn = usable(seed, lambda drawn: not drawn.kept.all() and can_be_released(drawn), round=False)
    release = kinfold.anonymize(drawn.table, drawn.policy)
    again = kinfold.measure(drawn.table, release.frame, drawn.policy).to_dict()
    assert again["suppressed"] == release.measures["suppressed"] == int((~drawn.kept).sum()) > 0
    assert again["loss"]["sse"] is None
    assert again["risk"]["linkage"] is None
    assert any("cannot be paired" in note for note in again["notes"])


def tables(seed: int) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """A table with ties and a release of it in classes of two or three, with an untouched column."""
    random = np.random.default_rng(seed)
    n = int(random.integers(6, 20))
    table = pd.DataFrame({"x": random.integers(0, 6, n), "c": random.choice(list("abc"), n), "u": random.choice(3, n)})
    group = np.arange(n) // 3 if n % 3 != 1 else np.minimum(np.arange(n) // 3, n // 3 - 1)
    mode = table.groupby(group)["c"].agg(lambda values: values.mode()[0])
    released = table.assign(x=table.groupby(group)["x"].transform("mean"), c=mode.to_numpy()[group])
    columns = {
        "x": {"role": "quasi", "type": "continuous", "weight": 2.0},
        "c": {"role": "quasi", "type": "nominal"},
        "u": {"role": "other"},
    }
    return table, released, {"privacy": {"k": 2}, "columns": columns}


def gap(one: Any, other: Any, deviation: float) -> float:
    step = (one.x - other.x) / deviation if deviation else 0.0
    return round(2.0 * step**2 + (one.c != other.c), 9)


@pytest.mark.parametrize("seed", first(range(9), 4))
def test_the_attack_with_untouched_columns_is_that_of_its_twin(seed: int) -> None:
    table, released, policy = tables(seed)
    deviation = float(table["x"].std(ddof=0))
    credit = []
    for i, person in enumerate(table.itertuples()):
        alike = [(j, row) for j, row in enumerate(released.itertuples()) if row.u == person.u]
        near = min(gap(person, row, deviation) for _, row in alike)
        nearest = [j for j, row in alike if gap(person, row, deviation) == near]
        credit.append(1 / len(nearest) if i in nearest else 0.0)
    found = kinfold.measure(table, released, policy, linkage_untouched=True)["risk"]["linkage_untouched"]
    assert found["linkage"] == pytest.approx(np.mean(credit))


@pytest.mark.parametrize("seed", first(range(9), 4))
def test_the_journalist_is_his_twin(seed: int) -> None:
    table, released, policy = tables(seed)
    random = np.random.default_rng(seed + 100)
    people = pd.DataFrame({"x": random.integers(-2, 9, 25), "c": random.choice(list("abcd"), 25)})
    deviation = float(table["x"].std(ddof=0))
    shown = list(dict.fromkeys(zip(released["x"], released["c"], strict=True)))
    sizes = Counter(zip(released["x"], released["c"], strict=True))
    looks: Counter[Any] = Counter()
    for person in people.itertuples():
        near = {key: gap(person, pd.Series({"x": key[0], "c": key[1]}), deviation) for key in shown}
        looks.update(key for key in shown if near[key] == min(near.values()))
    risks = [1 / max(looks[key], sizes[key]) for key in itertools.chain(*([key] * sizes[key] for key in shown))]
    found = kinfold.measure(table, released, policy, population=people)["risk"]["journalist"]
    assert found == {"max": pytest.approx(max(risks)), "mean": pytest.approx(np.mean(risks))}
