"""Limits of the studio, and the errors that a page receives: all problems; of a bug only its type and place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kinfold.errors import KinfoldError, Problem, locate_bug
from kinfold.policy.toml_text import LocatedProblem, locate_problems

MB, GB = 10**6, 10**9
SHEET_KEY = ("source", "sheet")
MEMORY_FIX = "free some memory, or use fewer records at a time"


@dataclass(frozen=True)
class StudioLimits:
    """What one server allows; it refuses more with a message."""

    upload_bytes: int = 2 * GB
    upload_seconds: float = 600.0
    stall_seconds: float = 20.0  # without a byte of a request's body
    body_bytes: int = 16 * MB  # of a request that is not an upload
    idle_seconds: float = 3600.0  # after which a session is removed
    sessions: int = 100
    streams: int = 6  # event streams of a session
    runs: int = 50  # kept in a session
    waiting: int = 10  # jobs of a session in the queue
    queue: int = 500  # jobs of all sessions
    workers: int = 2  # processes for runs, and as many for jobs that a page waits for
    open_tables: int = 24
    open_table_bytes: int = 1 * GB  # total size of their files
    columns: int = 2000  # of a table
    worker_bytes: int | None = None  # memory of one job; None: nine tenths of the memory that is free when it starts
    undo: int = 200  # decisions that can be undone
    text_bytes: int = 4 * MB  # of a policy


class Refusal(Exception):  # noqa: N818  a response, not a fault
    """The response to a request that cannot be served: an HTTP status, and problems as JSON values."""

    def __init__(self, status: int, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.status, self.problems = status, [LocatedProblem(Problem(what, fix)).to_dict()]


class PolicyTextError(Refusal):
    """Problems in the text of a policy, with their lines."""

    def __init__(self, error: KinfoldError, text: str, columns: tuple[str, ...] = ()) -> None:
        super().__init__(422, error.text())
        self.problems = [each.to_dict() for each in locate_problems(text, error.problems, columns)]


def make_refusal(error: BaseException) -> Refusal:
    """Return the response to a request or a job that failed; of a bug it has the type and place, never the text."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, KinfoldError):
        refusal = Refusal(422, error.text())
        refusal.problems = [LocatedProblem(problem).to_dict() | _list_choices(problem) for problem in error.problems]
        return refusal
    if isinstance(error, MemoryError):
        return Refusal(500, "there is not enough memory for this table", MEMORY_FIX)
    what = f"bug in kinfold: {type(error).__name__} {locate_bug(error)}"
    return Refusal(500, what, "please report the line above; it holds none of your data")


def _list_choices(problem: Problem) -> dict[str, Any]:
    """Return the sheets of a workbook, of which the page lets one be chosen."""
    return {"choices": list(problem.values)} if problem.key == SHEET_KEY and problem.values else {}


def format_bytes(size: int) -> str:
    """Format a limit in MB or GB.

    >>> format_bytes(2_500_000_000), format_bytes(16_000_000)
    ('2.5 GB', '16 MB')
    """
    return f"{size / GB:.3g} GB" if size >= GB else f"{size // MB:,} MB"
