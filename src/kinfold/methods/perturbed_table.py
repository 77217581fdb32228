"""Perturb the columns of a table as its policy says, before classes are formed.

The values of a perturbed column are read in the order of the rows, one column at a time, and put back as a recoding by
row: the other columns stay in the engine. `top`, `bottom` and `round_to` are applied once more, because noise and means
pass them. Numbers keep their decimals, dates stay dates, and missing values stay missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError
from kinfold.measures.formulas.perturbation import make_invariant, measure_invariance_error, retention_matrix
from kinfold.methods.aggregation import numbers_to_arrow, round_to_decimals
from kinfold.methods.perturbation import (
    add_correlated_noise,
    add_noise,
    average_neighbours,
    compute_covariances,
    count_rank_window,
    make_key,
    randomize_codes,
    swap_ranks,
)
from kinfold.methods.record_swapping import HouseholdSwap, swap_households
from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.encoding import CategoricalAttribute, encode, encode_numbers
from kinfold.policy.perturbation import Perturbation, PerturbedColumn
from kinfold.policy.preparation import PreparedTable, describe_recoding, make_limits
from kinfold.tables.engine import Engine, StoredValues
from kinfold.tables.recoding import Keep, Recoding, Replace, encode_dictionary
from kinfold.tables.schema import Kind

Floats: TypeAlias = NDArray[np.float64]

MAX_RECORDS = 10_000_000  # their values are held in memory: about 200 bytes for each value of a column at the peak
MAX_CATEGORIES = 1_000  # of PRAM: the matrix has their square
MAX_INVARIANCE_ERROR = 1e-12  # of a matrix that needs no second stage


@dataclass(frozen=True, eq=False)
class _NewColumn:
    values: Any  # an Arrow array, by row
    how: PerturbedColumn


def perturb_table(engine: Engine, prepared: PreparedTable, bound: BoundPolicy) -> tuple[PreparedTable, BoundPolicy]:
    """Return the table with perturbed columns, and the policy bound to it."""
    columns = {column.name: column for column in bound.columns if column.request.perturb is not None}
    if not columns:
        return prepared, bound
    if bound.rows > MAX_RECORDS:
        what = f"columns are perturbed in tables of at most {MAX_RECORDS:,} records, and this one has {bound.rows:,}"
        raise PolicyError(what, fix="leave perturb out, or release the table in parts")
    privacy = bound.request.privacy
    perturbation = _ColumnPerturbation(engine, prepared.frame, bound.request.method.seed)
    requests = [(column, how) for column in columns.values() if (how := column.request.perturb) is not None]
    new = perturbation.perturb_correlated([(column, how) for column, how in requests if how.correlated_noise])
    swapped = [column for column, how in requests if how.record_swap is not None]
    new |= perturbation.swap_regions(swapped, privacy.household or privacy.unit)
    new |= {column.name: perturbation.perturb(column, how) for column, how in requests if column.name not in new}
    treatments = {c.name: Replace(new[c.name].values) if c.name in new else Keep() for c in bound.columns}
    rows = np.arange(bound.rows, dtype=np.int32)
    try:
        frame = engine.apply(prepared.frame, Recoding(rows, treatments), engine.schema(prepared.frame))
    except DataError:
        what = f"a perturbed value of {', '.join(map(repr, new))} does not fit the type of its column"
        raise DataError(what, fix="give the column a wider type, or set its top and bottom") from None
    limits = {name: limit for name, c in columns.items() if (limit := make_limits(c.request)) is not None}
    frame = engine.recode(frame, limits, engine.schema(frame)).frame if limits else frame
    notes = tuple(f"'{name}': {describe_recoding(column.request)}" for name, column in columns.items())
    changed = {**dict.fromkeys(new, True), **prepared.changed}
    perturbed = replace(
        prepared,
        frame=frame,
        unperturbed=prepared.frame,
        changed=changed,
        notes=(*prepared.notes, *notes),
        public_notes=tuple(dict.fromkeys((*prepared.public_notes, *notes))),
    )
    described = tuple(replace(c, perturbed=new[c.name].how) if c.name in new else c for c in bound.columns)
    return perturbed, replace(bound, columns=described)


@dataclass(frozen=True, eq=False)
class _ColumnPerturbation:
    """Perturbs columns of a table, one at a time."""

    engine: Engine
    frame: Any
    seed: int

    def perturb(self, bound: BoundColumn, how: Perturbation) -> _NewColumn:
        """Perturb a column by itself."""
        if how.kind == "pram":
            return self._randomize(bound, how)
        if how.rank_swap is not None:
            return self._swap(bound, how, how.rank_swap)
        x = self._read_numbers(bound)
        if how.micro is not None:
            new = average_neighbours(x, how.micro)
            return _NewColumn(_to_arrow(bound, new), PerturbedColumn(how.kind, {"size": how.micro}, how.publish))
        share = how.noise or 0.0  # the last kind
        new = add_noise(x, share, make_key(self.seed, bound.name, x))
        return _describe_noise(bound, how, new, share**2 * float(np.nanvar(x)))

    def perturb_correlated(self, columns: Sequence[tuple[BoundColumn, Perturbation]]) -> dict[str, _NewColumn]:
        """Add correlated noise to columns, which have the same share."""
        if not columns:
            return {}
        share = columns[0][1].correlated_noise or 0.0
        x = np.column_stack([self._read_numbers(column) for column, _ in columns])
        names = "\0".join(column.name for column, _ in columns)
        new = add_correlated_noise(x, share, make_key(self.seed, names, x))
        variances = share * np.diag(compute_covariances(x))
        return {
            column.name: _describe_noise(column, how, new[:, i], float(variances[i]))
            for i, (column, how) in enumerate(columns)
        }

    def swap_regions(self, columns: Sequence[BoundColumn], household: str | None) -> dict[str, _NewColumn]:
        """Exchange the regions of households; the level with the fewest values is the widest."""
        if not columns or (how := columns[0].request.perturb) is None:
            return {}
        texts = {column.name: encode_dictionary(self._read_texts(column.name)) for column in columns}
        levels = sorted(columns, key=lambda column: len(texts[column.name][1]))
        for column in levels:
            _require_variety(column, len(texts[column.name][1]))
        records = len(texts[levels[0].name][0])
        swap = swap_households(
            np.arange(records) if household is None else self._read_texts(household),
            [texts[column.name][0] for column in levels],
            similar=[self._read_texts(name) for name in how.similar],
            risk=[self._read_texts(name) for name in how.rare],
            rate=how.record_swap or 0.0,
            k=how.rare_below or 0,
            seed=self.seed,
        )
        return {
            column.name: _NewColumn(self._take(column, swap.places), _describe_swap(column, swap, *texts[column.name]))
            for column in levels
        }

    def _read_texts(self, name: str) -> Any:
        return self.engine.collect(self.frame, {name: None}).column(0)

    def _read_numbers(self, bound: BoundColumn) -> Floats:
        """Read numbers, or dates as days; refuse those that noise or a mean would distort."""
        values = self.engine.collect(self.frame, {bound.name: bound.column}).column(0)
        x = np.array(values.to_numpy(zero_copy_only=False), np.float64)
        present = x[~np.isnan(x)]
        if not np.isfinite(present).all():
            what = f"column '{bound.name}' holds values that are infinite or not a number, and is perturbed"
            raise DataError(what, fix="correct or empty them")
        if encode_numbers(replace(bound, average="mean"), x).is_long:
            what = f"column '{bound.name}' holds numbers of more digits than can be perturbed"
            raise DataError(what, fix="use larger units, or rank_swap, which keeps every digit")
        _require_variety(bound, len(np.unique(present)))
        return x

    def _randomize(self, bound: BoundColumn, how: Perturbation) -> _NewColumn:
        index, distinct = encode_dictionary(self._read_texts(bound.name))
        texts = np.array(distinct.to_pylist(), object)
        _require_variety(bound, len(texts))
        if len(texts) > MAX_CATEGORIES:
            what = f"column '{bound.name}' has {len(texts):,} values, and PRAM takes at most {MAX_CATEGORIES:,}"
            raise PolicyError(what, fix="use rank_swap or noise, or map its values to fewer")
        rank = np.argsort(np.argsort(texts))  # the order of the texts does not depend on the engine
        codes = np.where(index < 0, -1, rank[index])
        counts, categories = np.bincount(codes[codes >= 0], minlength=len(texts)), tuple(sorted(texts))
        matrix = _build_matrix(bound, how, categories, counts)
        new = randomize_codes(codes, matrix, make_key(self.seed, bound.name, codes))
        present = np.flatnonzero(codes >= 0)
        first = np.empty(len(texts), np.intp)  # a record that has each category, to copy its value as it is stored
        first[codes[present][::-1]] = present[::-1]
        places = np.where(new < 0, np.arange(len(new)), first[new])
        parameters = {"categories": list(categories), "matrix": matrix.tolist()}
        described = PerturbedColumn(how.kind, parameters, how.publish, categories, matrix)
        return _NewColumn(self._take(bound, places), described)

    def _swap(self, bound: BoundColumn, how: Perturbation, percent: float) -> _NewColumn:
        if bound.kind is Kind.ORDINAL:
            attribute = encode(self.engine, self.frame, [bound])[0]
            assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  ordinal
            x = np.where(attribute.codes == attribute.null_code, np.nan, attribute.codes.astype(np.float64))
        else:
            values = self.engine.collect(self.frame, {bound.name: bound.column}).column(0)
            x = np.array(values.to_numpy(zero_copy_only=False), np.float64)
        present = x[~np.isnan(x)]
        _require_variety(bound, len(np.unique(present)))
        if count_rank_window(len(present), percent) < 1:
            what = f"columns.{bound.name}.perturb: {percent:g} % of {len(present):,} ranks is less than two"
            raise PolicyError(what, fix="raise rank_swap")
        places = swap_ranks(x, percent, make_key(self.seed, bound.name, x))
        return _NewColumn(self._take(bound, places), PerturbedColumn(how.kind, {"percent": percent}, how.publish))

    def _take(self, bound: BoundColumn, places: NDArray[np.intp]) -> Any:
        """Return the values of other records, as they are stored."""
        stored = self.engine.collect(self.frame, {bound.name: StoredValues()}).column(0)
        return stored.combine_chunks().take(pa.array(places))


def _describe_swap(bound: BoundColumn, swap: HouseholdSwap, index: NDArray[Any], distinct: Any) -> PerturbedColumn:
    """Return how a region was swapped; to an attacker who knows the share, another region is as likely as frequent."""
    codes = np.where(index < 0, len(distinct), index)
    shares = np.bincount(codes, minlength=len(distinct) + 1) / len(codes)
    changed = float((codes[swap.places] != codes).mean())
    others = 1.0 - shares[:, None]
    matrix = changed * np.divide(shares, others, out=np.zeros((len(shares),) * 2), where=others > 0)
    np.fill_diagonal(matrix, 1.0 - changed)
    how = bound.request.perturb
    assert how is not None  # noqa: S101  the column is swapped
    counts = {
        "households": len(swap.partner),
        "swapped": swap.swapped,
        "at_risk": swap.forced,
        "unmatched": swap.unmatched,
    }
    return PerturbedColumn(
        how.kind,
        {"share": how.record_swap},
        how.publish,
        tuple(distinct.to_pylist()),
        matrix,
        places=swap.places,
        counts=counts,
    )


def _build_matrix(bound: BoundColumn, how: Perturbation, categories: Sequence[str], counts: NDArray[Any]) -> Floats:
    """Return the invariant matrix of a column: by retention, or the stated one with a second stage if it needs one."""
    if how.matrix is None:
        return retention_matrix(counts, how.pram or 0.0)
    if missing := sum(category not in how.matrix for category in categories):
        what = f"columns.{bound.name}.perturb.matrix: {missing} of the {len(categories)} values have no row"
        raise PolicyError(what, fix="add a row for each value of the column")
    if missing := sum(name not in categories for row in how.matrix.values() for name, p in row.items() if p > 0):
        what = f"columns.{bound.name}.perturb.matrix: {missing} probabilities are of values that do not occur"
        raise PolicyError(what, fix="leave them out: a value that does not occur cannot keep its frequency")
    stated = np.array([[how.matrix[old].get(new, 0.0) for new in categories] for old in categories])
    if measure_invariance_error(stated, counts) <= MAX_INVARIANCE_ERROR:
        return stated
    return make_invariant(stated, counts)


def _describe_noise(bound: BoundColumn, how: Perturbation, new: Floats, variance: float) -> _NewColumn:
    parameters = {"share": how.noise or how.correlated_noise, "variance": variance}
    described = PerturbedColumn(how.kind, parameters, how.publish, variance=variance)
    return _NewColumn(_to_arrow(bound, new), described)


def _to_arrow(bound: BoundColumn, new: Floats) -> Any:
    low, high = bound.request.bottom, bound.request.top  # the type of the column may hold no more
    low, high = (low if isinstance(low, float) else -np.inf), (high if isinstance(high, float) else np.inf)
    new = np.clip(new, low, high)
    attribute = encode_numbers(replace(bound, average="mean"), new)
    return numbers_to_arrow(attribute, round_to_decimals(attribute, new), exact=False)


def _require_variety(bound: BoundColumn, distinct: int) -> None:
    if distinct < 2:
        what = f"column '{bound.name}' holds {'one value' if distinct else 'no value'}: perturbing it changes nothing"
        raise PolicyError(what, fix=f"leave out columns.{bound.name}.perturb")
