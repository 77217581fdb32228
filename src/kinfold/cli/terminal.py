r"""Everything that goes to the terminal: consoles, error messages, bug reports, the progress bar, numbers.

Names of columns and files, categories and notes can contain anything: escape sequences, line breaks, marks that change
the direction of text. Characters that are not printable are written as escapes such as \x1b.

The text of an unexpected exception can quote a value of the data, so it is not shown. The message has the type of the
exception and the last line of kinfold's own code. KINFOLD_TRACEBACK=1 shows the traceback to developers.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from kinfold import __version__
from kinfold.cli.process import exit_without_memory, explain_memory_error, mask_passwords
from kinfold.disk.folders import Journal, record_to
from kinfold.errors import Cancelled, KinfoldError, locate_bug, plural
from kinfold.progress import SearchCurve, watch_search

BAR_DELAY_SECONDS = 1.0  # a shorter run shows no bar
STAGE_LABELS = {
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
TYPER_ERRORS = (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError)  # typer handles these


def escape_unprintable(text: str) -> str:
    r"""Return a text as one printable line.

    >>> escape_unprintable("a\x1b[2Jb\n\u202ec"), escape_unprintable("Zoë 7")
    ('a\\x1b[2Jb\\n\\u202ec', 'Zoë 7')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escape_json(text: str) -> str:
    r"""Escape unprintable characters of a JSON text; all of them are inside strings.

    >>> escape_json('{"\u202ea": 1}')
    '{"\\u202ea": 1}'
    """
    if text.replace("\n", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


class Terminal(Console):
    """A console that escapes unprintable characters: in what it is given, and in what tables and bars render."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; a text is one line."""
        super().print(*map(_escape_object, objects), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable; line breaks are part of the layout."""
        for piece in super().render(renderable, options):
            lines = map(escape_unprintable, piece.text.split("\n"))
            yield piece if piece.control else Segment("\n".join(lines), piece.style)


def _escape_object(value: Any) -> Any:
    if isinstance(value, str):
        return escape_unprintable(value)
    if isinstance(value, Text) and not value.plain.isprintable():
        return Text(escape_unprintable(value.plain), style=value.style)
    return value


out = Terminal(highlight=False, markup=False, emoji=False, soft_wrap=True)  # names are not markup
err = Terminal(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


@contextmanager
def _escape_usage_errors() -> Iterator[None]:
    """Quote arguments in usage errors with escapes and without passwords."""
    try:
        yield
    except Exception as error:
        if hasattr(error, "format_message"):  # a usage error of typer
            message = escape_unprintable(mask_passwords(error.format_message()))
            error.format_message = lambda: message
        raise


class CommandGroup(TyperGroup):
    """The commands, with safe usage errors."""

    make_context = _escape_usage_errors()(TyperGroup.make_context)
    resolve_command = _escape_usage_errors()(TyperGroup.resolve_command)


class Command(TyperCommand):
    """A command with safe usage errors."""

    make_context = _escape_usage_errors()(TyperCommand.make_context)


@contextmanager
def report_errors(*, show_values: bool = False) -> Iterator[None]:
    """Print errors of kinfold on standard error and exit with their code; a bug exits with 1."""
    journal = Journal()
    try:
        with record_to(journal):
            yield
    except KinfoldError as error:
        _fail(error, show_values=show_values)
    except KeyboardInterrupt:  # only where the work does not run in a child process
        _fail(Cancelled(f"stopped; {journal.state}"))
    except TYPER_ERRORS:
        raise
    except Exception as error:
        if (shortage := explain_memory_error(error)) is not None:
            _print_error(shortage)
            exit_without_memory(shortage.exit_code)
        if os.environ.get("KINFOLD_TRACEBACK", "") not in ("", "0"):
            raise
        _fail(describe_bug(error))


def describe_bug(error: BaseException) -> KinfoldError:
    """Return the error to report for an unexpected exception, without the exception's text."""
    place = locate_bug(error)
    version = f"kinfold {__version__}, Python {platform.python_version()}, {platform.system()}"
    report = (
        f"please report the line above to the maintainers with what you ran ({version}); it holds none of your data"
    )
    if isinstance(error, RecursionError):
        what = f"the request or the data is nested too deeply, {place}"
        return KinfoldError(what, fix=f"flatten hierarchies and nested values; if there are none, {report}")
    if isinstance(error, OSError) and error.errno:
        what = f"the operating system refused ({os.strerror(error.errno)}), {place}"
        return KinfoldError(what, fix="check the free disk space and the permissions of files and folders")
    return KinfoldError(f"bug in kinfold: {type(error).__name__} {place}", fix=report)


def _fail(error: KinfoldError, *, show_values: bool = False) -> NoReturn:
    _print_error(error, show_values=show_values)
    raise SystemExit(error.exit_code)


def _print_error(error: KinfoldError, *, show_values: bool = False) -> None:
    for problem in error.problems:
        what = mask_passwords(replace(problem, fix="", details=()).text(show_values=show_values))
        err.print(Text.assemble(("error: ", "bold red"), escape_unprintable(what)))
        for line in problem.details:
            err.print(Text(f"  {escape_unprintable(line)}"))
        if problem.fix:
            err.print(Text(f"  fix: {problem.fix}", style="cyan"))


class ProgressBar:
    """A progress bar on standard error; it appears after a second, and also prints the library's log.

    While a search runs, the bar has its loss as a share of the first, and the gap that is proved so far.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._progress: Progress | None = None
        self._task, self._stage = TaskID(0), ""
        self._ended = False
        self._watch = watch_search()

    def __enter__(self) -> ProgressBar:
        logging.getLogger("kinfold").addHandler(_LOG_PRINTER)
        logging.getLogger("kinfold").setLevel(logging.INFO)
        self._curve = self._watch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("kinfold").removeHandler(_LOG_PRINTER)
        self._watch.__exit__(None, None, None)
        self.end()

    def end(self) -> None:
        """Remove the bar, so that results can be printed."""
        self._ended = True
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show the progress of a stage."""
        if self._ended or not err.is_terminal or time.monotonic() - self._started < BAR_DELAY_SECONDS:
            return
        if self._progress is None:
            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._progress = Progress(*columns, console=err, transient=True)
            self._progress.start()
            self._task = self._progress.add_task("")
        if stage != self._stage:  # each stage has its own speed
            self._stage = stage
            self._progress.reset(self._task)
        search = describe_search(self._curve) if stage.startswith(("plan", "refine")) else ""
        label = STAGE_LABELS.get(stage, stage) + search
        self._progress.update(self._task, description=label, completed=done, total=total or None)


def describe_search(curve: SearchCurve) -> str:
    """Return the loss of a search and the gap to the least possible, as they are now.

    >>> curve = SearchCurve()
    >>> curve.set_cost(50.0)
    >>> describe_search(curve)
    ''
    >>> curve.set_cost(40.0)
    >>> curve.set_bound(38.0)
    >>> describe_search(curve)
    ', loss 80.0% of the first, gap 5.0%'
    """
    if len(curve.marks) < 2:
        return ""
    return f", loss {curve.share:.1%} of the first" + ("" if curve.gap is None else f", gap {curve.gap:.1%}")


class _LogPrinter(logging.Handler):
    """Prints the library's log on standard error, such as that it compiles."""

    def emit(self, record: logging.LogRecord) -> None:
        err.print(Text(record.getMessage(), style="dim"))


_LOG_PRINTER = _LogPrinter()


def ask_for_attribute(levels: Mapping[str, int], outliers: int) -> str | None:
    """Ask which attribute to generalize next; an empty answer means none."""
    current = ", ".join(f"{name} {level}" for name, level in levels.items())
    err.print(f"levels: {current}; {plural(outliers, 'record')} with combinations that are too rare")
    while True:
        answer = err.input("generalize which attribute by one level? (empty: none) ").strip()
        if not answer or answer in levels:
            return answer or None
        err.print(f"there is no attribute '{answer}'")


def print_json(value: Any) -> None:
    """Print one JSON object and nothing else."""
    sys.stdout.write(escape_json(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)) + "\n")


def format_number(value: Any) -> str:
    """Format a number with thousands separators and four significant digits.

    >>> format_number(12345), format_number(0.0123456), format_number(None)
    ('12,345', '0.01235', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 10000 else f"{value:,.0f}"
