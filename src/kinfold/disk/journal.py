"""The journal: what a run has on disk at this moment, so that the process that ends the run can clean up.

    made PATH     a temporary folder will be created; remove it with its contents
    gone PATH     it is removed
    opened PATH   a parent folder of the release will be created; remove it if it stays empty
    moving PATH   folders are being exchanged; do not end the run now
    moved PATH    the exchange is done
    kept TEXT     something has its final name; TEXT describes it
    ended         the run ends normally or with an error

The command registers a callback in a process of its own. A library user does not need one.

`defer_signals` delays signals while something must not be interrupted. Python runs signal handlers only in the main
thread, so other threads have nothing to delay.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, TypeAlias

JournalCallback: TypeAlias = Callable[[str, str], None]

_callbacks: list[JournalCallback] = []


def record_event(event: str, what: object) -> None:
    """Pass an event to every callback."""
    for callback in tuple(_callbacks):
        callback(event, str(what))


@contextmanager
def record_to(callback: JournalCallback) -> Iterator[None]:
    """Pass events to a callback within the `with` block."""
    _callbacks.append(callback)
    try:
        yield
    finally:
        _callbacks.remove(callback)


@dataclass(eq=False)  # two journals with equal contents are different callbacks
class Journal:
    """A callback that keeps the current state."""

    folders: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    moving: str = ""
    kept: str = ""
    ended: bool = False

    def __call__(self, event: str, what: str) -> None:
        """Update the state by an event."""
        if event in ("made", "opened"):
            (self.folders if event == "made" else self.opened).append(what)
        elif event == "gone":
            self.folders = [path for path in self.folders if path != what]
        elif event in ("moving", "moved"):
            self.moving = what if event == "moving" else ""
        elif event == "kept":
            self.kept = what
        elif event == "ended":
            self.ended = True

    @property
    def state(self) -> str:
        """Describe the disk if the run ends now."""
        if self.moving:  # only if something other than the command ended the run
            return f"the release at '{self.moving}' is the old or the new one; kinfold verify tells which"
        return self.kept or "nothing was changed"


DEFERRED_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


@contextmanager
def defer_signals(on_signal: Callable[[], object] | None = None) -> Iterator[None]:
    """Call signal handlers only after the `with` block; `on_signal` is called at once, to end the block early."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[tuple[int, FrameType | None]] = []

    def defer(number: int, frame: FrameType | None) -> None:
        pending.append((number, frame))
        if on_signal is not None:
            on_signal()

    handlers: dict[int, Any] = {number: signal.getsignal(number) for number in DEFERRED_SIGNALS}
    handlers = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in handlers:
            signal.signal(number, defer)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in pending[:1]:
            handlers[number](number, frame)
