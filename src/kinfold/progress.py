"""Progress and cancelling, for work that can take longer than a second.

A long stage calls `progress(done, total)` from Python, between chunks of kernel work. The callback can draw a bar, or
raise `Cancelled` to stop the run.

A query, a sort or a kernel cannot always be split into chunks. `run_in_thread` therefore runs the work in a thread and
calls the callback several times a second from the calling thread, whatever the work is doing.

A search also reports the cost of its best partition and its lower bound, to every `SearchCurve` of its context. Threads
of a pool have a context of their own: what they search is a part, and their caller reports the whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial, wraps
from queue import Empty, SimpleQueue
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar
from weakref import WeakSet

Progress: TypeAlias = Callable[[int, int], None]  # steps done, steps in total
StageProgress: TypeAlias = Callable[[str, int, int], None]  # name of the stage, steps done, steps in total
EventQueue: TypeAlias = "SimpleQueue[tuple[str, int, int] | None]"
Result = TypeVar("Result")
Params = ParamSpec("Params")

CALLBACK_INTERVAL = 0.2  # seconds between two calls of a callback: often enough for Ctrl-C to feel immediate
STOP_GRACE_SECONDS = 1.0  # how long a stopped run waits for its thread before it leaves the thread behind
PROGRESS_STEPS = 1_000_000  # total of a progress that is reported as a share


SearchMarks: TypeAlias = Sequence[tuple[float, float, float | None]]  # seconds, share of the first cost, bound
MIN_CURVE_STEP = 0.001  # of the first cost: a curve has no smaller steps


@dataclass
class SearchCurve:
    """How a search lowers the cost and raises the lower bound, as shares of the first cost.

    A search that starts at a higher cost is another one: it continues where the last one ended.
    """

    changed: Callable[[SearchCurve], None] | None = None
    started: float = field(default_factory=time.monotonic)
    share: float = 1.0
    bound: float | None = None
    marks: list[tuple[float, float, float | None]] = field(default_factory=list)  # `SearchMarks`
    _first: float = 0.0
    _base: float = 1.0  # share at the first cost of this search
    _cost: float = 0.0

    def set_cost(self, cost: float) -> None:
        """Take the cost of the best partition."""
        if not self.marks or cost > self._cost * (1 + 1e-9):
            self._first, self._base = cost, self.share
        self._cost = cost
        self.share = self._base * cost / self._first if self._first else self._base
        self._add_mark()

    def set_bound(self, bound: float) -> None:
        """Take a lower bound on the cost; it never falls."""
        if self._first and bound > 0:
            self.bound = min(max(self.bound or 0.0, self._base * bound / self._first), self.share)
            self._add_mark()

    @property
    def gap(self) -> float | None:
        """The largest share of the cost by which it can exceed the optimum; None without a bound."""
        return None if self.bound is None or not self.share else 1 - self.bound / self.share

    def _add_mark(self) -> None:
        _, share, bound = self.marks[-1] if self.marks else (0.0, 2.0, None)
        if share - self.share >= MIN_CURVE_STEP or (self.bound or 0.0) - (bound or 0.0) >= MIN_CURVE_STEP:
            self.marks.append((time.monotonic() - self.started, self.share, self.bound))
            if self.changed is not None:
                self.changed(self)


_curves: ContextVar[tuple[SearchCurve, ...]] = ContextVar("curves", default=())


@contextmanager
def watch_search(changed: Callable[[SearchCurve], None] | None = None) -> Iterator[SearchCurve]:
    """Yield the curve of what is searched within the `with` block, which is its end; call `changed` at each step."""
    curve = SearchCurve(changed)
    token = _curves.set((*_curves.get(), curve))
    try:
        yield curve
    finally:
        _curves.reset(token)
        if curve.marks:
            curve.marks.append((time.monotonic() - curve.started, curve.share, curve.bound))


def report_cost(cost: float) -> None:
    """Report the cost of the best partition so far."""
    for curve in _curves.get():
        curve.set_cost(cost)


def report_bound(bound: float) -> None:
    """Report a lower bound on the cost of every partition."""
    for curve in _curves.get():
        curve.set_bound(bound)


def no_progress(done: int, total: int) -> None:
    """Ignore the progress."""


def no_stage_progress(stage: str, done: int, total: int) -> None:
    """Ignore the progress of a stage."""


def nested_progress(progress: Progress) -> Progress:
    """Return a callback that reports several consecutive parts as one: each part counts for half of the rest.

    The number of parts is unknown, so no part reaches the end. The next stage shows that this one is over.

    >>> shares = []
    >>> callback = nested_progress(lambda done, total: shares.append(done / total))
    >>> [callback(done, 2) for done in (1, 2, 1, 2)] and shares
    [0.25, 0.5, 0.625, 0.75]
    """
    start, last = 0.0, 0.0  # where this part starts in the whole, and its own share so far

    def report(done: int, total: int) -> None:
        nonlocal start, last
        share = min(1.0, done / total) if total else 0.0
        if share < last:  # the next part
            start, last = start + last * (1 - start) / 2, 0.0
        last = max(last, share)
        progress(round((start + last * (1 - start) / 2) * PROGRESS_STEPS), PROGRESS_STEPS)

    return report


class Stopped(BaseException):
    """Ends work whose caller is gone. It is not an error, and is never shown."""


class Interruptible(Protocol):
    """A connection whose queries can be interrupted and report their progress."""

    def interrupt(self) -> None:
        """End the running query, in whatever thread it runs."""

    def share(self) -> float:
        """Return the progress of the running query, 0 to 1; 0 if none runs."""

    def close_after_error(self) -> None:
        """Free what a failed run holds."""


_watches: ContextVar[tuple[WeakSet[Interruptible], ...]] = ContextVar("watches", default=())


@contextmanager
def watch_connections() -> Iterator[WeakSet[Interruptible]]:
    """Collect the connections that are opened inside the block, in any thread of the same context."""
    connections: WeakSet[Interruptible] = WeakSet()
    token = _watches.set((*_watches.get(), connections))
    try:
        yield connections
    finally:
        _watches.reset(token)


def add_to_watches(connection: Interruptible) -> None:
    """Add a new connection to every active watch."""
    for connections in _watches.get():
        connections.add(connection)


@contextmanager
def closing_on_error() -> Iterator[None]:
    """Close the connections that the block opens if it fails; use it in the thread that opens them."""
    with watch_connections() as connections:
        try:
            yield
        except BaseException:
            for connection in tuple(connections):
                connection.close_after_error()
            raise


def run_in_thread(work: Callable[[StageProgress], Result], progress: StageProgress) -> Result:
    """Run work in a thread and call `progress` with each of its reports, at least several times a second.

    An exception of the callback, or one in the calling thread (Ctrl-C), ends the work: at its next report, or by an
    interrupt of the query that it waits for, on a connection that it opened.

    >>> events = []
    >>> run_in_thread(lambda report: [report("half", i, 2) for i in (1, 2)], lambda *event: events.append(event))
    [None, None]
    >>> events[-1]
    ('half', 2, 2)
    """
    events: EventQueue = SimpleQueue()
    abandoned = threading.Event()
    outcome: Future[Result] = Future()

    def report(stage: str, done: int, total: int) -> None:
        if abandoned.is_set():
            raise Stopped
        events.put((stage, done, total))

    def run() -> None:
        try:
            outcome.set_result(work(report))
        except BaseException as error:  # raised again in the calling thread
            outcome.set_exception(error)
        finally:
            events.put(None)

    with watch_connections() as connections:
        thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
        thread.start()
    try:
        _forward_events(events, progress, connections)
    except BaseException:
        abandoned.set()
        for connection in tuple(connections):
            connection.interrupt()
        thread.join(STOP_GRACE_SECONDS)
        raise
    thread.join()
    return outcome.result()


def cancellable(run: Callable[Params, Result]) -> Callable[Params, Result]:
    """Run the pipeline in a thread if `progress` is given, so that an error raised by the callback stops it at once.

    With `ask`, the pipeline stays in the calling thread, which gives the answers. A run that fails closes its engine:
    it leaves no rows in memory or on disk, however long the exception is kept.
    """

    @wraps(run)
    def run_cancellable(*args: Params.args, **keywords: Params.kwargs) -> Result:
        def run_and_close(progress: Any) -> Result:
            with closing_on_error():
                return run(*args, **{**keywords, "progress": progress})

        callback: Any = keywords.get("progress")
        if callback is None or keywords.get("ask") is not None:
            return run_and_close(callback)
        return run_in_thread(run_and_close, callback)

    return run_cancellable


def _forward_events(events: EventQueue, progress: StageProgress, connections: WeakSet[Interruptible]) -> None:
    """Pass events to the callback until the last; between events repeat the last one, or report the query's share."""
    stage: str | None = None
    done = total = 0
    query_progress: Progress = no_progress
    while True:
        try:
            event = events.get(timeout=CALLBACK_INTERVAL)
        except Empty:
            shares = [connection.share() for connection in tuple(connections)]
            if stage is not None and done == 0 and shares:
                query_progress(round(max(shares) * PROGRESS_STEPS), PROGRESS_STEPS)
            elif stage is not None:
                progress(stage, done, total)
            continue
        if event is None:
            return
        if event[0] != stage:
            query_progress = nested_progress(partial(progress, event[0]))  # a stage may run several queries
        stage, done, total = event
        progress(stage, done, total)
