"""Random points for the tests of the partitioners: ties, duplicates, extremes, codes with hierarchies and nulls."""

from __future__ import annotations

import numpy as np

from kinfold.tables.points import NominalScale, OrdinalScale, Points, Scale

SHAPES = (
    "gaussian",
    "levels",
    "constant",
    "decimals",
    "line",
    "tiny",
    "huge",
    "wide",
    "copies",
    "denormal",
    "signed zeros",
)


def numbers(random: np.random.Generator, n: int, width: int, shape: str) -> np.ndarray:
    x = random.normal(size=(n, width))
    match shape:
        case "levels":
            return random.integers(0, 4, (n, width)).astype(float)
        case "constant":
            x[:, : max(1, width - 1)] = 2.5
        case "decimals":
            return x.round(1)
        case "line":
            return np.outer(random.integers(-5, 6, n), np.arange(1.0, width + 1))
        case "tiny":
            return x * 1e-160
        case "huge":
            return x * 1e149
        case "wide":
            return x * 10.0 ** random.integers(-30, 30, (n, width))
        case "copies":
            return x[random.integers(0, max(1, n // 5), n)]
        case "denormal":
            return random.integers(-9, 9, (n, width)) * 5e-324
        case "signed zeros":
            return random.choice([0.0, -0.0, 1.0], (n, width))
    return x


def hierarchy(random: np.random.Generator, codes: int, height: int) -> np.ndarray:
    """Paths whose codes stand side by side under each ancestor."""
    paths = [np.arange(codes)]
    for level in range(1, height + 1):
        above = (
            np.sort(random.integers(0, max(1, codes // 2**level), codes)) if level < height else np.zeros(codes, int)
        )
        steps = np.concatenate([[0], np.diff(above) != 0]) & np.concatenate([[0], np.diff(paths[-1]) != 0])
        paths.append(np.cumsum(steps))
    return np.column_stack(paths).astype(np.int32)


def scale(random: np.random.Generator) -> Scale:
    weight = float(random.choice([1.0, 0.3, 2.0]))
    match random.integers(0, 3):
        case 0:
            return OrdinalScale(int(random.integers(1, 9)), weight)
        case 1:
            return NominalScale.flat(int(random.integers(1, 9)), weight)
    return NominalScale(hierarchy(random, int(random.integers(2, 30)), int(random.integers(2, 5))), weight)


def mixed(random: np.random.Generator, n: int, width: int, scales: tuple[Scale, ...], shape: str) -> Points:
    x = numbers(random, n, width, shape) if width else np.empty((n, 0))
    codes = [random.integers(0, s.codes, n) for s in scales]
    return Points(x, np.column_stack([np.empty((n, 0), int), *codes]).astype(np.int32), scales)


def any_points(seed: int, most: int = 60) -> tuple[Points, int]:
    """Points of any kind, and a k that fits them."""
    random = np.random.default_rng(seed)
    k = int(random.integers(2, 7))
    n = int(random.integers(k, 3 * k + 2)) if random.random() < 0.3 else int(random.integers(k, most + 1))
    scales = tuple(scale(random) for _ in range(random.choice([0, 0, 1, 3])))
    width = int(random.integers(0 if scales else 1, 6))
    return mixed(random, n, width, scales, str(random.choice(SHAPES))), k
