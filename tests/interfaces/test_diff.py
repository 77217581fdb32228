"""`kinfold diff`: two releases or two policies side by side, without values of the data."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import kinfold
from command import run

TABLE = pd.DataFrame(
    {
        "age": [20 + i * 7 % 50 for i in range(60)],
        "town": [("Bern", "Bern", "Chur")[i % 3] for i in range(60)],
        "ward": [("a", "b", "c", "d")[i % 4] for i in range(60)],
    }
)


def policy(k: int, **town: Any) -> dict[str, Any]:
    columns = {"age": {"role": "quasi"}, "town": {"role": "quasi", **town}, "ward": {"role": "confidential", "l": 2}}
    return {"privacy": {"k": k}, "method": {"name": "mdav"}, "columns": columns}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    kinfold.anonymize(TABLE, policy(3)).save(folder / "a")
    kinfold.anonymize(TABLE, policy(6, map={"Chur": "Secret"})).save(folder / "b")
    return folder


def test_two_releases_have_the_figures_of_their_certificates_and_audits(desk: Path) -> None:
    found = run("diff", desk / "a", desk / "b", "--json").ok().json
    verdicts = [kinfold.verify(desk / name) for name in "ab"]
    assert found["kind"] == "releases"
    assert found["promises"]["k-anonymity, asked"] == {"a": 3, "b": 6, "same": False}
    assert found["promises"]["k-anonymity, found"] == {"a": verdicts[0].k, "b": verdicts[1].k, "same": False}
    assert found["promises"]["distinct l-diversity of ward, asked"] == {"a": 2, "b": 2, "same": True}
    assert found["columns"]["age"] == {"a": "quasi-identifier, continuous, mean", "b": found["columns"]["age"]["b"]} | {
        "same": True
    }
    assert found["risk"]["prosecutor_max"]["a"] == 1 / verdicts[0].k
    assert 0 < found["loss"]["overall"]["a"] < found["loss"]["overall"]["b"]
    assert found["loss"]["age (column)"]["a"] > 0
    assert found["notes"] == []


def test_a_public_folder_has_no_loss_and_says_so(desk: Path, tmp_path: Path) -> None:
    public = shutil.copytree(desk / "b" / "public", tmp_path / "received")
    found = run("diff", desk / "a", public, "--json").ok().json
    assert found["loss"]["overall"]["b"] is None
    assert found["risk"]["prosecutor_max"]["b"] == 1 / kinfold.verify(public).k
    assert [note for note in found["notes"] if "received" in note and "loss is unknown" in note] == found["notes"]


def test_two_policies_differ_in_their_keys_and_no_value_is_shown(desk: Path) -> None:
    files = [desk / name / "internal" / "policy.toml" for name in "ab"]
    said = run("diff", *files).ok().out
    assert "privacy" in said
    assert "town.map" in said
    assert "1 entry" in said
    assert "Secret" not in said + run("diff", *files, "--json", "--all").ok().out
    assert "l" not in [line.split()[0] for line in said.splitlines() if line.split()]  # the same in both
    assert "age" in run("diff", *files, "--all").ok().out


def test_what_is_the_same_has_one_line(desk: Path) -> None:
    assert run("diff", desk / "a", desk / "a").ok().out == "the releases do not differ\n"


AUDITS = ("{", "[]", '{"measures": 5}', '{"measures": {"risk": 5, "loss": {}, "suppressed": 1}}')


@pytest.mark.parametrize("audit", [*AUDITS, '{"measures": {"risk": {}, "loss": {"by_column": 5}, "suppressed": 1}}'])
def test_an_audit_of_another_shape_counts_as_none(desk: Path, audit: str, tmp_path: Path) -> None:
    copy = shutil.copytree(desk / "b", tmp_path / "copy")
    (copy / "internal" / "audit.json").write_text(audit, "utf-8")
    found = run("diff", desk / "a", copy, "--json").ok().json
    assert found["loss"]["overall"]["b"] is None
    assert "has no internal/audit.json" in found["notes"][0]


@pytest.mark.parametrize(
    ("other", "code", "words"),
    [
        ("a/internal/policy.toml", 2, "cannot be compared"),
        ("nothing", 3, "no such file"),
        ("a/internal", 3, "no certificate"),
    ],
)
def test_other_things_are_refused(desk: Path, other: str, code: int, words: str) -> None:
    run("diff", desk / "b", desk / other).fails(code, words)
