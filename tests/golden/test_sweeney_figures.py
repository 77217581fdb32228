"""Sweeney 2002: Examples 3 to 6, Equation 1, Figures 9A, 9B, 10 and 12 to 15."""

import pytest

from kinfold.measures.formulas.categorical_loss import prec
from kinfold.methods.generalize.datafly import datafly
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.levels import Generalization, count_generalizations, is_below
from kinfold.methods.generalize.mingen import mingen
from kinfold.methods.generalize.mu_argus import Ranks, find_outliers, list_combinations, mu_argus
from kinfold.models import KAnonymity
from kinfold.papers.exhibits import PrintedValues
from kinfold.papers.paper_002 import FIGURE_4, NAMES, PRINTED_NAMES, RANKS, figure_4, figure_7, format_combination


def printed_tuples(name: str) -> list[tuple[str, ...]]:
    return [row[1:] for row in PrintedValues("002").read_rows(name)]


def test_example_3_says_which_k_the_generalizations_of_figure_4_have():
    for name, levels in FIGURE_4.items():
        assert Generalization.full_domain(figure_4(), levels).k == PrintedValues("002").read_value(
            "Example 3", name, "k"
        )


def test_example_4_finds_two_minimal_generalizations():
    printed = PrintedValues("002").read_examples("Example 4")["k = 2", "minimal generalizations"].printed
    found = [node.levels for node in Lattice(figure_4(), [KAnonymity(2)]).minimal()]
    assert " ".join(f"[{a},{b}]" for a, b in found) == printed
    assert is_below((0, 1), (0, 2))
    assert is_below((1, 0), (1, 1))
    assert not is_below((1, 0), (0, 2))


def test_example_6_gives_the_printed_precisions():
    for name, levels in FIGURE_4.items():
        printed = PrintedValues("002").read_value("Example 6", name, "Prec")
        assert round(Generalization.full_domain(figure_4(), levels).prec(), 2) == printed
        assert round(prec([levels], HEIGHTS), 2) == printed
        assert prec([levels] * 12, HEIGHTS) == pytest.approx(prec([levels], HEIGHTS))


def test_only_the_generalization_of_zip_by_one_level_is_a_minimal_distortion():
    table, models = figure_4(), [KAnonymity(2)]
    assert [node.levels for node in mingen(table, models)] == [(0, 1)]


def test_equation_1_counts_twelve_generalizations_of_race_and_zip():
    printed = PrintedValues("002").read_value("Equation 1", "Race, ZIP", "generalizations")
    assert figure_4().heights == (2, 3)
    assert count_generalizations(figure_4().heights) == printed == len(list(Lattice(figure_4(), [KAnonymity(2)])))


def distinct(place: str) -> dict[str, float]:
    own = zip(NAMES, PRINTED_NAMES, strict=True)
    return {name: PrintedValues("002").read_value(place, printed, "distinct values") for name, printed in own}


@pytest.mark.parametrize("with_month", [False, True])
def test_datafly_passes_through_figures_9a_and_9b(with_month):
    found = datafly(figure_7(with_month), [KAnonymity(2)])
    first, last = found.steps[0], found.steps[-1]
    assert first.distinct == distinct("Figure 9A")
    assert first.counts.tolist() == [1] * 12
    assert last.distinct == distinct("Figure 9B")
    listed = zip(*(last.columns[name] for name in NAMES), map(str, last.counts.tolist()), strict=True)
    assert list(listed) == printed_tuples("figure_9_b")
    tuples = [", ".join(f"t{row + 1}" for row in part) for part in last.rows]
    assert tuples == [row["tuples"] for row in PrintedValues("002").read_table("figure_9_b")]


@pytest.mark.parametrize("with_month", [False, True])
def test_datafly_releases_figure_10(with_month):
    found = datafly(figure_7(with_month), [KAnonymity(2)]).generalization
    released = list(zip(*found.columns().values(), strict=True))
    kept = [row for row, gone in zip(released, found.suppressed, strict=True) if not gone]
    assert kept == printed_tuples("figure_10")
    assert found.k == 2
    assert found.records_suppressed == 2


def test_figure_13_finds_one_rare_pair_of_most_and_more():
    table = figure_7()
    outliers = find_outliers(table, mu_argus(table, 2, RANKS).levels, 2, [("birth", "zip"), ("birth", "gender")])
    assert [row for row, combos in enumerate(outliers) if combos] == [7]
    assert outliers[7] == (("birth", "zip"),)


def test_figure_14_lists_the_outliers_and_the_one_it_omits():
    found = mu_argus(figure_7(), 2, RANKS).outliers
    listed = {(f"t{row}", format_combination(combo)) for row, combos in enumerate(found, start=1) for combo in combos}
    omitted = str(PrintedValues("002").read_examples("Figure 14")["t8", "left out"].reading)
    assert listed == {*PrintedValues("002").read_rows("figure_14"), ("t8", omitted)}


def test_figure_15_mt_comes_out_exactly():
    found = mu_argus(figure_7(), 2, RANKS)
    released = list(zip(*found.generalization.columns().values(), strict=True))
    assert released == printed_tuples("figure_15_mt")


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
        way: {tuple(sorted(name[0] for name in combo)) for combo in list_combinations(names, ranks, way)}
        for way in ("all", "figure-12")
    }
    assert len(kinds["all"]) == 16
    left_out = len(kinds["all"] - kinds["figure-12"])
    assert left_out == PrintedValues("002").read_value("Figure 12", "2- and 3-combinations", "kinds not tested at all")


# Sweeney 2002, Examples 5 and 6: the precision of the tables of Figure 4 (Race of height 2, ZIP of height 3).


HEIGHTS = [2, 3]


def test_example_5_and_suppressed_tuples_and_weights():
    assert prec([[0, 0]], HEIGHTS) == 1
    assert prec([HEIGHTS], HEIGHTS) == 0
    assert prec([[0, 0], [0, 0], [0, 0], HEIGHTS], HEIGHTS) == 0.75
    assert prec([[1, 0]], HEIGHTS, weights=[3, 1]) == 1 - 0.5 * 3 / 4
