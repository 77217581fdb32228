"""The whole way, from a Parquet file to a verified folder: processor seconds, those of the method, memory and disk.

    python -m benchmarks.whole lattice 1e7 [MEMORY [FOLDER [PARTS]]]      one run; its table is made in the folder

With PARTS, the lattice reads its table from so many files and releases as many, and the folder is verified again.

Each run has a process of its own, so that its peak is its own. Kernels are compiled before.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Row, exponent
from benchmarks.tables import mixture

QUICK = (("mdav", 100_000, None), ("lattice", 100_000, None), ("lattice", 1_000_000, None))
LONG = (
    ("mdav", 1_000_000, None),
    ("t-first", 1_000_000, None),
    ("lattice", 10_000_000, None),
    ("lattice", 10_000_000, "2GB"),
    ("lattice", 100_000_000, "4GB"),
)
PEOPLE = """
SELECT 20 + CAST(floor(70 * pow(hash(i * 7 + 1) % 100000 / 100000.0, 1.3)) AS INT) AS age,
       CASE hash(i * 7 + 2) % 2 WHEN 0 THEN 'f' ELSE 'm' END AS sex,
       printf('%05d', 10000 + (hash(i * 7 + 3) % 40) * 97) AS zip,
       chr(97 + CAST(hash(i * 7 + 4) % 8 AS INT)) AS education,
       chr(112 + CAST(hash(i * 7 + 5) % 5 AS INT)) AS marital,
       2000 + CAST(hash(i * 7 + 6) % 20 AS INT) AS year,
       chr(65 + CAST(floor(6 * pow(hash(i * 11 + 7) % 1000 / 1000.0, 1.5)) AS INT)) AS disease
FROM range({start}, {stop}) t(i)
"""


def numbers(path: Path, records: int, seed: int = 0) -> None:
    """Write eight columns of numbers with two decimals, and a confidential one that goes with the first."""
    import pyarrow as pa
    from pyarrow import parquet

    x, random = mixture(records, 8, seed), np.random.default_rng(seed + 1)
    columns = {f"q{i}": (x[:, i] * 100).round(2) for i in range(8)}
    columns["pay"] = (x[:, 0] * 1000 + random.normal(0, 500, records)).round()
    parquet.write_table(pa.table(columns), path)


def numbers_in_parts(folder: Path, records: int, parts: int) -> None:
    """Write such numbers as a folder of files, each of them a mixture of its own."""
    folder.mkdir()
    for number in range(parts):
        numbers(folder / f"{number:05}.parquet", records // parts, number)


def people(path: Path, records: int) -> None:
    """Write six quasi-identifiers with 4.5 million possible combinations, and a disease."""
    import duckdb

    with duckdb.connect(config={"memory_limit": "2GB"}) as made:
        made.execute(f"COPY ({PEOPLE.format(start=0, stop=records)}) TO '{path}' (FORMAT parquet)")


def people_in_parts(folder: Path, records: int, parts: int) -> None:
    """Write the same people as a folder of files."""
    import duckdb

    folder.mkdir()
    with duckdb.connect(config={"memory_limit": "2GB"}) as made:
        for number in range(parts):
            ends = {"start": number * records // parts, "stop": (number + 1) * records // parts}
            made.execute(f"COPY ({PEOPLE.format(**ends)}) TO '{folder}/{number:05}.parquet' (FORMAT parquet)")


def policy(method: str, memory: str | None) -> dict[str, Any]:
    """Return what is asked: k = 10, and for t-first t = 0.2."""
    asked: dict[str, Any] = {"privacy": {"k": 10}, "method": {"name": method}, "output": {"format": "parquet"}}
    asked["engine"] = {"memory": memory} if memory else {}
    if method != "lattice":
        asked["privacy"] |= {"t": 0.2} if method == "t-first" else {}
        quasi = {f"q{i}": {"role": "quasi"} for i in range(8)}
        return {**asked, "columns": {**quasi, "pay": {"role": "confidential"}}}
    trees = {"age": {"intervals": [5, 10, 20, 40]}, "zip": {"mask": 5}, "year": {"intervals": [5, 10]}}
    kinds = {"age": "continuous", "year": "continuous"}
    columns: dict[str, Any] = {"disease": {"role": "confidential"}}
    for name in ("age", "sex", "zip", "education", "marital", "year"):
        tree = {"hierarchy": trees[name]} if name in trees else {}
        columns[name] = {"role": "quasi", "type": kinds.get(name, "nominal"), **tree}
    asked["method"]["suppression"] = 0.01
    return {**asked, "columns": columns}


def measured(method: str, records: int, memory: str | None, folder: Path, parts: int = 0) -> Row:
    """Run one case in this process."""
    import kinfold
    from kinfold import kernels
    from kinfold.methods import microaggregation
    from kinfold.methods.generalize import lattice
    from kinfold.methods.plan import list_kernels

    source = folder / f"{'people' if method == 'lattice' else 'numbers'}{records}{'' if parts else '.parquet'}"
    if not source.exists():
        _called("make", method, records, str(source), parts or "")  # a process of its own: its memory is not the run's
    kernels.warmup(modules=list_kernels(method))
    spent = [0.0]
    for module, name in ((microaggregation, "make_classes"), (lattice, "run")):
        setattr(module, name, _timed(getattr(module, name), spent))
    asked = policy(method, memory) | {"engine": {**policy(method, memory)["engine"], "spill": str(folder)}}
    if parts:
        asked |= {"source": {"parts": True}, "output": {**asked["output"], "parts": parts}}
    disk = _Disk(folder, source)
    began, clock = time.process_time(), time.perf_counter()
    release = kinfold.anonymize(source, asked)
    out = release.save(folder / f"out-{method}-{records}", force=True)
    seconds, wall = time.process_time() - began, time.perf_counter() - clock
    verified, classes = {}, release.verdict.classes
    if parts:
        del release
        began = time.process_time()
        assert kinfold.verify(out).holds
        verified = {"parts": parts, "verify": round(time.process_time() - began, 1)}
    return {
        "work": method, "records": records, "memory": memory or "", "cpu_seconds": round(seconds, 1),
        "method": round(spent[0], 1), "rest": round(seconds - spent[0], 1), "wall": round(wall, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2), "disk_gb": disk.peak(),
        "classes": classes, **verified,
    }  # fmt: skip


def _timed(call: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        began = time.process_time()
        try:
            return call(*arguments)
        finally:
            spent[0] += time.process_time() - began

    return timed


class _Disk:
    """The most bytes that a run has in a folder beside its source."""

    def __init__(self, folder: Path, source: Path) -> None:
        self._folder, self._but, self._most, self._over = folder, source, 0, threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self._watch.start()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            sizes = []
            for path in self._folder.rglob("*"):
                try:
                    inside = self._but in (path, path.parent)
                    sizes.append(path.stat().st_size if not inside and path.is_file() else 0)
                except OSError:
                    continue
            self._most = max(self._most, sum(sizes))

    def peak(self) -> float:
        self._over.set()
        self._watch.join()
        return round(self._most / 1e9, 2)


def alone(method: str, records: int, memory: str | None, folder: Path) -> Row:
    """Run one case in a process of its own."""
    row: Row = json.loads(_called(method, records, memory or "", str(folder)).splitlines()[-1])
    return row


def _called(*arguments: object) -> str:
    call = [sys.executable, "-m", "benchmarks.whole", *map(str, arguments)]
    return subprocess.run(call, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1]).stdout


def run(*, quick: bool = False) -> Iterator[Row]:
    """Yield a row for each case, and how the cost of generalization grows."""
    with tempfile.TemporaryDirectory() as made:
        sizes: list[int] = []
        costs: list[float] = []
        for method, records, memory in (*QUICK, *(() if quick else LONG)):
            row = alone(method, records, memory, Path(made))
            if method == "lattice" and not memory:
                sizes.append(records)
                costs.append(float(str(row["cpu_seconds"])))
            yield row
        yield {"work": "lattice", "exponent": round(exponent(sizes, costs), 2)}


if __name__ == "__main__":
    given = [*sys.argv[1:], "", "", ""]
    if given[0] == "make":
        if given[4]:
            people_in_parts(Path(given[3]), int(given[2]), int(given[4]))
        else:
            (people if given[1] == "lattice" else numbers)(Path(given[3]), int(given[2]))
    else:
        place = Path(given[3] or tempfile.mkdtemp())
        print(json.dumps(measured(given[0], int(float(given[1])), given[2] or None, place, int(given[4] or 0))))
