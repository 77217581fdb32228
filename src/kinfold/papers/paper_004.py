"""Soria-Comas, Domingo-Ferrer, Sánchez & Martínez 2015: t-closeness by microaggregation, on Census and on discharges.

Table 3 matches in every cell. The printed algorithms do not give Tables 1 and 2; some of their averages are not 1,080
records over a number of clusters. The figures have no printed numbers, so the claims of the text are compared. The
patient discharges are not available; a stand-in is generated.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.measures.formulas.numeric_loss import normalized_sse
from kinfold.methods.partition.k_first import k_first
from kinfold.methods.partition.t_first import t_first
from kinfold.methods.partition.t_merge import t_merge
from kinfold.models.t_closeness import ordered_work
from kinfold.papers.data import PaperData, class_means, generate_discharges, standardize
from kinfold.papers.exhibits import (
    CellKey,
    CellValue,
    Compute,
    ExhibitResult,
    PrintedValues,
    Values,
    count_true,
    plot_trials,
)
from kinfold.tables.tally import tally_labels

PRINTED = PrintedValues("004")
Floats = NDArray[np.float64]
Partition = Callable[..., NDArray[Any]]
Trial = dict[str, Any]

CONFIDENTIAL = {"MCD": "FEDTAX", "HCD": "FICA"}
QUASI = ("TAXINC", "POTHVAL")
T_VALUES = tuple(dict.fromkeys(float(name.split()[2]) for name in PRINTED.read_columns("table_3")[2:]))
K_VALUES = tuple(dict.fromkeys(int(row["k"]) for row in PRINTED.read_table("table_3")))
ALGORITHMS: dict[str, Partition] = {"Algorithm 1": t_merge, "Algorithm 2": k_first, "Algorithm 3": t_first}
FIGURE_6 = (0.02, 0.05, 0.09, 0.13, 0.17, 0.21, 0.25)
FIGURE_7 = (0.05, 0.13, 0.25)
ALGORITHM_2_T_VALUES = (0.05, 0.25)  # on the discharges; its time grows with the square of the records


def read_quasi(data: PaperData, records: int | None = None) -> Floats:
    """Return the quasi-identifiers of Census, standardized."""
    census = data.columns("census.csv")
    return standardize(np.column_stack([census[name] for name in QUASI])[:records])


def read_cluster_sizes(number: int) -> dict[CellKey, str]:
    """Return the printed smallest and average sizes of a table."""
    return PRINTED.read_cells(f"table_{number}", "k = {k}, {size}")


def _table(number: int) -> Compute:
    def compute(data: PaperData) -> ExhibitResult:
        values: dict[CellKey, CellValue] = {}
        partition, x = ALGORITHMS[f"Algorithm {number}"], read_quasi(data)
        for name, k, t in product(CONFIDENTIAL, K_VALUES, T_VALUES):
            confidential = data.columns("census.csv")[CONFIDENTIAL[name]]
            classes = np.bincount(partition(x, k, confidential=confidential, t=t))
            values[f"k = {k}, minimum", f"t = {t:.2f} {name}"] = int(classes.min())
            values[f"k = {k}, average", f"t = {t:.2f} {name}"] = round(float(classes.mean()), 3)
        return ExhibitResult(values, note=_count_impossible(number))

    return compute


def _count_impossible(number: int) -> str:
    """Return a note on printed averages that no number of clusters gives."""
    printed = [int(text) for (row, _), text in read_cluster_sizes(number).items() if row.endswith("average")]
    counts = range(1, 1081)
    possible = {round(1080 / clusters) for clusters in counts} | {1080 // clusters for clusters in counts}
    wrong = sum(average not in possible for average in printed)
    return f"{wrong} of the {len(printed)} printed averages belong to no number of clusters." if wrong else ""


def _compare_averages(_: PaperData) -> Values:
    """Count the printed averages of Table 3 that are smaller than those of Table 2."""
    second, third = read_cluster_sizes(2), read_cluster_sizes(3)
    pairs = [(int(third[key]), int(text)) for key, text in second.items() if key[0].endswith("average")]
    return PRINTED.name_examples("Tables 2 and 3", [count_true(one < other for one, other in pairs)])


def _find_bounds(
    place: str, choose: Callable[..., Fraction], list_clusters: Callable[[int, int], Iterable[tuple[int, ...]]]
) -> Compute:
    """Return the computation of the least or greatest distance over all clusters, for n and k of each printed row."""

    def compute(_: PaperData) -> Values:
        values = {}
        for row, column in PRINTED.read_examples(place):
            n, k = (int(part.split(" = ")[1]) for part in row.split(", "))
            values[row, column] = str(choose(rank_distance(n, cluster) for cluster in list_clusters(n, k)))
        return values

    return compute


def list_spread_clusters(n: int, k: int) -> Iterable[tuple[int, ...]]:
    """Return all clusters with one of n ranks from each of k groups of consecutive ranks."""
    return product(*(range(i * n // k, (i + 1) * n // k) for i in range(k)))


def rank_distance(n: int, cluster: Sequence[int]) -> Fraction:
    """Return the exact earth mover's distance of a cluster of ranks to all n ranks.

    >>> rank_distance(4, (0, 2))
    Fraction(1, 6)
    """
    inside = [Fraction(sum(rank <= i for rank in cluster), len(cluster)) for i in range(n)]
    return sum((abs(share - Fraction(i + 1, n)) for i, share in enumerate(inside)), Fraction(0)) / (n - 1)


def _eq_4(_: PaperData) -> ExhibitResult:
    """Return whether Expression (4) with the ceiling gives the sizes of Table 3."""
    printed = read_cluster_sizes(3)
    with_ceiling = {}
    for k, t in product(K_VALUES, T_VALUES):
        size = max(k, math.ceil(1080 / (2 * 1079 * t + 1)))
        with_ceiling[k, t] = size + math.ceil((1080 % size) / (1080 // size))
    same = [str(size) == printed[f"k = {k}, minimum", f"t = {t:.2f} MCD"] for (k, t), size in with_ceiling.items()]
    note = f"With the ceiling {len(same) - sum(same)} of {len(same)} cluster sizes are not those of the table."
    return ExhibitResult({("the ceiling of Algorithm 3", "gives Table 3"): all(same)}, note=note)


def _section_7(data: PaperData) -> Values:
    distances = []
    for name, records, t in (("FICA", 1080, 0.25), ("FEDTAX", 1079, 0.05)):
        confidential = data.columns("census.csv")[name][:records]
        labels = t_first(read_quasi(data, records), 2, confidential=confidential, t=t)
        tally = tally_labels(labels.astype(np.int64), {"column": confidential})
        distances.append(float(ordered_work(tally.spreads["column"], tally.sizes).distances().max()))
    return PRINTED.name_examples("Section 7", distances)


def multiple_r(x: Floats, column: Floats) -> float:
    """Return the multiple correlation of a column with others."""
    inside = np.column_stack([np.ones(len(x)), x])
    fitted = inside @ np.linalg.lstsq(inside, column, rcond=None)[0]
    return float(np.corrcoef(fitted, column)[0, 1])


def _section_8_1(data: PaperData) -> ExhibitResult:
    correlations = [multiple_r(read_quasi(data), data.columns("census.csv")[name]) for name in CONFIDENTIAL.values()]
    return ExhibitResult(PRINTED.name_examples("Section 8.1", correlations), note="Ours is the multiple correlation.")


def _section_8_2(_: PaperData) -> Values:
    x, charge = generate_discharges()
    return PRINTED.name_examples("Section 8.2", (len(x), x.shape[1], multiple_r(x, charge)))


def run_trial(algorithm: str, x: Floats, column: Floats, k: int, t: float) -> Trial:
    """Return the loss of an algorithm on a table (Eq. (5), by range) and its run time."""
    began = time.process_time()
    labels = ALGORITHMS[algorithm](standardize(x), k, confidential=column, t=t)
    seconds = time.process_time() - began
    return {"series": algorithm, "k": k, "t": t, "loss": normalized_sse(x, class_means(x, labels)), "seconds": seconds}


def _run_census_trials(data: PaperData, name: str, every_k: Iterable[int], every_t: Iterable[float]) -> list[Trial]:
    census = data.columns("census.csv")
    x = np.column_stack([census[quasi] for quasi in QUASI])
    confidential = census[CONFIDENTIAL[name]]
    return [run_trial(algorithm, x, confidential, k, t) for algorithm, k, t in product(ALGORITHMS, every_k, every_t)]


@cache
def _run_patient_trials() -> list[Trial]:
    x, charge = generate_discharges()
    for algorithm in ALGORITHMS:
        run_trial(algorithm, x[:4000], charge[:4000], 2, 0.25)  # compile before timing
    levels = {each: ALGORITHM_2_T_VALUES if each == "Algorithm 2" else FIGURE_6 for each in ALGORITHMS}
    return [run_trial(each, x, charge, 2, t) for each, every_t in levels.items() for t in every_t]


def _count_better(trials: Sequence[Trial], better: str, worse: str) -> str:
    """Return at how many common settings one algorithm loses less than another."""
    lost = {(trial["series"], trial["k"], trial["t"]): trial["loss"] for trial in trials}
    pairs = [(lost[better, k, t], lost[worse, k, t]) for name, k, t in lost if name == better and (worse, k, t) in lost]
    return count_true(one < other for one, other in pairs)


def _compare_algorithms(trials: Sequence[Trial], row: str) -> dict[CellKey, CellValue]:
    pairs = (("Algorithm 2", "Algorithm 1"), ("Algorithm 3", "Algorithm 2"))
    named = {f"values of t at which {one} loses less than {other}": (one, other) for one, other in pairs}
    return {(row, name): _count_better(trials, *pair) for name, pair in named.items()}


def _figure_6(data: PaperData) -> ExhibitResult:
    panels = {name: _run_census_trials(data, name, [2], FIGURE_6) for name in ("HCD", "MCD")}
    values: dict[CellKey, CellValue] = {}
    for name, trials in panels.items():
        values |= _compare_algorithms(trials, name)
    axes = ("t", "normalized SSE")
    return ExhibitResult(values, (plot_trials("Figure 6: normalized SSE, k = 2, Census", panels, "loss", axes, "t"),))


def _figure_6_patients(_: PaperData) -> ExhibitResult:
    trials = _run_patient_trials()
    title, axes = "Figure 6: normalized SSE, k = 2, discharges", ("t", "normalized SSE")
    plot = plot_trials(title, {"a stand-in for Patient Discharge": trials}, "loss", axes, "t")
    return ExhibitResult(_compare_algorithms(trials, "Patient Discharge"), (plot,))


def _figure_5(_: PaperData) -> ExhibitResult:
    trials = _run_patient_trials()
    seconds = {(trial["series"], trial["t"]): trial["seconds"] for trial in trials}
    first, last = ALGORITHM_2_T_VALUES
    longest = all(
        seconds["Algorithm 2", t] > seconds[other, t]
        for other, t in product(("Algorithm 1", "Algorithm 3"), ALGORITHM_2_T_VALUES)
    )
    claims = (
        longest,
        seconds["Algorithm 3", FIGURE_6[0]] < seconds["Algorithm 1", FIGURE_6[0]],
        seconds["Algorithm 2", last] < seconds["Algorithm 2", first],
    )
    title, axes = "Figure 5: run time, k = 2, 23,435 discharges", ("t", "processor seconds")
    plot = plot_trials(title, {"a stand-in for Patient Discharge": trials}, "seconds", axes, "t")
    return ExhibitResult(PRINTED.name_examples("Figure 5", claims), (replace(plot, log=True),))


def _figure_7(data: PaperData) -> ExhibitResult:
    trials = _run_census_trials(data, "MCD", range(2, 31), FIGURE_7)
    panels = {f"t = {t}": [trial for trial in trials if trial["t"] == t] for t in FIGURE_7}
    grown = {name: _loss_growth([each for each in trials if each["series"] == name]) for name in ALGORITHMS}
    claim = "values of k and t at which Algorithm 3 loses less than"
    values: dict[CellKey, CellValue] = {
        ("MCD", f"{claim} {other}"): _count_better(trials, "Algorithm 3", other)
        for other in ("Algorithm 1", "Algorithm 2")
    }
    values["MCD", "the loss of Algorithm 3 grows most with k"] = max(grown, key=grown.__getitem__) == "Algorithm 3"
    spikes = {name: find_spikes([each for each in trials if each["series"] == name]) for name in ALGORITHMS}
    plot = plot_trials("Figure 7: normalized SSE by k, MCD", panels, "loss", ("k", "normalized SSE"), "k")
    return ExhibitResult(values | _compare_spikes(spikes), (plot,), _describe_spikes(spikes))


def find_spikes(trials: Sequence[Trial]) -> list[tuple[int, float]]:
    """Return k and height of each spike: a loss above the losses at k - 1 and k + 1 for the same t.

    >>> find_spikes([{"k": k, "t": 0.1, "loss": loss} for k, loss in ((2, 1.0), (3, 4.0), (4, 2.0), (5, 3.0))])
    [(3, 2.0)]
    """
    lost = {(trial["t"], trial["k"]): trial["loss"] for trial in trials}
    heights = [
        (k, loss - max(lost[t, k - 1], lost[t, k + 1]))
        for (t, k), loss in lost.items()
        if (t, k - 1) in lost and (t, k + 1) in lost
    ]
    return [(k, height) for k, height in heights if height > 0]


def _compare_spikes(spikes: dict[str, list[tuple[int, float]]]) -> dict[CellKey, CellValue]:
    """Return the claims of the text about the spikes, computed here."""
    divides = "every spike is at a k that does not divide 1080"
    values: dict[CellKey, CellValue] = {
        (name, divides): all(1080 % k for k, _ in spikes[name]) for name in ("Algorithm 1", "Algorithm 2")
    }
    fewest = min(len(spikes["Algorithm 1"]), len(spikes["Algorithm 2"]))
    values["Algorithm 3", "has fewer spikes than Algorithms 1 and 2"] = len(spikes["Algorithm 3"]) < fewest
    highest = {name: max((height for _, height in heights), default=0.0) for name, heights in spikes.items()}
    values["Algorithm 1", "has the highest spikes"] = max(highest, key=highest.__getitem__) == "Algorithm 1"
    return values


def _describe_spikes(spikes: dict[str, list[tuple[int, float]]]) -> str:
    counts = (
        f"{name} {len(heights)}, of which {sum(1080 % k == 0 for k, _ in heights)} where k divides 1,080"
        for name, heights in spikes.items()
    )
    return f"Spikes over k = 3 to 29 and {len(FIGURE_7)} values of t: {'; '.join(counts)}."


def _loss_growth(trials: Sequence[Trial]) -> float:
    """Return the loss at the largest k minus the loss at the smallest, averaged over t."""
    ends = [[trial["loss"] for trial in trials if trial["k"] == k] for k in (2, 30)]
    return float(np.mean(ends[1]) - np.mean(ends[0]))


PAPER = PRINTED.make_paper(
    {
        "Proposition 1": _find_bounds("Proposition 1", min, lambda n, k: combinations(range(n), k)),
        "Proposition 2": _find_bounds("Proposition 2", max, list_spread_clusters),
        "Eq. (4)": _eq_4,
        "Section 7": _section_7,
        "Section 8.1": _section_8_1,
        "Table 1": _table(1),
        "Table 2": _table(2),
        "Table 3": _table(3),
        "Tables 2 and 3": _compare_averages,
        "Section 8.2": _section_8_2,
        "Figure 5": _figure_5,
        "Figure 6": _figure_6,
        "Figure 6, Patient Discharge": _figure_6_patients,
        "Figure 7": _figure_7,
    },
)
