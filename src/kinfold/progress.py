"""Progress and cancelling, for anything that may take longer than a second.

A long stage calls `progress(done, total)` now and then, from Python, between chunks of kernel work. Whoever
listens may draw a bar, or raise `Cancelled` to stop the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = Callable[[int, int], None]

ONE_WAY = 1_000_000  # the whole of a way of several parts


_watchers: list[Callable[[float], None]] = []


@contextmanager
def watching(watcher: Callable[[float], None]) -> Iterator[None]:
    """Let somebody hear, for as long as the `with` block lasts, what a search's best costs, whenever it gets less."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def tell_cost(cost: float) -> None:
    """Tell everybody who watches what the best costs now: nobody, but in the studio."""
    for watcher in tuple(_watchers):
        watcher(cost)


def silent(done: int, total: int) -> None:
    """Listen to nothing."""


def onward(progress: Progress) -> Progress:
    """Return a listener of several parts, one after the other, that hears of one way: a part counts for half the rest.

    How many parts there will be is not known before, so none reaches the end; the next stage says that it is over.

    >>> heard = []
    >>> tell = onward(lambda done, total: heard.append(done / total))
    >>> [tell(done, 2) for done in (1, 2, 1, 2)] and heard
    [0.25, 0.5, 0.625, 0.75]
    """
    begun, last = 0.0, 0.0  # where this part began, and how far it is

    def hear(done: int, total: int) -> None:
        nonlocal begun, last
        share = min(1.0, done / total) if total else 0.0
        if share < last:  # another part
            begun, last = begun + last * (1 - begun) / 2, 0.0
        last = max(last, share)
        progress(round((begun + last * (1 - begun) / 2) * ONE_WAY), ONE_WAY)

    return hear
