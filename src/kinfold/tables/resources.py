"""Resources of a run: the free memory of the machine, what an engine may use of it, and how much a source may contain.

Free memory is the least of three amounts (None on systems without /proc):

    machine         MemAvailable of /proc/meminfo
    control groups  of this process and each group above it, version 1 and 2: the limit minus the use; pages of files
                    do not count as use, because the system frees them itself
    limits          of the address space (`ulimit -v`), minus the addresses in use

An engine gets a share of the memory limit of the process, because a release and the check of its file run one engine
each, and counts (classes, values) need memory too. By default an engine may use a share of the memory that is free when
it starts, and more if a query needs more (see `connection`). Rows of a large table are stored compressed on disk, in a
private folder that is removed after the run. A small table shares a database that is already running.

A packed file can be a thousandth of its contents, made to fill memory or disk. A workbook is read into memory, so one
that expands more than a real table does is always refused. Other limits are set where files come from other people, as
in the studio.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kinfold.errors import DataError, PolicyError, Problem

PROCESSES_VARIABLE = "KINFOLD_PROCESSES"  # environment: the number of worker processes that share the free memory
USABLE_MEMORY_SHARE = 0.9  # of the free memory: the rest is for other programs
CGROUP_V2_FILES = ("memory.max", "memory.high"), "memory.current", ("inactive_file", "active_file")
CGROUP_V1_FILES = ("memory.limit_in_bytes",), "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")
MAX_SMALL_BYTES = 1 << 20  # of a table whose rows one thread counts as fast as several
PLAIN_SUFFIXES = (".csv", ".tsv", ".txt")  # files that are as large as their rows
MAX_EXPANSION = 16  # how many times larger than their file the rows of other files may be
MAX_BYTES_IN_MEMORY = 32 << 20  # of a file: the rows of a larger one are stored on disk
ENGINE_MEMORY_SHARE = 0.25  # of the memory, for each of two engines
COUNTS_MEMORY_SHARE = 0.2  # of the memory, for counts that may be needed again
DEFAULT_COUNTS_BYTES = 1 << 30  # for such counts, if no memory limit is set
MIN_ENGINE_BYTES = 512 << 20  # of an engine by default, however little memory is free
MIN_RUN_BYTES = 512 << 20  # of a run, whatever the table
MAX_MEMORY_BYTES = 2.0**63  # the database reads no larger amount
MEMORY_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
MEMORY_UNITS |= {f"{unit[0]}IB": 2 ** (10 * power) for power, unit in enumerate(("KB", "MB", "GB", "TB"), 1)}
MB, GB = 10**6, 10**9
MAX_DRIVER_ROWS = 300_000  # tallies, samples or summaries: some 50 MB, which any driver has


def get_free_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process may take now, divided by the number of worker processes; None if unknown."""
    amounts = [*_read_machine(root), *_read_control_groups(root), *_read_address_limit(root)]
    return max(0, min(amounts)) // _count_processes() if amounts else None


def get_reachable_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process can use in total: most of what it has and what is free."""
    free, pages = get_free_memory(root), _read_text(root / "proc/self/statm").split()
    if free is None or not pages:
        return None
    return int(USABLE_MEMORY_SHARE * (free + int(pages[1]) * os.sysconf("SC_PAGE_SIZE")))


def get_allowed_memory() -> int | None:
    """Return how many bytes another process that starts now may use; None if unknown."""
    free = get_free_memory()
    return None if free is None else int(USABLE_MEMORY_SHARE * free)


def get_process_memory(pid: int) -> int | None:
    """Return how many bytes a process uses alone; None if it has ended or this is unknown."""
    pages = _read_text(Path(f"/proc/{pid}/statm")).split()
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE") if len(pages) > 2 else None


def build_worker_environment(processes: int) -> dict[str, str]:
    """Return the environment variables of worker processes that run at the same time."""
    return {PROCESSES_VARIABLE: str(processes * _count_processes())}


def _count_processes() -> int:
    value = os.environ.get(PROCESSES_VARIABLE, "")
    return max(1, int(value)) if value.isdecimal() else 1


def _read_machine(root: Path) -> Iterator[int]:
    for line in _read_text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable" and (amount := rest.split()):
            yield int(amount[0]) << 10  # kB


def _read_control_groups(root: Path) -> Iterator[int]:
    """Yield the free bytes of each control group of this process.

    In a container the path may be that of the host, which is not mounted. The root of the mount is then the group of
    the container.
    """
    groups = root / "sys/fs/cgroup"
    for line in _read_text(root / "proc/self/cgroup").splitlines():
        _, controllers, path, *_ = (*line.split(":", 2), "", "")
        if controllers and "memory" not in controllers.split(","):
            continue
        top, files = (groups / "memory", CGROUP_V1_FILES) if controllers else (groups, CGROUP_V2_FILES)
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(parts) + 1):
            yield from _read_group(top.joinpath(*parts[:depth]), *files)


def _read_group(group: Path, limit_files: tuple[str, ...], use_file: str, page_keys: tuple[str, ...]) -> Iterator[int]:
    limits = [int(text) for name in limit_files if (text := _read_text(group / name).strip()).isdecimal()]
    used = _read_text(group / use_file).strip()
    if not limits or not used.isdecimal():
        return
    counts = dict(line.split(" ", 1) for line in _read_text(group / "memory.stat").splitlines() if " " in line)
    pages = sum(int(counts[key]) for key in page_keys if counts.get(key, "").isdecimal())
    yield min(limits) - max(0, int(used) - pages)


def _read_address_limit(root: Path) -> Iterator[int]:
    if sys.platform == "win32":
        return
    import resource

    limit, pages = resource.getrlimit(resource.RLIMIT_AS)[0], _read_text(root / "proc/self/statm").split()
    if limit != resource.RLIM_INFINITY and pages:
        yield limit - int(pages[0]) * os.sysconf("SC_PAGE_SIZE")


def _read_text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return ""


@dataclass(frozen=True)
class Resources:
    """Limits of an engine; None is the engine's default."""

    memory: int | None = None  # bytes
    spill: Path | None = None
    threads: int | None = None
    on_disk: bool = False
    small: bool = False
    driver_rows: int = MAX_DRIVER_ROWS  # that the driver of Spark may collect at a time
    gathering: tuple[str, ...] = ()  # why a run needs every record in one place: then Spark only reads the table

    @property
    def counts_bytes(self) -> float:
        """How many bytes of counts are kept for later."""
        return DEFAULT_COUNTS_BYTES if self.memory is None else self.memory * COUNTS_MEMORY_SHARE

    @property
    def engine_bytes(self) -> int | None:
        """How many bytes an engine that starts now may use; None if the free memory is unknown."""
        if self.memory is not None:
            return int(self.memory * ENGINE_MEMORY_SHARE)
        free = get_free_memory()
        return None if free is None else max(MIN_ENGINE_BYTES, int(free * ENGINE_MEMORY_SHARE))

    def build_settings(self, memory: int | None) -> dict[str, str]:
        """Return the limits as settings of the database; None is the default of the database."""
        settings = {} if memory is None else {"memory_limit": format_mebibytes(memory)}
        return settings if self.threads is None else {**settings, "threads": str(self.threads)}

    def for_sources(self, *sources: Any) -> Resources:
        """Return these limits with the place for the rows of sources, by their size."""
        sources = tuple(each for source in sources for each in getattr(source, "paths", (source,)))  # of linked files
        if sources and self == DEFAULT_RESOURCES and all(map(is_small, sources)):
            return replace(self, small=True)
        return replace(self, on_disk=self.memory is not None or any(map(is_large, sources)))


DEFAULT_RESOURCES = Resources()


def refuse_to_collect(limit: int | None, records: int, reasons: Iterable[str]) -> None:
    """Raise with these reasons if so many records do not fit into one place, which may hold `limit`."""
    if limit is not None and records > limit:
        where = f"the driver of Spark would hold all {records:,} records, and it may collect {limit:,} at a time"
        raise PolicyError(Problem(f"{reason}: {where}", explain_driver_rows(records)) for reason in reasons)


def explain_driver_rows(rows: int | None) -> str:
    """Return what lets the driver of Spark collect so many rows, if their number is known."""
    key = "raise engine.driver_rows" if rows is None else f"set engine.driver_rows = {rows} or more"
    return f"use engine duckdb; or, if the driver has the memory, {key}"


def format_mebibytes(amount: int) -> str:
    """Write an amount of memory for the database.

    >>> format_mebibytes(3 << 30)
    '3072MiB'
    """
    return f"{amount >> 20}MiB"


def parse_memory(text: str) -> int:
    """Return the bytes of an amount of memory.

    >>> parse_memory("4GB"), parse_memory("512 MiB")
    (4000000000, 536870912)
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", text.lower())
    if not match or match[2].upper() not in MEMORY_UNITS:
        raise ValueError('write an amount of memory as "4GB" or "512MB"')
    amount = float(match[1]) * MEMORY_UNITS[match[2].upper()]
    if amount >= MAX_MEMORY_BYTES:
        raise ValueError("no machine has so much memory; write less")
    return int(amount)


def check_memory(value: Any) -> Any:
    """Return a memory limit as text, or raise if it is too small for any run."""
    if value is not None and parse_memory(str(value)) < MIN_RUN_BYTES:
        raise ValueError(f"a run needs at least {MIN_RUN_BYTES >> 20}MiB, whatever the table; set a larger limit")
    return value if value is None else str(value)


def is_large(source: Any) -> bool:
    """Whether the rows of a source are stored on disk: a large file, or a path to several files."""
    return isinstance(source, Path) and not (source.is_file() and source.stat().st_size <= MAX_BYTES_IN_MEMORY)


def is_small(source: Any) -> bool:
    """Whether a source is a small file, or a frame with few bytes."""
    if isinstance(source, Path):
        expansion = 1 if source.suffix.lower() in PLAIN_SUFFIXES else MAX_EXPANSION
        return source.is_file() and expansion * source.stat().st_size <= MAX_SMALL_BYTES
    return getattr(source, "nbytes", MAX_SMALL_BYTES + 1) <= MAX_SMALL_BYTES


@dataclass(frozen=True)
class ReadingLimits:
    """How much a source may contain; None is no limit."""

    expanded: int | None = None  # bytes of the contents of a packed file
    columns: int | None = None


_reading_limits: ContextVar[ReadingLimits] = ContextVar("reading limits", default=ReadingLimits())  # noqa: B039  frozen


@contextmanager
def limit_reading(limits: ReadingLimits) -> Iterator[None]:
    """Apply limits to sources that are read within the `with` block."""
    token = _reading_limits.set(limits)
    try:
        yield
    finally:
        _reading_limits.reset(token)


def check_expanded_size(size: int, name: str, limit: int | None = None) -> None:
    """Refuse a packed file whose contents are larger than `limit`, or than the reading limits allow."""
    limits = [each for each in (limit, _reading_limits.get().expanded) if each is not None]
    if limits and size > min(limits):
        amount = f"{min(limits) / GB:g} GB" if min(limits) >= GB else f"{min(limits) // MB:,} MB"
        what = f"'{name}' expands to more than {amount}, the limit for a packed file"
        raise DataError(what, fix="check where the file comes from; save the table as plain CSV or Parquet")


def check_column_count(count: int, where: str) -> None:
    """Refuse a table with more columns than the reading limits allow."""
    limit = _reading_limits.get().columns
    if limit is not None and count > limit:
        what = f"{where} has {count:,} columns; the limit is {limit:,}"
        raise DataError(what, fix="remove the columns that are not needed")
