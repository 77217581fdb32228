"""Policies: every problem at once, with a suggestion; and the same policy after a trip through TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import text
from kinfold.errors import PolicyError
from kinfold.request.keywords import policy_values, requested
from kinfold.request.policy import Policy, Privacy
from kinfold.rows.schema import Role


def problems(values: dict[str, Any]) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        Policy.parse(values)
    return [problem.text() for problem in caught.value.problems]


def test_all_problems_are_told_at_once_each_with_its_key() -> None:
    found = problems(
        {
            "privacy": {"k": 1, "tt": 2, "t": 1.5},
            "method": {"name": "mdva", "seed": -1},
            "columns": {"a": {"role": "quazi", "weight": 0}, "b": {}},
            "output": {"format": "xls"},
            "colums": {},
        }
    )
    keys = ("privacy.k", "privacy.tt", "privacy.t", "method.name", "method.seed", "columns.a.role", "columns.a.weight")
    for key in (*keys, "columns.b.role", "output.format", "colums"):
        assert sum(f"'{key}'" in problem for problem in found) == 1, key
    assert len(found) == 10
    assert all("\n  fix: " in problem for problem in found)


@pytest.mark.parametrize("value", [True, "0.2", None, [0.2], float("nan"), float("inf"), 0, -1, 1.1])
def test_what_is_no_level_of_closeness(value: Any) -> None:
    if value is None:
        assert Policy.parse({"privacy": {"k": 2, "t": None}}).privacy.t is None
    else:
        assert "'privacy.t'" in problems({"privacy": {"k": 2, "t": value}})[0]


@pytest.mark.parametrize("value", ["many", True, -1, -0.5, 1.5])
def test_what_is_no_suppression_is_told_once(value: Any) -> None:
    (found,) = problems({"privacy": {"k": 2}, "method": {"suppression": value}})
    assert "'method.suppression'" in found
    assert "a count of records" in found


def test_a_count_and_a_share_are_told_apart() -> None:
    def suppression(value: Any) -> Any:
        return Policy.parse({"privacy": {"k": 2}, "method": {"suppression": value}}).method.suppression

    assert (suppression(1), type(suppression(1))) == (1, int)
    assert (suppression(1.0), type(suppression(1.0))) == (1.0, float)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    assert Policy.parse({"privacy": {"k": np.int64(5)}}).privacy.k == 5


def test_categories_written_as_numbers_are_their_text() -> None:
    column = Policy.parse(
        {"privacy": {"k": 2}, "columns": {"a": {"role": "key", "order": [1, 2.5, True, "x"]}}}
    ).columns["a"]
    assert column.order == ("1", "2.5", "true", "x")


@pytest.mark.parametrize(
    ("name", "role"),
    [("quasi", Role.QUASI), ("key", Role.QUASI), ("sensitive", Role.CONFIDENTIAL), ("insensitive", Role.OTHER)],
)
def test_roles_have_the_names_of_other_tools(name: str, role: Role) -> None:
    assert Policy.parse({"privacy": {"k": 2}, "columns": {"a": {"role": name}}}).columns["a"].role is role


def test_a_hierarchy_has_one_form() -> None:
    both = {"privacy": {"k": 2}, "columns": {"a": {"role": "key", "hierarchy": {"mask": 2, "levels": [["a"]]}}}}
    assert "exactly one of mask, intervals, dates, levels, file, tree" in problems(both)[0]


FULL = {
    "privacy": {
        "k": 5,
        "t": 0.2,
        "l": 2,
        "l_kind": "recursive",
        "c": 3.0,
        "p": 2,
        "alpha": 0.5,
        "unit": "id",
        "joint": True,
    },
    "method": {
        "name": "mdav",
        "refine": "auto",
        "refine_steps": 7,
        "suppression": 0.05,
        "objective": "prec",
        "seed": 3,
    },
    "columns": {
        "plain": {"role": "other"},
        "odd \"name\" with.dots and 'quotes'": {"role": "quasi-identifier", "type": "date", "missing": "separate"},
        "ünï": {"role": "key", "type": "ordinal", "order": ["a", "b"], "average": "convex-median", "weight": 2.5},
        "new\nline": {"role": "confidential", "t": 0.1, "l": 3, "distance": "equal"},
        "m": {"role": "key", "hierarchy": {"mask": 3}},
        "i": {"role": "key", "hierarchy": {"intervals": [5, 10.5], "origin": 1}},
        "d": {"role": "key", "hierarchy": {"dates": ["month", "year"]}},
        "l": {"role": "key", "hierarchy": {"levels": [["a", "x"], ["b", "y"]]}},
        "t": {"role": "key", "hierarchy": {"tree": {"x": ["a", "b"], "y": {"z": ["c"]}}}},
    },
    "output": {
        "round": False,
        "order": "kept",
        "preserve": "variance",
        "others": "drop",
        "suppressed": "star",
        "format": "parquet",
    },
}


def test_a_policy_survives_toml(tmp_path: Path) -> None:
    policy = Policy.parse(FULL)
    assert Policy.load(text(tmp_path, "p.toml", policy.toml())) == policy


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.sampled_from(list(Role)), max_size=4))
def test_any_name_of_a_column_survives_toml(names: dict[str, Role]) -> None:
    import tomllib

    policy = Policy.parse({"privacy": {"k": 2}, "columns": {name: {"role": role} for name, role in names.items()}})
    assert Policy.parse(tomllib.loads(policy.toml())) == policy


def test_paths_start_from_the_folder_of_the_policy_and_are_good_from_anywhere(tmp_path: Path) -> None:
    values = '[privacy]\nk = 2\n[columns.a]\nrole = "key"\nhierarchy = { file = "h/a.csv" }\n'
    policy = Policy.load(str(text(tmp_path, "p.toml", values)))
    hierarchy = policy.columns["a"].hierarchy
    assert hierarchy is not None
    assert hierarchy.file == tmp_path / "h" / "a.csv"
    (tmp_path / "elsewhere").mkdir()
    assert Policy.load(text(tmp_path / "elsewhere", "p.toml", policy.toml())) == policy


def test_policies_come_as_policies_mappings_or_files(tmp_path: Path) -> None:
    policy = Policy.parse(FULL)
    path = text(tmp_path, "p.toml", policy.toml())
    assert Policy.of(policy) == Policy.of(FULL) == Policy.of(path) == Policy.of(str(path))


def test_keywords_are_sorted_into_sections() -> None:
    given = {"k": 3, "method": "mdav", "seed": 1, "others": "drop", "measures": "all"}
    values = policy_values({"quasi": "a", "confidential": ["b"], **given})
    policy = Policy.parse(values)
    assert (policy.privacy.k, policy.method.name, policy.method.seed, policy.output.others) == (3, "mdav", 1, "drop")
    assert policy.report.measures == "all"
    assert {name: column.role for name, column in policy.columns.items()} == {"a": Role.QUASI, "b": Role.CONFIDENTIAL}


def test_a_keyword_that_is_not_known_is_named() -> None:
    with pytest.raises(PolicyError, match=r"unknown key 'privacy.kk', did you mean 'k'"):
        requested(None, {"quasi": ["a"], "kk": 3})


@pytest.mark.parametrize("section", [*Policy.model_fields])
def test_the_known_keys_are_those_of_the_section(section: str) -> None:
    written = {"columns": {"role": {"kk": 1}}, "rules": [{"kk": 1}]}.get(section, {"kk": 1})
    known = {"columns": "role, type, ", "rules": "check, repair"}.get(section)
    keys = known or ", ".join(type(getattr(Policy(privacy=Privacy(k=2)), section)).model_fields)
    with pytest.raises(PolicyError, match=rf"\.kk'[^\n]*\n  fix: known keys there: {keys}"):
        Policy.parse({"privacy": {"k": 2}, section: written})


def test_a_policy_and_keywords_together_are_refused() -> None:
    with pytest.raises(PolicyError, match="a policy and k were given"):
        requested(FULL, {"k": 3})


def test_a_column_in_two_lists_is_refused() -> None:
    with pytest.raises(PolicyError, match="column 'a' is given as quasi-identifier and as confidential"):
        requested(None, {"quasi": ["a"], "confidential": ["a"], "k": 3})
