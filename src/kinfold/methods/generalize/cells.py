"""Classes at cell level: each has a statement, the lowest common ancestor of its records in every attribute.

Codes are in subtree order, so a node of a hierarchy covers a range of codes. Levels that cover the same values as the
level below are not nodes of their own: the lowest says the same and loses less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold import kernels
from kinfold.methods.generalize.domain import Codes, Domain, Floats
from kinfold.methods.generalize.loss import CellLoss
from kinfold.rows.tally import Ints


@dataclass(frozen=True, eq=False)
class Trees:
    """The hierarchies of a domain as nodes: the codes each covers, its parent, what it loses and its level."""

    low: Codes
    high: Codes
    parent: Codes
    lost: Floats
    level: Codes
    leaves: Ints  # where the codes of each attribute begin
    stands: Codes  # the node of each code: itself, or the top where it loses as much, for then both say nothing

    @classmethod
    def of(cls, loss: CellLoss) -> Trees:
        """Number the nodes of each attribute, its codes first."""
        columns = zip(loss.domain.paths, loss.tables, loss.weights, strict=True)
        parts = [_nodes(paths, table, weight) for paths, table, weight in columns]
        start = np.concatenate([[0], np.cumsum([len(part[0]) for part in parts])])
        low, high, parent, lost, level, stands = (np.concatenate([part[i] for part in parts]) for i in range(6))
        shift = np.repeat(start[:-1], [len(part[0]) for part in parts])
        return cls(
            low.astype(np.int32),
            high.astype(np.int32),
            (parent + shift).astype(np.int32),
            lost.astype(np.float64),
            level.astype(np.int32),
            start[:-1].astype(np.int64),
            (stands + shift).astype(np.int32),
        )

    @property
    def forest(self) -> Any:
        """The nodes as the kernels take them."""
        Forest = kernels.load("statements").Forest

        return Forest(self.low, self.high, self.parent, self.lost)

    def statements(self, domain: Domain) -> Codes:
        """The rows of the domain as nodes."""
        return np.ascontiguousarray(self.stands[domain.codes + self.leaves])


def _nodes(paths: Codes, table: Floats, weight: float) -> tuple[NDArray[Any], ...]:
    """Low, high, parent, loss, level and stand of each node of one attribute, codes first, then level by level."""
    codes = np.arange(len(paths))
    low, high, level = [*codes], [*codes], [0] * len(codes)
    parent, lost = list(range(len(codes))), [*(weight * table[:, 0])]
    at = codes.copy()  # the node that each code stands under so far
    for up in range(1, paths.shape[1]):
        order = np.argsort(paths[:, up], kind="stable")
        for under in np.split(order, np.flatnonzero(np.diff(paths[order, up])) + 1):
            if high[at[under[0]]] - low[at[under[0]]] + 1 == len(under):
                continue  # it covers what its child covers
            node = len(low)
            for child in np.unique(at[under]):
                parent[child] = node
            at[under] = node
            low.append(under[0])
            high.append(under[-1])
            level.append(up)
            parent.append(node)
            lost.append(weight * table[under[0], up])
    stands = np.arange(len(low))
    if paths.shape[1] > 1:
        stands[: len(codes)][table[:, 0] >= table[:, -1]] = len(low) - 1
    return tuple(np.array(column) for column in (low, high, parent, lost, level, stands))
