"""Sun, Wang, Li & Zhang 2012: entropy distance, dependency tree, key attributes, approximate microaggregation.

The data of the paper, an extract of 500,000 records and nine attributes from ipums.org, is not available. A seeded
census with the same cardinalities replaces it (`data.generate_census`). Figures 4 to 6 have no printed numbers, so the
claims of the text are compared.

MA is MDAV on all attributes; AMA groups on the key attributes of the dependency tree. Times are processor seconds of
this run. The dependence between attributes determines the loss of AMA, so it is varied too, from attributes that two
factors determine to attributes that have almost nothing in common.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.partition.approximate import (
    Dependency,
    approximate,
    dependency,
    entropy,
    joint_entropy,
    key_attributes,
)
from kinfold.methods.partition.mdav import mdav
from kinfold.papers.data import PaperData, generate_census, loss_ratio, smallest_class, standardize
from kinfold.papers.exhibits import ExhibitResult, Plot, PrintedValues, Values, count_true, plot_trials

PRINTED = PrintedValues("001")
Floats = NDArray[np.float64]
Row = dict[str, Any]

PARTITIONS: dict[str, Callable[[Floats, int], NDArray[Any]]] = {"MA": mdav, "AMA": approximate}
NORMALIZED_AMA = "AMA, normalized (ours)"  # with the distance of the paper divided by the joint entropy
RECORD_PERCENTAGES = (20, 40, 60, 80, 100)
CLUSTER_SIZES = (5, 10, 20, 50)
ATTRIBUTE_COUNTS = (5, 6, 7, 8, 9)
NOISE_LEVELS = (0.0, 0.2, 0.5, 1.0, 2.0, 3.0)
DEFAULT_K = 20  # of the paper
DEPENDENCE_RECORDS = 20_000  # records per noise level


def run_trial(method: str, x: Floats, k: int, at: float) -> Row:
    """Return time and loss of a method at one position of the x axis."""
    began = time.process_time()
    labels = PARTITIONS[method](x, k) if method in PARTITIONS else approximate(x, k, normalized=True)
    return {"series": method, "x": at, "seconds": time.process_time() - began, "loss": loss_ratio(x, labels)}


@cache
def run_trials() -> dict[str, list[Row]]:
    """Return the trials of Figures 4 to 6 by the varied parameter."""
    x = standardize(generate_census())
    for method in PARTITIONS:
        run_trial(method, x[:4000], DEFAULT_K, 0)  # compile before timing
    order = np.random.default_rng(2).permutation(len(x))
    parts = {percent: x[order[: len(x) * percent // 100]] for percent in RECORD_PERCENTAGES[:-1]}
    # all records, all attributes, k = 20: the last setting of two figures, and in the middle of the figure of k
    full = [run_trial(method, x, DEFAULT_K, 0) for method in PARTITIONS]

    def run_settings(settings: Iterable[tuple[Floats, int, float]], full_at: float) -> list[Row]:
        trials = [run_trial(method, x, k, at) for x, k, at in settings for method in PARTITIONS]
        return sorted([*trials, *({**row, "x": full_at} for row in full)], key=lambda row: row["x"])

    widths = ATTRIBUTE_COUNTS[:-1]
    return {
        "records": run_settings(((part, DEFAULT_K, percent) for percent, part in parts.items()), 100),
        "k": run_settings(((x, k, k) for k in CLUSTER_SIZES if k != DEFAULT_K), DEFAULT_K),
        "attributes": run_settings(((x[:, :width], DEFAULT_K, width) for width in widths), ATTRIBUTE_COUNTS[-1]),
    }


@cache
def measure_dependence() -> list[Row]:
    """Return the loss of MA, AMA and AMA with our distance by noise level."""
    trials = []
    for noise in NOISE_LEVELS:
        x = standardize(generate_census(DEPENDENCE_RECORDS, noise))
        trials += [run_trial(method, x, DEFAULT_K, noise) for method in (*PARTITIONS, NORMALIZED_AMA)]
    return trials


def align_series(rows: Sequence[Row], value: str, series: Sequence[str] = tuple(PARTITIONS)) -> list[tuple[float, ...]]:
    """Return the values of the series at each position of the x axis."""
    positions = sorted({row["x"] for row in rows})
    by_key = {(row["series"], row["x"]): row[value] for row in rows}
    return [tuple(by_key[name, at] for name in series) for at in positions]


TABLE_1 = np.array([[int(cell) for cell in row[1:]] for row in PRINTED.read_rows("table_1")])
ENTROPY_TOLERANCE = 1e-12  # entropies that differ by less are equal
ATTRIBUTES = tuple(f"A{i}" for i in range(1, 7))


@cache
def example_dependency() -> Dependency:
    """Return the dependency of the attributes of Table 1."""
    return dependency(TABLE_1)


def _section_1(_: PaperData) -> Values:
    one, three = TABLE_1[:, 0], TABLE_1[:, 2]
    events = {"P(A1 = 1)": one == 1, "P(A3 = 0)": three == 0, "P(A1 = 1, A3 = 0)": (one == 1) & (three == 0)}
    return {(name, "value"): str(Fraction(int(event.sum()), len(event))) for name, event in events.items()}


def _table_3(_: PaperData) -> Values:
    tables = {f"Table {i}": np.array(PRINTED.read_rows(f"table_{i}"))[:, :3] for i in (2, 3)}
    return {(name, "k"): smallest_class(quasi) for name, quasi in tables.items()}


def _section_3_1(_: PaperData) -> Values:
    one, two = TABLE_1[:, 0], TABLE_1[:, 1]
    both = joint_entropy(one, two)
    return {
        ("H(A1)", "value"): entropy(one),
        ("H(A2)", "value"): entropy(two),
        ("H(A1, A2)", "value"): both,
        ("H(A1|A2)", "value"): both - entropy(two),
        ("H(A2|A1)", "value"): both - entropy(one),
    }


def _definition_3(_: PaperData) -> Values:
    pairs = product(enumerate(ATTRIBUTES), enumerate(ATTRIBUTES))
    return {(one, other): float(example_dependency().matrix[i, j]) for (i, one), (j, other) in pairs}


def _proposition_1(_: PaperData) -> Values:
    """Count the ordered pairs of attributes with all three properties of the conditional entropy."""

    def keeps_entropy_laws(x: NDArray[np.int_], y: NDArray[np.int_]) -> bool:
        both = joint_entropy(x, y)
        return (
            -ENTROPY_TOLERANCE <= both - entropy(x) <= entropy(y) + ENTROPY_TOLERANCE
            and both - entropy(y) >= -ENTROPY_TOLERANCE
            and both <= entropy(x) + entropy(y) + ENTROPY_TOLERANCE
        )

    valid = (keeps_entropy_laws(TABLE_1[:, x], TABLE_1[:, y]) for x, y in product(range(6), repeat=2) if x != y)
    return {("attributes of Table 1", "pairs that keep all three properties"): count_true(valid)}


def _theorem_1(_: PaperData) -> Values:
    """Count the triples of attributes whose distance is non-negative, symmetric, and keeps the triangle inequality."""
    d = example_dependency().matrix
    valid = (
        d[a, b] >= -ENTROPY_TOLERANCE and d[a, b] == d[b, a] and d[a, b] + d[b, c] >= d[a, c] - ENTROPY_TOLERANCE
        for a, b, c in product(range(6), repeat=3)
    )
    return {("attributes of Table 1", "triples that keep all three properties"): count_true(valid)}


def _figure_2(_: PaperData) -> ExhibitResult:
    tree = example_dependency()
    keys = ", ".join(sorted(ATTRIBUTES[key] for key in tree.keys))
    return ExhibitResult(
        {
            ("deg(A2)", "value"): tree.degrees[1],
            ("deg(A3)", "value"): tree.degrees[2],
            ("key attributes", "value"): f"{{{keys}}}",
        },
        note="The minimum spanning tree: " + ", ".join(f"{ATTRIBUTES[a]}-{ATTRIBUTES[b]}" for a, b in tree.edges) + ".",
    )


def _theorem_2(_: PaperData) -> Values:
    """Return the largest number of key attributes of a tree with m vertices, over all degree sequences.

    The degrees of a tree are positive integers with the sum 2(m - 1).
    """
    values = {}
    for m in range(2, 8):
        sequences = (d for d in combinations_with_replacement(range(1, m), m) if sum(d) == 2 * (m - 1))
        values[f"m = {m}", "most key attributes"] = max(len(key_attributes(d[::-1])) for d in sequences)
    return values


def _table_4(_: PaperData) -> Values:
    named = zip(PRINTED.read_table("table_4"), generate_census(DEPENDENCE_RECORDS).T, strict=True)
    return {(row["Attribute"], "Number of distinct values"): len(np.unique(column)) for row, column in named}


def _figure_4(_: PaperData) -> ExhibitResult:
    trials = run_trials()
    records, sizes, widths = (align_series(trials[name], "seconds") for name in ("records", "k", "attributes"))
    gaps = [ma - ama for ma, ama in records]
    claims = (
        all(ama < ma for ma, ama in records),
        gaps[-1] > gaps[0],
        all(ama < ma for ma, ama in sizes),
        sizes[-1][0] > sizes[0][0],
        all(ama < ma for ma, ama in widths),
        widths[-1][0] > widths[0][0],
    )
    panels = {"% of 500,000 records": trials["records"], "k": trials["k"], "attributes": trials["attributes"]}
    plot = plot_trials("Figure 4: run time", panels, "seconds", ("", "processor seconds"))
    note = f"Processor seconds of MA and AMA at {_describe_pairs(records, '.2f')} of the records."
    return ExhibitResult(PRINTED.name_examples("Figure 4", claims), (plot,), note)


def _describe_pairs(pairs: Sequence[tuple[float, ...]], digits: str) -> str:
    """Return a text with the values of MA and AMA by percentage of the records."""
    return ", ".join(
        f"{at} %: {ma:{digits}} and {ama:{digits}}" for at, (ma, ama) in zip(RECORD_PERCENTAGES, pairs, strict=True)
    )


def _figure_5(_: PaperData) -> ExhibitResult:
    x = generate_census(DEPENDENCE_RECORDS)
    counts = {width: len(dependency(x[:, :width]).keys) for width in ATTRIBUTE_COUNTS}
    points = [
        {"x": width, "y": number, "series": method, "panel": "k = 20"}
        for width, keys in counts.items()
        for method, number in (("MA", width), ("AMA", keys))
    ]
    plot = Plot("Figure 5: key attributes", "attributes", "attributes used", points)
    fewer = all(2 * keys < width for width, keys in counts.items())
    return ExhibitResult({("5 to 9 attributes", "AMA uses less than half of the attributes"): fewer}, (plot,))


def _figure_6(_: PaperData) -> ExhibitResult:
    trials = run_trials()
    records, sizes = (align_series(trials[name], "loss") for name in ("records", "k"))
    claims = (
        all(ma < ama < 1.5 * ma for ma, ama in records),
        records[-1][1] - records[-1][0] <= 1.01 * (records[0][1] - records[0][0]),
        all(low[side] < high[side] for low, high in pairwise(sizes) for side in (0, 1)),
    )
    plot = plot_trials(
        "Figure 6: information loss",
        {"% of 500,000 records": trials["records"], "k": trials["k"]},
        "loss",
        ("", "SSE/SST"),
    )
    pairs = _describe_pairs(records, ".3f")
    return ExhibitResult(
        PRINTED.name_examples("Figure 6", claims),
        (plot,),
        f'SSE/SST of MA and AMA at {pairs} of the records. "A little more" means up to half more.',
    )


def _dependence(_: PaperData) -> ExhibitResult:
    trials = measure_dependence()
    losses = align_series(trials, "loss", ("MA", "AMA", NORMALIZED_AMA))
    figures = "; ".join(
        f"noise {at:g}: {ma:.3f}, {ama:.3f}, {ours:.3f}"
        for at, (ma, ama, ours) in zip(NOISE_LEVELS, losses, strict=True)
    )
    little_more = all(ma < ama < 1.5 * ma for ma, ama, _ in losses)
    plot = plot_trials(
        "Loss against dependence", {"k = 20": trials}, "loss", ("noise in addition to two common factors", "SSE/SST")
    )
    note = f"SSE/SST of MA, of AMA, and of AMA with our distance, normalized by entropy: {figures}."
    return ExhibitResult({("every dependence", "AMA loses a little more than MA"): little_more}, (plot,), note)


PAPER = PRINTED.make_paper(
    {
        "Section 1": _section_1,
        "Table 3": _table_3,
        "Proposition 1": _proposition_1,
        "Theorem 1": _theorem_1,
        "Section 3.1": _section_3_1,
        "Definition 3": _definition_3,
        "Figure 2": _figure_2,
        "Theorem 2": _theorem_2,
        "Table 4": _table_4,
        "Figure 4": _figure_4,
        "Figure 5": _figure_5,
        "Figure 6": _figure_6,
        "Section 4.3": _dependence,
    },
)
