"""Marginality: an order for values that have none, from the most central to the most remote.

The marginality of a value is the sum of its distances to all records. Values are ranked by it, the least first, so that
the layers of a block can be cut. With the equal distance the most frequent value comes first; with a hierarchy the
value whose relatives are many.

Paper: the ranking that Soria-Comas et al. 2015, section 7, ask for (their [7], [28]).
Cost: O(m h) for m values and h levels.   Ties: the first value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kinfold.methods.partition.requirement import Requirement
    from kinfold.models.class_criterion import ClassCriterion


def ranked(requirement: Requirement) -> NDArray[np.int64]:
    """Return the rank of each record's value: its code where values have an order, its marginality where not.

    >>> from kinfold.models.class_criterion import ClassCriterion
    >>> from kinfold.methods.partition.requirement import Requirement
    >>> equal = ClassCriterion("nested", 0.2, paths=np.arange(3)[:, None])
    >>> ranked(Requirement(equal, np.array([0, 1, 1, 2, 2, 2]))).tolist()
    [2, 1, 1, 0, 0, 0]
    """
    criterion = requirement.criterion
    if criterion.statistic != "nested" or criterion.paths is None:
        return requirement.codes
    return ranks(criterion, np.bincount(requirement.codes, minlength=len(criterion.paths)))[requirement.codes]


def ranks(criterion: ClassCriterion, total: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the rank of each value, given how many records hold it."""
    paths = criterion.paths
    if criterion.statistic != "nested" or paths is None:
        return np.arange(len(total))
    # two values part below their lowest common ancestor: each level where the labels differ is one step
    together = [np.bincount(level, total)[level] for level in paths.T]
    marginality = sum(total.sum() - records for records in together)
    rank = np.empty(len(paths), np.int64)
    rank[np.argsort(marginality, kind="stable")] = np.arange(len(paths))
    return rank
