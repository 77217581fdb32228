"""Memory of workers: how much a process holds, and how much is free, as Linux tells; None where nobody tells."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = 0.9  # of what is free
CGROUP = Path("/sys/fs/cgroup")


def held(pid: int) -> int | None:
    """Return the bytes that a process holds for itself; None where it is gone, or nobody tells."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text("ascii").split()
    except (OSError, ValueError):
        return None
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def allowed() -> int | None:
    """Return the bytes that a job may hold which begins now: a share of what is free here."""
    free = [each for each in (_free_of_machine(), _free_of_group()) if each is not None]
    return int(min(free) * SHARE) if free else None


def _free_of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)


def _free_of_group() -> int | None:
    """Return what the control group leaves, where there is a limit."""
    try:
        most, now = ((CGROUP / name).read_text("ascii").strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return None
    return None if most == "max" else max(int(most) - int(now), 0)
