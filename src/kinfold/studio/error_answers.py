"""What a page is told when something goes wrong: every problem, and of a bug its kind and place, never its text."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import kinfold
from kinfold.errors import KinfoldError, Problem
from kinfold.request.policy_text import LocatedProblem, located

HOUSE = Path(kinfold.__file__).parent


class Refused(Exception):  # noqa: N818  an answer, not a fault
    """A request that is answered with a status and what is wrong with it."""

    def __init__(self, status: int, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.status, self.problems = status, (Problem(what, fix),)


class Misfit(Exception):  # noqa: N818  an answer, not a fault
    """What is wrong with the text of a policy, by its lines."""

    def __init__(self, error: KinfoldError, text: str, columns: tuple[str, ...] = ()) -> None:
        super().__init__(error.text())
        self.found = [each.to_dict() for each in located(text, error.problems, columns)]


def told(error: BaseException) -> list[dict[str, Any]]:
    """Return the problems of an error as plain values."""
    if isinstance(error, Misfit):
        return error.found
    if isinstance(error, Refused | KinfoldError):
        return [LocatedProblem(problem).to_dict() for problem in error.problems]
    if isinstance(error, MemoryError):
        what = "there is not enough memory for this table"
        return [{"what": what, "fix": "give it more memory, or fewer records at a time"}]
    fix = "please report the line above; it holds none of your data"
    return [{"what": f"kinfold met a bug: {type(error).__name__} {_place(error)}", "fix": fix}]


def status_of(error: BaseException) -> int:
    """Return the status that an error is answered with."""
    if isinstance(error, Refused):
        return error.status
    return 422 if isinstance(error, KinfoldError | Misfit) else 500


def _place(error: BaseException) -> str:
    """Name the last line of kinfold's own code that was running."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if HOUSE in Path(f.filename).parents]
    if not frames:
        return "outside kinfold's own code"
    return f"in {Path(frames[-1].filename).relative_to(HOUSE.parent).as_posix()}, line {frames[-1].lineno}"
