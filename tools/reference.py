"""The reference of the policy, from the code that reads it: the JSON schema, and the table of keys in docs/policy.md.

python -m tools.reference            writes docs/policy.schema.json and the table
python -m tools.reference --check    says what is old, and ends with code 1
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from kinfold.policy.schema import SECTION_KEYS, JsonSchema, build_policy_schema, format_schema
from kinfold.tables.schema import ROLE_SYNONYMS, Role

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- every key: made by make docs -->\n", "<!-- end of every key -->\n"

KEY_PATHS = {"columns": "columns.NAME", "hierarchy": "columns.NAME.hierarchy", "rules": "rules[]"}
KEY_PATHS |= {key: f"privacy.{key}" for key in ("risk_share", "combinations", "population")}
KEY_PATHS |= {"tables": "tables.NAME"}
KEY_PATHS |= {"perturb": "columns.NAME.perturb", "question": "review.NAME", "proposal": "review.proposal"}


def describe_keys() -> Iterator[tuple[str, str, str, str]]:
    """Yield path, type, default and description of every key of a policy."""
    schema = build_policy_schema()
    for name, section in SECTION_KEYS.items():
        part, path = schema["definitions"][name], KEY_PATHS.get(section, section)
        for key, value in part["properties"].items():
            default = f"`{json.dumps(value['default'])}`" if value.get("default") is not None else ""
            default = "required" if key in part.get("required", ()) else default
            yield f"{path}.{key}", _describe_type(value), default, value["description"]


def _describe_type(value: JsonSchema) -> str:
    if "anyOf" in value:
        return ", or ".join(dict.fromkeys(_describe_type(each) for each in value["anyOf"]))
    if "enum" in value:
        roles = Role.QUASI in value["enum"]
        return ", ".join(f"`{each}`" for each in value["enum"] if not (roles and each in ROLE_SYNONYMS))
    if "$ref" in value:
        return "a section of keys"
    kind = value.get("type")
    if kind == "array":
        item = _describe_type(value.get("items", {}))
        plurals = {"text": "texts", "number": "numbers"}
        return f"list of {plurals.get(item, item if item.startswith('list') else 'texts, numbers')}"
    if kind == "object":
        return "keys and values"
    names = {"integer": "whole number", "number": "number", "string": "text", "boolean": "`true`, `false`"}
    bounds = {"minimum": "from {} up", "exclusiveMinimum": "above {}", "maximum": "to {}"}
    limits = [text.format(f"{value[key]:g}") for key, text in bounds.items() if key in value]
    return " ".join([names.get(str(kind), "anything"), *limits])


def table() -> str:
    """Return the keys as a table."""
    rows = [f"| `{path}` | {held} | {default} | {told} |" for path, held, default, told in describe_keys()]
    return "\n".join(["| key | holds | default | what it is |", "| --- | --- | --- | --- |", *rows, ""])


def files() -> dict[Path, str]:
    """Return what the files have to hold."""
    page = DOCS / "policy.md"
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    return {page: f"{before}{BEGIN}\n{table()}\n{END}{after}", DOCS / "policy.schema.json": format_schema()}


def old() -> list[str]:
    """Return the files that are not what the code says."""
    return [path.name for path, text in files().items() if not path.exists() or path.read_text("utf-8") != text]


def main() -> None:
    """Write the files, or check them."""
    if "--check" not in sys.argv[1:]:
        for path, text in files().items():
            path.write_text(text, "utf-8")
    if wrong := old():
        sys.exit(f"{', '.join(wrong)}: not what the code says; make docs makes them anew")


if __name__ == "__main__":
    main()
