"""Row pairs: which row of a release belongs to which row of its original.

Rows are paired by position if the release kept their order, else by class if the classes are unambiguous. Otherwise
the measures recorded in the audit of the release are used. The audit counts only if its checksums match both files and
its policy has the same quasi-identifiers and the same k.

The order of rows is judged by the evidence in both tables:

    unchanged   columns that are released unchanged: equal values in the same rows, or in other rows
    sorted      a quasi-identifier whose released values are sorted while the original ones are not
    errors      one value for all rows would be closer to the original than the values of the rows
    fit         the value of a class is an average of the original values in its rows, or its label contains them

Unchanged columns decide if they show anything. Without evidence, rows are assumed to be in their order, with a warning:
if values do not fit, if they would also fit after a tenth of the rows changed places, or if nothing can be compared.

Rows are paired by class in these steps:

    a class covers a record if its values are true of all quasi-identifiers of the record
    while a class covers exactly as many records as it has: those are its records, and of no other class
    records that no class covers were left out

Records of a class share their released quasi-identifiers, so that their order inside the class does not change the
loss. They are paired in the order of the other columns. Averages cover only equal records and are not matched. Cost:
distinct original tuples times classes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import lgamma, log
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.measures.formulas.arrays import Flags, Floats, Ints, NotApplicable, group_rows
from kinfold.measures.optional import build_class_distances, group_released
from kinfold.measures.options import MeasureOptions
from kinfold.measures.pairing import LEFT_OUT, Pair, PairedColumn, TablePair, pair_columns
from kinfold.methods.aggregation import round_to_decimals
from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.encoding import Attribute, CategoricalAttribute, NumericAttribute, encode
from kinfold.policy.model import Policy
from kinfold.release.inspection import is_sorted
from kinfold.tables.databases.address import DatabaseAddress
from kinfold.tables.engine import Engine
from kinfold.tables.points import NominalScale
from kinfold.tables.readers.files import hash_rows
from kinfold.tables.recoding import Drop, Keep, Recoding, Treatment, encode_dictionary
from kinfold.tables.schema import Kind, Role

INFERRED_KEYS = ("type", "missing")  # the recorded policy has them even if the holder's policy left them out


@dataclass(frozen=True, eq=False)
class PairSources:
    """The sources of both tables, and the original with single values recoded, as they are released."""

    original: Any
    released: Any
    prepared: Any


@dataclass(frozen=True, eq=False)
class Pairing:
    """The original row of each released row, or why rows are not paired; and the reason."""

    rows: NDArray[np.intp] | str
    reason: str
    doubtful: bool = False

    @classmethod
    def refuse(cls, reason: str) -> Pairing:
        """Return a pairing without pairs."""
        return cls(f"{reason}: they cannot be paired", reason)


def drop_removed(engine: Engine, released: Any, bound: BoundPolicy) -> tuple[Any, list[str]]:
    """Return a table without the removed columns that it still holds, and a warning about them."""
    schema = engine.schema(released)
    names = [column.name for column in bound.columns if column.removed and column.name in schema]
    if not names:
        return released, []
    warning = f"{', '.join(map(repr, names))}: a column that a release must not hold; it is ignored"
    columns: dict[str, Treatment] = {name: Drop() if name in names else Keep() for name in schema.names}
    return engine.apply(released, Recoding(np.zeros(schema.rows, np.int32), columns), schema), [warning]


def pair_rows(
    tables: TablePair,
    sources: PairSources,
    bound: BoundPolicy,
    attributes: Sequence[Attribute],
    options: MeasureOptions,
) -> tuple[TablePair, str, list[str]]:
    """Pair rows by position, by class or not at all; return the tables, how they are paired, and warnings."""
    pairing = pair_by_position(tables, sources, bound, attributes)
    if isinstance(pairing.rows, str):
        tables = pair_by_classes(replace(tables, rows=pairing.rows), bound, attributes, sources.released, options)
        result = "not paired" if isinstance(tables.rows, str) else "paired by classes"
        return tables, f"{result}: {pairing.reason}", []
    warnings = [f"rows are paired by position, but {pairing.reason}"] if pairing.doubtful else []
    return replace(tables, rows=pairing.rows), f"paired by position: {pairing.reason}", warnings


def pair_by_position(
    tables: TablePair, sources: PairSources, bound: BoundPolicy, attributes: Sequence[Attribute]
) -> Pairing:
    """Pair rows by position, unless there is evidence that the release has another order.

    With `output.order = "kept"` in the policy, only unchanged columns count as evidence.
    """
    engine, before = tables.engine, bound.rows
    after = engine.schema(tables.released).rows
    if before != after:
        return Pairing.refuse(f"the original has {plural(before, 'row')} and the release {plural(after, 'row')}")
    if any(isinstance(source, DatabaseAddress) for source in (sources.original, sources.released)):
        return Pairing.refuse("the rows of a database have no order")
    if isinstance(sources.released, Path) and is_sorted(sources.released):
        return Pairing.refuse("the certificate of the release says that its rows were reordered")
    unchanged = [c for c in bound.released if c.role is not Role.QUASI and c.request.perturb is None]
    quasi = [attribute.bound for attribute in attributes if attribute.bound.role is Role.QUASI]
    order = _detect_row_order(tables, sources.prepared, unchanged, quasi, bound.request)
    if order.reordered:
        return Pairing.refuse(f'{order.reason}; if the rows are in the original order, set output.order = "kept"')
    return Pairing(np.arange(before), order.reason, order.doubtful)


def pair_by_classes(
    tables: TablePair, bound: BoundPolicy, attributes: Sequence[Attribute], released: Any, options: MeasureOptions
) -> TablePair:
    """Pair rows by class if the classes are unambiguous, else add the measures that the audit recorded."""
    quasi = [attribute for attribute in attributes if attribute.bound.role is Role.QUASI]
    others = [c.name for c in bound.released if c.role is not Role.QUASI and c.request.perturb is None]
    rows = _match_rows(tables, quasi, others)
    if rows is not None:
        return replace(tables, rows=rows)
    checksum = tables.original.checksum
    recorded = read_recorded_measures(released, checksum, bound) if isinstance(released, Path) else {}
    usable = ("risk",) * (options.weights == "k") + ("loss",) * (options.columns == "quasi")
    return replace(tables, recorded={section: recorded.get(section, {}) for section in usable})


def read_recorded_measures(released: Path, original: str | None, bound: BoundPolicy) -> Mapping[str, Mapping[str, Any]]:
    """Return the measures of a release by section from its audit; empty if there is no audit of these files."""
    file = released.parent.parent / "internal" / "audit.json"
    try:
        if not file.is_file():  # reading a pipe may never end
            return {}
        audit = json.loads(file.read_text("utf-8"))
        source = audit["source"].get("sha256", audit["source"].get("rows"))
        if original is None or source != original or audit["release"]["sha256"] != hash_rows(released):
            return {}
        policy = bound.request.model_dump(mode="json", exclude_none=True)
        if _select_comparable(audit["policy"]) != _select_comparable(policy):
            return {}
        return {section: dict(audit["measures"][section]) for section in ("risk", "loss")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _select_comparable(policy: Mapping[str, Any]) -> Any:
    columns = {
        name: {key: value for key, value in column.items() if key not in INFERRED_KEYS}
        for name, column in policy["columns"].items()
        if column["role"] == Role.QUASI
    }
    return policy["privacy"]["k"], columns


MAX_MATCHING_PAIRS = 50_000_000  # about a second for each column
MIN_COMMON_SHARE = 0.9  # of its values that an unchanged column has in both tables
MIN_EXCESS_SHARE = 0.02  # of rows with equal values, above chance
MAX_LOG_CHANCE = log(0.01)  # of values that are sorted by chance
MAX_ORDER_CORRELATION = 0.5  # of original values with their rows: with more, sorted values are no surprise
SHARE_TOLERANCE = 1e-9  # of shares, and of averages relative to the largest value
MAX_SMALL_ERROR = 0.05  # of the largest one: twice the share of the rows that can be in other places
NEAR = "both tables have the same number of rows, and nearly equal values in the same rows"
PROBE_PART = 10  # every so many rows change places, to see whether another order would be noticed


def _match_rows(tables: TablePair, attributes: Sequence[Attribute], others: Sequence[str]) -> NDArray[np.intp] | None:
    """Return the original row of each released one, None if the classes do not determine it.

    `attributes` are the quasi-identifiers, `others` the names of the other columns.
    """
    try:
        pair = tables.pair_in_any_order(attributes)
    except NotApplicable:
        return None
    classes, first = group_released(pair)
    columns = [a.codes if isinstance(a, CategoricalAttribute) else a.numbers for a in attributes]
    values = np.column_stack(columns).astype(np.float64)
    group, chosen = group_rows(values)
    if len(chosen) * len(first) > MAX_MATCHING_PAIRS:
        return None
    covers = np.ones((len(chosen), len(first)), np.bool_)  # tuples of original values by classes
    for j, side in enumerate(build_class_distances(pair, first)):
        covers &= side.squared_distance(values[chosen, j]) == 0.0
    owner = _assign_owners(covers, np.bincount(group), np.bincount(classes))
    return None if owner is None else _pair_rows(tables, owner[group], classes, others)


def _assign_owners(true: Flags, records: Ints, sizes: Ints) -> Ints | None:
    """Return the class of each tuple, `LEFT_OUT` if it has none; None if it is ambiguous."""
    owner = np.full(len(true), LEFT_OUT, np.int64)
    left = np.ones(len(sizes), np.bool_)
    while left.any():
        sure = left & (records @ true == sizes)
        if not sure.any() or (true[:, sure].sum(axis=1) > 1).any():
            return None
        assigned = true[:, sure].any(axis=1)
        owner[assigned] = np.flatnonzero(sure)[true[assigned][:, sure].argmax(axis=1)]
        true[assigned] = False
        left &= ~sure
    return owner


def _pair_rows(tables: TablePair, before: Ints, after: Ints, others: Sequence[str]) -> NDArray[np.intp]:
    """Pair the records of each class in the order of the other columns."""
    names = [name for name in others if name in tables.engine.schema(tables.released)]
    both = (tables.original, tables.released) if names else ()
    sides = [tables.engine.collect(side, dict.fromkeys(names)) for side in both]
    numbers: dict[str, dict[Any, int]] = {name: {} for name in names}
    keys = [[_number_values(side.column(name), number) for name, number in numbers.items()] for side in sides]
    first, second = keys or ([], [])
    old = np.lexsort((*first, before))[int((before == LEFT_OUT).sum()) :]
    new = np.lexsort((*second, after))
    rows = np.empty(len(after), np.intp)
    rows[new] = old
    return rows


def _number_values(column: Any, number: dict[Any, int]) -> Ints:
    """Return the values of a column as numbers, -1 for null; new values are added to `number`."""
    places, texts = encode_dictionary(column)
    codes = [number.setdefault(text, len(number)) for text in texts.to_pylist()]
    return np.array([*codes, -1], np.int64)[places]


@dataclass(frozen=True)
class RowOrder:
    """Whether the rows of a release are in another order than those of its original, and the evidence."""

    reordered: bool
    reason: str
    doubtful: bool = False  # evidence against the assumed order, but no proof


def _detect_row_order(
    tables: TablePair, original: Any, untouched: Sequence[BoundColumn], quasi: Sequence[BoundColumn], request: Policy
) -> RowOrder:
    """Return whether two tables with equal numbers of rows have the same order.

    `original` has the values of unchanged columns as released. If the policy says that the order is kept, this holds
    unless every unchanged column with evidence contradicts it.
    """
    known = [each for each in _check_untouched(tables, original, untouched) if each is not None]
    kept = request.output.order == "kept"
    stated = (min if kept else max)(known, key=lambda each: each.reordered) if known else None
    if stated is None and kept:
        stated = RowOrder(False, 'the policy says output.order = "kept"')
    if stated is not None and stated.reordered:
        return stated
    rows = np.arange(tables.engine.schema(original).rows)
    attributes = encode(tables.engine, original, quasi)
    pair = pair_columns(tables.engine, tables.released, attributes, rows)
    for column in () if stated else pair.columns:
        if _is_newly_sorted(column):
            reason = f"the rows of the release are sorted by '{column.name}', those of the original are not"
            return RowOrder(True, reason)
    errors = [error for column in pair.columns if (error := _position_error(column)) is not None]
    if errors and sum(errors) > (1 + SHARE_TOLERANCE) * len(errors):
        reason = (
            "released values are farther from the original values in the same rows than one value for all rows would "
            "be (SSE exceeds SST, or the same for categories): the rows were probably reordered"
        )
        return RowOrder(False, reason, doubtful=True)
    near = bool(errors) and sum(errors) <= MAX_SMALL_ERROR * len(errors)
    return _judge_fit(pair, request, stated or (RowOrder(False, NEAR) if near else None))


def _judge_fit(pair: Pair, request: Policy, stated: RowOrder | None) -> RowOrder:
    """Return whether released values fit the original values in the same rows, and only in these.

    `stated` is the order that unchanged columns, the policy, or small errors show.
    """
    judged = [c for c in pair.columns if c.attribute.bound.request.perturb is None]
    plain = request.output.preserve == "means" and not (
        request.output.weighted
        or request.privacy.household
        or request.method.people
        or any(r.repair for r in request.rules)
    )
    for column in judged if request.output.order != "kept" else ():
        if column.generalized and (strange := int((~_find_covered(column)).sum())):
            reason = f"{plural(strange, 'label')} of '{column.name}' do not contain the original value in the same row"
            return RowOrder(True, reason)
    classes = pair.masked
    count = int(classes.max(initial=-1)) + 1
    wrong = int(_find_misfits(judged, classes, count, plain=plain).sum())
    if wrong:
        share = f"in {wrong:,} of {plural(count, 'class', 'classes')} the released values"
        reason = f"{share} are no averages of the original values in the same rows, or do not contain them"
        return RowOrder(False, f"{reason}: the rows were probably reordered", doubtful=True)
    if stated is not None:
        return stated
    random = np.random.default_rng(0)
    moved = random.permutation(len(classes))[: max(2, len(classes) // PROBE_PART)]
    rows = np.arange(len(classes))
    rows[moved] = np.roll(moved, 1)
    probe = [replace(column, attribute=column.attribute.take(rows)) for column in judged]
    if _find_misfits(probe, classes, count, plain=plain).any():
        return RowOrder(
            False, "both tables have the same number of rows, and all released values fit the original ones"
        )
    return RowOrder(False, "nothing shows it: other orders of the rows fit as well", doubtful=True)


def _find_misfits(columns: Sequence[PairedColumn], classes: Ints, count: int, *, plain: bool) -> Flags:
    """Return the classes with a released value that does not fit the original values in their rows."""
    wrong = np.zeros(count, np.bool_)
    for column in columns:
        if column.generalized:
            wrong[classes[~_find_covered(column)]] = True
        else:
            wrong |= ~_find_averages(column, classes, count, plain=plain)
    return wrong


def _find_covered(column: PairedColumn) -> Flags:
    """Return the rows whose label contains the original value, or that miss one; all if there are too many."""
    label, place = group_rows(column.after[:, None])[::-1]
    group, value = group_rows(column.original_keys[:, None])
    if len(label) * len(value) > MAX_MATCHING_PAIRS:
        return np.ones(len(group), np.bool_)
    (side,) = build_class_distances(Pair((column,), column.kept), label)
    distance = side.squared_distance(column.original_keys[value].astype(np.float64))
    return np.asarray((distance[group, place] == 0.0) | column.attribute.null | (column.after == -1))


def _find_averages(column: PairedColumn, classes: Ints, count: int, *, plain: bool) -> Flags:
    """Return the classes whose released value is the mean, a median or the mode of the original values in their rows.

    If averages are not `plain`, any value in the range of the class is one. Missing values are not judged.
    """
    attribute, first = column.attribute, np.unique(classes, return_index=True)[1]
    size = np.bincount(classes, minlength=count)
    start = np.cumsum(size) - size
    by_number = isinstance(attribute, NumericAttribute) and column.numbers is not None
    both = (attribute.numbers, column.numbers) if by_number else (column.before, column.after)  # type: ignore[union-attr]
    values, released = (np.asarray(side, np.float64) for side in both)
    released, ordered = released[first], values[np.lexsort((values, classes))]
    low, high = ordered[start + (size - 1) // 2], ordered[start + size // 2]
    slack = SHARE_TOLERANCE * np.nanmax(np.abs(values), initial=0.0)
    if isinstance(attribute, NumericAttribute):
        unknown = np.isnan(released) | (np.bincount(classes, attribute.null, minlength=count) > 0)
        averages = (np.bincount(classes, values, minlength=count) / size, low, high, (low + high) / 2)
        rounding = [np.abs(each - round_to_decimals(attribute, each)) + slack for each in averages]
        near = [np.abs(each - released) <= gap for each, gap in zip(averages, rounding, strict=True)]
        fits = np.logical_or.reduce(near)
    else:
        unknown = released == -1
        group, cells = group_rows(np.column_stack([classes, column.before]))
        most, same = np.zeros(count, np.int64), np.bincount(classes, column.before == column.after, minlength=count)
        np.maximum.at(most, classes[cells], np.bincount(group))
        between = (low <= released) & (released <= high) & (attribute.bound.kind is Kind.ORDINAL)
        fits = between | (same == (most if attribute.bound.average != "shares" else same))
    if not plain:
        fits |= (ordered[start] - slack <= released) & (released <= ordered[start + size - 1] + slack)
    return np.asarray(unknown | fits)


def _check_untouched(tables: TablePair, original: Any, untouched: Sequence[BoundColumn]) -> Iterator[RowOrder | None]:
    engine = tables.engine
    before, after = engine.schema(original), engine.schema(tables.released)
    for column in untouched:
        if column.name in after:
            stored = [side[column.name] for side in (before, after)]
            numeric = all(each.storage.kind is column.kind and column.kind.is_numeric for each in stored)
            frames = zip((original, tables.released), stored, strict=True)
            sides = [engine.collect(f, {column.name: each if numeric else None}).column(0) for f, each in frames]
            number: dict[Any, int] = {}
            yield _compare_column(column.name, *(_number_values(side, number) + 1 for side in sides))  # null is 0


def _compare_column(name: str, before: Ints, after: Ints) -> RowOrder | None:
    """Return the evidence of a column that should be equal in both tables; None without evidence."""
    rows, width = len(before), int(max(before.max(initial=0), after.max(initial=0))) + 1
    one, other = (np.bincount(side, minlength=width) / max(rows, 1) for side in (before, after))
    common, chance, same = np.minimum(one, other).sum(), (one * other).sum(), (before == after).mean()
    if common < MIN_COMMON_SHARE or common - chance < MIN_EXCESS_SHARE:
        return None
    if same == 1.0:
        return RowOrder(False, f"'{name}' is the same in every row of both tables")
    if common > 1.0 - SHARE_TOLERANCE or same - chance < (common - chance) / 2:
        return RowOrder(True, f"'{name}' has the same values in both tables, but in other rows")
    return RowOrder(False, f"'{name}' is the same in {same:.1%} of the rows of both tables")


def _is_newly_sorted(column: PairedColumn) -> bool:
    """Return whether released values are sorted, not by chance, while original ones are not."""
    after = _rank_texts(column.labels, column.released_keys) if column.place is not None else column.released_keys
    steps = np.diff(after[column.kept])
    if not len(steps) or not ((steps >= 0).all() or (steps <= 0).all()):
        return False
    sizes = np.unique(after, return_counts=True)[1]
    if log(2) + sum(map(lgamma, sizes + 1.0)) - lgamma(len(after) + 1.0) > MAX_LOG_CHANCE:
        return False
    attribute = column.attribute
    before = (
        attribute.numbers if isinstance(attribute, NumericAttribute) else _rank_texts(attribute.texts, attribute.codes)
    )
    known = np.isfinite(before)
    if known.sum() < 2 or np.ptp(before[known]) == 0:
        return False
    return bool(abs(np.corrcoef(np.flatnonzero(known), before[known])[0, 1]) < MAX_ORDER_CORRELATION)


def _rank_texts(texts: Iterable[Any], places: NDArray[Any]) -> Floats:
    """Return the rank of each value among its texts; null is first."""
    names = [str(text) for text in texts]
    rank = np.full(len(names) + 2, -1.0)
    rank[np.argsort(names, kind="stable")] = np.arange(len(names))
    return np.asarray(rank[places])


def _position_error(column: PairedColumn) -> float | None:
    """Return the error in the same rows over that of the best single value (mean or mode); None if not defined.

    It is at most 1 for averages of classes in the right rows.
    """
    attribute = column.attribute
    if isinstance(attribute, NumericAttribute) and column.numbers is not None:
        known = np.isfinite(column.numbers) & ~attribute.null
        before, after = attribute.numbers[known], column.numbers[known]
        total = float(((before - before.mean()) ** 2).sum()) if known.any() else 0.0
        return float(((before - after) ** 2).sum()) / total if total else None
    if column.generalized or not isinstance(getattr(attribute, "scale", None), NominalScale):
        return None
    unlike_mode = len(column.before) - int(np.unique(column.before, return_counts=True)[1].max(initial=0))
    return float((column.before != column.after).sum()) / unlike_mode if unlike_mode else None
