"""Kinds: records that promises about confidential columns cannot tell apart, or hardly.

One column of few values: a kind for each value. Many values are put together, neighbours in order where the column has
one, the rare ones otherwise; so are the values of several columns before they are crossed. So kinds are few, and an
index for each is small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.partition.requirement import Requirement

MOST = 32  # kinds of one column, and about as many of several


def kinds_of(requirements: Sequence[Requirement]) -> NDArray[np.int32]:
    """Number the kind of each record.

    >>> from kinfold.methods.partition.requirement import Requirement
    >>> kinds_of([Requirement.close([7, 5, 5, 9], 0.2)]).tolist()
    [1, 0, 0, 2]
    """
    columns = _columns(requirements)
    many = max(2, int(MOST ** (1 / len(columns)) + 1e-9))
    kind = np.zeros(len(columns[0][0]), np.int64)
    for codes, ordered in columns:
        kind = np.unique(kind * many + coarser(codes, many, ordered=ordered), return_inverse=True)[1]
        if kind.max() >= MOST:  # of many columns the first tell most
            kind = np.unique(coarser(kind, MOST, ordered=False), return_inverse=True)[1]
    return kind.astype(np.int32)


def coarser(codes: NDArray[np.int64], many: int, *, ordered: bool) -> NDArray[np.int64]:
    """Put values together until there are at most so many: neighbours about evenly, or the rare ones.

    >>> coarser(np.array([0, 1, 2, 2, 3, 3]), 2, ordered=True).tolist()
    [0, 0, 1, 1, 1, 1]
    >>> coarser(np.array([0, 1, 2, 2, 3, 3]), 3, ordered=False).tolist()
    [2, 2, 0, 0, 1, 1]
    """
    total = np.bincount(codes)
    if len(total) <= many:
        return codes
    if ordered:
        middle = np.cumsum(total) - total / 2
        place = np.minimum(middle * many / len(codes), many - 1).astype(np.int64)
    else:
        place = np.empty(len(total), np.int64)
        place[np.argsort(-total, kind="stable")] = np.arange(len(total))
        place = np.minimum(place, many - 1)
    return np.asarray(place[codes])


def _columns(requirements: Sequence[Requirement]) -> list[tuple[NDArray[np.int64], bool]]:
    """Return the codes of each column once, and whether some promise about it is about its order."""
    found: list[tuple[NDArray[np.int64], bool]] = []
    for each in requirements:
        ordered = each.criterion.statistic == "ordered"
        # a block holds few of its table's values: without the others no array is as long as the table
        here = each.codes if each.table is None else np.unique(each.codes, return_inverse=True)[1].astype(np.int64)
        known = [i for i, (codes, _) in enumerate(found) if np.array_equal(codes, here)]
        if known:
            found[known[0]] = (here, found[known[0]][1] or ordered)
        else:
            found.append((here, ordered))
    return found
