from itertools import combinations, product

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kinfold.methods.partition.approximate import (
    approximate,
    dependency,
    key_attributes,
    project,
    spanning_tree,
)
from kinfold.methods.partition.mdav import mdav_compiled
from kinfold.progress import no_progress
from kinfold.tables.points import Points
from mixed_tables import tables
from reference import approximate as reference

SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=150, deadline=None)
@given(points=tables(), k=st.integers(2, 6))
def test_approximate_gives_the_labels_of_its_twin_on_the_key_attributes(points, k):
    assume(len(points) >= k)
    keys = project(points, dependency(points).keys)
    assert approximate(points, k).tolist() == reference.pairs_of_groups(keys, k)


def test_an_attribute_with_little_entropy_is_not_near_to_every_other_by_the_normalized_distance():
    rng = np.random.default_rng(5)
    common = rng.integers(0, 8, 400)
    x = np.column_stack(
        [common, (common + rng.integers(0, 5, 400)) % 8, rng.integers(0, 8, 400), rng.random(400) < 0.05]
    )
    assert dependency(x.astype(float)).keys[0] == 3  # says nothing about the others, and is the middle of the tree
    assert dependency(x.astype(float), normalized=True).edges[0] == (0, 1)
    by_ours = project(Points.from_array(x.astype(float)), dependency(x.astype(float), normalized=True).keys)
    assert approximate(x.astype(float), 5, normalized=True).tolist() == reference.pairs_of_groups(by_ours, 5)


@settings(max_examples=300, deadline=None)
@given(points=tables(max_records=200), k=st.integers(2, 9))
def test_the_tree_gives_the_labels_of_the_plain_scan(points, k):
    assume(len(points) >= k)
    formed = mdav_compiled(points, k, no_progress, in_pairs=True)
    assert formed.tolist() == reference.form_groups(points, k).tolist()


@settings(max_examples=100, deadline=None)
@given(points=tables(max_records=80), k=st.integers(2, 6))
def test_every_group_has_at_least_k_records_and_at_most_one_has_more(points, k):
    assume(len(points) >= k)
    sizes = np.bincount(approximate(points, k))
    assert sizes.min() >= k
    assert np.count_nonzero(sizes > k) <= 1
    assert sizes.max() <= 2 * k - 1


@settings(max_examples=80, deadline=None)
@given(seed=SEEDS, columns=st.integers(2, 6), normalized=st.booleans())
def test_the_matrix_is_a_metric_whatever_the_columns_and_symbols_are_called(seed, columns, normalized):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, (40, columns))
    matrix = dependency(x, normalized=normalized).matrix
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 0).all()
    for one, other, third in product(range(columns), repeat=3):
        assert matrix[one, third] <= matrix[one, other] + matrix[other, third] + 1e-12
    order = rng.permutation(columns)
    renamed = rng.permutation(4)[x]
    assert (dependency(renamed[:, order], normalized=normalized).matrix == matrix[np.ix_(order, order)]).all()
    assert not normalized or matrix.max() <= 1 + 1e-12


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, columns=st.integers(2, 5))
def test_the_tree_is_the_lightest_of_all_spanning_trees(seed, columns):
    weights = np.random.default_rng(seed).integers(0, 6, (columns, columns)).astype(float)
    weights = np.triu(weights, 1) + np.triu(weights, 1).T

    def spans(edges):
        reached = {0}
        for _ in edges:
            reached |= {end for edge in edges if reached & set(edge) for end in edge}
        return len(reached) == columns

    pairs = list(combinations(range(columns), 2))
    lightest = min(sum(weights[edge] for edge in tree) for tree in combinations(pairs, columns - 1) if spans(tree))
    found = spanning_tree(weights)
    assert spans(found)
    assert sum(weights[edge] for edge in found) == lightest


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS, columns=st.integers(2, 14))
def test_at_most_half_of_the_attributes_are_keys(seed, columns):
    """Theorem 2 as read: at most max(2, ceil(m/2)), over every tree."""
    rng = np.random.default_rng(seed)
    degrees = np.zeros(columns, int)
    for node in range(1, columns):
        parent = rng.integers(0, node) if rng.random() < 0.5 else node - 1  # bushes and paths
        degrees[[node, parent]] += 1
    keys = key_attributes(degrees.tolist())
    assert sum(degrees[list(keys)]) >= columns > sum(degrees[list(keys[:-1])])
    assert 2 <= len(keys) <= max(2, -(-columns // 2))


def test_a_larger_table_gets_the_groups_of_the_plain_scan():
    rng = np.random.default_rng(6)
    x = np.column_stack([rng.normal(size=3_400), rng.integers(0, 5, 3_400), rng.integers(0, 2, 3_400)])
    points = Points.from_array(x)
    formed = reference.form_groups(project(points, dependency(points).keys), 7)
    labels = approximate(points, 7)
    assert (labels[formed >= 0] == formed[formed >= 0]).all()
    assert (labels >= 0).all()
