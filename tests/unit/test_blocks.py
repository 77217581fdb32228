"""Blocks: cut from a table or routed from a sample, every record in one, none too large or too small."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kinfold.methods.blocks.cutting import cut, estimate_spreads, mark_lowest, number_layers
from kinfold.methods.blocks.routing import build_cut_tree, join_small_blocks
from kinfold.methods.partition.requirement import Requirement
from kinfold.models import LDiversity
from kinfold.tables.points import NominalScale, OrdinalScale, Points
from kinfold.tables.queries import hash_numbers
from point_tables import SHAPES, any_points, mixed, numbers
from reference.blocks import lowest_plain, shares_plain, spread_plain


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [5, 12, 64])
def test_every_record_is_in_one_block_of_the_right_size(shape: str, size: int) -> None:
    random = np.random.default_rng(size)
    n = int(random.integers(size + 1, 400))
    points = Points.from_array(numbers(random, n, 3, shape))
    blocks = cut(points, np.arange(n), size)
    assert sorted(np.concatenate(blocks)) == list(range(n))
    assert len(blocks) == -(-n // size)
    assert max(map(len, blocks)) <= size
    assert min(map(len, blocks)) >= size // 2  # so that none is below k where a block may have 2k
    assert all((np.diff(block) > 0).all() for block in blocks)


@pytest.mark.parametrize("n", range(11, 60))
def test_no_block_is_below_half_of_what_it_may_have(n: int) -> None:
    points = Points.from_array(np.zeros((n, 2)))
    assert min(map(len, cut(points, np.arange(n), 10))) >= 5


@pytest.mark.parametrize("seed", range(40))
def test_the_lowest_are_those_of_a_sorted_list(seed: int) -> None:
    points, _ = any_points(seed)
    rows = np.arange(len(points))
    random = np.random.default_rng(seed)
    many = int(random.integers(0, len(points) + 1))
    found = set(rows[mark_lowest(points, rows, many, 0)].tolist())
    assert len(found) == many
    value = points.numbers[:, 0] if points.numbers.shape[1] else points.codes[:, 0]
    if 0 < many < len(rows):
        edge = np.sort(value)[many - 1]
        assert {row for row in rows.tolist() if value[row] < edge} <= found
        assert all(value[row] <= edge for row in found)


def test_ties_go_by_the_other_attribute_and_then_by_row() -> None:
    random = np.random.default_rng(0)
    x = np.column_stack([random.integers(0, 2, 200), random.integers(0, 3, 200) * 0.1])
    points = Points.from_array(x.astype(float))
    for many in range(1, 200, 7):
        found = np.flatnonzero(mark_lowest(points, np.arange(200), many, 0)).tolist()
        assert found == sorted(lowest_plain(points, list(range(200)), many, [0, 1]))


@pytest.mark.parametrize("seed", range(20))
def test_the_spread_is_half_the_mean_squared_distance_of_two_records(seed: int) -> None:
    random = np.random.default_rng(seed)
    scales = (
        OrdinalScale(4, 0.7),
        NominalScale.flat(3),
        NominalScale(np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], np.int32)),
    )
    points = mixed(random, 40, 2, scales, "levels")
    points = Points(points.numbers, np.minimum(points.codes, [3, 2, 3]).astype(np.int32), scales)  # no null
    assert estimate_spreads(points, np.arange(40)) == pytest.approx(spread_plain(points, range(40)))


def test_a_cut_goes_along_what_spreads_most() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(100, 3)) * [1.0, 5.0, 2.0]
    low, high = cut(Points.from_array(x), np.arange(100), 50)
    assert x[low, 1].max() <= x[high, 1].min()


@pytest.mark.parametrize("size", [20, 45, 150])
def test_each_block_has_its_share_of_every_stratum(size: int) -> None:
    random = np.random.default_rng(size)
    x, strata = random.normal(size=(600, 2)), np.sort(random.integers(0, 10, 600)).astype(np.int32)
    x[:, 0] += strata  # a plain cut would part the strata
    blocks = cut(Points.from_array(x), np.arange(600), size, strata)
    assert sorted(np.concatenate(blocks)) == list(range(600))
    assert size // 2 <= min(map(len, blocks)) <= max(map(len, blocks)) <= size
    for block in blocks:
        below = np.cumsum(np.bincount(strata[block], minlength=10))
        whole = np.cumsum(np.bincount(strata, minlength=10)) * len(block) / 600
        assert np.abs(below - whole).max() <= 2.0


def test_shares_are_rounded_from_one_stratum_to_the_next() -> None:
    strata = np.repeat(np.arange(4), [3, 1, 7, 2]).astype(np.int32)
    points = Points.from_array(np.arange(13.0)[:, None])
    low, _ = cut(points, np.arange(13), 7, strata)
    assert np.bincount(strata[low], minlength=4).tolist() == shares_plain([3, 1, 7, 2], 6)


def test_a_listener_of_cutting_hears_of_all_and_may_stop_it() -> None:
    heard: list[tuple[int, int]] = []
    points = Points.from_array(np.random.default_rng(0).normal(size=(500, 2)))
    cut(points, np.arange(500), 20, progress=lambda done, total: heard.append((done, total)))
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert heard[-1][0] <= heard[-1][1]

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut(points, np.arange(500), 20, progress=stop)


# Layers


def test_layers_are_even_and_in_the_order_of_the_strictest_column() -> None:
    random = np.random.default_rng(0)
    wage, age = random.normal(size=4000), random.integers(0, 90, 4000)
    found = number_layers([Requirement.close(age, 0.3), Requirement.close(wage, 0.05)], 5, 1000)
    assert found is not None
    sizes = np.bincount(found)
    assert sizes.max() - sizes.min() <= 1
    order = np.argsort(found, kind="stable")
    assert len(sizes) % 10 == 0  # a class that is 0.05-close takes ten
    edges = np.searchsorted(found[order], np.arange(0, len(sizes), len(sizes) // 10))
    parts = np.split(wage[order], edges[1:])
    assert all(a.max() <= b.min() for a, b in pairwise(parts))


def test_values_without_an_order_make_layers_too() -> None:
    ill = np.array(["flu", "cold", "none"])[np.random.default_rng(0).integers(0, 3, 900)]
    found = number_layers([Requirement.of(LDiversity(2, "ill"), ill)], 5, 300)
    assert found is not None
    pure = [len({*ill[found == layer]}) for layer in range(int(found.max()) + 1)]
    assert pure.count(1) >= len(pure) - 2


def test_without_promises_there_are_no_layers() -> None:
    assert number_layers([], 5, 100) is None


# Routes: blocks from a sample, found by each record for itself, even and never too small, whatever ties.


N, BLOCKS = 8000, 8


def table(kind: str) -> Points:
    random = np.random.default_rng(1)
    if kind == "equal":
        return Points.from_array(np.ones((N, 2)))
    if kind == "ties":
        return Points.from_array(random.integers(0, 2, (N, 3)).astype(float))
    if kind == "skewed":
        return Points.from_array(np.exp(3 * random.normal(size=(N, 2))))
    if kind == "mixed":
        return mixed(random, N, 1, (OrdinalScale(4), NominalScale.flat(5)), "gaussian")
    return Points.from_array(random.normal(size=(N, 3)))


@pytest.mark.parametrize("kind", ["plain", "equal", "ties", "skewed", "mixed"])
def test_blocks_of_a_sample_are_about_even(kind: str) -> None:
    points = table(kind)
    sample = points.take(np.sort(np.random.default_rng(0).choice(N, 1000, replace=False)))
    found = build_cut_tree(sample, BLOCKS)
    counts = np.bincount(found.assign_blocks(points, np.arange(N)), minlength=BLOCKS)
    assert len(counts) == BLOCKS
    assert counts.max() < 1.6 * N / BLOCKS
    assert counts.min() > 0.5 * N / BLOCKS


def test_the_whole_table_as_its_own_sample_is_cut_as_it_would_be() -> None:
    points = table("plain")
    block = build_cut_tree(points, BLOCKS).assign_blocks(points, np.arange(N))
    for number, rows in enumerate(cut(points, np.arange(N), N // BLOCKS)):
        assert (block[rows] == number).all()


def test_who_holds_which_rows_has_no_say() -> None:
    points = table("ties")
    found = build_cut_tree(points.take(np.arange(500)), BLOCKS)
    whole = found.assign_blocks(points, np.arange(N))
    rows = np.random.default_rng(2).permutation(N)
    for part in np.array_split(rows, 7):
        assert (found.assign_blocks(points.take(part), part) == whole[part]).all()


def test_each_stratum_is_cut_at_its_own_value() -> None:
    random = np.random.default_rng(3)
    strata = random.integers(0, 4, N).astype(np.int32)
    points = Points.from_array(random.normal(size=(N, 2)) + 5.0 * strata[:, None])
    sample = np.sort(random.choice(N, 2000, replace=False))
    found = build_cut_tree(points.take(sample), BLOCKS, strata[sample])
    block = found.assign_blocks(points, np.arange(N), strata)
    shares = np.histogram2d(block, strata, bins=(BLOCKS, 4))[0] / np.bincount(block)[:, None]
    assert np.abs(shares - np.bincount(strata) / N).max() < 0.08


def test_a_sample_of_next_to_nothing_leads_somewhere() -> None:
    points = table("plain")
    for records in (1, 2, 3):
        block = build_cut_tree(points.take(np.arange(records)), BLOCKS).assign_blocks(points, np.arange(N))
        assert 0 <= block.min() <= block.max() < BLOCKS


@pytest.mark.parametrize("counts", [[3, 3, 3, 3], [0, 0, 9], [9, 0, 0], [1, 1, 1], [20], [5, 4, 5, 4, 1]])
def test_blocks_that_are_joined_are_large_enough_and_neighbours(counts: list[int]) -> None:
    block = join_small_blocks(counts, 5)
    assert (np.diff(block) >= 0).all()
    assert (np.diff(block) <= 1).all()
    held = np.bincount(block, counts)
    assert held.min() >= 5 or len(held) == 1


def test_hashes_are_even_and_differ_by_the_fork() -> None:
    one, other = (hash_numbers(np.arange(20_000), salt) * 2.0**-64 for salt in (0, 1))
    assert np.abs(np.histogram(one, 10, (0, 1))[0] - 2000).max() < 250
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
