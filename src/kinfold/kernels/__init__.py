"""Kernels: compiled loops over arrays, loaded when one is called.

Get a module of kernels with `load`. The first call of an entry point compiles it, and numba caches the machine code on
disk. That takes seconds the first time; a log message says so before.

numba looks for changes in the file of an entry point only, not in the files it calls. So machine code older than any
file of this package is removed first.
"""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from kinfold.progress import Progress, no_progress

# Modules with entry points, in the order in which a warm-up compiles them.
MODULES = (
    *("box_tree", "clustering", "mdav", "vmdav", "t_first", "geometry", "univariate"),
    *("draws", "promises", "search", "promised_search", "repair"),
    *("pricing", "t_merge", "k_first"),
    *("rollup", "statements", "cell_search", "opening", "linkage", "special_uniques"),
)

_HERE = Path(__file__).parent
_log = logging.getLogger("kinfold")
_compiling: list[str] = []  # kernels being compiled now


@cache
def load(name: str) -> Any:
    """Return a module of this package; its entry points are compiled when they are called."""
    return importlib.import_module(f"{__name__}.{name}")


def prepare(name: str) -> Any:
    """Return a module of this package with all entry points compiled, so that no later call waits for the compiler."""
    module = load(name)
    for kernel in _list_entries(name):
        kernel.prepare()
    return module


def is_compiling() -> bool:
    """Whether any thread of this process compiles kernels now."""
    return bool(_compiling)


def is_ready(name: str) -> bool:
    """Whether all entry points of a module are compiled."""
    return all(kernel.is_ready() for kernel in _list_entries(name))


def is_loaded(name: str) -> bool:
    """Whether this process has called an entry point of a module before. Does not load the compiler."""
    return f"{__name__}.{name}" in sys.modules and any(kernel.overloads for kernel in _list_entries(name))


def _list_entries(name: str) -> list[Any]:
    """Return the entry points of a module; none with the compiler off."""
    from kinfold.kernels.compiling import Entry

    return [each for each in vars(load(name)).values() if isinstance(each, Entry)]


def warmup(progress: Progress = no_progress, modules: Sequence[str] = MODULES) -> None:
    """Compile these kernels now (by default all), so that no later call has to."""
    for done, name in enumerate(modules):
        progress(done, len(modules))
        prepare(name)
    progress(len(modules), len(modules))


@contextmanager
def announce_compiling(name: str) -> Iterator[None]:
    """Say that a kernel is being compiled, with the garbage collector off: it would take a tenth of the time."""
    _announce_once()
    _log.debug("compiling %s", name)
    collects = gc.isenabled()
    _compiling.append(name)
    gc.disable()
    try:
        yield
    finally:
        _compiling.remove(name)
        if collects:
            gc.enable()


@cache
def _announce_once() -> None:
    _log.info("compiling for this machine; this is done once and takes some seconds")


@cache
def machine_code() -> Path:
    """Return the folder of numba's machine code for this package, without files older than the sources."""
    from numba import njit

    return _remove_stale(Path(str(njit(cache=True)(_remove_stale).stats.cache_path)))


def _remove_stale(place: Path) -> Path:
    """Remove the machine code that is older than the sources."""
    changed = max(source.stat().st_mtime for source in _HERE.glob("*.py"))
    for index in place.glob("*.nbi"):
        with suppress(FileNotFoundError):  # another process may remove it as well
            if index.stat().st_mtime < changed:
                index.unlink()
    return place
