"""What pages take from the code: the JSON schema of a policy, the table of its keys, and the list of measures.

python -m tools.reference            writes docs/policy.schema.json and the tables in docs/policy.md, docs/measures.md
python -m tools.reference --check    says what is old, and ends with code 1
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from kinfold.measures.measure_table import CATALOGUE
from kinfold.policy.schema import SECTION_KEYS, JsonSchema, build_policy_schema, format_schema
from kinfold.tables.schema import ROLE_SYNONYMS, Role

DOCS = Path(__file__).parents[1] / "docs"
BEGIN, END = "<!-- every {}: made by make docs -->\n", "<!-- end of every {} -->\n"

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


def list_measures() -> str:
    """Return the measures as a table, each with the page whose table defines it."""
    pages = {page.stem: page.read_text("utf-8") for page in sorted((DOCS / "measures").glob("*.md"))}
    defined = {stem: " ".join(re.findall(r"^\| (.+?) \|", text, re.MULTILINE)) for stem, text in pages.items()}
    rows = []
    for key, entry in CATALOGUE.items():
        stem = next(stem for stem, cells in defined.items() if re.search(rf"`{re.escape(key)}[`.]", cells))
        heading = pages[stem].partition("\n")[0].removeprefix("# ").partition(":")[0]
        rows.append(f"| `{key}` | {entry.title} | [{heading}](measures/{stem}.md) |")
    return "\n".join(["| key | measure | page |", "| --- | --- | --- |", *rows, ""])


def files() -> dict[Path, str]:
    """Return what the files have to hold."""
    texts = {DOCS / "policy.schema.json": format_schema()}
    for name, what, rows in (("policy.md", "key", table()), ("measures.md", "measure", list_measures())):
        begin, end = BEGIN.format(what), END.format(what)
        before, _, rest = (DOCS / name).read_text("utf-8").partition(begin)
        texts[DOCS / name] = f"{before}{begin}\n{rows}\n{end}{rest.partition(end)[2]}"
    return texts


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
