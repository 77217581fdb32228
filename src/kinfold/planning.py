"""Planning: from the encoded quasi-identifiers and the policy to a recoding of the table.

    leave out     records with a missing value where the policy says `missing = "drop"`
    impute        the column's mean where it says "mean"
    stratify      by the pattern of missing values where it says "separate": a class has one pattern
    partition     each stratum with the method that the policy names
    average       each attribute over each class

The policy holds a method's name only; it is looked up here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.averaging import averaged
from kinfold.binding import BoundPolicy
from kinfold.encoding import Attribute, Coded, Measured, points
from kinfold.errors import Unreachable
from kinfold.partition import mdav
from kinfold.progress import Progress, silent
from kinfold.recoding import LEFT_OUT, Drop, Keep, Recoding, Treatment
from kinfold.schema import Role

Labels: TypeAlias = NDArray[np.int32]
Partitioner: TypeAlias = Callable[..., Labels]

PARTITIONERS: dict[str, Partitioner] = {"mdav": mdav}


@dataclass(frozen=True, eq=False)
class Plan:
    """A recoding, the method that made it, why that one, and what there is to say."""

    recoding: Recoding
    method: str
    reason: str
    notes: tuple[str, ...] = ()


def plan(attributes: Sequence[Attribute], policy: BoundPolicy, progress: Progress = silent) -> Plan:
    """Return what to do to each row and each column."""
    method, reason = _chosen(policy)
    attributes, imputed = _imputed(attributes)
    labels = np.full(policy.rows, LEFT_OUT, np.int32)
    rows = np.flatnonzero(~_dropped(attributes, policy.rows))
    labels[rows] = _partitioned([a.take(rows) for a in attributes], policy, PARTITIONERS[method], progress)
    kept = [a.take(rows) for a in attributes]
    results = {a.bound.name: averaged(a, labels[rows], policy.policy.output) for a in kept}
    treatments: dict[str, Treatment] = {}
    for column in policy.columns:
        if column.role is Role.QUASI:
            treatments[column.name] = results[column.name].replace
        else:
            treatments[column.name] = Drop() if column.role is Role.IDENTIFIER else Keep()
    left_out = policy.rows - len(rows)
    notes = [*imputed, *(note for result in results.values() for note in result.notes)]
    if left_out:
        notes.append(f"{left_out} records were left out because a value is missing, as the policy asks")
    return Plan(Recoding(labels, treatments), method, reason, tuple(notes))


def _chosen(policy: BoundPolicy) -> tuple[str, str]:
    name = policy.policy.method.name
    if name != "auto":
        return name, "named in the policy"
    return "mdav", "the policy leaves the choice to kinfold"


def _imputed(attributes: Sequence[Attribute]) -> tuple[list[Attribute], list[str]]:
    filled: list[Attribute] = []
    notes = []
    for attribute in attributes:
        if isinstance(attribute, Measured) and attribute.bound.asked.missing == "mean" and attribute.null.any():
            notes.append(
                f"'{attribute.bound.name}': {int(attribute.null.sum())} missing values were imputed with the mean"
            )
            numbers = np.where(attribute.null, np.nanmean(attribute.numbers), attribute.numbers)
            attribute = replace(attribute, numbers=numbers)
        filled.append(attribute)
    return filled, notes


def _dropped(attributes: Sequence[Attribute], records: int) -> NDArray[np.bool_]:
    gone = np.zeros(records, np.bool_)
    for attribute in attributes:
        if isinstance(attribute, Measured) and attribute.bound.asked.missing == "drop":
            gone |= attribute.null
    return gone


def _partitioned(
    attributes: Sequence[Attribute], policy: BoundPolicy, partitioner: Partitioner, progress: Progress
) -> Labels:
    k, strata = policy.policy.privacy.k, _strata(attributes)
    labels = np.empty(len(strata), np.int32)
    _refuse_small(strata, k)
    done = classes = 0
    for stratum in range(int(strata.max()) + 1):
        rows = np.flatnonzero(strata == stratum)
        part = partitioner(points(attributes, rows), k, progress=_share(progress, done, len(strata)))
        labels[rows] = part + classes
        classes, done = classes + int(part.max()) + 1, done + len(rows)
    return labels


def _strata(attributes: Sequence[Attribute]) -> Labels:
    """Number the patterns of missing values, in order of their first record."""
    columns = [a.null for a in attributes if isinstance(a, Measured)]
    records = len(columns[0]) if columns else len(next(a.codes for a in attributes if isinstance(a, Coded)))
    pattern = np.zeros(records, np.int64)
    for null in columns:
        pattern = np.unique(pattern * 2 + null, return_inverse=True)[1].astype(np.int64)
    return pattern.astype(np.int32)


def _refuse_small(strata: Labels, k: int) -> None:
    sizes = np.bincount(strata)
    if len(strata) < k:
        raise Unreachable(f"k is {k}, but there are only {len(strata)} records", fix="lower k, or bring more records")
    if small := int((sizes < k).sum()):
        few = int(sizes[sizes < k].sum())
        what = f"{small} patterns of missing values are shared by fewer than k = {k} records ({few} in all)"
        raise Unreachable(what, fix='choose missing = "mean" or missing = "drop" for some of those columns')


def _share(progress: Progress, before: int, total: int) -> Progress:
    """Report the progress of one stratum as part of the whole."""
    return lambda done, _: progress(before + done, total)
