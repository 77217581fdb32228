"""Kernels as the plain Python they are written in: what a coverage run and a second opinion look at."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

PLAIN = os.environ.get("NUMBA_DISABLE_JIT") == "1"  # kernels run as plain Python, a hundred times slower


def uncompiled(kernel: Any) -> Callable[..., Any]:
    """The function behind a kernel; with the compiler off (NUMBA_DISABLE_JIT) the kernel is that function."""
    return getattr(kernel, "py_func", kernel)
