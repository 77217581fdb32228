"""How `measure` pairs rows: it says how, and never pairs a reordered copy by position without a word."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import kinfold

COLUMNS = {"age": {"role": "quasi", "type": "continuous"}, "sex": {"role": "quasi", "type": "nominal"}}
HELD: dict[str, Any] = {"disease": {"role": "confidential", "type": "nominal"}}
PAIRED = ("sse", "overall", "by_column")


def policy(*, held: bool, **output: str) -> dict[str, Any]:
    return {
        "privacy": {"k": 3},
        "method": {"name": "mdav"},
        "output": output,
        "columns": COLUMNS | (HELD if held else {}),
    }


@pytest.fixture(scope="module", params=[True, False], ids=["with an untouched column", "quasi-identifiers alone"])
def both(request: pytest.FixtureRequest) -> tuple[pa.Table, pa.Table, dict[str, Any], float]:
    """A table, its release in the same order, the policy, and what was truly lost."""
    random = np.random.default_rng(4)
    values = {"age": random.integers(18, 90, 60), "sex": random.choice(["f", "m"], 60)}
    table = pa.table({**values, **({"disease": random.choice(list("abcd"), 60)} if request.param else {})})
    release = kinfold.anonymize(table, policy(held=request.param))
    return table, release.frame, policy(held=request.param), release.measures["loss"]["overall"]


def test_rows_in_their_order_are_paired_by_position(both: Any) -> None:
    table, released, asked, truly = both
    found = kinfold.measure(table, released, asked)
    assert found["loss"]["overall"] == pytest.approx(truly)
    assert found["pairing"].startswith("paired by position: ")
    assert ("'disease' is the same in every row" in found["pairing"]) == ("disease" in table.column_names)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=25)
def test_a_reordered_copy_is_never_measured_by_position_without_a_word(both: Any, data: st.DataObject) -> None:
    table, released, asked, truly = both
    by = data.draw(st.sampled_from([None, *table.column_names]), label="sorted by")
    order = data.draw(st.sampled_from(["ascending", "descending"]), label="direction")
    shuffled = released.take(np.random.default_rng(data.draw(st.integers(0, 99), label="seed")).permutation(60))
    copy = shuffled if by is None else shuffled.sort_by([(by, order)])
    found = kinfold.measure(table, copy, asked)
    assert found["k"] >= 3  # what needs no pairs is there
    if "disease" in table.column_names or by == "age":
        assert [found["loss"][key] for key in PAIRED] == [None] * 3
        assert found["risk"]["linkage"] is None
        assert found["pairing"].startswith("not paired: ")
        assert any(name in found["pairing"] for name in ("'disease'", "'age'"))
        assert any("cannot be paired" in note for note in found["notes"])
    elif found["loss"]["overall"] is not None:
        assert found["loss"]["overall"] > truly
        assert any("SSE exceeds SST" in note for note in found["notes"])


REORDERED = {  # the row of the release that stands in each row of the copy
    "the last third shuffled": lambda n, random: np.append(
        np.arange(2 * n // 3), random.permutation(n - 2 * n // 3) + 2 * n // 3
    ),
    "the last tenth shuffled": lambda n, random: np.append(
        np.arange(n - n // 10), random.permutation(n // 10) + n - n // 10
    ),
    "reversed": lambda n, _: np.arange(n)[::-1],
    "blocks shuffled": lambda n, random: random.permutation(np.arange(n).reshape(-1, 20)).ravel(),
    "one dropped, one inserted": lambda n, _: np.append(np.arange(1, n), 5),
    "halves exchanged": lambda n, _: np.roll(np.arange(n), n // 2),
}


@pytest.mark.parametrize("kind", REORDERED)
@pytest.mark.parametrize("average", ["mean", "median", "generalize"])
@pytest.mark.parametrize("disease", ["none", "in blocks"])
def test_part_of_the_rows_in_other_places_is_noticed(kind: str, average: str, disease: str) -> None:
    random = np.random.default_rng(6)
    age, held = random.integers(18, 90, 120), np.repeat(["a", "b", "c"], 40)
    table = pa.table({"age": age, "pay": age * 900 + random.integers(0, 9000, 120), "disease": held})
    bands = {"age": {"intervals": [5, 20]}, "pay": {"intervals": [9000, 36000]}}
    columns = {name: {"role": "quasi", "average": average, "hierarchy": form} for name, form in bands.items()}
    asked: dict[str, Any] = {"privacy": {"k": 4}, "method": {"name": "mdav"}, "columns": {**columns, **HELD}}
    if disease == "none":
        table, asked["columns"] = table.drop_columns("disease"), columns
    release = kinfold.anonymize(table, asked)
    same = kinfold.measure(table, release.frame, asked)
    assert same["loss"]["overall"] == pytest.approx(release.measures["loss"]["overall"])
    assert not any("rows are paired" in note for note in same["notes"])
    found = kinfold.measure(table, release.frame.take(REORDERED[kind](120, random)), asked)
    unpaired = found["loss"]["overall"] is None or found["pairing"].startswith("paired by classes")
    assert unpaired or any(note.startswith("rows are paired by position, but ") for note in found["notes"])


def test_rows_are_not_paired_without_a_word_if_other_orders_fit_as_well() -> None:
    table = pa.table({"sex": [*"fm" * 30], "town": [*"abc" * 20]})
    asked: dict[str, Any] = {"privacy": {"k": 20}, "method": {"name": "mdav"}}
    asked["columns"] = {name: {"role": "quasi", "type": "nominal"} for name in table.column_names}
    released = kinfold.anonymize(table, asked).frame
    assert any(
        "other orders of the rows fit as well" in note for note in kinfold.measure(table, released, asked)["notes"]
    )
    asked["output"] = {"order": "kept"}
    assert not any("rows are paired" in note for note in kinfold.measure(table, released, asked)["notes"])


def test_a_policy_that_says_that_the_order_was_kept_is_believed_unless_columns_deny_it(both: Any) -> None:
    table, released, asked, _ = both
    copy = released.sort_by("age")
    found = kinfold.measure(table, copy, {**asked, "output": {"order": "kept"}})
    assert (found["loss"]["overall"] is None) == ("disease" in table.column_names)


def test_a_sorted_original_may_have_a_sorted_release(both: Any) -> None:
    table = both[0].sort_by("age").select(["age", "sex"])
    release = kinfold.anonymize(table, quasi=["age"], k=5, method="univariate", others="release")
    found = kinfold.measure(table.select(["age"]), release.frame.select(["age"]), quasi=["age"], k=5)
    assert found["loss"]["overall"] == pytest.approx(release.measures["loss"]["overall"])


def test_a_copy_of_generalized_rows_is_paired_by_classes(both: Any) -> None:
    table, _, asked, _ = both
    bands = {**COLUMNS["age"], "hierarchy": {"intervals": [20, 40, 80]}}
    asked = {**asked, "method": {"name": "lattice"}, "columns": {**asked["columns"], "age": bands}}
    release = kinfold.anonymize(table, asked)
    copy = release.frame.sort_by([(name, "ascending") for name in release.frame.column_names])
    found = kinfold.measure(table, copy, asked)
    if "disease" in table.column_names:
        assert found["pairing"].startswith("paired by classes: ")
    assert found["loss"]["overall"] == pytest.approx(release.measures["loss"]["overall"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rowid", "place", "RowID", "c0", "label"])
@pytest.mark.parametrize("method", ["mdav", "lattice"])  # which recode by row, and by distinct values
def test_rows_keep_their_order_in_a_file_whatever_a_column_is_called(name: str, method: str, tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    table = pa.table({"age": random.integers(18, 90, 40), name: random.permutation(40)})
    hierarchy = {"hierarchy": {"intervals": [20, 40, 80]}} if method == "lattice" else {}
    asked = {"privacy": {"k": 3}, "method": {"name": method}, "output": {"order": "kept"}}
    asked |= {"columns": {"age": {"role": "quasi", **hierarchy}, name: {"role": "other"}}}
    public = kinfold.anonymize(table, asked).save(tmp_path / "out") / "public"
    written = csv.read_csv(public / "release.csv")
    assert written.column(name).to_pylist() == table.column(name).to_pylist()


def test_few_changed_cells_of_an_untouched_column_do_not_hide_the_order(both: Any) -> None:
    table, released, asked, _ = both
    if "disease" not in table.column_names:
        pytest.skip("no untouched column")
    edited = released.column("disease").to_pylist()
    edited[7], edited[30] = "z", None
    released = released.set_column(released.column_names.index("disease"), "disease", [edited])
    assert "96.7% of the rows" in kinfold.measure(table, released, asked)["pairing"]
    assert kinfold.measure(table, released.sort_by("age"), asked)["loss"]["sse"] is None
