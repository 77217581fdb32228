"""Classes at cell level: each has a statement, the lowest common ancestor of its records in every attribute.

Codes are in subtree order, so a node of a hierarchy covers a range of codes. Levels that cover the same values as the
level below are not nodes of their own: the lowest says the same and loses less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.generalize.domain import Codes, Domain, Floats
from kinfold.generalize.loss import CellLoss
from kinfold.tally import Ints


@dataclass(frozen=True, eq=False)
class Trees:
    """The hierarchies of a domain as nodes: the codes each covers, its parent, what it loses and its level."""

    low: Codes
    high: Codes
    parent: Codes
    lost: Floats
    level: Codes
    leaves: Ints  # where the codes of each attribute begin

    @classmethod
    def of(cls, loss: CellLoss) -> Trees:
        """Number the nodes of each attribute, its codes first."""
        parts = [
            _nodes(path, table, weight)
            for path, table, weight in zip(loss.domain.paths, loss.tables, loss.weights, strict=True)
        ]
        start = np.concatenate([[0], np.cumsum([len(part[0]) for part in parts])])
        low, high, parent, lost, level = (np.concatenate([part[i] for part in parts]) for i in range(5))
        shift = np.repeat(start[:-1], [len(part[0]) for part in parts])
        return cls(
            low.astype(np.int32),
            high.astype(np.int32),
            (parent + shift).astype(np.int32),
            lost.astype(np.float64),
            level.astype(np.int32),
            start[:-1].astype(np.int64),
        )

    @property
    def forest(self) -> Any:
        """The nodes as the kernels take them."""
        from kinfold.kernels.ancestry import Forest

        return Forest(self.low, self.high, self.parent, self.lost)

    def statements(self, domain: Domain) -> Codes:
        """The rows of the domain as nodes."""
        return np.ascontiguousarray(domain.codes + self.leaves, np.int32)


def _nodes(paths: Codes, table: Floats, weight: float) -> tuple[NDArray[Any], ...]:
    codes, levels = paths.shape
    low, high = [np.arange(codes)], [np.arange(codes)]
    parent, lost, level = [np.full(codes, -1)], [weight * table[:, 0]], [np.zeros(codes, np.int64)]
    at = np.arange(codes)  # the node that each code stands under so far
    count = codes
    for up in range(1, levels):
        first = np.full(int(paths[:, up].max()) + 1, codes)
        last = np.full(len(first), -1)
        np.minimum.at(first, paths[:, up], np.arange(codes))
        np.maximum.at(last, paths[:, up], np.arange(codes))
        lows, highs = np.concatenate(low), np.concatenate(high)
        wider = [
            label
            for label in range(len(first))
            if first[label] <= last[label]
            and last[label] - first[label] > highs[at[first[label]]] - lows[at[first[label]]]
        ]
        above = np.concatenate(parent)
        for place, label in enumerate(wider):
            under = slice(first[label], last[label] + 1)
            above[np.unique(at[under])] = count + place
            at[under] = count + place
        parent = [above, np.full(len(wider), -1)]
        low.append(first[wider].astype(np.int64))
        high.append(last[wider].astype(np.int64))
        lost.append(weight * table[first[wider], up])
        level.append(np.full(len(wider), up))
        count += len(wider)
    above = np.concatenate(parent)
    return (
        np.concatenate(low),
        np.concatenate(high),
        np.where(above < 0, np.arange(count), above),
        np.concatenate(lost),
        np.concatenate(level),
    )
