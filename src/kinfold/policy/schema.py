"""The keys of a policy as keyword arguments of functions, as a JSON schema for editors, and as a table for the docs.

Types, choices, limits and defaults are those of `model.Policy`. The descriptions are in policy_keys.toml. Conditions on
two keys at once, such as `levels` and `name`, are not in the schema; kinfold checks them.
"""

from __future__ import annotations

import inspect
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel

from kinfold.errors import PolicyError, Problem, check_arguments
from kinfold.policy.model import EngineSection, HierarchySpec, Method, Output, Policy, Report, Source
from kinfold.policy.perturbation import Perturbation
from kinfold.policy.privacy import Privacy
from kinfold.policy.registry import list_method_names
from kinfold.policy.toml_values import KeyPath, get_section, override_keys
from kinfold.tables.schema import ROLE_SYNONYMS, Role

Function = TypeVar("Function", bound=Callable[..., Any])

ROLE_KEYWORDS = {"quasi": Role.QUASI, "confidential": Role.CONFIDENTIAL, "identifier": Role.IDENTIFIER}
SECTION_MODELS: dict[str, type[BaseModel]] = {
    "privacy": Privacy,
    "method": Method,
    "output": Output,
    "report": Report,
    "source": Source,
    "engine": EngineSection,
}
# keys whose keyword is the name of their section, or has it in front
KEYWORDS = {("method", "name"): "method", ("engine", "name"): "engine", ("output", "parts"): "output_parts"}


def build_policy(policy: Any, request: Mapping[str, Any]) -> Policy:
    """Return the given policy, or one from keywords; refuse both together."""
    if policy is not None and not request:
        return Policy.of(policy)
    if policy is not None:
        what = f"a policy and {', '.join(request)} were given"
        raise PolicyError(what, fix="put them into the policy, or leave the policy out")
    return Policy.parse(collect_policy_values(request))


def collect_policy_values(request: Mapping[str, Any], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """Add keywords to the sections of a policy: quasi=, confidential=, identifier=, k=, t=, method=, others=, ...

    A column that a keyword names loses its keys in `base`.
    """
    keys: dict[KeyPath, Any] = {}
    for key, value in request.items():
        if key not in ROLE_KEYWORDS:
            keys[_find_key(key)] = value
    lists = {role: _column_names(key, request[key]) for key, role in ROLE_KEYWORDS.items() if key in request}
    columns = add_roles({}, lists).get("columns", {})
    keys |= {("columns", name): column for name, column in columns.items()}
    return override_keys({"privacy": {}} if base is None else base, keys)


def _find_key(keyword: str) -> KeyPath:
    """Return the key of a keyword; an unknown one goes into [privacy], so that its check reports it."""
    renamed = {keyword_name: key for key, keyword_name in KEYWORDS.items()}
    sections = (name for name, model in SECTION_MODELS.items() if keyword in model.model_fields)
    return renamed.get(keyword) or next(
        ((name, keyword) for name in sections if (name, keyword) not in KEYWORDS), ("privacy", keyword)
    )


def add_roles(values: dict[str, Any], roles: Mapping[Role, Iterable[str]]) -> dict[str, Any]:
    """Set the roles of columns in the values of a policy, and return the values; refuse a column with another role."""
    problems = []
    for role, names in roles.items():
        for name in names:
            column = get_section(get_section(values, "columns"), name)
            previous = column.setdefault("role", str(role))
            if ROLE_SYNONYMS.get(str(previous), previous) != role:
                what = f"column '{name}' is given as {previous} and as {role}"
                problems.append(Problem(what, "give each column one role"))
    if problems:
        raise PolicyError(problems)
    return values


def _column_names(key: str, given: Any) -> list[str]:
    """Return a list of column names from one name or several."""
    names: list[Any] = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [None]
    if isinstance(given, bytes | Mapping) or not all(isinstance(name, str) for name in names):
        what = f"{key} is given as {type(given).__name__}, but must be a list of column names"
        raise PolicyError(what, fix=f'write {key}=["age", "zip"]')
    return names


def add_policy_keywords(*more: Any, sections: Sequence[str] = tuple(SECTION_MODELS)) -> Callable[[Function], Function]:
    """Return a decorator that adds the keywords of a policy to the signature of a function with `**` keywords.

    The types of the function's other arguments are checked. `more` are dataclasses whose fields are added as well.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        declared = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        names = {each.name for each in declared}
        further = [_keyword_parameter(field.name, field.default) for each in more for field in fields(each)]
        added = (*further, *_policy_parameters(sections))
        unique = list({each.name: each for each in reversed(added) if each.name not in names}.values())[::-1]
        checked = check_arguments(function)
        checked.__signature__ = signature.replace(parameters=[*declared, *unique])  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate


def _policy_parameters(sections: Sequence[str]) -> Iterator[inspect.Parameter]:
    yield from (_keyword_parameter(name, ()) for name in ROLE_KEYWORDS if "privacy" in sections)
    for section in sections:
        for name, field in SECTION_MODELS[section].model_fields.items():
            default = None if field.is_required() else field.default
            yield _keyword_parameter(KEYWORDS.get((section, name), name), default)


def _keyword_parameter(name: str, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)


JsonSchema: TypeAlias = dict[str, Any]

SCHEMA_DIALECT = "http://json-schema.org/draft-07/schema#"  # TOML editors support this one
SECTION_KEYS = {  # sections of policy_keys.toml by the name of the model
    "Source": "source",
    "EngineSection": "engine",
    "Privacy": "privacy",
    "RiskShareKeys": "risk_share",
    "CombinationKeys": "combinations",
    "PopulationKeys": "population",
    "Method": "method",
    "ColumnPolicy": "columns",
    "HierarchySpec": "hierarchy",
    "Perturbation": "perturb",
    "Output": "output",
    "LinkedTable": "tables",
    "Report": "report",
    "Rule": "rules",
    "Review": "review",
    "ReviewQuestion": "question",
    "Proposal": "proposal",
}
LIMIT_KEYWORDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}


@cache
def read_key_descriptions() -> Mapping[str, Mapping[str, str]]:
    """Return the description of each key by section; the empty key describes the section."""
    return tomllib.loads(Path(__file__).with_name("policy_keys.toml").read_text("utf-8"))


def build_policy_schema() -> JsonSchema:
    """Return the JSON schema of a policy file."""
    schema = Policy.model_json_schema(ref_template="#/definitions/{model}")
    parts, words = schema.pop("$defs"), read_key_descriptions()
    definitions = {name: _build_section(parts[name], words[section]) for name, section in SECTION_KEYS.items()}
    definitions["ColumnPolicy"]["properties"]["role"]["enum"] = [*Role, *ROLE_SYNONYMS]
    definitions["ColumnPolicy"]["properties"]["type"]["enum"] = parts["Kind"]["enum"]
    definitions["Method"]["properties"]["name"]["enum"] = list(list_method_names())
    definitions["Review"]["additionalProperties"] = {"$ref": "#/definitions/ReviewQuestion"}
    for each in (HierarchySpec, Perturbation):
        definitions[each.__name__]["oneOf"] = [{"required": [form]} for form in each.FORMS]
    sections = {key: _simplify(value) | {"description": words[key][""]} for key, value in schema["properties"].items()}
    return {
        "$schema": SCHEMA_DIALECT,
        "title": "Policy of kinfold",
        "description": "What each column of a table is, what the release promises, and how it is made.",
        "type": "object",
        "additionalProperties": False,
        "required": schema["required"],
        "properties": sections,
        "definitions": definitions,
    }


def format_schema() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(build_policy_schema(), indent=1, ensure_ascii=False) + "\n"


def _build_section(schema: JsonSchema, words: Mapping[str, str]) -> JsonSchema:
    keys = {key: _simplify(value) | {"description": words[key]} for key, value in schema["properties"].items()}
    required = {"required": schema["required"]} if "required" in schema else {}
    return {"description": words[""], "type": "object", "additionalProperties": False, **required, "properties": keys}


def _simplify(value: Any) -> Any:
    """Return a part without titles and nulls, which TOML lacks, and with the limits of JSON schema."""
    if isinstance(value, list):
        return [_simplify(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        name = value["$ref"].rsplit("/", 1)[1]
        return {"$ref": value["$ref"]} if name in SECTION_KEYS else {"type": "string"}
    choices = [each for each in value.get("anyOf", ()) if each != {"type": "null"}]
    kept = {key: each for key, each in value.items() if key not in ("title", "anyOf", "format")}
    if kept.get("default", 0) in (None, {}, []) or isinstance(kept.get("default"), dict):
        del kept["default"]
    if len(choices) == 1:
        return _simplify(choices[0] | kept)
    if choices:
        kept["anyOf"] = choices
    if kept.get("type") == "object" and "minLength" in kept:
        kept["minProperties"] = kept.pop("minLength")
    return {LIMIT_KEYWORDS.get(key, key): _simplify(each) for key, each in kept.items()}
