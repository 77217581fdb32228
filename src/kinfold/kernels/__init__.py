"""Kernels: compiled loops over arrays, loaded when one is called and never before.

A module in `MODULES` compiles its entry points as it is imported, for fixed types, and numba keeps the machine code on
disk. Before a module compiles for the first time, which takes seconds, it is said, whoever imports it.

numba looks for changes in the file of an entry point only, not in the files it calls. So machine code older than
any file of this package is thrown away first.
"""

from __future__ import annotations

import gc
import importlib
import logging
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinfold.progress import silent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from kinfold.progress import Progress

# Modules with entry points, in the order in which a warm-up compiles them.
MODULES = (
    *("mdav_task", "mdav_tree", "mdav_flat", "vmdav", "approximate", "univariate", "univariate_wide", "sums"),
    *("descent", "paths", "distances", "sweeps", "pricing"),
    *("promises", "merging", "k_first", "classes", "mending", "annealing", "t_first"),
    *("rollup", "subsets", "nearness", "rebuild", "nearest"),
)

EVERYDAY = ("mdav_task", "mdav_tree", "nearest")  # what a plain release of a larger table needs

_HERE = Path(__file__).parent
_log = logging.getLogger("kinfold")


class _Herald(MetaPathFinder):
    """Says, before a kernel module is imported from anywhere, that it has to be compiled first."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """Leave the finding to others, but for a module that will compile."""
        package, _, name = fullname.rpartition(".")
        if package != __name__ or name not in MODULES or _fresh(name):
            return None
        _log.info("compiling %s for this machine; this is done once and takes some seconds", name)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Compiling(spec.loader)
        return spec


class _Compiling(Loader):
    """Loads a module that compiles without the collector of garbage, which would look through the compiler's trees."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave this to the loader."""
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and so compile: it takes a tenth less time this way."""
        collects = gc.isenabled()
        gc.disable()
        try:
            self.loader.exec_module(module)
        finally:
            if collects:
                gc.enable()


sys.meta_path.insert(0, _Herald())


def ready(name: str) -> bool:
    """Whether a kernel module can be loaded without compiling."""
    return f"{__name__}.{name}" in sys.modules or _fresh(name)


def load(name: str) -> ModuleType:
    """Return a kernel module of this package, compiled."""
    return importlib.import_module(f"{__name__}.{name}")


def warmup(progress: Progress = silent, modules: Sequence[str] = MODULES) -> None:
    """Compile these kernels now (all of them, unless some are named), so that no later call has to."""
    for done, name in enumerate(modules):
        progress(done, len(modules))
        load(name)
    progress(len(modules), len(modules))


def _fresh(name: str) -> bool:
    """Drop machine code older than the sources; tell whether some of this module is left, or none is wanted."""
    from numba import config

    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        return True
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
