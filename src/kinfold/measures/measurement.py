"""Measure a release: risk, loss, statistics before and after, plausibility and warnings.

Every measure of the contract has its key. A measure that does not apply is null, with the reason under `notes`.
Optional measures, and those of `measures = "all"`, have their own keys.

    numbers        mean, variance and quantiles of each continuous or date column, before and after
    correlations   of the columns that are numbers in both tables; null with a constant column
    frequencies    of each other column: the most frequent values of both tables, and the rest
    shift          the categories and quantiles that moved by more than a fifth: `loss.shift`

Statistics do not need paired rows. Dates are written as dates; their variance is in days².

A shift is judged from counts of both tables:

    category   its share p of the original records, p' of the released ones: |p' - p| > p / 5
    quantile   its value q in the original, q' in the release: |q' - q| > s / 5, with the standard deviation s of the
               original column

A category with p' = 0 vanished. The largest move comes first: of categories |p' - p|, then |p' - p| / p; of quantiles
|q' - q| / s. Ties go to the first in the order given. Cost: O(m log m) for m categories.

Values are compared as they are: a missing value and * are categories like others. Columns released as ranges or as
labels of a hierarchy have other categories than the original; they are left out, with a note. The categories of a shift
are values of the original: they are internal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from kinfold.errors import plural
from kinfold.hierarchies import TOP
from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable
from kinfold.measures.formulas.utility import SUMMARY_QUANTILES, ColumnSummary, correlate, summarize
from kinfold.measures.loss import add_exact_errors, measure_loss
from kinfold.measures.measure_table import MeasureTable, collect_notes, compute_once, evaluate, note_sample
from kinfold.measures.optional import add_optional_measures, write_original_log_linear
from kinfold.measures.options import MeasureOptions
from kinfold.measures.pairing import (
    NumberCounts,
    Pair,
    PairSource,
    TablePair,
    TupleRows,
    ValueCounts,
    count_values,
    sum_errors,
)
from kinfold.measures.release_warnings import (
    NEEDS_ALL_RECORDS,
    Plausibility,
    check_dominance,
    check_k_alone,
    check_linked_rows,
    check_plausibility,
    check_singling_out,
    measure_structure,
)
from kinfold.measures.risk import ClassView, find_confidential, measure_original_risk, measure_risk
from kinfold.measures.singling_out import list_worst_records, score_records, summarize_scores
from kinfold.models.verdict import Verdict
from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.encoding import Attribute, format_value
from kinfold.tables.display import Displayable
from kinfold.tables.schema import Kind, Role
from kinfold.tables.text_values import warn_of_formulas, warn_of_look_alikes

MAX_CORRELATED = 50  # columns: pairs grow with the square, and a larger table is not read
MAX_MOVES_LISTED = 10  # of a column; the counts are complete

Texts: TypeAlias = Counter[str | None]


@dataclass(frozen=True)
class ColumnShift:
    """What moved in a column: the number of categories that vanished or moved, and the largest move.

    `most` is a difference of shares, or of quantiles in standard deviations. `moves` are the largest ones, as
    `{"value", "before", "after"}` or `{"quantile", "before", "after"}`.
    """

    vanished: int
    moved: int
    most: float
    moves: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"vanished": self.vanished, "moved": self.moved, "most": self.most, "moves": list(self.moves)}


def compare_categories(before: Texts, after: Texts, renamed: set[str]) -> ColumnShift | None:
    """Return the shift of a column of categories; None if the release has labels that are not among its values.

    `renamed` are the new names that the policy gives to values.
    """
    if not {value for value in after if value is not None} <= {*before, *renamed, TOP} or not after.total():
        return None
    values = sorted({*before, *after}, key=lambda value: (value is None, value))
    counts = [np.array([side[value] for value in values], np.int64) for side in (before, after)]
    places = find_moved_shares(*counts)
    p, q = (compute_shares(side) for side in counts)
    moves = [{"value": values[i], "before": float(p[i]), "after": float(q[i])} for i in places[:MAX_MOVES_LISTED]]
    vanished = int(((counts[0] > 0) & (counts[1] == 0)).sum())
    most = float(np.abs(q - p)[places].max(initial=0.0))
    return ColumnShift(vanished, len(places) - vanished, most, tuple(moves))


def compare_quantiles(
    before: ColumnSummary, after: ColumnSummary, format_number: Callable[[float], float | str]
) -> ColumnShift:
    """Return the shift of the quantiles of a column of numbers or dates."""
    deviation = before.variance**0.5
    places = find_moved_quantiles(before.quantiles, after.quantiles, deviation)
    moves = tuple(
        {
            "quantile": SUMMARY_QUANTILES[i],
            "before": format_number(before.quantiles[i]),
            "after": format_number(after.quantiles[i]),
        }
        for i in places
    )
    largest = max((abs(after.quantiles[i] - before.quantiles[i]) for i in places), default=0.0)
    return ColumnShift(0, len(places), largest / deviation if deviation else float(largest > 0), moves)


LEAST_MOVE = 0.2  # a fifth
SLACK = 1 + 1e-9  # moves that differ from a fifth only by rounding do not count


def compute_shares(counts: ArrayLike) -> Floats:
    """Return the share of each category.

    >>> compute_shares([3, 1]).tolist()
    [0.75, 0.25]
    """
    records = np.asarray(counts, np.float64)
    if not records.sum():
        raise NotApplicable("one of the tables has no records")
    return np.asarray(records / records.sum(), np.float64)


def find_moved_shares(before: ArrayLike, after: ArrayLike) -> Ints:
    """Return the places of the categories whose share moved by more than a fifth, the largest move first.

    >>> find_moved_shares([72, 5, 23], [96, 0, 4]).tolist()
    [0, 2, 1]
    """
    p, q = compute_shares(before), compute_shares(after)
    moved = np.abs(q - p)
    relative = np.divide(moved, p, out=np.full(len(p), np.inf), where=p > 0)
    order = np.lexsort((-np.round(relative, 12), -np.round(moved, 12)))  # stable; rounded, so that ties are ties
    return np.asarray(order[(moved > LEAST_MOVE * SLACK * p)[order]], np.int64)


def find_moved_quantiles(before: ArrayLike, after: ArrayLike, deviation: float) -> Ints:
    """Return the places of the quantiles that moved by more than a fifth of the standard deviation, largest first.

    >>> find_moved_quantiles([1.0, 5.0, 9.0], [4.0, 5.5, 7.0], deviation=4.0).tolist()
    [0, 2]
    """
    moved = np.abs(np.asarray(after, np.float64) - np.asarray(before, np.float64))
    order = np.argsort(-moved, kind="stable")
    return np.asarray(order[(moved > LEAST_MOVE * SLACK * deviation)[order]], np.int64)


MAX_VALUES_LISTED = 50  # of a column of categories, in the audit and in the dictionary: more would fill them


@dataclass(frozen=True, eq=False)
class RecordRisk:
    """The risk of each original record, 1 / class size, before and after; NaN `after` for a record that is left out.

    It is internal: it shows which records are easiest to find. No file contains it.
    """

    before: Floats
    after: Floats

    def __repr__(self) -> str:
        return f"<RecordRisk: before and after, of {plural(len(self.before), 'record')}>"


def compute_record_risk(pair: Pair, rows: Any) -> RecordRisk:
    """Return the risk of each original record."""
    before, after = (1.0 / np.where(sizes > 0, sizes, np.nan) for sizes in pair.class_sizes)
    places = rows.places() if isinstance(rows, TupleRows) else slice(None)
    return RecordRisk(before[places], after[places])


@dataclass(frozen=True)
class Statistics:
    """Statistics of the columns before and after, as plain values."""

    numbers: dict[str, dict[str, Any]]
    correlations: dict[str, Any]
    frequencies: dict[str, dict[str, Any]]
    shift: dict[str, dict[str, Any]] = field(default_factory=dict)  # a loss: not repeated with the statistics
    not_compared: tuple[str, ...] = ()  # columns whose released labels are not values of the original

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"numbers": self.numbers, "correlations": self.correlations, "frequencies": self.frequencies}


def compute_statistics(tables: TablePair, columns: Sequence[BoundColumn]) -> Statistics:
    """Return the statistics of the columns of both tables."""
    numbers: dict[str, dict[str, Any]] = {}
    frequencies: dict[str, dict[str, Any]] = {}
    shifts: dict[str, ColumnShift | None] = {}
    for bound in columns:
        before = count_values(tables.engine, tables.original, bound, tables.sample, original=True)
        after = count_values(tables.engine, tables.released, bound, tables.sample)
        if bound.kind.is_numeric and isinstance(before, NumberCounts):
            old, new = (_summarize_column(side) for side in (before, after))
            numbers[bound.name] = {"before": _format_summary(bound, old), "after": _format_summary(bound, new)}
            if old is not None and (new is not None or isinstance(after, Counter)):
                shifts[bound.name] = compare_quantiles(old, new, partial(_format_number, bound)) if new else None
        elif isinstance(before, Counter) and isinstance(after, Counter) and not bound.kind.is_numeric:
            frequencies[bound.name] = _list_frequencies(before, after)
            shifts[bound.name] = compare_categories(before, after, {*(bound.request.map or {}).values()})
    left_out = tuple(name for name, shift in shifts.items() if shift is None)
    moved = [(name, shift) for name, shift in shifts.items() if shift is not None and shift.moves]
    moved.sort(key=lambda each: -each[1].most)
    both = [name for name, sides in numbers.items() if None not in sides.values()][:MAX_CORRELATED]
    shifted = {name: shift.to_dict() for name, shift in moved}
    return Statistics(numbers, _correlate_both(tables, both), frequencies, shifted, left_out)


def _correlate_both(tables: TablePair, both: list[str]) -> dict[str, Any]:
    """Return the correlations of the complete records of both tables; null with a constant column."""
    if len(both) < 2:
        return NO_CORRELATIONS
    matrices = []
    for frame in (tables.original, tables.released):
        schema = tables.engine.schema(frame)
        count, _, covariances = tables.engine.moments(frame, {name: schema[name] for name in both})
        try:
            matrix = evaluate(partial(correlate, count, covariances))
        except NotApplicable:
            matrix = np.full((len(both), len(both)), np.nan)
        matrices.append([[None if np.isnan(value) else float(value) for value in row] for row in matrix])
    return {"columns": both, "before": matrices[0], "after": matrices[1]}


def _summarize_column(values: ValueCounts) -> ColumnSummary | None:
    if not isinstance(values, NumberCounts):
        return None  # the release has ranges
    try:
        return evaluate(lambda: summarize(values.finite, weight=values.records))
    except NotApplicable:
        return None


def _format_number(bound: BoundColumn, number: float) -> float | str:
    return format_value(bound, number) if bound.kind is Kind.DATE else number


def _format_summary(bound: BoundColumn, summary: ColumnSummary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    shares = zip(SUMMARY_QUANTILES, summary.quantiles, strict=True)
    return {
        "count": summary.count,
        "missing": summary.missing,
        "mean": _format_number(bound, summary.mean),
        "variance": summary.variance,
        "quantiles": {f"{share:g}": _format_number(bound, value) for share, value in shares},
    }


def _list_frequencies(before: Counter[str | None], after: Any) -> dict[str, Any]:
    totals = {value: before[value] + after[value] for value in {*before, *after} if value is not None}
    values = sorted(totals, key=lambda value: (-totals[value], value))[:MAX_VALUES_LISTED]
    sides = {"before": before, "after": after}
    return {
        "values": values,
        **{when: [side[value] for value in values] for when, side in sides.items()},
        "rest": {when: s.total() - s[None] - sum(s[value] for value in values) for when, s in sides.items()},
        "missing": {when: side[None] for when, side in sides.items()},
    }


NO_CORRELATIONS: dict[str, Any] = {"columns": [], "before": [], "after": []}
NO_STATISTICS = Statistics({}, NO_CORRELATIONS, {})


@dataclass(frozen=True)
class Measures(Displayable):
    """Risk and loss as in the JSON contract, statistics before and after, and warnings.

    `risk_by_record` is the risk of each original record, if the tables can be paired; no file contains it.
    `worst_records` are the original records that are easiest to single out, for the internal report.
    """

    values: Mapping[str, Any]
    statistics: Statistics = NO_STATISTICS
    warnings: tuple[str, ...] = field(default=())
    worst_records: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    compute_by_record: Callable[[], RecordRisk] | None = field(default=None, repr=False)

    @cached_property
    def risk_by_record(self) -> RecordRisk | None:
        """The risk of each original record, computed on first use."""
        return None if self.compute_by_record is None else self.compute_by_record()

    def to_dict(self, *, show_values: bool = True) -> dict[str, Any]:
        """Return plain values, nested by `risk` and `loss`; without `show_values`, no categories of the original."""
        if show_values:
            return dict(self.values)
        shift, structure = self.values["loss"]["shift"], self.values["structure"]
        counts = {name: {key: shift[name][key] for key in ("vanished", "moved", "most")} for name in shift}
        broken = [each if each["kind"] != "implication" else {**each, "check": None} for each in structure["broken"]]
        loss = {**self.values["loss"], "shift": counts}
        if "estimates" in (loss.get("task") or {}):
            hidden = [{**each, "category": None} for each in loss["task"]["estimates"]]
            loss["task"] = {**loss["task"], "estimates": hidden}
        return {**self.values, "loss": loss, "structure": {**structure, "broken": broken}}

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return the title and values for a notebook."""
        return "measures", self.to_dict()

    def __repr__(self) -> str:
        lost, risk = self.values["loss"]["overall"], self.values["risk"]["prosecutor_max"]
        loss = "loss unknown" if lost is None else f"{lost:.1%} lost"
        return f"<Measures: {loss}, highest risk {'unknown' if risk is None else f'{risk:.1%}'}>"

    def with_measure(self, section: str, key: str, value: Any, *notes: str) -> Measures:
        """Return the measures with one more risk or loss, and notes on it."""
        return self.with_measures(section, {key: value}, *notes)

    def with_measures(self, section: str, values: Mapping[str, Any], *notes: str) -> Measures:
        """Return the measures with further ones of a section, and notes on them."""
        own = {section: {**self.values[section], **values}, "notes": [*self.values["notes"], *notes]}
        return replace(self, values={**self.values, **own})

    def with_pairing(self, how: str, warnings: Sequence[str]) -> Measures:
        """Return the measures with a description of the pairing of rows, and its warnings."""
        return replace(self, values={"pairing": how, **self.values}).with_warnings(warnings)

    def with_warnings(self, warnings: Sequence[str]) -> Measures:
        """Return the measures with further warnings, which are notes too."""
        values = {**self.values, "notes": [*warnings, *self.values["notes"]]}
        return replace(self, values=values, warnings=(*warnings, *self.warnings))


def measure_release(
    tables: TablePair,
    policy: BoundPolicy,
    verdict: Verdict,
    attributes: Sequence[Attribute],
    options: MeasureOptions | None = None,
) -> Measures:
    """Measure a release; `attributes` are the original columns over which losses are measured."""
    options = (options or MeasureOptions()).complete(policy.request)
    quasi = policy.quasi
    sizes = tables.engine.tally(tables.released, quasi, {}).sizes
    pair = compute_once(lambda: tables.pair(attributes))
    known = compute_once(lambda: pair().select(quasi))  # what an attacker knows
    any_order = known
    if tables.is_paired:
        known()  # read the tables now: formulas run with strict floating-point checks
    else:
        any_order = compute_once(lambda: tables.pair_in_any_order(attributes).select(quasi))
    classes = find_confidential(tables, tables.released, policy, lambda: any_order().masked[any_order().kept])
    suppressed, recorded = max(policy.rows - verdict.records, 0), tables.recorded
    loss = measure_loss(pair, sizes, suppressed, recorded.get("loss", {}), every=options.all_measures)
    columns = [tables.engine.schema(frame).names for frame in (tables.original, tables.released)]
    loss.write("removed_columns", lambda: len({*columns[0]} - {*columns[1]}))
    seed, k = policy.request.method.seed, policy.request.privacy.k
    risk = measure_risk(known, ClassView(sizes, classes), k, options, seed, recorded.get("risk", {}))
    if tables.sample is not None:
        exact = add_exact_errors(loss, sum_errors(tables, tables.sample.recoding, pair().numeric_names))
        note_sample(tables.sample.note, exact, risk, loss)
    add_optional_measures(options, tables, policy, any_order, (risk, loss))
    warnings = tuple(_collect_warnings(tables, policy, known))
    plausibility, plausibility_notes = _measure_plausibility(tables, policy, any_order)
    # the original comes last: the engine keeps only the latest of large counts
    before = measure_original_risk(_view_original(tables, policy, any_order))
    worst = _add_singling_out((risk, before), tables, quasi, options)
    statistics = compute_statistics(tables, policy.released)
    _add_shift(loss, statistics)
    values = {
        "columns": len(columns[0]),
        "records": policy.rows,
        "released": verdict.records,
        "suppressed": policy.rows - verdict.records,
        "classes": verdict.classes,
        "k": verdict.k,
        "l": dict(verdict.l),
        "t": dict(verdict.t),
        "measures": options.measures,
        "risk": risk.values,
        "risk_before": before.values,
        "loss": loss.values,
        "plausibility": plausibility,
        "structure": measure_structure(tables, policy),
        "notes": [*warnings, *plausibility_notes, *collect_notes(risk, before, loss)],
    }
    by_record = partial(compute_record_risk, known(), tables.rows) if tables.is_paired and not tables.sample else None
    return Measures(values, statistics, warnings, worst, by_record)


def _add_singling_out(
    measures: tuple[MeasureTable, MeasureTable], tables: TablePair, quasi: Sequence[str], options: MeasureOptions
) -> tuple[Mapping[str, Any], ...]:
    """Add the measures of how records stand out, after and before; return the original records that do most."""
    risk, before = measures
    score = partial(score_records, tables, quasi=quasi, every=options.all_measures)
    scores = compute_once(lambda: score(tables.original))
    risk.write("suda", lambda: summarize_scores(score(tables.released)))
    before.write("suda", lambda: summarize_scores(scores()))
    write_original_log_linear(before, tables, quasi, options.sampling_weights)
    if before.values["suda"] is None or tables.uses_counts:  # tuples have no place in the table
        return ()
    return tuple(list_worst_records(scores()))


def _add_shift(loss: MeasureTable, statistics: Statistics) -> None:
    loss.write("shift", lambda: statistics.shift)
    if statistics.not_compared:
        columns = ", ".join(f"'{name}'" for name in statistics.not_compared)
        loss.add_note("shift", f"ranges and labels of a hierarchy cannot be compared with single values: {columns}")


def _view_original(tables: TablePair, policy: BoundPolicy, pair: PairSource) -> ClassView:
    """Return the classes of the original, as if it were released unchanged."""
    quasi = policy.quasi
    if tables.sample is not None:
        counts = tables.engine.count_classes(tables.original, quasi)
        sizes, classes = (np.array(each, np.int64) for each in zip(*counts, strict=True))

        def refuse() -> Any:
            raise NotApplicable(NEEDS_ALL_RECORDS)

        return ClassView(sizes, {column.name: refuse for column in policy.with_role(Role.CONFIDENTIAL)}, classes)
    if tables.is_paired:
        sizes = np.bincount(pair().initial, pair().weight).astype(np.int64)
    else:
        sizes = tables.engine.tally(tables.original, quasi, {}).sizes
    return ClassView(sizes, find_confidential(tables, tables.original, policy, lambda: pair().initial))


def _measure_plausibility(tables: TablePair, policy: BoundPolicy, pair: PairSource) -> Plausibility:
    others = [c.name for c in policy.released if c.role is not Role.QUASI and not c.kind.is_numeric]
    try:
        return check_plausibility(tables, pair(), others)
    except NotApplicable as error:
        return {}, [f"plausibility: {error.reason}"]


def _collect_warnings(tables: TablePair, policy: BoundPolicy, known: PairSource) -> Iterator[str]:
    engine = tables.engine
    yield from check_k_alone(engine, tables.released, policy)
    yield from check_linked_rows(engine, tables.released, policy)
    if tables.is_paired:
        yield from check_dominance(tables, known())
    unchanged = [c.name for c in policy.columns if c.unprotected and c.request.perturb is None]
    yield from check_singling_out(tables, policy.quasi, unchanged)
    yield from warn_of_look_alikes(engine, tables.original, policy.text_columns)
    yield from warn_of_formulas(engine, tables.released, policy.request.output.spreadsheet_safe)
