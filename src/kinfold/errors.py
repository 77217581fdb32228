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

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, ParamSpec, TypeVar

Value = TypeVar("Value")
Params = ParamSpec("Params")
Result = TypeVar("Result")


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


# What an argument of a public function must be, by its name or its annotation; other annotations are not checked
_EXPECTED: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "seed": ("a whole number from 0 up", lambda value: isinstance(value, Integral) and int(value) >= 0),
    "bool": ("True or False", lambda value: type(value).__name__ in ("bool", "bool_")),  # bool_ is numpy's
    "int": ("a whole number", lambda value: isinstance(value, Integral) or _is_whole(value)),
    "float": ("a number", lambda value: isinstance(value, Real) and value == value),
    "str": ("a text", lambda value: isinstance(value, str)),
    "str | Path": ("a path", lambda value: isinstance(value, str | Path)),
    "Sequence[str | Path]": ("a list of paths", lambda value: _is_list_of(value, str | Path)),
    "Sequence[Requirement]": ("a list of requirements", lambda value: isinstance(value, list | tuple)),
    "Mapping[str, Any]": (
        "a mapping with names",
        lambda value: isinstance(value, Mapping) and _is_list_of([*value], str),
    ),
    "CheckpointFolder": ("a folder of checkpoints", lambda value: hasattr(value, "begin")),
    **dict.fromkeys(("Progress", "StageProgress", "Chooser"), ("a function", callable)),
}


def check_arguments(function: Callable[Params, Result]) -> Callable[Params, Result]:
    """Return a function that raises `PolicyError` for arguments of other types than its annotations say."""
    annotations = {each.name: str(each.annotation) for each in inspect.signature(function).parameters.values()}

    @wraps(function)
    def run_checked(*args: Params.args, **keywords: Params.kwargs) -> Result:
        check_types({**dict(zip(annotations, args, strict=False)), **keywords}, annotations)
        return function(*args, **keywords)

    return run_checked


def check_types(values: Mapping[str, Any], annotations: Mapping[str, str]) -> None:
    """Raise with every value that is not of the type of its annotation."""
    problems = []
    for name, value in values.items():
        kind = annotations.get(name, "").removesuffix(" | None")
        expected = (name in annotations and _EXPECTED.get(name)) or _EXPECTED.get(kind)
        if expected and not (value is None and kind != annotations[name]) and not expected[1](value):
            what = f"{name} is given as {type(value).__name__}, but must be {expected[0]}"
            problems.append(Problem(what, f"give {expected[0]} as {name}"))
    if problems:
        raise PolicyError(problems)


def _is_whole(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _is_list_of(values: Any, kind: Any) -> bool:
    return isinstance(values, list | tuple) and all(isinstance(value, kind) for value in values)


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
