"""The linkage attack on a pair of tables: on all quasi-identifiers, on the most telling few, and with what was kept.

Linkage is exact up to 50,000 records; of larger tables 10,000 records, drawn by the seed of the policy, attack the
whole release, and a note says so, with the standard error; `measures = "all"` has every record attack. So it is with
the interval disclosure.

With the columns that were released untouched the attacker looks among the records that agree with his in all of them,
and there for the nearest on the quasi-identifiers: 1/k is no bound to that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.label_coverage import extents, gaps
from kinfold.evaluation.pairing import Pair, PairedColumn, Tables, stacked
from kinfold.evaluation.sheet import Sheet
from kinfold.measures import NotApplicable
from kinfold.measures.continuous import column_deviations, column_means
from kinfold.measures.grouping import group_rows
from kinfold.measures.linkage import Located, linkage, linkage_credit, telling_subsets
from kinfold.request.encoding import Coded, Measured

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

MOST_ATTACKERS = 50_000  # records that all attack: one or two seconds with eight columns
DRAWN = 10_000  # of more: a share of 0.1 is then good to 0.003
ALL = slice(None)
LARGEST_TABLE = 20_000_000  # cells of a table of gaps: 160 MB


def link(pair: Pair, sheet: Sheet, seed: int, *, every: bool = False) -> float:
    """Return the expected success of the linkage attack on all quasi-identifiers, by `every` record or by some."""
    if pair.far is not None:
        return _found_among(pair, pair.far.heads, seed).told(sheet, "linkage")
    drawn = None if every else draw(pair, seed)
    if drawn is None:
        return _success(pair, _located(pair), None).told(sheet, "linkage")
    return Estimate.of(_found_by(pair, np.flatnonzero(pair.kept)[drawn])).told(sheet, "linkage")


def _found_by(pair: Pair, rows: Ints) -> Floats:
    """Return the chance to find each of some records in the whole release, of which one row of each class will do."""
    kept = np.flatnonzero(pair.kept)
    classes = pair.masked[kept]
    sizes = np.bincount(classes, None if pair.weight is None else pair.weight[kept]).astype(np.int64)
    heads = np.empty(len(sizes), np.int64)
    heads[classes] = kept
    weight = np.concatenate([sizes, np.zeros(len(rows), np.int64)])  # those who look are in their classes already
    original, released, tables = _located(pair, np.concatenate([heads, rows]))
    whole = replace(released, weight=weight)
    return linkage_credit(original, whole, tables, attacked=np.arange(len(heads), len(weight)))


def _found_among(pair: Pair, heads: Pair, seed: int) -> Estimate:
    """Return the chance to find some of the records that were drawn among the classes of the whole release."""
    kept, classes = np.flatnonzero(pair.kept), len(heads.kept)
    rows = np.random.default_rng(seed).choice(kept, min(DRAWN, len(kept)), replace=False)
    assert heads.weight is not None  # noqa: S101  the sizes of the classes
    weight = np.concatenate([heads.weight, np.zeros(len(pair.kept), np.int64)])
    original, released, tables = _located(stacked(heads, pair))
    found = linkage_credit(original, replace(released, weight=weight), tables, attacked=classes + np.sort(rows))
    return Estimate.of(found)


def link_subsets(pair: Pair, sheet: Sheet, k: int, seed: int) -> list[dict[str, Any]]:
    """Return the expected success on the subsets that split the release into the most classes, with 1/k beside."""
    codes = Located.of(None, np.column_stack([column.after[pair.kept] for column in pair.columns]))
    drawn, found, errors = draw(pair, seed), [], []
    for chosen in telling_subsets(codes):
        part = replace(pair, columns=tuple(pair.columns[j] for j in chosen))
        success = _success(part, _located(part), drawn)
        names = [column.name for column in part.columns]
        found.append({"columns": names, "linkage": success.share, "bound": 1 / k})
        errors.append(success.error or 0.0)
    if drawn is not None:
        Estimate(0.0, max(errors)).told(sheet, "linkage_subsets")
    return found


def link_untouched(pair: Pair, sheet: Sheet, tables: Tables, names: list[str], seed: int) -> dict[str, Any]:
    """Return the expected success with those of the named columns that are the same in both tables."""
    agree = _untouched(tables, names)
    if not agree:
        raise NotApplicable("no column beside the quasi-identifiers was released untouched")
    original, released, gap_tables = _located(pair)
    apart = _farthest(original, released, gap_tables)
    group = group_rows(np.column_stack(list(agree.values())))[0] * apart
    near, seen = (Located.of(np.column_stack([side.numbers, group]), side.codes) for side in (original, released))
    success = _success(pair, (near, seen, gap_tables), draw(pair, seed)).told(sheet, "linkage_untouched")
    return {"columns": [*(column.name for column in pair.columns), *agree], "linkage": success}


def draw(pair: Pair, seed: int) -> Ints | None:
    """Draw released records that stand for all, by the places of their rows among those released; None for all."""
    if pair.released <= MOST_ATTACKERS:
        return None
    drawn = np.sort(np.random.default_rng(seed).choice(pair.released, DRAWN, replace=False))
    if pair.weight is None:
        return drawn
    return np.searchsorted(np.cumsum(pair.weight[pair.kept]), drawn, side="right")


class Estimate(NamedTuple):
    """A share of the records, and its standard error where only some were looked at."""

    share: float
    error: float | None = None
    drawn: int = DRAWN

    @classmethod
    def of(cls, found: Floats) -> Estimate:
        """Take the mean over records that were drawn."""
        error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 1.0
        return cls(float(found.mean()), float(error), len(found))

    def told(self, sheet: Sheet, key: str) -> float:
        """Return the share, and note its error on a sheet."""
        if self.error is not None:
            sheet.remark(key, f"estimated from {self.drawn:,} records drawn at random, standard error {self.error:.1g}")
        return self.share


def _success(pair: Pair, located: tuple[Located, Located, list[Floats]], drawn: Ints | None) -> Estimate:
    """Return the expected success of an attack by all released records, or by those drawn."""
    original, released, tables = located
    credit = linkage_credit(original, released, tables, pair.kept, drawn)
    if drawn is not None:
        return Estimate.of(credit)
    return Estimate(linkage(credit if pair.weight is None else np.repeat(credit, pair.weight[pair.kept])))


def _untouched(tables: Tables, names: list[str]) -> dict[str, Ints]:
    """Return the codes of the columns whose values are the same in both tables, for all original records."""
    there = [name for name in names if name in tables.engine.schema(tables.released)]
    wanted: dict[str, None] = dict.fromkeys(there)
    if not wanted:
        return {}
    before, after = (tables.engine.collect(side, wanted) for side in (tables.original, tables.released))
    rows = np.asarray(tables.rows)
    found = {}
    for name in there:
        if before.column(name).take(rows).combine_chunks().equals(after.column(name).combine_chunks()):
            encoded = before.column(name).combine_chunks().dictionary_encode()
            found[name] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _farthest(original: Located, released: Located, tables: list[Floats]) -> float:
    """Return a distance that no two records exceed on the quasi-identifiers: groups so far apart never mix."""
    spread = sum(
        float(np.ptp(np.append(a, b))) ** 2 for a, b in zip(original.numbers.T, released.numbers.T, strict=True)
    )
    return float(np.sqrt(1.0 + spread + sum(float(table.max()) for table in tables)))


def _located(pair: Pair, rows: Ints | slice = ALL) -> tuple[Located, Located, list[Floats]]:
    """Return both tables in the distance of the policy: standardized numbers, then codes with a table of gaps each."""
    numbers: list[tuple[Floats, Floats]] = []
    codes: list[tuple[Ints, Ints]] = []
    tables: list[Floats] = []
    for column in pair.columns:
        if isinstance(column.attribute, Measured):
            x, y = _scaled(column, pair.weight, rows)
            numbers.append((np.nan_to_num(x), np.nan_to_num(y)))
            if column.attribute.null.any():
                weight = column.attribute.bound.request.weight
                codes.append((np.isnan(x).astype(np.int64), np.isnan(y).astype(np.int64)))
                tables.append(np.array([[0.0, weight], [weight, 0.0]]))
        else:
            codes.append(_placed(column, column.attribute, rows))
            tables.append(_table(column, column.attribute))
    count = len(pair.kept[rows])
    records = None if pair.weight is None else pair.weight[rows]
    original, released = (_side(numbers, codes, i, count) for i in (0, 1))
    return original, replace(released, weight=records), tables


def _side(numbers: list[tuple[Floats, Floats]], codes: list[tuple[Ints, Ints]], side: int, count: int) -> Located:
    left = np.column_stack([both[side] for both in numbers]) if numbers else np.empty((count, 0))
    right = np.column_stack([both[side] for both in codes]) if codes else np.empty((count, 0), np.int64)
    return Located.of(left, right)


def _scaled(column: PairedColumn, weight: Ints | None, rows: Ints | slice) -> tuple[Floats, Floats]:
    attribute = column.attribute
    assert isinstance(attribute, Measured)  # noqa: S101  told apart by the caller
    released = column.numbers
    if released is None:
        assert column.place is not None  # noqa: S101  a column has numbers or labels
        low, high = extents(column)  # an attacker looks in the middle of what a label covers
        released = np.array([*(low + (high - low) / 2), np.nan, np.nan])[column.place[rows]]
    else:
        released = released[rows]
    column_of = attribute.numbers[:, None]
    centre = column_means(column_of, weight)
    deviation = float(column_deviations(column_of, centre, weight)[0])
    unit = np.sqrt(attribute.bound.request.weight) / deviation if deviation > 0 else 0.0
    return (attribute.numbers[rows] - centre) * unit, (released - centre) * unit


def _placed(column: PairedColumn, attribute: Coded, rows: Ints | slice) -> tuple[Ints, Ints]:
    assert column.place is not None  # noqa: S101  codes are released as labels
    null = len(column.labels)
    place = column.place[rows]
    return attribute.codes[rows].astype(np.int64), np.where(place < 0, null, place)


def _table(column: PairedColumn, attribute: Coded) -> Floats:
    if attribute.scale.codes * (len(column.labels) + 1) > LARGEST_TABLE:
        raise NotApplicable(f"'{column.name}' has too many categories for the linkage attack")
    return gaps(column)
