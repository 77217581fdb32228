"""A framework without a table: its sections, and each of its rules as an example to uncomment.

The policy parses, and binds to nothing before its columns are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tomlkit

from kinfold.profiling.frameworks import Framework
from kinfold.profiling.frameworks.fitting import dated
from kinfold.rows.schema import Role

ASKED = "One section for each column of the table. kinfold fills them in: kinfold template {name} DATA --out FILE"


def skeleton(framework: Framework) -> str:
    """Return the policy that a framework asks for, its columns as examples."""
    lines = [f"# {line}" if line else "" for line in framework.head.splitlines()]
    for name, keys in framework.policy.items():
        lines += ["", f"[{name}]", *(f"{key} = {_written(value)}" for key, value in keys.items())]
        levels = _levels(framework) if name == "method" else {}
        lines += [f"# levels = {_written(levels)}  # one for each quasi-identifier"] if levels else []
    lines += ["", f"# {ASKED.format(name=framework.name)}"]
    for rule in framework.columns:
        if "example" in rule:
            lines += ["#", *(f"# {line}" for line in _example(framework, rule))]
    return "\n".join(lines) + "\n"


def _levels(framework: Framework) -> dict[str, int]:
    """Return the level of each example that has one."""
    return {rule["example"]: _level(rule) for rule in framework.columns if "example" in rule and _has_level(rule)}


def _has_level(rule: Mapping[str, Any]) -> bool:
    return "left" in rule or "level" in rule


def _level(rule: Mapping[str, Any]) -> int:
    return int(rule["hierarchy"]["mask"]) - int(rule["left"]) if "left" in rule else int(rule["level"])


def _example(framework: Framework, rule: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a column as a rule has it."""
    role = rule.get("role", rule["when"].get("role", Role.QUASI))
    reason = f"  # {rule['reason']}" if "reason" in rule else ""
    yield f"[columns.{rule['example']}]{reason}"
    yield f'role = "{role}"'
    if role == Role.CONFIDENTIAL and framework.confidential:
        yield f"t = {framework.confidential['t']}  # of a number; of a category l = 3"
    hierarchy = {"hierarchy": rule["hierarchy"]} if "hierarchy" in rule else {}
    for key, value in {**dated(rule.get("keys", {})), **hierarchy}.items():
        yield f"{key} = {_written(value)}"


def _written(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(tomlkit.item(value).as_string())
    inline = tomlkit.inline_table()
    inline.update(value)
    return str(inline.as_string())
