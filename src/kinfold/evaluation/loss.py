"""The loss sheet: every information loss of the contract over a pair of tables, and those that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.column_loss import column_loss
from kinfold.evaluation.label_coverage import Coverage, coverage_of
from kinfold.evaluation.pairing import Pair
from kinfold.evaluation.sheet import Sheet, remembered
from kinfold.measures import NotApplicable, categorical, continuous, generalized, variation
from kinfold.measures.overall import overall
from kinfold.measures.probabilistic import pil
from kinfold.measures.propensity import propensity_mse
from kinfold.measures.variation import Moments
from kinfold.request.encoding import Coded
from kinfold.rows.points import Ordered

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Value = TypeVar("Value")

CELLS = ("held", "under", "records")  # of what is said of values


def loss(found: Pair | str, sizes: Ints, suppressed: int, recorded: Mapping[str, Any], *, every: bool) -> Sheet:
    """Measure what was lost; a text instead of a pair is the reason why only class sizes can tell."""
    sheet = Sheet("loss", recorded)
    pair, reason = (None, found) if isinstance(found, str) else (found, "")
    _by_column(sheet, _given(pair, reason))
    tables = _given(pair.numbers if pair else None, reason or "no quasi-identifier is released as numbers")
    names = pair.compared if pair else []
    _numeric(sheet, tables, names, pair.weight if pair else None)
    if every:
        sheet.write("propensity_mse", lambda: propensity_mse(*tables()))
    _generalized(sheet, pair, reason)
    _categorical(sheet, pair, reason)
    sheet.write("discernibility", lambda: generalized.discernibility(sizes, suppressed))
    sheet.write("average_class_size", lambda: generalized.average_class_size(sizes))
    return sheet


def _by_column(sheet: Sheet, pair: Callable[[], Pair]) -> None:
    """Write the one loss that holds for every method, and what each column adds to it."""
    lost = remembered(lambda: {column.name: column_loss(column, pair().weight) for column in pair().columns})
    sheet.write("overall", lambda: overall([each.lost for each in lost().values()]))
    sheet.write("by_column", lambda: {name: each.lost for name, each in lost().items()})
    sheet.write("changed", lambda: {name: each.changed for name, each in lost().items()})


def _given(value: Value | None, reason: str) -> Callable[[], Value]:
    def give() -> Value:
        if value is None:
            raise NotApplicable(reason)
        return value

    return give


def _numeric(sheet: Sheet, tables: Callable[[], tuple[Floats, Floats]], names: list[str], weight: Ints | None) -> None:
    standard = remembered(lambda: continuous.standardized(*tables(), weight))
    lost = remembered(lambda: continuous.sse(*standard(), weight))
    varied = remembered(lambda: continuous.sst(standard()[0], weight))
    sheet.write("sse", lost)
    sheet.write("sse_by_column", lambda: _each(names, standard(), weight))
    sheet.write("sst", varied)
    sheet.write("sse_ratio", lambda: continuous.ratio(lost(), varied()))
    sheet.write("normalized_sse", lambda: continuous.normalized_sse(*tables(), weight))
    filled = remembered(lambda: _filled(*tables(), weight))
    moments = remembered(lambda: (Moments.of(filled()[0], weight), Moments.of(filled()[1], weight)))
    sheet.write("il1", lambda: variation.il1(*tables(), weight))
    for name in ("il2", "il3", "il4", "il5"):
        formula = getattr(variation, name)
        sheet.write(name, lambda formula=formula: formula(*moments()))  # type: ignore[misc]
    parts = tuple(sheet.values[f"il{i}"] for i in range(1, 6))
    sheet.write("il", lambda: variation.il(_whole(parts)))
    sheet.write("il1s", lambda: variation.il1s(*tables(), weight))
    sheet.write("eigenvalues", lambda: variation.eigenvalue_shift(*moments()))
    sheet.write("pil", lambda: asdict(pil(*filled(), weight, moments())))


def loss_of_all(sheet: Sheet, errors: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """Write what was summed over all records of a far table in the place of estimates; return which measures."""
    if not errors:
        return ()
    lost, varied = (sum(each[part] for each in errors.values()) for part in (0, 1))
    sheet.write("sse", lambda: lost)
    sheet.write("sse_by_column", lambda: {name: each for name, (each, _) in errors.items()})
    sheet.write("sst", lambda: varied)
    sheet.write("sse_ratio", lambda: continuous.ratio(lost, varied))
    return "sse", "sse_by_column", "sst", "sse_ratio"


def _each(names: list[str], tables: tuple[Floats, Floats], weight: Ints | None) -> dict[str, float]:
    return {name: continuous.sse(tables[0][:, j], tables[1][:, j], weight) for j, name in enumerate(names)}


def _filled(original: Floats, released: Floats, weight: Ints | None) -> tuple[Floats, Floats]:
    """Put the original's means where a value is missing: what is lost is as good as the mean."""
    return (
        continuous.at_means(original, original, weight),
        continuous.at_means(original, released, weight),
    )


def _whole(parts: tuple[Any, ...]) -> Any:
    if None in parts:
        raise NotApplicable("one of il1 to il5 does not apply")
    return parts


def _generalized(sheet: Sheet, pair: Pair | None, reason: str) -> None:
    cells = remembered(lambda: [coverage_of(c, pair.weight) for c in pair.columns if c.generalized] if pair else [])
    weights = [c.attribute.bound.request.weight for c in pair.columns if c.generalized] if pair else []

    def told() -> list[Coverage]:
        if not cells():
            raise NotApplicable(reason or "no quasi-identifier is generalized: values are averaged instead")
        return cells()

    def prec() -> float:
        return generalized.prec([_mean(s, s.level) for s in told()], [s.height for s in told()], weights)

    def granularity() -> float:
        return generalized.granularity([_mean(s, s.covered) for s in told()], [s.values for s in told()], weights)

    def granularity_by_column() -> dict[str, float]:
        names = [c.name for c in pair.columns if c.generalized] if pair else []
        lost = {name: (_mean(s, s.covered), s.values) for name, s in zip(names, told(), strict=True)}
        return {name: 1.0 - (mean - 1.0) / max(values - 1, 1) for name, (mean, values) in lost.items()}

    def entropy() -> float:
        held, under, records = (np.concatenate([getattr(s, part) for s in told()]) for part in CELLS)
        if (under < held).any():
            raise NotApplicable("a released statement is not true of its original value")
        return generalized.non_uniform_entropy(held[:, None], under[:, None], pair.records if pair else 0, records)

    sheet.write("prec", prec)
    sheet.write("granularity", granularity)
    sheet.write("granularity_by_column", granularity_by_column)
    sheet.write("non_uniform_entropy", entropy)


def _mean(said: Coverage, values: Ints) -> float:
    return float(np.average(values, weights=said.records))


def _categorical(sheet: Sheet, pair: Pair | None, reason: str) -> None:
    coded = [c for c in pair.columns if isinstance(c.attribute, Coded) and not c.generalized] if pair else []

    def tables() -> tuple[Ints, Ints]:
        if not coded:
            raise NotApplicable(reason or "no ordinal or nominal quasi-identifier is released as categories")
        before, after = (np.column_stack([getattr(c, side) for c in coded]) for side in ("before", "after"))
        rows = np.repeat(np.arange(len(before)), 1 if pair is None or pair.weight is None else pair.weight)
        return before[rows], np.maximum(after[rows], -1)  # a record left out has lost its categories

    scales = [c.attribute.scale for c in coded if isinstance(c.attribute, Coded)]
    ordinal = [scale.size if isinstance(scale, Ordered) else 0 for scale in scales]
    sizes = [scale.codes - 1 for scale in scales]
    contingency = remembered(lambda: categorical.contingency_loss(*tables(), sizes))
    sheet.write("dist", lambda: categorical.dist(*tables(), ordinal))
    sheet.write("ctbil", lambda: contingency()[0])
    sheet.write("actbil", lambda: contingency()[0] / contingency()[1])
    sheet.write("ebil", lambda: categorical.ebil(*tables()))
