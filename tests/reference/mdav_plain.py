"""MDAV-generic in plain numpy, and the release of paper 000: standardize, group, average, rescale the variances."""

import numpy as np


def mdav_plain(x: np.ndarray, k: int) -> np.ndarray:
    """Labels of MDAV-generic (Domingo-Ferrer & Torra 2005, Algorithm 5.1); ties go to the lowest index."""
    labels = np.full(len(x), -1)
    left = np.arange(len(x))
    label = 0

    def farthest(point: np.ndarray) -> int:
        return int(left[np.argmax(((x[left] - point) ** 2).sum(axis=1))])

    def take(around: int) -> None:
        nonlocal left, label
        order = np.argsort(((x[left] - x[around]) ** 2).sum(axis=1), kind="stable")[:k]
        labels[left[order]] = label
        left = np.delete(left, order)
        label += 1

    while len(left) >= 3 * k:
        r = farthest(x[left].mean(axis=0))
        take(r)
        take(farthest(x[r]))
    if len(left) >= 2 * k:
        take(farthest(x[left].mean(axis=0)))
    labels[left] = label
    return labels


def class_means(x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Each row replaced by the mean of its class."""
    sizes = np.bincount(labels)
    means = np.column_stack([np.bincount(labels, x[:, j]) / sizes for j in range(x.shape[1])])
    return means[labels]


def paper_release(x: np.ndarray, quasi: int, k: int) -> np.ndarray:
    """The k-anonymous file of paper 000, section 6.1: the first `quasi` columns microaggregated and rescaled."""
    y = x.copy()
    q = x[:, :quasi]
    labels = mdav_plain((q - q.mean(axis=0)) / q.std(axis=0), k)
    m = class_means(q, labels)
    y[:, :quasi] = (m - m.mean(axis=0)) * q.std(axis=0) / m.std(axis=0) + q.mean(axis=0)
    return y
