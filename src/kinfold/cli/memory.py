"""Want of memory has several guises: told as what it is, wherever it shows first.

What cannot be caught here, a library that ends the process by itself, is told by `stopping`.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from kinfold.errors import Unreachable

SIGNS = ("failed to map segment", "cannot allocate memory", "can't start new thread")  # of a library, of a thread
ROOM = 256 << 20  # more than a step of any library takes at once, less than a run needs
LINEAR_ALGEBRA = "scipy.linalg"  # with it comes OpenBLAS, which without memory tries for ever to get some
ROOM_A_CORE = 32 << 20  # that OpenBLAS takes as it is loaded

_missed: list[str] = []  # where memory was short and nobody could be told
_ways_out: list[Callable[[int], NoReturn]] = []  # of a run in a process of its own


def listen(leave: Callable[[int], NoReturn]) -> None:
    """Hear of memory that is short where no exception can leave: in a callback, or while something is cleared away.

    `leave` ends the process at once: without memory the interpreter may lose the exception that should end it.
    """
    _ways_out.append(leave)
    sys.meta_path.insert(0, _RoomFirst())
    before = sys.unraisablehook

    def heard(met: Any) -> None:
        if issubclass(met.exc_type, MemoryError):
            _missed.append("a callback")
        else:
            before(met)

    sys.unraisablehook = heard


def short_of_memory(error: BaseException) -> Unreachable | None:
    """Return what to tell if an exception means that there is not enough memory.

    So does one that came of another that did, and one that nobody foresaw after memory was short in a callback.
    """
    unexplained = isinstance(error, SystemError) and _no_room(ROOM)  # a library gave up and did not say why
    missed = _missed and not isinstance(error, SystemExit | KeyboardInterrupt)
    if missed or unexplained or any(map(_is_sign, _led_to(error))):
        return Unreachable(
            "there is not enough memory for this table", fix="give it more memory, or fewer records at a time"
        )
    return None


def leave(code: int) -> NoReturn:
    """End a run that has told of the want of memory."""
    for way_out in _ways_out:
        way_out(code)
    raise SystemExit(code)


class _RoomFirst:
    """Stands before the finders of modules: lets nobody load what would hang for want of memory."""

    def find_spec(self, name: str, *_: object) -> None:
        """Find nothing, but look whether there is room."""
        if name == LINEAR_ALGEBRA and _no_room(ROOM + ROOM_A_CORE * (os.cpu_count() or 1)):
            raise MemoryError


def _no_room(size: int) -> bool:
    """Whether the system refuses as much memory as a library may ask for."""
    try:
        mmap.mmap(-1, size).close()
    except OSError:
        return True
    return False


def _is_sign(error: BaseException) -> bool:
    said = str(error).lower() if isinstance(error, ImportError | RuntimeError) else ""
    refused = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or refused or any(sign in said for sign in SIGNS)


def _led_to(error: BaseException) -> Iterator[BaseException]:
    """The exception and those that it came of."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
