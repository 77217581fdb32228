"""The memory that this process may take now: the least of what the machine, its control groups and its limits leave.

machine         MemAvailable of /proc/meminfo: what can be had without swapping
control groups  of this process and every group above it, version 1 and 2: the limit less the use, where pages of files
                do not count as use, for the system gives them up by itself
limits          of addresses (`ulimit -v`), less those in use

On systems without /proc nothing is known: None.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

SHARED_BY = "KINFOLD_PROCESSES"  # environment: how many processes that work side by side share what is free
MOST = 0.9  # of what can be had: the rest is for whoever else works here
UNIFIED = ("memory.max", "memory.high"), "memory.current", ("inactive_file", "active_file")
LEGACY = ("memory.limit_in_bytes",), "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")


def free_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process may take now; its part, where several share them; None if nothing is known."""
    found = [*_of_machine(root), *_of_groups(root), *_of_limits(root)]
    return max(0, min(found)) // _processes() if found else None


def reachable_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes this process can have at all: most of what it has and what is free."""
    free, taken = free_memory(root), _text(root / "proc/self/statm").split()
    return None if free is None or not taken else int(MOST * (free + int(taken[1]) * os.sysconf("SC_PAGE_SIZE")))


def allowed_memory() -> int | None:
    """Return how many bytes another process that begins now may hold; None if nothing is known."""
    free = free_memory()
    return None if free is None else int(MOST * free)


def held_memory(pid: int) -> int | None:
    """Return how many bytes a process holds for itself; None if it has ended, or nothing is known."""
    pages = _text(Path(f"/proc/{pid}/statm")).split()
    return (int(pages[1]) - int(pages[2])) * os.sysconf("SC_PAGE_SIZE") if len(pages) > 2 else None


def shared_by(processes: int) -> dict[str, str]:
    """Return what to put into the environment of processes that work side by side."""
    return {SHARED_BY: str(processes * _processes())}


def _processes() -> int:
    said = os.environ.get(SHARED_BY, "")
    return max(1, int(said)) if said.isdecimal() else 1


def _of_machine(root: Path) -> Iterator[int]:
    for line in _text(root / "proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable" and (amount := rest.split()):
            yield int(amount[0]) << 10  # kB


def _of_groups(root: Path) -> Iterator[int]:
    """Return what each control group leaves; a path that is not mounted here is that of a container, seen from outside.

    The groups above it are then those that are mounted: the root of the mount is the container's own.
    """
    groups = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path, *_ = (*line.split(":", 2), "", "")
        if controllers and "memory" not in controllers.split(","):
            continue
        top, files = (groups / "memory", LEGACY) if controllers else (groups, UNIFIED)
        inside = [part for part in path.split("/") if part not in ("", "..")]
        for depth in range(len(inside) + 1):
            yield from _left_in(top.joinpath(*inside[:depth]), *files)


def _left_in(group: Path, limits: tuple[str, ...], use: str, of_files: tuple[str, ...]) -> Iterator[int]:
    bounds = [int(said) for name in limits if (said := _text(group / name).strip()).isdecimal()]
    used = _text(group / use).strip()
    if not bounds or not used.isdecimal():
        return
    counts = dict(line.split(" ", 1) for line in _text(group / "memory.stat").splitlines() if " " in line)
    pages = sum(int(counts[name]) for name in of_files if counts.get(name, "").isdecimal())
    yield min(bounds) - max(0, int(used) - pages)


def _of_limits(root: Path) -> Iterator[int]:
    if sys.platform == "win32":
        return
    import resource

    most, taken = resource.getrlimit(resource.RLIMIT_AS)[0], _text(root / "proc/self/statm").split()
    if most != resource.RLIM_INFINITY and taken:
        yield most - int(taken[0]) * os.sysconf("SC_PAGE_SIZE")


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        return ""
