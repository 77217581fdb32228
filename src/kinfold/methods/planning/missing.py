"""Missing numbers and dates, as the policy decides: leave the record out, impute the mean, or keep patterns apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import Unreachable
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
            here = replace(here, numbers=np.where(here.null, np.nanmean(here.numbers), here.numbers))
        filled.append(here)
    return filled, notes


def left_out(attributes: Sequence[Attribute]) -> NDArray[np.bool_]:
    """Mark the records that are left out because a value is missing."""
    gone = np.zeros(records_of(attributes), np.bool_)
    for attribute in attributes:
        if attribute.bound.request.missing == "drop":
            gone |= attribute.null
    return gone


def strata(attributes: Sequence[Attribute], k: int) -> Labels:
    """Number the patterns of missing values; a pattern with fewer than k records cannot be released."""
    pattern = np.zeros(records_of(attributes), np.int64)
    for attribute in attributes:
        if isinstance(attribute, Measured):
            pattern = np.unique(pattern * 2 + attribute.null, return_inverse=True)[1].astype(np.int64)
    sizes = np.bincount(pattern)
    if small := int((sizes < k).sum()):
        few = int(sizes[sizes < k].sum())
        what = f"{small} patterns of missing values are shared by fewer than k = {k} records ({few} in all)"
        raise Unreachable(what, fix='choose missing = "mean" or missing = "drop" for some of those columns')
    return pattern.astype(np.int32)
