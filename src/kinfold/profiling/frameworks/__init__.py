"""Frameworks: legal rules and opinions on anonymity as policies that bind and run.

A framework is a TOML file in this folder. Its `policy` holds the sections of a policy. Its `columns` are rules that are
tried in order on each column of a table; the first whose `when` matches decides:

    when         type, role, kind of hierarchy and words of the reason in the profile, a hint or words in the name;
                 all must match
    role, type, hierarchy, keys    of the column; anything left out is as the profile proposes
    level, left  of a hierarchy: the level to release, or how many characters of a masked value stay
    example      the name of such a column in a policy that is not fitted to a table

`confidential.t` is the t of confidential numbers. If no rule gives a quasi-identifier, the profile's coarsest one is
used. A lattice with fixed levels names one for each quasi-identifier. No framework is legal advice, and each policy
says so at its top.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import tomlkit

from kinfold.errors import PolicyError
from kinfold.profiling.hierarchy_proposals import ProposedHierarchy
from kinfold.profiling.profile import ColumnProfile, Profile
from kinfold.profiling.questions import OpenQuestion, format_role_key
from kinfold.profiling.starter_policy import K_KEY, OTHERS_KEY, PolicyTemplate, write_inline, write_starter_policy
from kinfold.tables.column_names import find_hints, mentions
from kinfold.tables.schema import Role

DISCLAIMER = """\
This is a template, not legal advice. It translates the text into a policy as far as a program can. You, and the person
who is responsible for the release, must decide whether it fits your data, your recipients and your law."""


@dataclass(frozen=True)
class Framework:
    """A framework by name: its texts, the sections of its policy, and its rules for columns."""

    name: str
    title: str
    summary: str
    about: str
    policy: Mapping[str, Mapping[str, Any]]
    columns: tuple[Mapping[str, Any], ...]
    confidential: Mapping[str, Any]

    @property
    def head(self) -> str:
        """The comment at the top of the policy."""
        return f"{self.title}\n\n{DISCLAIMER}\n\n{self.about.strip()}\n"


@cache
def load_frameworks() -> Mapping[str, Framework]:
    """Return every framework by name."""
    frameworks = {}
    for path in sorted(Path(__file__).parent.glob("*.toml"), key=lambda path: path.stem):
        values = tomllib.loads(path.read_text("utf-8"))
        texts = (values["title"], values["summary"], values["about"])
        rules = (values["policy"], tuple(values["columns"]), values.get("confidential", {}))
        frameworks[path.stem] = Framework(path.stem, *texts, *rules)
    return frameworks


def get_framework(name: str) -> Framework:
    """Return a framework; raise with the list of names if there is none."""
    if name not in load_frameworks():
        raise PolicyError(f"there is no template '{name}'", fix=f"name one of {', '.join(load_frameworks())}")
    return load_frameworks()[name]


MAX_HIPAA_AGE = 89  # HIPAA Safe Harbor puts all ages above into one group
QUASI_NEEDED_REASON = (
    "not required: a policy needs at least one quasi-identifier, and this column distinguishes the fewest people"
)
FIXED_LEVEL_METHOD = "lattice"  # the method with fixed levels


def fit_framework(framework: Framework, profile: Profile, folder: str | None = None) -> str:
    """Return the policy of a framework for a profiled table, with reasons as comments."""
    pairs = [(column, find_rule(framework, column)) for column in profile.columns]
    columns = [_apply_rule(framework, column, rule) for column, rule in pairs]
    if not any(column.role == Role.QUASI for column in columns):
        columns = _add_quasi(profile.columns, columns)
    further = {column.name: fill_year(rule.get("keys", {})) for column, rule in pairs}
    sections = {name: dict(keys) for name, keys in framework.policy.items()}
    if sections["method"]["name"] == FIXED_LEVEL_METHOD:
        rules = [rule for _, rule in pairs]
        quasi = [(column, rule) for column, rule in zip(columns, rules, strict=True) if column.role == Role.QUASI]
        sections["method"]["levels"] = {
            column.name: _choose_level(rule, _get_proposed_keys(column)) for column, rule in quasi
        }
        profile = replace(profile, unit=None, rows_of_person=1)  # Safe Harbor counts rows
    form = PolicyTemplate(framework.head, sections, further)
    profile = replace(profile, columns=tuple(columns))
    decided = {column.name for column, rule in pairs if "role" in rule}
    questions = tuple(question for question in profile.questions if _is_open(question, profile, decided))
    return write_starter_policy(replace(profile, questions=questions), folder=folder, form=form)


def _is_open(question: OpenQuestion, profile: Profile, decided: Collection[str]) -> bool:
    """Whether the rules of a framework leave a question to the steward."""
    if question.sets == "privacy.unit":
        return profile.unit is not None
    if question.sets == K_KEY:
        return profile.rows_of_person > 1
    if question.sets == OTHERS_KEY:
        return any(column.undecided for column in profile.columns)
    return {*question.keys}.isdisjoint(format_role_key(name) for name in decided)


def _add_quasi(before: Sequence[ColumnProfile], columns: Sequence[ColumnProfile]) -> list[ColumnProfile]:
    """Make the column that distinguishes the fewest people a quasi-identifier, because a policy needs one."""
    candidates = [column for column in before if column.role == Role.QUASI]
    chosen = min(candidates, key=lambda column: column.distinct, default=None)
    if chosen is None:
        return list(columns)
    reason = f"{QUASI_NEEDED_REASON}; {chosen.reason}"
    return [replace(chosen, reason=reason) if column.name == chosen.name else column for column in columns]


def find_rule(framework: Framework, column: ColumnProfile) -> Mapping[str, Any]:
    """Return the first rule that matches a column, or an empty one."""
    return next((rule for rule in framework.columns if _matches_column(rule["when"], column)), {})


def _matches_column(when: Mapping[str, str], column: ColumnProfile) -> bool:
    facts = {"kind": column.kind, "role": column.role, "hierarchy": next(iter(_get_proposed_keys(column)), "")}
    if any(facts[key] != when[key] for key in facts if key in when):
        return False
    if "hint" in when and when["hint"] not in find_hints(column.name):
        return False
    if when.get("reason", "") not in column.reason:
        return False
    return "words" not in when or mentions(column.name, when["words"])


def _get_proposed_keys(column: ColumnProfile) -> Mapping[str, Any]:
    return column.hierarchy.keys if column.hierarchy else {}


def _apply_rule(framework: Framework, column: ColumnProfile, rule: Mapping[str, Any]) -> ColumnProfile:
    """Return a column as a rule has it, with the reasons of the framework and of the profile."""
    role = rule.get("role", column.role)
    reasons = "; ".join(filter(None, [rule.get("reason"), column.reason]))
    t = None
    if role == Role.CONFIDENTIAL and "t" in framework.confidential:
        t = framework.confidential["t"] if column.t is not None else None
    l = column.l if role == Role.CONFIDENTIAL and framework.confidential else None
    kept = column.hierarchy if role in (Role.QUASI, Role.CONFIDENTIAL) else None
    undecided = column.undecided and "role" not in rule
    average = column.average if role == Role.QUASI else None
    changed = replace(column, role=str(role), reason=reasons, t=t, l=l, hierarchy=kept)
    changed = replace(changed, undecided=undecided, average=average)
    return replace(changed, kind=rule.get("type", column.kind), hierarchy=_get_rule_hierarchy(column, rule) or kept)


def _get_rule_hierarchy(column: ColumnProfile, rule: Mapping[str, Any]) -> ProposedHierarchy | None:
    """Return the hierarchy of a rule; a mask is as long as the values."""
    if "hierarchy" not in rule:
        return None
    mask = {"mask": _get_proposed_keys(column)["mask"]} if "mask" in rule["hierarchy"] else {}
    return ProposedHierarchy("as the rule requires", rule["hierarchy"] | mask)


def _choose_level(rule: Mapping[str, Any], hierarchy: Mapping[str, Any]) -> int:
    if "left" in rule:
        return max(int(hierarchy["mask"]) - int(rule["left"]), 0)
    return int(rule.get("level", 0))


def fill_year(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return keys with the year 89 years ago filled in; a year alone becomes a number."""
    year = str(datetime.now(UTC).year - MAX_HIPAA_AGE)
    filled = {}
    for key, value in keys.items():
        text = value.replace(f"{{{MAX_HIPAA_AGE} years ago}}", year) if isinstance(value, str) else value
        filled[key] = int(text) if isinstance(text, str) and text.isdigit() else text
    return filled


COLUMNS_HINT = (
    "One section for each column of the table. To fill them in from a table: kinfold template {name} DATA --out FILE"
)


def write_skeleton(framework: Framework) -> str:
    """Return the policy of a framework without a table, with its rules as commented examples."""
    lines = [f"# {line}" if line else "" for line in framework.head.splitlines()]
    examples = [rule for rule in framework.columns if "example" in rule]
    fixed = [rule for rule in examples if "left" in rule or "level" in rule]
    levels = {rule["example"]: _choose_level(rule, rule.get("hierarchy", {})) for rule in fixed}
    for name, keys in framework.policy.items():
        lines += ["", f"[{name}]", *(f"{key} = {_write_value(value)}" for key, value in keys.items())]
        if name == "method" and levels:
            lines.append(f"# levels = {_write_value(levels)}  # one for each quasi-identifier")
    lines += ["", f"# {COLUMNS_HINT.format(name=framework.name)}"]
    for rule in examples:
        lines += ["#", *(f"# {line}" for line in _write_example(framework, rule))]
    return "\n".join(lines) + "\n"


def _write_example(framework: Framework, rule: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of an example column."""
    role = rule.get("role", rule["when"].get("role", Role.QUASI))
    reason = f"  # {rule['reason']}" if "reason" in rule else ""
    yield f"[columns.{rule['example']}]{reason}"
    yield f'role = "{role}"'
    if role == Role.CONFIDENTIAL and framework.confidential:
        yield f"t = {framework.confidential['t']}  # for a number; for a category use l = 3"
    hierarchy = {"hierarchy": rule["hierarchy"]} if "hierarchy" in rule else {}
    for key, value in {**fill_year(rule.get("keys", {})), **hierarchy}.items():
        yield f"{key} = {_write_value(value)}"


def _write_value(value: Any) -> str:
    return str((write_inline(value) if isinstance(value, Mapping) else tomlkit.item(value)).as_string())
