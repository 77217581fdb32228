"""What a steward reads after a run: removed columns, and what changed in those that are left."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import kinfold
from command import run


def people(records: int = 60) -> pd.DataFrame:
    """Return people who do not exist, with three columns that nobody needs."""
    return pd.DataFrame(
        {
            "name": [f"p{i}" for i in range(records)],
            "card": [f"c{i}" for i in range(records)],
            "age": [20 + i * 7 % 50 for i in range(records)],
            "town": [("Bern", "Bern", "Bern", "Chur")[i % 4] for i in range(records)],
            "ward": [("a", "b", "c")[i % 3] for i in range(records)],
            "note": [f"n{i}" for i in range(records)],
        }
    )


REQUEST: dict[str, Any] = {
    "privacy": {"k": 3},
    "method": {"name": "mdav"},
    "columns": {
        "name": {"role": "identifier"},
        "card": {"role": "identifier"},
        "age": {"role": "quasi", "type": "continuous"},
        "town": {"role": "quasi", "type": "nominal"},
    },
    "output": {"others": "drop"},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("after") / "out"
    kinfold.anonymize(people(), REQUEST).save(out)
    return out


def text_of(page: Path) -> str:
    return " ".join(re.sub(r"<style.*?</style>|<[^>]*>", "", page.read_text("utf-8"), flags=re.DOTALL).split())


def test_removed_columns_are_counted() -> None:
    measures = kinfold.anonymize(people(), REQUEST).measures
    assert (measures["loss"]["removed_columns"], measures["columns"]) == (4, 6)
    assert kinfold.measure(people(), people()[["age", "town"]], REQUEST)["loss"]["removed_columns"] == 4
    keep = {**REQUEST, "columns": {name: {"role": "quasi"} for name in ("age", "town")}}
    pair = people()[["age", "town"]]
    assert kinfold.anonymize(pair, keep).measures["loss"]["removed_columns"] == 0


@pytest.mark.parametrize("part", ["public", "internal"])
def test_both_pages_say_what_was_removed_beside_the_loss(folder: Path, part: str) -> None:
    assert re.search(
        r"4 of 6 columns removed; [\d.]+% of the information in the other 2 lost",
        text_of(folder / part / "report.html"),
    )


def test_the_command_says_what_was_removed_beside_the_loss(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    roles = ("--identifier", "name,card", "--quasi", "age", "--confidential", "ward", "--others", "release", "-k", "3")
    said = run("anonymize", tmp_path / "people.csv", *roles, "--out", tmp_path / "out").ok().out
    assert re.search(r"2 of 6 columns removed; the 1 quasi-identifier among the other 4 lost [\d.]+%", said)
