"""The whole way on Spark beside the embedded engine: processor seconds of everything that runs, and whether both agree.

    python -m benchmarks spark              1,000,000 records on local[2]
    python -m benchmarks spark --quick      100,000
    python -m benchmarks.spark lattice 2e7 spark FOLDER     (or duckdb) part files in and out

Each run has a process of its own; the processor time of Spark is that of its Java and Python processes too. Wants
PySpark and Java (`make spark`). The last form has two executors in processes of their own, one core and 1 GB of Java
each, and prints the peak memory of the driver and of an executor, with their Python processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import whole
from benchmarks.measuring import Row

ENGINES: dict[str, dict[str, Any]] = {"duckdb": {}, "spark": {"name": "spark", "master": "local[2]"}}
TICKS = os.sysconf("SC_CLK_TCK")
ROWS_PER_PART = 1_000_000
EXECUTOR = b"CoarseGrainedExecutorBackend"


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


def measured_in_parts(method: str, records: int, engine: str, folder: Path) -> Row:
    """Run one case of part files in this process: classes and their values fit into the rows of a driver."""
    import kinfold
    from kinfold import kernels
    from kinfold.methods.plan import list_kernels

    parts = max(2, records // ROWS_PER_PART)
    source = folder / f"{method}-{records}-parts"
    if not source.exists():
        (whole.people_in_parts if method == "lattice" else whole.numbers_in_parts)(source, records, parts)
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.spark", method, str(records), engine, str(folder)])
    kernels.warmup(modules=list_kernels(method))
    asked = whole.policy(method, None)
    if method == "lattice":  # 5,600 tuples, with 6 diseases each
        asked["privacy"] |= {"k": records // 10_000}
        asked["columns"] |= {name: {"role": "other"} for name in ("education", "marital", "year")}
    else:
        asked["privacy"] |= {"k": 100}
        asked["columns"] |= {"pay": {"role": "other"}}
    asked |= {"source": {"parts": True}, "output": {"format": "parquet", "parts": parts}}
    asked["engine"] = {"memory": "2GB", "spill": str(folder)}
    if engine == "spark":
        asked["engine"] |= {"name": "spark", "master": _start_cluster(folder)}
    memory = _Memory()
    began, clock = _spent(os.getpid()), time.perf_counter()
    release = kinfold.anonymize(source, asked)
    computed = _spent(os.getpid()) - began
    out = release.save(folder / f"out-{engine}-{method}-{records}", force=True)
    seconds, wall = _spent(os.getpid()) - began, time.perf_counter() - clock
    certificate = json.loads((out / "public" / "certificate.json").read_text(encoding="utf-8"))
    used: Any = release.engine
    collected = used.driver.collected if engine == "spark" else []
    return {
        "work": method, "records": records, "engine": engine, "parts": parts, "cpu_seconds": round(seconds, 1),
        "release": round(computed, 1), "wall": round(wall, 1), "classes": release.verdict.classes,
        "driver_gb": memory.peak("driver"), "executor_gb": memory.peak("executor"),
        "most_rows": max((each.rows for each in collected), default=0), "collects": len(collected),
        "rows": sum(each.rows for each in collected), "bytes": sum(each.bytes for each in collected),
        "loss": release.measures["loss"]["overall"], "sha256": certificate["release"]["sha256"][:16],
    }  # fmt: skip


def _start_cluster(folder: Path) -> str:
    """Return the address of two executors, started with the session; their files stay in the folder."""
    import pyspark

    home = folder / "home"
    home.mkdir(exist_ok=True)
    for each in Path(pyspark.__file__).parent.iterdir():
        if not (home / each.name).exists():
            (home / each.name).symlink_to(each)
    os.environ["SPARK_HOME"] = str(home)
    return "local-cluster[2,1,1024]"


class _Memory:
    """The most memory that the driver and an executor have, each with the processes that it started."""

    def __init__(self) -> None:
        self._peaks = {"driver": 0, "executor": 0}
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self._peaks["driver"] = max(self._peaks["driver"], self._held(os.getpid()))
            time.sleep(0.5)

    def _held(self, process: int) -> int:
        """Return the kilobytes of a process and of those that it started; executors are counted apart."""
        try:
            pages = Path(f"/proc/{process}/smaps_rollup").read_text()
            own = int(pages.partition("\nPss:")[2].split()[0])
            is_executor = EXECUTOR in Path(f"/proc/{process}/cmdline").read_bytes()
            held = own + sum(map(self._held, _list_started(process)))
        except (OSError, IndexError):  # it ended meanwhile
            return 0
        if is_executor:
            self._peaks["executor"] = max(self._peaks["executor"], held)
        return 0 if is_executor else held

    def peak(self, part: str) -> float:
        return round(self._peaks[part] * 1024 / 1e9, 2)


def _spent(process: int) -> float:
    """Return the processor seconds of a process, of those that it waited for, and of those that it started."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it ended meanwhile: its parent has its seconds
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS + sum(map(_spent, _list_started(process)))


def _list_started(process: int) -> set[int]:
    """Return the processes that the threads of a process started."""
    return {int(child) for thread in Path(f"/proc/{process}/task").iterdir() for child in _children(thread)}


def _children(thread: Path) -> list[str]:
    try:
        return (thread / "children").read_text().split()
    except OSError:  # it ended meanwhile
        return []


if __name__ == "__main__":
    case = measured_in_parts if float(sys.argv[2]) > ROWS_PER_PART else measured
    print(json.dumps(case(sys.argv[1], int(float(sys.argv[2])), sys.argv[3], Path(sys.argv[4]))))
