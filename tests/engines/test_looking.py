"""What a column looks like, asked of the engine and counted by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.flow import open_engine
from kinfold.rows.appearance import Appearance, Succession


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with open_engine() as opened:
        yield opened


def by_hand(values: list[Any]) -> Appearance:
    """The slow plain twin."""
    held = Counter(str(value) for value in values if value is not None)
    sizes = [*held.values(), *([values.count(None)] if None in values else [])]
    numbers = [float(value) for value in values if value is not None and not isinstance(value, str)]
    texts = [value for value in values if isinstance(value, str)]
    written = [str(value) for value in values if value is not None]
    order = sorted(held, key=lambda value: (-held[value], value.encode()))
    return Appearance(
        filled=held.total(),
        distinct=len(held),
        alone=sizes.count(1),
        least=min(held.values(), default=0),
        most=max(held.values(), default=0),
        whole=sum(number.is_integer() for number in numbers),
        low=min(numbers, default=0.0),
        high=max(numbers, default=0.0),
        mean=math.fsum(numbers) / len(numbers) if numbers else 0.0,
        letters=sum(map(len, written)) / len(written) if written else 0.0,
        words=sum(max(len(text.split()), 1) for text in texts) / len(texts) if texts else float(bool(written)),
        values=tuple(order),
        counts=tuple(held[value] for value in order),
    )


def seen(engine: Any, values: list[Any], kind: pa.DataType) -> Appearance:
    frame = engine.read(pa.table({"c": pa.array(values, kind)}))
    return engine.appearances(frame, [engine.schema(frame)["c"]])["c"]


def alike(found: Appearance, wanted: Appearance) -> None:
    for name, value in vars(wanted).items():
        assert getattr(found, name) == (
            pytest.approx(value, rel=1e-12, abs=1e-9) if isinstance(value, float) else value
        ), name


@pytest.mark.slow
@given(st.lists(st.none() | st.integers(-30, 30), min_size=1, max_size=40))
def test_whole_numbers_are_counted_as_by_hand(engine: Any, values: list[int | None]) -> None:
    alike(seen(engine, values, pa.int64()), by_hand(values))


@pytest.mark.slow
@given(
    st.lists(st.none() | st.text("ab é", min_size=1, max_size=6).map(lambda text: f"x{text}y"), min_size=1, max_size=40)
)
def test_texts_are_counted_as_by_hand(engine: Any, values: list[str | None]) -> None:
    alike(seen(engine, values, pa.string()), by_hand(values))


def test_fractions_are_not_whole_and_what_is_not_finite_is_no_number(engine: Any) -> None:
    found = seen(engine, [1.0, 2.5, float("nan"), float("inf"), 1e308, -1e308], pa.float64())
    assert (found.whole, found.low, found.high) == (3, -1e308, 1e308)


@given(st.lists(st.none() | st.integers(0, 3), min_size=1, max_size=30))
def test_runs_and_rises_are_counted_as_by_hand(engine: Any, values: list[int | None]) -> None:
    frame = engine.read(pa.table({"c": pa.array(values, pa.int64())}))
    there = [value for value in values if value is not None]
    pairs = list(pairwise(there))
    runs = sum(one != other for one, other in pairs) + bool(there)
    rises = sum(other >= one for one, other in pairs)
    assert engine.succession(frame, engine.schema(frame)["c"]) == Succession(runs, rises)


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.sampled_from([None, 1, 2])), min_size=1, max_size=20))
def test_rows_alone_and_pairs_are_counted_as_by_hand(engine: Any, rows: list[tuple[str | None, int | None]]) -> None:
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], pa.string()), "b": pa.array([b for _, b in rows], pa.int64())}
    )
    frame = engine.read(table)
    assert engine.alone(frame, ["a", "b"]) == list(Counter(rows).values()).count(1)
    whole = {row for row in rows if None not in row}
    assert engine.pairs(frame, "a", "b") == (len(whole), len({a for a, _ in whole}))


def test_numbers_of_a_csv_file_are_read_as_numbers(engine: Any, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("c,d\n3.0,x\n4.0,\n3.0,y z\n")
    frame = engine.read(tmp_path / "t.csv")
    found = engine.appearances(frame, [engine.schema(frame)["c"]])["c"]
    assert (found.whole, found.low, found.high, found.values) == (3, 3.0, 4.0, ("3.0", "4.0"))
