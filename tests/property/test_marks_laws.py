"""Marks of numbers: whatever is written with them is read as the same table written plainly, and by both checkers."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold import checker
from kinfold.rows.engines.duckdb import DuckDB
from kinfold.rows.source_form import Form
from ledger import cases

MARKS = [(",", ""), (",", "."), (".", ","), (",", " "), (".", "'"), (",", "\u202f")]
NUMBERS = st.decimals(-(10**9), 10**9, places=3, allow_nan=False, allow_infinity=False) | st.integers(-(10**20), 10**20)
NEARLY = st.from_regex(r"\A[+-]?[0-9]{0,3}[.,]?[0-9]{0,3}([eE][0-9])?\Z") | st.sampled_from(
    ["", "NA", " ", "1.2,3", "x"]
)


def marked(number: object, decimal: str, thousands: str) -> str:
    """The plain twin: how a person writes a number with marks."""
    whole, _, fraction = f"{number:,f}".partition(".") if "." in str(number) else (f"{number:,}", "", "")
    return whole.replace(",", thousands) + (decimal + fraction if fraction else "")


def written(path: Path, header: list[str], rows: list[tuple[str, ...]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="|").writerows([header, *rows])
    return path


@pytest.mark.parametrize(("decimal", "thousands"), MARKS)
@settings(max_examples=cases(8, 5), deadline=None)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=8))
def test_marked_numbers_are_those_written_plainly(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[object], decimal: str, thousands: str
) -> None:
    folder = tmp_path_factory.mktemp("marks")
    plain = written(folder / "p.csv", ["x", "word"], [(marked(n, ".", ""), "a") for n in numbers])
    other = written(folder / "m.csv", ["x", "word"], [(marked(n, decimal, thousands), "a") for n in numbers])
    with DuckDB() as engine:
        expected = engine.read(plain)
        found = engine.read(other, form=Form(decimal=decimal, thousands=thousands))
        assert engine.rows(found).to_pydict() == engine.rows(expected).to_pydict()
        ours, theirs = engine.schema(found)["x"], engine.schema(expected)["x"]
        assert (ours.storage, ours.decimals, ours.distinct) == (theirs.storage, theirs.decimals, theirs.distinct)


@pytest.mark.slow
@settings(max_examples=cases(40, 20), deadline=None)
@given(rows=st.lists(st.tuples(NEARLY, NEARLY), min_size=1, max_size=6))
def test_both_checkers_read_the_same_text(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = written(tmp_path_factory.mktemp("both") / "t.csv", ["p", "q"], rows)
    with DuckDB() as engine:
        form = Form(decimal=",", separator="|")
        frame = engine.read(path, form=form)
        held = engine.rows(frame).to_pydict()
        assert checker._csv(path, {"separator": "|", "decimal": ","}) == held
        again = path.with_name("again.csv")
        engine.write(frame, again, engine.schema(frame), ordered=False)
        assert engine.rows(engine.read(again, form=form)).to_pydict() == held
