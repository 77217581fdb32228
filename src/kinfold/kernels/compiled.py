"""The two ways a kernel is compiled: an entry point for fixed types, and a part of one.

No fastmath: sums keep their order, so the same table gives the same release everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from numba import njit, typeof, types

if TYPE_CHECKING:
    from collections.abc import Callable

Kernel: TypeAlias = Any
# single values inside a kernel: numba infers what they are
Int: TypeAlias = Any
Real: TypeAlias = Any
Flag: TypeAlias = Any


def entry(*examples: object) -> Callable[[Callable[..., Any]], Kernel]:
    """Compile as the module is imported, for the types of these examples; the machine code is kept on disk."""
    signature = types.none(*[typeof(example) for example in examples])  # type: ignore[no-untyped-call]
    closed: dict[str, Any] = {"no_cfunc_wrapper": True}
    decorator: Callable[[Callable[..., Any]], Kernel] = njit([signature], cache=True, error_model="numpy", **closed)
    return decorator


def inner(function: Callable[..., Any], *, cache: bool = False) -> Kernel:
    """Compile as part of an entry point that calls it.

    Without a way in from Python, which takes long to compile: a call from there ends the process.
    """
    closed: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(cache=cache, error_model="numpy", **closed)(function)


def part(function: Callable[..., Any]) -> Kernel:
    """Compile into the one kernel that calls it: a compiled call is optimized again at each level, a part once."""
    return njit(inline="always", error_model="numpy")(function)
