"""Instances of the database: one of its own for a run, and one that the small tables of a process share.

To start an instance takes longer than to ask all questions about a small table. In the shared one every run has a
database of its own, in memory and under a name of its own, which goes when the run closes it. Its only thread is that
of whoever asks, nothing spills, and a run can be stopped without the others. What fails inside it, beyond a query,
ends it for those who come after: they start another.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from threading import RLock
from typing import Any, TypeAlias

import duckdb

CLOSED = {  # nothing is fetched, and no variable of a caller is taken for a table
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
}
BROKEN = (duckdb.FatalException, duckdb.InternalException)  # after these an instance is of no use
SETTINGS = """
SET GLOBAL TimeZone = 'UTC';  -- a day is the same day on every machine
PRAGMA disable_checkpoint_on_shutdown;  -- nobody reads its file again
SET allowed_configs = ['memory_limit'];  -- a default limit is raised where it does not suffice
SET lock_configuration = true
"""
ASKED = "SET enable_progress_bar_print = false; SET enable_progress_bar = true;"  # how far a query is; nothing is drawn

Opened: TypeAlias = tuple[duckdb.DuckDBPyConnection, Callable[[], None]]  # and what closes it

_numbers = count()
_starting = RLock()  # what nobody holds any more may be closed at any moment, in this thread too
_shared: list[duckdb.DuckDBPyConnection] = []  # the instance of small tables, once there is one


def start(place: str, settings: dict[str, Any]) -> Opened:
    """Start an instance for one run."""
    inside = duckdb.connect(place, config={**CLOSED, **settings})
    inside.execute(ASKED + SETTINGS)
    return inside, inside.close


def share() -> Opened:
    """Open a database in the instance that small tables share."""
    name = f"run{next(_numbers)}"
    with _starting:
        if not _shared:
            _shared.append(start(":memory:", {"threads": "1", "temp_directory": ""})[0])
        instance = _shared[0]
        inside = instance.cursor()
    inside.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
    return inside, partial(_leave, instance, inside, name)


def forget(error: duckdb.Error) -> None:
    """Let the next small table start an instance where an error may have ended the shared one."""
    if isinstance(error, BROKEN):
        with _starting:
            _shared.clear()


def _leave(instance: duckdb.DuckDBPyConnection, inside: duckdb.DuckDBPyConnection, name: str) -> None:
    inside.close()
    with _starting, suppress(*BROKEN):  # of an instance that ended before
        instance.cursor().execute(f"DETACH DATABASE IF EXISTS {name}")
