"""Marks of numbers: whatever is written with them is read as the same table written plainly, and by both checkers."""

import csv
import io
import tempfile
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arx_projects import project, study
from kinfold import checker
from kinfold.convert import ArxAttribute, ArxProject, convert_project, read_deid
from kinfold.errors import DataError
from kinfold.policy.model import Policy
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.queries import collect_rows
from kinfold.tables.schema import Role
from kinfold.tables.source_form import SourceForm
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


@pytest.mark.slow
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
        found = engine.read(other, form=SourceForm(decimal=decimal, thousands=thousands))
        assert collect_rows(engine, found).to_pydict() == collect_rows(engine, expected).to_pydict()
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
        form = SourceForm(decimal=",", separator="|")
        frame = engine.read(path, form=form)
        held = collect_rows(engine, frame).to_pydict()
        assert checker.read_table(path, {"release": {"separator": "|", "decimal": ","}}) == held
        again = path.with_name("again.csv")
        engine.write(frame, again, engine.schema(frame), ordered=False)
        assert collect_rows(engine, engine.read(again, form=form)).to_pydict() == held


# Projects of ARX: whatever they hold, they become a policy that can be read, or an error that says why not


TEXTS = st.text(max_size=8)
VALUES = TEXTS | st.sampled_from(["1", "2.5", "2024-01-02", "NULL", ""])
LEVELS = st.none() | st.integers(0, 2)


@st.composite
def projects(draw: Any) -> ArxProject:
    names = draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3, unique=True))
    rows = draw(st.lists(st.tuples(*(VALUES for _ in names)), min_size=1, max_size=4))
    data = io.StringIO(newline="")
    csv.writer(data, delimiter=";", lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([names, *rows])
    attributes = []
    for place, name in enumerate(names):
        tree = tuple((value, draw(TEXTS)) for value in {row[place] for row in rows}) if draw(st.booleans()) else ()
        attributes.append(
            ArxAttribute(
                name,
                draw(st.sampled_from(list(Role))),
                draw(st.sampled_from(["String", "Ordinal", "Integer", "Decimal", "Date"])),
                draw(TEXTS),
                tree,
                lowest=draw(LEVELS),
                highest=draw(LEVELS),
                weight=draw(st.sampled_from([None, 0.0, 0.5])),
                averaged=draw(st.sampled_from(["", "Median"])),
            )
        )
    return ArxProject(draw(TEXTS), "3.7.0", data.getvalue().encode(), ";", tuple(attributes), metric=draw(TEXTS))


@given(given_project=projects())
@settings(deadline=None)
def test_every_project_becomes_a_policy_that_is_read_back_with_its_columns(given_project: ArxProject) -> None:
    made = convert_project(given_project)
    policy = Policy.parse(tomllib.loads(made.policy))
    assert list(policy.columns) == [attribute.name for attribute in given_project.attributes]
    assert [column.role for column in policy.columns.values()] == [each.role for each in given_project.attributes]
    files = {str(column.hierarchy.file) for column in policy.columns.values() if column.hierarchy}
    assert files == {f"hierarchies/{name}" for name in made.hierarchies}
    assert not any("/" in name or name.startswith(".") for name in made.hierarchies)


@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_file_with_broken_bytes_is_read_or_refused_and_nothing_else(flips: list[tuple[float, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = project(Path(folder), study())
        data = bytearray(path.read_bytes())
        for place, change in flips:
            data[int(place * len(data))] ^= change
        path.write_bytes(data)
        with suppress(DataError):
            assert convert_project(read_deid(path)).policy
