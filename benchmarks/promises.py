"""What it takes to keep t and l on Adult: the whole way from a file to its classes, and the partition alone.

`before` are processor seconds of the same command before classes were repaired with an index (some on 8,000 records).
The tables of ten times as many records hold each row ten times, with ages that differ by up to two years.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import kinfold
from benchmarks.measuring import Row, seconds
from kinfold import kernels

ADULT = Path(os.environ.get("KINFOLD_DATA", Path(__file__).parents[2] / "shared" / "data")) / "adult" / "adult.csv"
EIGHT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
FOUR = ("sex", "age", "marital-status", "education")
# quasi-identifiers, the confidential column, what is promised, seconds wanted, seconds before
ASKED = (
    (("age", "sex"), "salary-class", {"t": 0.2}, 3, "127"),
    (("age", "sex"), "salary-class", {"t": 0.15}, 3, "over 200"),
    (("age", "sex"), "salary-class", {"t": 0.05}, 3, ""),
    (EIGHT, "salary-class", {"t": 0.2}, 8, "72"),
    (FOUR, "occupation", {"t": 0.2}, 8, "155 (8,000)"),
    (EIGHT, "salary-class", {"l": 2}, 3, "21"),
    (("age", "sex"), "salary-class", {"t": 0.0001}, 3, ""),
)
TIMES = 10


def run(*, quick: bool) -> Iterator[Row]:
    """Give a row for each request; without `quick` also on ten times as many records, with the exponent."""
    if not ADULT.exists():
        return
    kernels.warmup()
    for asked in ASKED:
        yield _measured(ADULT, *asked)
    if quick:
        return
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.csv"
        large.write_text(tenfold(ADULT.read_text("utf-8")), "utf-8")
        for asked in ASKED:
            small = _measured(ADULT, *asked)
            row = _measured(large, *asked)
            growth = np.log(float(str(row["cpu_seconds"])) / float(str(small["cpu_seconds"]))) / np.log(TIMES)
            yield {**row, "exponent": round(float(growth), 2)}


def tenfold(text: str) -> str:
    """Return the table with each row ten times, and ages that differ by up to two years."""
    head, *rows = text.splitlines()
    age = head.split(";").index("age")
    chance = np.random.default_rng(0)
    kept = [head]
    for row in rows:
        cells = row.split(";")
        ages = [str(int(cells[age]) + int(step)) for step in chance.integers(-2, 3, TIMES)]
        kept += [";".join([*cells[:age], each, *cells[age + 1 :]]) for each in ages]
    return "\n".join(kept) + "\n"


def _measured(
    table: Path, quasi: tuple[str, ...], column: str, promise: dict[str, float], within: int, before: str
) -> Row:
    found: list[object] = []

    def release() -> None:
        try:
            made = kinfold.anonymize(
                table, quasi=list(quasi), confidential=[column], k=5, refine=0, others="drop", **promise
            )
            found.append((made.measures.to_dict()["classes"], made.measures.to_dict()["loss"]["sse_ratio"]))
        except kinfold.Unreachable:
            found.append(("unreachable", ""))

    spent = seconds(release)
    classes, lost = found[0]  # type: ignore[misc]
    asked = ", ".join(f"{name} = {value}" for name, value in promise.items())
    return {
        "quasi": len(quasi), "column": column, "asked": asked, "cpu_seconds": round(spent, 2), "wanted": within,
        "before": before, "classes": classes, "sse_ratio": lost,
    }  # fmt: skip
