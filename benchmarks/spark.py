"""The whole way on Spark beside the embedded engine: processor seconds of everything that runs, and whether both agree.

    python -m benchmarks spark              1,000,000 records on local[2]
    python -m benchmarks spark --quick      100,000

Each run has a process of its own; the processor time of Spark is that of its Java and Python processes too. Wants
PySpark and Java (`make spark`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import whole
from benchmarks.measuring import Row

ENGINES: dict[str, dict[str, Any]] = {"duckdb": {}, "spark": {"name": "spark", "master": "local[2]"}}
TICKS = os.sysconf("SC_CLK_TCK")


def run(*, quick: bool) -> Iterator[Row]:
    records = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        for method in ("lattice", "mdav"):
            rows = [_called(method, records, engine, folder) for engine in ENGINES]
            files = [Path(folder) / f"out-{engine}-{method}" / "public" / "release.csv" for engine in ENGINES]
            alike = files[0].read_bytes() == files[1].read_bytes()
            yield from ({**row, "same bytes": alike} for row in rows)


def _called(method: str, records: int, engine: str, folder: str) -> Row:
    asked = [sys.executable, "-m", "benchmarks.spark", method, str(records), engine, folder]
    found: Row = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    return found


def measured(method: str, records: int, engine: str, folder: Path) -> Row:
    """Run one case in this process."""
    import kinfold
    from kinfold import kernels
    from kinfold.methods.plan import list_kernels

    source = folder / f"{method}-{records}.parquet"
    if not source.exists():
        (whole.people if method == "lattice" else whole.numbers)(source, records)
    kernels.warmup(modules=list_kernels(method))
    asked = whole.policy(method, None) | {"engine": ENGINES[engine], "output": {"format": "csv"}}
    if method != "lattice":
        asked["method"] = {"name": method, "block": 20_000}
    began, clock = _spent(os.getpid()), time.perf_counter()
    release = kinfold.anonymize(source, asked)
    release.save(folder / f"out-{engine}-{method}", force=True)
    seconds, wall = _spent(os.getpid()) - began, time.perf_counter() - clock
    return {
        "work": method, "records": records, "engine": engine, "cpu_seconds": round(seconds, 1), "wall": round(wall, 1),
        "classes": release.verdict.classes, "blocks": release.plan.blocks,
        "sse_ratio": release.measures["loss"]["sse_ratio"],
    }  # fmt: skip


def _spent(process: int) -> float:
    """Return the processor seconds of a process, of those that it waited for, and of those that it started."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    started = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    threads = {child for each in Path(f"/proc/{process}/task").iterdir() for child in _children(each)}
    return sum(map(int, fields[11:15])) / TICKS + sum(_spent(int(child)) for child in {*started, *threads})


def _children(thread: Path) -> list[str]:
    try:
        return (thread / "children").read_text().split()
    except OSError:  # it ended meanwhile
        return []


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))))
