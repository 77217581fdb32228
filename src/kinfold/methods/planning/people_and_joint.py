"""Promises that a class's own counts of rows do not tell: about people who have several rows, and joint ones.

    unit     every promise counts each person once in a class, however many rows they have there
    joint    a promise about one confidential column must hold for whoever knows the others as well
    both     and then also with each person counted once among the rows that share the others

What is counted is defined in `rows.tally.Scopes`, for the judge as well.

No such promise can be steered by the counts that a search keeps, so classes that miss one are merged with their nearest
class until none does. One class of everything keeps any promise about people that the table keeps; a joint promise it
may still miss, and then the request cannot be met.

Cost: O(n log n) a round, a round for each merge at worst.   Ties: the lowest label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.errors import Unreachable
from kinfold.methods.partition.geometry import centres, distances
from kinfold.methods.task import Task
from kinfold.rows.points import Points

Labels: TypeAlias = NDArray[np.int32]
Failing: TypeAlias = Callable[[Labels], NDArray[np.bool_]]

APART = 1e6  # deviations between strata: nothing is ever nearer across than within


def beyond_rows(task: Task) -> Failing | None:
    """Return what marks the classes that miss such a promise; None where nothing of the kind is asked for."""
    scopes = task.scopes
    if scopes is None:
        return None

    def failing(labels: Labels) -> NDArray[np.bool_]:
        missed = np.zeros(int(labels.max()) + 1, np.bool_)
        for model in task.models:
            for scope in scopes.of(labels, model.column):
                missed[scope.owner[model.failing(scope.tally)]] = True
        return missed

    return failing


def alike(columns: Sequence[pa.Array]) -> Labels:
    """Number the classes by the values that they are released with, a column of values for each attribute.

    >>> alike([pa.array([1, 1, 2]), pa.array(["a", "a", None])]).tolist()
    [0, 0, 1]
    """
    codes = [column.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False) for column in columns]
    return np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].astype(np.int32)


def merge_until(points: Points, labels: Labels, failing: Failing) -> tuple[Labels, int]:
    """Merge failing classes, the smallest first, with their nearest ones; return the labels and how many failed."""
    labels = labels.copy()
    first = 0
    while (missed := failing(labels)).any():
        first = first or int(missed.sum())
        if len(missed) == 1:
            what = "a promise about people, or a joint one, fails even with all records in one class"
            raise Unreachable(what, fix="ask for less, or leave out privacy.joint")
        labels = merged_once(points, labels, missed)
    return labels, first


def merged_once(points: Points, labels: Labels, missed: NDArray[np.bool_]) -> Labels:
    """Give every failing class, the smallest first, to its nearest class; a class takes part in one merge a round."""
    middles = centres(points, labels)
    into = np.arange(len(missed))
    free = np.ones(len(missed), np.bool_)
    for group in np.lexsort((np.arange(len(missed)), np.bincount(labels)))[: len(missed)]:
        if not missed[group] or not free[group]:
            continue
        away = distances(middles, middles, int(group))
        away[group] = np.inf
        near = int(np.argmin(np.where(free, away, np.inf))) if free.sum() > 1 else int(np.argmin(away))
        near = near if away[near] < APART or away.min() >= APART else int(np.argmin(away))  # no stratum is crossed
        into[group] = into[near]
        free[[group, near]] = False
    return np.unique(into[labels], return_inverse=True)[1].astype(np.int32)
