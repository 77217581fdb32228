"""Tasks: a regression or a classification fitted on the original and on the release, both judged on the original.

The features are all other columns: numbers as they are (a range by its middle), categories as shares of each of the
most frequent ones (a label that covers several gives each an equal share). A column whose categories are mostly gone
tells the release's fit nothing: it stands at its mean there. Records need not be paired.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError
from kinfold.evaluation.label_coverage import extents, own_places, spans_of
from kinfold.evaluation.pairing import Pair, PairedColumn
from kinfold.measures import NotApplicable
from kinfold.measures.utility import TaskScores, accuracy_loss, regression_loss
from kinfold.request.encoding import Measured
from kinfold.request.policy import did_you_mean

Floats: TypeAlias = NDArray[np.float64]

MOST_CATEGORIES = 24  # of a feature; rarer ones are the rest: a fit takes the square of their number


def fit_task(pair: Pair, sort: str, target: str) -> dict[str, Any]:
    """Return the score on the original records of either fit, and what the release costs in it."""
    names = [column.name for column in pair.columns]
    if target not in names:
        raise PolicyError(
            f"no column '{target}' for the task{did_you_mean(target, names)}", fix="name a column of both"
        )
    aim = pair.columns[names.index(target)]
    others = [column for column in pair.columns if column is not aim and _tells(column)]
    if not others:
        raise NotApplicable("there is no other column to explain the target by")
    sides = [np.hstack(parts) for parts in zip(*(_features(column) for column in others), strict=True)]
    before, after = sides[0], sides[1][pair.kept]
    found = _regression(aim, before, after) if sort == "regression" else _classification(aim, before, after)
    return {"task": f"{sort}:{target}", "original": found.original, "released": found.released, "loss": found.loss}


def _regression(aim: PairedColumn, before: Floats, after: Floats) -> TaskScores:
    if not isinstance(aim.attribute, Measured):
        raise PolicyError(f"'{aim.name}' is {aim.attribute.bound.kind}", fix="explain it by classification:COLUMN")
    x, y = _numbers(aim)
    return regression_loss(np.hstack([before, x]), np.hstack([after, y[aim.kept]]), target=before.shape[1])


def _classification(aim: PairedColumn, before: Floats, after: Floats) -> TaskScores:
    truth, answers = aim.before, aim.after[aim.kept]
    if isinstance(aim.attribute, Measured):
        raise PolicyError(f"'{aim.name}' is {aim.attribute.bound.kind}", fix="explain it by regression:COLUMN")
    whole = answers <= int(truth.max())  # not a label that covers several categories
    return accuracy_loss(before, after[whole], truth, answers[whole])


def _tells(column: PairedColumn) -> bool:
    """Whether a column can be a feature: names and other columns of mostly different categories cannot."""
    return isinstance(column.attribute, Measured) or column.attribute.null_code <= len(column.kept) // 2


def _features(column: PairedColumn) -> tuple[Floats, Floats]:
    return _numbers(column) if isinstance(column.attribute, Measured) else _shares(column)


def _numbers(column: PairedColumn) -> tuple[Floats, Floats]:
    assert isinstance(column.attribute, Measured)  # noqa: S101  told apart by the caller
    released = column.numbers
    if released is None:
        assert column.place is not None  # noqa: S101  a column has numbers or labels
        low, high = extents(column)
        released = np.append(low + (high - low) / 2, [np.nan, np.nan])[column.place]
    return column.attribute.numbers[:, None], released[:, None]


def _shares(column: PairedColumn) -> tuple[Floats, Floats]:
    """Return for each record the share of each shown category in its value, before and after."""
    assert column.place is not None  # noqa: S101  codes are released as labels
    spans, own = spans_of(column), own_places(column)
    counts = np.bincount(own, minlength=spans.values + 1)
    shown = np.sort(np.argsort(-counts[: spans.values], kind="stable")[:MOST_CATEGORIES])
    wide = (spans.stop - spans.start)[:, None]
    inside = (shown >= spans.start[:, None]) & (shown < spans.stop[:, None])
    said = np.vstack([inside / wide, np.zeros((2, len(shown)))])  # left out, null
    before = (own[:, None] == shown).astype(np.float64)
    exact = np.append(spans.stop - spans.start == 1, [False, True])[column.place[column.kept]]
    if 2 * exact.sum() < len(exact):
        return before, np.broadcast_to(before.mean(axis=0), before.shape)
    return before, said[column.place]
