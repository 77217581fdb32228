"""Levels as a vector: the node of the lattice that a policy names."""

from __future__ import annotations

import tomllib
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import kinfold
from kinfold.comparison.outcome import Setting
from kinfold.errors import PolicyError, Unreachable
from kinfold.request.policy import Policy

ZIPS = ["02138", "02138", "02139", "02139", "02141", "02142", "94305"]
SEXES = ["f", "f", "m", "f", "m", "m", "f"]
TABLE = pa.table({"zip": ZIPS, "sex": SEXES, "illness": ["a", "b", "a", "b", "a", "b", "a"]})
HEIGHTS = {"zip": 5, "sex": 1}


def policy(levels: Any, k: int = 2, suppression: float = 0, name: str = "lattice", **output: str) -> dict[str, Any]:
    return {
        "privacy": {"k": k},
        "method": {"name": name, "levels": levels, "suppression": suppression},
        "columns": {
            "zip": {"role": "quasi", "type": "nominal", "hierarchy": {"mask": 5}},
            "sex": {"role": "quasi", "type": "nominal"},
            "illness": {"role": "sensitive"},
        },
        "output": {"order": "kept", **output},
    }


def label(text: str, hidden: int) -> str:
    return "*" if hidden == len(text) else text[: len(text) - hidden] + "*" * hidden


@pytest.mark.slow
def test_every_node_is_released_as_plain_masking_and_counting_have_it() -> None:
    for z, s in product(range(HEIGHTS["zip"] + 1), range(HEIGHTS["sex"] + 1)):
        rows = [(label(zip_, z), label(sex, s)) for zip_, sex in zip(ZIPS, SEXES, strict=True)]
        kept = [row for row in rows if rows.count(row) >= 2]
        if not kept:
            with pytest.raises(Unreachable):
                kinfold.anonymize(TABLE, policy({"zip": z, "sex": s}, suppression=7))
            continue
        release = kinfold.anonymize(TABLE, policy({"zip": z, "sex": s}, suppression=7))
        frame = release.frame
        assert list(zip(frame["zip"].to_pylist(), frame["sex"].to_pylist(), strict=True)) == kept, (z, s)
        assert release.verdict.k >= 2


def test_a_node_that_suppresses_more_than_is_allowed_is_unreachable_and_says_how_much() -> None:
    with pytest.raises(Unreachable, match="5 of 7 records have to be suppressed, and at most 4 may be") as said:
        kinfold.anonymize(TABLE, policy({"zip": 0, "sex": 0}, suppression=4))
    assert "method.levels" in str(said.value)
    assert len(kinfold.anonymize(TABLE, policy({"zip": 0, "sex": 0}, suppression=5)).frame) == 2


def test_suppression_may_be_a_share() -> None:
    assert len(kinfold.anonymize(TABLE, policy({"zip": 1, "sex": 1}, suppression=0.15)).frame) == 6
    with pytest.raises(Unreachable):
        kinfold.anonymize(TABLE, policy({"zip": 1, "sex": 1}, suppression=0.14))


def test_suppressed_records_can_be_starred() -> None:
    release = kinfold.anonymize(TABLE, policy({"zip": 1, "sex": 1}, suppression=7, suppressed="star"))
    assert release.frame["zip"].to_pylist() == ["0213*"] * 4 + ["*"] * 3


def test_the_release_says_which_levels_it_has_and_whose_they_are() -> None:
    notes = kinfold.anonymize(TABLE, policy({"sex": 1, "zip": 5})).plan.notes
    assert "levels: zip 5 of 5, sex 1 of 1" in notes
    assert "the levels are those of the policy" in notes


def test_the_optimum_of_the_search_named_as_levels_gives_the_same_rows() -> None:
    found = kinfold.anonymize(TABLE, policy(None, suppression=1))
    named = dict.fromkeys(HEIGHTS, 0)
    for part in found.plan.notes[0].removeprefix("levels: ").split(", "):
        name, level, *_ = part.split()
        named[name] = int(level)
    assert kinfold.anonymize(TABLE, policy(named, suppression=1)).frame.equals(found.frame)


def test_every_problem_with_the_levels_is_told_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        kinfold.anonymize(TABLE, policy({"zip": 6, "illness": 1}))
    said = str(caught.value)
    assert "'illness' is no quasi-identifier" in said
    assert "'zip' is to be on level 6, and its hierarchy ends at 5" in said
    assert "'sex' has no level" in said


@pytest.mark.parametrize("level", [-1, 1.5, "1", True])
def test_a_level_is_a_whole_number_from_0_up(level: Any) -> None:
    with pytest.raises(PolicyError, match=r"method\.levels"):
        Policy.parse(policy({"zip": level}))


@pytest.mark.parametrize("name", ["auto", "mdav", "datafly"])
def test_levels_with_another_method_are_refused_and_not_ignored(name: str) -> None:
    with pytest.raises(PolicyError, match='levels are for name = "lattice"'):
        Policy.parse(policy({"zip": 1, "sex": 1}, name=name))


def test_a_comparison_keeps_the_levels_for_the_lattice_alone() -> None:
    asked = Policy.parse(policy({"zip": 1, "sex": 1}))
    assert Setting("lattice", 2, None).applied(asked).method.levels == {"zip": 1, "sex": 1}
    other = Setting("mdav", 2, None).applied(asked)
    assert other.method.levels is None
    assert Policy.parse(other.model_dump(exclude_none=True)) == other


def test_levels_survive_the_policy_file() -> None:
    asked = Policy.parse(policy({"zip": 1, "sex": 1}))
    assert Policy.parse(tomllib.loads(asked.toml())) == asked
