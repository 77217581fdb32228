"""Policies: every problem at once, TOML and its lines, and the JSON schema."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from command import text
from examples import PAGES, ROOT, blocks
from kinfold.demo import read_demo_policy
from kinfold.errors import PolicyError, Problem
from kinfold.policy.model import (
    ColumnPolicy,
    EngineSection,
    HierarchySpec,
    LinkedTable,
    Method,
    Output,
    Policy,
    Report,
    Rule,
    Source,
)
from kinfold.policy.perturbation import Perturbation
from kinfold.policy.privacy import CombinationKeys, PopulationKeys, Privacy, RiskShareKeys
from kinfold.policy.review import Proposal, Review, ReviewQuestion
from kinfold.policy.schema import (
    build_policy,
    build_policy_schema,
    collect_policy_values,
    read_key_descriptions,
)
from kinfold.policy.toml_text import edit_text, locate_problems, parse_policy_text
from kinfold.policy.toml_values import parse_toml
from kinfold.profiling.frameworks import load_frameworks, write_skeleton
from kinfold.tables.schema import ROLE_SYNONYMS, Role
from tools.reference import describe_keys, old


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


def test_numbers_of_numpy_are_numbers_and_categories_written_as_numbers_are_texts() -> None:
    order = {"a": {"role": "key", "order": [1, 2.5, True, "x"]}}
    policy = Policy.parse({"privacy": {"k": np.int64(5)}, "columns": order})
    assert (policy.privacy.k, policy.columns["a"].order) == (5, ("1", "2.5", "true", "x"))


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
    "privacy": {"k": 5, "t": 0.2, "l": 2, "l_kind": "recursive", "c": 3.0, "p": 2, "alpha": 0.5}
    | {"unit": "id", "joint": True},
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
    "output": {"round": False, "order": "kept", "preserve": "variance", "others": "drop", "suppressed": "star"}
    | {"format": "parquet"},
}


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.sampled_from(list(Role)), max_size=4))
def test_any_name_of_a_column_survives_toml(names: dict[str, Role]) -> None:

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


def test_policies_come_as_policies_mappings_or_files_and_survive_toml(tmp_path: Path) -> None:
    policy = Policy.parse(FULL)
    path = text(tmp_path, "p.toml", policy.toml())
    assert Policy.load(path) == policy
    assert Policy.of(policy) == Policy.of(FULL) == Policy.of(path) == Policy.of(str(path))


def test_keywords_are_sorted_into_sections() -> None:
    given = {"k": 3, "method": "mdav", "seed": 1, "others": "drop", "measures": "all"}
    values = collect_policy_values({"quasi": "a", "confidential": ["b"], **given})
    policy = Policy.parse(values)
    assert (policy.privacy.k, policy.method.name, policy.method.seed, policy.output.others) == (3, "mdav", 1, "drop")
    assert policy.report.measures == "all"
    assert {name: column.role for name, column in policy.columns.items()} == {"a": Role.QUASI, "b": Role.CONFIDENTIAL}


@pytest.mark.parametrize(
    ("policy", "keywords", "said"),
    [
        (None, {"quasi": ["a"], "kk": 3}, r"unknown key 'privacy.kk', did you mean 'k'"),
        ("full", {"k": 3}, "a policy and k were given"),
        (None, {"quasi": ["a"], "confidential": ["a"], "k": 3}, "'a' is given as quasi-identifier and as confidential"),
    ],
)
def test_wrong_keywords_are_refused(policy: str | None, keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        build_policy(FULL if policy else None, keywords)


@pytest.mark.parametrize("section", [*Policy.model_fields])
def test_the_known_keys_are_those_of_the_section(section: str) -> None:
    further = {"columns": {"role": {"kk": 1}}, "rules": [{"kk": 1}], "review": {"unit": {"kk": 1}}}
    further["tables"] = {"people": {"kk": 1}}
    written = further.get(section, {"kk": 1})
    lists = {"columns": "role, reason, type, ", "rules": "check, repair", "review": "question, seen, sets, proposed, "}
    known = (lists | {"tables": "file, link"}).get(section)
    keys = known or ", ".join(type(getattr(Policy(privacy=Privacy(k=2)), section)).model_fields)
    with pytest.raises(PolicyError, match=rf"\.kk'[^\n]*\n  fix: known keys there: {keys}"):
        Policy.parse({"privacy": {"k": 2}, section: written})


# The text of a policy: edited in place, with what is wrong told by its line.


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)


def problem_lines(text: str) -> list[tuple[tuple[str, ...], int | None]]:
    with pytest.raises(PolicyError) as raised:
        parse_policy_text(text)
    return [(each.problem.key, each.line) for each in locate_problems(text, raised.value.problems)]


def test_comments_and_order_stay() -> None:
    text = edit_text(read_demo_policy(), {("privacy", "k"): 8, ("columns", "zip", "average"): None})
    lines, before = text.splitlines(), read_demo_policy().splitlines()
    assert len(lines) == len(before) - 1
    assert [line for line in lines if line not in before] == [
        "k = 8 # records that share each combination of quasi-identifiers"
    ]


@pytest.mark.slow
@example(name="education", role="identifier")
@given(name=NAMES, role=st.sampled_from(["identifier", "quasi-identifier", "confidential", "other"]))
def test_any_name_of_a_column_is_a_key(name: str, role: str) -> None:
    text = edit_text(read_demo_policy(), {("columns", name, "role"): role, ("columns", name, "weight"): 2.0})
    column = Policy.parse(parse_toml(text)).columns[name]
    assert (column.role, column.weight) == (role, 2.0)
    (located,) = locate_problems(text, [Problem("x", "y", key=("columns", name, "role"))])
    assert text.splitlines()[(located.line or 0) - 1].startswith("role = ")
    back, known = parse_toml(edit_text(text, {("columns", name): None})), parse_toml(read_demo_policy())
    known["columns"].pop(name, None)  # which was there already, if somebody draws its name
    assert back == known


@pytest.mark.parametrize(
    "hierarchy",
    [{"mask": 3}, {"levels": [["a", "b"], ["c", "d"]]}, {"intervals": [5, 10], "top": 85}, {"tree": {"x": ["a", "b"]}}],
)
def test_a_hierarchy_takes_the_place_of_another(hierarchy: dict[str, Any]) -> None:
    text = read_demo_policy()
    for each in (hierarchy, {"levels": [["q", "r"]]}, hierarchy):
        text = edit_text(text, {("columns", "zip", "hierarchy"): each, ("columns", "zip", "weight"): 3.0})
        assert parse_toml(text)["columns"]["zip"]["hierarchy"] == each
        assert parse_toml(text)["columns"]["zip"]["weight"] == 3.0
        assert parse_toml(text)["columns"]["education"] == parse_toml(read_demo_policy())["columns"]["education"]


def test_every_problem_has_its_line() -> None:
    text = (
        '[privacy]\nk = 1\n\n[columns."a.b"]\nrole = "x"\norder = [\n  "k = 1",\n]\nwrong = 2\n[[rules]]\ncheck = 3\n'
    )
    assert problem_lines(text) == [
        (("privacy", "k"), 2),
        (("columns", "a.b", "role"), 5),
        (("columns", "a.b", "wrong"), 9),
        (("rules", "0", "check"), 11),
    ]


@pytest.mark.parametrize(("text", "line"), [("[privacy]\nk = \n", 2), ("[privacy\nk = 2", 1), ("a = 1\na = 2\n", 2)])
def test_what_is_no_toml_has_its_line(text: str, line: int) -> None:
    assert problem_lines(text) == [((), line)]


def test_a_key_inside_a_value_is_refused() -> None:
    with pytest.raises(PolicyError, match="is not a section"):
        edit_text("[privacy]\nk = 5\n", {("privacy", "k", "more"): 1})


# The JSON schema of policies, held against the code that reads them by an outside opinion (jsonschema).


SCHEMA = build_policy_schema()
FRAGMENT = {**SCHEMA, "required": []}  # what a page shows of a policy
GOOD: dict[str, Any] = tomllib.loads((ROOT / "src/kinfold/demo/policy.toml").read_text("utf-8"))
MODELS = {"source": Source, "engine": EngineSection, "privacy": Privacy, "method": Method, "columns": ColumnPolicy}
MODELS |= {"hierarchy": HierarchySpec, "output": Output, "report": Report, "rules": Rule}
MODELS |= {
    "risk_share": RiskShareKeys,
    "combinations": CombinationKeys,
    "population": PopulationKeys,
    "tables": LinkedTable,
}
MODELS |= {"perturb": Perturbation, "review": Review, "question": ReviewQuestion, "proposal": Proposal}


def holds(schema: Mapping[str, Any], policy: Mapping[str, Any]) -> bool:
    return bool(jsonschema.Draft7Validator(schema).is_valid(json.loads(json.dumps(policy, default=str))))


def reads(policy: Mapping[str, Any]) -> bool:
    try:
        Policy.parse(policy)
    except PolicyError:
        return False
    return True


def written() -> Iterator[Any]:
    """Every policy of the repository: of the demo, of the pages, of the templates."""
    yield pytest.param(GOOD, id="demo")
    for page in PAGES:
        for block in blocks(page):
            if block.kind == "toml" and not block.why:
                yield pytest.param(tomllib.loads(block.text), id=f"{page.name}:{block.line}")
    for name, framework in load_frameworks().items():
        yield pytest.param(tomllib.loads(write_skeleton(framework)), id=name)


@pytest.mark.parametrize("policy", [*written()])
def test_every_policy_of_the_repository_holds(policy: dict[str, Any]) -> None:
    assert holds(SCHEMA if "privacy" in policy else FRAGMENT, policy)


def test_the_schema_itself_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_every_key_has_its_words_and_no_others_do() -> None:
    for section, model in MODELS.items():
        assert set(read_key_descriptions()[section]) - {""} == set(model.model_fields), section
    assert set(read_key_descriptions()) == set(MODELS)
    assert len({path for path, *_ in describe_keys()}) == sum(len(model.model_fields) for model in MODELS.values())


def test_the_files_of_the_docs_are_what_the_code_says() -> None:
    assert old() == []


def put(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return the demo's policy with one key set."""
    policy = copy.deepcopy(GOOD)
    place: Any = policy
    for part in path[:-1]:
        place = place.setdefault(part, {})
    place[path[-1]] = value
    return policy


def paths() -> Iterator[tuple[str, ...]]:
    for section, model in MODELS.items():
        where = {"columns": ("columns", "age"), "hierarchy": ("columns", "age", "hierarchy")}.get(section, (section,))
        if section != "rules":
            yield from ((*where, key) for key in model.model_fields)


@pytest.mark.parametrize("path", [*paths()], ids=".".join)
def test_a_value_of_another_type_fails_both(path: tuple[str, ...]) -> None:
    fails_both(put(path, [{"no": ["such"]}]))


def fails_both(policy: dict[str, Any]) -> None:
    assert not holds(SCHEMA, policy)
    assert not reads(policy)


@pytest.mark.parametrize("where", [(), ("privacy",), ("columns", "age"), ("columns", "age", "hierarchy"), ("output",)])
def test_an_unknown_key_or_no_k_fails_both(where: tuple[str, ...]) -> None:
    fails_both(put((*where, "anonimity"), 1))
    fails_both({key: value for key, value in GOOD.items() if key != "privacy"})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("privacy", "k"), 1),
        (("privacy", "k"), "5"),
        (("privacy", "t"), 0),
        (("privacy", "t"), 1.5),
        (("privacy", "joint"), "yes"),
        (("method", "name"), "mdaf"),
        (("method", "refine"), "long"),
        (("method", "suppression"), -1),
        (("method", "levels"), {"age": -1}),
        (("columns", "age", "role"), "key-variable"),
        (("columns", "age", "type"), "number"),
        (("columns", "age", "map"), {}),
        (("columns", "age", "hierarchy"), {"mask": 2, "dates": ["year"]}),
        (("columns", "age", "hierarchy"), {}),
        (("columns", "zip", "hierarchy"), {"mask": 0}),
        (("engine", "threads"), 0),
        (("output", "format"), "xlsx"),
        (("rules",), [{"repair": True}]),
        (("rules",), {"check": "age > 1"}),
    ],
)
def test_a_value_out_of_its_limits_fails_both(path: tuple[str, ...], value: Any) -> None:
    fails_both(put(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *((("columns", "age", "role"), role) for role in ROLE_SYNONYMS),
        (("columns", "age", "top"), "2024-12-31"),
        (("columns", "age", "top"), 85),
        (("columns", "education", "map"), {"none": "primary", "9": 0}),
        (("columns", "education", "order"), ["primary", 2, True]),
        (("source", "na"), "NA"),
        (("source", "na"), ["NA", -9]),
        (("source", "sheet"), 2),
        (("method", "refine"), "auto"),
        (("method", "suppression"), 0.05),
        (("columns", "zip", "hierarchy"), {"mask": 5, "sparse": ["036"]}),
        (("rules",), [{"check": "age > 1"}]),
    ],
)
def test_what_is_understood_holds(path: tuple[str, ...], value: Any) -> None:
    assert holds(SCHEMA, put(path, value))
    assert reads(put(path, value))
