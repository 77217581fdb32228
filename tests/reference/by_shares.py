"""Clusters by shares, step by step with lists: the slow plain twin of `partition.by_shares`."""

from __future__ import annotations

from math import fsum

import numpy as np


def by_shares(x: np.ndarray, kind: list[int], size: int) -> list[int]:
    n, kinds = len(x), max(kind) + 1
    clusters = n // size
    always = [kind.count(v) // clusters for v in range(kinds)]
    over = [kind.count(v) % clusters for v in range(kinds)]
    labels, seed = [-1] * n, -1
    for label in range(clusters):
        left = [i for i in range(n) if labels[i] < 0]
        middle = np.array([float(fsum(x[left, j]) / len(left)) for j in range(x.shape[1])])
        place = middle if label % 2 == 0 else x[seed]
        seed = min(left, key=lambda i: (-gap(x[i], place), i))
        near = sorted(left, key=lambda i: (gap(x[i], x[seed]), i))
        of_kind = [[i for i in near if kind[i] == v] for v in range(kinds)]
        taken = [i for v in range(kinds) for i in of_kind[v][: always[v]]]
        to_come = clusters - label
        ahead = [(over[v] < to_come, gap(x[of_kind[v][always[v]]], x[seed]), v) for v in range(kinds) if over[v]]
        for _, _, v in sorted(ahead)[: sum(over) // to_come]:
            taken.append(of_kind[v][always[v]])
            over[v] -= 1
        for i in taken:
            labels[i] = label
    return labels


def gap(one: np.ndarray, other: np.ndarray) -> float:
    total = 0.0
    for a, b in zip(one, other, strict=True):
        total += (a - b) * (a - b)
    return total
