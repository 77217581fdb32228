"""How kernels are compiled: four decorators.

entry     called from Python: compiled for the types of examples when it is first called, and cached on disk
inner     called by kernels: compiled as part of the entry that calls it
lean      like inner, for functions that create no array, nor does what they call: references are not counted
inlined   called by one kernel: inserted before optimization, for the smallest functions

No fastmath: sums keep their order, so the same table gives the same release everywhere. An entry releases the
interpreter's lock. With the compiler off (NUMBA_DISABLE_JIT=1) all are plain Python.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeAlias

import numpy as np
from numba import config, njit, typeof, types, version_info
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher
from numpy.typing import NDArray

from kinfold.kernels import announce_compiling, machine_code

Kernel: TypeAlias = Any
# single values inside a kernel: numba infers their types
Int: TypeAlias = Any
Real: TypeAlias = Any
Flag: TypeAlias = Any
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Rows: TypeAlias = NDArray[np.int32]  # records, groups or codes

_NO_C: dict[str, Any] = {"no_cfunc_wrapper": True}  # no call through a pointer
_NO_WAY_IN: dict[str, Any] = {"no_cpython_wrapper": True}  # slow to compile, and Python never calls
_KNOWN_NUMBA = version_info.short == (0, 68)  # whose internals the classes below use; other versions compile for longer
_UNCOUNTED: dict[str, Any] = {"_nrt": False}  # no memory is allocated, no references are counted


if not config.DISABLE_JIT:  # type: ignore[attr-defined]
    machine_code()  # removes machine code older than the sources, before any kernel compiles


class Entry(CPUDispatcher):
    """A kernel that Python calls. It is compiled by its first call, or before: a run needs few entries of a module."""

    signature: tuple[Any, ...]

    def __call__(self, *arguments: Any) -> Any:
        """Call it, compiled."""
        if not self.overloads:
            self.prepare()
        return super().__call__(*arguments)

    def is_ready(self) -> bool:
        """Whether it can be called without compiling."""
        name = f"{self.py_func.__module__.rpartition('.')[2]}.{self.py_func.__name__}"
        return bool(self.overloads) or any(machine_code().glob(f"{name}-*.nbi"))

    def prepare(self) -> None:
        """Compile it, or load the machine code."""
        with global_compiler_lock, nullcontext() if self.is_ready() else announce_compiling(self.py_func.__name__):
            if not self.overloads:  # else another thread has compiled it meanwhile
                self.compile(self.signature)
                self.disable_compile()


class _Inner(CPUDispatcher):
    """A kernel that Python cannot call compiled: called from there, it runs as the plain function.

    It is compiled once, for whole numbers of 64 bits and flags: numba would compile it again for each mix of narrower
    numbers and for each constant.
    """

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how it is called with arguments of these types."""
        return super().get_call_template(tuple(map(_widened, args)), kws)

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)


def _widened(kind: Any) -> Any:
    """Return the type that replaces this one: 64 bits for signed whole numbers, and no constants."""
    plain = types.unliteral(kind)  # type: ignore[no-untyped-call]
    return types.int64 if plain in types.signed_domain else plain


class _InnerCode(JITCodeLibrary):
    """The code of an inner kernel: linked with what it calls, and optimized and translated with the entry.

    numba does both for every function, and again for each that calls it: nested functions would take twice as long.
    """

    def _optimize_final_module(self) -> None:
        """Leave this to the entry."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:  # noqa: ARG002
        """Return 0: there is no machine code."""
        return 0

    @property
    def codegen(self) -> _NoEnvironment:
        return _NoEnvironment(self._codegen)


class _NoEnvironment:
    """numba's code generator, for a part that Python never calls and that needs nothing from there."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Leave the environment unset, as in code from the cache."""


class _Flags(Flags):
    """Options of the compiler, compared by the set ones: numba compares them all, in thousands of look-ups."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and self._values == other._values

    def __hash__(self) -> int:
        return hash(frozenset(self._values))


class _EntryCompiler(Compiler):
    """Compiles an entry."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        self.state.flags = _Flags(self.state.flags)  # type: ignore[no-untyped-call]
        return super().compile_extra(function)  # type: ignore[no-untyped-call]


class _InnerCompiler(_EntryCompiler):
    """Compiles an inner kernel as a part."""

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        self.state.library = _InnerCode(self.state.targetctx.codegen(), function.__qualname__)  # type: ignore[no-untyped-call]
        return super().compile_extra(function)


def entry(*examples: object) -> Callable[[Callable[..., Any]], Kernel]:
    """Compile for the types of these examples when the kernel is first called."""
    options: dict[str, Any] = {"pipeline_class": _EntryCompiler} if _KNOWN_NUMBA else {}

    def decorate(function: Callable[..., Any]) -> Kernel:
        kernel: Kernel = njit(cache=True, nogil=True, error_model="numpy", **options, **_NO_C)(function)
        if isinstance(kernel, CPUDispatcher):
            kernel.__class__ = Entry
            vars(kernel)["signature"] = tuple(map(typeof, examples))
        return kernel

    return decorate


def inner(function: Callable[..., Any]) -> Kernel:
    """Compile as part of an entry; a call from Python, as in tests, runs the plain function."""
    return _inside(function)


def lean(function: Callable[..., Any]) -> Kernel:
    """Compile like `inner`, for functions that create no array: references to arrays are not counted.

    Counting takes longer than the work if a small function takes many arrays, and most of the compile time.
    """
    return _inside(function, **_UNCOUNTED)


def _inside(function: Callable[..., Any], **options: Any) -> Kernel:
    if _KNOWN_NUMBA:
        options["pipeline_class"] = _InnerCompiler
    compiled = njit(error_model="numpy", **options, **_NO_C, **_NO_WAY_IN)(function)
    if isinstance(compiled, CPUDispatcher):
        compiled.__class__ = _Inner
    return compiled


def inlined(function: Callable[..., Any]) -> Kernel:
    """Put into the kernel that calls it: an inner kernel is optimized again at each level, this one once."""
    return njit(inline="always", error_model="numpy")(function)
