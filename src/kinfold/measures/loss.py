"""Information loss of a release, by column and overall, measured against the original values.

The loss of a column is the mean loss of its cells, 0 to 1. One column may hold several kinds of cells:

    number                squared error in units of the variance of the column
    category              0 or 1; Eq. (1) of Domingo-Ferrer & Torra 2005 (ordinal); the distance in the hierarchy
    label or range        (values covered - 1) / (values - 1): of numbers the values in the column, else those of the
                          hierarchy or order; 1 if it is not true of the original value, or unknown
    * or dropped record   1
    null                  one more value: 0 if the original is null, else 1

If single values were recoded before the method (map, top, bottom, round_to), `restore_original_values` puts the
original values on a scale that also has the recoded ones:

    number or date        the original number; unchanged if the hierarchy does not know it
    category              its old name among all names: a recoded value counts as any other category
    generalized category  its old name one level below its new one: a new name of three values covers three
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError
from kinfold.hierarchies import TOP, Hierarchy
from kinfold.measures.coverage import (
    Coverage,
    LabelSpans,
    Transitions,
    compute_coverage,
    count_transitions,
    find_places,
    find_spans,
)
from kinfold.measures.formulas import categorical_loss, numeric_loss
from kinfold.measures.formulas.arrays import Flags, Floats, Ints, NotApplicable
from kinfold.measures.formulas.numeric_loss import Moments, WeightedColumn
from kinfold.measures.formulas.probabilistic_loss import pil
from kinfold.measures.formulas.utility import propensity_mse
from kinfold.measures.measure_table import MeasureTable, compute_once
from kinfold.measures.pairing import Pair, PairedColumn, PairSource
from kinfold.policy.encoding import (
    Attribute,
    CategoricalAttribute,
    NumericAttribute,
    build_nested_scale,
    encode,
    is_number,
)
from kinfold.tables.engine import Engine
from kinfold.tables.points import NominalScale, OrdinalScale
from kinfold.tables.recoding import encode_dictionary
from kinfold.tables.schema import SECONDS_PER_DAY, Kind

OWN_MARK = "\0"  # distinguishes an old name from an equal new name: no text of a file ends with it


@dataclass(frozen=True)
class ColumnLoss:
    """The loss of a column, 0 to 1, and the share of its cells that changed."""

    lost: float
    changed: float


def measure_column_loss(column: PairedColumn, weight: Ints | None = None) -> ColumnLoss:
    """Return the loss of a paired column; `weight` is the number of records of each row, 1 by default."""
    records = np.ones(len(column.kept), np.int64) if weight is None else weight
    attribute = column.attribute
    if isinstance(attribute, CategoricalAttribute):
        return _category_loss(column, attribute, records)
    if column.numbers is None:
        return _numeric_label_loss(column, attribute, records)
    x, y = attribute.numbers, column.numbers
    same = column.kept & ((x == y) | (np.isnan(x) & np.isnan(y)))
    lost = numeric_loss.number_loss(x, y, column.kept, records)
    return ColumnLoss(lost, float(records[~same].sum() / records.sum()))


def _category_loss(column: PairedColumn, attribute: CategoricalAttribute, records: Ints) -> ColumnLoss:
    null, spans = attribute.null_code, find_spans(column)
    pairs = count_transitions(attribute.codes, column, records)
    code = {text: number for number, text in enumerate(attribute.texts[:-1])}
    category = np.array([*(code.get(label, -1) for label in column.labels), -1, null], np.int64)[pairs.label]
    leaf = pairs.value if attribute.leaf_of_code is None else attribute.leaf_of_code[pairs.value].astype(np.int64)
    lost = _label_loss(column, spans, pairs, leaf, (spans.stop - spans.start, spans.values))
    lost[pairs.value == null] = 1.0
    plain = category >= 0
    lost[plain] = attribute.scale.distances(pairs.value[plain], category[plain])
    return _average_loss(pairs, lost, same=category == pairs.value)


def _numeric_label_loss(column: PairedColumn, attribute: NumericAttribute, records: Ints) -> ColumnLoss:
    """Return the loss of numbers that are released as labels, some of which may still be numbers."""
    places, spans, null = find_places(column), find_spans(column), attribute.null
    pairs = count_transitions(places, column, records)
    present = np.concatenate([[0], np.cumsum(np.bincount(places[~null], minlength=spans.values) > 0)])
    covered = present[spans.stop] - present[spans.start], int(present[-1])
    lost = _label_loss(column, spans, pairs, pairs.value, covered)
    number = np.full(spans.values + 1, np.nan)
    number[places[~null]] = attribute.numbers[~null]
    x, y = number[pairs.value], _label_numbers(column, spans, number)[pairs.label]
    both = ~np.isnan(x) & ~np.isnan(y)
    known = WeightedColumn(attribute.numbers[~null], records[~null].astype(np.float64))
    lost[both] = numeric_loss.squared_errors(x[both], y[both], known)
    missing = pairs.value == spans.values
    lost[missing] = 1.0
    lost[missing & (pairs.label == -1)] = 0.0
    return _average_loss(pairs, lost, same=(x == y) | (missing & (pairs.label == -1)))


def _label_loss(
    column: PairedColumn, spans: LabelSpans, pairs: Transitions, place: Ints, covers: tuple[Ints, int]
) -> Floats:
    """Return the loss of each pair by the number of values that its label covers; null, * and dropped cover none."""
    covered, values = covers
    start, stop = np.append(spans.start, [0, 0]), np.append(spans.stop, [0, 0])
    true = (start[pairs.label] <= place) & (place < stop[pairs.label])
    plain = np.array([label != TOP for label in column.labels] + [False, False])
    known = np.append(spans.known, [False, False])
    covered = np.append(covered, [0, 0])[pairs.label]
    return numeric_loss.label_loss(covered, values, true & (plain & known)[pairs.label])


def _label_numbers(column: PairedColumn, spans: LabelSpans, number: Floats) -> Floats:
    """Return the number of each label that is one, else NaN; at the end NaN for dropped and null."""
    kind, value = column.attribute.bound.kind, (spans.level == 0) & spans.known
    numbers = [
        number[start] if is_value else np.nan if known or label == TOP else _parse_label(label, kind)
        for label, start, is_value, known in zip(column.labels, spans.start, value, spans.known, strict=True)
    ]
    return np.array([*numbers, np.nan, np.nan])


def _parse_label(label: str, kind: Kind) -> float:
    """Return a label as a number, or a date as days, NaN for other texts."""
    try:
        if kind is Kind.CONTINUOUS:
            number = float(label)
        else:
            moment = datetime.fromisoformat(label)
            number = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / SECONDS_PER_DAY
    except (ValueError, OverflowError):
        return np.nan
    return number if np.isfinite(number) else np.nan


def _average_loss(pairs: Transitions, lost: Floats, same: Flags) -> ColumnLoss:
    records = int(pairs.records.sum())
    changed = float(pairs.records[~same].sum()) / records
    return ColumnLoss(min(1.0, float((lost * pairs.records).sum()) / records), changed)


def restore_original_values(
    engine: Engine, original: Any, attributes: Sequence[Attribute], changed: Collection[str]
) -> tuple[Attribute, ...]:
    """Return attributes with the values of the original table in the columns that were recoded."""
    return tuple(_restore(engine, original, a) if a.bound.name in changed else a for a in attributes)


def _restore(engine: Engine, original: Any, attribute: Attribute) -> Attribute:
    bound = replace(attribute.bound, column=engine.schema(original)[attribute.bound.name])
    if isinstance(attribute, CategoricalAttribute):
        index, dictionary = encode_dictionary(engine.collect(original, {bound.name: None}).column(0))
        texts = dictionary.to_pylist()
        if attribute.hierarchy is not None or bound.average == "generalize":
            return _restore_hierarchy(attribute, texts, index)
        return _restore_codes(attribute, texts, index)
    if not (bound.column.storage.kind.is_numeric or bound.column.date_format):
        return attribute  # a map turned texts into numbers
    try:
        numbers = encode(engine, original, [bound])[0]
    except DataError:
        return attribute
    return replace(numbers, bound=attribute.bound) if isinstance(numbers, NumericAttribute) else attribute


def _restore_codes(attribute: CategoricalAttribute, texts: list[str], index: NDArray[Any]) -> CategoricalAttribute:
    """Return the original categories on a scale of old and new ones."""
    bound, names = attribute.bound, {*texts, *attribute.texts[:-1]}
    ordered = bound.kind is Kind.ORDINAL and not bound.request.order and all(map(is_number, names))
    categories = sorted(names, key=Decimal) if ordered else sorted(names)
    place, null, weight = {text: code for code, text in enumerate(categories)}, len(categories), bound.request.weight
    codes = np.array([*(place[text] for text in texts), null], np.int32)
    scale = OrdinalScale(null, weight) if ordered else NominalScale.flat(null + 1, weight)
    return CategoricalAttribute(bound, codes[index], np.array([*categories, None], object), scale)


def _restore_hierarchy(attribute: CategoricalAttribute, texts: list[str], index: NDArray[Any]) -> CategoricalAttribute:
    """Return the original categories in a hierarchy with one more level, below their new names."""
    bound = attribute.bound
    new_codes = dict(zip(index.tolist(), attribute.codes.tolist(), strict=True))  # equal texts have equal codes
    paths = {text: _label_path(attribute, new_codes[place]) for place, text in enumerate(texts) if place in new_codes}
    if not paths:
        return attribute
    shared = Counter(path[0] for path in paths.values())
    labels = {label for path in paths.values() for label in path}
    rows = {
        text: (text if text not in labels or (text == path[0] and shared[text] == 1) else f"{text}{OWN_MARK}", *path)
        for text, path in paths.items()
    }
    hierarchy = Hierarchy.from_rows([*rows.values()])
    leaf = hierarchy.index([rows[text][0] if text in rows else "" for text in texts])
    codes = np.append(leaf, len(hierarchy)).astype(np.int32)
    leaf_of_code = np.append(np.arange(len(hierarchy)), -1).astype(np.int32)
    names, scale = np.array([*hierarchy.values, None], object), build_nested_scale(hierarchy, bound.request.weight)
    return CategoricalAttribute(bound, codes[index], names, scale, hierarchy, leaf_of_code)


def _label_path(attribute: CategoricalAttribute, code: int) -> tuple[str, ...]:
    """Return the new name of a category and all labels above it; null is a name of its own below the top."""
    if code == attribute.null_code:
        height = 1 if attribute.hierarchy is None else attribute.hierarchy.height
        return *(OWN_MARK,) * height, TOP
    if attribute.hierarchy is None or attribute.leaf_of_code is None:
        return str(attribute.texts[code]), TOP
    return tuple(str(label) for label in attribute.hierarchy.labels[attribute.leaf_of_code[code]])


def measure_loss(
    pair: PairSource, sizes: Ints, suppressed: int, recorded: Mapping[str, Any], *, every: bool
) -> MeasureTable:
    """Return all losses of a release; those that need paired tables are null if `pair` raises `NotApplicable`."""
    table = MeasureTable("loss", recorded)
    lost = compute_once(lambda: {column.name: measure_column_loss(column, pair().weight) for column in pair().columns})
    table.write("overall", lambda: numeric_loss.mean_loss([each.lost for each in lost().values()]))
    table.write("by_column", lambda: {name: each.lost for name, each in lost().items()})
    table.write("changed", lambda: {name: each.changed for name, each in lost().items()})
    _add_numeric(table, pair)
    if every:
        table.write("propensity_mse", lambda: propensity_mse(*_require_numbers(pair())))
    _add_generalized(table, pair)
    _add_categorical(table, pair)
    table.write("discernibility", lambda: categorical_loss.discernibility(sizes, suppressed))
    table.write("average_class_size", lambda: categorical_loss.average_class_size(sizes))
    return table


def _require_numbers(pair: Pair) -> tuple[Floats, Floats]:
    if pair.numbers is None:
        raise NotApplicable("no quasi-identifier is released as numbers")
    return pair.numbers


def _add_numeric(table: MeasureTable, pair: PairSource) -> None:
    def numbers() -> tuple[Floats, Floats]:
        return _require_numbers(pair())

    def sse_by_column() -> dict[str, float]:
        x, y = standard()
        return {name: numeric_loss.sse(x[:, j], y[:, j], pair().weight) for j, name in enumerate(pair().numeric_names)}

    standard = compute_once(lambda: numeric_loss.standardize(*numbers(), pair().weight))
    lost = compute_once(lambda: numeric_loss.sse(*standard(), pair().weight))
    varied = compute_once(lambda: numeric_loss.sst(standard()[0], pair().weight))
    table.write("sse", lost)
    table.write("sse_by_column", sse_by_column)
    table.write("sst", varied)
    table.write("sse_ratio", lambda: numeric_loss.lost_share(lost(), varied()))
    table.write("normalized_sse", lambda: numeric_loss.normalized_sse(*numbers(), pair().weight))
    filled = compute_once(
        lambda: [numeric_loss.fill_with_means(numbers()[0], side, pair().weight) for side in numbers()]
    )
    moments = compute_once(lambda: [Moments.from_table(side, pair().weight) for side in filled()])
    table.write("il1", lambda: numeric_loss.il1(*numbers(), pair().weight))
    for formula in (numeric_loss.il2, numeric_loss.il3, numeric_loss.il4, numeric_loss.il5):
        table.write(formula.__name__, lambda formula=formula: formula(*moments()))  # type: ignore[misc]
    parts = tuple(table.values[f"il{i}"] for i in range(1, 6))
    table.write("il", lambda: _combine(parts))
    table.write("il1s", lambda: numeric_loss.il1s(*numbers(), pair().weight))
    table.write("eigenvalues", lambda: numeric_loss.eigenvalue_shift(*moments()))
    table.write("pil", lambda: asdict(pil(filled()[0], filled()[1], pair().weight, (moments()[0], moments()[1]))))


def add_exact_errors(table: MeasureTable, errors: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """Replace estimates by sums over all records of a large table; return the keys of these measures."""
    if not errors:
        return ()
    lost, varied = (sum(each[part] for each in errors.values()) for part in (0, 1))
    table.write("sse", lambda: lost)
    table.write("sse_by_column", lambda: {name: each for name, (each, _) in errors.items()})
    table.write("sst", lambda: varied)
    table.write("sse_ratio", lambda: numeric_loss.lost_share(lost, varied))
    return "sse", "sse_by_column", "sst", "sse_ratio"


def _combine(parts: tuple[Any, ...]) -> float:
    if None in parts:
        raise NotApplicable("one of il1 to il5 does not apply")
    return numeric_loss.il(parts)


def _add_generalized(table: MeasureTable, pair: PairSource) -> None:
    def compute() -> dict[PairedColumn, Coverage]:
        cells = {column: compute_coverage(column, pair().weight) for column in pair().columns if column.generalized}
        if not cells:
            raise NotApplicable("no quasi-identifier is generalized: values are averaged instead")
        return cells

    cells = compute_once(compute)

    def average(formula: Callable[..., float], part: str, whole: str) -> float:
        weights = [column.attribute.bound.request.weight for column in cells()]
        each = cells().values()
        return formula([getattr(c, part) for c in each], [getattr(c, whole) for c in each], weights)

    def granularity_by_column() -> dict[str, float]:
        return {column.name: 1.0 - (c.covered - 1.0) / max(c.values - 1, 1) for column, c in cells().items()}

    table.write("prec", lambda: average(categorical_loss.prec, "level", "height"))
    table.write("granularity", lambda: average(categorical_loss.granularity, "covered", "values"))
    table.write("granularity_by_column", granularity_by_column)


def _add_categorical(table: MeasureTable, pair: PairSource) -> None:
    def columns() -> list[tuple[PairedColumn, CategoricalAttribute]]:
        plain = [column for column in pair().columns if not column.generalized]
        chosen = [(c, c.attribute) for c in plain if isinstance(c.attribute, CategoricalAttribute)]
        if not chosen:
            raise NotApplicable("no ordinal or nominal quasi-identifier is released as categories")
        return chosen

    def codes() -> tuple[Ints, Ints]:
        before, after = (np.column_stack([getattr(c, side) for c, _ in columns()]) for side in ("before", "after"))
        weight = pair().weight
        rows = np.repeat(np.arange(len(before)), 1 if weight is None else weight)
        return before[rows], np.maximum(after[rows], -1)  # a dropped record loses its categories

    def dist() -> float:
        scales = [attribute.scale for _, attribute in columns()]
        sizes = [scale.size if isinstance(scale, OrdinalScale) else 0 for scale in scales]
        return categorical_loss.dist(*codes(), sizes)

    cells = compute_once(lambda: categorical_loss.contingency_loss(*codes(), [a.scale.codes - 1 for _, a in columns()]))
    table.write("dist", dist)
    table.write("ctbil", lambda: cells()[0])
    table.write("actbil", lambda: cells()[0] / cells()[1])
    table.write("ebil", lambda: categorical_loss.ebil(*codes()))
