"""Validation of policy values: checks of single keys, and messages that name the key, the place and the fix."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from datetime import date, time
from difflib import get_close_matches
from numbers import Number
from pathlib import Path, PurePath
from typing import Annotated, Any, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError, ValidationInfo

from kinfold.errors import Problem, explain_path
from kinfold.tables.schema import Role
from kinfold.tables.source_form import APOSTROPHES, THOUSANDS_SPACES

SEPARATORS = ",;|:^~!#&\t "
SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "pipe": "|", "bar": "|"}
DATE_FORMAT_PATTERN = r"(%[dmYyHMSbBfpIjz]|[A-Za-z0-9 ./:,+-])+"
DIGITS_DATE_PATTERN = r"(%Y(%m(%d(%H(%M(%S)?)?)?)?)?)"  # the only order in which digits alone sort as dates
NESTED_SECTIONS = (["privacy", "risk_share"], ["privacy", "combinations"], ["privacy", "population"])


class Section(BaseModel):
    """A section of a policy: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def _check_path(path: Path) -> Path:
    """Return a path that a file can have."""
    if reason := explain_path(path):
        raise ValueError(f"the path cannot be used: {reason}")
    return path


def _resolve_path(path: Path, info: ValidationInfo) -> Path:
    """Return a path relative to the folder of the policy, which is the context of the validation, if there is one."""
    return path if info.context is None else info.context / path


FilePath = Annotated[Path, AfterValidator(_check_path)]
PolicyFile = Annotated[FilePath, AfterValidator(_resolve_path)]


def wrap_in_list(value: Any) -> Any:
    """Return a single text or number as a list of one."""
    return [value] if isinstance(value, str | int | float) else value


def check_separator(value: Any) -> Any:
    """Return the separator of fields as one character."""
    mark = SEPARATOR_NAMES.get(value.lower(), value) if isinstance(value, str) else value
    if mark is None or (isinstance(mark, str) and len(mark) == 1 and mark in SEPARATORS):
        return mark
    raise ValueError("a separator is one character: comma, semicolon, tab, |, :, ^, ~, !, #, & or space")


def check_thousands(value: Any) -> Any:
    """Return the thousands separator as one character, or empty."""
    mark = SEPARATOR_NAMES.get(value.lower(), value) if isinstance(value, str) else value
    if mark in ("", None) or (
        isinstance(mark, str) and len(mark) == 1 and mark in f".,_{APOSTROPHES}{THOUSANDS_SPACES}"
    ):
        return mark or ""
    raise ValueError("the thousands separator is a point, a comma, an apostrophe, an underscore or a space")


def check_encoding(value: Any) -> Any:
    """Return a text encoding that Python knows."""
    try:
        if value is None or (codecs.lookup(value)._is_text_encoding and codecs.lookup(value).incrementaldecoder):
            return value
    except (LookupError, TypeError, ValueError):
        pass
    raise ValueError("there is no such encoding; examples are utf-8, latin-1, cp1252 and utf-16")


def check_date_formats(formats: Sequence[str]) -> Sequence[str]:
    """Return date formats that have day, month and year, and only directives that both engines know."""
    for form in formats:
        parts = re.findall("%(.)", form)
        year = "Y" in parts or "y" in parts
        day = {"d", "j"} & {*parts} or re.fullmatch(DIGITS_DATE_PATTERN, form)
        if (
            not re.fullmatch(DATE_FORMAT_PATTERN, form)
            or not year
            or not day
            or len({*parts}) < len(parts)
            or "%z" in form[:-2]
        ):
            raise ValueError("dates are written as in %d.%m.%Y: %d day, %m month (%b Jan), %Y year, %H:%M:%S time")
        unseparated = form.replace("%", "").isalpha() and {"b", "B"}.isdisjoint(parts)  # %d%b%Y has letters: 05Jan2020
        if unseparated and not re.fullmatch(DIGITS_DATE_PATTERN, form):
            raise ValueError("dates of digits alone must have the order %Y%m%d")
    return formats


DEFAULT_FIX = "correct it in the policy"
MAX_DEPTH = 100  # levels of nested sections and lists
PATH_KEYS = (("file",), ("table",), ("spill",), ("surrogate_secret",))  # a path may have other characters


def find_foreign_values(values: Any, options: Mapping[str, str]) -> list[Problem]:
    """Return a problem for each value that no TOML file can hold, such as a frame, and for text that is not Unicode."""
    messages: dict[str, str] = {}
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), values)]
    while waiting:
        key, value = waiting.pop()
        name = ".".join(map(str, key[:3])).encode(errors="backslashreplace").decode()
        if isinstance(value, Mapping) and len(key) < MAX_DEPTH:
            waiting += [((*key, part), each) for part, each in value.items()]
            waiting += [(key, part) for part in value if isinstance(part, str)]
        elif isinstance(value, list | tuple | Set) and len(key) < MAX_DEPTH:
            waiting += [((*key, ""), each) for each in value]
        elif isinstance(value, str) and key[-1:] not in PATH_KEYS and not _is_unicode(value):
            messages[name.rstrip(".")] = "is text that is not Unicode"
        elif not isinstance(value, str | Number | date | time | PurePath | BaseModel | None):
            messages[name.rstrip(".")] = (
                f"is given as {type(value).__name__}, and not as text, a number, a date or a list"
            )
    place = "the policy"
    return [
        _name_option(Problem(f"{place}: '{name}' {what}", DEFAULT_FIX), name, place, options)
        for name, what in messages.items()
    ]


def _is_unicode(text: str) -> bool:
    return text.isascii() or text.encode(errors="replace") == text.encode(errors="surrogatepass")


def suggest_name(word: str, known: Sequence[str]) -> str:
    """Return a hint at the most similar known word, or an empty text.

    >>> suggest_name("zpi", ["age", "zip"])
    ", did you mean 'zip'?"
    """
    close = get_close_matches(word, known, 1, 0.6)
    return f", did you mean '{close[0]}'?" if close else ""


def describe_problems(
    error: ValidationError, policy: type[BaseModel], where: Path | None, options: Mapping[str, str]
) -> list[Problem]:
    """Return the errors of pydantic as problems, one for each key.

    `where` is the policy file, if there is one; `options` are the command-line options that set keys.
    """
    place = f"policy '{where}'" if where else "the policy"
    details = error.errors(include_url=False)
    # pydantic reports every alternative of a union: one problem for the key is enough
    reports = Counter(_problem_key(detail) for detail in details)
    problems = []
    for key, detail in {_problem_key(detail): detail for detail in details}.items():
        problem = _describe_problem(detail, key, place, policy)
        if reports[key] > 1:
            what = f"{place}: '{key}' has a value that is not allowed"
            problem = Problem(what, _find_hint(key), key=problem.key)
        problems.append(_name_option(problem, key, place, options))
    return problems


def _name_option(problem: Problem, key: str, place: str, options: Mapping[str, str]) -> Problem:
    """Name the option that set the key, or a key below it, instead of the policy."""
    option = next((option for path, option in options.items() if f"{path}.".startswith(f"{key}.")), None)
    if option is None:
        return problem
    fix = problem.fix if problem.fix != DEFAULT_FIX else f"give {option} another value"
    return replace(problem, what=problem.what.replace(place, option, 1), fix=fix)


def _problem_key(detail: Any) -> str:
    path = [str(part) for part in detail["loc"]]
    if path[0] == "columns":
        head, rest = path[:2], [part for part in path[2:] if part != "[key]"]
        return ".".join([*head, *rest])
    if path[0] in ("review", "tables"):
        return ".".join(part for part in path if part != "[key]")
    if path[0] == "rules" and len(path) > 1:
        return ".".join(["rules", str(int(path[1]) + 1), *path[2:]])
    below = 3 if path[:2] in NESTED_SECTIONS else 2
    return ".".join(path[:below])


def _describe_problem(detail: Any, key: str, place: str, policy: type[BaseModel]) -> Problem:
    path = tuple(str(part) for part in detail["loc"])
    if detail["type"] == "extra_forbidden":
        known = _list_known_keys(policy, path[:-1])
        what = f"{place}: unknown key '{key}'{suggest_name(path[-1], known)}"
        return Problem(what, f"known keys there: {', '.join(known)}", key=path)
    if detail["type"] == "missing":
        return Problem(f"{place}: '{key}' is missing", _find_hint(key) or "add it", key=path)
    plain = re.sub(r"valid dictionary( or instance of \w+)?", "section of keys", detail["msg"])
    plain = plain.replace("a valid path for <class 'pathlib.Path'>", "the path of a file, as text")
    plain = plain.removeprefix("Value error, ")
    plain = plain.replace("valid integer", "whole number").replace("valid tuple", "list").replace("valid ", "")
    plain = plain.removeprefix("Input ") if plain.startswith("Input ") else f"is refused: {plain}"
    return Problem(f"{place}: '{key}' {plain}", _find_hint(key), key=path)


def _find_hint(key: str) -> str:
    hints = {
        "privacy": "add [privacy] with k = 5",
        "privacy.k": "k is a whole number from 2 up, for example k = 5",
        "privacy.t": "t is above 0 and at most 1",
        "method.suppression": "a whole number is a count of records, a number from 0 to 1 a share of them",
        "method.refine": 'a number of seconds, "auto", or "exact" for a table of a few hundred records',
        "method.limit": "a share from 0 to 1 for some quasi-identifiers, for example { zip = 0.05 }",
        "source.decimal": 'decimal = "," or "."',
        "source.thousands": 'thousands = ".", ",", " " or "\'"',
        "source.dates": 'for example dates = "%d.%m.%Y"',
        "source.encoding": 'for example encoding = "latin-1"',
        "source.separator": 'separator = ";", ",", "|" or "tab"',
        "source.sheet": "the name of a sheet, or its number from 1 up",
        "source.header": "the number of the line with the column names, from 1 up, or 0 if there is none",
        "source.skip": "the number of lines above the table, from 0 up",
        "method.levels": "a whole number from 0 up for each quasi-identifier, for example { zip = 2, age = 1 }",
    }
    if key.endswith(".role"):
        return "roles are " + ", ".join(Role)
    if key.endswith((".top", ".bottom")):
        return 'a number, or a date written as "2024-12-31"'
    if key.startswith("rules"):
        return 'a rule is [[rules]] with check = "discharge >= admission"; see docs/policy.md for the syntax'
    return hints.get(key, DEFAULT_FIX)


def _list_known_keys(section: type[BaseModel], path: Sequence[str]) -> list[str]:
    """Return the keys of the section at a path."""
    parts = iter(path)
    for part in parts:
        if part not in section.model_fields:
            section = getattr(section, "FURTHER_KEYS", section)
            continue
        kind = section.model_fields[part].annotation
        model = _find_section_model(kind)
        if model is None:
            return []
        section = model
        if get_origin(kind) in (dict, tuple):  # the next part is the name of a column or the number of a rule
            next(parts, None)
    return list(section.model_fields)


def _find_section_model(kind: Any) -> type[BaseModel] | None:
    """Return the section model in the type of a field, if any."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next(filter(None, map(_find_section_model, get_args(kind))), None)
