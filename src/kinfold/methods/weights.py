"""Sampling weights of a release: the mean of each class, calibrated to totals of the original.

    regroup      all records of a class get its mean weight. So a weight tells no more than the class, and the
                 weighted total of the table stays as it was
    calibrate    the weights are changed as little as possible until the weighted totals of chosen columns are those of
                 the original: of each category of a column, of the values of a column of numbers, and of all records.
                 This is raking (Deville & Särndal 1992, the distance w log(w/v) - w + v): the weight of a class is
                 multiplied by exp(sum of one number per total), found by Newton's method
    round        to multiples of `round_to`, else to six digits
    check        each total as released is within `tolerance` of the original, or there is no release

The total of a column with values of both signs is compared with the sum of their sizes.

The totals are of the values after `map`, `top`, `bottom` and `round_to`. A generalized column has totals of its labels,
if each value has one label in the whole release. Records that were left out count in the totals.

Cost: O(n + c m²) for each of some ten steps over c classes and m totals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import PolicyError, Unreachable, plural
from kinfold.methods.task import Plan
from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import Attribute, NumericAttribute, encode, get_leaves
from kinfold.policy.table import Table
from kinfold.policy.terms import collect_weights
from kinfold.tables.points import Floats, Labels
from kinfold.tables.queries import label_rows
from kinfold.tables.recoding import Recoding, Replace, Treatment, count_decimals, number_equal_classes
from kinfold.tables.schema import Role, Storage

AnyCodes: TypeAlias = NDArray[np.integer[Any]]

MAX_TOTALS = 500  # of all columns together; more are not totals but records
MAX_STEPS = 200  # of Newton's method; most tables need ten
SHORTEST_STEP = 2.0**-20  # of Newton's method: a step halved so often has no effect
WEIGHT_DIGITS = 6  # of a weight that `round_to` does not round: changes no total by more than its last digit
NO_LABEL = -1  # of a value that no released record had
CLOSE_ENOUGH = 1e-12  # of a total, as a share of it


@dataclass(frozen=True, eq=False)
class Totals:
    """The weighted totals of one column."""

    wanted: Floats  # of the original
    scale: Floats  # the same sums of absolute values
    added: Floats  # by class and total: what the records of a class add to it with a weight of 1


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """The rows that are released, the class of each, and the original weight of each row of the table."""

    kept: NDArray[np.intp]
    classes: Labels  # of the plan
    labels: Labels  # classes with equal released values are one
    sizes: NDArray[np.int64]
    weights: Floats

    def total_categories(self, before: AnyCodes, after: AnyCodes, count: int) -> Totals:
        """Return the totals of categories, given by code for all rows and for the released rows."""
        wanted = np.asarray(np.bincount(before, self.weights, count), np.float64)
        cells = np.bincount(self.labels.astype(np.int64) * count + after, minlength=len(self.sizes) * count)
        return Totals(wanted, wanted, cells.reshape(-1, count).astype(np.float64))

    def total_numbers(self, before: Floats, after: Floats) -> Totals:
        """Return the total of numbers, given for all rows and for the released rows."""
        wanted, scale = (np.array([float(self.weights @ each)]) for each in (before, abs(before)))
        added = np.asarray(np.bincount(self.labels, after, len(self.sizes)), np.float64)
        return Totals(wanted, scale, added[:, None])


def release_weights(table: Table, planned: Plan) -> Plan:
    """Return the plan in which every column of regrouped weights has one weight for each class."""
    columns = [column for column in table.policy.with_role(Role.WEIGHT) if column.request.regrouped]
    if not columns:
        return planned
    recoding = label_rows(table.engine, table.frame, planned.recoding)
    quasi = [recoding.columns[column.name] for column in table.policy.with_role(Role.QUASI)]
    merged = number_equal_classes([each.values for each in quasi if isinstance(each, Replace)])
    kept = np.flatnonzero(recoding.kept)
    classes = recoding.labels[kept]
    sizes = np.bincount(merged[classes], minlength=int(merged.max()) + 1)
    replaced, notes = {}, []
    for column in columns:
        units, decimals = collect_weights(table.engine, table.frame, column.column)
        rows = ReleasedRows(kept, classes, merged[classes], sizes, units / 10.0**decimals)
        values, note = _compute_weights(table, recoding, rows, column)
        whole = column.column.storage is Storage.INTEGER and bool((values == np.round(values)).all())
        released = values[merged].astype(np.int64) if whole else values[merged]
        replaced[column.name] = Replace(pa.array(released), as_stored=whole)
        notes.append(note)
    changed = replace(planned.recoding, columns={**planned.recoding.columns, **replaced})
    planned = replace(planned, notes=(*planned.notes, *notes), public_notes=(*planned.public_notes, *notes))
    return replace(planned, recoding=changed)


def _compute_weights(table: Table, recoding: Recoding, rows: ReleasedRows, column: BoundColumn) -> tuple[Floats, str]:
    """Return the weight of each class, and a note; raise if the totals cannot be kept."""
    request, occupied = column.request, np.maximum(rows.sizes, 1)
    weights = np.bincount(rows.labels, rows.weights[rows.kept], len(occupied)) / occupied
    note = f"'{column.name}': each record has the mean weight of its class"
    if not request.calibrate:
        return _round_weights(weights, rows, column), note
    totals = [_find_totals(table, recoding, rows, table.policy[name]) for name in request.calibrate]
    for name, each in zip(request.calibrate, totals, strict=True):
        if vanished := int(((each.scale > 0) & ~each.added.any(axis=0)).sum()):
            what = (
                f"columns.{column.name}.calibrate: no released record has {plural(vanished, 'category', 'categories')}"
            )
            fix = 'generalize it, set its average to "shares", or name another column'
            raise Unreachable(f"{what} of '{name}', whose total no weights can keep", fix=fix)
    totals.append(rows.total_numbers(np.ones(len(rows.weights)), np.ones(len(rows.kept))))
    wanted, scale = (np.concatenate(each) for each in zip(*((t.wanted, t.scale) for t in totals), strict=True))
    if len(wanted) > MAX_TOTALS:
        what = f"columns.{column.name}.calibrate: {len(wanted):,} totals, and at most {MAX_TOTALS} can be kept"
        raise PolicyError(what, fix="name columns with fewer categories, or generalize them")
    added = np.column_stack([each.added for each in totals])
    scale = np.where(scale > 0, scale, 1.0)
    weights = calibrate(weights, rows.sizes, added / occupied[:, None] / scale, wanted / scale)
    weights = _round_weights(weights, rows, column)
    worst = float((abs(weights @ added - wanted) / scale).max())
    if not worst <= request.tolerance:
        what = f"columns.{column.name}.calibrate: the nearest weights miss a total by {worst:.2%}"
        fix = "raise its tolerance, name fewer columns, round to a smaller number, or choose another average or method"
        raise Unreachable(f"{what}, and at most {request.tolerance:.2%} is allowed", fix=fix)
    names = ", ".join(f"'{name}'" for name in request.calibrate)
    return weights, f"{note}, calibrated: weighted totals of {names} are within {request.tolerance:.3%} of the original"


def calibrate(start: Floats, sizes: NDArray[np.int64], means: Floats, wanted: Floats) -> Floats:
    """Return the weight of each class by raking; `means` is what a record of each class adds to each total.

    >>> share_of_men = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])  # and of women, in three classes of two records
    >>> calibrate(np.full(3, 10.0), np.full(3, 2), share_of_men, np.array([36.0, 24.0])).round(2).tolist()
    [13.15, 9.7, 7.15]
    """
    first, tilt = start * sizes, np.zeros(len(wanted))

    def measure(tilt: Floats) -> float:
        """Return the function of the multipliers that is least at the calibrated weights."""
        with np.errstate(over="ignore", invalid="ignore"):
            return float((first * np.exp(means @ tilt)).sum() - wanted @ tilt)

    for _ in range(MAX_STEPS):
        now = first * np.exp(means @ tilt)
        gap, share = wanted - now @ means, 1.0
        if abs(gap).max() < CLOSE_ENOUGH:
            break
        step = np.linalg.lstsq((means * now[:, None]).T @ means, gap, rcond=None)[0]
        while share > SHORTEST_STEP and not measure(tilt + share * step) < measure(tilt):
            share /= 2
        if share <= SHORTEST_STEP:
            break
        tilt += share * step
    return np.asarray(start * np.exp(means @ tilt))


def _round_weights(weights: Floats, rows: ReleasedRows, column: BoundColumn) -> Floats:
    """Round to multiples of `round_to`, halves away from zero, else to a number of digits."""
    step = column.request.round_to
    if step is None:
        digits = [float(f"{weight:.{WEIGHT_DIGITS}g}") for weight in weights.tolist()]
        return np.array(digits)
    rounded = np.round(np.floor(weights / step + 0.5) * step, count_decimals(step))
    if zero := int(rows.sizes[rounded <= 0].sum()):
        what = f"columns.{column.name}.round_to: the weights of {plural(zero, 'record')} are rounded to 0"
        raise Unreachable(what, fix="round to a smaller number")
    return rounded


def _find_totals(table: Table, recoding: Recoding, rows: ReleasedRows, column: BoundColumn) -> Totals:
    """Return the totals of a column: of its numbers, its categories, or the labels that each value has."""
    attribute, treatment = encode(table.engine, table.frame, [column])[0], recoding.columns[column.name]
    if isinstance(attribute, NumericAttribute):
        return _total_numbers(rows, attribute, treatment)
    if not isinstance(treatment, Replace):
        return rows.total_categories(attribute.codes, attribute.codes[rows.kept], len(attribute.texts))
    if column.average in ("generalize", "suppress"):
        return _total_labels(rows, attribute, attribute.codes, treatment)
    places = {text: code for code, text in enumerate(attribute.texts)}
    after = np.array([places[text] for text in treatment.values.to_pylist()], np.int64)
    return rows.total_categories(attribute.codes, after[rows.classes], len(attribute.texts))


def _total_numbers(rows: ReleasedRows, attribute: NumericAttribute, treatment: Treatment) -> Totals:
    if isinstance(treatment, Replace) and attribute.bound.average == "generalize":
        codes = np.unique(attribute.numbers, return_inverse=True)[1]
        return _total_labels(rows, attribute, codes, treatment)
    before = np.where(attribute.null, 0.0, attribute.numbers)
    if not isinstance(treatment, Replace):
        return rows.total_numbers(before, before[rows.kept])
    after = np.array([0.0 if each is None else float(each) for each in treatment.values.to_pylist()])
    return rows.total_numbers(before, after[rows.classes])


def _total_labels(rows: ReleasedRows, attribute: Attribute, codes: AnyCodes, treatment: Replace) -> Totals:
    """Return the totals of the labels of a column in which each value has one label; `codes` number its values."""
    name, texts = attribute.bound.name, treatment.values.to_pylist()
    known = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    after = np.array([known[text] for text in texts], np.int64)[rows.classes]
    label = np.full(int(codes.max()) + 1, NO_LABEL)
    label[codes[rows.kept]] = after
    if (label[codes[rows.kept]] != after).any():
        what = f"calibrate: the values of '{name}' are shown by several labels, or in some records only"
        fix = "name another column, or choose a method that generalizes whole columns, such as lattice"
        raise PolicyError(f"{what}, so that its totals are not known", fix=fix)
    if attribute.hierarchy is not None:  # values that only dropped records have
        leaves = np.zeros(len(label), np.int64)
        leaves[codes] = get_leaves(attribute)
        for code in np.flatnonzero(label == NO_LABEL):
            path = attribute.hierarchy.labels[leaves[code]]
            label[code] = next((known[text] for text in path if text in known), NO_LABEL)
    if (label[codes] == NO_LABEL).any():
        what = f"calibrate: some values of '{name}' are in records that were left out only"
        raise Unreachable(f"{what}, so that no weights can keep their totals", fix="name another column")
    return rows.total_categories(label[codes], after, len(known))
