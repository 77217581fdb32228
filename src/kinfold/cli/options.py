"""From options to a policy: a file, roles on the command line, or both, with single keys set on top."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from kinfold.errors import PolicyError, Problem
from kinfold.rows.databases.address import DatabaseAddress
from kinfold.rows.schema import ROLE_SYNONYMS

if TYPE_CHECKING:
    from kinfold.request.policy import Policy

FLAGS = {
    "privacy.k": "-k",
    "privacy.t": "-t",
    "privacy.l": "-l",
    "method.name": "--method",
    "output.order": "--keep-order",
    "engine.name": "--engine",
}
Number = TypeVar("Number", int, float)


def policy_from(
    file: Path | None, roles: Mapping[str, str | None], keys: Mapping[str, Any], settings: Sequence[str]
) -> Policy:
    """Return the policy of a command: `roles` are comma-separated lists, `keys` dotted, `settings` are key=value."""
    from kinfold.request.policy import read_toml

    values: dict[str, Any] = read_toml(file) if file else {}
    _add_roles(values, roles)
    given = {key: value for key, value in keys.items() if value is not None}
    for key, value in given.items():
        _put(values, key, value)
    return _set(values, settings, file, {key: FLAGS.get(key, f"--{key.rpartition('.')[2]}") for key in given})


def verifying(
    data: Path | DatabaseAddress, file: Path | None, keys: Mapping[str, Any], settings: Sequence[str]
) -> Policy | None:
    """Return what a release is judged by beside its certificate: a file, or the certificate with keys set anew."""
    from kinfold.release.certification import policy_in
    from kinfold.release.inspection import public_part, read_certificate

    if file is not None:
        return policy_from(file, {}, keys, settings)
    if given := [key for key, value in keys.items() if value is not None]:
        option = f"--{given[0].rpartition('.')[2]}"
        raise PolicyError(f"{option} is for a table; the certificate says how a release is written", fix="leave it out")
    assert isinstance(data, Path)  # noqa: S101  rows of a database have no certificate: a policy was asked for
    return _set(policy_in(read_certificate(public_part(data))), settings, None) if settings else None


def _set(
    values: dict[str, Any], settings: Sequence[str], file: Path | None, flags: Mapping[str, str] | None = None
) -> Policy:
    """Put single keys on top; what is wrong is told by the option that said it."""
    from kinfold.request.policy import Policy

    options = dict(flags or {})
    for setting in settings:
        key, mark, text = setting.partition("=")
        if not mark:
            raise PolicyError(f"--set {setting} has no value", fix="write --set section.key=value")
        _put(values, key.strip(), _value(text.strip()))
        options[key.strip()] = f"--set {key.strip()}"
    values.setdefault("privacy", {})
    return Policy.parse(values, file, options)


def numbers(text: str | None, kind: type[Number], option: str) -> list[Number]:
    """Read a comma-separated list of numbers."""
    try:
        return [kind(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise PolicyError(f"{option} {text} is not a list of numbers", fix=f"write {option} 3,5,10") from None


def _add_roles(values: dict[str, Any], roles: Mapping[str, str | None]) -> None:
    problems = []
    for role, names in roles.items():
        for name in filter(None, (part.strip() for part in (names or "").split(","))):
            column = _section(_section(values, "columns"), name)
            before = column.setdefault("role", role)
            if ROLE_SYNONYMS.get(str(before), before) != role:
                problems.append(
                    Problem(f"column '{name}' is given as {before} and as {role}", "give each column one role")
                )
    if problems:
        raise PolicyError(problems)


def _put(values: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for part in path:
        values = _section(values, part)
    values[last] = value


def _section(values: dict[str, Any], key: str) -> dict[str, Any]:
    section = values.setdefault(key, {})
    if not isinstance(section, dict):
        raise PolicyError(f"'{key}' in the policy is not a section", fix=f"write it as a section of keys: [{key}]")
    return section


def _value(text: str) -> Any:
    """Read a value as TOML does; what is no TOML value is text."""
    from kinfold.request.policy import parse_toml

    try:
        return parse_toml(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
