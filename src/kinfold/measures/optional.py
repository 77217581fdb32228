"""Measures on request: risk from a population or from sampling weights, linkage on subsets, and the loss of a task.

    risk.journalist, risk.individual    {max, mean}; also `risk.journalist_max` and `risk.marketer`
    risk.tau1, risk.tau2                see `singling_out`: with sampling weights
    risk.uniques                        {sample, dankar, zayatz, pitman, snb}: with people of a population or weights
    risk.above_threshold                {threshold, prosecutor, journalist or individual}: shares of the records
    risk.household_max                  with privacy.household: see `formulas.attackers`
    risk.linkage_subsets                [{columns, linkage, bound}], bound = 1/k
    risk.linkage_untouched              {columns, linkage}
    loss.task                           {task, original, released, loss}: see `usefulness`

Population: a table of the people that the release was sampled from, with the original quasi-identifiers. Each person
counts for the nearest released classes in the distance of the policy, which is 0 for a class that covers the person. F
of a class is the number of its people, at least the number of its records; the journalist's risk is 1 / F. Cost:
distinct people times classes. Sampling weights are a column of the release or of the original.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from kinfold.errors import DataError, Problem
from kinfold.hierarchies import TOP
from kinfold.measures.coverage import compute_gaps, find_extents, require_known_labels
from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable, group_rows
from kinfold.measures.formulas.attackers import (
    household_risk,
    individual_risk,
    journalist_risk,
    marketer_risk,
    prosecutor_risk,
    share_above,
)
from kinfold.measures.formulas.uniques import sample_uniques
from kinfold.measures.measure_table import MeasureTable, compute_once, evaluate
from kinfold.measures.options import FORMULA, MeasureOptions
from kinfold.measures.pairing import Pair, PairedColumn, PairSource, TablePair
from kinfold.measures.release_warnings import NEEDS_ALL_RECORDS
from kinfold.measures.risk import link_subsets, link_untouched
from kinfold.measures.singling_out import ESTIMATORS, write_log_linear
from kinfold.measures.usefulness import fit_formula, fit_task
from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.encoding import CategoricalAttribute, encode
from kinfold.tables.plain_columns import encode_columns
from kinfold.tables.queries import number_texts
from kinfold.tables.recoding import encode_dictionary
from kinfold.tables.schema import Kind, Role

PAIRS_PER_CHUNK = 2_000_000  # about 16 MB for each column
MAX_POPULATION_PAIRS = 2_000_000_000  # about a minute
DISTANCE_SLACK, DISTANCE_EPSILON = 1 + 1e-9, 1e-12  # distances that differ only by rounding are equal


def compute_journalist_risk(pair: Pair, engine: Any, people: Any) -> Floats:
    """Return 1 / F of each released record; `people` is the frame of the population."""
    require_known_labels(pair.columns)
    table = _collect_people(pair, engine, people)
    classes, first = group_released(pair)
    sides = build_class_distances(pair, first)
    known = [side.read(table.column(column.name)) for side, column in zip(sides, pair.columns, strict=True)]
    counts = _count_nearest(sides, np.column_stack(known), len(first))
    return journalist_risk(classes, np.maximum(counts, np.bincount(classes)))


def read_sampling_weights(tables: TablePair, name: str) -> tuple[Floats, int]:
    """Return the sampling weights of the released records, and the number of missing ones.

    They are those of the original if its rows are paired, else those of the release. Missing weights are replaced by
    the mean of the others.
    """
    sides = [(tables.original, tables.rows), (tables.released, None)]
    for frame, rows in sides[isinstance(tables.rows, str) :]:
        column = tables.engine.schema(frame).get(name)
        if column is None:
            continue
        if column.storage.kind is not Kind.CONTINUOUS:
            raise DataError(f"the sampling weights '{name}' are not all numbers", fix="give every record a weight")
        weights = tables.engine.collect(frame, {name: column}).column(0).to_numpy(zero_copy_only=False)
        weights = np.asarray(weights if rows is None else weights[rows], np.float64)
        missing = np.isnan(weights)
        if missing.all():
            raise NotApplicable("every sampling weight is missing")
        if (weights[~missing] < 1).any():  # weights that are scaled to the size of the sample
            raise NotApplicable("some sampling weights are below 1, so they are not numbers of people")
        return np.where(missing, weights[~missing].mean(), weights), int(missing.sum())
    if isinstance(tables.rows, str) and name in tables.engine.schema(tables.original):
        raise NotApplicable(tables.rows)
    what = f"no column '{name}' for the sampling weights"
    raise DataError(what, fix="name a column of the release or of the original")


def number_households(tables: TablePair, name: str) -> Ints:
    """Return the number of the household of each released record: of the original, or its surrogate."""
    sides = [(tables.original, tables.rows), (tables.released, None)]
    for frame, rows in sides[not isinstance(tables.rows, np.ndarray) :]:
        if name in frame.names:
            numbers = number_texts(tables.engine, frame, name)
            return numbers[rows] if isinstance(rows, np.ndarray) else numbers
    raise NotApplicable("the rows of the two tables are not paired, and the release has no surrogate of households")


def _collect_people(pair: Pair, engine: Any, people: Any) -> Any:
    schema, problems, wanted = engine.schema(people), [], {}
    for column in pair.columns:
        stored = schema.get(column.name)
        numeric = not isinstance(column.attribute, CategoricalAttribute)
        if stored is None:
            what = f"the population has no column '{column.name}'"
            problems.append(Problem(what, "give a population with all quasi-identifiers"))
        elif numeric and not stored.holds(column.attribute.bound.kind):
            what = f"'{column.name}' of the population is not {column.attribute.bound.kind}"
            problems.append(Problem(what, "correct the values of this column in the population table"))
        wanted[column.name] = stored if numeric else None
    if problems:
        raise DataError(problems)
    return engine.collect(people, wanted)


def build_class_distances(pair: Pair, first: Ints) -> list[_NumberDistance | _CategoryDistance]:
    """Return the distances to all classes for each column; `first` has a row of each class."""
    return [
        _CategoryDistance(c, first) if isinstance(c.attribute, CategoricalAttribute) else _NumberDistance(c, first)
        for c in pair.columns
    ]


def group_released(pair: Pair) -> tuple[Ints, Ints]:
    """Return the class of each released record and the first original row of each class."""
    classes, first = group_rows(np.column_stack([column.after[pair.kept] for column in pair.columns]))
    return classes, np.flatnonzero(pair.kept)[first]


class _NumberDistance:
    """The range of a number in each class, and the distance of other numbers to it."""

    def __init__(self, column: PairedColumn, at: Ints) -> None:
        if column.numbers is not None:
            self.low = self.high = column.numbers[at]
        else:
            assert column.place is not None  # noqa: S101  a column has numbers or labels
            low, high = (np.append(ends, [np.nan, np.nan])[column.place[at]] for ends in find_extents(column))
            self.low, self.high = low, high
        numbers = column.attribute.numbers  # type: ignore[union-attr]
        deviation = float(np.nanstd(numbers))
        self.weight = column.attribute.bound.request.weight
        self.unit = 1.0 / deviation if deviation > 0 else 0.0

    def read(self, values: Any) -> Floats:
        """Return a column of the population as numbers."""
        return np.asarray(values.to_numpy(zero_copy_only=False), np.float64)

    def squared_distance(self, values: Floats) -> Floats:
        """Return the squared distance of each value to each class."""
        x = values[:, None]
        gap = np.maximum(np.maximum(self.low - x, x - self.high), 0.0) * self.unit
        both_missing = np.isnan(x) & np.isnan(self.low)
        return self.weight * np.where(both_missing, 0.0, np.where(np.isnan(gap), 1.0, gap)) ** 2


class _CategoryDistance:
    """The distance of each category to the label of each class."""

    def __init__(self, column: PairedColumn, at: Ints) -> None:
        self.column = column
        assert column.place is not None  # noqa: S101  codes are released as labels
        table = compute_gaps(column)
        is_top = np.array([label == TOP for label in (*column.labels, "")])
        unknown = np.where(is_top, 0.0, table.max())  # for categories that the original lacks
        self.table = np.vstack([table, unknown])[:, np.where(column.place < 0, len(column.labels), column.place)[at]]

    def read(self, values: Any) -> Floats:
        """Return a column of the population as numbers."""
        attribute = self.column.attribute
        assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  the caller checks
        place = {text: code for code, text in enumerate(attribute.texts[:-1])}
        index, texts = encode_dictionary(values)
        code = [place.get(text, len(self.table) - 1) for text in texts.to_pylist()]
        return np.asarray(np.array([*code, attribute.null_code], np.float64)[index], np.float64)

    def squared_distance(self, values: Floats) -> Floats:
        """Return the squared distance of each value to each class."""
        return np.asarray(self.table[values.astype(np.int64)], np.float64)


def _count_nearest(sides: Sequence[_NumberDistance | _CategoryDistance], people: Floats, classes: int) -> Ints:
    """Return for each class the number of people whose nearest class it is."""
    group, first = group_rows(people)
    number, distinct = np.bincount(group), people[first]
    if len(distinct) * classes > MAX_POPULATION_PAIRS:
        raise NotApplicable("the population has too many people, or the release too many classes, to compare them all")
    counts = np.zeros(classes, np.int64)
    step = max(1, PAIRS_PER_CHUNK // max(classes, 1))
    for start in range(0, len(distinct), step):
        rows = distinct[start : start + step]
        distances = (side.squared_distance(rows[:, j]) for j, side in enumerate(sides))
        distance = sum(distances, np.zeros((len(rows), classes)))
        nearest = distance <= distance.min(axis=1, keepdims=True) * DISTANCE_SLACK + DISTANCE_EPSILON
        counts += number[start : start + step] @ nearest
    return counts


def add_optional_measures(
    options: MeasureOptions,
    tables: TablePair,
    policy: BoundPolicy,
    pair: PairSource,
    measures: tuple[MeasureTable, MeasureTable],
) -> None:
    """Add the optional measures to the tables of risk and loss; `pair` has the quasi-identifiers, in any order."""
    risks, losses = measures
    seed = policy.request.method.seed
    promised = policy.request.privacy.population
    chance = _add_outside_risks(options, tables, pair, risks, None if promised is None else promised.size)
    if (household := policy.request.privacy.household) is not None:
        number = partial(number_households, tables, household)
        risks.write("household_max", lambda: float(household_risk(chance(), number()).max()))
    if options.linkage_subsets:
        k = int(np.bincount(pair().masked[pair().kept]).min())
        risks.write("linkage_subsets", lambda: link_subsets(_require_pair(tables, pair), risks, k, seed))
    if options.linkage_untouched:
        names = [c.name for c in policy.released if c.role is not Role.QUASI]
        paired = partial(_require_pair, tables, pair)
        risks.write("linkage_untouched", lambda: link_untouched(paired(), risks, tables, names, seed))
    if options.task is not None:
        kind, target = options.parse_task()
        fit = partial(fit_formula, formula=target) if kind == FORMULA else partial(fit_task, kind=kind, target=target)
        losses.write("task", lambda: fit(_pair_all_columns(tables, policy.released)))


def _pair_all_columns(tables: TablePair, columns: Sequence[BoundColumn]) -> Pair:
    """Return all columns of both tables in any order of rows, or those of the sample of a large table."""
    original, released = tables.inspected
    whole = replace(tables, original=original, released=released, rows="a fit needs no pairs of rows")
    try:
        return whole.pair_in_any_order(encode(tables.engine, original, columns))
    except DataError:
        if any(column.request.map for column in columns):
            raise NotApplicable("orders and hierarchies of columns with a map have only its new values") from None
        raise


def _require_pair(tables: TablePair, pair: PairSource) -> Pair:
    if isinstance(tables.rows, str):
        raise NotApplicable(tables.rows)
    return pair()


def _add_outside_risks(
    options: MeasureOptions, tables: TablePair, pair: PairSource, table: MeasureTable, size: int | None
) -> Callable[[], Floats]:
    """Add the risk from attackers who do not know whether a person is in the release; return the best known risk."""
    risks: dict[str, Callable[[], Floats]] = {"prosecutor": lambda: prosecutor_risk(_released_classes(pair))}
    people: Callable[[], int] | None = None if size is None else lambda: size
    if options.population is not None:
        population = tables.engine.read(options.population, form=tables.original.form.for_other_file(released=False))
        risks["journalist"] = compute_once(lambda: compute_journalist_risk(pair(), tables.engine, population))
        people = compute_once(lambda: int(tables.engine.schema(population).rows))
    elif options.sampling_weights is not None:
        column = options.sampling_weights
        weights = compute_once(lambda: read_sampling_weights(tables, column))
        risks["individual"] = compute_once(
            lambda: individual_risk(_released_classes(pair), _note_missing_weights(weights(), table))
        )
        people = compute_once(lambda: round(float(weights()[0].sum())))
        write_log_linear(table, lambda: _get_released_codes(pair()), lambda: weights()[0])
    for name, risk in list(risks.items())[1:]:
        table.write(name, lambda risk=risk: {"max": float(risk().max()), "mean": marketer_risk(risk())})  # type: ignore[misc]
        table.write("journalist_max", lambda risk=risk: float(risk().max()))  # type: ignore[misc]
        table.write("marketer", lambda risk=risk: marketer_risk(risk()))  # type: ignore[misc]
    if people is not None:
        table.write("uniques", lambda: _estimate_uniques(_released_classes(pair), people()))
    if options.threshold is not None:
        threshold = options.threshold
        table.write(
            "above_threshold",
            lambda: {"threshold": threshold} | {name: share_above(risk(), threshold) for name, risk in risks.items()},
        )
    return list(risks.values())[-1]


def _note_missing_weights(weights: tuple[Floats, int], table: MeasureTable) -> Floats:
    values, missing = weights
    if missing:
        table.add_note("individual", f"{missing:,} missing sampling weights were replaced by the mean of the others")
    return values


def _released_classes(pair: PairSource) -> Ints:
    return pair().masked[pair().kept]


def _get_released_codes(pair: Pair) -> Ints:
    """Return the released quasi-identifiers as codes, records by columns."""
    if pair.weight is not None:
        raise NotApplicable(NEEDS_ALL_RECORDS)
    columns = [np.unique(column.after[pair.kept], return_inverse=True)[1] for column in pair.columns]
    return np.column_stack(columns).astype(np.int64)


def write_original_log_linear(table: MeasureTable, tables: TablePair, quasi: Sequence[str], name: str | None) -> None:
    """Write tau1 and tau2 of the original, if it has the sampling weights."""
    schema = tables.engine.schema(tables.original)
    if name is None or name not in schema or tables.sample is not None:
        return
    rows, names = np.arange(schema.rows), dict.fromkeys(quasi)
    collected: dict[str, None] = dict(names)
    codes = partial(tables.engine.collect, tables.original, collected)
    weights = partial(read_sampling_weights, replace(tables, rows=rows), name)
    write_log_linear(table, lambda: encode_columns(codes(), list(quasi)), lambda: weights()[0])


def _estimate_uniques(classes: Ints, people: int) -> dict[str, float | None]:
    sizes = np.bincount(classes)
    uniques: dict[str, float | None] = {"sample": sample_uniques(sizes)}
    for name, formula in ESTIMATORS.items():
        try:
            uniques[name] = evaluate(partial(formula, sizes, people))
        except NotApplicable:
            uniques[name] = None
    return uniques
