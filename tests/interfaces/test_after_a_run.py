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


# Distribution shift


def swiss(records: int = 60) -> pd.DataFrame:
    """Return people of whom a few are from elsewhere, far apart in age."""
    foreign = {0: "Z1", 20: "Z2", 40: "Z2"}
    return pd.DataFrame(
        {
            "age": [20 + i for i in range(records)],
            "nation": [foreign.get(i, "CH") for i in range(records)],
            "ward": [("a", "b")[i % 2] for i in range(records)],
        }
    )


SWISS = {"quasi": ["age", "nation"], "confidential": ["ward"], "k": 6, "method": "mdav"}


def test_categories_that_vanish_are_found_in_their_order() -> None:
    shift = kinfold.anonymize(swiss(), **SWISS).measures["loss"]["shift"]
    assert [*shift] == ["nation"]
    assert (shift["nation"]["vanished"], shift["nation"]["moved"]) == (2, 0)
    assert [move["value"] for move in shift["nation"]["moves"]] == ["Z2", "Z1"]
    assert shift["nation"]["moves"][0] == {"value": "Z2", "before": pytest.approx(2 / 60), "after": 0.0}


def test_an_unchanged_table_has_no_shift() -> None:
    assert kinfold.measure(swiss(), swiss(), **{**SWISS, "k": 2})["loss"]["shift"] == {}


def test_quantiles_that_move_are_found() -> None:
    moved = swiss().assign(age=lambda rows: rows.age.clip(upper=60))
    found = kinfold.measure(swiss(), moved, **{**SWISS, "k": 2})["loss"]["shift"]["age"]
    assert (found["vanished"], found["moved"]) == (0, 2)
    assert [(each["quantile"], each["before"], each["after"]) for each in found["moves"]] == [
        (0.95, pytest.approx(76.05), 60.0),
        (0.75, pytest.approx(64.25), 60.0),
    ]
    assert found["most"] == pytest.approx((76.05 - 60) / swiss().age.std(ddof=0))


def test_ranges_are_left_out_with_a_note() -> None:
    policy = {
        "privacy": {"k": 6},
        "method": {"name": "mdav"},
        "columns": {
            "age": {"role": "quasi", "average": "generalize"},
            "nation": {"role": "quasi", "average": "generalize"},
            "ward": {"role": "confidential"},
        },
    }
    measures = kinfold.anonymize(swiss(), policy).measures
    assert [*measures["loss"]["shift"]] == ["nation"]
    assert measures["loss"]["shift"]["nation"]["moves"][0]["value"] == "*"  # no value, but not a label of values
    (note,) = [note for note in measures["notes"] if note.startswith("loss.shift")]
    assert note.endswith(": 'age'")


def test_the_command_names_categories_only_if_asked(tmp_path: Path) -> None:
    swiss().to_csv(tmp_path / "swiss.csv", index=False)
    request = ("--quasi", "age,nation", "--confidential", "ward", "-k", "6", "--method", "mdav", "--others", "drop")
    command = ("anonymize", tmp_path / "swiss.csv", *request, "--out", tmp_path / "out", "--force")
    said = run(*command).ok().out
    assert "nation: 2 categories vanished, the largest move is 3.3 points" in said
    assert "Z1" not in said
    assert "nation: Z2 3.3 -> 0 %, Z1 1.7 -> 0 %" in run(*command, "--show-values").ok().out
    quiet, told = run(*command, "--json").ok().out, run(*command, "--json", "--show-values").ok().out
    assert '"vanished": 2' in quiet
    assert "Z1" not in quiet
    assert "Z1" in told


def test_the_internal_page_names_what_moved_and_the_public_one_does_not(tmp_path: Path) -> None:
    kinfold.anonymize(swiss(), **SWISS).save(tmp_path / "out")
    internal, public = (text_of(tmp_path / "out" / part / "report.html") for part in ("internal", "public"))
    assert re.search(r"Distribution shift.* nation 2 vanished, 0 moved Z2 3\.3% vanished Z1 1\.7% vanished", internal)
    assert "Distribution shift" not in public
    assert "Z1" not in public
