"""The rows of a run before and after: what changed, what is suppressed, the order, the classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from kinfold.pipeline import open_engine
from kinfold.studio.release_rows import ReleaseRows, collect_texts, write_rows
from kinfold.tables.source_form import SourceForm

TABLE = "name;age;sex;disease\nA;31;m;flu\nB;34;m;cold\nC;;f;flu\nD;58;f;ulcer\nE;61,5;f;flu\nF;60;;cold\n"


@pytest.fixture
def rows() -> ReleaseRows:
    """Six records: two classes and a suppressed record; a starred and a blanked cell."""
    before = pa.table({"name": list("ABCDEF"), "age": ["31", "34", "9", "10", None, "6"], "sex": list("mmffff")})
    after = pa.table({"age": ["32", "32", "*", "*", None], "sex": ["m", "m", "f", None, "f"]})
    risk = np.array([0.5, 0.5, 0.4, 0.3, np.nan, 0.3])
    return ReleaseRows(before, after, np.array([0, 0, 1, 1, -1, 1]), risk, ("age", "sex"))


def chosen(rows: ReleaseRows, show: str = "all", order: str = "record", **more: object) -> list[int]:
    column, group = more.get("column"), more.get("group")
    return rows.select(show, column, group, order, down=bool(more.get("down"))).tolist()  # type: ignore[arg-type]


def test_filters_keep_what_they_say(rows: ReleaseRows) -> None:
    assert chosen(rows, "changed") == [0, 1, 2, 3, 5]
    assert chosen(rows, "changed", column="sex") == [3]
    assert chosen(rows, "cells") == [2, 3, 5]
    assert chosen(rows, "cells", column="sex") == [3]
    assert chosen(rows, "cells", column="name") == []
    assert chosen(rows, "suppressed") == [4]
    assert chosen(rows, "risk") == [0, 1]
    assert chosen(rows, group=1) == [2, 3, 5]
    assert rows.counts == {"all": 6, "changed": 5, "suppressed": 1, "cells": 3, "risk": 2}


def test_orders_are_by_number_and_keep_ties(rows: ReleaseRows) -> None:
    assert chosen(rows, order="age") == [5, 2, 3, 0, 1, 4]  # 6 before 10: numbers, not texts; missing last
    assert chosen(rows, order="name", down=True) == [5, 4, 3, 2, 1, 0]
    assert chosen(rows, order="risk", down=True) == [0, 1, 2, 3, 5, 4]
    assert chosen(rows, order="class") == [4, 0, 1, 2, 3, 5]
    assert chosen(rows, order="no such column") == [0, 1, 2, 3, 4, 5]


def test_a_page_has_both_sides(rows: ReleaseRows) -> None:
    first, gone = rows.describe_page(np.array([3, 4]))
    assert (first["before"], first["after"]) == (["D", "10", "f"], [None, "*", None])
    assert first["changed"] == [None, True, True]
    assert (first["class"], first["size"], first["risk"]) == (1, 3, 0.3)
    assert (gone["class"], gone["size"], gone["risk"], gone["after"]) == (None, None, None, [None] * 3)


def test_classes_are_sorted_by_size_or_risk(rows: ReleaseRows) -> None:
    by_size = rows.describe_classes("size", 0, 10, down=True)
    assert [(each["class"], each["size"], each["risk"], each["values"]) for each in by_size] == [
        (1, 3, 0.4, ["*", "f"]),
        (0, 2, 0.5, ["32", "m"]),
    ]
    assert [each["class"] for each in rows.describe_classes("risk", 0, 1, down=True)] == [0]


def test_the_rows_of_a_release_are_those_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(TABLE, "utf-8")
    form = SourceForm(decimal=",")
    keys = {"source": {"decimal": ","}, "privacy": {"k": 3}, "method": {"name": "mdav"}}
    columns = {
        "name": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "missing": "separate", "missing_rare": "drop"},
        "sex": {"role": "quasi-identifier"},
        "disease": {"role": "other"},
    }
    release = kinfold.anonymize(tmp_path / "table.csv", {**keys, "columns": columns})
    write_rows(release, tmp_path)
    with open_engine() as engine:
        before = collect_texts(engine, engine.read(tmp_path / "table.csv", (), form))
    rows = ReleaseRows.load(before, form, tmp_path)
    assert rows.quasi == ("age", "sex")
    assert sorted(rows.sizes.tolist()) == sorted(np.bincount(release.labels).tolist())
    assert not rows.changed["disease"].any()  # nothing but the notation of both sides could differ
    assert rows.counts["suppressed"] == release.measures["suppressed"]
