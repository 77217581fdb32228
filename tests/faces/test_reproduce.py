"""`kinfold reproduce`: the papers on the terminal and as JSON, and its exit code."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from command import run
from kinfold.reproduction import PAPERS, paper_003
from kinfold.reproduction.expectation import Exhibit, Expectation, Worked

VERDICTS = {"match", "close", "differs", "not-computable"}


@pytest.fixture(scope="module")
def found() -> Any:
    ran = run("reproduce", "--quick", "--json")
    assert ran.code == 0, ran.out
    return ran.json


def test_every_item_has_a_verdict_and_a_reason(found: Any) -> None:
    items = [item for paper in found["papers"] for exhibit in paper["exhibits"] for item in exhibit["items"]]
    assert {paper["paper"] for paper in found["papers"]} == set(PAPERS)
    assert {item["verdict"] for item in items} <= VERDICTS
    assert all(item["reason"] for item in items)
    assert sum(found["counts"].values()) == len(items)


def test_nothing_that_should_match_does_not(found: Any) -> None:
    assert found["failed"] == 0
    assert found["counts"]["match"] > 50


def test_one_paper_is_told_as_tables(found: Any) -> None:
    ran = run("reproduce", "--paper", "003")
    assert ran.code == 0
    for line in ("Truta", "Table 3", "theirs", "ours", "all that should match does"):
        assert line in ran.out


def test_what_should_match_and_does_not_ends_with_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Exhibit("Table 9", "a wrong one", {("a", "b"): Expectation("1")}, lambda _: Worked({("a", "b"): 2}))
    monkeypatch.setattr(paper_003, "PAPER", replace(paper_003.PAPER, exhibits=(wrong,)))
    ran = run("reproduce", "--paper", "003")
    assert ran.code == 1
    assert "FAILS" in ran.out
    assert "1 value should have come out and did not" in ran.out
    assert run("reproduce", "--paper", "003", "--json").code == 1


def test_a_paper_or_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Any) -> None:
    ran = run("reproduce", "--paper", "999")
    assert ran.code == 2
    assert "there is no paper '999'" in ran.err
    assert run("reproduce", "--data", tmp_path / "nowhere").code == 2
