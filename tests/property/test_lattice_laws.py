"""The lattice against evaluation of all nodes, on small random tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.errors import Cancelled, Unreachable
from kinfold.hierarchy import by_rows
from kinfold.methods.generalize import lattice_cuts
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice, lattice
from kinfold.methods.generalize.lattice_cuts import CutSearch
from kinfold.methods.generalize.loss import OBJECTIVES
from kinfold.methods.generalize.mingen import mingen
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.rows.tally import Tally
from reference import full_domain

seeds = st.integers(0, 10**6)
MODELS = {
    "k": [KAnonymity(3)],
    "l": [KAnonymity(2), LDiversity(2, "disease")],
    "entropy": [KAnonymity(2), LDiversity(1.8, "disease", "entropy")],
    "t": [KAnonymity(2), TCloseness(0.3, "disease", "equal")],
}


@given(seeds, st.integers(2, 4), st.integers(1, 2), st.sampled_from([0, 1, 3, 0.5, 1.0]))
def test_every_node_has_the_outliers_and_the_loss_of_its_twin(seed, k, l, suppression):
    table = full_domain.random_domain(seed)
    found = Lattice(table, [KAnonymity(k), LDiversity(l, "disease")], suppression)
    for node in found:
        outliers, lost = full_domain.node(table, node.levels, k, l)
        assert node.outliers == outliers
        if node.holds:
            assert node.loss == pytest.approx(lost, abs=1e-12)


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@given(seed=seeds, suppression=st.sampled_from([0, 2, 0.3, 1.0]), objective=st.sampled_from(OBJECTIVES))
@settings(max_examples=60)
def test_the_optimum_is_the_best_of_all_nodes_and_ties_go_by_prec_then_order(models, seed, suppression, objective):
    table = full_domain.random_domain(seed)
    every = [node for node in Lattice(table, models, suppression, objective) if node.holds]
    search = Lattice(table, models, suppression, objective)
    if not every:
        with pytest.raises(Unreachable):
            search.search()
        return
    best = min(every, key=lambda node: (round(node.loss, 10), -round(node.prec, 10), node.levels))
    assert search.search().levels == best.levels
    assert search.proved
    released = search.generalization()
    assert released.holds(models)
    assert released.records_suppressed == best.outliers


@given(seeds, st.integers(2, 4), st.integers(1, 2), st.sampled_from([0, 1, 3, 5, 0.5, 1.0]))
@settings(max_examples=80)
def test_records_starred_to_fill_their_class_are_within_the_threshold(seed, k, l, suppression):
    table = full_domain.random_domain(seed)
    models = [KAnonymity(k), LDiversity(l, "disease")]
    allowed = suppression if isinstance(suppression, int) else int(suppression * table.records)
    twins = {levels: full_domain.node(table, levels, k, l, starred=True) for levels in full_domain.all_levels(table)}
    feasible = [lost for gone, lost in twins.values() if gone <= allowed and gone < table.records]
    search = Lattice(table, models, suppression, starred=True)
    if not feasible:
        with pytest.raises(Unreachable):
            search.search()
        return
    best = search.search()
    assert search.proved
    assert best.loss == pytest.approx(min(feasible), abs=1e-12)
    assert search.generalization().records_suppressed == best.outliers == twins[best.levels][0]


@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@given(seed=seeds, suppression=st.sampled_from([0, 2, 0.3]))
@settings(max_examples=40)
def test_minimal_generalizations_are_those_below_which_nothing_holds(models, seed, suppression):
    table = full_domain.random_domain(seed)
    holds = {node.levels for node in Lattice(table, models, suppression) if node.holds}
    minimal = [
        levels
        for levels in sorted(holds)
        if not any(other != levels and np.less_equal(other, levels).all() for other in holds)
    ]
    assert [node.levels for node in Lattice(table, models, suppression).minimal()] == minimal


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("suppression", [0, 1, 1.0])
@pytest.mark.parametrize(
    ("seed", "rows", "k"), [(78845, 12, 2), (0, 1, 1), (0, 1, 2), (1, 2, 2), (2, 3, 5), (3, 12, 12)]
)
def test_the_search_with_cuts_takes_degenerate_tables(seed, rows, k, suppression, objective):
    tables = [full_domain.random_domain(seed, rows=rows), full_domain.random_domain(seed, rows=rows, columns=1)]
    flat = by_rows([["*"]])  # a hierarchy that is its top alone: a lattice of one node
    tables.append(Domain(("q",), (flat,), np.zeros((rows, 1), np.int32), Tally({}, np.ones(rows, np.int64))))
    for table in tables:
        models = [KAnonymity(k)]
        every = [node.loss for node in Lattice(table, models, suppression, objective) if node.holds]
        large = Lattice(table, models, suppression, objective)
        large._search = CutSearch(large.nodes)
        if every:
            assert large.search().loss == pytest.approx(min(every), abs=1e-9)
            assert large.proved
        else:
            with pytest.raises(Unreachable):
                large.search()


@pytest.mark.slow
@given(seed=seeds, suppression=st.sampled_from([0, 2, 1.0]), objective=st.sampled_from(OBJECTIVES))
@settings(max_examples=40, deadline=None)
def test_the_search_with_cuts_bounds_the_optimum_and_finds_it(seed, suppression, objective):
    table = full_domain.random_domain(seed)
    models = MODELS["l"]
    every = [node.loss for node in Lattice(table, models, suppression, objective) if node.holds]
    large = Lattice(table, models, suppression, objective)
    large._search = CutSearch(large.nodes)
    if not every:
        with pytest.raises(Unreachable):
            large.search()
        return
    found = large.search()
    assert large.bound <= min(every) + 1e-9
    assert found.loss == pytest.approx(min(every), abs=lattice_cuts.PROVED)


@pytest.mark.slow
@given(seeds, st.integers(2, 4))
def test_mingen_finds_every_optimum_that_brute_force_finds(seed, k):
    table = full_domain.random_domain(seed)
    holds = [levels for levels in full_domain.all_levels(table) if full_domain.node(table, levels, k)[0] == 0]
    best = max(full_domain.prec(table, levels) for levels in holds)
    expected = [levels for levels in holds if full_domain.prec(table, levels) > best - 1e-9]
    assert [node.levels for node in mingen(table, [KAnonymity(k)])] == expected


def test_a_search_that_was_cancelled_keeps_its_best_and_a_bound():
    table = full_domain.random_domain(3, rows=60, columns=4)
    search = Lattice(table, [KAnonymity(3)], 0.2)

    def stop(done, total):
        if search.best is not None:
            raise Cancelled("stopped")

    with pytest.raises(Cancelled):
        search.search(progress=stop)
    assert search.best is not None
    optimum = lattice(table, [KAnonymity(3)], 0.2).best
    assert search.bound <= optimum.loss <= search.best.loss
    assert search.search().levels == optimum.levels


@given(seeds, st.sampled_from([0, 2, 0.3]))
@settings(max_examples=20)
def test_a_search_tells_how_many_nodes_are_decided(seed, suppression):
    search, heard = Lattice(full_domain.random_domain(seed, rows=60, columns=4), [KAnonymity(3)], suppression), []
    search.search(progress=lambda done, total: heard.append((done, total)))
    assert heard == sorted(heard)
    assert {total for _, total in heard} <= {search.size}
    assert all(done < search.size for done, _ in heard)
    assert len(heard) < 3 or heard[-1][0] > 0
