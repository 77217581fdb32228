"""A release is read with the separator that it was written with, whatever else its fields hold."""

from __future__ import annotations

from pathlib import Path

import pytest

import kinfold
from everyday import first


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("other", first([";", ",", "\t", "|"]))
def test_fields_that_hold_another_separator(tmp_path: Path, mark: str, other: str) -> None:
    """Names and values of which every line has the same number: nothing in the file says which one is meant."""
    rows = [f"{i % 2}{other}{i % 2}" for i in range(8)]
    header = f"{'last' + other + 'first'!s}"
    lines = [mark.join(f'"{field}"' for field in (header, "ill")), *(mark.join((f'"{row}"', "x")) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    release = kinfold.anonymize(tmp_path / "t.csv", quasi=[header], confidential=["ill"], k=2, method="mdav")
    release.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).k == 4


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("other", first([";", ",", "\t", "|"]))
def test_a_single_column_that_holds_another_separator(tmp_path: Path, mark: str, other: str) -> None:
    """The file looks like one of two columns: only its certificate knows that it has one."""
    header = f"last{other}first"
    lines = [f'"{header}"{mark}id', *(f'"{i % 2}{other}{i % 2}"{mark}{i}' for i in range(8))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    release = kinfold.anonymize(tmp_path / "t.csv", quasi=[header], identifier=["id"], k=2, method="mdav")
    release.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).k == 4
