"""Edit the TOML text of a policy in place: set or remove single keys, keep comments and order.

A key is a path: ("columns", "age", "role"). Problems are located by line.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import tomlkit
from tomlkit.items import Table

from kinfold.errors import PolicyError, Problem
from kinfold.policy.model import Policy
from kinfold.policy.toml_values import KeyPath, parse_policy

SYNTAX_ERROR_LINE = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")
MULTILINE_ENDS = ("]", "}", '"""', "'''")  # last characters of a value that spans several lines
INLINE_DEPTH = 3  # a table at this depth is written in one line: columns.age.hierarchy


@dataclass(frozen=True)
class LocatedProblem:
    """A problem with its key and its line, if known."""

    problem: Problem
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without values of the data."""
        values: dict[str, Any] = {"what": self.problem.what, "fix": self.problem.fix}
        values |= {"key": list(self.problem.key)} if self.problem.key else {}
        return values | ({"line": self.line} if self.line is not None else {})


def edit_text(text: str, changes: Mapping[KeyPath, Any]) -> str:
    r"""Return the text with some keys set, or removed if the value is None; empty sections are removed.

    >>> edit_text("[privacy]\nk = 5  # people\n", {("privacy", "k"): 10, ("method", "name"): "mdav"}).splitlines()
    ['[privacy]', 'k = 10 # people', '', '[method]', 'name = "mdav"']
    """
    document = tomlkit.parse(text)
    for key, value in changes.items():
        if value is None:
            _remove_key(document, key)
        else:
            _set_key(document, key, value)
    return tomlkit.dumps(document)


def _set_key(document: Any, key: KeyPath, value: Any) -> None:
    section = document
    for depth, part in enumerate(key[:-1]):
        if part not in section:
            _start_section(document, section, key[: depth + 1], key)
        section = section[part]
        if not isinstance(section, Mapping):
            what = f"the policy: '{'.'.join(key[: depth + 1])}' is not a section"
            raise PolicyError(Problem(what, "correct it in the policy", key=key[: depth + 1]))
    before, item = section.get(key[-1]), _to_item(value)
    if isinstance(item, Table) or isinstance(before, Table):  # a section must follow the keys of its parent
        if before is not None:
            del section[key[-1]]
        section.add(key[-1], item)
        return
    if before is not None and before.trivia.comment:
        item.comment(before.trivia.comment.lstrip("# "))
    section[key[-1]] = item


def _to_item(value: Any) -> Any:
    """Return a TOML item; a mapping becomes one line, unless it holds a table of labels."""
    if not isinstance(value, Mapping):
        return tomlkit.item(value)
    lists = (list, tuple)
    rows = [key for key, part in value.items() if isinstance(part, lists) and part and isinstance(part[0], lists)]
    table = tomlkit.table() if rows else tomlkit.inline_table()
    for key, part in value.items():
        item = _to_item(part)
        table.add(key, item.multiline(multiline=True) if key in rows else item)
    return table


def _start_section(document: Any, parent: Any, path: KeyPath, key: KeyPath) -> None:
    """Start a section after an empty line; a table inside a column stays in its line."""
    if len(path) >= INLINE_DEPTH:
        parent.add(path[-1], tomlkit.inline_table())
        return
    above = path == ("columns",) and len(key) > len(path) + 1  # [columns] has no line of its own
    if not above and not tomlkit.dumps(document).endswith("\n\n") and len(document):
        document.add(tomlkit.nl())
    parent.add(path[-1], tomlkit.table(is_super_table=above))


def _remove_key(document: Any, key: KeyPath) -> None:
    places: list[Any] = [document]
    for part in key[:-1]:
        if not isinstance(places[-1], Mapping) or part not in places[-1]:
            return
        places.append(places[-1][part])
    if not isinstance(places[-1], MutableMapping) or key[-1] not in places[-1]:
        return
    del places[-1][key[-1]]
    for place, part, depth in zip(places[-2::-1], key[-2::-1], range(len(key) - 2, -1, -1), strict=True):
        if len(place[part]) or key[:1] == ("privacy",) or (key[:1] == ("columns",) and depth == 1):
            return  # [privacy] is required, and a column without keys must be reported
        del place[part]


def parse_policy_text(text: str) -> tuple[Policy, dict[str, Any]]:
    """Return the policy of a text, and its raw values; raise `PolicyError` with the key of every problem."""
    values = parse_policy(text, "the policy")
    return Policy.parse(values), values


def locate_problems(text: str, problems: Sequence[Problem], columns: Sequence[str] = ()) -> list[LocatedProblem]:
    """Return problems with their lines: the line of the key, or of the column that the message names."""
    lines = dict(_list_keys(text))
    return [LocatedProblem(problem, _find_problem_line(problem, lines, text, columns)) for problem in problems]


def _find_problem_line(problem: Problem, lines: Mapping[KeyPath, int], text: str, columns: Sequence[str]) -> int | None:
    if match := SYNTAX_ERROR_LINE.search(problem.what):
        return int(match[1]) if match[1] else text.count("\n") + (not text.endswith("\n"))
    if problem.key:
        return next((lines[problem.key[:n]] for n in range(len(problem.key), 0, -1) if problem.key[:n] in lines), None)
    named = [name for name in columns if f"'{name}'" in problem.what or f"columns.{name}" in problem.what]
    return lines.get(("columns", max(named, key=len))) if named else None


def _list_keys(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Yield the keys and sections of a text with their lines; a value may span several lines."""
    section: KeyPath = ()
    begun: list[str] = []
    numbers: Counter[KeyPath] = Counter()  # numbers the sections of [[rules]]
    for number, line in enumerate(text.splitlines(), 1):
        begun.append(line)
        if len(begun) > 1 and not line.split("#")[0].rstrip().endswith(MULTILINE_ENDS):
            continue
        statement = _parse_statement("\n".join(begun))
        if statement is None:
            continue
        first, begun = number - len(begun) + 1, []
        if not statement:
            continue
        if line.lstrip().startswith("["):
            listed = line.lstrip().startswith("[[")
            section = (*statement, str(numbers[statement])) if listed else statement
            numbers[statement] += listed
            yield section, first
        else:
            yield section + statement, first


def _parse_statement(text: str) -> KeyPath | None:
    """Return the key of a statement, () for a comment, None if the statement is incomplete."""
    try:
        place: Any = tomllib.loads(text)
    except ValueError:
        return None
    header = text.lstrip().startswith("[")
    path: list[str] = []
    while isinstance(place, dict) and len(place) == 1 and (header or not path):
        ((part, place),) = place.items()
        path.append(part)
    return tuple(path)
