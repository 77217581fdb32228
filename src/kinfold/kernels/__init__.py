"""Kernels: compiled loops over arrays, loaded when one is called and never before.

A module in `MODULES` compiles its entry points as it is imported, for fixed types, and numba keeps the machine code on
disk. `load` is the way in: it says so before a module compiles for the first time, which takes seconds.

numba looks for changes in the file of an entry point only, not in the files it calls. So machine code older than
any file of this package is thrown away first.
"""

from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from kinfold.progress import silent

if TYPE_CHECKING:
    from types import ModuleType

    from kinfold.progress import Progress

MODULES = ("mdav_task", "mdav_tree", "mdav_flat")

_HERE = Path(__file__).parent
_log = logging.getLogger("kinfold")


def load(name: str) -> ModuleType:
    """Return a kernel module of this package, compiled."""
    module = f"{__name__}.{name}"
    if module not in sys.modules and not _fresh(name):
        _log.info("compiling %s for this machine; this is done once and takes some seconds", name)
    return importlib.import_module(module)


def warmup(progress: Progress = silent) -> None:
    """Compile every kernel now, so that no later call has to."""
    for done, name in enumerate(MODULES):
        progress(done, len(MODULES))
        load(name)
    progress(len(MODULES), len(MODULES))


def _fresh(name: str) -> bool:
    """Drop machine code older than the sources; tell whether some of this module is left."""
    changed = max(source.stat().st_mtime for source in _HERE.glob("*.py"))
    kept = False
    for index in _cache().glob(f"{name}.*.nbi"):
        if index.stat().st_mtime < changed:
            index.unlink(missing_ok=True)
        else:
            kept = True
    return kept


def _cache() -> Path:
    """Where numba keeps the machine code of this package."""
    from kinfold.kernels.compiled import inner

    return Path(inner(_cache, cache=True).stats.cache_path)
