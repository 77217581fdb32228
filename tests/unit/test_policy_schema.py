"""The JSON schema of policies, held against the code that reads them by an outside opinion (jsonschema)."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest

from examples import PAGES, ROOT, blocks
from kinfold.errors import PolicyError
from kinfold.profiling.frameworks import frameworks
from kinfold.profiling.frameworks.skeleton import skeleton
from kinfold.request.policy import (
    ColumnPolicy,
    EngineSection,
    HierarchySpec,
    Method,
    Output,
    Policy,
    Privacy,
    Report,
    Rule,
    Source,
)
from kinfold.request.policy_schema import keys_told, policy_schema, words
from kinfold.rows.schema import ROLE_SYNONYMS
from tools.reference import old

SCHEMA = policy_schema()
FRAGMENT = {**SCHEMA, "required": []}  # what a page shows of a policy
GOOD: dict[str, Any] = tomllib.loads((ROOT / "src/kinfold/demo/policy.toml").read_text("utf-8"))
MODELS = {
    "source": Source,
    "engine": EngineSection,
    "privacy": Privacy,
    "method": Method,
    "columns": ColumnPolicy,
    "hierarchy": HierarchySpec,
    "output": Output,
    "report": Report,
    "rules": Rule,
}


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
    for name, framework in frameworks().items():
        yield pytest.param(tomllib.loads(skeleton(framework)), id=name)


@pytest.mark.parametrize("policy", [*written()])
def test_every_policy_of_the_repository_holds(policy: dict[str, Any]) -> None:
    assert holds(SCHEMA if "privacy" in policy else FRAGMENT, policy)


def test_the_schema_itself_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def test_every_key_has_its_words_and_no_others_do() -> None:
    for section, model in MODELS.items():
        assert set(words()[section]) - {""} == set(model.model_fields), section
    assert set(words()) == set(MODELS)
    assert len({path for path, *_ in keys_told()}) == sum(len(model.model_fields) for model in MODELS.values())


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
    broken = put(path, [{"no": ["such"]}])
    assert not holds(SCHEMA, broken)
    assert not reads(broken)


@pytest.mark.parametrize("where", [(), ("privacy",), ("columns", "age"), ("columns", "age", "hierarchy"), ("output",)])
def test_a_key_that_is_not_known_fails_both(where: tuple[str, ...]) -> None:
    broken = put((*where, "anonimity"), 1)
    assert not holds(SCHEMA, broken)
    assert not reads(broken)


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
    assert not holds(SCHEMA, put(path, value))
    assert not reads(put(path, value))


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


def test_a_policy_without_k_fails_both() -> None:
    broken = {key: value for key, value in GOOD.items() if key != "privacy"}
    assert not holds(SCHEMA, broken)
    assert not reads(broken)
