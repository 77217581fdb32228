"""The values of a policy before they are checked: read from TOML, and changed by key.

A key is a path: ("columns", "age", "role"). As text its parts are joined by dots; a part with a dot in it is quoted, as
in TOML.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import tomlkit

from kinfold.errors import PolicyError, explain_path, require_regular_file

KeyPath: TypeAlias = tuple[str, ...]

LONG_KEY_PATTERN = re.compile(r"""(?<![\w"'-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){100}""")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML; refuse a key of very many parts, on which the parser would spend a minute."""
    if LONG_KEY_PATTERN.search(text):
        raise RecursionError
    return tomllib.loads(text)


def fix_syntax(error: tomllib.TOMLDecodeError) -> str:
    """Return the fix for a syntax error, with its line if the parser knows it."""
    line = re.search(r"at line (\d+)", str(error))
    return f"fix the TOML syntax in line {line[1]}" if line else "fix the TOML syntax at the end of the text"


def parse_policy(text: str, name: str) -> dict[str, Any]:
    """Parse the text of a policy; raise `PolicyError` with the place of a syntax error."""
    try:
        return parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{name} is not TOML: {error}", fix=fix_syntax(error)) from None
    except RecursionError:
        raise PolicyError(f"{name} is nested too deeply", fix="reduce the nesting") from None
    except ValueError:
        raise PolicyError(f"{name} contains a number that is too long", fix="shorten the number") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file; raise `PolicyError` with the place of a syntax error."""
    if reason := explain_path(path):
        raise PolicyError(f"the path of the policy cannot be used: {reason}", fix="check the path")
    try:
        require_regular_file(path, PolicyError(f"policy '{path}' is not a regular file", fix="name a TOML file"))
        return parse_policy(path.read_text(encoding="utf-8-sig"), f"policy '{path}'")
    except UnicodeDecodeError:
        raise PolicyError(f"policy '{path}' is not UTF-8 text", fix="save it as UTF-8") from None
    except OSError as error:
        fix = "check the path, or write a policy: kinfold profile DATA --write-policy FILE"
        raise PolicyError(f"policy '{path}': {error.strerror}", fix=fix) from None


def format_toml_key(*parts: str) -> str:
    """Return a path as a TOML key.

    >>> format_toml_key("age"), format_toml_key("columns", "flc.grp", "role")
    ('age', 'columns."flc.grp".role')
    """
    return ".".join(str(tomlkit.key(part).as_string()) for part in parts)


def parse_key(text: str) -> KeyPath:
    """Return the path of a key.

    >>> parse_key("privacy.unit"), parse_key('columns."flc.grp".role'), parse_key("columns.L*.role")
    (('privacy', 'unit'), ('columns', 'flc.grp', 'role'), ('columns', 'L*', 'role'))
    """
    try:
        place: Any = parse_toml(f"{text} = 0")
    except (ValueError, RecursionError):
        return tuple(text.split("."))
    path = []
    while isinstance(place, dict) and len(place) == 1:
        ((part, place),) = place.items()
        path.append(part)
    return tuple(path)


def parse_value(text: str) -> Any:
    """Return a TOML value; anything else is a text."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def override_keys(values: dict[str, Any], keys: Mapping[KeyPath, Any]) -> dict[str, Any]:
    """Set keys in the values of a policy, or remove those whose value is None, and return the values."""
    for path, value in keys.items():
        section = values
        for part in path[:-1]:
            section = get_section(section, part)
        if value is None:
            section.pop(path[-1], None)
        else:
            section[path[-1]] = value
    return values


def get_section(values: dict[str, Any], key: str) -> dict[str, Any]:
    """Return a section of the values of a policy; it is added if it is missing."""
    section = values.setdefault(key, {})
    if not isinstance(section, dict):
        raise PolicyError(f"'{key}' in the policy is not a section", fix=f"write it as a section of keys: [{key}]")
    return section
