"""What is wrong with a policy, in words: the key, where it stands, and what to write instead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from kinfold.errors import Problem
from kinfold.rows.schema import Role

IN_THE_POLICY = "correct it in the policy"


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """Return a hint at the known word that looks most like this one, or nothing.

    >>> did_you_mean("zpi", ["age", "zip"])
    ", did you mean 'zip'?"
    """
    close = get_close_matches(word, known, 1, 0.6)
    return f", did you mean '{close[0]}'?" if close else ""


def problems_of(
    error: ValidationError, policy: type[BaseModel], where: Path | None, options: Mapping[str, str]
) -> list[Problem]:
    """Return what pydantic found wrong with a policy of this type, one problem a key.

    `where` is its file, if it has one; `options` are those of the command that set keys.
    """
    place = f"policy '{where}'" if where else "the policy"
    details = error.errors(include_url=False)
    # Of a key that may hold one thing or another, each complains: one is enough, in words that fit both.
    alike = Counter(_key(detail) for detail in details)
    once = {_key(detail): detail for detail in details}
    found = {
        key: Problem(f"{place}: '{key}' is none of what it may be", _hint(key), key=_path(once[key]))
        if alike[key] > 1
        else _problem(detail, key, place, policy)
        for key, detail in once.items()
    }
    return [_by_option(problem, key, place, options) for key, problem in found.items()]


def _by_option(problem: Problem, key: str, place: str, options: Mapping[str, str]) -> Problem:
    """Tell a problem by the option that set the key, or one that the key is the beginning of."""
    option = next((said for set_, said in options.items() if f"{set_}.".startswith(f"{key}.")), None)
    if option is None:
        return problem
    fix = problem.fix if problem.fix != IN_THE_POLICY else f"give {option} another value"
    return replace(problem, what=problem.what.replace(place, option, 1), fix=fix)


def _key(detail: Any) -> str:
    path = [str(part) for part in detail["loc"]]
    if path[0] == "columns":
        head, rest = path[:2], [part for part in path[2:] if part != "[key]"]
        return ".".join([*head, *rest])
    if path[0] == "rules" and len(path) > 1:
        return ".".join(["rules", str(int(path[1]) + 1), *path[2:]])
    return ".".join(path[:2])


def _path(detail: Any) -> tuple[str, ...]:
    return tuple(str(part) for part in detail["loc"])


def _problem(detail: Any, key: str, place: str, policy: type[BaseModel]) -> Problem:
    path = _path(detail)
    if detail["type"] == "extra_forbidden":
        known = _known_keys(policy, path[:-1])
        return Problem(
            f"{place}: unknown key '{key}'{did_you_mean(path[-1], known)}",
            f"known keys there: {', '.join(known)}",
            key=path,
        )
    if detail["type"] == "missing":
        return Problem(f"{place}: '{key}' is missing", _hint(key) or "add it", key=path)
    message = detail["msg"].removeprefix("Value error, ")
    return Problem(f"{place}: '{key}' {_reason(message)}", _hint(key), key=path)


def _reason(message: str) -> str:
    plain = re.sub(r"valid dictionary( or instance of \w+)?", "section of keys", message)
    plain = plain.replace("valid integer", "whole number").replace("valid tuple", "list").replace("valid ", "")
    return plain.removeprefix("Input ") if plain.startswith("Input ") else f"is refused: {plain}"


def _hint(key: str) -> str:
    hints = {
        "privacy": "add [privacy] with k = 5",
        "privacy.k": "k is a whole number from 2 up, for example k = 5",
        "privacy.t": "t is above 0 and at most 1",
        "method.suppression": "a whole number is a count of records, a number from 0 to 1 a share of them",
        "method.refine": 'a number of seconds, "auto", or "exact" for a table of some hundred records',
        "method.limit": "a share from 0 to 1 for some quasi-identifiers, for example { zip = 0.05 }",
        "source.decimal": 'decimal = "," or "."',
        "source.thousands": 'thousands = ".", ",", " " or "\'"',
        "source.dates": 'as in dates = "%d.%m.%Y"',
        "source.encoding": 'as in encoding = "latin-1"',
        "source.separator": 'separator = ";", ",", "|" or "tab"',
        "source.sheet": "the name of a sheet, or its number from 1 up",
        "source.header": "the number of the line that has the column names, from 1 up, or 0 where none has",
        "source.skip": "how many lines are above the table, a whole number from 0 up",
        "method.levels": "a whole number from 0 up for each quasi-identifier, for example { zip = 2, age = 1 }",
    }
    if key.endswith(".role"):
        return "roles are " + ", ".join(Role)
    if key.endswith((".top", ".bottom")):
        return 'a number, or a date written as "2024-12-31"'
    if key.startswith("rules"):
        return 'a rule is [[rules]] with check = "discharge >= admission"; see docs/policy.md for what it may say'
    return hints.get(key, IN_THE_POLICY)


def _known_keys(section: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Return the keys of the section that this path leads to."""
    parts = iter(path)
    for part in parts:
        if part not in section.model_fields:
            continue
        kind = section.model_fields[part].annotation
        held = _section_of(kind)
        if held is None:
            return []
        section = held
        if get_origin(kind) in (dict, tuple):  # the next part is the name of a column, or the number of a rule
            next(parts, None)
    return list(section.model_fields)


def _section_of(kind: Any) -> type[BaseModel] | None:
    """Return the section that a field holds, by itself or among others."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next(filter(None, map(_section_of, get_args(kind))), None)
