"""Values that look alike make a class seem diverse: counted and told, never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kinfold
from command import run, text
from kinfold.rows.lookalikes import folded, look_alikes

ALIKE = [
    ("HIV", "hiv"),
    ("HIV", "HIV "),
    ("HIV", "\tHIV"),
    ("HIV", "HIV\u00a0"),
    ("HIV", "H\u200bIV"),
    ("HIV", "\ufeffHIV"),
    ("HIV", "HI\u00adV"),
    ("HIV", "\uff28\uff29\uff36"),
    ("Straße", "STRASSE"),
    ("caf\u00e9", "cafe\u0301"),
    ("\ufb01sh", "fish"),
    ("lung cancer", "Lung\u00a0 Cancer"),
    ("\u212b", "\u00e5"),
    ("a\ufe0f", "a"),
    ("\u2126", "\u03c9"),
]
APART = [("HIV", "HIV-1"), ("flu", "flux"), ("e", "\u00e9"), ("1", "1.0"), ("ab", "a b"), ("", "x")]


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_values_that_look_alike(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_values_that_do_not(one: str, other: str) -> None:
    assert folded(one) != folded(other)


def test_groups_values_and_records_are_counted() -> None:
    found = look_alikes({"HIV": 5, "hiv": 2, "HIV ": 1, "flu": 9, "Cold": 1, "cold": 1})
    assert (found.groups, found.values, found.records) == (2, 5, 10)


def test_many_values_of_which_few_look_alike() -> None:
    found = look_alikes({f"value {i}": 1 for i in range(200_000)} | {"Value 7": 2, "VALUE 9 ": 3})
    assert (found.groups, found.values, found.records) == (2, 4, 7)


DISEASE = ["HIV", "hiv", "HIV ", "flu", "flu", "cold", "Gout", "gout"] * 2
TOLD = "'disease': 5 values in 2 groups differ only in case"


def table() -> pa.Table:
    return pa.table({"age": list(range(16)), "disease": DISEASE, "note": ["x", "X"] * 8})


def policy(**disease: Any) -> dict[str, Any]:
    columns = {
        "age": {"role": "quasi", "type": "continuous"},
        "disease": {"role": "confidential", **disease},
        "note": {"role": "other"},
    }
    return {"privacy": {"k": 4, "l": 2}, "method": {"name": "mdav"}, "columns": columns}


@pytest.mark.parametrize(
    "disease", [{}, {"type": "ordinal", "order": sorted(set(DISEASE))}], ids=["nominal", "ordinal"]
)
def test_look_alikes_are_told_in_both_reports_and_to_the_caller(disease: Any, tmp_path: Path) -> None:
    release = kinfold.anonymize(table(), policy(**disease))
    told = [warning for warning in release.measures.warnings if "differ only in case" in warning]
    assert len(told) == 1  # nobody tells the notes apart
    assert told[0].startswith(TOLD)
    assert "(10 records)" in told[0]
    assert not any(value in told[0] for value in ("HIV", "hiv", "Gout", "gout"))
    release.save(tmp_path / "out")
    for page in (tmp_path / "out").glob("*/report.html"):
        assert "5 values in 2 groups differ only in case" in page.read_text()


def test_quasi_identifiers_that_look_alike_are_told_too() -> None:
    asked = {"privacy": {"k": 2}, "columns": {"city": {"role": "quasi"}}}
    release = kinfold.anonymize(pa.table({"city": ["Ulm", "ulm", "Ulm", "ulm"]}), asked)
    assert any("'city': 2 values in 1 group" in warning for warning in release.measures.warnings)


def test_the_public_page_speaks_of_what_is_released_only(tmp_path: Path) -> None:
    ages = [None if value == "hiv" else i for i, value in enumerate(DISEASE)]
    rows = table().set_column(0, "age", pa.array(ages, pa.int64()))
    asked = policy()
    asked["columns"]["age"]["missing"] = "drop"
    kinfold.anonymize(rows, asked).save(tmp_path / "out")
    assert "4 values in 2 groups" in (tmp_path / "out" / "public" / "report.html").read_text()
    assert "5 values in 2 groups" in (tmp_path / "out" / "internal" / "report.html").read_text()


def test_a_profile_and_the_console_warn(tmp_path: Path) -> None:
    assert any(warning.startswith(TOLD) for warning in kinfold.profile(table()).warnings)
    lines = [f"{age},{disease}" for age, disease in enumerate(DISEASE)]
    data = text(tmp_path, "t.csv", "\n".join(["age,disease", *lines]) + "\n")
    assert TOLD in run("profile", data).out
    ran = run("anonymize", data, "--quasi", "age", "--confidential", "disease", "-k", 4, "--out", tmp_path / "out")
    assert TOLD in ran.out
