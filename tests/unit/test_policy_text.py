"""The text of a policy: edited in place, with what is wrong told by its line."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kinfold.demo import demo_policy
from kinfold.errors import PolicyError
from kinfold.request.policy import Policy, parse_toml
from kinfold.request.policy_text import edited, line_of, located, read_text

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)


def problems(text: str) -> list[tuple[tuple[str, ...], int | None]]:
    with pytest.raises(PolicyError) as raised:
        read_text(text)
    return [(each.problem.key, each.line) for each in located(text, raised.value.problems)]


def test_comments_and_order_stay() -> None:
    text = edited(demo_policy(), {("privacy", "k"): 8, ("columns", "zip", "average"): None})
    lines, before = text.splitlines(), demo_policy().splitlines()
    assert len(lines) == len(before) - 1
    assert [line for line in lines if line not in before] == ["k = 8 # nobody can be told from at least four others"]


@pytest.mark.slow
@example(name="education", role="identifier")
@given(name=NAMES, role=st.sampled_from(["identifier", "quasi-identifier", "confidential", "other"]))
def test_any_name_of_a_column_is_a_key(name: str, role: str) -> None:
    text = edited(demo_policy(), {("columns", name, "role"): role, ("columns", name, "weight"): 2.0})
    column = Policy.parse(parse_toml(text)).columns[name]
    assert (column.role, column.weight) == (role, 2.0)
    assert text.splitlines()[(line_of(text, ("columns", name, "role")) or 0) - 1].startswith("role = ")
    back, known = parse_toml(edited(text, {("columns", name): None})), parse_toml(demo_policy())
    known["columns"].pop(name, None)  # which was there already, if somebody draws its name
    assert back == known


@pytest.mark.parametrize(
    "hierarchy",
    [{"mask": 3}, {"levels": [["a", "b"], ["c", "d"]]}, {"intervals": [5, 10], "top": 85}, {"tree": {"x": ["a", "b"]}}],
)
def test_a_hierarchy_takes_the_place_of_another(hierarchy: dict[str, Any]) -> None:
    text = demo_policy()
    for each in (hierarchy, {"levels": [["q", "r"]]}, hierarchy):
        text = edited(text, {("columns", "zip", "hierarchy"): each, ("columns", "zip", "weight"): 3.0})
        assert parse_toml(text)["columns"]["zip"]["hierarchy"] == each
        assert parse_toml(text)["columns"]["zip"]["weight"] == 3.0
        assert parse_toml(text)["columns"]["education"] == parse_toml(demo_policy())["columns"]["education"]


def test_every_problem_has_its_line() -> None:
    text = (
        '[privacy]\nk = 1\n\n[columns."a.b"]\nrole = "x"\norder = [\n  "k = 1",\n]\nwrong = 2\n[[rules]]\ncheck = 3\n'
    )
    assert problems(text) == [
        (("privacy", "k"), 2),
        (("columns", "a.b", "role"), 5),
        (("columns", "a.b", "wrong"), 9),
        (("rules", "0", "check"), 11),
    ]


@pytest.mark.parametrize(("text", "line"), [("[privacy]\nk = \n", 2), ("[privacy\nk = 2", 1), ("a = 1\na = 2\n", 2)])
def test_what_is_no_toml_has_its_line(text: str, line: int) -> None:
    assert problems(text) == [((), line)]


def test_a_key_inside_a_value_is_refused() -> None:
    with pytest.raises(PolicyError, match="no section of keys"):
        edited("[privacy]\nk = 5\n", {("privacy", "k", "more"): 1})
