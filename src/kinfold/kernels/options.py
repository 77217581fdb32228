"""How the kernels of the search are compiled: for one signature, kept on disk, without the interpreter's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

Function = TypeVar("Function", bound="Callable[..., Any]")


def kernel(signature: Any) -> Callable[[Function], Function]:
    """Compile a function that Python and other kernels call."""
    closed: dict[str, Any] = {"no_cfunc_wrapper": True}
    compiled: Callable[[Function], Function] = numba.njit(signature, cache=True, nogil=True, **closed)
    return compiled


def inner(signature: Any) -> Callable[[Function], Function]:
    """Compile a function that only other kernels call.

    Without a way in from Python, which takes long to compile: a call from there ends the process.
    """
    closed: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Callable[[Function], Function] = numba.njit(signature, cache=True, nogil=True, **closed)
    return compiled
