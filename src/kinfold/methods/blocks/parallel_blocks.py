"""The workshop: one function over many blocks, side by side, the same whatever the number of threads or machines.

Blocks share no record, and what becomes of one depends on nothing but the block. Small blocks are taken together, as a
bundle: the unit of work, and of what is kept for a later run. Where they are worked on is the engine's affair
(`split`). In threads the listener is told by the calling one alone, a few times a second; what it raises stops every
thread at its next report.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from kinfold.errors import Cancelled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.blocks.saved_stages import Shelf
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels

    Rows = NDArray[np.intp]

Made = TypeVar("Made")

BUNDLE = 50_000  # records, about
OFTEN = 0.1  # seconds between two reports


@dataclass(frozen=True, eq=False)
class Labelled:
    """The classes of some records, and how many of them missed a promise at first."""

    labels: Labels
    mended: int = 0


Parcel: TypeAlias = "Callable[[Progress], Labelled]"  # all that is needed to make the classes of one block
Work: TypeAlias = "Callable[[Rows], Parcel]"
Part: TypeAlias = "Callable[[int, int], Progress]"  # who listens to some records, after so many others


@dataclass(frozen=True, eq=False)
class Bundle:
    """Some blocks, packed: what is done to them is done wherever it is called."""

    parcels: Sequence[Parcel]
    sizes: Sequence[int]

    def __call__(self, part: Part) -> list[Labelled]:
        """Return the classes of each block."""
        found: list[Labelled] = []
        for parcel, size in zip(self.parcels, self.sizes, strict=True):
            found.append(parcel(part(sum(len(each.labels) for each in found), size)))
        return found


@dataclass(frozen=True, eq=False)
class Orders:
    """What is asked of whoever works on bundles: those that are done already, the others packed, a place for each."""

    many: int
    known: Callable[[int], list[Labelled] | None]
    bundle: Callable[[int], Bundle]
    keep: Callable[[int, list[Labelled]], list[Labelled]]

    def made(self, at: int, part: Part) -> list[Labelled]:
        """Return the classes of a bundle, here."""
        found = self.known(at)
        return self.keep(at, self.bundle(at)(part)) if found is None else found


Split: TypeAlias = "Callable[[Orders, Hall], list[list[Labelled]]]"


def in_threads(orders: Orders, hall: Hall) -> list[list[Labelled]]:
    """Work on bundles in this process."""
    return hall.run(lambda at: orders.made(at, partial(hall.part, at)))


_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)


@contextmanager
def at_most(many: int | None) -> Iterator[None]:
    """Let so many blocks be worked on at a time for the length of a `with` block; None: as there are cores."""
    before = _allowed.set(many)
    try:
        yield
    finally:
        _allowed.reset(before)


def threads() -> int:
    """Return how many blocks are worked on at a time: as many as somebody allows, else one for each core."""
    return _allowed.get() or cores()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def labelled(
    blocks: Sequence[Rows], work: Work, progress: Progress, shelf: Shelf, split: Split = in_threads
) -> list[Labelled]:
    """Return what the work makes of each block; what the shelf holds is not done again."""
    bundles = bundled([len(block) for block in blocks])
    sizes = [[len(blocks[i]) for i in bundle] for bundle in bundles]

    def known(at: int) -> list[Labelled] | None:
        if (found := shelf.get(f"blocks-{at}")) is None:
            return None
        each = np.split(found["labels"].astype(np.int32), np.cumsum(sizes[at])[:-1])
        return [Labelled(*both) for both in zip(each, found["mended"].tolist(), strict=True)]

    def bundle(at: int) -> Bundle:
        return Bundle([work(blocks[i]) for i in bundles[at]], sizes[at])

    def keep(at: int, found: list[Labelled]) -> list[Labelled]:
        labels = np.concatenate([part.labels for part in found])
        shelf.put(f"blocks-{at}", labels=labels, mended=np.array([part.mended for part in found]))
        return found

    hall = Hall([sum(each) for each in sizes], progress)
    return [part for made in split(Orders(len(bundles), known, bundle, keep), hall) for part in made]


def bundled(sizes: Sequence[int]) -> list[range]:
    """Put blocks that follow each other together until they have enough records.

    >>> bundled([30_000, 30_000, 90_000, 10])
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    found, first, records = [], 0, 0
    for at, size in enumerate(sizes):
        records += size
        if records >= BUNDLE:
            found.append(range(first, at + 1))
            first, records = at + 1, 0
    return [*found, range(first, len(sizes))] if first < len(sizes) else found


class Hall:
    """Threads at work on parts of known sizes, and the one that listens to how far they are."""

    def __init__(self, sizes: Sequence[int], progress: Progress) -> None:
        self.progress, self.total = progress, sum(sizes)
        self.sizes, self.done = sizes, np.zeros(len(sizes))
        self.home, self.stopped = threading.get_ident(), threading.Event()

    def part(self, at: int, before: int, records: int) -> Progress:
        """Return the listener of some records of one part, for the thread that works on it."""

        def hear(done: int, total: int) -> None:
            if self.stopped.is_set():
                raise Cancelled("stopped between two classes of a block")
            self.done[at] = before + (records * min(1.0, done / total) if total else 0.0)
            if threading.get_ident() == self.home:
                self._tell()

        return hear

    def run(self, made: Callable[[int], Made]) -> list[Made]:
        """Make every part, some at a time, and return them in order; where there is one, in this thread."""
        many = threads()
        if len(self.sizes) == 1 or many == 1:
            return [self._one(made, at) for at in range(len(self.sizes))]
        with ThreadPoolExecutor(many) as pool:
            futures = [pool.submit(self._one, made, at) for at in range(len(self.sizes))]
            try:
                self._attend(futures)
                return [future.result() for future in futures]
            finally:
                self.stopped.set()  # where somebody stops the run, or one part failed: the others need not go on
                for future in futures:
                    future.cancel()

    def _one(self, made: Callable[[int], Made], at: int) -> Made:
        if self.stopped.is_set():
            raise Cancelled("stopped before a block")
        found = made(at)
        self.done[at] = self.sizes[at]
        if threading.get_ident() == self.home:
            self._tell()
        return found

    def _attend(self, futures: Sequence[Future[Any]]) -> None:
        left = set(futures)
        while left:
            done, left = wait(left, timeout=OFTEN, return_when=FIRST_COMPLETED)
            if any(future.exception() is not None for future in done):
                return
            self._tell()

    def _tell(self) -> None:
        self.progress(int(self.done.sum()), self.total)
