"""Progress and cancelling, for anything that may take longer than a second.

A long stage calls `progress(done, total)` now and then, from Python, between chunks of kernel work. Whoever
listens may draw a bar, or raise `Cancelled` to stop the run.

Not everything can be cut into chunks: a query, a sort, a kernel that ends when it ends. So work that somebody listens
to is done in a thread of its own (`attended`), and the listener is asked several times a second, whatever it is doing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeAlias, TypeVar

Progress: TypeAlias = Callable[[int, int], None]
Stage: TypeAlias = Callable[[str, int, int], None]  # a stage's name, how much is done, of how much
Words: TypeAlias = "SimpleQueue[tuple[str, int, int] | None]"
Result = TypeVar("Result")

OFTEN = 0.2  # seconds between two words to a listener
GRACE = 1.0  # seconds that work which was stopped has to end by itself; then nobody waits for it any longer

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


class Stopped(BaseException):
    """Work whose listener has left: not an error of any kind, and nobody hears of it."""


class Asked(Protocol):
    """What else may be asked about work, or of it."""

    def interrupt(self) -> None:
        """End what the work waits for."""

    def share(self) -> float:
        """Return how far that is, 0 to 1."""


def attended(work: Callable[[Stage], Result], listen: Stage, asked: Asked | None = None) -> Result:
    """Do work in a thread of its own; the listener hears all that it tells, and at least a few times a second.

    What the listener raises, and what comes to the calling thread meanwhile (Ctrl-C), ends the work: at its next word,
    or by an interrupt of what it is waiting for.

    >>> heard = []
    >>> attended(lambda tell: [tell("half", done, 2) for done in (1, 2)], lambda *word: heard.append(word))
    [None, None]
    >>> heard[-1]
    ('half', 2, 2)
    """
    attended_work = AttendedWork(work)
    thread = threading.Thread(target=copy_context().run, args=(attended_work.run,), daemon=True)
    thread.start()
    try:
        _hear(attended_work.words, listen, asked)
    except BaseException:
        attended_work.left.set()
        if asked is not None:
            asked.interrupt()
        thread.join(GRACE)
        raise
    thread.join()
    if attended_work.raised:
        raise attended_work.raised.pop()
    return attended_work.made.pop()


class AttendedWork(Generic[Result]):
    """Work for another thread: what it tells, whether anybody still listens, and what came of it."""

    def __init__(self, work: Callable[[Stage], Result]) -> None:
        self.work = work
        self.words: Words = SimpleQueue()
        self.left = threading.Event()
        self.made: list[Result] = []
        self.raised: list[BaseException] = []

    def tell(self, stage: str, done: int, total: int) -> None:
        """Pass a word on; once nobody listens any longer, end the work."""
        if self.left.is_set():
            raise Stopped
        self.words.put((stage, done, total))

    def run(self) -> None:
        """Do it."""
        try:
            self.made.append(self.work(self.tell))
        except BaseException as error:  # raised again where it is waited for
            self.raised.append(error)
        finally:
            self.words.put(None)


def _hear(words: Words, listen: Stage, asked: Asked | None) -> None:
    """Pass words on until there are no more; while none come, the last one again, or how far what it waits for is."""
    stage: str | None = None
    done = total = 0
    further: Progress = silent
    while True:
        try:
            word = words.get(timeout=OFTEN)
        except Empty:
            if stage is not None and done == 0 and asked is not None:
                further(round(asked.share() * ONE_WAY), ONE_WAY)
            elif stage is not None:
                listen(stage, done, total)
            continue
        if word is None:
            return
        if word[0] != stage:
            further = onward(partial(listen, word[0]))  # it may wait for several things, one after the other
        stage, done, total = word
        listen(stage, done, total)
