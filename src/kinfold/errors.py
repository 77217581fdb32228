"""The error tree. Each error says what is wrong, where, and how to fix it, and has an exit code.

    KinfoldError          1    also the exit code of a bug in kinfold
    ├── PolicyError       2    the request is wrong: usage, policy, output folder
    ├── DataError         3    the data cannot be read as declared
    │   └── LayoutError   3    the header is not the first line, or lines are not records
    ├── Unreachable       4    the request is valid, but this table cannot meet it
    ├── VerifyError       5    a promise does not hold on the file
    └── Cancelled       130    the run was stopped

Messages name columns and counts, never a value of the data, because a log is a release too. If the offending
categories help, `Problem.values` holds them; they are shown only on request (`--show-values`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

Value = TypeVar("Value")


def plural(number: int, one: str, many: str = "") -> str:
    """Return a count with its noun.

    >>> plural(1, "class", "classes"), plural(1200, "record")
    ('1 class', '1,200 records')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def explain_install(extra: str, what: str = "install it") -> str:
    """Return how to install an extra. kinfold is not on a package index, so it is installed from a checkout or a wheel.

    >>> explain_install("stats")
    "install it: pip install '.[stats]' in a checkout of kinfold, or 'WHEEL[stats]' with the path of its wheel"
    """
    return f"{what}: pip install '.[{extra}]' in a checkout of kinfold, or 'WHEEL[{extra}]' with the path of its wheel"


def visible(text: str) -> str:
    r"""Return the text with unprintable characters escaped, because a name may contain control codes of a terminal.

    >>> visible("column '\x1b[2J' is empty\n  fix: drop it")
    "column '\\x1b[2J' is empty\n  fix: drop it"
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True)
class Problem:
    """One problem: what is wrong (and where), how to fix it, the offending values, and further lines about it."""

    what: str
    fix: str = ""
    values: tuple[str, ...] = ()
    key: tuple[str, ...] = ()  # of the policy, if the problem is about one
    details: tuple[str, ...] = ()

    def text(self, *, show_values: bool = False) -> str:
        """Return the problem as one or more lines."""
        values = f" ({', '.join(self.values)})" if show_values and self.values else ""
        fix = (f"fix: {self.fix}",) if self.fix else ()
        return visible("\n  ".join((f"{self.what}{values}", *self.details, *fix)))


class KinfoldError(Exception):
    """An error with every problem, not only the first."""

    exit_code: ClassVar[int] = 1

    def __init__(self, problems: str | Problem | Iterable[Problem], fix: str = "") -> None:
        if isinstance(problems, str):
            problems = Problem(problems, fix)
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(self.text())

    def text(self, *, show_values: bool = False) -> str:
        """Return every problem, one below the other."""
        return "\n".join(problem.text(show_values=show_values) for problem in self.problems)


class PolicyError(KinfoldError, ValueError):
    """The request is wrong: a policy, an option, an output folder."""

    exit_code = 2


class DataError(KinfoldError, ValueError):
    """The data cannot be read as declared."""

    exit_code = 3


class LayoutError(DataError):
    """The header of a file is not its first line, or lines are not records; `keys` of `[source]` say so."""

    keys: dict[str, Any]

    @classmethod
    def suggest(cls, what: str, **keys: Any) -> LayoutError:
        """Return the error with its keys and a fix that names them."""
        texts = [f"source.{key} = {str(value).lower()} (--{key.replace('_', '-')})" for key, value in keys.items()]
        error = cls(what, fix=f"set {' and '.join(texts)}; `kinfold profile` writes this to a policy")
        error.keys = keys
        return error


class Unreachable(KinfoldError, ValueError):  # noqa: N818  the word of the contract
    """The request is valid, but this table cannot meet it."""

    exit_code = 4


class VerifyError(KinfoldError):
    """A promise does not hold on the rows as released."""

    exit_code = 5


class Cancelled(KinfoldError):  # noqa: N818  not a fault
    """The run was stopped before its end."""

    exit_code = 130


def call_all(makers: Iterable[Callable[[], Value]]) -> list[Value]:
    """Return the result of every call, or raise one error with the problems of all that fail.

    It is a `PolicyError` if any of them is.
    """
    results: list[Value] = []
    errors: list[KinfoldError] = []
    for make in makers:
        try:
            results.append(make())
        except (PolicyError, DataError) as error:
            errors.append(error)
    if errors:
        kind = PolicyError if any(isinstance(error, PolicyError) for error in errors) else DataError
        raise kind(dict.fromkeys(problem for error in errors for problem in error.problems))
    return results


def require_callable(name: str, value: object) -> None:
    """Raise if an argument that must be a function is not callable."""
    if value is not None and not callable(value):
        raise PolicyError(f"{name} is given as {type(value).__name__}", fix=f"give a function as {name}, or nothing")


def explain_path(path: Path) -> str:
    """Return why no file can have this path, whether it is there or not; an empty text if one can."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""
    except (OSError, ValueError) as error:  # too long, or a character that no name has
        return getattr(error, "strerror", None) or "a character is not allowed"
    return ""


def require_path(path: str | Path) -> Path:
    """Return a path; raise if no file can have it."""
    if reason := explain_path(Path(path)):
        raise DataError(f"the path cannot be used: {reason}", fix="check the path")
    return Path(path)


def require_regular_file(path: Path, error: KinfoldError) -> None:
    """Raise the error if the path is a device, a pipe or a folder: reading a device or a pipe may never end."""
    if path.exists() and not path.is_file():
        raise error


@contextmanager
def report_failed_write(path: Path, fix: str = "choose another folder") -> Iterator[None]:
    """Raise `PolicyError` if the `with` block cannot write to a path."""
    try:
        yield
    except OSError as error:
        raise PolicyError(f"cannot write '{path}': {error.strerror}", fix=fix) from error


def locate_bug(error: BaseException) -> str:
    """Name the last line of kinfold's own code in the traceback of an unexpected exception."""
    import traceback

    package = Path(__file__).parent
    frames = [f for f in traceback.extract_tb(error.__traceback__) if package in Path(f.filename).parents]
    if not frames:
        return "outside kinfold's own code"
    last = frames[-1]
    return f"in {Path(last.filename).relative_to(package.parent).as_posix()}, line {last.lineno} ({last.name})"
