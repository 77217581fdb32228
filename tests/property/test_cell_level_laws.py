"""Cell level: exact on small tables, truthful and private on larger ones."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kinfold.errors import Unreachable
from kinfold.measures.grouping import group_rows
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.lattice import lattice
from kinfold.methods.generalize.loss import CellLoss
from kinfold.methods.generalize.mingen_cell import bound, mingen_cell, released_by
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.reproduction.paper_002 import figure_7
from reference import cell_level, full_domain

seeds = st.integers(0, 10**6)
MODELS = {
    "k": [KAnonymity(3)],
    "l": [KAnonymity(3), LDiversity(2, "disease")],
    "t": [KAnonymity(3), TCloseness(0.4, "disease", "equal")],
}


@given(seeds, st.integers(2, 3), st.integers(1, 2), st.integers(3, 6))
@settings(max_examples=200, deadline=None)
def test_small_tables_are_divided_as_well_as_by_exhaustion(seed, k, l, rows):
    table = full_domain.random_domain(seed, rows=rows)
    best = cell_level.best(table, k, l)
    models = [KAnonymity(k), LDiversity(l, "disease")]
    if np.isinf(best):
        with pytest.raises(Unreachable):
            mingen_cell(table, models)
        return
    found = mingen_cell(table, models)
    assert found.loss == pytest.approx(best, abs=1e-12)
    assert found.generalization.holds(models)


def test_figure_7_has_a_better_table_than_the_printed_gt():
    table = figure_7()
    printed = np.zeros((12, 4), int)
    printed[:, 1] = 1
    printed[[2, 3, 7]] = [1, 1, 0, 1]
    printed[[6, 10, 11], 1] = 2
    gt = Generalization(table, printed, np.zeros(12, bool))
    assert gt.holds([KAnonymity(2)])
    found = mingen_cell(table, [KAnonymity(2)], "prec")
    assert found.exact
    assert found.generalization.holds([KAnonymity(2)])
    assert found.generalization.prec() > gt.prec() + 0.003


@pytest.mark.compiled
@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@given(seed=seeds, rows=st.integers(17, 60))
@settings(max_examples=15, deadline=None)
def test_larger_tables_keep_their_promises_and_every_label_is_true(models, seed, rows):
    table = full_domain.random_domain(seed, rows=rows)
    try:
        found = mingen_cell(table, models, steps=200)
    except Unreachable:
        assert not Generalization.full(table, table.heights).holds(models)  # not even with all in one class
        assume(False)
        raise
    assert found.generalization.holds(models)
    assert bound(table, models) - 1e-9 <= found.loss <= 1
    for a, name in enumerate(table.names):
        for row, label in enumerate(found.generalization.columns()[name]):
            level = found.generalization.levels[row, a]
            expected = full_domain.label(table, row, a, level)
            assert label == (expected[1] if isinstance(expected, tuple) else expected)


@pytest.mark.compiled
@given(seeds)
@settings(max_examples=10, deadline=None)
def test_the_same_table_gives_the_same_labels_and_more_steps_do_not_hurt_the_promise(seed):
    table = full_domain.random_domain(seed, rows=40)
    one, again = (mingen_cell(table, MODELS["k"], steps=300) for _ in range(2))
    assert one.labels.tolist() == again.labels.tolist()
    assert one.loss <= mingen_cell(table, MODELS["k"], steps=0).loss + 1e-9


def test_cell_level_loses_less_than_the_best_full_domain_node():
    table = full_domain.random_domain(5, rows=80)
    assert mingen_cell(table, MODELS["k"]).loss < lattice(table, MODELS["k"]).best.loss


@pytest.mark.compiled
@pytest.mark.parametrize("models", MODELS.values(), ids=MODELS)
@given(seed=seeds, rows=st.integers(20, 80))
@settings(max_examples=10, deadline=None)
def test_tuples_that_stand_for_several_records_keep_the_promises_of_these(models, seed, rows):
    records = full_domain.random_domain(seed, rows=rows)
    into, first = group_rows(records.codes)
    codes = np.ascontiguousarray(records.codes[first])
    tuples = Domain(records.names, records.hierarchies, codes, records.tally.merge(into, {}))
    try:
        found = mingen_cell(tuples, models)
    except Unreachable:
        assume(False)
        raise
    each = released_by(records, found.labels[into])  # the same classes, record by record
    assert each.holds(models)
    assert found.generalization.holds(models)
    assert found.loss == pytest.approx(CellLoss.of(records, "granularity").cells(each.levels, each.suppressed))
    assert found.loss <= mingen_cell(tuples, models, steps=0).loss + 1e-9
    assert bound(records, models) - 1e-9 <= found.loss


def test_rebuilding_tuples_wins_back_what_merging_them_loses():
    records = full_domain.random_domain(8, rows=400)
    into, first = group_rows(records.codes)
    tuples = Domain(
        records.names, records.hierarchies, np.ascontiguousarray(records.codes[first]), records.tally.merge(into, {})
    )
    assert len(tuples) < len(records)
    merged, rebuilt = (mingen_cell(tuples, MODELS["k"], steps=steps).loss for steps in (0, None))
    apart = mingen_cell(records, MODELS["k"]).loss
    assert apart <= rebuilt < merged
