"""Undisturbed: a signal that comes while something must not be cut is delivered right after it.

Python runs signal handlers in the main thread alone, so elsewhere there is nothing to hold off.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

HELD = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def undisturbed(meanwhile: Callable[[], object] | None = None) -> Iterator[None]:
    """Hold off the handlers that somebody installed; `meanwhile` is called when a signal comes, to end things early."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))
        if meanwhile is not None:
            meanwhile()

    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in HELD}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, hold)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in came[:1]:
            handlers[number](number, frame)
