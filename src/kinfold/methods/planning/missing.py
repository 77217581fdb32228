"""Missing numbers and dates, as the policy decides: leave the record out, impute the mean, or keep patterns apart.

Patterns that are too rare to be kept apart are settled before (`rare_patterns`). Where classes of different patterns
still had to be merged, every record of such a class lacks what any of them lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable
from kinfold.methods.planning.rare_patterns import blank
from kinfold.request.encoding import Attribute, Measured, records_of

Labels: TypeAlias = NDArray[np.int32]


def imputed(attributes: Sequence[Attribute]) -> tuple[list[Attribute], list[str]]:
    """Fill in the mean where the policy says so, and say how often."""
    filled: list[Attribute] = []
    notes = []
    for attribute in attributes:
        here = attribute
        if isinstance(here, Measured) and here.bound.request.missing == "mean" and here.null.any():
            notes.append(f"'{here.bound.name}': {int(here.null.sum())} missing values were imputed with the mean")
            here = replace(here, numbers=np.where(here.null, np.nanmean(here.numbers), here.numbers), exact=None)
        filled.append(here)
    return filled, notes


def left_out(attributes: Sequence[Attribute]) -> NDArray[np.bool_]:
    """Mark the records that are left out because a value is missing."""
    gone = np.zeros(records_of(attributes), np.bool_)
    for attribute in attributes:
        if attribute.bound.request.missing == "drop":
            gone |= attribute.null
    return gone


def strata(attributes: Sequence[Attribute]) -> Labels:
    """Number the patterns of missing values of some records."""
    pattern = np.zeros(records_of(attributes), np.int64)
    for attribute in attributes:
        if isinstance(attribute, Measured) and attribute.null.any():
            pattern = np.unique(pattern * 2 + attribute.null, return_inverse=True)[1].astype(np.int64)
    return pattern.astype(np.int32)


def lacking_alike(attributes: Sequence[Attribute], labels: Labels) -> list[Attribute]:
    """Return attributes of which a class lacks every value or none; a generalized one can state both at once."""
    alike: list[Attribute] = []
    for attribute in attributes:
        here = attribute
        if isinstance(here, Measured) and here.bound.average != "generalize":
            here = blank(here, (np.bincount(labels, here.null) > 0)[labels])
        alike.append(here)
    return alike


def refuse_mixed(attributes: Sequence[Attribute], labels: Labels) -> None:
    """Raise where a class keeps its promises only by losing values that the policy does not give up."""
    mixed = np.zeros(int(labels.max()) + 1, np.bool_)
    for attribute in attributes:
        if isinstance(attribute, Measured) and attribute.bound.request.missing_rare == "refuse":
            lost = np.bincount(labels, attribute.null)
            mixed |= (lost > 0) & (lost < np.bincount(labels))
    if mixed.any():
        what = (
            f"{int(mixed.sum())} classes keep the promises only with records that lack values and records that do not"
        )
        raise Unreachable(what, fix='choose missing_rare = "blank", or missing = "mean" or "drop", or ask for less')


def given_up(before: Sequence[Attribute], after: Sequence[Attribute]) -> list[str]:
    """Say how many values were blanked for records whose pattern of missing values was too rare."""
    lost = {
        a.bound.name: b.null & ~a.null
        for a, b in zip(before, after, strict=True)
        if isinstance(a, Measured) and isinstance(b, Measured) and (b.null & ~a.null).any()
    }
    if not lost:
        return []
    cells, records = sum(int(each.sum()) for each in lost.values()), int(np.logical_or.reduce([*lost.values()]).sum())
    columns = ", ".join(f"'{name}' {int(each.sum()):,}" for name, each in lost.items())
    what = f"{cells:,} values of {records:,} records were blanked"
    return [f"{what}, because too few records lack the same values ({columns})"]
