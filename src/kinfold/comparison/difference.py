"""Two releases or two policies side by side: columns, promises, risk, loss, settings.

A release is read from its certificate, and from its audit if the folder has one: without it the risk follows from the
classes, and the loss is unknown. Values of the data in a policy (maps, orders, hierarchies, codes) are not shown: only
whether they differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from kinfold.errors import DataError, PolicyError, plural
from kinfold.policy.model import Policy
from kinfold.release.inspection import find_public_folder, read_certificate

Side: TypeAlias = dict[str, dict[str, Any]]  # values by section and name

RISKS = ("prosecutor_max", "prosecutor_mean", "linkage", "interval", "dr_max")
LOSSES = ("overall", "sse_ratio", "removed_columns")
LETTERS = {
    "KAnonymity": "k",
    "LDiversity": "l",
    "TCloseness": "t",
    "PSensitive": "p",
    "AlphaK": "alpha",
    "BetaLikeness": "beta",
    "DeltaDisclosure": "delta",
    "AverageRisk": "r",
    "RiskShare": "r",
    "CombinationAnonymity": "k of combinations",
    "CombinationConfidence": "confidence",
    "EstimatedKMap": "k-map",
}
NO_AUDIT = "has no internal/audit.json: its loss is unknown, and its risk is that of its classes"


@dataclass(frozen=True)
class Difference:
    """Two sides by section and name; None where a side lacks the name."""

    kind: Literal["releases", "policies"]
    sections: Mapping[str, Mapping[str, tuple[Any, Any]]]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        sections = {
            section: {name: {"a": _hide(a), "b": _hide(b), "same": a == b} for name, (a, b) in rows.items()}
            for section, rows in self.sections.items()
        }
        return {"kind": self.kind, **sections, "notes": list(self.notes)}


def diff(a: str | Path, b: str | Path) -> Difference:
    """Return two releases (folders) or two policies (files) side by side."""
    paths = Path(a), Path(b)
    for path in paths:
        if not path.exists():
            raise DataError(f"no such file or folder: '{path}'", fix="check the path")
    if paths[0].is_dir() != paths[1].is_dir():
        raise PolicyError("a release and a policy cannot be compared", fix="name two release folders or two policies")
    if paths[0].is_dir():
        sides = [_describe_release(path) for path in paths]
        notes = tuple(f"'{path}' {NO_AUDIT}" for path, side in zip(paths, sides, strict=True) if not side["loss"])
        return Difference("releases", _pair(*sides), notes)
    return Difference("policies", _pair(*(_describe_policy(Policy.load(path)) for path in paths)))


def _pair(a: Side, b: Side) -> dict[str, dict[str, tuple[Any, Any]]]:
    both = {section: (a.get(section, {}), b.get(section, {})) for section in (*a, *b)}
    return {
        section: {name: (one.get(name), other.get(name)) for name in (*one, *other)}
        for section, (one, other) in both.items()
    }


def _describe_release(folder: Path) -> Side:
    content = read_certificate(find_public_folder(folder)).content
    entry, classes = content["release"], max(content["release"]["classes"], 1)
    keys = ("role", "type", "average")
    columns = {c["name"]: ", ".join(c[key] for key in keys if c.get(key)) for c in content["columns"]}
    figures = {key: entry[key] for key in ("records", "classes")} | {"method": content["method"]}
    measures = _read_measures(folder)
    if measures:
        risk = {key: measures["risk"].get(key) for key in RISKS}
        loss = {key: measures["loss"].get(key) for key in LOSSES}
        loss |= {f"{name} (column)": lost for name, lost in (measures["loss"].get("by_column") or {}).items()}
        figures["suppressed"] = measures["suppressed"]
    else:
        risk, loss = {RISKS[0]: 1 / max(content["found"]["k"], 1), RISKS[1]: classes / max(entry["records"], 1)}, {}
    return {
        "release": figures,
        "promises": {
            f"{_name_promise(promise)}, {key}": promise[key]
            for promise in content["promises"]
            for key in ("asked", "found")
        },
        "columns": columns,
        "risk": risk,
        "loss": loss,
    }


def _name_promise(promise: Mapping[str, Any]) -> str:
    """Return a promise with a letter in place of its level, so that different levels stand side by side.

    >>> _name_promise({"model": "LDiversity", "promise": "distinct 2-diversity of disease"})
    'distinct l-diversity of disease'
    """
    return re.sub(r"[\d.]+-", f"{LETTERS[promise['model']]}-", promise["promise"], count=1)


def _read_measures(folder: Path) -> Mapping[str, Any]:
    """Return the measures in the audit of a release; none if it has no audit of the expected shape."""
    file = find_public_folder(folder).resolve().parent / "internal" / "audit.json"
    try:
        measures = json.loads(file.read_text(encoding="utf-8"))["measures"] if file.is_file() else {}
        sections = [measures["risk"], measures["loss"], measures["loss"].get("by_column") or {}] if measures else []
        return measures if all(isinstance(each, dict) for each in sections) and "suppressed" in measures else {}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def _describe_policy(policy: Policy) -> Side:
    values = policy.model_dump(mode="json", exclude_none=True)
    columns, rules = values.pop("columns"), values.pop("rules", [])
    side: Side = {section: keys for section, keys in values.items() if isinstance(keys, dict)}
    side["columns"] = {
        f"{name}.{key}" if key != "role" else name: value
        for name, keys in columns.items()
        for key, value in keys.items()
    }
    side["rules"] = {f"rule {number}": rule for number, rule in enumerate(rules, start=1)}
    return side


def _hide(value: Any) -> Any:
    """Return a setting; of a list or a table, which may hold values of the data, its size."""
    return plural(len(value), "entry", "entries") if isinstance(value, dict | list) else value
