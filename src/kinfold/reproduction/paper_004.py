"""Soria-Comas, Domingo-Ferrer, Sánchez & Martínez 2015: t-closeness by microaggregation, on Census and on discharges.

Table 3 comes out in every cell. Tables 1 and 2 do not come out of the printed algorithms: some of their averages cannot
be 1,080 records over a whole number of clusters; they are for orientation. The figures have no printed numbers, so
that what the text says of them is compared. The patient discharges were not published: a stand-in is generated.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.measures.continuous import normalized_sse
from kinfold.methods.partition.k_first import k_first
from kinfold.methods.partition.t_first import t_first
from kinfold.methods.partition.t_merge import t_merge
from kinfold.models.emd import ordered
from kinfold.reproduction.bench import Bench, class_means, standardized
from kinfold.reproduction.expectation import (
    Due,
    Exhibit,
    Expectation,
    Key,
    Ours,
    Paper,
    Plot,
    Worked,
    expect,
    mentioned,
)
from kinfold.reproduction.printed import cells, columns, examples, table
from kinfold.reproduction.stand_ins import patients
from kinfold.rows.tally import of_labels

Floats = NDArray[np.float64]
Partition = Callable[..., NDArray[Any]]

CENSUS = ("census.csv",)
SETS = {"MCD": "FEDTAX", "HCD": "FICA"}
QUASI = ("TAXINC", "POTHVAL")
LEVELS = tuple(dict.fromkeys(float(name.split()[2]) for name in columns("004", "table_3")[2:]))
SIZES = tuple(dict.fromkeys(int(row["k"]) for row in table("004", "table_3")))
ALGORITHMS: dict[str, Partition] = {"Algorithm 1": t_merge, "Algorithm 2": k_first, "Algorithm 3": t_first}
FIGURE_6 = (0.02, 0.05, 0.09, 0.13, 0.17, 0.21, 0.25)
FIGURE_7 = (0.05, 0.13, 0.25)
SLOW = (0.05, 0.25)  # where Algorithm 2, which grows with the square of the records, is run on the discharges
NOT_OURS = "does not come out of the printed algorithm; some of the printed averages are impossible"


def quasi(bench: Bench, records: int | None = None) -> Floats:
    """Return the quasi-identifiers of Census, standardized."""
    census = bench.columns("census.csv")
    return standardized(np.column_stack([census[name] for name in QUASI])[:records])


def sizes(bench: Bench, algorithm: str, name: str, k: int, t: float) -> NDArray[Any]:
    """Return the sizes of the classes that an algorithm forms on Census."""
    column = bench.columns("census.csv")[SETS[name]]
    return np.bincount(ALGORITHMS[algorithm](quasi(bench), k, confidential=column, t=t))


def cluster_sizes(number: int) -> dict[Key, str]:
    """Return the smallest and average sizes that a table prints."""
    return cells("004", f"table_{number}", "k = {k}, {size}")


def _table(algorithm: str) -> Callable[[Bench], Worked]:
    def work(bench: Bench) -> Worked:
        values: dict[Key, Ours] = {}
        for name, k, t in product(SETS, SIZES, LEVELS):
            found = sizes(bench, algorithm, name, k, t)
            values[f"k = {k}, minimum", f"t = {t:.2f} {name}"] = int(found.min())
            values[f"k = {k}, average", f"t = {t:.2f} {name}"] = round(float(found.mean()), 3)
        return Worked(values, note=_impossible(algorithm))

    return work


def _impossible(algorithm: str) -> str:
    """Return how many printed averages no whole number of clusters gives."""
    printed = [int(text) for (row, _), text in cluster_sizes(int(algorithm[-1])).items() if row.endswith("average")]
    possible = {round(1080 / clusters) for clusters in range(1, 1081)} | {
        1080 // clusters for clusters in range(1, 1081)
    }
    wrong = sum(average not in possible for average in printed)
    return f"{wrong} of the {len(printed)} printed averages are of no whole number of clusters." if wrong else ""


def _smaller(_: Bench) -> Worked:
    """Count the averages of Table 3 that are smaller than those of Table 2, both as printed."""
    second, third = cluster_sizes(2), cluster_sizes(3)
    pairs = [(int(third[key]), int(text)) for key, text in second.items() if key[0].endswith("average")]
    (key,) = examples("004", "Tables 2 and 3")
    return Worked({key: f"{sum(one < other for one, other in pairs)} of {len(pairs)}"})


def _propositions(choose: Callable[[Iterable[Fraction]], Fraction], name: str) -> Callable[[Bench], Worked]:
    def work(_: Bench) -> Worked:
        values: dict[Key, Ours] = {}
        for row, column in examples("004", name):
            n, k = (int(part.split(" = ")[1]) for part in row.split(", "))
            clusters = combinations(range(n), k) if name.endswith("1") else product(*_subsets(n, k))
            values[row, column] = str(choose(rank_distance(n, cluster) for cluster in clusters))
        return Worked(values)

    return work


def _subsets(n: int, k: int) -> list[range]:
    return [range(i * n // k, (i + 1) * n // k) for i in range(k)]


def rank_distance(n: int, cluster: Sequence[int]) -> Fraction:
    """Return the earth mover's distance of a cluster of ranks to all n, exactly.

    >>> rank_distance(4, (0, 2))
    Fraction(1, 6)
    """
    inside = [Fraction(sum(rank <= i for rank in cluster), len(cluster)) for i in range(n)]
    return sum((abs(share - Fraction(i + 1, n)) for i, share in enumerate(inside)), Fraction(0)) / (n - 1)


def _eq_4(_: Bench) -> Worked:
    """Return whether the sizes of Table 3 come out where Expression (4) takes the ceiling."""
    printed = cluster_sizes(3)
    with_ceiling = {}
    for k, t in product(SIZES, LEVELS):
        size = max(k, math.ceil(1080 / (2 * 1079 * t + 1)))
        with_ceiling[k, t] = size + math.ceil((1080 % size) / (1080 // size))
    same = [str(size) == printed[f"k = {k}, minimum", f"t = {t:.2f} MCD"] for (k, t), size in with_ceiling.items()]
    note = f"With the ceiling {len(same) - sum(same)} of {len(same)} cluster sizes are not those of the table."
    return Worked({("the ceiling of Algorithm 3", "gives Table 3"): all(same)}, note=note)


def farthest(labels: NDArray[Any], column: Floats) -> float:
    """Return the largest distance of a class to the table, over distinct values."""
    tally = of_labels(labels.astype(np.int64), {"column": column})
    return float(ordered(tally.spreads["column"], tally.sizes).max())


def _section_7(bench: Bench) -> Worked:
    values: dict[Key, Ours] = {}
    for (row, column), name, records, t in zip(
        examples("004", "Section 7"), ("FICA", "FEDTAX"), (1080, 1079), (0.25, 0.05), strict=True
    ):
        confidential = bench.columns("census.csv")[name][:records]
        labels = t_first(quasi(bench, records), 2, confidential=confidential, t=t)
        values[row, column] = farthest(labels, confidential)
    return Worked(values)


def multiple_r(x: Floats, column: Floats) -> float:
    """Return the multiple correlation of a column with others."""
    inside = np.column_stack([np.ones(len(x)), x])
    fitted = inside @ np.linalg.lstsq(inside, column, rcond=None)[0]
    return float(np.corrcoef(fitted, column)[0, 1])


def _section_8_1(bench: Bench) -> Worked:
    census = bench.columns("census.csv")
    rows = list(examples("004", "Section 8.1"))
    return Worked(
        {key: multiple_r(quasi(bench), census[name]) for key, name in zip(rows, SETS.values(), strict=True)},
        note="Ours is the multiple correlation.",
    )


def _section_8_2(bench: Bench) -> Worked:
    x, charge = discharges(bench)
    found = (len(x), x.shape[1], multiple_r(x, charge))
    return Worked(dict(zip(examples("004", "Section 8.2"), found, strict=True)))


def discharges(bench: Bench) -> tuple[Floats, Floats]:
    """Return the stand-in for the patient discharges, made once."""
    made: tuple[Floats, Floats] = bench.once("patients", patients)
    return made


def trial(algorithm: str, x: Floats, column: Floats, k: int, t: float) -> dict[str, Any]:
    """Return what an algorithm loses on a table (Eq. (5), by the range) and how long it takes."""
    began = time.process_time()
    labels = ALGORITHMS[algorithm](standardized(x), k, confidential=column, t=t)
    seconds = time.process_time() - began
    return {"series": algorithm, "k": k, "t": t, "loss": normalized_sse(x, class_means(x, labels)), "seconds": seconds}


def _census_trials(bench: Bench, name: str, every_k: Iterable[int], every_t: Iterable[float]) -> list[dict[str, Any]]:
    census = bench.columns("census.csv")
    x = np.column_stack([census[each] for each in QUASI])
    return [trial(each, x, census[SETS[name]], k, t) for each, k, t in product(ALGORITHMS, every_k, every_t)]


def _patient_trials(bench: Bench) -> list[dict[str, Any]]:
    def make() -> list[dict[str, Any]]:
        x, charge = discharges(bench)
        for algorithm in ALGORITHMS:
            trial(algorithm, x[:4000], charge[:4000], 2, 0.25)  # what is compiled first is not timed
        levels = {each: SLOW if each == "Algorithm 2" else FIGURE_6 for each in ALGORITHMS}
        return [trial(each, x, charge, 2, t) for each, every_t in levels.items() for t in every_t]

    made: list[dict[str, Any]] = bench.once("patient trials", make)
    return made


def _points(trials: Iterable[dict[str, Any]], y: str, panel: str, x: str = "t") -> list[dict[str, object]]:
    return [{"x": each[x], "y": each[y], "series": each["series"], "panel": panel} for each in trials]


def _beats(trials: Sequence[dict[str, Any]], better: str, worse: str) -> str:
    """Return at how many of the settings at which both were run an algorithm loses less than another."""
    lost = {(each["series"], each["k"], each["t"]): each["loss"] for each in trials}
    pairs = [(lost[better, k, t], lost[worse, k, t]) for name, k, t in lost if name == better and (worse, k, t) in lost]
    return f"{sum(one < other for one, other in pairs)} of {len(pairs)}"


def _orders(trials: Sequence[dict[str, Any]], row: str) -> dict[Key, Ours]:
    pairs = (("Algorithm 2", "Algorithm 1"), ("Algorithm 3", "Algorithm 2"))
    named = {f"values of t at which {one} loses less than {other}": (one, other) for one, other in pairs}
    return {(row, name): _beats(trials, *pair) for name, pair in named.items()}


def _figure_6(bench: Bench) -> Worked:
    values: dict[Key, Ours] = {}
    points: list[dict[str, object]] = []
    for name in ("HCD", "MCD"):
        trials = _census_trials(bench, name, [2], FIGURE_6)
        values |= _orders(trials, name)
        points += _points(trials, "loss", name)
    return Worked(values, (Plot("Figure 6: normalized SSE, k = 2, Census", "t", "normalized SSE", points),))


def _figure_6_patients(bench: Bench) -> Worked:
    trials = _patient_trials(bench)
    points = _points(trials, "loss", "a stand-in for Patient Discharge")
    plot = Plot("Figure 6: normalized SSE, k = 2, discharges", "t", "normalized SSE", points)
    return Worked(_orders(trials, "Patient Discharge"), (plot,))


def _figure_5(bench: Bench) -> Worked:
    trials = _patient_trials(bench)
    seconds = {(each["series"], each["t"]): each["seconds"] for each in trials}
    first, last = SLOW[0], SLOW[-1]
    longest = all(seconds["Algorithm 2", t] > max(seconds["Algorithm 1", t], seconds["Algorithm 3", t]) for t in SLOW)
    found = (
        longest,
        seconds["Algorithm 3", FIGURE_6[0]] < seconds["Algorithm 1", FIGURE_6[0]],
        seconds["Algorithm 2", last] < seconds["Algorithm 2", first],
    )
    points = _points(trials, "seconds", "a stand-in for Patient Discharge")
    plot = Plot("Figure 5: run time, k = 2, 23,435 discharges", "t", "processor seconds", points, log=True)
    return Worked(dict(zip(examples("004", "Figure 5"), found, strict=True)), (plot,))


def _figure_7(bench: Bench) -> Worked:
    trials = _census_trials(bench, "MCD", range(2, 31), FIGURE_7)
    points = [point for t in FIGURE_7 for point in _points([e for e in trials if e["t"] == t], "loss", f"t = {t}", "k")]
    grown = {name: _grown([each for each in trials if each["series"] == name]) for name in ALGORITHMS}
    told = "values of k and t at which Algorithm 3 loses less than"
    values: dict[Key, Ours] = {
        ("MCD", f"{told} {other}"): _beats(trials, "Algorithm 3", other) for other in ("Algorithm 1", "Algorithm 2")
    }
    values["MCD", "the loss of Algorithm 3 grows most with k"] = max(grown, key=grown.__getitem__) == "Algorithm 3"
    found = {name: spikes([each for each in trials if each["series"] == name]) for name in ALGORITHMS}
    drawn = Plot("Figure 7: normalized SSE by k, MCD", "k", "normalized SSE", points)
    return Worked(values | _told_of_spikes(found), (drawn,), _counted(found))


def spikes(trials: Sequence[dict[str, Any]]) -> list[tuple[int, float]]:
    """Return k and height of each spike of one algorithm: a loss above those of k - 1 and k + 1, at the same t.

    >>> spikes([{"k": k, "t": 0.1, "loss": loss} for k, loss in ((2, 1.0), (3, 4.0), (4, 2.0), (5, 3.0))])
    [(3, 2.0)]
    """
    lost = {(each["t"], each["k"]): each["loss"] for each in trials}
    heights = [
        (k, loss - max(lost[t, k - 1], lost[t, k + 1]))
        for (t, k), loss in lost.items()
        if (t, k - 1) in lost and (t, k + 1) in lost
    ]
    return [(k, height) for k, height in heights if height > 0]


def _told_of_spikes(found: dict[str, list[tuple[int, float]]]) -> dict[Key, Ours]:
    """Return what the text says of the spikes, as it is here."""
    divides = "every spike is at a k that does not divide 1080"
    values: dict[Key, Ours] = {
        (name, divides): all(1080 % k for k, _ in found[name]) for name in ("Algorithm 1", "Algorithm 2")
    }
    fewest = min(len(found["Algorithm 1"]), len(found["Algorithm 2"]))
    values["Algorithm 3", "has fewer spikes than Algorithms 1 and 2"] = len(found["Algorithm 3"]) < fewest
    highest = {name: max((height for _, height in heights), default=0.0) for name, heights in found.items()}
    values["Algorithm 1", "has the highest spikes"] = max(highest, key=highest.__getitem__) == "Algorithm 1"
    return values


def _counted(found: dict[str, list[tuple[int, float]]]) -> str:
    counts = (
        f"{name} {len(heights)}, of which {sum(1080 % k == 0 for k, _ in heights)} where k divides 1,080"
        for name, heights in found.items()
    )
    return f"Spikes over k = 3 to 29 and {len(FIGURE_7)} values of t: {'; '.join(counts)}."


def _grown(trials: Sequence[dict[str, Any]]) -> float:
    """Return how much more is lost at the largest k than at the smallest, in the mean over t."""
    ends = [[each["loss"] for each in trials if each["k"] == k] for k in (2, 30)]
    return float(np.mean(ends[1]) - np.mean(ends[0]))


def _sizes_exhibit(number: int, due: Due, why: str = "") -> Exhibit:
    name = f"Algorithm {number}"
    expected: dict[Key, Expectation] = expect(cluster_sizes(number), due, why)
    title = f"{name}: smallest and average class"
    source, long = "Census, 1,080 records", number < 3  # Algorithm 3 is quick
    return Exhibit(f"Table {number}", title, expected, _table(name), source, CENSUS, long=long)


STAND_IN = "a generated stand-in for the discharges, 23,435 records, seed 2010"

DRAWN = "a drawing without numbers; what it shows is computed in"

PAPER = Paper(
    "004",
    "Soria-Comas, Domingo-Ferrer, Sánchez & Martínez 2015: t-Closeness through microaggregation",
    (
        mentioned("Figure 1", "The cluster of least EMD", f"{DRAWN} Proposition 1"),
        Exhibit(
            "Proposition 1",
            "Lower bound of the EMD, every cluster tried",
            examples("004", "Proposition 1"),
            _propositions(min, "Proposition 1"),
            source="all ranks 1 to n",
        ),
        mentioned("Figure 2", "The cluster of greatest EMD", f"{DRAWN} Proposition 2"),
        Exhibit(
            "Proposition 2",
            "Upper bound of the EMD, every cluster of one record a subset tried",
            examples("004", "Proposition 2"),
            _propositions(max, "Proposition 2"),
            source="all ranks 1 to n",
        ),
        mentioned("Figures 3 and 4", "Clusters with an extra record", f"{DRAWN} Section 7 and Table 3"),
        Exhibit("Eq. (4)", "Cluster size, floor or ceiling", examples("004", "Eq. (4)"), _eq_4),
        Exhibit(
            "Section 7",
            "Algorithm 3 satisfies t by construction",
            examples("004", "Section 7"),
            _section_7,
            "Census",
            CENSUS,
        ),
        Exhibit(
            "Section 8.1",
            "Correlations",
            examples("004", "Section 8.1"),
            _section_8_1,
            "Census, 1,080 records",
            CENSUS,
        ),
        _sizes_exhibit(1, "differs", NOT_OURS),
        _sizes_exhibit(2, "differs", NOT_OURS),
        _sizes_exhibit(3, "match"),
        Exhibit("Tables 2 and 3", "Average classes compared", examples("004", "Tables 2 and 3"), _smaller),
        Exhibit(
            "Section 8.2",
            "What is stated of the discharges, and the stand-in has",
            examples("004", "Section 8.2"),
            _section_8_2,
            STAND_IN,
        ),
        Exhibit(
            "Figure 5", "Run time against t", examples("004", "Figure 5"), _figure_5, STAND_IN, stand_in=True, long=True
        ),
        Exhibit("Figure 6", "Loss against t", examples("004", "Figure 6"), _figure_6, "Census, 1,080 records", CENSUS),
        Exhibit(
            "Figure 6, Patient Discharge",
            "Loss against t",
            examples("004", "Figure 6, Patient Discharge"),
            _figure_6_patients,
            STAND_IN,
            stand_in=True,
            long=True,
        ),
        Exhibit(
            "Figure 7",
            "Loss against k and t",
            examples("004", "Figure 7"),
            _figure_7,
            "Census, 1,080 records",
            CENSUS,
            long=True,
        ),
    ),
)
