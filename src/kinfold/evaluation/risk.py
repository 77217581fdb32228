"""The risk sheet: every disclosure risk of the contract over a pair of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.evaluation.attack import Estimate, draw, link
from kinfold.evaluation.pairing import Pair
from kinfold.evaluation.questions import Questions
from kinfold.evaluation.sheet import Sheet, answered, remembered
from kinfold.measures import NotApplicable, attacker, disclosure
from kinfold.measures.disclosure import Classification, SizeCounts
from kinfold.measures.inference import inference_gain, inference_gain_numbers
from kinfold.measures.interval import found_by_rank
from kinfold.measures.uniques import sample_uniques

Ints: TypeAlias = NDArray[np.int64]


class InClasses(NamedTuple):
    """Confidential values in their classes: codes, or numbers where they are measured; each may stand for many."""

    classes: Ints
    values: Any
    records: Ints | None = None  # how many records hold the value in the class, where each such pair is given once


@dataclass(frozen=True, eq=False)
class Shown:
    """What a table shows by itself: class sizes, and its confidential columns."""

    sizes: Ints | SizeCounts  # of each class, or how many classes have each size
    confidential: Mapping[str, Callable[[], InClasses]]


def risk(pair: Pair | str, shown: Shown, k: int, questions: Questions, seed: int, recorded: Mapping[str, Any]) -> Sheet:
    """Measure how likely it is that somebody is found; a text instead of a pair is the reason why there is none."""
    sheet = Sheet("risk", recorded)

    def paired() -> Pair:
        if isinstance(pair, str):
            raise NotApplicable(pair)
        return pair

    matrix = remembered(lambda: _classified(paired()))
    sheet.write("dr_min", lambda: disclosure.dr_min(matrix()))
    sheet.write("dr_max", lambda: disclosure.dr_max(matrix()))
    sheet.write("dr_weighted", lambda: disclosure.dr_weighted(matrix(), questions.weigh(k, matrix().released)))
    sheet.write("unique_from_larger", lambda: disclosure.unique_from_larger(matrix()))
    sheet.write("uncounted", lambda: disclosure.uncounted(matrix()))
    _by_itself(sheet, shown)
    sheet.write("linkage", lambda: link(paired(), sheet, seed, every=questions.every))
    sheet.write("interval", lambda: _interval(paired(), sheet, seed, every=questions.every))
    return sheet


def _classified(pair: Pair) -> Classification:
    if pair.far is None:
        return Classification.of(pair.initial, pair.masked, pair.weight)
    if not pair.kept.any():
        raise NotApplicable("there is no released record")
    before, after = pair.far.before[pair.kept], pair.far.after[pair.kept]
    return Classification.by_size(before, after, None if pair.weight is None else pair.weight[pair.kept])


def risk_before(shown: Shown) -> Sheet:
    """Measure the original as if it were released as it is: the risks that a table has by itself."""
    sheet = Sheet("risk_before")
    _by_itself(sheet, shown)
    return sheet


def _by_itself(sheet: Sheet, shown: Shown) -> None:
    sizes = shown.sizes
    counted = sizes if isinstance(sizes, SizeCounts) else None
    each = sizes if isinstance(sizes, np.ndarray) else sizes.sizes
    sheet.write("prosecutor_max", lambda: attacker.prosecutor_max(each))
    sheet.write("prosecutor_mean", lambda: counted.mean_risk if counted else attacker.prosecutor_mean(each))
    sheet.write("inference", lambda: _inference(shown))
    sheet.write("uniques", lambda: {"sample": counted.alone if counted else sample_uniques(each)})


def _interval(pair: Pair, sheet: Sheet, seed: int, *, every: bool) -> float:
    if pair.numbers is None:
        raise NotApplicable("no quasi-identifier is released as numbers")
    drawn = None if every else draw(pair, seed)
    if drawn is not None:
        rows = np.flatnonzero(pair.kept)[drawn]
        found = found_by_rank(*pair.numbers, looked_for=rows, weight=pair.weight)
        return Estimate.of(found).told(sheet, "interval") * pair.released / pair.records  # others are not found
    found = found_by_rank(*pair.numbers, weight=pair.weight)
    return float(np.average(found, weights=pair.weight))


def _inference(shown: Shown) -> dict[str, float | None]:
    if not shown.confidential:
        raise NotApplicable("no column is confidential")
    found: dict[str, float | None] = {}
    for name, held in shown.confidential.items():
        values = held()
        formula = inference_gain_numbers if values.values.dtype.kind == "f" else inference_gain
        try:
            found[name] = answered(partial(formula, *values))
        except NotApplicable:
            found[name] = None
    return found
