"""`kinfold reproduce`: the papers on the terminal and as JSON, and its exit code."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from command import run
from kinfold.papers import CAUSES, PAPERS, load_paper, paper_003
from kinfold.papers.exhibits import Exhibit, ExhibitResult, Expectation
from reference.public_data import found as public
from tools import papers as totals

pytestmark = pytest.mark.compiled

BOTH = ("000", "Tables 2 and 3, both splits")
VERDICTS = {"match", "close", "differs", "not-computable"}


@pytest.fixture(scope="module")
def found() -> Any:
    ran = run("reproduce", "--quick", "--json").ok()
    return ran.json


@pytest.mark.slow
def test_every_item_has_a_verdict_and_a_reason(found: Any) -> None:
    items = [item for paper in found["papers"] for exhibit in paper["exhibits"] for item in exhibit["items"]]
    assert {paper["paper"] for paper in found["papers"]} == set(PAPERS)
    assert {item["verdict"] for item in items} <= VERDICTS
    assert all(item["reason"] for item in items)
    assert sum(found["counts"].values()) == len(items)


EXHIBITS = {  # every table, figure and example that a paper numbers
    "000": ["Table 1", *(f"Table {i}" for i in range(2, 8)), "Figure 1", "Figure 2"],
    "001": ["Table 1", *(f"Table {i}" for i in range(3, 5)), *(f"Figure {i}" for i in range(1, 7))],
    "002": [*(f"Figure {i}" for i in range(1, 16)), *(f"Example {i}" for i in range(1, 8))],
    "003": [*(f"Table {i}" for i in range(1, 4)), *(f"Figure {i}" for i in range(1, 6))],
    "004": [*(f"Table {i}" for i in range(1, 4)), *(f"Figure {i}" for i in range(1, 8))],
}


@pytest.mark.slow
@pytest.mark.parametrize("number", PAPERS)
def test_every_table_figure_and_example_is_listed(number: str, found: Any) -> None:
    paper = next(each for each in found["papers"] if each["paper"] == number)
    told = " ".join(f"{each['place']} {each['title']}" for each in paper["exhibits"])
    told = re.sub(r"Figures (\d+) and (\d+)", r"Figure \1 Figure \2", told)
    missing = [name for name in EXHIBITS[number] if not re.search(rf"{name}(?!\d)", told)]
    assert not missing


def test_what_comes_out_exactly_is_a_match_and_what_was_made_to_is_none(found: Any) -> None:
    by_place = {(paper["paper"], each["place"]): each for paper in found["papers"] for each in paper["exhibits"]}
    exact = [
        ("000", "Definition 5.3"),
        ("002", "Figure 9B"),
        ("002", "Equation 2"),
        ("002", "Theorem 2"),
        ("003", "Table 3"),
    ]
    for place in exact:
        assert by_place[place]["verdict"] == "match", place
    assert all(item["guard"] for item in by_place["003", "Table 2"]["items"])  # a table made to have these counts
    made = [item for each in by_place.values() for item in each["items"] if item["guard"]]
    assert {item["verdict"] for item in made} == {"not-computable"}


def test_nothing_that_should_match_does_not(found: Any) -> None:
    assert found["failed"] == 0
    assert found["counts"]["match"] > 50


def test_what_004_says_of_its_own_tables_is_counted_in_them(found: Any) -> None:
    paper = next(each for each in found["papers"] if each["paper"] == "004")
    (cell,) = next(each for each in paper["exhibits"] if each["place"] == "Tables 2 and 3")["items"]
    assert (cell["theirs"], cell["ours"], cell["verdict"]) == ("98 of 98", "90 of 98", "differs")


def test_the_page_has_the_totals_of_every_value_by_cause_and_no_paper_is_said_not_to_be_published(found: Any) -> None:
    """The whole takes minutes: the number of values of each paper is compared, and the causes of 002 and 003."""
    told = totals.read()
    assert list(told) == [*(name for name in CAUSES.values() if name in told), "all values"]
    for number in PAPERS:
        values = sum(len(exhibit.expected) for exhibit in load_paper(number).exhibits)
        assert told["all values"][number] == values == sum(told[name][number] for name in list(told)[:-1])
        assert all(cells["all"] == sum(cells[each] for each in PAPERS) for cells in told.values())
    for number in ("002", "003"):  # which need no file and are quick
        assert {name: counts[number] for name, counts in found["causes"].items() if counts[number]} == {
            name: cells[number] for name, cells in told.items() if cells[number] and name != "all values"
        }
    assert "never published" not in totals.PAGE.read_text("utf-8") + json.dumps(found)


def test_one_paper_is_told_as_tables(found: Any) -> None:
    ran = run("reproduce", "--paper", "003").ok()
    for line in ("Truta", "Table 3", "theirs", "ours", "every value that should match does"):
        assert line in ran.out


def test_what_should_match_and_does_not_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Exhibit("Table 9", "a wrong one", {("a", "b"): Expectation("1")}, lambda _: ExhibitResult({("a", "b"): 2}))
    monkeypatch.setattr(paper_003, "PAPER", replace(paper_003.PAPER, exhibits=(wrong,)))
    ran = run("reproduce", "--paper", "003").fails(1)
    assert "FAILS" in ran.out
    assert "1 value should match and did not" in ran.out
    assert run("reproduce", "--paper", "003", "--json").code == 1


def test_a_paper_or_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Any) -> None:
    run("reproduce", "--paper", "999").fails(2, "there is no paper '999'")
    assert run("reproduce", "--data", tmp_path / "nowhere").code == 2


def test_a_page_holds_every_exhibit_and_its_figures_and_loads_nothing(tmp_path: Any) -> None:
    path = tmp_path / "new" / "papers.html"
    run("reproduce", "--paper", "003", "--out", path).ok()
    html = path.read_text("utf-8")
    for exhibit in paper_003.PAPER.exhibits:
        assert f"<h3>{exhibit.place} " in html
    assert html.count("<svg") == 4  # the lattice, and a matrix for each masked file
    assert "minimal for TS 0, 1, 2" in html
    assert "default-src 'none'" in html
    assert "<script" not in html
    assert not re.search(r"""(?:src|href)=["']""", html)


def test_a_page_that_cannot_be_written_is_a_usage_error(tmp_path: Any) -> None:
    run("reproduce", "--paper", "003", "--out", tmp_path).fails(2, "cannot write")


def test_every_exhibit_says_where_it_stands_and_every_cell_once() -> None:
    for number in PAPERS:
        exhibits = load_paper(number).exhibits
        places = [exhibit.place for exhibit in exhibits]
        assert len(set(places)) == len(places)
        assert all(exhibit.expected for exhibit in exhibits)
        for exhibit in exhibits:
            for cell in exhibit.expected.values():
                assert cell.due == "match" or cell.why or exhibit.stand_in, (number, exhibit.place)


@pytest.mark.parametrize("text", ["", "a,b\n1,x\n", "a,b\n1,2\n", "a,b\n1\n", "\xff\xfe"])
def test_another_file_of_the_name_is_told_and_not_taken_for_the_public_one(tmp_path: Any, text: str) -> None:
    (tmp_path / "census.csv").write_bytes(text.encode("latin-1"))
    ran = run("reproduce", "--paper", "004", "--quick", "--data", tmp_path).fails(3, "census.csv")
    assert "x" not in ran.err.split("'census.csv'")[1].split("fix")[0]  # no value of the file


@pytest.mark.slow
def test_with_the_public_files_nothing_that_comes_out_exactly_is_less_than_a_match() -> None:
    folder = public("census.csv").parent
    ran = run("reproduce", "--data", folder, "--quick", "--json").ok()
    places = {(p["paper"], e["place"]): e for p in ran.json["papers"] for e in p["exhibits"]}
    for place in [("004", "Table 3"), ("000", "Outside the paper"), ("003", "Table 3"), ("002", "Figure 9B")]:
        assert places[place]["verdict"] == "match", place
    exact = ("length 6, k = 3", "length 13, k = 3", "length 13, k = 6", "length 13, k = 9")
    cells = [item for item in places["000", "Table 2"]["items"] if item["row"] in exact]
    assert len(cells) == 24
    assert all(item["verdict"] == "match" for item in cells)
    around = {(item["row"], item["column"][-3:]): item["ours"] for item in places[BOTH]["items"]}
    for row in ("length 6, k = 6", "length 6, k = 12", "length 13, k = 12"):
        assert around[row, "x_s"] == "10 of 10" != around[row, "x_r"]
    for row in ("length 6, k = 3", "length 13, k = 6", "length 13, k = 9"):
        assert around[row, "x_r"] == "10 of 10" != around[row, "x_s"]
    assert around["length 6, k = 9", "x_s"] == "9 of 10"
