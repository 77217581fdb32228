"""The text of a policy, edited in place: single keys set or taken out while comments and order stay as they were.

A key is a path: ("columns", "age", "role"). What is wrong with a text is told by the line it stands on.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import tomlkit
from tomlkit.items import Table

from kinfold.errors import PolicyError, Problem
from kinfold.request.policy import Policy, parse_toml

Key: TypeAlias = tuple[str, ...]

SYNTAX = re.compile(r"\(at line (\d+), column \d+\)|\(at end of document\)")
ENDS = ("]", "}", '"""', "'''")  # of a value that spans several lines
INLINE = 3  # parts of a key from which on a table stands inside its line: columns.age.hierarchy


@dataclass(frozen=True)
class LocatedProblem:
    """A problem with the key and the line that it is about, where these are known."""

    problem: Problem
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, without the values of the data that the problem may carry."""
        told: dict[str, Any] = {"what": self.problem.what, "fix": self.problem.fix}
        told |= {"key": list(self.problem.key)} if self.problem.key else {}
        return told | ({"line": self.line} if self.line is not None else {})


def edited(text: str, changes: Mapping[Key, Any]) -> str:
    r"""Return the text with some keys set, or taken out where the value is None; a section left empty goes too.

    >>> edited("[privacy]\nk = 5  # people\n", {("privacy", "k"): 10, ("method", "name"): "mdav"}).splitlines()
    ['[privacy]', 'k = 10 # people', '', '[method]', 'name = "mdav"']
    """
    document = tomlkit.parse(text)
    for key, value in changes.items():
        if value is None:
            _take_out(document, key)
        else:
            _put(document, key, value)
    return tomlkit.dumps(document)


def _put(document: Any, key: Key, value: Any) -> None:
    place = document
    for depth, part in enumerate(key[:-1]):
        if part not in place:
            _begin(document, place, key[: depth + 1], key)
        place = place[part]
        if not isinstance(place, Mapping):
            what = f"the policy: '{'.'.join(key[: depth + 1])}' is no section of keys"
            raise PolicyError(Problem(what, "correct it in the policy", key=key[: depth + 1]))
    before = place.get(key[-1])
    fresh = _item(value)
    if isinstance(fresh, Table) or isinstance(before, Table):  # a section has to stand below the keys of the one above
        if before is not None:
            del place[key[-1]]
        place.add(key[-1], fresh)
        return
    if before is not None and before.trivia.comment:
        fresh.comment(before.trivia.comment.lstrip("# "))
    place[key[-1]] = fresh


def _item(value: Any) -> Any:
    """Write a value; keys of their own stand in one line, unless one of them holds a table of labels."""
    if not isinstance(value, Mapping):
        return tomlkit.item(value)
    rows = [key for key, held in value.items() if isinstance(held, list | tuple) and held and _is_list(held[0])]
    made = tomlkit.table() if rows else tomlkit.inline_table()
    for key, held in value.items():
        made.add(key, _lines(held) if key in rows else _item(held))
    return made


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _lines(rows: Sequence[Sequence[Any]]) -> Any:
    array = tomlkit.array().multiline(multiline=True)
    for row in rows:
        line = tomlkit.array()
        line.extend(row)
        array.append(line)
    return array


def _begin(document: Any, place: Any, here: Key, key: Key) -> None:
    """Begin a section, an empty line before it; inside a column a table stands in its line."""
    if len(here) >= INLINE:
        place.add(here[-1], tomlkit.inline_table())
        return
    above = here == ("columns",) and len(key) > len(here) + 1  # which has no line of its own
    if not above and not tomlkit.dumps(document).endswith("\n\n") and len(document):
        document.add(tomlkit.nl())
    place.add(here[-1], tomlkit.table(is_super_table=above))


def _take_out(document: Any, key: Key) -> None:
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
            return  # [privacy] has to be there, and a column without keys is told of
        del place[part]


def read_text(text: str, where: Path | None = None) -> tuple[Policy, dict[str, Any]]:
    """Return the policy that a text is, and the keys that it has; `PolicyError` tells every problem with its key."""
    try:
        values = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"this is not TOML: {error}", fix="mend that line") from None
    except RecursionError:
        raise PolicyError("the policy nests too deeply", fix="write fewer levels into one another") from None
    except ValueError:
        raise PolicyError("the policy holds a number that is too long", fix="shorten it") from None
    parsed = Policy.parse(values)
    return (parsed.based_on(where) if where else parsed), values


def located(text: str, problems: Sequence[Problem], columns: Sequence[str] = ()) -> list[LocatedProblem]:
    """Return problems with the lines they stand on: of their keys, or of the column that they name."""
    lines = dict(_keys(text))
    return [LocatedProblem(problem, _line(problem, lines, text, columns)) for problem in problems]


def _line(problem: Problem, lines: Mapping[Key, int], text: str, columns: Sequence[str]) -> int | None:
    if found := SYNTAX.search(problem.what):
        return int(found[1]) if found[1] else text.count("\n") + (not text.endswith("\n"))
    if problem.key:
        return next((lines[problem.key[:n]] for n in range(len(problem.key), 0, -1) if problem.key[:n] in lines), None)
    named = [name for name in columns if f"'{name}'" in problem.what or f"columns.{name}" in problem.what]
    return lines.get(("columns", max(named, key=len))) if named else None


def line_of(text: str, key: Key) -> int | None:
    r"""Return the line, from 1, on which a key or a section stands.

    >>> line_of('[columns.a]\norder = [\n  "role = 1",\n]\nrole = "other"', ("columns", "a", "role"))
    5
    """
    return dict(_keys(text)).get(key)


def _keys(text: str) -> Iterator[tuple[Key, int]]:
    """Yield the keys and sections of a text with their lines; statement by statement, for a value may span lines."""
    section: Key = ()
    begun: list[str] = []
    seen: Counter[Key] = Counter()  # of [[rules]], which are told apart by their number
    for number, line in enumerate(text.splitlines(), 1):
        begun.append(line)
        if len(begun) > 1 and not line.split("#")[0].rstrip().endswith(ENDS):
            continue
        statement = _statement("\n".join(begun))
        if statement is None:
            continue
        first, begun = number - len(begun) + 1, []
        if not statement:
            continue
        if line.lstrip().startswith("["):
            listed = line.lstrip().startswith("[[")
            section = (*statement, str(seen[statement])) if listed else statement
            seen[statement] += listed
            yield section, first
        else:
            yield section + statement, first


def _statement(text: str) -> Key | None:
    """Return the key of a statement, nothing for a comment, None where it is not over yet."""
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
