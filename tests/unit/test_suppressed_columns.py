"""Columns whose cells are released as they are or not at all, beside averaged and generalized ones, in one run."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kinfold
from kinfold.errors import PolicyError, Unreachable

QUASI = ("age", "zip", "job", "day")


def table(rows: int = 60) -> pa.Table:
    """Numbers, codes, words with a few nulls and dates, and an illness."""
    chance = np.random.default_rng(4)
    jobs = [None if i % 13 == 0 else f"job {i % 4}" for i in range(rows)]
    return pa.table(
        {
            "age": pa.array([None if i % 17 == 0 else 20 + int(chance.integers(0, 12)) for i in range(rows)]),
            "zip": [f"0213{int(chance.integers(0, 9))}" for _ in range(rows)],
            "job": jobs,
            "day": [date(2024, 1, 1) + timedelta(int(chance.integers(0, 5))) for _ in range(rows)],
            "illness": [f"ill {int(chance.integers(0, 3))}" for _ in range(rows)],
        }
    )


def policy(name: str, columns: dict[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    asked = {column: {"role": "quasi-identifier", **columns.get(column, {})} for column in QUASI}
    return {
        "privacy": {"k": 3, **more.pop("privacy", {})},
        "method": {"name": name, **more},
        "columns": {**asked, "illness": {"role": "confidential", "type": "nominal"}},
    }


GROUPS = {
    "age": {"average": "suppress"},
    "zip": {"hierarchy": {"mask": 5}, "average": "generalize"},
    "job": {"average": "suppress"},
    "day": {"type": "date", "average": "mean"},
}


def kept_or_empty(before: Any, after: Any) -> bool:
    return after is None or before == after


@pytest.mark.parametrize("method", ["mdav", "v-mdav", "approximate", "t-first"])
def test_columns_are_averaged_generalized_and_suppressed_over_the_same_classes(method: str) -> None:
    source = table()
    privacy = {"t": 0.5} if method == "t-first" else {}
    release = kinfold.anonymize(source, policy(method, GROUPS, privacy=privacy))
    rows = release.frame.to_pylist()
    assert min(Counter(tuple(row[name] for name in QUASI) for row in rows).values()) >= 3
    assert release.frame.schema.field("age").type == source.schema.field("age").type
    assert release.frame.schema.field("day").type == pa.date32()
    assert all(row["zip"].startswith("0213") or set(row["zip"]) <= set("021*") for row in rows)
    labels = np.asarray(release.labels)
    for name in ("age", "job"):
        before = source.column(name).to_pylist()
        assert all(kept_or_empty(old, row[name]) for old, row in zip(before, rows, strict=True))
        for label in set(labels.tolist()):
            held = {before[i] for i in np.flatnonzero(labels == label)}
            shown = {rows[i][name] for i in np.flatnonzero(labels == label)}
            assert shown == (held if len(held) == 1 else {None})


def test_a_suppressed_cell_has_lost_everything_and_is_told() -> None:
    source = table()
    release = kinfold.anonymize(source, policy("local-suppression", {}))
    gone = sum(
        old is not None and new is None
        for name in QUASI
        for old, new in zip(source.column(name).to_pylist(), release.frame.column(name).to_pylist(), strict=True)
    )
    loss = release.measures["loss"]
    assert gone > 0
    assert loss["overall"] == pytest.approx(gone / (4 * 60))
    assert loss["granularity"] == pytest.approx(1 - gone / (4 * 60))
    assert loss["prec"] == pytest.approx(1 - gone / (4 * 60))
    assert any(note.startswith(f"{gone} of 240 cells were suppressed") for note in release.plan.notes)


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "csv"])
def test_values_stay_as_they_were_written(kind: str, tmp_path: Any) -> None:
    numbers = ["1.50", "1.5", "007", "1e3", "-0.0", "9007199254740993"]
    texts = [numbers[i % 6] for i in range(24)] + ["3.25"]
    (tmp_path / "t.csv").write_text("n,b\n" + "".join(f"{text},x\n" for text in texts))
    source = tmp_path / "t.csv"
    known = [9007199254740993] * 9 + [5]
    given: Any = source if kind == "csv" else pd.DataFrame({"n": known, "b": ["x"] * 10})
    given = pa.Table.from_pandas(given) if kind == "pyarrow" else given
    release = kinfold.anonymize(given, quasi=["n", "b"], k=2, method="local-suppression")
    if kind == "csv":
        assert {*release.frame.to_pydict()["n"]} <= {*numbers, None}
        return
    column = release.frame["n"].tolist() if kind == "pandas" else release.frame.column("n").to_pylist()
    assert [value for value in column if not pd.isna(value)] == [9007199254740993] * 8  # one more beside the 5
    assert kind == "pyarrow" or str(release.frame["n"].dtype) == "Int64"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lattice", "mingen", "mingen-cell", "datafly", "mu-argus"])
def test_generalizing_methods_take_a_suppressed_column_to_an_empty_cell(method: str) -> None:
    columns = {
        "age": {"average": "suppress"},
        "zip": {"hierarchy": {"mask": 5}},
        "day": {"type": "date", "hierarchy": {"dates": ["month", "year"]}},
    }
    release = kinfold.anonymize(table(), policy(method, columns, suppression=0.2))
    ages = release.frame.column("age").to_pylist()
    assert all(value is None or isinstance(value, int) or str(value).isdigit() for value in ages)
    assert release.verdict.holds


def test_an_average_of_their_own_is_refused_by_local_suppression() -> None:
    with pytest.raises(PolicyError, match=r"'local-suppression' suppresses cells, and columns.zip.average is mode"):
        kinfold.anonymize(table(), policy("local-suppression", {"zip": {"average": "mode"}}))
    with pytest.raises(PolicyError, match=r"method.limit names columns that are not quasi-identifiers: zpi"):
        kinfold.anonymize(table(), policy("local-suppression", {}, limit={"zpi": 0.1}))
    with pytest.raises(PolicyError, match="limit"):
        kinfold.anonymize(table(), policy("mdav", {}, limit={"zip": 0.1}))
    with pytest.raises(PolicyError, match=r"'method.limit' should be less"):
        kinfold.anonymize(table(), policy("local-suppression", {}, limit={"zip": 1.5}))


def test_limits_and_what_cannot_be_met_are_told_with_columns_and_shares() -> None:
    release = kinfold.anonymize(table(), policy("local-suppression", {}, limit={"job": 0.0}))
    assert release.frame.column("job").to_pylist() == table().column("job").to_pylist()
    with pytest.raises(
        Unreachable, match=r"method.limit: 'zip' may lose 0.0% of its cells, and the best result loses \d"
    ):
        kinfold.anonymize(table(), policy("local-suppression", {}, limit=dict.fromkeys(QUASI, 0.0)))


def test_the_policy_as_applied_repeats_the_release() -> None:
    first = kinfold.anonymize(table(), policy("local-suppression", {}))
    again = kinfold.anonymize(table(), first.policy.record_choices(first.plan.method, first.plan.steps))
    assert again.frame.equals(first.frame)


def test_missing_values_need_no_choice_and_may_be_dropped() -> None:
    release = kinfold.anonymize(table(), policy("local-suppression", {"age": {"missing": "drop"}}))
    assert len(release.frame) == 60 - table().column("age").null_count
    with pytest.raises(PolicyError, match="imputed"):
        kinfold.anonymize(table(), policy("local-suppression", {"age": {"missing": "mean"}}))


def test_a_release_is_saved_and_both_checkers_agree(tmp_path: Any) -> None:
    kinfold.anonymize(table(), policy("local-suppression", {}, privacy={"l": 2})).save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).holds
    page = (tmp_path / "out" / "internal" / "report.html").read_text("utf-8")
    assert "left empty where its class differs" in page
