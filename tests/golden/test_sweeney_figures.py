"""Sweeney 2002: Examples 3, 4 and 6, Equation 1, Figures 9A, 9B, 10, 13, 14 and 15."""

import pytest

from kinfold.methods.generalize.datafly import datafly
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.loss import generalizations, is_below
from kinfold.methods.generalize.mingen import mingen
from kinfold.methods.generalize.mu_argus import Ranks, combinations_tested, find_outliers, mu_argus
from kinfold.models import KAnonymity
from reference.sweeney_tables import NAMES, figure_4, figure_7

RANKS = Ranks(identifying=("race",), more=("gender", "zip"), most=("birth",))


def test_example_3_says_which_k_the_generalizations_of_figure_4_have():
    table = figure_4()
    found = {levels: Generalization.full(table, levels).k for levels in [(0, 1), (1, 0), (0, 2), (1, 1)]}
    assert found == {(0, 1): 2, (1, 0): 2, (0, 2): 4, (1, 1): 4}


def test_example_4_finds_two_minimal_generalizations():
    table, models = figure_4(), [KAnonymity(2)]
    assert [node.levels for node in Lattice(table, models).minimal()] == [(0, 1), (1, 0)]
    assert is_below((0, 1), (0, 2))
    assert is_below((1, 0), (1, 1))
    assert not is_below((1, 0), (0, 2))


def test_example_6_gives_the_printed_precisions():
    table = figure_4()
    found = {levels: round(Generalization.full(table, levels).prec(), 2) for levels in [(1, 0), (1, 1), (0, 2), (0, 1)]}
    assert found == {(1, 0): 0.75, (1, 1): 0.58, (0, 2): 0.67, (0, 1): 0.83}


def test_only_the_generalization_of_zip_by_one_level_is_a_minimal_distortion():
    table, models = figure_4(), [KAnonymity(2)]
    assert [node.levels for node in mingen(table, models)] == [(0, 1)]


def test_equation_1_counts_twelve_generalizations_of_race_and_zip():
    assert figure_4().heights == (2, 3)
    assert generalizations(figure_4().heights) == 12 == len(list(Lattice(figure_4(), [KAnonymity(2)])))


@pytest.mark.parametrize("with_month", [False, True])
def test_datafly_passes_through_figures_9a_and_9b(with_month):
    found = datafly(figure_7(with_month), [KAnonymity(2)])
    first, last = found.steps[0][0], found.steps[-1][0]
    assert first.distinct == {"race": 2, "birth": 12, "gender": 2, "zip": 3}
    assert first.occurs.tolist() == [1] * 12
    assert last.distinct == {"race": 2, "birth": 3, "gender": 2, "zip": 3}
    rows = zip(*(last.columns[name] for name in NAMES), last.occurs.tolist(), strict=True)
    assert list(rows) == [
        ("black", "1965", "male", "02141", 2),
        ("black", "1965", "female", "02138", 2),
        ("black", "1964", "female", "02138", 2),
        ("white", "1964", "male", "02138", 1),
        ("white", "1965", "female", "02139", 1),
        ("white", "1964", "male", "02139", 2),
        ("white", "1967", "male", "02138", 2),
    ]
    assert [rows.tolist() for rows in last.rows] == [[0, 1], [2, 3], [4, 5], [6], [7], [8, 9], [10, 11]]


@pytest.mark.parametrize("with_month", [False, True])
def test_datafly_releases_figure_10(with_month):
    found = datafly(figure_7(with_month), [KAnonymity(2)]).generalization
    released = list(zip(*found.columns().values(), strict=True))
    assert [row for row, gone in zip(released, found.suppressed, strict=True) if not gone] == [
        ("black", "1965", "male", "02141"),
        ("black", "1965", "male", "02141"),
        ("black", "1965", "female", "02138"),
        ("black", "1965", "female", "02138"),
        ("black", "1964", "female", "02138"),
        ("black", "1964", "female", "02138"),
        ("white", "1964", "male", "02139"),
        ("white", "1964", "male", "02139"),
        ("white", "1967", "male", "02138"),
        ("white", "1967", "male", "02138"),
    ]
    assert found.k == 2
    assert found.records_suppressed == 2


def test_figure_13_finds_one_rare_pair_of_most_and_more():
    table = figure_7()
    outliers = find_outliers(table, mu_argus(table, 2, RANKS).levels, 2, [("birth", "zip"), ("birth", "gender")])
    assert [row for row, combos in enumerate(outliers) if combos] == [7]
    assert outliers[7] == (("birth", "zip"),)


def test_figure_14_lists_the_outliers_and_the_one_it_omits():
    found = mu_argus(figure_7(), 2, RANKS).outliers
    assert [row for row, combos in enumerate(found) if combos] == [6, 7]
    assert set(found[6]) == {("birth", "gender", "zip"), ("race", "birth", "zip")}
    printed = {
        ("birth", "zip"),
        ("gender", "zip"),
        ("birth", "gender", "zip"),
        ("race", "birth", "gender"),
        ("race", "birth", "zip"),
        ("race", "gender"),
        ("race", "birth"),
    }
    assert set(found[7]) == printed | {("race", "gender", "zip")}


def test_figure_15_mt_comes_out_exactly():
    found = mu_argus(figure_7(), 2, RANKS)
    released = list(zip(*found.generalization.columns().values(), strict=True))
    assert released == [
        ("black", "1965", "male", "02141"),
        ("black", "1965", "male", "02141"),
        ("black", "1965", "female", "02138"),
        ("black", "1965", "female", "02138"),
        ("black", "1964", "female", "02138"),
        ("black", "1964", "female", "02138"),
        ("white", "*", "male", "02138"),
        ("white", "*", "*", "02139"),
        ("white", "1964", "male", "02139"),
        ("white", "1964", "male", "02139"),
        ("white", "1967", "male", "02138"),
        ("white", "1967", "male", "02138"),
    ]


def test_mu_argus_output_fails_at_k_2_and_its_completed_release_passes():
    found = mu_argus(figure_7(), 2, RANKS)
    assert found.k == 1
    assert not found.generalization.holds([KAnonymity(2)])
    done = found.complete([KAnonymity(2)])
    assert done.holds([KAnonymity(2)])
    assert done.k == 2
    assert done.records_suppressed == 2


def test_figure_12_leaves_six_kinds_of_combinations_untested():
    names = ("i1", "i2", "i3", "m1", "m2", "m3", "t1", "t2", "t3")
    ranks = Ranks(("i1", "i2", "i3"), ("m1", "m2", "m3"), ("t1", "t2", "t3"))
    kinds = {
        way: {tuple(sorted(name[0] for name in combo)) for combo in combinations_tested(names, ranks, way)}
        for way in ("all", "figure-12")
    }
    assert len(kinds["all"]) == 16
    assert len(kinds["all"] - kinds["figure-12"]) == 6
