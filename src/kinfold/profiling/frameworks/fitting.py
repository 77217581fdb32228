"""A framework fitted to a table: every column in the role that the framework asks for, with the reason as a comment.

1. every column by the first of the framework's rules that fits what the profile found; else as the profile proposes
2. where no column is a quasi-identifier by these rules, the coarsest of the profile's is
3. a lattice with fixed levels names one for each quasi-identifier
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from kinfold.profiling.frameworks import Framework
from kinfold.profiling.profile import ColumnProfile, Profile
from kinfold.profiling.proposed_hierarchies import ProposedHierarchy
from kinfold.profiling.starter_policy import PolicyForm, starter
from kinfold.rows.name_hints import hints, mentions
from kinfold.rows.schema import Role

OLD = 89  # years: above them HIPAA makes one group
NEEDED = "not asked for: a policy has at least one quasi-identifier, and this tells the fewest people apart"
LEVELS = "lattice"  # the method that releases levels as they are named


def fitted(framework: Framework, profile: Profile, folder: str | None = None) -> str:
    """Return the policy that a framework asks for, for a table."""
    ruled = [(column, rule_for(framework, column)) for column in profile.columns]
    columns = [_in_role(framework, column, rule) for column, rule in ruled]
    if not any(column.role == Role.QUASI for column in columns):
        columns = _with_one(profile.columns, columns)
    further = {column.name: dated(rule.get("keys", {})) for column, rule in ruled}
    sections = {name: dict(keys) for name, keys in framework.policy.items()}
    if sections["method"]["name"] == LEVELS:
        sections["method"]["levels"] = _levels(columns, {column.name: rule for column, rule in ruled})
        profile = replace(profile, unit=None)  # it counts rows
    form = PolicyForm(framework.head, sections, further)
    return starter(replace(profile, columns=tuple(columns)), folder=folder, form=form)


def _with_one(before: Sequence[ColumnProfile], columns: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Return columns with one quasi-identifier, which a policy needs: the one that tells the fewest people apart."""
    candidates = [column for column in before if column.role == Role.QUASI]
    chosen = min(candidates, key=lambda column: column.distinct, default=None)
    if chosen is None:
        return list(columns)
    told = f"{NEEDED}; {chosen.reason}"
    return [replace(chosen, reason=told) if column.name == chosen.name else column for column in columns]


def rule_for(framework: Framework, column: ColumnProfile) -> Mapping[str, Any]:
    """Return the first rule that fits a column, or one that says nothing."""
    return next((rule for rule in framework.columns if _fits(rule["when"], column)), {})


def _fits(when: Mapping[str, str], column: ColumnProfile) -> bool:
    found = {"kind": column.kind, "role": column.role, "hierarchy": next(iter(_proposed(column)), "")}
    if any(found[key] != when[key] for key in found if key in when):
        return False
    if "hint" in when and when["hint"] not in hints(column.name):
        return False
    if when.get("said", "") not in column.reason:
        return False
    return "words" not in when or mentions(column.name, when["words"])


def _proposed(column: ColumnProfile) -> Mapping[str, Any]:
    return column.hierarchy.keys if column.hierarchy else {}


def _in_role(framework: Framework, column: ColumnProfile, rule: Mapping[str, Any]) -> ColumnProfile:
    """Return a column as a rule has it; the reasons are the framework's and the profile's."""
    role = rule.get("role", column.role)
    said = "; ".join(filter(None, [rule.get("reason"), column.reason]))
    t = None
    if role == Role.CONFIDENTIAL and "t" in framework.confidential:
        t = framework.confidential["t"] if column.t is not None else None
    l = column.l if role == Role.CONFIDENTIAL and framework.confidential else None
    kept = column.hierarchy if role in (Role.QUASI, Role.CONFIDENTIAL) else None
    changed = replace(column, role=str(role), reason=said, t=t, l=l, hierarchy=kept)
    return replace(changed, kind=rule.get("type", column.kind), hierarchy=_asked(column, rule) or kept)


def _asked(column: ColumnProfile, rule: Mapping[str, Any]) -> ProposedHierarchy | None:
    """Return the hierarchy that a rule names; a mask is as long as the values are."""
    if "hierarchy" not in rule:
        return None
    keys = {**rule["hierarchy"], **({"mask": _proposed(column)["mask"]} if "mask" in rule["hierarchy"] else {})}
    return ProposedHierarchy("as the rule asks for", keys)


def _levels(columns: list[ColumnProfile], rules: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """Return the level of each quasi-identifier."""
    quasi = [column for column in columns if column.role == Role.QUASI]
    return {column.name: _level(column, rules[column.name]) for column in quasi}


def _level(column: ColumnProfile, rule: Mapping[str, Any]) -> int:
    if "left" in rule:
        return max(int(_proposed(column)["mask"]) - int(rule["left"]), 0)
    return int(rule.get("level", 0))


def dated(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys with the year filled in that is so long ago; a year alone is a number."""
    year = str(datetime.now(UTC).year - OLD)
    filled = {
        key: value.replace(f"{{{OLD} years ago}}", year) if isinstance(value, str) else value
        for key, value in keys.items()
    }
    return {key: int(value) if isinstance(value, str) and value.isdigit() else value for key, value in filled.items()}
