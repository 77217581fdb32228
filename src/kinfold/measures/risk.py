"""Disclosure risk of a release: class sizes, linkage attack, interval disclosure, inference of confidential values.

The linkage attack and the interval disclosure are exact up to 50,000 records. In larger tables a random sample of
10,000 records, drawn by the seed of the policy, is attacked in the whole release, and a note gives the standard error.
`measures = "all"` attacks every record. With the columns that were released unchanged, the attacker searches among the
records with equal values in all of them for the nearest on the quasi-identifiers; 1/k does not bound that.

`measure_column_risk` is the risk of releasing some columns unchanged, before there is a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from kinfold.measures.coverage import compute_gaps, get_released_numbers, require_known_labels
from kinfold.measures.formulas import attackers, global_risk
from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable, group_rows
from kinfold.measures.formulas.attribute_disclosure import (
    inference_gain,
    inference_gain_numbers,
    interval_by_deviation,
    interval_credit,
)
from kinfold.measures.formulas.global_risk import ClassificationMatrix
from kinfold.measures.formulas.linkage import LinkageRecords, find_telling_subsets, linkage, linkage_credit
from kinfold.measures.formulas.numeric_loss import column_deviations, column_means
from kinfold.measures.formulas.uniques import sample_uniques
from kinfold.measures.measure_table import MeasureTable, compute_once, evaluate
from kinfold.measures.options import MeasureOptions
from kinfold.measures.pairing import Pair, PairedColumn, PairSource, TablePair, stack_pairs
from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.encoding import CategoricalAttribute, NumericAttribute
from kinfold.policy.terms import get_reading
from kinfold.tables.engine import Engine
from kinfold.tables.queries import count_unique_rows
from kinfold.tables.recoding import encode_dictionary
from kinfold.tables.schema import Role

MAX_ATTACKERS = 50_000  # records: one or two seconds with eight columns
ATTACKER_SAMPLE = 10_000  # of larger tables: a share of 0.1 is good to 0.003
ALL_ROWS = slice(None)
MAX_GAP_CELLS = 20_000_000  # of a table of distances between categories: 160 MB
ONE_DAY = np.timedelta64(1, "D")


def measure_linkage(pair: Pair, table: MeasureTable, seed: int, *, every: bool = False) -> float:
    """Return the expected success of the linkage attack on `every` record, or on a sample of a large table."""
    kept = np.flatnonzero(pair.kept)
    if pair.large is not None:
        classes, count = pair.large.classes, min(ATTACKER_SAMPLE, len(kept))
        rows = np.sort(np.random.default_rng(seed).choice(kept, count, replace=False)) + len(classes.kept)
        heads, sizes, pair = np.arange(len(classes.kept)), classes.weight, stack_pairs(classes, pair)
    else:
        drawn = None if every else draw_attackers(pair, seed)
        if drawn is None:
            return _estimate_success(pair, _build_records(pair), None).record(table, "linkage")
        rows, heads, sizes = kept[drawn], *_find_class_heads(pair, kept)
    return _attack_sample(pair, rows, heads, sizes).record(table, "linkage")


def _find_class_heads(pair: Pair, kept: Ints) -> tuple[Ints, Ints]:
    """Return a row of each class of the release, and the number of its records."""
    classes = pair.masked[kept]
    sizes = np.bincount(classes, None if pair.weight is None else pair.weight[kept]).astype(np.int64)
    heads = np.empty(len(sizes), np.int64)
    heads[classes] = kept
    return heads, sizes


def _attack_sample(pair: Pair, rows: Ints, heads: Ints, sizes: Ints | None) -> Estimate:
    """Return the success of an attack on some records in the release, which is given by one row of each class."""
    weight = np.concatenate([sizes, np.zeros(len(rows), np.int64)])  # attacked records are in their classes already
    original, released, gaps = _build_records(pair, np.concatenate([heads, rows]))
    attacked = np.arange(len(heads), len(weight))
    return Estimate.from_credits(linkage_credit(original, replace(released, weight=weight), gaps, attacked=attacked))


def link_subsets(pair: Pair, table: MeasureTable, k: int, seed: int) -> list[dict[str, Any]]:
    """Return the expected success on the subsets of columns with the most classes, each with its bound 1/k."""
    codes = LinkageRecords.from_arrays(None, np.column_stack([column.after[pair.kept] for column in pair.columns]))
    sample, results, errors = draw_attackers(pair, seed), [], []
    for chosen in find_telling_subsets(codes):
        part = replace(pair, columns=tuple(pair.columns[j] for j in chosen))
        success = _estimate_success(part, _build_records(part), sample)
        names = [column.name for column in part.columns]
        results.append({"columns": names, "linkage": success.share, "bound": 1 / k})
        errors.append(success.error or 0.0)
    if sample is not None:
        Estimate(0.0, max(errors)).record(table, "linkage_subsets")
    return results


def link_untouched(pair: Pair, table: MeasureTable, tables: TablePair, names: list[str], seed: int) -> dict[str, Any]:
    """Return the expected success with those of the named columns that are equal in both tables."""
    unchanged = _find_unchanged(tables, names)
    if not unchanged:
        raise NotApplicable("no other column than the quasi-identifiers was released unchanged")
    original, released, gaps = _build_records(pair)
    numbers = zip(original.numbers.T, released.numbers.T, strict=True)
    spread = 1.0 + sum(float(np.ptp(np.append(a, b))) ** 2 for a, b in numbers)
    separation = float(np.sqrt(spread + sum(float(gap.max()) for gap in gaps)))  # more than between any two records
    group = group_rows(np.column_stack(list(unchanged.values())))[0] * separation
    known, visible = (
        LinkageRecords.from_arrays(np.column_stack([side.numbers, group]), side.codes) for side in (original, released)
    )
    success = _estimate_success(pair, (known, visible, gaps), draw_attackers(pair, seed))
    columns = [*(column.name for column in pair.columns), *unchanged]
    return {"columns": columns, "linkage": success.record(table, "linkage_untouched")}


def draw_attackers(pair: Pair, seed: int) -> Ints | None:
    """Return the rows of a random sample of released records, counted among released rows; None for all."""
    if pair.released <= MAX_ATTACKERS:
        return None
    records = np.sort(np.random.default_rng(seed).choice(pair.released, ATTACKER_SAMPLE, replace=False))
    if pair.weight is None:
        return records
    return np.searchsorted(np.cumsum(pair.weight[pair.kept]), records, side="right")


class Estimate(NamedTuple):
    """A share of the records, and its standard error if it is estimated from a sample."""

    share: float
    error: float | None = None
    records: int = ATTACKER_SAMPLE

    @classmethod
    def from_credits(cls, credit: Floats) -> Estimate:
        """Return the mean credit of sampled records."""
        error = credit.std(ddof=1) / np.sqrt(len(credit)) if len(credit) > 1 else 1.0
        return cls(float(credit.mean()), float(error), len(credit))

    def record(self, table: MeasureTable, key: str) -> float:
        """Return the share, and add a note on its error to a table."""
        if self.error is not None:
            note = f"estimated from {self.records:,} records drawn at random, standard error {self.error:.1g}"
            table.add_note(key, note)
        return self.share


def _estimate_success(
    pair: Pair, records: tuple[LinkageRecords, LinkageRecords, list[Floats]], sample: Ints | None
) -> Estimate:
    """Return the expected success of an attack on all released records, or on a sample."""
    original, released, gaps = records
    credit = linkage_credit(original, released, gaps, pair.kept, sample)
    if sample is not None:
        return Estimate.from_credits(credit)
    return Estimate(linkage(credit if pair.weight is None else np.repeat(credit, pair.weight[pair.kept])))


def _find_unchanged(tables: TablePair, names: list[str]) -> dict[str, Ints]:
    """Return the codes of all original records in the columns that are equal in both tables."""
    released = tables.engine.schema(tables.released)
    wanted: dict[str, None] = dict.fromkeys(name for name in names if name in released)
    if not wanted:
        return {}
    before, after = (tables.engine.collect(side, wanted) for side in (tables.original, tables.released))
    rows = np.asarray(tables.rows)
    columns = {}
    for name in wanted:
        if before.column(name).take(rows).combine_chunks().equals(after.column(name).combine_chunks()):
            columns[name] = encode_dictionary(before.column(name))[0].astype(np.int64)
    return columns


def _build_records(pair: Pair, rows: Ints | slice = ALL_ROWS) -> tuple[LinkageRecords, LinkageRecords, list[Floats]]:
    """Return both tables as numbers and codes, with a table of squared distances for each code, by the policy."""
    require_known_labels(pair.columns)
    numbers: list[tuple[Floats, Floats]] = []
    codes: list[tuple[Ints, Ints]] = []
    gaps: list[Floats] = []
    for column in pair.columns:
        if isinstance(column.attribute, NumericAttribute):
            x, y = _scale_numbers(column, pair.weight, rows)
            numbers.append((np.nan_to_num(x), np.nan_to_num(y)))
            if column.attribute.null.any():
                weight = column.attribute.bound.request.weight
                codes.append((np.isnan(x).astype(np.int64), np.isnan(y).astype(np.int64)))
                gaps.append(np.array([[0.0, weight], [weight, 0.0]]))
        else:
            codes.append(_place_codes(column, column.attribute, rows))
            gaps.append(compute_gaps(column))
    count = len(pair.kept[rows])
    records = None if pair.weight is None else pair.weight[rows]
    original, released = (
        LinkageRecords.from_arrays(
            np.column_stack([both[side] for both in numbers]) if numbers else np.empty((count, 0)),
            np.column_stack([both[side] for both in codes]) if codes else np.empty((count, 0), np.int64),
        )
        for side in (0, 1)
    )
    return original, replace(released, weight=records), gaps


def _scale_numbers(column: PairedColumn, weight: Ints | None, rows: Ints | slice) -> tuple[Floats, Floats]:
    attribute = column.attribute
    assert isinstance(attribute, NumericAttribute)  # noqa: S101  the caller checks
    released = get_released_numbers(column)[rows]  # the attacker takes the middle of a range
    numbers = attribute.numbers[:, None]
    centre = column_means(numbers, weight)
    deviation = float(column_deviations(numbers, centre, weight)[0])
    unit = np.sqrt(attribute.bound.request.weight) / deviation if deviation > 0 else 0.0
    return (attribute.numbers[rows] - centre) * unit, (released - centre) * unit


def _place_codes(column: PairedColumn, attribute: CategoricalAttribute, rows: Ints | slice) -> tuple[Ints, Ints]:
    assert column.place is not None  # noqa: S101  codes are released as labels
    null = len(column.labels)
    if attribute.scale.codes * (null + 1) > MAX_GAP_CELLS:
        raise NotApplicable(f"'{column.name}' has too many categories for the linkage attack")
    place = column.place[rows]
    return attribute.codes[rows].astype(np.int64), np.where(place < 0, null, place)


class ClassValues(NamedTuple):
    """Confidential values with their classes: numbers, or codes with -1 for null."""

    classes: Ints
    values: Any
    records: Ints | None = None  # of each pair of class and value, 1 by default


@dataclass(frozen=True, eq=False)
class ClassView:
    """The class sizes of one table, and its confidential columns."""

    sizes: Ints
    confidential: Mapping[str, Callable[[], ClassValues]]
    classes: Ints | None = None  # of each size, 1 by default


def measure_risk(
    pair: PairSource, classes: ClassView, k: int, options: MeasureOptions, seed: int, recorded: Mapping[str, Any]
) -> MeasureTable:
    """Return all disclosure risks of a release; those that need paired tables are null if `pair` raises."""
    table = MeasureTable("risk", recorded)
    matrix = compute_once(lambda: _classify_sizes(pair()))
    table.write("dr_min", lambda: global_risk.dr_min(matrix()))
    table.write("dr_max", lambda: global_risk.dr_max(matrix()))
    table.write("dr_weighted", lambda: global_risk.dr_weighted(matrix(), options.build_weights(k, matrix().released)))
    table.write("unique_from_larger", lambda: global_risk.unique_from_larger(matrix()))
    table.write("uncounted", lambda: global_risk.uncounted(matrix()))
    _add_table_risks(table, classes)
    # of an unknown population, the release itself is known: see `optional` for a known one
    table.write("journalist_max", lambda: attackers.prosecutor_max(classes.sizes))
    table.write("marketer", lambda: attackers.prosecutor_mean(classes.sizes, classes.classes))
    table.write("linkage", lambda: measure_linkage(pair(), table, seed, every=options.all_measures))
    table.write("interval", lambda: _measure_interval(pair(), table, seed, every=options.all_measures))
    table.write("interval_records", lambda: _measure_interval_records(pair()))
    return table


def _classify_sizes(pair: Pair) -> ClassificationMatrix:
    if not pair.kept.any():
        raise NotApplicable("there is no released record")
    before, after = (sizes[pair.kept] for sizes in pair.class_sizes)
    return ClassificationMatrix.from_sizes(before, after, None if pair.weight is None else pair.weight[pair.kept])


def measure_original_risk(classes: ClassView) -> MeasureTable:
    """Return the risks of releasing the original unchanged."""
    table = MeasureTable("risk_before")
    _add_table_risks(table, classes)
    return table


def _add_table_risks(table: MeasureTable, classes: ClassView) -> None:
    table.write("prosecutor_max", lambda: attackers.prosecutor_max(classes.sizes))
    table.write("prosecutor_mean", lambda: attackers.prosecutor_mean(classes.sizes, classes.classes))
    table.write("inference", lambda: _measure_inference(classes))
    table.write("uniques", lambda: {"sample": sample_uniques(classes.sizes, classes.classes)})


def _measure_interval(pair: Pair, table: MeasureTable, seed: int, *, every: bool) -> float:
    if pair.numbers is None:
        raise NotApplicable("no quasi-identifier is released as numbers")
    sample = None if every else draw_attackers(pair, seed)
    if sample is None:
        return float(np.average(interval_credit(*pair.numbers, weight=pair.weight), weights=pair.weight))
    credit = interval_credit(*pair.numbers, attacked=np.flatnonzero(pair.kept)[sample], weight=pair.weight)
    share = Estimate.from_credits(credit).record(table, "interval")
    return share * pair.released / pair.records  # dropped records disclose nothing


def _measure_interval_records(pair: Pair) -> float:
    if pair.numbers is None:
        raise NotApplicable("no quasi-identifier is released as numbers")
    return interval_by_deviation(*pair.numbers, weight=pair.weight)


def _measure_inference(classes: ClassView) -> dict[str, float | None]:
    if not classes.confidential:
        raise NotApplicable("no column is confidential")
    gains: dict[str, float | None] = {}
    for name, read in classes.confidential.items():
        values = read()
        formula = inference_gain_numbers if values.values.dtype.kind == "f" else inference_gain
        try:
            gains[name] = evaluate(partial(formula, *values))
        except NotApplicable:
            gains[name] = None
    return gains


def find_confidential(
    tables: TablePair, frame: Any, policy: BoundPolicy, classes: Callable[[], Ints]
) -> dict[str, Callable[[], ClassValues]]:
    """Return a function for each confidential column that reads its values and classes."""
    quasi = policy.quasi
    confidential = policy.with_role(Role.CONFIDENTIAL)
    if tables.uses_counts:
        return {column.name: partial(_from_tally, tables, frame, quasi, column) for column in confidential}
    return {column.name: partial(_from_records, tables, frame, column, classes) for column in confidential}


def _from_tally(tables: TablePair, frame: Any, quasi: list[str], column: BoundColumn) -> ClassValues:
    """Return a column from the tally that the promises were checked on."""
    spread = tables.engine.tally(frame, quasi, {column.name: get_reading(column)}).spreads[column.name]
    if not tables.engine.schema(frame)[column.name].holds(column.kind):
        return ClassValues(spread.group, spread.code, spread.count)
    if spread.values.dtype.kind == "M":
        numbers = np.asarray((spread.values - np.datetime64(0, "D")) / ONE_DAY, np.float64)
    else:
        numbers = np.array([np.nan if value is None else float(value) for value in spread.values.tolist()], np.float64)
    return ClassValues(spread.group, numbers[spread.code], spread.count)


def _from_records(tables: TablePair, frame: Any, column: BoundColumn, classes: Callable[[], Ints]) -> ClassValues:
    stored = tables.engine.schema(frame)[column.name]
    numeric = stored.holds(column.kind)
    values = tables.engine.collect(frame, {column.name: stored if numeric else None}).column(0)
    if numeric:
        return ClassValues(classes(), values.to_numpy(zero_copy_only=False).astype(np.float64))
    return ClassValues(classes(), encode_dictionary(values)[0].astype(np.int64))


MAX_COMBINED_COLUMNS = 8  # columns in pairs and triples
MAX_ROWS_FOR_COMBINATIONS = 100_000  # of larger tables the profile lists the combinations
MAX_COMBINATIONS_LISTED = 10  # with the largest share of unique records
MAX_SIZES_LISTED = 100  # of classes, the smallest


def measure_column_risk(engine: Engine, frame: Any, quasi: Sequence[str], k: int) -> dict[str, Any]:
    """Return the risk of releasing these columns unchanged: shares of records, and class sizes."""
    sizes = engine.count_classes(frame, quasi)  # one class without columns
    rows = sum(size * count for size, count in sizes)
    each, number = np.array(sizes, np.int64).reshape(-1, 2).T
    return {
        "quasi": list(quasi),
        "records": rows,
        "classes": int(number.sum()),
        "k": k,
        "unique": _share_below(sizes, 2, rows),
        "below_k": _share_below(sizes, k, rows),
        "smallest": sizes[0][0] if sizes else None,
        "prosecutor_max": attackers.prosecutor_max(each) if rows else None,
        "prosecutor_mean": attackers.prosecutor_mean(each, number) if rows else None,
        "sizes": sizes[:MAX_SIZES_LISTED],
        "combinations": _combinations(engine, frame, quasi, rows),
    }


def _share_below(sizes: Sequence[tuple[int, int]], below: int, rows: int) -> float:
    return sum(size * count for size, count in sizes if size < below) / max(rows, 1)


def _combinations(engine: Engine, frame: Any, quasi: Sequence[str], rows: int) -> list[dict[str, Any]]:
    columns = quasi[:MAX_COMBINED_COLUMNS] if rows <= MAX_ROWS_FOR_COMBINATIONS else ()
    sets = [*combinations(columns, 2), *combinations(columns, 3)]
    shares = [(count_unique_rows(engine, frame, names) / max(rows, 1), names) for names in sets]
    shares.sort(key=lambda each: (-each[0], len(each[1])))
    return [{"columns": list(names), "unique": unique} for unique, names in shares[:MAX_COMBINATIONS_LISTED]]
