"""Whether a table is cut into blocks, and how large a block may be.

By itself only where the whole would take long: more than `SECONDS` of one processor by what the method declares of its
cost, or more than `BYTES` of memory. That is reckoned from the request and the number of records alone, never from the
machine, so that the same input gives the same release everywhere. Tables of up to `WHOLE` records are never cut.

Then a block is as large as it can be while a million records take no more than `MILLION` seconds: larger blocks have
fewer borders and lose less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kinfold.errors import plural
from kinfold.rows.schema import Role

if TYPE_CHECKING:
    from kinfold.methods.task import Task
    from kinfold.request.methods import Declaration

WHOLE = 100_000
SECONDS, BYTES = 10.0, 4e9
MILLION = 10.0
SIZES = (100_000, 50_000, 20_000, 10_000, 5_000, 2_000, 1_000)
HELD = 300  # bytes held for each record while it is partitioned, besides its values four times over
AT = (100_000, 8, 10)  # records, attributes and k that methods declare their seconds for
REPAIR, STARTS = (
    (0.5, 1.5),
    (3.2, 1.5),
)  # what promises beyond k add, as methods declare it: from one start, from several


@dataclass(frozen=True)
class BlockSize:
    """How many records a block may have, 0 for the table as a whole, and why."""

    records: int
    why: str = ""


def block_size(method: Declaration, task: Task) -> BlockSize:
    """Return how large a block may be."""
    asked, n = task.method.block, task.records
    if asked is not None:
        size = max(asked, 2 * task.k)
        return BlockSize(size, "as method.block asks") if asked and n > size else BlockSize(0)
    seconds, held = estimate(method, task, n), memory(task, n)
    if n <= WHOLE or (seconds <= SECONDS and held <= BYTES):
        return BlockSize(0)
    fitting = (size for size in SIZES if estimate(method, task, size) * 1e6 / size <= MILLION)
    size = max(next(fitting, SIZES[-1]), 2 * task.k)
    seconds += _for_promises(task, n)
    whole = f"{method.name} on the whole table would take about {in_time(seconds)} and {held / 1e9:.1f} GB"
    return BlockSize(size if n > size else 0, f"{whole}; method.block = 0 forbids blocks")


def estimate(method: Declaration, task: Task, records: int) -> float:
    """Return about how many seconds a method takes for so many records of this table."""
    return _scaled(method.cost, task, records)


def _for_promises(task: Task, records: int) -> float:
    """Return about how many seconds it takes to keep what is promised beyond k; blocks are cut without regard to it."""
    if not task.requirements():
        return 0.0
    return _scaled(STARTS if task.method.starts else REPAIR, task, records)


def _scaled(cost: tuple[float, float], task: Task, records: int) -> float:
    (seconds, power), (at, attributes, k) = cost, AT
    return float(seconds * (records / at) ** power * _width(task) / attributes * k / task.k)


def memory(task: Task, records: int) -> float:
    """Return about how many bytes are held while so many records are partitioned."""
    return float(records * (HELD + 4 * 8 * _width(task)))


def _width(task: Task) -> int:
    return len(task.policy.of(Role.QUASI))


def in_words(blocks: int, size: BlockSize) -> str:
    """Say how many blocks there were, how large, and why.

    >>> in_words(12, BlockSize(1000, "as method.block asks"))
    'the classes were made in 12 blocks of at most 1,000 records: as method.block asks'
    """
    return f"the classes were made in {blocks:,} blocks of at most {plural(size.records, 'record')}: {size.why}"


def in_time(seconds: float) -> str:
    """Say how long something takes, roughly.

    >>> in_time(40), in_time(900)
    ('40 s', '15 minutes')
    """
    return f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 60:,.0f} minutes"
