"""Kernels: compiled loops over arrays, loaded when one is called.

Get a module of kernels with `load`: it compiles the module's entry points, and numba caches the machine code on disk.
That takes seconds the first time; a log message says so before.

numba looks for changes in the file of an entry point only, not in the files it calls. So machine code older than any
file of this package is removed first.
"""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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
_compiling: list[str] = []  # modules being compiled now


def load(name: str) -> Any:
    """Return a module of this package, compiled."""
    module = f"{__name__}.{name}"
    if is_ready(name):
        return importlib.import_module(module)
    _log.info("compiling %s for this machine; this is done once and takes some seconds", name)
    _compiling.append(name)
    try:
        with _without_collector():
            return importlib.import_module(module)
    finally:
        _compiling.remove(name)


def is_compiling() -> bool:
    """Whether any thread of this process compiles kernels now."""
    return bool(_compiling)


def is_ready(name: str) -> bool:
    """Whether a module can be loaded without compiling."""
    if name not in MODULES or f"{__name__}.{name}" in sys.modules:
        return True
    from numba import config

    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return True
    return any(machine_code().glob(f"{name}.*.nbi"))


def warmup(progress: Progress = no_progress, modules: Sequence[str] = MODULES) -> None:
    """Compile these kernels now (by default all), so that no later call has to."""
    for done, name in enumerate(modules):
        progress(done, len(modules))
        load(name)
    progress(len(modules), len(modules))


@contextmanager
def _without_collector() -> Iterator[None]:
    """Switch the garbage collector off while numba compiles: it would take a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@cache
def machine_code() -> Path:
    """Return the folder of numba's machine code for this package, without files older than the sources."""
    from numba import njit

    return _remove_stale(Path(str(njit(cache=True)(_remove_stale).stats.cache_path)))


def _remove_stale(place: Path) -> Path:
    """Remove the machine code that is older than the sources."""
    changed = max(source.stat().st_mtime for source in _HERE.glob("*.py"))
    for index in place.glob("*.nbi"):
        if index.stat().st_mtime < changed:
            index.unlink(missing_ok=True)
    return place
