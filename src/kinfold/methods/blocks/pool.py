"""Run one function on many blocks in parallel, with the same result for any number of threads or machines.

Blocks share no record, and the result of a block depends only on the block. Small blocks form a batch: the unit of
work and of checkpoints. The engine decides where batches run. In threads, only the calling thread reports progress, a
few times a second; an exception of the callback stops every thread at its next report.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Cancelled
from kinfold.progress import Progress
from kinfold.tables.points import Labels
from kinfold.tables.regions import CheckpointStore

Rows: TypeAlias = NDArray[np.intp]
Result = TypeVar("Result")

BATCH_RECORDS = 50_000  # a batch is closed once it has so many: about a second of work
REPORT_INTERVAL = 0.1  # seconds between two reports


class NoCheckpoints:
    """A store that keeps nothing."""

    def get(self, name: str) -> None:
        """Return None."""

    def put(self, name: str, **arrays: NDArray[Any]) -> None:
        """Store nothing."""


NO_CHECKPOINTS = NoCheckpoints()


@dataclass(frozen=True, eq=False)
class BlockLabels:
    """The classes of some records, and how many of them were repaired."""

    labels: Labels
    repaired: int = 0


BlockJob: TypeAlias = "Callable[[Progress], BlockLabels]"  # can be pickled: all that the classes of a block need
MakeJob: TypeAlias = "Callable[[Rows], BlockJob]"
PartProgress: TypeAlias = "Callable[[int, int], Progress]"  # by the records before a block, and those of the block


@dataclass(frozen=True, eq=False)
class JobBatch:
    """The jobs of some blocks, and how many records each block has."""

    jobs: Sequence[BlockJob]
    sizes: Sequence[int]

    def __call__(self, progress: PartProgress) -> list[BlockLabels]:
        """Return the classes of each block."""
        parts: list[BlockLabels] = []
        for at, (job, size) in enumerate(zip(self.jobs, self.sizes, strict=True)):
            parts.append(job(progress(sum(self.sizes[:at]), size)))
        return parts


@dataclass(frozen=True, eq=False)
class BlockJobs:
    """Batches by number: load a finished one, make the jobs of another, save its result."""

    count: int
    load: Callable[[int], list[BlockLabels] | None]
    make_batch: Callable[[int], JobBatch]
    save: Callable[[int, list[BlockLabels]], list[BlockLabels]]

    def run(self, at: int, progress: PartProgress) -> list[BlockLabels]:
        """Return the classes of a batch: load them, or run the batch in this process and save them."""
        saved = self.load(at)
        return self.save(at, self.make_batch(at)(progress)) if saved is None else saved


JobRunner: TypeAlias = "Callable[[BlockJobs, BlockPool], list[list[BlockLabels]]]"


def run_in_threads(jobs: BlockJobs, pool: BlockPool) -> list[list[BlockLabels]]:
    """Run batches in the threads of this process."""
    return pool.run(lambda at: jobs.run(at, partial(pool.part_progress, at)))


_thread_limit: ContextVar[int | None] = ContextVar("thread_limit", default=None)


@contextmanager
def limit_threads(count: int | None) -> Iterator[None]:
    """Limit the number of threads for the length of a `with` block; None: one for each core."""
    before = _thread_limit.set(count)
    try:
        yield
    finally:
        _thread_limit.reset(before)


def count_threads() -> int:
    """Return how many blocks run at a time: the limit, or one for each core."""
    return _thread_limit.get() or count_cores()


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_blocks(
    blocks: Sequence[Rows],
    make_job: MakeJob,
    progress: Progress,
    checkpoints: CheckpointStore,
    run_jobs: JobRunner = run_in_threads,
) -> list[BlockLabels]:
    """Return the classes of each block; batches with a checkpoint are not run again."""
    batches = group_blocks([len(block) for block in blocks])
    sizes = [[len(blocks[i]) for i in batch] for batch in batches]

    def load(at: int) -> list[BlockLabels] | None:
        if (saved := checkpoints.get(f"blocks-{at}")) is None:
            return None
        labels = np.split(saved["labels"].astype(np.int32), np.cumsum(sizes[at])[:-1])
        return [BlockLabels(*pair) for pair in zip(labels, saved["repaired"].tolist(), strict=True)]

    def make_batch(at: int) -> JobBatch:
        return JobBatch([make_job(blocks[i]) for i in batches[at]], sizes[at])

    def save(at: int, parts: list[BlockLabels]) -> list[BlockLabels]:
        labels = np.concatenate([part.labels for part in parts])
        checkpoints.put(f"blocks-{at}", labels=labels, repaired=np.array([part.repaired for part in parts]))
        return parts

    pool = BlockPool([sum(each) for each in sizes], progress)
    return [part for parts in run_jobs(BlockJobs(len(batches), load, make_batch, save), pool) for part in parts]


def group_blocks(sizes: Sequence[int]) -> list[range]:
    """Put consecutive blocks into one batch until it has enough records.

    >>> group_blocks([30_000, 30_000, 90_000, 10])
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    batches, first, records = [], 0, 0
    for at, size in enumerate(sizes):
        records += size
        if records >= BATCH_RECORDS:
            batches.append(range(first, at + 1))
            first, records = at + 1, 0
    return [*batches, range(first, len(sizes))] if first < len(sizes) else batches


class BlockPool:
    """Threads that process parts of known sizes, and the progress of all parts."""

    def __init__(self, sizes: Sequence[int], progress: Progress) -> None:
        self.progress, self.total = progress, sum(sizes)
        self.sizes, self.done = sizes, np.zeros(len(sizes))
        self.main_thread, self.stopped = threading.get_ident(), threading.Event()

    def part_progress(self, at: int, before: int, records: int) -> Progress:
        """Return the progress callback for some records of a part, for the thread that processes it."""

        def report(done: int, total: int) -> None:
            if self.stopped.is_set():
                raise Cancelled("stopped between two classes of a block")
            self.done[at] = before + (records * min(1.0, done / total) if total else 0.0)
            self._report()

        return report

    def run(self, process: Callable[[int], Result]) -> list[Result]:
        """Process every part, some at a time, and return the results in order; a single part runs in this thread."""
        threads = count_threads()
        if len(self.sizes) == 1 or threads == 1:
            return [self._run_part(process, at) for at in range(len(self.sizes))]
        with ThreadPoolExecutor(threads) as executor:
            futures = [executor.submit(self._run_part, process, at) for at in range(len(self.sizes))]
            try:
                waiting = set(futures)
                while waiting:
                    ended, waiting = wait(waiting, timeout=REPORT_INTERVAL, return_when=FIRST_COMPLETED)
                    if any(future.exception() is not None for future in ended):
                        break
                    self._report()
                return [future.result() for future in futures]
            finally:
                self.stopped.set()  # after a cancellation, or the failure of a part, the other parts stop
                for future in futures:
                    future.cancel()

    def _run_part(self, process: Callable[[int], Result], at: int) -> Result:
        if self.stopped.is_set():
            raise Cancelled("stopped before a block")
        result = process(at)
        self.done[at] = self.sizes[at]
        self._report()
        return result

    def _report(self) -> None:
        if threading.get_ident() == self.main_thread:
            self.progress(int(self.done.sum()), self.total)
