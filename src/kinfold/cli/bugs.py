"""What a person sees of an exception that nobody foresaw: that it is a bug, where it is, and what to do.

The text of such an exception may quote a value of the data, so it is not shown. What is: the kind of the exception and
the last place in kinfold's own code, which is what a report needs. The exit code is 1, that of a `KinfoldError`.
Developers see the traceback with KINFOLD_TRACEBACK=1.
"""

from __future__ import annotations

import os
import platform
import traceback
from pathlib import Path

import kinfold
from kinfold.errors import KinfoldError

HOUSE = Path(kinfold.__file__).parent


def bug(error: BaseException) -> KinfoldError:
    """Return what to tell about an unexpected exception, without a word of its own."""
    if isinstance(error, RecursionError):
        what = f"something in the request or the data is nested too deeply, {_place(error)}"
        return KinfoldError(what, fix=f"flatten hierarchies and nested values; if there are none, {_report()}")
    if isinstance(error, OSError) and error.errno:
        what = f"the system refused ({os.strerror(error.errno)}), {_place(error)}"
        return KinfoldError(what, fix="see that there is room on the disk and that files and folders may be written")
    return KinfoldError(f"kinfold met a bug: {type(error).__name__} {_place(error)}", fix=_report())


def traceback_wanted() -> bool:
    """Whether a developer asked for the traceback, which may show values of the data."""
    return os.environ.get("KINFOLD_TRACEBACK", "") not in ("", "0")


def _report() -> str:
    made = f"kinfold {kinfold.__version__}, Python {platform.python_version()}, {platform.system()}"
    return f"please report the line above to the maintainers with what you ran ({made}); it holds none of your data"


def _place(error: BaseException) -> str:
    """Name the last line of kinfold's own code that was running; another's where kinfold's was not."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if HOUSE in Path(frame.filename).parents]
    if not ours:
        return "outside kinfold's own code"
    last = ours[-1]
    where = Path(last.filename).relative_to(HOUSE.parent).as_posix()
    return f"in {where}, line {last.lineno} ({last.name})"
