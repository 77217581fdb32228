"""Progress and cancelling, for anything that may take longer than a second.

A long stage calls `progress(done, total)` now and then, from Python, between chunks of kernel work. Whoever
listens may draw a bar, or raise `Cancelled` to stop the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """Listen to nothing."""
