"""The tree finds what comparing everything finds, to the last bit, and k bounds the attack on real tables."""

import numpy as np
import pytest

from kinfold.errors import Cancelled
from kinfold.measures.formulas import linkage as attack
from kinfold.measures.formulas.arrays import group_rows
from kinfold.measures.formulas.linkage import LinkageRecords, find_telling_subsets, linkage, linkage_credit
from reference.mdav_plain import class_means, mdav_plain
from reference.public_data import adult, census
from uncompiled import uncompiled


def mixed(seed: int) -> tuple[LinkageRecords, LinkageRecords, list[np.ndarray]]:
    """Records with ties in numbers and codes, a release that changed a third of them, and unordered gaps."""
    rng = np.random.default_rng(seed)
    n, a, b = int(rng.integers(30, 400)), int(rng.integers(0, 4)), int(rng.integers(1, 4))
    size = int(rng.integers(2, 60))
    x, c = np.round(rng.normal(size=(n, a)), 1), rng.integers(0, size, (n, b))
    y, d = x.copy(), c.copy()
    moved = rng.random(n) < 0.3
    y[moved], d[moved] = np.round(y[moved] + 0.3, 1), rng.integers(0, size, (int(moved.sum()), b))
    return LinkageRecords(x, c), LinkageRecords(y, d), [np.round(rng.random((size, size)), 1) for _ in range(b)]


@pytest.mark.parametrize("seed", range(25))
def test_the_tree_gives_the_same_credit_as_comparing_everything(seed, monkeypatch):
    original, released, gaps = mixed(seed)
    plain = linkage_credit(original, released, gaps)
    monkeypatch.setattr(attack, "MAX_PAIRS_IN_NUMPY", 0)
    assert linkage_credit(original, released, gaps).tolist() == plain.tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_compiled_kernel_gives_the_same_as_its_python(seed, monkeypatch):
    from kinfold.kernels import box_tree, linkage, queries

    original, released, gaps = mixed(seed)
    monkeypatch.setattr(attack, "MAX_PAIRS_IN_NUMPY", 0)
    compiled = linkage_credit(original, released, gaps)
    for module in (box_tree, queries, linkage):
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, uncompiled(value))
    assert linkage_credit(original, released, gaps).tolist() == compiled.tolist()


def test_all_points_equal_are_one_and_share_everything(monkeypatch):
    monkeypatch.setattr(attack, "MAX_PAIRS_IN_NUMPY", 0)
    original, released = (LinkageRecords.from_arrays(x) for x in (np.arange(80.0).reshape(40, 2), np.zeros((40, 2))))
    assert linkage_credit(original, released).tolist() == [1 / 40] * 40


def test_dropped_records_are_not_linked_and_not_linked_to():
    x, kept = LinkageRecords.from_arrays([[0.0], [1.0], [2.0]]), np.array([True, False, True])
    assert linkage_credit(x, x, kept=kept).tolist() == [1.0, 1.0]


def test_generalized_codes_may_have_a_table_of_their_own():
    # codes 0, 1 and 2 are released as 0 (one of the first two) or 1 (the third)
    gaps = [np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])]
    original, released = (LinkageRecords.from_arrays(None, codes) for codes in ([[0], [1], [2]], [[0], [0], [1]]))
    assert linkage_credit(original, released, gaps).tolist() == [0.5, 0.5, 1.0]


def test_the_run_can_be_stopped_between_chunks(monkeypatch):
    monkeypatch.setattr(attack, "MAX_PAIRS_IN_NUMPY", 0)

    def stop(done: int, total: int) -> None:
        raise Cancelled(f"{done} of {total}")

    x = LinkageRecords.from_arrays([[1.0], [2.0]])
    with pytest.raises(Cancelled):
        linkage_credit(x, x, progress=stop)


def test_the_most_telling_subsets_have_the_most_classes():
    released = LinkageRecords.from_arrays([[1.0], [1.0], [2.0], [2.0]], [[0, 0], [1, 0], [0, 0], [1, 0]])
    assert find_telling_subsets(released, largest=2, top=3) == [(0, 1), (0,), (1,)]
    assert released.columns == 3


@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_on_census_the_attack_finds_at_most_1_in_k_on_every_subset(k):
    x = census()
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    original, released = LinkageRecords.from_arrays(x), LinkageRecords.from_arrays(class_means(x, mdav_plain(x, k)))
    assert 0 < linkage(linkage_credit(original, released)) <= 1 / k + 1e-12
    for subset in find_telling_subsets(released, largest=2, top=3):
        sides = [LinkageRecords.from_arrays(side.numbers[:, list(subset)]) for side in (original, released)]
        assert linkage(linkage_credit(*sides)) <= 1 / k + 1e-12


def test_on_census_columns_released_untouched_are_not_bounded_by_1_over_k():
    x = census()
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    y = np.hstack([class_means(x[:, :6], mdav_plain(x[:, :6], 5)), x[:, 6:]])
    assert linkage(linkage_credit(LinkageRecords.from_arrays(x), LinkageRecords.from_arrays(y))) > 0.9


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("k", [2, 5, 25])
def test_on_adult_the_attack_finds_at_most_1_in_k(k):
    names, rows = adult()
    columns = [names.index(name) for name in ("sex", "race", "marital-status", "workclass")]
    codes = np.column_stack([np.unique([row[c] for row in rows], return_inverse=True)[1] for c in columns])
    age = np.array([float(row[names.index("age")]) for row in rows])
    released = np.column_stack([codes, age // 10]).astype(np.int64)
    place, _ = group_rows(released)
    kept = np.bincount(place)[place] >= k  # small classes are suppressed
    ages, decades = np.arange(100), np.arange(10) * 10 + 4.5
    equal = [1.0 - np.eye(int(codes[:, j].max()) + 1) for j in range(codes.shape[1])]
    gaps = [*equal, ((ages[:, None] - decades) / 100) ** 2]
    original = LinkageRecords.from_arrays(None, np.column_stack([codes, age]).astype(np.int64))
    found = linkage(linkage_credit(original, LinkageRecords.from_arrays(None, released), gaps, kept))
    assert 0 < found <= 1 / k + 1e-12
