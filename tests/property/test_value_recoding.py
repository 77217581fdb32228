"""Values recoded before the method: as the plain twin does it, in files and frames, in every role, told and counted."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from command import run
from everyday import first
from kinfold.policy.registry import list_methods
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.recoding import ValueLimits, ValueMap
from reference.value_recoding import limited, mapped
from small_tables import SMALL

numbers = st.one_of(
    st.integers(-50, 150), st.floats(-50, 150, allow_nan=False).map(lambda x: round(x, 2)), st.none()
).map(lambda x: None if x is None else float(x))
EXAMPLES = settings(max_examples=60, deadline=None)


@EXAMPLES
@given(
    st.lists(numbers, min_size=2, max_size=20).filter(lambda xs: any(x is not None for x in xs)),
    st.one_of(st.none(), st.integers(-60, 60).map(float)),
    st.one_of(st.none(), st.integers(61, 160).map(float)),
    st.one_of(st.none(), st.sampled_from([0.25, 0.5, 1.0, 5.0, 10.0, 1000.0])),
    st.booleans(),
)
def test_numbers_are_limited_and_rounded_like_the_twin(
    values: list[float | None], bottom: float | None, top: float | None, step: float | None, typed: bool
) -> None:
    column = pa.array(values, pa.float64()) if typed else pa.array([None if v is None else f"{v:.2f}" for v in values])
    with DuckDB(SMALL) as engine:
        frame = engine.read(pa.table({"x": column, "row": range(len(values))}))
        if not typed:  # as from a CSV file
            frame = type(frame)(frame.table, frame.names, frame.types, typed=False)
        found = engine.recode(frame, {"x": ValueLimits(bottom, top, step)}, engine.schema(frame))
        texts = engine.collect(found.frame, {"x": None}).column(0).to_pylist()
    wanted = [limited(v, bottom, top, step) for v in values]
    assert [None if text is None else float(text) for text in texts] == pytest.approx(wanted, abs=1e-9)
    assert found.changed["x"] == sum(w != v for w, v in zip(wanted, values, strict=True))
    same = [(text, f"{v:.2f}") for text, v, w in zip(texts, values, wanted, strict=True) if v is not None and v == w]
    assert typed or all(text == before for text, before in same)


@EXAMPLES
@given(
    st.lists(st.one_of(st.none(), st.sampled_from(["a", "b", "'; --", "é", "a b"])), min_size=2, max_size=20),
    st.dictionaries(st.sampled_from(["a", "b", "'; --", "x"]), st.sampled_from(["a", "c", "o'clock", ""]), min_size=1),
)
def test_names_are_mapped_like_the_twin(values: list[str | None], names: dict[str, str]) -> None:
    with DuckDB(SMALL) as engine:
        frame = engine.read(pa.table({"x": pa.array(values, pa.string()), "row": range(len(values))}))
        found = engine.recode(frame, {"x": ValueMap(names)}, engine.schema(frame))
        assert engine.collect(found.frame, {"x": None}).column(0).to_pylist() == [mapped(v, names) for v in values]
    assert found.changed["x"] == sum(mapped(v, names) != v for v in values)
    assert found.unused_names["x"] == sum(name not in values for name in names)


def test_codes_are_the_same_number_however_they_are_written() -> None:
    with DuckDB(SMALL) as engine:
        for column in (pa.array([3.0, 1.0]), pa.array([3, 1], pa.int8())):
            frame = engine.read(pa.table({"x": column}))
            found = engine.recode(frame, {"x": ValueMap({"3": "2"})}, engine.schema(frame))
            assert [float(text) for text in engine.collect(found.frame, {"x": None}).column(0).to_pylist()] == [2, 1]
            assert found.as_stored["x"]
            assert not engine.recode(frame, {"x": ValueMap({"3": "many"})}, engine.schema(frame)).as_stored["x"]


def table() -> pd.DataFrame:
    random = np.random.default_rng(3)
    n = 80
    return pd.DataFrame(
        {
            "age": random.integers(10, 99, n).astype("int16"),
            "day": (np.datetime64("2024-01-01") + random.integers(0, 600, n)).astype("datetime64[us]"),
            "region": pd.Categorical(random.choice(list("abcde"), n)),
            "school": random.choice(["none", "some", "much"], n),
            "wage": random.integers(0, 100_000, n),
            "ill": random.choice(["flu", "cold", "hiv"], n),
            "note": random.integers(0, 5, n),
        }
    )


def asked(method: str = "mdav", **more: Any) -> dict[str, Any]:
    ages = {"hierarchy": {"intervals": [5, 20]}} if list_methods()[method].family == "generalize" else {}
    days = {"hierarchy": {"dates": ["month", "year"]}} if ages else {}
    needs_t = {"t": 0.5} if "t" in list_methods()[method].needs else {}
    columns: dict[str, Any] = {
        "age": {"role": "quasi", "type": "continuous", "top": 85, "bottom": 18, "round_to": 5, **ages},
        "day": {"role": "quasi", "type": "date", "top": date(2025, 1, 1), **days},
        "region": {"role": "quasi", "map": {"a": "north", "b": "north"}},
        "school": {"role": "quasi", "type": "ordinal", "map": {"none": "low", "some": "low"}, "order": ["low", "much"]},
        "wage": {"role": "confidential", "type": "continuous", "round_to": 1000, "top": 80000},
        "ill": {"role": "confidential", "map": {"hiv": "other", "cold": "other"}},
        "note": {"role": "other", "map": {"0": "", "9": "7"}},
    }
    if "one number" in list_methods()[method].needs:
        columns |= {name: {**columns[name], "role": "other"} for name in ("day", "region", "school")}
    return {"privacy": {"k": 3, **needs_t, **more}, "method": {"name": method}, "columns": columns}


@pytest.mark.slow
@pytest.mark.parametrize("method", first(list_methods(), 5))
def test_every_method_releases_recoded_values(method: str) -> None:
    source = table()
    release = kinfold.anonymize(source, asked(method))
    assert release.verdict.holds
    kept = source[release.recoding.kept].reset_index(drop=True)
    frame = release.frame
    assert frame["wage"].tolist() == [limited(float(v), None, 80000.0, 1000.0) for v in kept["wage"]]
    assert frame["ill"].tolist() == ["flu" if v == "flu" else "other" for v in kept["ill"]]
    assert set(frame["region"].dropna()) <= {"north", "c", "d", "e", "*"}
    assert set(frame["school"].dropna()) <= {"low", "much", "*"}
    changed = sum(limited(float(v), 18.0, 85.0, 5.0) != v for v in source["age"])
    ages = (
        f"'age': 85 and above are shown as 85, 18 and below are shown as 18, others in multiples of 5 ({changed} values"
    )
    assert any(note.startswith(ages) for note in release.plan.notes)
    assert "'note': 1 of the 2 values that its map names do not occur" in release.plan.notes


def test_promises_are_about_the_recoded_values() -> None:
    """Two values are left of three, so that three cannot be had."""
    assert kinfold.anonymize(table(), asked(l=2)).verdict.holds
    with pytest.raises(kinfold.Unreachable):
        kinfold.anonymize(table(), asked(p=3))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frames_hold_what_was_verified(kind: Any) -> None:
    """A category that the frame's type does not know is not lost on the way back."""
    frame = kinfold.anonymize(kind(table()), asked()).frame
    column = frame.column("region").to_pylist() if isinstance(frame, pa.Table) else list(frame["region"])
    assert set(column) <= {"north", "c", "d", "e"}
    assert "north" in column


def test_loss_is_against_the_original() -> None:
    """Recoding alone loses something, though every class is left as it is."""
    source = pd.DataFrame({"age": [10, 10, 90, 90, 95, 95], "town": list("aabbcc")})
    plain = {"age": {"role": "quasi", "type": "continuous"}, "town": {"role": "quasi"}}
    recoded = {"age": {**plain["age"], "top": 90}, "town": {**plain["town"], "map": {"c": "b"}}}
    losses = [
        kinfold.anonymize(source, {"privacy": {"k": 2}, "method": {"name": "mdav"}, "columns": columns}).measures[
            "loss"
        ]
        for columns in (plain, recoded)
    ]
    assert losses[0]["sse"] == losses[0]["dist"] == 0
    assert losses[1]["sse"] > 0
    assert losses[1]["dist"] == 2


@pytest.mark.parametrize("tree", [None, {"tree": {"ab": ["a", "b"], "cd": ["c", "d"]}}])
def test_a_shared_name_covers_the_values_that_share_it(tree: dict[str, Any] | None) -> None:
    """Four towns, two of them now called b: each of their cells covers two, so one of three steps to all is lost."""
    source = pd.DataFrame({"town": list("aabbccdd")})
    town = {"role": "quasi", "average": "generalize", **({"hierarchy": tree} if tree else {})}
    policy = {"privacy": {"k": 2}, "method": {"name": "datafly"}, "columns": {"town": town}}
    assert kinfold.anonymize(source, policy).measures["loss"]["granularity"] == 1
    policy["columns"]["town"] = {**town, "map": {"a": "b"}}
    release = kinfold.anonymize(source, policy)
    assert release.frame["town"].tolist() == list("bbbbccdd")
    assert release.measures["loss"]["granularity"] == pytest.approx(1 - (4 * 1 / 3) / 8)
    assert (
        kinfold.measure(source, release.frame, policy)["loss"]["granularity"] == release.measures["loss"]["granularity"]
    )
    policy["columns"]["town"] = {**town, "map": {"a": "", "b": ""}}
    assert kinfold.anonymize(source, policy).measures["loss"]["granularity"] == pytest.approx(1 - 4 / 8)


@pytest.mark.parametrize(
    ("column", "keys", "told"),
    [
        ("age", {"top": "old"}, "columns.age.top: a text, but the column holds numbers"),
        ("age", {"top": 20.5}, "columns.age.top: not a whole number"),
        ("age", {"top": 20, "bottom": 30}, "columns.age: bottom is above top"),
        ("age", {"round_to": 1e-12}, "columns.age.round_to: not a whole number"),
        ("age", {"round_to": 0}, "'columns.age.round_to' should be greater than 0"),
        ("age", {"map": {}}, "'columns.age.map' is refused"),
        ("region", {"top": 3}, "columns.region: top is for numbers and dates, but this column holds neither"),
        ("day", {"round_to": 3}, "columns.day: round_to is for numbers, but the column holds dates"),
        ("day", {"top": 3}, "columns.day.top: not a date"),
        ("day", {"top": "2024-01-01", "bottom": "2024-02-01"}, "columns.day: bottom is above top"),
    ],
)
def test_keys_that_do_not_fit_are_problems_of_the_policy(column: str, keys: dict[str, Any], told: str) -> None:
    policy = asked()
    policy["columns"][column] = {"role": "quasi", **keys}
    policy["columns"]["nobody"] = {"role": "other"}
    with pytest.raises(kinfold.PolicyError) as caught:
        kinfold.anonymize(table(), policy)
    assert told in str(caught.value)
    assert "no column 'nobody'" in str(caught.value) or "should" in str(caught.value)


@pytest.mark.slow
def test_the_command_says_it_and_both_pages_show_it(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "data.csv", index=False)
    policy = tmp_path / "policy.toml"
    text = kinfold.Policy.parse(asked()).toml()
    policy.write_text(text)
    out = run("anonymize", tmp_path / "data.csv", "--policy", policy, "--out", tmp_path / "out").out
    said = "85 and above are shown as 85, 18 and below are shown as 18, others in multiples of 5"
    assert said in " ".join(out.split())
    for page in ("public", "internal"):
        assert said in (tmp_path / "out" / page / "report.html").read_text()
    certificate = json.loads((tmp_path / "out" / "public" / "certificate.json").read_text())
    assert not {"top", "bottom", "map", "round_to"} & {key for column in certificate["columns"] for key in column}
    for what in (tmp_path / "out" / "public", tmp_path / "out" / "public" / "release.csv"):
        asked_of = () if what.is_dir() else ("--policy", policy)
        assert run("verify", what, *asked_of).code == 0
    again = run("anonymize", tmp_path / "data.csv", "--policy", tmp_path / "out" / "internal" / "policy.toml")
    assert again.code == 2  # nothing but the folder is missing
    assert run("measure", tmp_path / "data.csv", tmp_path / "out/public/release.csv", "--policy", policy).code == 0


@EXAMPLES
@given(
    st.lists(st.integers(-(10**17), 10**17) | st.integers(2**53 - 9, 2**53 + 9), min_size=2, max_size=6),
    st.sampled_from([None, 2.0**53, -5.0]),
    st.sampled_from([None, 1.0, 3.0, 10.0]),
    st.booleans(),
)
def test_long_whole_numbers_are_limited_and_rounded_exactly(
    values: list[int], top: float | None, step: float | None, typed: bool
) -> None:
    column = pa.array(values) if typed else pa.array(list(map(str, values)))
    with DuckDB(SMALL) as engine:
        frame = engine.read(pa.table({"x": column}))
        frame = frame if typed else replace(frame, typed=False)
        found = engine.recode(frame, {"x": ValueLimits(None, top, step)}, engine.schema(frame))
        texts = engine.collect(found.frame, {"x": None}).column(0).to_pylist()
    wanted = [value if top is None else min(value, int(top)) for value in values]
    if step is not None:
        near = [int(abs(Fraction(w, int(step))) + Fraction(1, 2)) * int(step) * (1 if w >= 0 else -1) for w in wanted]
        wanted = [w if w == top else n if top is None else min(n, int(top)) for w, n in zip(wanted, near, strict=True)]
    assert list(map(int, texts)) == wanted


@pytest.mark.parametrize("typed", [True, False])
def test_limits_are_those_of_the_exact_values(typed: bool) -> None:
    close = ["19.99999999999999999999", "20.00000000000000000001", "20.00000000000000000000", "1.00000000000000000000"]
    column = pa.array([Decimal(text) for text in close], pa.decimal128(38, 20)) if typed else pa.array(close)
    moments = pa.array([1577836800000000001, 1577836800000000000, 1577836799999999999, 0], pa.timestamp("ns"))
    with DuckDB(SMALL) as engine:
        frame = engine.read(pa.table({"x": column, "at": moments}))
        frame = frame if typed else replace(frame, typed=False)
        schema = engine.schema(frame)
        counts = [
            engine.recode(frame, {"x": how}, schema).changed["x"]
            for how in (ValueLimits(bottom=20.0), ValueLimits(top=20.0), ValueMap({"20": "7"}))
        ]
        limits = [ValueLimits(top="2020-01-01"), ValueLimits(bottom="2020-01-01")]
        counts += [engine.recode(frame, {"at": how}, schema).changed["at"] for how in limits]
    assert counts == [2, 1, 1, 1, 2]


def test_a_fraction_in_a_map_is_no_whole_number() -> None:
    with DuckDB(SMALL) as engine:
        frame = engine.read(pa.table({"x": [3, 4, 2**53 + 1]}))
        how = {"x": ValueMap({"3.5": "9", str(2**53): "9"})}
        assert engine.recode(frame, how, engine.schema(frame)).changed["x"] == 0


@pytest.mark.slow
def test_nothing_public_depends_on_what_recoding_hid(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    plain = {"age": random.integers(18, 80, 60), "job": random.choice(["smith", "baker"], 60)}
    place, seen = random.choice(3, 60), []
    hidden = {  # the diagnoses at place 0, wages beyond 85, and what the policy names of them
        "one": (["hiv", "flu", "cold"], 86, {"hiv": ""}),
        "two": (["hiv", "flu", "cold"], 99, {"hiv": "", "hepatitis": ""}),
        "blank before": ([None, "flu", "cold"], 85, {"hepatitis": ""}),
    }
    for name, (diagnoses, wage, names) in hidden.items():
        values = {"disease": pd.Series(diagnoses, dtype="category")[place].to_numpy(), "wage": random.choice([20], 60)}
        values["wage"][place == 1] = wage
        columns = {column: {"role": "quasi"} for column in plain}
        columns |= {"disease": {"role": "confidential", "map": names}, "wage": {"role": "other", "top": 85}}
        release = kinfold.anonymize(pd.DataFrame(plain | values), {"privacy": {"k": 3}, "columns": columns})
        release.save(tmp_path / name)
        seen.append({file.name: file.read_bytes() for file in (tmp_path / name / "public").iterdir()})
        assert "shown as" in (tmp_path / name / "internal" / "report.html").read_text()
    assert seen[0] == seen[1] == seen[2]
    assert b"some values are shown as others" in seen[0]["report.html"]


@pytest.mark.parametrize("kind", ["category", "object"])
def test_a_frame_keeps_no_category_that_a_map_hid(kind: str) -> None:
    table = pd.DataFrame({"x": [1, 2, 1, 2, 1, 2], "d": pd.Series(["hiv", "flu", "cold"] * 2, dtype=kind)})
    columns = {"x": {"role": "quasi"}, "d": {"role": "other", "map": {"hiv": "", "cold": "flu"}}}
    found = kinfold.anonymize(table, {"privacy": {"k": 3}, "columns": columns}).frame["d"]
    assert set(found.dropna()) == {"flu"}
    assert set(getattr(found.dtype, "categories", ["flu"])) == {"flu"}
