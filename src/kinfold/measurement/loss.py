"""The loss sheet: every information loss of the contract over a pair of tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinfold.encoding import Coded
from kinfold.measurement.pairing import Pair
from kinfold.measurement.sheet import Sheet
from kinfold.measurement.statements import statements
from kinfold.measures import NotApplicable, categorical, continuous, generalized, variation
from kinfold.measures.probabilistic import pil
from kinfold.measures.variation import Moments
from kinfold.partition.points import Ordered

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Value = TypeVar("Value")


def loss(pair: Pair | None, sizes: Ints, suppressed: int, reason: str = "") -> Sheet:
    """Measure what was lost; without pairs only what class sizes tell, and the reason for the rest."""
    sheet = Sheet("loss")
    _numeric(sheet, _given(pair.numbers if pair else None, reason or "no quasi-identifier is released as numbers"))
    _generalized(sheet, pair, reason)
    _categorical(sheet, pair, reason)
    sheet.write("discernibility", lambda: generalized.discernibility(sizes, suppressed))
    sheet.write("average_class_size", lambda: generalized.average_class_size(sizes))
    return sheet


def _given(value: Value | None, reason: str) -> Callable[[], Value]:
    def give() -> Value:
        if value is None:
            raise NotApplicable(reason)
        return value

    return give


def _numeric(sheet: Sheet, tables: Callable[[], tuple[Floats, Floats]]) -> None:
    sheet.write("sse", lambda: continuous.sse(*continuous.standardized(*tables())))
    sheet.write("sst", lambda: continuous.sst(continuous.standardized(*tables())[0]))
    sheet.write("sse_ratio", lambda: continuous.sse_ratio(*continuous.standardized(*tables())))
    sheet.write("normalized_sse", lambda: continuous.normalized_sse(*tables()))
    moments = _remembered(lambda: tuple(Moments.of(_filled(table, tables()[0])) for table in tables()))
    sheet.write("il1", lambda: variation.il1(*tables()))
    for name in ("il2", "il3", "il4", "il5"):
        formula = getattr(variation, name)
        sheet.write(name, lambda formula=formula: formula(*moments()))  # type: ignore[misc]
    parts = tuple(sheet.values[f"il{i}"] for i in range(1, 6))
    sheet.write("il", lambda: variation.il(_whole(parts)))
    sheet.write("pil", lambda: asdict(pil(*(_filled(table, tables()[0]) for table in tables()))))


def _remembered(make: Callable[[], Value]) -> Callable[[], Value]:
    made: list[Value] = []

    def recall() -> Value:
        if not made:
            made.append(make())
        return made[0]

    return recall


def _filled(table: Floats, original: Floats) -> Floats:
    """Put the original's means where a value is missing: what is lost is as good as the mean."""
    return np.where(np.isnan(table), continuous.column_means(original), table)


def _whole(parts: tuple[Any, ...]) -> Any:
    if None in parts:
        raise NotApplicable("one of il1 to il5 does not apply")
    return parts


def _generalized(sheet: Sheet, pair: Pair | None, reason: str) -> None:
    cells = _remembered(lambda: [statements(c) for c in pair.columns if c.generalized] if pair else [])
    weights = [c.attribute.bound.asked.weight for c in pair.columns if c.generalized] if pair else []

    def told() -> Any:
        if not cells():
            raise NotApplicable(reason or "no quasi-identifier is generalized: values are averaged instead")
        return cells()

    def prec() -> float:
        return generalized.prec(np.column_stack([s.level for s in told()]), [s.height for s in told()], weights)

    def granularity() -> float:
        return generalized.granularity(
            np.column_stack([s.covered for s in told()]), [s.values for s in told()], weights
        )

    sheet.write("prec", prec)
    sheet.write("granularity", granularity)


def _categorical(sheet: Sheet, pair: Pair | None, reason: str) -> None:
    coded = [c for c in pair.columns if isinstance(c.attribute, Coded) and not c.generalized] if pair else []

    def tables() -> tuple[Ints, Ints]:
        if not coded or pair is None:
            raise NotApplicable(reason or "no ordinal or nominal quasi-identifier is released as categories")
        kept = pair.kept
        return np.column_stack([c.before[kept] for c in coded]), np.column_stack([c.after[kept] for c in coded])

    scales = [c.attribute.scale for c in coded if isinstance(c.attribute, Coded)]
    ordinal = [scale.size if isinstance(scale, Ordered) else 0 for scale in scales]
    sizes = [scale.codes - 1 for scale in scales]
    sheet.write("dist", lambda: categorical.dist(*tables(), ordinal))
    sheet.write("ctbil", lambda: categorical.ctbil(*tables(), sizes))
    sheet.write("actbil", lambda: categorical.actbil(*tables(), sizes))
    sheet.write("ebil", lambda: categorical.ebil(*tables()))
