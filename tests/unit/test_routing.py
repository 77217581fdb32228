"""Routes: blocks from a sample, found by each record for itself, even and never too small, whatever ties."""

from __future__ import annotations

import numpy as np
import pytest

from kinfold.methods.blocks.cutting import cut
from kinfold.methods.blocks.routing import joined, routes
from kinfold.rows.drawing import hashed
from kinfold.rows.points import Nested, Ordered, Points
from point_tables import mixed

N, BLOCKS = 8000, 8


def table(kind: str) -> Points:
    random = np.random.default_rng(1)
    if kind == "equal":
        return Points.of(np.ones((N, 2)))
    if kind == "ties":
        return Points.of(random.integers(0, 2, (N, 3)).astype(float))
    if kind == "skewed":
        return Points.of(np.exp(3 * random.normal(size=(N, 2))))
    if kind == "mixed":
        return mixed(random, N, 1, (Ordered(4), Nested.flat(5)), "gaussian")
    return Points.of(random.normal(size=(N, 3)))


@pytest.mark.parametrize("kind", ["plain", "equal", "ties", "skewed", "mixed"])
def test_blocks_of_a_sample_are_about_even(kind: str) -> None:
    points = table(kind)
    sample = points.take(np.sort(np.random.default_rng(0).choice(N, 1000, replace=False)))
    found = routes(sample, BLOCKS)
    counts = np.bincount(found.block_of(points, np.arange(N)), minlength=BLOCKS)
    assert len(counts) == BLOCKS
    assert counts.max() < 1.6 * N / BLOCKS
    assert counts.min() > 0.5 * N / BLOCKS


def test_the_whole_table_as_its_own_sample_is_cut_as_it_would_be() -> None:
    points = table("plain")
    block = routes(points, BLOCKS).block_of(points, np.arange(N))
    for number, rows in enumerate(cut(points, np.arange(N), N // BLOCKS)):
        assert (block[rows] == number).all()


def test_who_holds_which_rows_has_no_say() -> None:
    points = table("ties")
    found = routes(points.take(np.arange(500)), BLOCKS)
    whole = found.block_of(points, np.arange(N))
    rows = np.random.default_rng(2).permutation(N)
    for part in np.array_split(rows, 7):
        assert (found.block_of(points.take(part), part) == whole[part]).all()


def test_each_stratum_is_cut_at_its_own_value() -> None:
    random = np.random.default_rng(3)
    strata = random.integers(0, 4, N).astype(np.int32)
    points = Points.of(random.normal(size=(N, 2)) + 5.0 * strata[:, None])
    sample = np.sort(random.choice(N, 2000, replace=False))
    found = routes(points.take(sample), BLOCKS, strata[sample])
    block = found.block_of(points, np.arange(N), strata)
    shares = np.histogram2d(block, strata, bins=(BLOCKS, 4))[0] / np.bincount(block)[:, None]
    assert np.abs(shares - np.bincount(strata) / N).max() < 0.08


def test_a_sample_of_next_to_nothing_leads_somewhere() -> None:
    points = table("plain")
    for records in (1, 2, 3):
        block = routes(points.take(np.arange(records)), BLOCKS).block_of(points, np.arange(N))
        assert 0 <= block.min() <= block.max() < BLOCKS


@pytest.mark.parametrize("counts", [[3, 3, 3, 3], [0, 0, 9], [9, 0, 0], [1, 1, 1], [20], [5, 4, 5, 4, 1]])
def test_blocks_that_are_joined_are_large_enough_and_neighbours(counts: list[int]) -> None:
    block = joined(counts, 5)
    assert (np.diff(block) >= 0).all()
    assert (np.diff(block) <= 1).all()
    held = np.bincount(block, counts)
    assert held.min() >= 5 or len(held) == 1


def test_hashes_are_even_and_differ_by_the_fork() -> None:
    one, other = (hashed(np.arange(20_000), salt) * 2.0**-64 for salt in (0, 1))
    assert np.abs(np.histogram(one, 10, (0, 1))[0] - 2000).max() < 250
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
