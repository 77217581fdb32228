"""Blocks: what they cost in loss against no blocks, how their time grows, and the whole way from file to folder."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measuring import Row, exponent
from benchmarks.tables import DATA, mixture, replicated_census
from kinfold import kernels
from kinfold.methods.annealing import Budget
from kinfold.methods.blocks.cutting import cut, number_layers
from kinfold.methods.blocks.pool import NO_CHECKPOINTS, BlockLabels, run_blocks
from kinfold.methods.classes import improve_borders
from kinfold.methods.partition.geometry import compute_cost
from kinfold.methods.partition.refine import BlockSearch, default_blocks, search_rounds
from kinfold.methods.partition.repair import repair
from kinfold.methods.partition.requirement import Requirement
from kinfold.partition import mdav, t_first
from kinfold.progress import no_progress
from kinfold.tables.points import Points

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

K, WIDTH = 10, 8
WHOLE_WAY = """
import json, resource, sys, time
from pathlib import Path
from kinfold.pipeline import anonymize
table, out, method = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
began = time.process_time()
policy = {"privacy": {"k": 10}, "method": method, "output": {"format": "parquet"}}
policy["columns"] = {f"q{i}": {"role": "quasi-identifier"} for i in range(8)}
release = anonymize(table, policy)
release.save(out)
told = {"blocks": release.plan.blocks, "sse_ratio": release.measures["loss"]["sse_ratio"]}
told |= {"seconds": time.process_time() - began, "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}
print(json.dumps(told))
"""


def run(*, quick: bool) -> Iterator[Row]:
    kernels.warmup()
    tables = {"mixture": mixture} | ({"census": replicated_census} if (DATA / "census.csv").exists() else {})
    for name, make in tables.items():
        yield from price(name, make, [100_000] if quick else [100_000, 1_000_000])
    yield from promised_price(20_000 if quick else 100_000)
    yield from growth([100_000, 316_228] if quick else [100_000, 1_000_000, 10_000_000])
    for records in [100_000] if quick else [1_000_000, 10_000_000]:
        yield whole_way(records, {"name": "mdav", "refine": "auto"})


def price(name: str, make: Callable[[int, int], np.ndarray], sizes: Sequence[int]) -> Iterator[Row]:
    """Loss of MDAV on the whole table, in blocks, after their borders, and refined."""
    for n in sizes:
        points = Points.from_array(make(n, WIDTH))
        spread = float((points.numbers**2).sum())
        whole, seconds = timed(lambda points=points: mdav(points, K))
        exact = compute_cost(points, whole)
        row: Row = {"table": name, "records": n, "block": 0, "seconds": seconds, "loss": 100 * exact / spread}
        yield row | {"before borders": 0.0, "after borders": 0.0, "refined": 0.0}
        for block in (size for size in (100_000, 20_000, 5_000) if size < n):
            parts, seconds = timed(lambda points=points, block=block: stages(points, block))
            shares = [compute_cost(points, labels) / exact - 1 for labels in parts]
            row = {"table": name, "records": n, "block": block, "seconds": seconds}
            row |= {"loss": 100 * (shares[2] + 1) * exact / spread}
            yield row | dict(zip(("before borders", "after borders", "refined"), shares, strict=True))


def stages(points: Points, block: int) -> list[np.ndarray]:
    """The labels in blocks, after the borders, and after refinement by size."""
    found = [*partitioned(points, block)]
    work = BlockSearch(points, found[-1], K, 0)
    return [*found, search_rounds(work, Budget(default_blocks(len(points)), None)).labels]


def partitioned(points: Points, block: int) -> Iterator[np.ndarray]:
    rows = cut(points, np.arange(len(points)), block)
    labels, numbers = put_together(
        rows, run_blocks(rows, lambda r: lambda _: BlockLabels(mdav(points.take(r), K)), no_progress, NO_CHECKPOINTS)
    )
    yield labels
    yield improve_borders(points, labels, numbers, K, (), no_progress)


def put_together(blocks: list[np.ndarray], parts: list[BlockLabels]) -> tuple[np.ndarray, np.ndarray]:
    labels = np.empty(sum(map(len, blocks)), np.int32)
    numbers, classes = np.empty_like(labels), 0
    for number, (rows, part) in enumerate(zip(blocks, parts, strict=True)):
        labels[rows], numbers[rows] = part.labels + classes, number
        classes += int(part.labels.max()) + 1
    return labels, numbers


def promised_price(n: int) -> Iterator[Row]:
    """Loss of t-first on the whole table and in blocks, both after the repair."""
    x = mixture(n, WIDTH)
    points = Points.from_array(x)
    wage = 0.5 * x[:, 0] + np.random.default_rng(1).normal(size=n)
    for t in (0.02, 0.05):
        required = [Requirement.close(wage, t)]
        whole, seconds = timed(lambda t=t, required=required: _whole(points, wage, t, required))
        row: Row = {"table": "mixture", "records": n, "t": t}
        yield row | {"block": 0, "seconds": seconds, "before borders": 0.0, "after borders": 0.0}
        for block in (20_000, 5_000):
            found, seconds = timed(
                lambda t=t, block=block, required=required: [*_promised(points, wage, t, required, block)]
            )
            shares = [compute_cost(points, labels) / compute_cost(points, whole) - 1 for labels in found]
            yield row | {"block": block, "seconds": seconds, "before borders": shares[0], "after borders": shares[1]}


def _whole(points: Points, wage: np.ndarray, t: float, required: list[Requirement]) -> np.ndarray:
    return repair(points, t_first(points, K, confidential=wage, t=t), K, required).labels


def _promised(
    points: Points, wage: np.ndarray, t: float, required: list[Requirement], block: int
) -> Iterator[np.ndarray]:
    def work(rows: np.ndarray, _: object) -> BlockLabels:
        labels = t_first(points.take(rows), K, confidential=wage[rows], t=t)
        return BlockLabels(repair(points.take(rows), labels, K, [required[0].within(rows)]).labels)

    rows = cut(points, np.arange(len(points)), block, number_layers(required, K, block))
    labels, numbers = put_together(rows, run_blocks(rows, work, no_progress, NO_CHECKPOINTS))
    labels = repair(points, labels, K, required).labels
    yield labels
    yield improve_borders(points, labels, numbers, K, required, no_progress)


def growth(sizes: list[int]) -> Iterator[Row]:
    """Seconds of everything that makes the classes, refinement by size included, in blocks of 50,000."""
    spent = []
    for n in sizes:
        points = Points.from_array(mixture(n, WIDTH))
        found, seconds = timed(lambda points=points: stages(points, 50_000))
        spent.append(seconds)
        yield {
            "table": "mixture",
            "records": n,
            "seconds": seconds,
            "loss": 100 * compute_cost(points, found[-1]) / points.numbers.size,
        }
    yield {"table": "mixture", "from": sizes[0], "to": sizes[-1], "exponent": exponent(sizes, spent)}


def whole_way(records: int, method: dict[str, object]) -> Row:
    """A Parquet file to a verified folder, in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        table = Path(place, "table.parquet")
        x = mixture(records, WIDTH).round(4)
        pq.write_table(pa.table({f"q{i}": column for i, column in enumerate(x.T)}), table)
        del x
        words = [sys.executable, "-c", WHOLE_WAY, str(table), f"{place}/out", json.dumps(method)]
        told = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return {"way": "whole", "records": records, "method": str(method["name"]), **told}


def timed(call: Callable[[], object]) -> tuple[object, float]:
    began = time.process_time()
    return call(), time.process_time() - began
