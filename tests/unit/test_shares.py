"""`average = "shares"`: one value of each class, and the shares of the table about as they were."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.methods.aggregation import mode, preserve_shares


def excess(codes: list[int], labels: list[int], values: list[int]) -> int:
    """Return by how many records the codes of the release differ from those of the original."""
    released = [values[label] for label in labels]
    return sum(abs(released.count(code) - codes.count(code)) for code in {*codes, *released})


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 5)), min_size=1, max_size=40))
def test_each_class_gets_one_of_its_values_and_no_single_change_brings_the_shares_closer(
    records: list[tuple[int, int]],
) -> None:
    codes = [code for code, _ in records]
    labels = np.unique([label for _, label in records], return_inverse=True)[1].tolist()
    values = preserve_shares(np.array(codes), np.array(labels)).tolist()
    inside = [{code for code, label in zip(codes, labels, strict=True) if label == c} for c in range(len(values))]
    assert all(value in own for value, own in zip(values, inside, strict=True))
    reached = excess(codes, labels, values)
    assert reached <= excess(codes, labels, mode(np.array(codes), np.array(labels)).tolist())
    for c, own in enumerate(inside):
        for code in own:
            assert excess(codes, labels, [*values[:c], code, *values[c + 1 :]]) >= reached


def people(records: int = 1_000) -> pd.DataFrame:
    """Return people who do not exist; one in ten is from elsewhere, at any age."""
    draw = np.random.default_rng(2)
    nation = draw.choice(["CH", "DE", "FR", "IT"], records, p=[0.85, 0.08, 0.05, 0.02])
    return pd.DataFrame(
        {"age": draw.integers(18, 90, records), "pay": draw.normal(50, 9, records).round(1), "nation": nation}
    )


def request(average: str) -> dict[str, Any]:
    columns = {
        "age": {"role": "quasi"},
        "pay": {"role": "quasi"},
        "nation": {"role": "quasi", "average": average, "weight": 0.1},
    }
    return {"privacy": {"k": 5}, "method": {"name": "mdav"}, "columns": columns}


def test_a_release_keeps_its_minorities_and_its_promise() -> None:
    shares, modes = (kinfold.anonymize(people(), request(average)) for average in ("shares", "mode"))
    assert shares.verdict.holds
    assert shares.verdict.k >= 5
    assert shares.measures["loss"]["shift"].get("nation") is None
    assert modes.measures["loss"]["shift"]["nation"]["vanished"] == 1
    assert shares.measures["loss"]["by_column"]["nation"] > modes.measures["loss"]["by_column"]["nation"]
    before, after = (table.nation.value_counts(normalize=True) for table in (people(), shares.frame))
    assert after.to_dict() == pytest.approx(before.to_dict(), abs=0.005)


def test_only_nominal_columns_have_it() -> None:
    policy = request("mode")
    policy["columns"]["age"] = {"role": "quasi", "average": "shares"}
    with pytest.raises(kinfold.PolicyError, match="age"):
        kinfold.anonymize(people(), policy)
