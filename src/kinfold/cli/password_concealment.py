"""Passwords in addresses: typed on a command line they are there for everybody to see, so they are overwritten at once.

`ps` shows what the memory of a process holds where its arguments were; Linux says where that is. What is on the screen
goes through `without_passwords`: no message has a password in it, and this is the last door where one would be seen.
Better not to type one: PGPASSWORD and ~/.pgpass are read where an address has none.
"""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

# To the last @: nobody knows where a password ends that has one in it.
SECRET = re.compile(rb"\b[A-Za-z][A-Za-z0-9+.-]+:/{1,3}[^\s:/@\0]*:([^\0]*)@|password=([^&\s\0]*)")
START = 48  # of the fields of a process's state: where its arguments begin
STARS = b"*"


def conceal_arguments() -> None:
    """Overwrite the passwords among the arguments of this process; Python has its own copy of them."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, ValueError, IndexError):  # no such files here: nothing to be done
        shown = Path("/proc/self/cmdline").read_bytes()
        state = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
        start = int(state[START - 3])
        for begin, end in _places(shown):
            _overwrite(start + begin, end - begin)


def without_passwords(text: str) -> str:
    """Return a text in which no address has a password.

    >>> without_passwords("no such file: 'postgresql:/ada:x@y@host/db'"), without_passwords("see a:b")
    ("no such file: 'postgresql:/ada:***@host/db'", 'see a:b')
    """
    told = text.encode("utf-8", "surrogateescape")
    for begin, end in reversed(_places(told)):
        told = told[:begin] + STARS * 3 + told[end:]
    return told.decode("utf-8", "surrogateescape")


def _places(text: bytes) -> list[tuple[int, int]]:
    groups = [(found, 1 if found[1] is not None else 2) for found in SECRET.finditer(text)]
    return [found.span(group) for found, group in groups]


def _overwrite(place: int, length: int) -> None:
    import ctypes

    ctypes.memmove(place, STARS * length, length)
