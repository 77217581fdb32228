"""The lattice against evaluation of all nodes, on small random tables."""

from itertools import permutations, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.errors import Cancelled, PolicyError, Unreachable
from kinfold.hierarchies import Hierarchy, build_from_rows
from kinfold.measures.formulas.arrays import group_rows
from kinfold.methods.generalize import lattice_search as lattice_cuts
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice, lattice
from kinfold.methods.generalize.lattice_search import CutSearch
from kinfold.methods.generalize.levels import OBJECTIVES, CellLoss, Generalization
from kinfold.methods.generalize.mingen import mingen
from kinfold.methods.generalize.mingen_cell import generalize_classes, mingen_cell
from kinfold.methods.generalize.result import find_strongest_belief
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.papers.paper_002 import figure_7
from kinfold.policy.model import Policy
from kinfold.tables.tally import Tally, tally_labels
from reference import cell_level, full_domain

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


@pytest.mark.slow
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("suppression", [0, 1, 1.0])
@pytest.mark.parametrize(
    ("seed", "rows", "k"), [(78845, 12, 2), (0, 1, 1), (0, 1, 2), (1, 2, 2), (2, 3, 5), (3, 12, 12)]
)
def test_the_search_with_cuts_takes_degenerate_tables(seed, rows, k, suppression, objective):
    tables = [full_domain.random_domain(seed, rows=rows), full_domain.random_domain(seed, rows=rows, columns=1)]
    flat = build_from_rows([["*"]])  # a hierarchy that is its top alone: a lattice of one node
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
    assert found.loss == pytest.approx(min(every), abs=lattice_cuts.PROOF_TOLERANCE)


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


# The minimality attack: the measure equals what an attacker finds by running the method on every possible original


ZIP, DISEASE = list("AABBBB"), list("HHfgij")
TREE = {"role": "quasi-identifier", "type": "nominal", "hierarchy": {"levels": [["A", "*"], ["B", "*"]]}}
VILLAGES = Hierarchy.from_rows([("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*")])
MODEL_OF = {
    "distinct": lambda: LDiversity(2, "disease"),
    "entropy": lambda: LDiversity(1.8, "disease", "entropy"),
    "closeness": lambda: TCloseness(0.45, "disease", "equal"),
}


def _released(**method: object) -> kinfold.Release:
    table = pa.table({"zip": ZIP, "disease": DISEASE})
    policy = {
        "privacy": {"k": 2, "l": 2},
        "method": {"name": "lattice", **method},
        "columns": {"zip": TREE, "disease": {"role": "confidential"}},
    }
    return kinfold.anonymize(table, policy)


def test_a_minimal_generalization_tells_who_holds_what() -> None:
    measures = _released().measures.to_dict()
    assert measures["risk"]["minimality"] == {"belief": 1.0, "by_class": pytest.approx(1 / 3)}
    assert any(note.startswith("risk.minimality: someone who knows the method") for note in measures["notes"])


@pytest.mark.slow
def test_a_level_that_may_be_a_random_one_proves_nothing() -> None:
    seeds = [10**12 + seed for seed in range(8)]
    measured = [_released(extra_level=0.5, seed=seed).measures["risk"]["minimality"]["belief"] for seed in seeds]
    assert measured == pytest.approx([0.375] * 8)  # nothing is above the top: always the same level


@pytest.mark.slow
def test_levels_are_raised_at_random_by_a_secret_seed() -> None:
    table = pa.table({"zip": list("aabbccdd"), "disease": list("fgfgfgfg")})
    tree = {"levels": [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"], ["d", "y", "*"]]}
    columns = {"zip": {**TREE, "hierarchy": tree}, "disease": {"role": "confidential"}}

    def first(seed: int) -> str:
        method = {"name": "lattice", "extra_level": 0.5, "seed": seed}
        released = kinfold.anonymize(table, {"privacy": {"k": 2, "l": 2}, "method": method, "columns": columns})
        return str(released.frame["zip"][0])

    labels = [first(10**11 + seed) for seed in range(12)]
    assert set(labels) == {"a", "x"}
    assert labels == [first(10**11 + seed) for seed in range(12)]


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ({"extra_level": 0.5}, "needs a secret seed"),
        ({"extra_level": 0.5, "seed": 10**12, "suppression": 1}, "cannot be combined with suppression"),
        ({"extra_level": 0.5, "seed": 10**12, "levels": {"zip": 1}}, "cannot be combined with suppression or levels"),
        ({"extra_level": 1.0, "seed": 10**12}, "extra_level"),
        ({"name": "datafly", "extra_level": 0.5, "seed": 10**12}, 'extra_level is for name = "lattice"'),
    ],
)
def test_a_remedy_that_would_not_work_is_refused(method: dict[str, object], wrong: str) -> None:
    with pytest.raises(PolicyError, match=wrong):
        Policy.parse({"privacy": {"k": 2, "l": 2}, "method": {"name": "lattice", **method}})


def _domain(villages: list[str], diseases: list[str]) -> Domain:
    kinds = sorted(set(villages))
    labels = np.array([kinds.index(village) for village in villages])
    tally = tally_labels(labels, {"disease": diseases})
    return Domain.from_tally(
        Tally({"village": np.array(kinds, object)}, tally.sizes, tally.spreads), {"village": VILLAGES}
    )


def _labels(villages: list[str], level: int) -> list[str]:
    return [(village, "xxyy"["abcd".index(village)], "*")[level] for village in villages]


def _attacked(villages: list[str], diseases: list[str], models: list[object], level: int) -> float:
    """Run the search on every original that has the values of each released class, and believe what is left.

    Of people whose class would not be split by a lower level, nothing is learnt but what their class shows.
    """
    released, below = _labels(villages, level), _labels(villages, level - 1)
    places = [[i for i, label in enumerate(released) if label == known] for known in sorted(set(released))]
    orders = [sorted(permutations([diseases[i] for i in members])) for members in places]
    held = np.zeros((len(villages), 4))
    for chosen in product(*orders):
        original = list(diseases)
        for members, values in zip(places, chosen, strict=True):
            for i, value in zip(members, values, strict=True):
                original[i] = value
        if Lattice(_domain(villages, original), models).search().levels == (level,):
            held[np.arange(len(villages)), ["fghi".index(value) for value in original]] += 1
    split = [i for members in places if len({below[i] for i in members}) > 1 for i in members]
    return float((held / held.sum(axis=1, keepdims=True))[split].max())


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODEL_OF)
def test_what_is_measured_is_what_the_attack_finds(kind: str) -> None:
    random, compared = np.random.default_rng(7), 0
    for _ in range(20):
        villages = sorted(random.choice(list("abcd"), 5).tolist())
        diseases = random.choice(list("fghi"), 5, p=[0.5, 0.3, 0.1, 0.1]).tolist()
        models = [KAnonymity(1), MODEL_OF[kind]()]
        found = Lattice(_domain(villages, diseases), models)
        try:
            levels = found.search().levels
        except kinfold.errors.Unreachable:
            continue
        belief = find_strongest_belief(_domain(villages, diseases), models, levels)
        if belief is not None:
            assert belief.posterior == pytest.approx(_attacked(villages, diseases, models, levels[0]))
            compared += 1
    assert compared > 2


# Cell level: exact on small tables, truthful and private on larger ones


CELL_MODELS = {
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
@pytest.mark.parametrize("models", CELL_MODELS.values(), ids=CELL_MODELS)
@given(seed=seeds, rows=st.integers(17, 60))
@settings(max_examples=15, deadline=None)
def test_larger_tables_keep_their_promises_and_every_label_is_true(models, seed, rows):
    table = full_domain.random_domain(seed, rows=rows)
    try:
        found = mingen_cell(table, models, steps=200)
    except Unreachable:
        assert not Generalization.full_domain(table, table.heights).holds(models)  # not even with all in one class
        assume(False)
        raise
    assert found.generalization.holds(models)
    assert cell_level.lower_bound(table, models) - 1e-9 <= found.loss <= 1
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
    one, again = (mingen_cell(table, CELL_MODELS["k"], steps=300) for _ in range(2))
    assert one.labels.tolist() == again.labels.tolist()
    assert one.loss <= mingen_cell(table, CELL_MODELS["k"], steps=0).loss + 1e-9


def test_cell_level_loses_less_than_the_best_full_domain_node():
    table = full_domain.random_domain(5, rows=80)
    assert mingen_cell(table, CELL_MODELS["k"]).loss < lattice(table, CELL_MODELS["k"]).best.loss


@pytest.mark.compiled
@pytest.mark.parametrize("models", CELL_MODELS.values(), ids=CELL_MODELS)
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
    each = generalize_classes(records, found.labels[into])  # the same classes, record by record
    assert each.holds(models)
    assert found.generalization.holds(models)
    assert found.loss == pytest.approx(
        CellLoss.from_objective(records, "granularity").mean_loss(each.levels, each.suppressed)
    )
    assert found.loss <= mingen_cell(tuples, models, steps=0).loss + 1e-9
    assert cell_level.lower_bound(records, models) - 1e-9 <= found.loss


def test_rebuilding_tuples_wins_back_what_merging_them_loses():
    records = full_domain.random_domain(8, rows=400)
    into, first = group_rows(records.codes)
    tuples = Domain(
        records.names, records.hierarchies, np.ascontiguousarray(records.codes[first]), records.tally.merge(into, {})
    )
    assert len(tuples) < len(records)
    merged, rebuilt = (mingen_cell(tuples, CELL_MODELS["k"], steps=steps).loss for steps in (0, None))
    apart = mingen_cell(records, CELL_MODELS["k"]).loss
    assert apart <= rebuilt < merged
