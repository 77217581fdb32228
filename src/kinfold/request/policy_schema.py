"""The policy as a JSON schema, by which editors complete and check one, and as a table of its keys for the docs.

Types, choices, limits and defaults are those of `policy.Policy`; names of methods are those of the registry; the words
for each key are in policy_keys.toml. What depends on two keys at once (`levels` and `name`) only kinfold checks.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from kinfold.request import methods
from kinfold.request.policy import HierarchySpec, Policy
from kinfold.rows.schema import ROLE_SYNONYMS, Role

Schema: TypeAlias = dict[str, Any]

DIALECT = "http://json-schema.org/draft-07/schema#"  # the one that editors of TOML know
PLACES = {"columns": "columns.NAME", "hierarchy": "columns.NAME.hierarchy", "rules": "rules[]"}  # others: their names
SECTIONS = {  # of the words, by the name of the model
    "Source": "source",
    "EngineSection": "engine",
    "Privacy": "privacy",
    "Method": "method",
    "ColumnPolicy": "columns",
    "HierarchySpec": "hierarchy",
    "Output": "output",
    "Report": "report",
    "Rule": "rules",
}
LIMITS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}


@cache
def words() -> Mapping[str, Mapping[str, str]]:
    """Return what each key is, by section; the empty key is the section itself."""
    return tomllib.loads(Path(__file__).with_name("policy_keys.toml").read_text("utf-8"))


def policy_schema() -> Schema:
    """Return the JSON schema of a policy file."""
    made = Policy.model_json_schema(ref_template="#/definitions/{model}")
    parts = made.pop("$defs")
    definitions = {name: _section(name, parts[name]) for name in SECTIONS}
    definitions["ColumnPolicy"]["properties"]["role"]["enum"] = [*Role, *ROLE_SYNONYMS]
    definitions["ColumnPolicy"]["properties"]["type"]["enum"] = parts["Kind"]["enum"]
    definitions["Method"]["properties"]["name"]["enum"] = list(methods.names())
    definitions["HierarchySpec"]["oneOf"] = [{"required": [form]} for form in HierarchySpec.FORMS]
    sections = {key: _plain(value) | {"description": words()[key][""]} for key, value in made["properties"].items()}
    return {
        "$schema": DIALECT,
        "title": "Policy of kinfold",
        "description": "What each column of a table is, what is promised about its release, and how that is made.",
        "type": "object",
        "additionalProperties": False,
        "required": made["required"],
        "properties": sections,
        "definitions": definitions,
    }


def schema_text() -> str:
    """Return the schema as the text of a file."""
    return json.dumps(policy_schema(), indent=1, ensure_ascii=False) + "\n"


def _section(name: str, made: Schema) -> Schema:
    told = words()[SECTIONS[name]]
    keys = {key: _plain(value) | {"description": told[key]} for key, value in made["properties"].items()}
    required = {"required": made["required"]} if "required" in made else {}
    return {"description": told[""], "type": "object", "additionalProperties": False, **required, "properties": keys}


def _plain(value: Any) -> Any:
    """Return a part without titles and nulls, which TOML does not have, and with limits in the schema's own words."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        name = value["$ref"].rsplit("/", 1)[1]
        return {"$ref": value["$ref"]} if name in SECTIONS else {"type": "string"}
    choices = [each for each in value.get("anyOf", ()) if each != {"type": "null"}]
    kept = {key: each for key, each in value.items() if key not in ("title", "anyOf", "format")}
    if kept.get("default", 0) in (None, {}, []) or isinstance(kept.get("default"), dict):
        del kept["default"]
    if len(choices) == 1:
        return _plain(choices[0] | kept)
    if choices:
        kept["anyOf"] = choices
    if kept.get("type") == "object" and "minLength" in kept:
        kept["minProperties"] = kept.pop("minLength")
    return {LIMITS.get(key, key): _plain(each) for key, each in kept.items()}


def keys_told() -> Iterator[tuple[str, str, str, str]]:
    """Yield every key of a policy: its path, what it may hold, its default, and what it is."""
    schema = policy_schema()
    for name, section in SECTIONS.items():
        part, path = schema["definitions"][name], PLACES.get(section, section)
        for key, value in part["properties"].items():
            default = "must be there" if key in part.get("required", ()) else _shown(value.get("default"))
            yield f"{path}.{key}", _held(value), default, value["description"]


def _shown(default: Any) -> str:
    return "" if default is None else f"`{json.dumps(default)}`"


def _held(value: Schema) -> str:
    """Say what a key may hold, in words."""
    if "anyOf" in value:
        return ", or ".join(dict.fromkeys(_held(each) for each in value["anyOf"]))
    if "enum" in value:
        roles = Role.QUASI in value["enum"]
        return ", ".join(f"`{each}`" for each in value["enum"] if not (roles and each in ROLE_SYNONYMS))
    if "$ref" in value:
        return "a section of keys"
    kind = value.get("type")
    if kind == "array":
        return f"list of {_plural(_held(value.get('items', {})))}"
    if kind == "object":
        return "keys and values"
    names = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`"}
    return " ".join([names.get(str(kind), "anything"), *_bounds(value)])


def _plural(held: str) -> str:
    return {"text": "texts", "number": "numbers"}.get(held, held if held.startswith("list") else "texts, numbers")


def _bounds(value: Schema) -> Iterator[str]:
    told = {"minimum": "from {} up", "exclusiveMinimum": "above {}", "maximum": "to {}"}
    yield from (words_.format(f"{value[key]:g}") for key, words_ in told.items() if key in value)
