"""What an engine may use of a machine: memory, threads, and a folder on a disk that has room.

memory    of the whole process: the engine gets a part, for a release and the check of its file have one each, and
          what is counted (classes, values) is held beside them. By default an engine may take a part of the memory
          that is free when it starts, and more where that is not enough for a query (see `connection`)
on disk   where the rows of a large table are: packed, in a private folder that goes with the run
small     a table that is counted faster than a database is started for it: it gets a place in one that runs
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kinfold.rows.free_memory import free_memory

SMALL = 1 << 20  # bytes of a table whose rows one thread counts as fast as several
PLAIN, PACKED = (".csv", ".tsv", ".txt"), 16  # what is as long as its file says; how much longer others may be
LARGE = 32 << 20  # bytes of a file from which on its rows are kept on disk
SHARE = 0.25  # of the memory that each of two engines gets
COUNTS, FREELY = (
    0.2,
    1 << 30,
)  # share of the memory for what was counted and may be asked again; bytes where nobody says
LEAST_BY_DEFAULT = 512 << 20  # bytes that an engine gets by default, however little is free
LEAST = 512 << 20  # bytes that a run needs for itself, whatever the table
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {f"{unit[0]}IB": 2 ** (10 * power) for power, unit in enumerate(("KB", "MB", "GB", "TB"), 1)}


@dataclass(frozen=True)
class Resources:
    """Limits; None is what the engine takes by itself."""

    memory: int | None = None  # bytes
    spill: Path | None = None
    threads: int | None = None
    on_disk: bool = False
    small: bool = False

    @property
    def for_counts(self) -> float:
        """How many bytes of what was counted are remembered."""
        return FREELY if self.memory is None else self.memory * COUNTS

    @property
    def for_engine(self) -> int | None:
        """How many bytes an engine that starts now may take; None where it is not known what is free."""
        if self.memory is not None:
            return int(self.memory * SHARE)
        free = free_memory()
        return None if free is None else max(LEAST_BY_DEFAULT, int(free * SHARE))

    def settings(self, memory: int | None) -> dict[str, str]:
        """Return the limits as settings of the database; None is a part of the machine, as the database sees it."""
        found = {} if memory is None else {"memory_limit": in_mebibytes(memory)}
        return found if self.threads is None else {**found, "threads": str(self.threads)}

    def of(self, *sources: Any) -> Resources:
        """Return these limits for the rows of sources: where they are kept, by how many bytes they have."""
        if sources and self == ANY and all(map(is_small, sources)):
            return replace(self, small=True)
        return replace(self, on_disk=self.memory is not None or any(map(is_large, sources)))


ANY = Resources()
MOST = 2.0**63  # bytes


def in_mebibytes(amount: int) -> str:
    """Write an amount of memory as the database reads it.

    >>> in_mebibytes(3 << 30)
    '3072MiB'
    """
    return f"{amount >> 20}MiB"


def bytes_of(text: str) -> int:
    """Read an amount of memory.

    >>> bytes_of("4GB"), bytes_of("512 MiB")
    (4000000000, 536870912)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", text.lower())
    if not found or found[2].upper() not in UNITS:
        raise ValueError('write an amount of memory as "4GB" or "512MB"')
    amount = float(found[1]) * UNITS[found[2].upper()]
    if amount >= MOST:
        raise ValueError("no machine has so much memory; write less")
    return int(amount)


def enough(value: Any) -> Any:
    """Check an amount of memory: the run itself needs some, whatever the table."""
    if value is not None and bytes_of(str(value)) < LEAST:
        raise ValueError(f"a run needs {LEAST >> 20}MiB for itself, whatever the table; give it more")
    return value if value is None else str(value)


def is_large(source: Any) -> bool:
    """Whether the rows of a source are better kept on disk: by the size of its file, and where it has many."""
    if not isinstance(source, Path) or not source.is_file():
        return isinstance(source, Path)
    return source.stat().st_size > LARGE


def is_small(source: Any) -> bool:
    """Whether a source is a small file, or a frame with few bytes."""
    if isinstance(source, Path):
        unpacked = 1 if source.suffix.lower() in PLAIN else PACKED
        return source.is_file() and unpacked * source.stat().st_size <= SMALL
    return getattr(source, "nbytes", SMALL + 1) <= SMALL
