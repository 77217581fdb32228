"""Kernels: compiled loops over arrays, loaded when one is called and never before.

`load` is the way in: a module of kernels compiles its entry points as it is loaded, and numba keeps the machine code on
disk. That takes seconds the first time, which a log message says beforehand.

numba looks for changes in the file of an entry point only, not in the files it calls. So machine code older than
any file of this package is thrown away first.
"""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinfold.progress import silent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kinfold.progress import Progress

# Modules with entry points, in the order in which a warm-up compiles them.
MODULES = (
    *("box_tree", "clustering", "mdav_tree", "mdav_flat", "vmdav", "t_first", "by_shares", "means"),
    *("univariate", "univariate_wide"),
    *("draws", "class_misses", "plain_search", "sweeps", "random_moves", "promised_search"),
    *("near_kinds", "repair", "settling"),
    *("paths", "distances", "pricing", "t_merge", "k_first"),
    *("rollup", "subsets", "statements", "statement_tree", "cell_search", "opening", "linkage"),
)

_HERE = Path(__file__).parent
_log = logging.getLogger("kinfold")
_compiling: list[str] = []  # modules that are being compiled now


def load(name: str) -> Any:
    """Return a module of this package, compiled."""
    module = f"{__name__}.{name}"
    if ready(name):
        return importlib.import_module(module)
    _log.info("compiling %s for this machine; this is done once and takes some seconds", name)
    _compiling.append(name)
    try:
        with _no_collector():
            return importlib.import_module(module)
    finally:
        _compiling.remove(name)


def is_compiling() -> bool:
    """Whether kernels are being compiled now, by any thread of this process."""
    return bool(_compiling)


def ready(name: str) -> bool:
    """Whether a module can be loaded without compiling."""
    from numba import config

    if name not in MODULES or f"{__name__}.{name}" in sys.modules or config.DISABLE_JIT:  # type: ignore[attr-defined]
        return True
    return any(machine_code().glob(f"{name}.*.nbi"))


def warmup(progress: Progress = silent, modules: Sequence[str] = MODULES) -> None:
    """Compile these kernels now (all of them, unless some are named), so that no later call has to."""
    for done, name in enumerate(modules):
        progress(done, len(modules))
        load(name)
    progress(len(modules), len(modules))


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keep the collector of garbage from looking through the compiler's trees: a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@cache
def machine_code() -> Path:
    """Return where numba keeps the machine code of this package, freed of what is older than the sources."""
    from numba import njit

    return _current(Path(str(njit(cache=True)(_current).stats.cache_path)))


def _current(place: Path) -> Path:
    """Throw away the machine code that is older than the sources."""
    changed = max(source.stat().st_mtime for source in _HERE.glob("*.py"))
    for index in place.glob("*.nbi"):
        if index.stat().st_mtime < changed:
            index.unlink(missing_ok=True)
    return place
