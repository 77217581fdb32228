"""The three algorithms of paper 004 the slow way: lists, sorting, fractions. What the fast ways are held against."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from kinfold.tables.points import Points
from reference.mdav import centre, distance


def emd(column: list, members: list[int]) -> Fraction:
    """Earth mover's distance of some records to all, over the distinct values in order."""
    values = sorted(set(column))
    if len(values) < 2:
        return Fraction(0)
    inside = [column[i] for i in members]
    work = Fraction(0)
    for value in values:
        share = Fraction(sum(v <= value for v in inside), len(inside))
        work += abs(share - Fraction(sum(v <= value for v in column), len(column)))
    return work / (len(values) - 1)


class Pool:
    """The records that are left."""

    def __init__(self, points: Points) -> None:
        self.points, self.left = points, list(range(len(points)))

    def at(self, row: int) -> tuple[list[float], list[int]]:
        return self.points.numbers[row].tolist(), self.points.codes[row].tolist()

    def farthest(self, place: tuple[list[float], list[int]]) -> int:
        return max(self.left, key=lambda row: (distance(self.points, place, row), -row))

    def by_distance(self, seed: int, rows: list[int]) -> list[int]:
        return sorted(rows, key=lambda row: (distance(self.points, self.at(seed), row), row))


def numbered(points: Points, clusters: list[list[int]]) -> np.ndarray:
    labels = np.full(len(points), -1, np.int32)
    for label, rows in enumerate(clusters):
        labels[rows] = label
    return labels


def t_first(x: object, k: int, column: list, t: float) -> np.ndarray:
    points = Points.from_array(x)
    n = len(points)
    k = max(k, math.ceil(Fraction(n) / (2 * (n - 1) * Fraction(str(t)) + 1)))
    k += (n % k) // (n // k)
    order = sorted(range(n), key=lambda row: (column[row], row))
    sizes = [n // k] * k
    for extra in range(n % k):
        sizes[k // 2 if k % 2 or extra >= n % k // 2 else k // 2 - 1] += 1
    strata = [[order.pop(0) for _ in range(size)] for size in sizes]
    pool, clusters, seed = Pool(points), [], -1
    for number in range(n // k):
        place = centre(points, pool.left) if number % 2 == 0 else pool.at(seed)
        seed = pool.farthest(place)
        cluster: list[int] = []
        for i, stratum in enumerate(strata):
            takes = 2 if len(stratum) > n // k - number and len(cluster) == i else 1
            cluster += pool.by_distance(seed, stratum)[:takes]
            strata[i] = [row for row in stratum if row not in cluster]
        pool.left = [row for row in pool.left if row not in cluster]
        clusters.append(cluster)
    return numbered(points, clusters)


def k_first(x: object, k: int, column: list, t: float) -> np.ndarray:
    """Algorithm 2 before the merge."""
    points = Points.from_array(x)
    pool, clusters, seed = Pool(points), [], -1
    while len(pool.left) >= 2 * k:
        place = centre(points, pool.left) if len(clusters) % 2 == 0 else pool.at(seed)
        seed = pool.farthest(place)
        near = pool.by_distance(seed, pool.left)
        cluster, near = near[:k], near[k:]
        while emd(column, cluster) > Fraction(str(t)) and near:
            y = near.pop(0)
            swaps = [(emd(column, [*(set(cluster) - {out}), y]), out) for out in sorted(cluster)]
            best, out = min(swaps)
            if best < emd(column, cluster):
                cluster = [*(set(cluster) - {out}), y]
        clusters.append(cluster)
        pool.left = [row for row in pool.left if row not in cluster]
    clusters.append(pool.left)
    return numbered(points, clusters)


def k_first_in_whole_numbers(points: Points, k: int, codes: np.ndarray, t: float) -> np.ndarray:
    """The same by numpy, one record after the other, for some hundred records; codes without gaps."""
    left, total = np.arange(len(points)), np.bincount(codes).cumsum()
    labels, label, seed = np.full(len(points), -1), 0, -1

    def work(members: list[int]) -> int:
        inside = np.bincount(codes[members], minlength=len(total)).cumsum()
        return int(np.abs(inside * len(points) - k * total).sum())

    def distances(place: tuple[list[float], list[int]]) -> np.ndarray:
        return np.array([distance(points, place, row) for row in left.tolist()])

    def at(row: int) -> tuple[list[float], list[int]]:
        return points.numbers[row].tolist(), points.codes[row].tolist()

    while len(left) >= 2 * k:
        place = centre(points, left.tolist()) if label % 2 == 0 else at(seed)
        seed = int(left[distances(place).argmax()])
        near = left[np.argsort(distances(at(seed)), kind="stable")].tolist()
        members, now = sorted(near[:k]), work(near[:k])
        for row in near[k:]:
            if now / (k * len(points) * max(1, len(total) - 1)) <= t:
                break
            after = [work([*members[:i], row, *members[i + 1 :]]) for i in range(k)]
            if min(after) < now:
                now = min(after)
                members[after.index(now)] = row
                members.sort()
        labels[members] = label
        label += 1
        left = left[labels[left] < 0]
    labels[left] = label
    return labels


def merged(x: object, labels: np.ndarray, column: list, t: float) -> np.ndarray:
    """Algorithm 1 from a partition on."""
    points = Points.from_array(x)
    clusters = {g: np.flatnonzero(labels == g).tolist() for g in range(labels.max() + 1)}
    while True:
        worst = max(clusters, key=lambda g: (emd(column, clusters[g]), -g))
        if emd(column, clusters[worst]) <= Fraction(str(t)):
            break
        here = _mean(points, clusters[worst])
        others = [g for g in clusters if g != worst]
        nearest = min(others, key=lambda g: (float(((_mean(points, clusters[g]) - here) ** 2).sum()), g))
        low, high = sorted((worst, nearest))
        clusters[low] += clusters.pop(high)
    return numbered(points, [clusters[g] for g in sorted(clusters)])


def _mean(points: Points, rows: list[int]) -> np.ndarray:
    return points.numbers[rows].mean(axis=0)
