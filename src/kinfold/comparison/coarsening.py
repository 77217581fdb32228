"""Coarser forms of a quasi-identifier, to try what they would save: one for each kind of column that has one.

number              multiples of a power of ten
date                one date for each month, quarter, year or decade
with a hierarchy    one value for each group of its first level that merges any; codes with a mask: the last character
ordinal             neighbours merged in pairs
nominal             the rarest categories merged

But for numbers and masks, a value of the column stands for those that are merged, so that its order and its hierarchy
stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log10
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import Attribute, CategoricalAttribute
from kinfold.tables.engine import Engine
from kinfold.tables.schema import Kind

INTERVALS = 10  # of a coarser column of numbers, about
MAX_PERIODS = 12  # of a coarser column of dates
MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
RARE_SHARE = 0.05  # of the records with a value: rarer categories are merged


@dataclass(frozen=True)
class Coarsening:
    """A coarser form of a column: in words, and as keys of its section in the policy."""

    words: str
    keys: Mapping[str, Any]


def coarsen(engine: Engine, frame: Any, attribute: Attribute) -> Coarsening | None:
    """Return a coarser form of a column of a frame, or None if it has too few values."""
    bound = attribute.bound
    if bound.kind is Kind.CONTINUOUS:
        return _round_numbers(engine, frame, bound)
    if bound.kind is Kind.DATE:
        return _merge_dates(engine, frame, bound)
    assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  of any other kind
    return _merge_categories(attribute)


def _round_numbers(engine: Engine, frame: Any, bound: BoundColumn) -> Coarsening | None:
    """Round to a power of ten that cuts the range into a few intervals; to ten times what the policy rounds to."""
    numbers = engine.collect(frame, {bound.name: bound.column}).column(0).to_numpy(zero_copy_only=False)
    width = float(np.ptp(numbers[np.isfinite(numbers)])) if np.isfinite(numbers).any() else 0.0
    if not width:
        return None
    step = 10.0 ** round(log10(width / INTERVALS))
    if bound.column.decimals == 0:
        step = max(step, 1.0)
    if bound.request.round_to is not None:
        step = max(step, 10 * bound.request.round_to)
    return Coarsening(f"with round_to = {step:g}", {"round_to": step})


def _merge_dates(engine: Engine, frame: Any, bound: BoundColumn) -> Coarsening | None:
    """Merge the dates of each period, the shortest of which there are few."""
    texts = engine.collect(frame, {bound.name: None}).column(0).to_pylist()
    days = engine.collect(frame, {bound.name: bound.column}).column(0).to_numpy(zero_copy_only=False)
    by_text = {text: day for text, day in zip(texts, days.tolist(), strict=True) if text and np.isfinite(day)}
    months = np.floor([*by_text.values()]).astype("M8[D]").astype("M8[M]").astype(np.int64)
    for period, width in MONTHS_OF.items():
        groups = months // width
        if len(np.unique(groups)) <= MAX_PERIODS or period == "decade":
            return _merge(f"by {period}", np.array([*by_text], object), groups, bound)
    return None


def _merge_categories(attribute: CategoricalAttribute) -> Coarsening | None:
    bound, texts = attribute.bound, attribute.texts[:-1]
    hierarchy, leaves, spec = attribute.hierarchy, attribute.leaf_of_code, bound.request.hierarchy
    if spec is not None and spec.mask is not None and all(texts):
        shorter = {text: f"{text[:-1]}*" for text in texts}
        return Coarsening("without its last character", {"map": _compose(bound, shorter)})
    if hierarchy is not None and leaves is not None:
        for level in range(1, hierarchy.height):
            groups = hierarchy.paths[leaves[:-1], level]
            if coarser := _merge("one level coarser", texts, groups, bound):
                return coarser
    if bound.kind is Kind.ORDINAL:
        return _merge("with its neighbours merged in pairs", texts, np.arange(len(texts)) // 2, bound, least=2)
    counts = np.bincount(attribute.codes, minlength=len(texts) + 1)[:-1]
    number = int((counts < RARE_SHARE * counts.sum()).sum())
    rare = np.argsort(counts, kind="stable")[: max(2, number if number < len(texts) else number // 2)]
    groups = np.arange(len(texts))
    groups[rare] = -1
    return _merge(f"with its {len(rare)} rarest categories merged", texts, groups, bound, least=2)


def _merge(
    words: str, texts: NDArray[Any], groups: NDArray[np.int64], bound: BoundColumn, least: int = 1
) -> Coarsening | None:
    """Show the values of each group as the first of them; None if that merges nothing, or leaves too few values."""
    firsts: dict[int, str] = {}
    merged = {text: firsts.setdefault(group, text) for text, group in zip(texts, groups.tolist(), strict=True)}
    if not least <= len(firsts) < len(merged):
        return None
    order, kept = bound.request.order, {*firsts.values()}
    shorter = None if order is None else [text for text in order if text in kept]
    return Coarsening(words, {"map": _compose(bound, merged), "order": shorter})


def _compose(bound: BoundColumn, merged: Mapping[str, str]) -> dict[str, str]:
    """Return a map that does what the map of the column does, and then shows values as others."""
    first = bound.request.map or {}
    return {**merged, **{old: merged.get(new, new) for old, new in first.items()}}
