"""Judging: what counts as a match, what is close, what fails, and what cannot be computed."""

from __future__ import annotations

import pytest

from kinfold.papers import make_pictures, reproduce_exhibit
from kinfold.papers.data import PaperData
from kinfold.papers.exhibits import (
    Exhibit,
    ExhibitResult,
    Expectation,
    Plot,
    compare_cell,
    format_as_printed,
    judge_cell,
)
from kinfold.release.report.chart import draw

KEY = ("row", "column")


@pytest.mark.parametrize(
    ("printed", "ours", "verdict"),
    [
        ("0.131", 0.1314999, "match"),
        ("0.131", 0.1316, "close"),
        ("0.131", 0.1319, "close"),
        ("0.131", 0.1400, "differs"),
        ("31.10", 31.1, "match"),
        ("31.10", 31.11, "close"),
        ("0", -1e-17, "match"),
        ("0", 0.7, "differs"),
        ("3", 4, "differs"),
        ("0.3", 0.4, "close"),
        ("1080", 1080, "match"),
        ("1080", 1048, "close"),
        ("1080", 1040, "differs"),
        ("yes", True, "match"),
        ("yes", False, "differs"),
        ("{A2, A3}", "{A2, A3}", "match"),
        ("{A2, A3}", "{A2}", "differs"),
        ("2/7", "2/9", "differs"),
    ],
)
def test_a_value_matches_to_every_printed_digit_or_is_close_or_differs(printed, ours, verdict):
    assert compare_cell(printed, ours) == verdict


def test_a_value_of_ours_is_shown_with_the_decimals_of_theirs():
    assert format_as_printed(0.5, "0.500") == "0.500"
    assert format_as_printed(-0.0001, "0.00") == "0.00"
    assert format_as_printed(True, "yes") == "yes"


@pytest.mark.parametrize(
    ("expected", "ours", "failed"),
    [
        (Expectation("0.50"), 0.5, False),
        (Expectation("0.50"), 0.51, True),
        (Expectation("0.50", "close"), 0.51, False),
        (Expectation("0.50", "close"), 0.6, True),
        (Expectation("0.50", "differs"), 0.6, False),
        (Expectation("0.50", "differs", reading="0.60"), 0.6, False),
        (Expectation("0.50", "differs", reading="0.60"), 0.61, True),
        (Expectation("0.50", "differs", reading="0.60"), 0.5, True),
        (Expectation("0.50", "guard"), 0.5, False),
        (Expectation("0.50", "guard"), 0.51, True),
        (Expectation("lost", "guard", reading="3"), 3, False),
        (Expectation("lost", "guard", reading="3"), 4, True),
    ],
)
def test_a_cell_fails_below_what_is_due_and_off_a_known_reading(expected, ours, failed):
    assert judge_cell(KEY, expected, ours).failed is failed


def test_a_value_that_was_made_to_come_out_is_no_match_with_the_paper():
    cell = judge_cell(KEY, Expectation("0.50", "guard", why="the hierarchy was chosen for it"), 0.5)
    assert (cell.verdict, cell.guard, cell.ours) == ("not-computable", True, 0.5)
    assert cell.reason == "the hierarchy was chosen for it"


def exhibit(work, **more) -> Exhibit:
    return Exhibit("Table 1", "a table", {KEY: Expectation("1", why=more.pop("why", ""))}, work, **more)


def test_what_was_not_worked_out_is_not_computable_and_no_failure():
    found = reproduce_exhibit(exhibit(lambda _: ExhibitResult({}), why="the paper does not print it"), PaperData())
    assert (found.verdict, found.failed) == ("not-computable", 0)
    assert found.cells[0].reason == "the paper does not print it"


def test_a_file_that_is_not_there_is_named_and_nothing_is_worked_out(tmp_path):
    def work(bench):
        raise AssertionError

    found = reproduce_exhibit(exhibit(work, needs=("census.csv",)), PaperData(tmp_path))
    assert found.verdict == "not-computable"
    assert found.cells[0].reason == "needs census.csv: name the folder with --data"


def test_a_quick_run_leaves_out_what_takes_long():
    long = exhibit(lambda _: ExhibitResult({KEY: 1}), long=True)
    assert reproduce_exhibit(long, PaperData(quick=True)).verdict == "not-computable"
    assert reproduce_exhibit(long, PaperData()).verdict == "match"


def test_numbers_of_a_stand_in_stand_beside_the_papers_and_are_not_compared():
    found = reproduce_exhibit(exhibit(lambda _: ExhibitResult({KEY: 1}), stand_in=True), PaperData())
    assert (found.cells[0].verdict, found.cells[0].ours) == ("not-computable", 1)


def test_the_verdict_of_an_exhibit_is_its_worst_cell():
    expected = {("a", "x"): Expectation("1"), ("b", "x"): Expectation("1", "differs")}
    found = reproduce_exhibit(
        Exhibit("Table 1", "a table", expected, lambda _: ExhibitResult({("a", "x"): 1, ("b", "x"): 7})), PaperData()
    )
    assert (found.verdict, found.counts, found.failed) == ("differs", {"match": 1, "differs": 1}, 0)


def test_a_figure_is_a_picture_for_each_of_its_panels():
    points = [{"x": x, "y": 10.0**x, "series": "ours", "panel": f"t = {t}"} for t in (1, 2) for x in (0, 1, 2)]
    made = make_pictures(Plot("Figure 1", "k", "seconds", points, log=True))
    assert [picture.title for picture in made] == ["Figure 1: t = 1", "Figure 1: t = 2"]
    assert [len(picture.values) for picture in made] == [3, 3]
    svg = draw(made[0], "figure")
    for word in ("t = 1", "seconds", "ours", ">100<"):
        assert word in svg
