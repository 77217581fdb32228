"""Every method on one table of a million records and four quasi-identifiers: processor seconds, memory, loss.

    python -m benchmarks every                               all methods; with --quick on 100,000 records
    python -m benchmarks.every METHOD RECORDS FOLDER         one run; its table is made first, in the folder

The table is mixed: two quasi-identifiers are numbers and two are categories, and nearly all records are different. Each
run has a process of its own, so that its peak is its own. Kernels are compiled before.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring import Row
from kinfold.policy.registry import list_methods

RECORDS, QUICK = 1_000_000, 100_000
LONGEST = 3600  # seconds after which a run is stopped, and said to have been
PEOPLE = """
SELECT 20 + CAST(floor(70 * pow(hash(i * 7 + 1) % 100000 / 100000.0, 1.3)) AS INT) AS age,
       1000 + CAST(floor(2000 * pow(hash(i * 7 + 3) % 100000 / 100000.0, 2)) AS INT) AS income,
       printf('%05d', 10000 + (hash(i * 7 + 2) % 400) * 97) AS zip,
       chr(97 + CAST(hash(i * 7 + 4) % 8 AS INT)) AS education,
       chr(65 + CAST(floor(6 * pow(hash(i * 11 + 7) % 1000 / 1000.0, 1.5)) AS INT)) AS disease
FROM range({records}) t(i)
"""
HIERARCHIES: dict[str, Any] = {
    "age": {"intervals": [5, 10, 20, 40]},
    "income": {"intervals": [50, 200, 1000]},
    "zip": {"mask": 5},
}


def policy(method: str) -> dict[str, Any]:
    """Return what is asked: k = 10, and t = 0.2 of the methods that need a t."""
    declared = list_methods()[method]
    quasi = ("age",) if "one number" in declared.needs else ("age", "income", "zip", "education")
    generalizes = declared.family == "generalize" and "hierarchies" in declared.needs
    columns: dict[str, Any] = {"disease": {"role": "confidential", "type": "nominal"}}
    for name in quasi:
        kind = "continuous" if name in ("age", "income") else "nominal"
        tree = {"hierarchy": HIERARCHIES[name]} if generalizes and name in HIERARCHIES else {}
        columns[name] = {"role": "quasi", "type": kind, **tree}
    privacy = {"k": 10} | ({"t": 0.2} if "t" in declared.needs else {})
    output = {"format": "parquet", "others": "drop"}
    return {"privacy": privacy, "method": {"name": method}, "output": output, "columns": columns}


def measured(method: str, records: int, folder: Path) -> Row:
    """Run one method in this process, from the Parquet file to the verified folder."""
    import duckdb

    import kinfold
    from kinfold import kernels
    from kinfold.methods.plan import list_kernels

    source = folder / f"people{records}.parquet"
    if not source.exists():
        with duckdb.connect(config={"memory_limit": "1GB"}) as made:
            made.execute(f"COPY ({PEOPLE.format(records=records)}) TO '{source}' (FORMAT parquet)")
    kernels.warmup(modules=list_kernels(method))
    began = time.process_time()
    release = kinfold.anonymize(source, policy(method))
    release.save(folder / f"out-{method}", force=True)
    return {
        "method": method, "records": records, "cpu_seconds": round(time.process_time() - began, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "loss": round(float(release.measures["loss"]["overall"]), 4), "classes": release.verdict.classes,
        "suppressed": release.measures["suppressed"],
    }  # fmt: skip


def alone(method: str, records: int, folder: Path) -> Row:
    """Run one method in a process of its own."""
    call = [sys.executable, "-m", "benchmarks.every", method, str(records), str(folder)]
    try:
        done = subprocess.run(
            call, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1], timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return {"method": method, "records": records, "stopped_after": LONGEST}
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def run(*, quick: bool = False) -> Iterator[Row]:
    """Yield a row for each method."""
    with tempfile.TemporaryDirectory() as made:
        for method in list_methods():
            yield alone(method, QUICK if quick else RECORDS, Path(made))


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(float(sys.argv[2])), Path(sys.argv[3]))))
