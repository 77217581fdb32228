"""What a person at a terminal sees of a run: errors, a progress bar, and numbers with sensible digits."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import typer
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from kinfold.cli.bugs import bug, traceback_wanted
from kinfold.cli.memory import leave, short_of_memory
from kinfold.cli.password_concealment import without_passwords
from kinfold.cli.terminal_escapes import Terminal, plain, plain_json
from kinfold.disk.journal import Journal, heard
from kinfold.errors import Cancelled, KinfoldError, plural

PATIENCE = 1.0  # seconds before a bar is worth showing
STAGES = {
    "read": "reading",
    "plan": "grouping",
    "cut": "cutting into blocks",
    "regions": "grouping region by region",
    "blocks": "grouping block by block",
    "repair": "keeping promises across blocks",
    "borders": "grouping across blocks",
    "refine": "refining",
    "apply": "writing values",
    "verify": "verifying",
    "measure": "measuring",
    "write": "writing the file",
    "report": "writing the reports",
    "check": "verifying the file",
}

PASSED_ON = (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError)  # typer's own affair

out = Terminal(highlight=False, markup=False, emoji=False, soft_wrap=True)  # names are not markup
err = Terminal(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


@contextmanager
def errors(*, show_values: bool = False) -> Iterator[None]:
    """Turn what kinfold raises into a message on standard error and its exit code, and a bug into code 1."""
    journal = Journal()
    try:
        with heard(journal):
            yield
    except KinfoldError as error:
        _fail(error, show_values=show_values)
    except KeyboardInterrupt:  # where `stopping` cannot keep the run in a process of its own
        _fail(Cancelled(f"stopped; {journal.state}"), show_values=False)
    except PASSED_ON:
        raise
    except Exception as error:
        if (told := short_of_memory(error)) is not None:
            _tell(told, show_values=False)
            leave(told.exit_code)
        if traceback_wanted():
            raise
        _fail(bug(error), show_values=False)


def _fail(error: KinfoldError, *, show_values: bool) -> NoReturn:
    _tell(error, show_values=show_values)
    raise SystemExit(error.exit_code)


def _tell(error: KinfoldError, *, show_values: bool) -> None:
    for problem in error.problems:
        what = without_passwords(replace(problem, fix="").text(show_values=show_values))
        err.print(Text.assemble(("error: ", "bold red"), plain(what)), soft_wrap=True)
        if problem.fix:
            err.print(Text(f"  fix: {problem.fix}", style="cyan"), soft_wrap=True)


class Bar:
    """A progress bar on standard error that appears only when a run takes longer than a second."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._task, self._stage = TaskID(0), ""
        self._ended = False

    def __enter__(self) -> Bar:
        logging.getLogger("kinfold").addHandler(_NOTES)
        logging.getLogger("kinfold").setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kinfold").removeHandler(_NOTES)
        self.end()

    def end(self) -> None:
        """Take the bar off the terminal: what comes now are results."""
        self._ended = True
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is."""
        if self._ended or not err.is_terminal or time.monotonic() - self._started < PATIENCE:
            return
        if self._progress is None:
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=err, transient=True)
            self._progress.start()
            self._task = self._progress.add_task("")
        if stage != self._stage:  # whose pace says nothing of the next one
            self._stage = stage
            self._progress.reset(self._task, description=STAGES.get(stage, stage))
        self._progress.update(self._task, completed=done, total=total or None)


class _Notes(logging.Handler):
    """Says on standard error what the library notes, such as that it compiles."""

    def emit(self, record: logging.LogRecord) -> None:
        err.print(Text(record.getMessage(), style="dim"))


_NOTES = _Notes()


def asking(levels: Mapping[str, int], outliers: int) -> str | None:
    """Ask on the terminal which attribute to generalize next; an empty answer ends it."""
    shown = ", ".join(f"{name} {level}" for name, level in levels.items())
    err.print(f"levels: {shown}; {plural(outliers, 'record')} with combinations that are too rare")
    while True:
        answer = err.input("generalize which attribute once more? (empty: none) ").strip()
        if not answer or answer in levels:
            return answer or None
        err.print(f"there is no attribute '{answer}'")


def print_json(value: Any) -> None:
    """Print one JSON object and nothing else."""
    sys.stdout.write(plain_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)) + "\n")


def digits(value: Any) -> str:
    """Write a number for people: thousands apart, four digits that count.

    >>> digits(12345), digits(0.0123456), digits(None)
    ('12,345', '0.01235', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 10000 else f"{value:,.0f}"
