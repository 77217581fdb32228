"""Time of every measure: a million records and ten quasi-identifiers, the linkage attack, and pycanon beside.

Then the same through `kinfold.measures.measurement`: tables read, paired and described, averaged and generalized.

python -m benchmarks.measures [records]
"""

from __future__ import annotations

import resource
import sys
import time
import warnings
from typing import TYPE_CHECKING
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from kinfold.measures.formulas import attackers as attacker
from kinfold.measures.formulas import attribute_disclosure as dominance
from kinfold.measures.formulas import attribute_disclosure as inference
from kinfold.measures.formulas import attribute_disclosure as interval
from kinfold.measures.formulas import categorical_loss as categorical
from kinfold.measures.formulas import categorical_loss as generalized
from kinfold.measures.formulas import numeric_loss as continuous
from kinfold.measures.formulas import numeric_loss as variation
from kinfold.measures.formulas import uniques, utility
from kinfold.measures.formulas.arrays import group_rows
from kinfold.measures.formulas.global_risk import (
    ClassificationMatrix,
    SizeCounts,
    WeightMatrix,
    dr_max,
    dr_min,
    dr_weighted,
    uncounted,
)
from kinfold.measures.formulas.linkage import LinkageRecords, linkage, linkage_credit
from kinfold.measures.formulas.probabilistic_loss import pil
from kinfold.measures.formulas.utility import propensity_mse
from kinfold.measures.measurement import measure_release
from kinfold.measures.pairing import TablePair
from kinfold.models import TCloseness
from kinfold.policy.binding import bind
from kinfold.policy.encoding import encode
from kinfold.policy.model import Policy
from kinfold.policy.terms import build_terms
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.schema import Role
from kinfold.tables.tally import tally_labels
from kinfold.verification import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

QUASI = 10


def timed(name: str, call: Callable[[], object]) -> tuple[str, float, object]:
    start = time.perf_counter()
    value = call()
    return name, time.perf_counter() - start, value


def release(n: int, k: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers in ten related columns, a release in classes of k neighbours along one direction, and its labels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)) @ rng.normal(size=(3, QUASI)) + 0.2 * rng.normal(size=(n, QUASI))
    labels = np.empty(n, np.int64)
    labels[np.argsort(x.sum(axis=1), kind="stable")] = np.arange(n) // k
    sizes = np.bincount(labels)
    means = np.column_stack([np.bincount(labels, x[:, j]) / sizes for j in range(QUASI)])
    return x, means[labels], labels


def numeric(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Callable[[], object]]]:
    moments: list[variation.Moments] = []
    yield "standardized, sse, sst, sse_ratio", lambda: continuous.sse_ratio(*continuous.standardize(x, y))
    yield "normalized_sse", lambda: continuous.normalized_sse(x, y)
    yield "il1, il1s", lambda: (variation.il1(x, y), variation.il1s(x, y))
    yield "moments", lambda: moments.extend([variation.Moments.from_table(x), variation.Moments.from_table(y)])
    parts = (variation.il2, variation.il3, variation.il4, variation.il5, variation.eigenvalue_shift)
    yield "il2 to il5, eigenvalues", lambda: [part(*moments) for part in parts]
    yield "pil", lambda: pil(x, y)
    yield "propensity_mse", lambda: propensity_mse(x, y)
    yield "interval by rank", lambda: interval.interval_credit(x, y).mean()
    yield "summaries", lambda: [utility.summarize(table[:, j]) for table in (x, y) for j in range(QUASI)]
    yield "regression", lambda: utility.regression_loss(x, y, target=0)
    kinds = np.digitize(x[:, 0], [-1.0, 1.0])
    yield "classification", lambda: utility.accuracy_loss(x[:, 1:], y[:, 1:], kinds, kinds)


def classes(x: np.ndarray, labels: np.ndarray) -> Iterator[tuple[str, Callable[[], object]]]:
    n = len(x)
    before: list[np.ndarray] = []
    matrix: list[ClassificationMatrix] = []
    yield "original classes", lambda: before.append(group_rows(np.round(x, 0))[0])
    yield "classification matrix", lambda: matrix.append(ClassificationMatrix.from_classes(before[0], labels))
    yield "size counts", lambda: (SizeCounts.from_classes(before[0]), SizeCounts.from_classes(labels))
    yield "dr_min, dr_max, uncounted", lambda: [part(matrix[0]) for part in (dr_min, dr_max, uncounted)]
    yield "dr_weighted", lambda: dr_weighted(matrix[0], WeightMatrix.equal_below(5, n))
    sizes = np.bincount(labels)
    yield "prosecutor", lambda: (attacker.prosecutor_max(sizes), attacker.prosecutor_mean(sizes))
    yield "journalist, marketer", lambda: attacker.marketer_risk(attacker.journalist_risk(labels, sizes * 10))
    yield "individual risk", lambda: attacker.individual_risk(labels, np.full(n, 10.0)).max()
    own = np.bincount(group_rows(np.round(x[:, :5], 0))[0])
    yield "zayatz", lambda: uniques.zayatz_uniques(own, 10 * n)
    yield "pitman", lambda: uniques.pitman_uniques(own, 10 * n)
    yield "dominance", lambda: dominance.find_revealing_classes(labels, x[:, 0])
    yield "inference, numbers", lambda: inference.inference_gain_numbers(labels, x[:, 0])
    yield (
        "discernibility, average size",
        lambda: (generalized.discernibility(sizes), generalized.average_class_size(sizes)),
    )


def coded(x: np.ndarray, y: np.ndarray, labels: np.ndarray) -> Iterator[tuple[str, Callable[[], object]]]:
    low = x.min(axis=0)
    width = (x.max(axis=0) - low) / 20
    a, b = (np.clip((table - low) / width, 0, 19).astype(np.int64) for table in (x, y))
    yield "dist", lambda: categorical.dist(a, b, [20] * QUASI)
    yield "ctbil, actbil, dimension 2", lambda: categorical.contingency_loss(a, b, [20] * QUASI)
    yield "ebil", lambda: categorical.ebil(a, b)
    yield "inference, categories", lambda: inference.inference_gain(labels, a[:, 0])
    levels = b % 4
    yield "prec", lambda: generalized.prec(levels, [3] * QUASI)
    yield "granularity", lambda: generalized.granularity(2.0**levels, [8] * QUASI)


def attack(n: int = 100_000) -> Iterator[tuple[str, Callable[[], object]]]:
    x, y, _ = release(n)
    x, y = continuous.standardize(x, y)
    linkage_credit(
        LinkageRecords.from_arrays(x[:4000]), LinkageRecords.from_arrays(x[:4000])
    )  # compile before the clock starts
    noisy = x + 0.2 * np.random.default_rng(1).normal(size=x.shape)
    shuffled = x[np.random.default_rng(2).permutation(n)] + 0.2
    yield (
        f"linkage, {n:,} in classes of 5",
        lambda: linkage(linkage_credit(LinkageRecords.from_arrays(x), LinkageRecords.from_arrays(y))),
    )
    yield (
        f"linkage, {n:,} against {n:,} with noise",
        lambda: linkage(linkage_credit(LinkageRecords.from_arrays(x), LinkageRecords.from_arrays(noisy))),
    )
    yield (
        f"linkage, {n:,} against {n:,} shuffled",
        lambda: linkage(linkage_credit(LinkageRecords.from_arrays(x), LinkageRecords.from_arrays(shuffled))),
    )
    free = np.random.default_rng(3).normal(size=(2, n, QUASI))
    yield (
        f"linkage, {n:,} against {n:,} unrelated",
        lambda: linkage(linkage_credit(LinkageRecords.from_arrays(free[0]), LinkageRecords.from_arrays(free[1]))),
    )


def wired(n: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """`measure_release` on tables in the engine: averages, then ranges; all but the linkage attack."""
    x, y, labels = release(n)
    x = np.round(x, 2)
    low, high = (np.empty((labels.max() + 1, QUASI)) for _ in range(2))
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(labels[order]) > 0))
    low[:], high[:] = np.minimum.reduceat(x[order], starts), np.maximum.reduceat(x[order], starts)
    original = arrow({f"q{j}": x[:, j] for j in range(QUASI)}, labels)
    averaged = arrow({f"q{j}": y[:, j] for j in range(QUASI)}, labels)
    ranges = {
        f"q{j}": np.array([f"[{a!r}, {b!r}]" for a, b in zip(low[:, j].tolist(), high[:, j].tolist(), strict=True)])
        for j in range(QUASI)
    }
    stated = arrow({name: column[labels] for name, column in ranges.items()}, labels)
    for name, released, average in (("averages", averaged, "mean"), ("ranges", stated, "generalize")):
        columns = {f"q{j}": {"role": "quasi", "type": "continuous", "average": average} for j in range(QUASI)}
        policy = {"privacy": {"k": 5}, "columns": columns | {"d": {"role": "confidential", "type": "nominal"}}}
        yield f"measure_release, {name}", measured(original, released, policy)


def arrow(columns: dict[str, np.ndarray], labels: np.ndarray) -> pa.Table:
    return pa.table(columns | {"d": pa.array((labels * 7919) % 7)})


def measured(original: pa.Table, released: pa.Table, policy: dict[str, object]) -> Callable[[], object]:
    """Read both tables before the clock starts, and leave the linkage attack out."""
    engine = DuckDB()
    before, after = engine.read(original), engine.read(released)
    bound = bind(Policy.of(policy), engine.schema(before))
    verdict = verify(engine, after, build_terms(bound, engine, before))
    attributes = encode(engine, before, bound.with_role(Role.QUASI))
    tables = TablePair(engine, before, after, np.arange(bound.rows))

    def measure() -> float:
        with patch("kinfold.measures.risk.measure_linkage", return_value=None):
            return float(measure_release(tables, bound, verdict, attributes)["risk"]["dr_max"])

    return measure


def t_beside_pycanon(n: int = 10_000) -> None:
    """t of an ordered column in 1,000 classes, by either."""
    import pandas as pd

    rng = np.random.default_rng(0)
    group, value = np.arange(n) // 10, rng.integers(0, 500, n)
    model = TCloseness(1.0, "v", "ordered")
    rows: list[tuple[str, Callable[[], object]]] = [
        ("t (ours, counting included)", lambda: float(model.distances(tally_labels(group, {"v": value})).max()))
    ]
    try:
        from pycanon import anonymity

        frame = pd.DataFrame({"q": group, "v": value})
        rows.append(("t (pycanon)", lambda: float(anonymity.t_closeness(frame, ["q"], ["v"]))))
    except ImportError as reason:
        print(f"pycanon is left out: {reason}")
    show(f"t of {n:,} records in {n // 10:,} classes", rows)


def beside_pycanon(n: int = 10_000) -> None:
    """The same numbers from pycanon, where it has them; it needs pandas."""
    import pandas as pd

    warnings.simplefilter("ignore")
    try:
        from pycanon.metrics import average_ecsize, discernability_metric, max_rir
    except ImportError as reason:
        print(f"pycanon is left out: {reason}")
        return
    _, y, _ = release(n, k=10)
    names = [f"q{j}" for j in range(QUASI)]
    frame = pd.DataFrame(y, columns=names)
    sizes: list[np.ndarray] = []
    rows = [
        ("classes (ours)", lambda: sizes.append(np.bincount(group_rows(y)[0]))),
        ("discernibility (ours)", lambda: generalized.discernibility(sizes[0])),
        ("average class size (ours)", lambda: generalized.average_class_size(sizes[0])),
        ("prosecutor_max (ours)", lambda: attacker.prosecutor_max(sizes[0])),
        ("discernability (pycanon)", lambda: discernability_metric(frame, frame, names)),
        ("average class size / k (pycanon)", lambda: average_ecsize(frame, frame, names)),
        ("max_rir (pycanon)", lambda: max_rir(frame, names)),
    ]
    show(f"beside pycanon, {n:,} records in {n // 10:,} classes", rows)


def show(title: str, rows) -> float:
    print(f"\n{title}")
    total = 0.0
    for name, call in rows:
        _, seconds, value = timed(name, call)
        total += seconds
        shown = f"{value:.6g}" if isinstance(value, float | int) else ""
        print(f"  {name:45} {seconds:9.3f} s  {shown}", flush=True)
    print(f"  {'in all':45} {total:9.3f} s")
    return total


def run(*, quick: bool = False) -> list[dict[str, object]]:
    """Print every part; return what a table of results keeps: the records and the seconds in all."""
    n = 50_000 if quick else 1_000_000
    x, y, labels = release(n)
    total = show(f"numbers, {n:,} records, {QUASI} quasi-identifiers", numeric(x, y))
    total += show("classes", classes(x, labels))
    total += show("categories", coded(x, y, labels))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"\neverything but linkage: {total:.1f} s, peak memory {peak:.2f} GiB")
    show(f"through kinfold.measures.measurement, {n:,} records, {QUASI} quasi-identifiers, without linkage", wired(n))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory {peak:.2f} GiB, both tables in the engine included")
    show("the linkage attack", attack())
    beside_pycanon()
    t_beside_pycanon()
    return [{"part": "everything but linkage", "records": n, "seconds": total}]


if __name__ == "__main__":
    run(quick="--quick" in sys.argv)
