"""The risk sheet: every disclosure risk of the contract over a pair of tables.

Linkage is exact up to 50,000 records; of larger tables 10,000 records, drawn with a fixed seed, attack the whole
release, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.encoding import Coded, Measured
from kinfold.measurement.pairing import Pair, PairedColumn
from kinfold.measurement.sheet import Sheet
from kinfold.measurement.statements import gaps, middles
from kinfold.measures import NotApplicable, attacker, disclosure
from kinfold.measures.disclosure import Classification
from kinfold.measures.inference import inference_gain, inference_gain_numbers
from kinfold.measures.interval import interval_by_rank
from kinfold.measures.linkage import Located, linkage, linkage_credit
from kinfold.measures.weights import Weights
from kinfold.progress import Progress, silent

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

MOST_ATTACKERS = 50_000
DRAWN = 10_000
LARGEST_TABLE = 20_000_000  # cells of a table of gaps


def risk(pair: Pair | None, sizes: Ints, k: int, confidential: Mapping[str, Any], reason: str = "") -> Sheet:
    """Measure how likely it is that somebody is found; `confidential` holds codes or numbers of each such column."""
    sheet = Sheet("risk")

    def paired() -> Pair:
        if pair is None:
            raise NotApplicable(reason)
        return pair

    def matrix() -> Classification:
        return Classification.of(paired().initial, paired().masked)

    sheet.write("dr_min", lambda: disclosure.dr_min(matrix()))
    sheet.write("dr_max", lambda: disclosure.dr_max(matrix()))
    sheet.write("dr_weighted", lambda: disclosure.dr_weighted(matrix(), Weights.below(k, matrix().released)))
    sheet.write("unique_from_larger", lambda: disclosure.unique_from_larger(matrix()))
    sheet.write("prosecutor_max", lambda: attacker.prosecutor_max(sizes))
    sheet.write("prosecutor_mean", lambda: attacker.prosecutor_mean(sizes))
    sheet.write("linkage", lambda: link(paired(), sheet))
    sheet.write("interval", lambda: _interval(paired()))
    sheet.write("inference", lambda: _inference(paired(), confidential))
    return sheet


def _interval(pair: Pair) -> float:
    if pair.numbers is None:
        raise NotApplicable("no quasi-identifier is released as numbers")
    return interval_by_rank(*pair.numbers)


def _inference(pair: Pair, confidential: Mapping[str, Any]) -> dict[str, float | None]:
    if not confidential:
        raise NotApplicable("no column is confidential")
    found: dict[str, float | None] = {}
    for name, values in confidential.items():
        formula = inference_gain_numbers if values.dtype.kind == "f" else inference_gain
        try:
            found[name] = float(formula(pair.masked[pair.kept], values))
        except NotApplicable:
            found[name] = None
    return found


def link(pair: Pair, sheet: Sheet, progress: Progress = silent) -> float:
    """Return the expected success of the linkage attack on all quasi-identifiers."""
    original, released, tables = _located(pair)
    records, drawn = int(pair.kept.sum()), None
    if records > MOST_ATTACKERS:
        drawn = np.sort(np.random.default_rng(0).choice(records, DRAWN, replace=False))
        sheet.reasons.setdefault(f"estimated from {DRAWN:,} records drawn at random", []).append("risk.linkage")
    return linkage(linkage_credit(original, released, tables, pair.kept, drawn, progress))


def _located(pair: Pair) -> tuple[Located, Located, list[Floats]]:
    """Return both tables in the distance of the policy: standardized numbers, then codes with a table of gaps each."""
    numbers: list[tuple[Floats, Floats]] = []
    codes: list[tuple[Ints, Ints]] = []
    tables: list[Floats] = []
    for column in pair.columns:
        if isinstance(column.attribute, Measured):
            x, y = _scaled(column)
            numbers.append((np.nan_to_num(x), np.nan_to_num(y)))
            if column.attribute.null.any():
                weight = column.attribute.bound.asked.weight
                codes.append((np.isnan(x).astype(np.int64), np.isnan(y).astype(np.int64)))
                tables.append(np.array([[0.0, weight], [weight, 0.0]]))
        else:
            codes.append(_placed(column, column.attribute))
            tables.append(_table(column, column.attribute))
    return (*(_side(numbers, codes, i, len(pair.kept)) for i in (0, 1)), tables)  # type: ignore[return-value]


def _side(numbers: list[tuple[Floats, Floats]], codes: list[tuple[Ints, Ints]], side: int, records: int) -> Located:
    left = np.column_stack([both[side] for both in numbers]) if numbers else np.empty((records, 0))
    right = np.column_stack([both[side] for both in codes]) if codes else np.empty((records, 0), np.int64)
    return Located.of(left, right)


def _scaled(column: PairedColumn) -> tuple[Floats, Floats]:
    attribute = column.attribute
    assert isinstance(attribute, Measured)  # noqa: S101  told apart by the caller
    released = column.numbers
    if released is None:
        assert column.place is not None  # noqa: S101  a column has numbers or labels
        released = np.array([*middles(column), np.nan, np.nan])[column.place]
    centre = np.nanmean(attribute.numbers)
    deviation = float(np.sqrt(np.nanmean((attribute.numbers - centre) ** 2)))
    unit = np.sqrt(attribute.bound.asked.weight) / deviation if deviation > 0 else 0.0
    return (attribute.numbers - centre) * unit, (released - centre) * unit


def _placed(column: PairedColumn, attribute: Coded) -> tuple[Ints, Ints]:
    assert column.place is not None  # noqa: S101  codes are released as labels
    null = len(column.labels)
    return attribute.codes.astype(np.int64), np.where(column.place < 0, null, column.place)


def _table(column: PairedColumn, attribute: Coded) -> Floats:
    if attribute.scale.codes * (len(column.labels) + 1) > LARGEST_TABLE:
        raise NotApplicable(f"'{column.name}' has too many categories for the linkage attack")
    return gaps(column)
