"""Local suppression: the fewest cells of small tables, and tables of any size that keep what was asked."""

import time
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kinfold.errors import Unreachable
from kinfold.hierarchy import TOP, Hierarchy
from kinfold.methods.generalize import local_suppression as module
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.local_suppression import Distinct, Search, counted, local_suppression
from kinfold.methods.generalize.mingen_cell import released_by
from kinfold.methods.generalize.patterns import cheapest
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.rows.tally import of_labels
from reference.suppressed_cells import fewest
from uncompiled import PLAIN

seeds = st.integers(0, 10**6)
NAMES = [*"abcdefgh", *(f"q{a}" for a in range(8, 70))]
BRIEF = Search((20, None)) if PLAIN else Search()
MODELS = {
    "k": [KAnonymity(3)],
    "l": [KAnonymity(3), LDiversity(2, "disease")],
    "t": [KAnonymity(3), TCloseness(0.4, "disease", "equal")],
}


def table(seed: int, rows: int, columns: int = 3, values: int = 3, nulls: float = 0.1) -> Domain:
    """Make records with some values missing, and a disease for each."""
    chance = np.random.default_rng(seed)
    codes = chance.integers(0, values, (rows, columns))
    codes[chance.random(codes.shape) < nulls] = values
    flat = Hierarchy.of([(str(i), TOP) for i in range(values)])
    held = {"disease": np.array([*"xyz"], object)[chance.integers(0, 3, rows)]}
    return Domain(tuple(NAMES[:columns]), (flat,) * columns, codes.astype(np.int32), of_labels(np.arange(rows), held))


def rows_of(domain: Domain, blank: np.ndarray | None = None) -> list[tuple[int | None, ...]]:
    empty = domain.codes == [len(hierarchy) for hierarchy in domain.hierarchies]
    empty = empty if blank is None else empty | blank
    return [
        tuple(None if gone else int(code) for code, gone in zip(*row, strict=True))
        for row in zip(domain.codes, empty, strict=True)
    ]


def written(found: module.Suppressed) -> list[tuple[int | None, ...]]:
    return rows_of(found.generalization.domain, found.generalization.levels > 0)


@pytest.mark.compiled
@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@given(seed=seeds, rows=st.integers(20, 200))
@settings(max_examples=10, deadline=None)
def test_tuples_that_stand_for_several_records_keep_the_promises_of_these(models, seed, rows):
    records = table(seed, rows)
    tuples = Distinct.of(records)
    try:
        found = local_suppression(tuples.domain, models, search=BRIEF)
    except Unreachable:
        assume(False)
        raise
    each = released_by(records, found.labels[tuples.tuple])  # the same classes, record by record
    assert each.holds(models)
    missing = records.codes == [len(hierarchy) for hierarchy in records.hierarchies]
    assert found.cells.tolist() == ((each.levels > 0) & ~missing).sum(axis=0).tolist()
    apart = local_suppression(records, models, search=BRIEF)
    assert found.cells.sum() <= 2 * apart.cells.sum() + rows // 4


@given(seeds, st.integers(4, 7), st.integers(2, 3), st.sampled_from([(1.0, 1.0, 1.0), (1.0, 2.5, 0.5)]))
@settings(max_examples=60, deadline=None)
def test_a_few_records_lose_as_few_cells_as_by_exhaustion(seed, rows, k, weights):
    domain = table(seed, rows, values=2, nulls=0.2)
    found = local_suppression(domain, [KAnonymity(k)], dict(zip(NAMES, weights, strict=False)))
    assert found.exact
    assert found.cells @ weights == pytest.approx(fewest(rows_of(domain), k, weights))
    assert min(Counter(written(found)).values()) >= k


def test_the_search_finds_the_fewest_cells_of_most_small_tables():
    """It was the optimum for 177 of 200 such tables, and 1.6 % above it in all."""
    best = total = least = 0
    for seed in range(4 if PLAIN else 40):
        domain = table(seed, 8 + seed % 7, columns=2 + seed % 3, values=2 + seed % 2, nulls=0.1 * (seed % 2))
        exact = local_suppression(domain, MODELS["k"]).cells.sum()
        searched = Distinct.of(domain).searched(counted(domain), MODELS["k"], BRIEF).cells.sum()
        assert searched >= exact
        best, total, least = best + (searched == exact), total + searched, least + exact
    assert PLAIN or best >= 30
    assert total <= (2 if PLAIN else 1.05) * least


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@given(seed=seeds, rows=st.integers(17, 80), values=st.integers(2, 6))
@settings(max_examples=12, deadline=None)
def test_promises_hold_on_the_tuples_as_written(models, seed, rows, values):
    domain = table(seed, rows, columns=4, values=values)
    found = local_suppression(domain, models, search=BRIEF)
    numbers = np.unique([hash(row) for row in written(found)], return_inverse=True)[1]
    tally = domain.tally.merge(numbers.astype(np.int64), {})
    assert not any(model.failing(tally).any() for model in models)
    again = local_suppression(domain, models, search=BRIEF)
    assert again.labels.tolist() == found.labels.tolist()


@given(seed=seeds, rows=st.integers(30, 120))
@settings(max_examples=10, deadline=None)
def test_tuples_that_many_share_stay_whole_and_lend_records_at_most(seed, rows):
    domain = table(seed, rows, columns=3, values=2, nulls=0.05)
    found = local_suppression(domain, [KAnonymity(2)], search=BRIEF)
    counts = Counter(rows_of(domain))
    kept = Counter(row for row, now in zip(rows_of(domain), written(found), strict=True) if row == now)
    assert all(kept[row] >= 2 for row, many in counts.items() if many >= 8)


def test_a_column_that_counts_for_more_is_kept_rather():
    domain = table(3, 200, columns=4, values=5, nulls=0.0)
    plain, weighted = (local_suppression(domain, MODELS["k"], {"a": w}, search=BRIEF).cells for w in (1.0, 5.0))
    assert weighted[0] < plain[0] / 2
    assert weighted.sum() >= plain.sum()


@pytest.mark.parametrize("rows", [14, 300])
@pytest.mark.parametrize("limit", [0.0, 0.05, 0.2])
def test_limits_hold_or_the_best_reached_is_told(rows, limit):
    domain = table(5, rows, columns=3, values=2 if rows < 20 else 4, nulls=0.0)
    found = local_suppression(domain, MODELS["k"], limits={"b": limit}, search=BRIEF)
    assert found.shares[1] <= limit
    assert min(Counter(written(found)).values()) >= 3
    with pytest.raises(Unreachable, match=r"'a' 0.0% may go, and \d+\.\d% is the best found"):
        local_suppression(domain, MODELS["k"], limits={"a": 0.0, "b": 0.0, "c": 0.0})


def test_a_limit_is_missed_by_no_more_cells_than_are_rare():
    """A value that fewer than k records hold has to go, and no other."""
    domain = table(7, 400, columns=3, values=3, nulls=0.0)
    codes = domain.codes.copy()
    codes[:2, 0] = 2
    codes[2:, 0] %= 2
    rare = Domain(domain.names, domain.hierarchies, codes, domain.tally)
    with pytest.raises(Unreachable, match=r"'a' 0.0% may go, and 0.8% is the best found"):
        local_suppression(rare, MODELS["k"], limits={"a": 0.0})
    assert local_suppression(rare, MODELS["k"], limits={"a": 0.0075}, search=BRIEF).cells[0] == 3


@given(st.lists(st.floats(0.1, 9.0), min_size=1, max_size=6))
def test_patterns_come_by_their_cost_and_each_once(weights):
    found = [*cheapest(np.array(weights))]
    costs = [cost for cost, _ in found]
    assert costs == pytest.approx([sum(weights[a] for a in columns) for _, columns in found])
    assert np.diff(costs).min(initial=0.0) >= -1e-9
    assert len({columns for _, columns in found}) == len(found) == 2 ** len(weights)


def test_no_records_or_fewer_than_k_cannot_be_released():
    for rows in (0, 2):
        with pytest.raises(Unreachable):
            local_suppression(table(1, rows), MODELS["k"])


@pytest.mark.compiled
@pytest.mark.parametrize(("columns", "models", "cells"), [(20, "k", 3015), (20, "l", 3230), (70, "k", 11859)])
def test_wide_tables_take_seconds_and_lose_no_more(columns, models, cells):
    wide = table(0, 200, columns, 6)
    since = time.process_time()
    found = local_suppression(wide, MODELS[models])
    assert time.process_time() - since < 6  # it took 16 to 75 when every pattern was looked at in Python
    assert found.cells.sum() <= cells
    assert found.generalization.holds(MODELS[models])
