"""The error tree. Each error says what is wrong, where and what to do, and knows its exit code.

    KinfoldError          1    also the code of a bug in kinfold itself
    ├── PolicyError       2    the request is wrong: usage, policy, output folder
    ├── DataError         3    the data cannot be read as declared
    ├── Unreachable       4    the request is fine, but this table cannot meet it
    ├── VerifyError       5    a promise does not hold on the file
    └── Cancelled       130    somebody stopped the run

Messages name columns and counts, never a value of the data: a log is a release too. Where the offending
categories help, they travel in `Problem.values` and are shown only when asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

Value = TypeVar("Value")


def plural(number: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    >>> plural(1, "class", "classes"), plural(1200, "record")
    ('1 class', '1,200 records')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def install_extra(extra: str, what: str = "install it") -> str:
    """Return how to install an extra: kinfold is on no package index, so from a checkout or a wheel.

    >>> install_extra("stats")
    "install it: pip install '.[stats]' in a checkout of kinfold, or 'WHEEL[stats]' with the path of its wheel"
    """
    return f"{what}: pip install '.[{extra}]' in a checkout of kinfold, or 'WHEEL[{extra}]' with the path of its wheel"


def visible(text: str) -> str:
    r"""Return lines in which every character can be seen: names may hold what would steer a terminal.

    >>> visible("column '\x1b[2J' is empty\n  fix: drop it")
    "column '\\x1b[2J' is empty\n  fix: drop it"
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: what (and where), what to do about it, and the values that offend."""

    what: str
    fix: str = ""
    values: tuple[str, ...] = ()
    key: tuple[str, ...] = ()  # of the policy, where it is about one

    def text(self, *, show_values: bool = False) -> str:
        """Return the problem as one or two lines."""
        shown = f" ({', '.join(self.values)})" if show_values and self.values else ""
        return visible(f"{self.what}{shown}" + (f"\n  fix: {self.fix}" if self.fix else ""))


class KinfoldError(Exception):
    """Something kinfold has to tell; it carries every problem found, not only the first."""

    exit_code: ClassVar[int] = 1

    def __init__(self, problems: str | Problem | Iterable[Problem], fix: str = "") -> None:
        if isinstance(problems, str):
            problems = Problem(problems, fix)
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.text())

    def text(self, *, show_values: bool = False) -> str:
        """Return every problem, one after the other."""
        return "\n".join(problem.text(show_values=show_values) for problem in self.problems)


class PolicyError(KinfoldError, ValueError):
    """The request is wrong: a policy, an option, an output folder."""

    exit_code = 2


class DataError(KinfoldError, ValueError):
    """The data cannot be read as declared."""

    exit_code = 3


class Unreachable(KinfoldError, ValueError):  # noqa: N818  the word of the contract
    """The request is fine, but this table cannot meet it."""

    exit_code = 4


class VerifyError(KinfoldError):
    """A promise does not hold on the rows as released."""

    exit_code = 5


class Cancelled(KinfoldError):  # noqa: N818  not a fault
    """The run was stopped before it was done."""

    exit_code = 130


def together(makers: Iterable[Callable[[], Value]]) -> list[Value]:
    """Make every value, or raise with what is wrong with all of them, not with the first alone.

    It is the request that is wrong if any of them says so.
    """
    made: list[Value] = []
    wrong: list[KinfoldError] = []
    for make in makers:
        try:
            made.append(make())
        except (PolicyError, DataError) as error:
            wrong.append(error)
    if wrong:
        kind = PolicyError if any(isinstance(error, PolicyError) for error in wrong) else DataError
        raise kind(dict.fromkeys(problem for error in wrong for problem in error.problems))
    return made


def require_callable(name: str, given: object) -> None:
    """Raise where something that is to be called cannot be."""
    if given is not None and not callable(given):
        raise PolicyError(f"{name} is given as {type(given).__name__}", fix=f"give a function as {name}, or nothing")


def require_ordinary(path: Path, wrong: KinfoldError) -> None:
    """Raise where something is there that is no ordinary file: a device or a pipe may never end."""
    if path.exists() and not path.is_file():
        raise wrong
