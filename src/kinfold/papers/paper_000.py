"""Domingo-Ferrer & Torra 2005: MDAV-generic and information loss, on Census and on a survey of categories.

Tables 2 and 3: the columns are in the order of census.csv. They are standardized, grouped, averaged, converted back and
rescaled to the original variances. The loss is measured over all 13 attributes and 78 pairs, also for 6
quasi-identifiers. Four rows of Table 2 are exact with the rule of the text, which forms the last but one cluster around
x_r, the record farthest from the centroid. The other four are exact with x_s, the record farthest from x_r. No single
rule gives all rows: (6, 3), (13, 6) and (13, 9) need x_r. The rule of the text is used.

The extract of the housing survey for Tables 4 to 7 is not available. A stand-in is generated, and the claims of the
text are checked on the printed tables and on the stand-in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.measures.formulas.categorical_loss import contingency_loss, dist, ebil
from kinfold.measures.formulas.numeric_loss import Moments, il, il1, il2, il3, il4, il5
from kinfold.measures.formulas.probabilistic_loss import pil
from kinfold.methods.aggregation import convex_median, mode, ordinal_median
from kinfold.methods.partition.mdav import mdav
from kinfold.papers.data import ORDINAL_SIZES, PaperData, class_means, generate_survey, loss_ratio, standardize
from kinfold.papers.exhibits import (
    CellKey,
    CellValue,
    Compute,
    ExhibitResult,
    Plot,
    PrintedValues,
    Values,
    compare_cell,
    count_true,
)
from kinfold.tables.points import NominalScale, OrdinalScale, Points

PRINTED = PrintedValues("000")
Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Table = Mapping[str, Mapping[str, float]]  # by k and measure
Partition = Callable[[Floats, int], NDArray[Any]]

LITERATURE = ("census", "tarragona", "eia")
MEASURES = tuple(PRINTED.read_columns("table_4")[1:])
SURVEY_COLUMNS = {
    "Table 4": (2, 3, 4, 5, 6, 7, 8, 9),
    "Table 5": (2, 3, 4, 5),
    "Table 6": (0, 1, 2),
    "Table 7": (0, 1, 2),
}
ROW_LABEL = "length {length}, k = {k}"


def release_census(x: Floats, quasi: int, k: int, partition: Partition = mdav) -> Floats:
    """Return the k-anonymous file of section 6.1: the first `quasi` columns microaggregated, with their variances."""
    released, part = x.copy(), x[:, :quasi]
    means = class_means(part, partition(standardize(part), k))
    released[:, :quasi] = (means - means.mean(axis=0)) * part.std(axis=0) / means.std(axis=0) + part.mean(axis=0)
    return released


def split_around_x_s(x: Floats, k: int) -> NDArray[Any]:
    """Return the clusters of MDAV with the last 2k records split around x_s."""
    labels = mdav(x, k)
    last = np.flatnonzero(labels >= labels.max() - 1)  # the last two clusters
    if len(x) < 2 * k or len(last) >= 3 * k:
        return labels
    points = x[last]

    def squared_distances(point: Floats) -> Floats:
        return np.asarray(((points - point) ** 2).sum(axis=1))

    r = int(squared_distances(points.mean(axis=0)).argmax())
    s = int(squared_distances(points[r]).argmax())
    near = np.argsort(squared_distances(points[s]), kind="stable")[:k]
    labels[last] = labels.max()
    labels[last[near]] = labels.max() - 1
    return labels


SPLITS: dict[str, Partition] = {"x_r": mdav, "x_s": split_around_x_s}


@cache
def _measure_census(data: PaperData, quasi: int, k: int, around: str = "x_r") -> dict[str, float]:
    """Return a row of Tables 2 and 3; the score IL is computed from the columns rounded to three digits."""
    x = data.array("census.csv")
    y = release_census(x, quasi, k, SPLITS[around])
    before, after = Moments.from_table(x), Moments.from_table(y)
    losses = (il1(x, y), il2(before, after), il3(before, after), il4(before, after), il5(before, after))
    score = il(tuple(round(part, 3) for part in losses))  # type: ignore[arg-type]
    p = pil(x, y)
    parts = (*losses, score, p.quantiles, p.means, p.variances, p.covariances, p.correlations)
    names = [*PRINTED.read_columns("table_2")[2:], *PRINTED.read_columns("table_3")[2:]]
    return {name: float(part or 0.0) for name, part in zip(names, parts, strict=True)}


def _loss_table(name: str, plot: str) -> Compute:
    """Return the computation of Table 2 or 3, with a plot of its last column."""

    def compute(data: PaperData) -> ExhibitResult:
        values: dict[CellKey, CellValue] = {}
        points: list[dict[str, object]] = []
        *_, last = columns = PRINTED.read_columns(name)[2:]
        for row in PRINTED.read_table(name):
            cells = _measure_census(data, int(row["length"]), int(row["k"]))
            values |= {(ROW_LABEL.format(**row), column): cells[column] for column in columns}
            for series, y in (("ours", cells[last]), ("theirs", float(row[last]))):
                points.append({"x": int(row["k"]), "y": y, "series": series, "panel": f"{row['length']} attributes"})
        return ExhibitResult(values, (Plot(plot, "k", last, points),))

    return compute


def _splits(data: PaperData) -> Values:
    """Count the matching cells of Tables 2 and 3, without PIL(Q), by row and split of the last 2k records."""
    values = {}
    for second, third in zip(PRINTED.read_table("table_2"), PRINTED.read_table("table_3"), strict=True):
        printed = {name: text for name, text in (second | third).items() if name not in ("length", "k", "PIL(Q)")}
        for around in SPLITS:
            cells = _measure_census(data, int(second["length"]), int(second["k"]), around)
            matches = count_true(compare_cell(text, cells[name]) == "match" for name, text in printed.items())
            values[ROW_LABEL.format(**second), f"cells that match, split around {around}"] = matches
    return values


def _literature(data: PaperData) -> Values:
    tables = {name: standardize(data.array(f"{name}.csv")) for name in LITERATURE}
    return {
        (f"k = {row['k']}", name): 100 * loss_ratio(x, mdav(x, int(row["k"])))
        for name, x in tables.items()
        for row in PRINTED.read_table("literature")
    }


def _lemma(_: PaperData) -> Values:
    counted = {c: sum(len(list(combinations(range(c), size))) for size in range(2, c + 1)) for c in range(2, 9)}
    return {("c = 2 to 8", "2^c - c - 1 generalizations"): all(n == 2**c - c - 1 for c, n in counted.items())}


def _section_4(_: PaperData) -> Values:
    """Apply the two rules that are best for r1 to r3 and for r4 to r6 to all records of Table 1."""
    recoded = dict.fromkeys("abc", "ABC") | dict.fromkeys("rst", "RST")
    records = {name: (one, other) for name, one, other in PRINTED.read_rows("table_1")}
    return {
        (name, "recoded to"): f"{recoded[records[name][0]]}, {recoded.get(records[name][1], records[name][1])}"
        for name in ("r9", "r12")
    }


def _medians(name: str, average: Callable[..., Codes]) -> Compute:
    def compute(_: PaperData) -> Values:
        values = {}
        for row, column in PRINTED.read_examples(name):
            codes = np.array([int(code) for code in row[1 : row.index("}")].split(", ")], np.int32)
            values[row, column] = int(average(codes, np.zeros(len(codes), np.int32), 8)[0])
        return values

    return compute


def _eq_1(_: PaperData) -> ExhibitResult:
    largest = float(OrdinalScale(8).squared_distances(0)[7] ** 0.5)
    key = ("8 categories", "the ends of the scale are at distance 1")
    return ExhibitResult({key: largest == 1}, note=f"They are at distance {largest}.")


def _figure_2(_: PaperData) -> ExhibitResult:
    """Return both medians of {1, 2, 2, 5, 6}, with a plot of the frequencies."""
    values = np.array([1, 2, 2, 5, 6], np.int32)
    one = np.zeros(len(values), np.int32)
    frequency = np.bincount(values, minlength=8)
    left, right = np.maximum.accumulate(frequency), np.maximum.accumulate(frequency[::-1])[::-1]
    sides = {"f, of the median": frequency, "f', of the convex median": np.minimum(left, right)}
    points = [
        {"x": code, "y": int(count), "series": name, "panel": "S = {1, 2, 2, 5, 6}"}
        for name, counts in sides.items()
        for code, count in enumerate(counts)
    ]
    row = "{1, 2, 2, 5, 6} on the scale 0 to 7"
    medians = {"median": ordinal_median(values, one, 8), "convex median": convex_median(values, one, 8)}
    plot = Plot("Figure 2: frequencies", "category", "frequency", points)
    return ExhibitResult({(row, name): int(codes[0]) for name, codes in medians.items()}, (plot,))


def measure_survey_row(name: str, k: int) -> dict[str, float]:
    """Return the measures of one row of Tables 4 to 7, on the stand-in."""
    every, sizes = generate_survey()
    chosen = SURVEY_COLUMNS[name]
    codes, widths = every[:, chosen], [sizes[j] for j in chosen]
    ordinal = [j < len(ORDINAL_SIZES) for j in chosen]
    scales = [width if is_ordinal else 0 for width, is_ordinal in zip(widths, ordinal, strict=True)]
    distances = [OrdinalScale(w) if o else NominalScale.flat(w) for w, o in zip(widths, ordinal, strict=True)]
    labels = mdav(Points(np.empty((len(codes), 0)), codes, tuple(distances)), k)
    median = convex_median if name == "Table 7" else ordinal_median
    averaged = [
        median(column, labels, scale) if scale else mode(column, labels)
        for column, scale in zip(codes.T, scales, strict=True)
    ]
    masked = np.column_stack([column[labels] for column in averaged])
    loss, number_of_cells = contingency_loss(codes, masked, widths)
    parts = (dist(codes, masked, scales), loss, loss / number_of_cells, ebil(codes, masked))
    return dict(zip(MEASURES, parts, strict=True))


@cache
def _measure_survey() -> dict[str, dict[str, dict[str, float]]]:
    return {name: {str(k): measure_survey_row(name, k) for k in range(2, 10)} for name in SURVEY_COLUMNS}


def _survey_table(name: str) -> Compute:
    def compute(_: PaperData) -> ExhibitResult:
        losses, theirs = _measure_survey()[name], read_printed(name)
        values = {(f"k = {k}", column): v for k, row in losses.items() for column, v in row.items()}
        points = [
            {"x": int(k), "y": side[k][column] / side["9"][column], "series": series, "panel": column}
            for column in MEASURES
            for series, side in (("ours, a stand-in", losses), ("theirs", theirs))
            for k in losses
        ]
        return ExhibitResult(values, (Plot(f"{name}: shape of each measure", "k", "over its value at k = 9", points),))

    return compute


def read_printed(name: str) -> dict[str, dict[str, float]]:
    """Return one of Tables 4 to 7 as numbers by k and measure."""
    rows = PRINTED.read_table(name.lower().replace(" ", "_"))
    return {row["k"]: {column: float(row[column]) for column in MEASURES} for row in rows}


def count_growing_steps(losses: Table) -> str:
    """Return the number of steps of k at which a measure grows.

    >>> count_growing_steps({"2": {"Dist": 1.0}, "3": {"Dist": 2.0}, "4": {"Dist": 2.0}})
    '1 of 2'
    """
    steps = [(low[name], high[name]) for low, high in pairwise(losses.values()) for name in low]
    return count_true(high > low for low, high in steps)


def count_smaller(losses: Table, other: Table) -> str:
    """Return the number of values that are smaller than in another table."""
    return count_true(losses[k][name] < other[k][name] for k in losses for name in losses[k])


def count_common_cells(losses: Table) -> str:
    """Return how many ACTBIL' equal CTBIL' over one number of cells, rounded or truncated to three digits."""
    pairs = [(row["CTBIL'"], row["ACTBIL'"]) for row in losses.values()]
    most = 0
    for number_of_cells in range(100, 5000):
        shares = [(loss / number_of_cells, mean) for loss, mean in pairs]
        cut = sum(int(1000 * share) == round(1000 * mean) for share, mean in shares)
        near = sum(round(share, 3) == mean for share, mean in shares)
        most = max(most, cut, near)
    return f"{most} of {len(pairs)}"


def _shape(tables: Mapping[str, Table]) -> dict[CellKey, CellValue]:
    better = ("Tables 6 and 7", "values that are better with the convex median")
    return {
        **{(name, "steps of k at which a measure grows"): count_growing_steps(t) for name, t in tables.items()},
        better: count_smaller(tables["Table 7"], tables["Table 6"]),
    }


def _text(_: PaperData) -> ExhibitResult:
    tables = {name: read_printed(name) for name in SURVEY_COLUMNS}
    values = _shape(tables)
    values |= {(name, "ACTBIL' that one number of cells gives"): count_common_cells(t) for name, t in tables.items()}
    note = (
        "Tables 6 and 7 fit 947 cells, cut off at three digits: those of all tables of one and two attributes with "
        "scales of 25, 21 and 8 categories."
    )
    return ExhibitResult(values, note=note)


def _shape_of_ours(_: PaperData) -> Values:
    tables = _measure_survey()
    higher = ("Tables 4 and 5", "values that are higher for 8 attributes than for 4")
    return _shape(tables) | {higher: count_smaller(tables["Table 5"], tables["Table 4"])}


PAPER = PRINTED.make_paper(
    {
        "Lemma 4.1": _lemma,
        "Section 4": _section_4,
        "Definition 5.2": _medians("Definition 5.2", ordinal_median),
        "Definition 5.3": _medians("Definition 5.3", convex_median),
        "Eq. (1)": _eq_1,
        "Figure 2": _figure_2,
        "Table 2": _loss_table("table_2", "Table 2: information loss IL"),
        "Table 3": _loss_table("table_3", "Table 3: loss of correlations, PIL(r)"),
        "Tables 2 and 3, both splits": _splits,
        "Outside the paper": _literature,
        **{name: _survey_table(name) for name in SURVEY_COLUMNS},
        "Text of Tables 4 to 7": _text,
        "Shape of Tables 4 to 7": _shape_of_ours,
    },
)
