"""Planted errors: each mistake that a maker, a writer or a checker could make, made on purpose, stops the release."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from kinfold.errors import VerifyError
from kinfold.methods.partition import mdav
from kinfold.models import KAnonymity, TCloseness
from kinfold.models import t_closeness as emd
from kinfold.tables.duckdb.engine import DuckDB, Frame
from kinfold.tables.queries import collect_rows
from kinfold.tables.tally import Tally, is_null, tally_labels

Edit = Callable[[pa.Table], pa.Table]
pytestmark = pytest.mark.trust("planted errors")


def table(seed: int = 0) -> pa.Table:
    random = np.random.default_rng(seed)
    zips = [None if i % 9 == 0 else "abc"[i % 3] for i in range(60)]
    wages = [None if i % 11 == 0 else int(wage) for i, wage in enumerate(random.integers(0, 9, 60))]
    return pa.table({"age": random.integers(20, 60, 60), "zip": zips, "wage": wages})


def asked(**more: Any) -> dict[str, Any]:
    return {"quasi": ["age", "zip"], "confidential": ["wage"], "k": 5, "method": "mdav", **more}


def stopped(folder: Path, **more: Any) -> str:
    """Make a release that must not come to be; return what was said, and see that nothing is left."""
    with pytest.raises(VerifyError) as caught:
        kinfold.anonymize(table(), **asked(**more)).save(folder / "out")
    assert not list(folder.iterdir())
    return str(caught.value)


def test_without_a_mistake_it_is_released(tmp_path: Path) -> None:
    kinfold.anonymize(table(), **asked(t=0.5)).save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).holds


# Mistakes of the maker


def test_classes_one_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = mdav.run

    def short(records: Any, task: Any, progress: Any) -> Any:
        models = [KAnonymity(task.k - 1), *(model for model in task.models if model.column is not None)]
        privacy = task.policy.request.privacy.model_copy(update={"k": task.k - 1})
        policy = replace(task.policy, request=task.policy.request.model_copy(update={"privacy": privacy}))
        return real(records, replace(task, policy=policy, models=models), progress)

    monkeypatch.setattr(mdav, "run", short)
    assert "5-anonymity does not hold" in stopped(tmp_path)


def test_a_record_of_one_class_with_a_value_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = DuckDB.apply

    def swapped(engine: DuckDB, frame: Frame, recoding: Any, schema: Any) -> Frame:
        released = collect_rows(engine, real(engine, frame, recoding, schema))
        ages = released.column("age").to_pylist()
        other = next(i for i, age in enumerate(ages) if age != ages[0])
        ages[0], ages[other] = ages[other], ages[0]
        zips = released.column("zip").to_pylist()
        zips[0] = "abc"["abc".index(zips[other] or "a") - 1]
        changed = released.set_column(0, "age", pa.array(ages, released.schema.field("age").type))
        return engine.read(changed.set_column(1, "zip", pa.array(zips)))

    monkeypatch.setattr(DuckDB, "apply", swapped)
    assert "5-anonymity does not hold" in stopped(tmp_path)


# Mistakes of the writer: what is on disk is not what was judged


def writing(monkeypatch: pytest.MonkeyPatch, edit: Edit) -> None:
    real = DuckDB.write

    def wrong(engine: DuckDB, frame: Frame, path: Path, schema: Any, **form: bool) -> None:
        changed = engine.read(edit(collect_rows(engine, frame)))
        real(engine, changed, path, schema, **form)

    monkeypatch.setattr(DuckDB, "write", wrong)


def nulls_lost(rows: pa.Table) -> pa.Table:
    return rows.set_column(2, "wage", rows.column("wage").fill_null(3))


def nulls_as_text(rows: pa.Table) -> pa.Table:
    return rows.set_column(1, "zip", rows.column("zip").fill_null("NA"))


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda rows: rows.slice(1), "4 found, 5 required"),
        (lambda rows: pa.concat_tables([rows, rows.slice(0, 1)]), "not those of the rows before they were written"),
        (nulls_lost, "not those of the rows before they were written"),
        (lambda rows: rows.append_column("index", pa.array(range(len(rows)))), "'index' is in the release"),
        (lambda rows: rows.drop_columns(["zip"]), "'zip' is not in the release"),
        (lambda rows: rows.set_column(2, "wage", pa.array([None] * len(rows), pa.int64())), "not those of the rows"),
        (lambda rows: rows.set_column(2, "wage", pa.array(["x"] * len(rows))), "values are not"),
        (lambda rows: rows.set_column(1, "zip", pa.array([str(i) for i in range(len(rows))])), "does not hold"),
    ],
)
def test_a_file_that_is_not_what_was_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: Edit, said: str, form: str
) -> None:
    writing(monkeypatch, edit)
    assert said in stopped(tmp_path, format=form)


def test_nulls_written_as_a_word_are_nulls_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A null among other values of a class becomes a class of its own."""
    writing(monkeypatch, lambda rows: rows.set_column(2, "wage", pa.array([1, *rows.column("wage").to_pylist()[1:]])))
    assert "not those of the rows" in stopped(tmp_path)


def test_a_stale_file_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    for seed in (0, 1):
        kinfold.anonymize(table(seed), **asked()).save(tmp_path / str(seed))
    shutil.copy(tmp_path / "0/public/release.csv", tmp_path / "1/public/release.csv")
    with pytest.raises(VerifyError, match=r"'release.csv' was changed"):
        kinfold.verify(tmp_path / "1")
    shutil.copy(tmp_path / "0/public/certificate.json", tmp_path / "1/public/certificate.json")
    with pytest.raises(VerifyError, match=r"'report.html' was changed"):
        kinfold.verify(tmp_path / "1")
    (tmp_path / "0/public/release.parquet").write_bytes(b"old")
    with pytest.raises(VerifyError, match=r"'release.parquet' is in"):
        kinfold.verify(tmp_path / "0")


# Mistakes of the engine's checker: the plain one does not share them


def test_k_off_by_one_in_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = KAnonymity.check
    monkeypatch.setattr(KAnonymity, "check", lambda model, tally: replace(real(model, tally), found=6))
    assert "do not agree on promises" in stopped(tmp_path)


def test_t_over_the_ranks_of_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def on_ranks(model: TCloseness, tally: Tally) -> emd.ClassDistances:
        spread = tally.spreads[model.column]
        labels = np.repeat(spread.group, spread.count)
        ranks = np.argsort(np.argsort(np.repeat(spread.code, spread.count), kind="stable"), kind="stable")
        ranked = tally_labels(labels, {model.column: ranks})
        return emd.ordered_work(ranked.spreads[model.column], ranked.sizes)

    monkeypatch.setattr(TCloseness, "work", on_ranks)
    assert "do not agree on found" in stopped(tmp_path, t=0.9)


def test_null_that_is_no_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = DuckDB.tally

    def without(engine: DuckDB, frame: Frame, by: Any, of: Any) -> Tally:
        found = real(engine, frame, by, of)
        rows = {name: ~is_null(s.values)[s.code] for name, s in found.spreads.items()}
        spreads = {
            name: replace(s, group=s.group[rows[name]], code=s.code[rows[name]], count=s.count[rows[name]])
            for name, s in found.spreads.items()
        }
        return replace(found, spreads=spreads)

    monkeypatch.setattr(DuckDB, "tally", without)
    assert "do not agree" in stopped(tmp_path)


def test_nulls_that_do_not_group_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = DuckDB.tally

    def joined(engine: DuckDB, frame: Frame, by: Any, of: Any) -> Tally:
        found = real(engine, frame, by, of)
        lost = (
            np.array([value is None for value in found.keys["zip"]])
            if "zip" in found.keys
            else np.zeros(len(found), bool)
        )
        return found.drop(lost) if lost.any() else found

    monkeypatch.setattr(DuckDB, "tally", joined)
    assert "do not agree" in stopped(tmp_path)


def test_values_told_apart_as_doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = DuckDB._exact_sql

    def rounded(engine: DuckDB, frame: Frame, name: str, reading: Any) -> str:
        value = real(engine, frame, name, reading)
        return f"CAST({value} AS DOUBLE)"

    monkeypatch.setattr(DuckDB, "_exact_sql", rounded)
    accounts = table().set_column(2, "wage", pa.array([123456789012345678 + i for i in range(60)]))
    with pytest.raises(VerifyError, match="do not agree"):
        kinfold.anonymize(accounts, **asked()).save(tmp_path / "out")
