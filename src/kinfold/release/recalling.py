"""Recalling: what the audit of a release recorded, for whoever measures it after its rows were put in another order.

The audit counts only if it is of this very file and this very original (by their checksums) and of the same question:
the same quasi-identifiers, treated alike, and the same k.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kinfold.request.binding import BoundPolicy
from kinfold.rows.engines.source import digest
from kinfold.rows.schema import Role

FOUND_OUT = ("type", "missing")  # a policy as applied has what the one that was asked may leave open


def recorded_measures(released: Path, original: str | None, asked: BoundPolicy) -> Mapping[str, Mapping[str, Any]]:
    """Return the measures of a release by section, nothing where there is no audit of it beside."""
    file = released.parent.parent / "internal" / "audit.json"
    try:
        if not file.is_file():  # a pipe may never end
            return {}
        audit = json.loads(file.read_text("utf-8"))
        source = audit["source"].get("sha256", audit["source"].get("rows"))
        same = source == original and audit["release"]["sha256"] == digest(released)
        if original is None or not same or _question(audit["policy"]) != _question(_policy(asked)):
            return {}
        return {section: dict(audit["measures"][section]) for section in ("risk", "loss")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _policy(asked: BoundPolicy) -> dict[str, Any]:
    told: dict[str, Any] = asked.request.model_dump(mode="json", exclude_none=True)
    return told


def _question(policy: Mapping[str, Any]) -> Any:
    columns = {
        name: {key: value for key, value in column.items() if key not in FOUND_OUT}
        for name, column in policy["columns"].items()
        if column["role"] == Role.QUASI
    }
    return policy["privacy"]["k"], columns
