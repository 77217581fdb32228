"""Out of reach: promises that not even all records in one class keep, and the best that they have instead.

t-closeness is never out of reach: one class of everything is the table itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.errors import Unreachable
from kinfold.methods.partition.requirement import missed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kinfold.methods.partition.requirement import Requirement


def require_within_reach(requirements: Sequence[Requirement]) -> None:
    """Raise unless all records in one class keep every promise."""
    best = [_best(each) for each in requirements if missed([each], np.zeros(len(each.codes), np.int32))[0] > 0]
    if best:
        raise Unreachable(
            f"a promise fails even with all records in one class: {'; '.join(best)}",
            fix="lower l or p, or raise t, alpha or c: the table itself does not keep it",
        )


def _best(required: Requirement) -> str:
    """Say what one class of everything has, in counts and shares.

    >>> from kinfold.methods.partition.requirement import Requirement
    >>> from kinfold.models import AlphaK, LDiversity
    >>> _best(Requirement.of(LDiversity(3, "ill"), ["flu", "cold", "cold"]))
    '3 distinct values are asked for, there are 2'
    >>> _best(Requirement.of(AlphaK(0.5, "ill"), ["flu", "cold", "cold"]))
    'a share of at most 0.5 is asked for, the most frequent value has 0.6667'
    """
    count, limit = np.sort(np.bincount(required.codes))[::-1], required.criterion.limit
    count = count[count > 0]  # a block need not have every value of its table
    share = count / count.sum()
    if required.criterion.statistic == "distinct":
        return f"{limit:g} distinct values are asked for, there are {len(count)}"
    if required.criterion.statistic == "share":
        return f"a share of at most {limit:g} is asked for, the most frequent value has {share[0]:.4g}"
    if required.criterion.statistic == "effective":
        held = np.exp(-(share * np.log(share)).sum())
        return f"an entropy of {limit:g} values is asked for, there is that of {held:.4g}"
    tail = count[int(limit) - 1 :].sum()
    needed = f"c would have to be above {count[0] / tail:.4g}" if tail else f"there are {len(count)} values"
    return f"recursive diversity with l = {limit:g} and c = {required.criterion.c:g} is asked for, {needed}"
