"""The commands, as a person and as a program see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kinfold
from command import content, run, text

TABLE = "id;[/red]age;zip;disease\n" + "".join(
    f"p{i};{20 + i * 3 % 40};0213{i % 3};{'flu' if i % 2 else 'cold'}\n" for i in range(30)
)
ROLES = ("--quasi", "[/red]age,zip", "--confidential", "disease", "--identifier", "id", "-k", "3", "--method", "mdav")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return text(tmp_path, "t.csv", TABLE)


def test_every_command_has_help_with_an_example() -> None:
    commands = [line.split()[1] for line in run("--help").out.splitlines() if line.startswith("│ ") and line[2] != " "]
    found = {name for name in commands if not name.startswith("-")}
    assert {"demo", "profile", "anonymize", "verify", "measure"} <= found
    for name in found:
        said = run(name, "--help")
        assert said.code == 0
        assert f"kinfold {name}" in said.out, name


def test_the_version() -> None:
    assert run("--version").out.startswith("kinfold 0.")


def test_anonymize_tells_a_person_what_holds_what_it_cost_and_where_it_is(table: Path, tmp_path: Path) -> None:
    ran = run("anonymize", table, *ROLES, "--out", tmp_path / "out [red]")
    assert ran.code == 0, ran.err
    assert "3-anonymity: 3 found, 3 asked" in ran.out
    assert "information lost: " in ran.out
    assert "risk of a record: " in ran.out
    assert str(tmp_path / "out [red]" / "public") in ran.out
    assert (tmp_path / "out [red]" / "public" / "release.csv").read_text().startswith("[/red]age;zip;disease\n")


def test_anonymize_tells_a_program_one_object(table: Path, tmp_path: Path) -> None:
    found = run("anonymize", table, *ROLES, "--out", tmp_path / "out", "--json").json
    assert (found["records"], found["released"], found["suppressed"], found["k"]) == (30, 30, 0, 3)
    assert found["asked"]["k"] == 3
    assert found["method"] == "mdav"
    assert set(found["l"]) == set(found["t"]) == {"disease"}
    assert 0 <= found["loss"]["sse_ratio"] <= 1
    assert {path.name for path in (tmp_path / "out").rglob("*")} == {
        *("public", "release.csv", "certificate.json", "report.html"),
        *("internal", "audit.json", "policy.toml"),
    }


def test_rows_are_sorted_unless_their_order_is_to_be_kept(table: Path, tmp_path: Path) -> None:
    run("anonymize", table, *ROLES, "--out", tmp_path / "sorted")
    run("anonymize", table, *ROLES, "--out", tmp_path / "kept", "--keep-order")
    first, second = (
        (tmp_path / name / "public" / "release.csv").read_text().splitlines()[1:] for name in ("sorted", "kept")
    )
    assert first == sorted(first) == sorted(second)
    assert [line.split(";")[2] for line in second] == [line.split(";")[3] for line in TABLE.splitlines()[1:]]


def test_the_policy_as_applied_repeats_the_run(table: Path, tmp_path: Path) -> None:
    run("anonymize", table, *ROLES, "--out", tmp_path / "one")
    again = run(
        "anonymize", table, "--policy", tmp_path / "one" / "internal" / "policy.toml", "--out", tmp_path / "two"
    )
    assert again.code == 0, again.err
    one, two = content(tmp_path / "one" / "public"), content(tmp_path / "two" / "public")
    assert one["release.csv"] == two["release.csv"]
    assert one["certificate.json"] == two["certificate.json"]


def test_the_public_folder_is_the_same_bytes_twice(table: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        run("anonymize", table, *ROLES, "--out", tmp_path / name)
    assert content(tmp_path / "one" / "public") == content(tmp_path / "two" / "public")


def test_parquet_is_written_when_asked(table: Path, tmp_path: Path) -> None:
    assert run("anonymize", table, *ROLES, "--out", tmp_path / "out", "--format", "parquet").code == 0
    assert (tmp_path / "out" / "public" / "release.parquet").exists()
    assert run("verify", tmp_path / "out").code == 0


def test_any_table_is_verified_against_a_policy(table: Path, tmp_path: Path) -> None:
    run("anonymize", table, *ROLES, "--out", tmp_path / "out")
    policy = tmp_path / "out" / "internal" / "policy.toml"
    assert run("verify", tmp_path / "out" / "public" / "release.csv", "--policy", policy).code == 0
    original = run("verify", table, "--policy", policy)
    assert original.code == 5
    assert "the identifier 'id' is in the release" in original.err
    stricter = run(
        "verify", tmp_path / "out" / "public" / "release.csv", "--policy", policy, "--set", "privacy.k=9", "--json"
    )
    assert stricter.code == 5
    assert not stricter.json["holds"]
    assert "9-anonymity does not hold: 3 found, 9 asked" in stricter.err
    assert run("verify", table).code == 2


def test_measure_pairs_rows_by_position_or_says_why_not(table: Path, tmp_path: Path) -> None:
    for name, more in (("sorted", ()), ("kept", ("--keep-order",))):
        run("anonymize", table, *ROLES, "--out", tmp_path / name, *more)
    policy = tmp_path / "kept" / "internal" / "policy.toml"

    def measured(name: str, *more: str) -> dict[str, object]:
        found = run("measure", table, tmp_path / name / "public" / "release.csv", "--policy", policy, "--json", *more)
        assert found.code == 0, found.err
        return dict(found.json)

    audit = json.loads((tmp_path / "kept" / "internal" / "audit.json").read_text())["measures"]
    assert measured("kept")["loss"] == audit["loss"]
    sorted_audit = tmp_path / "sorted" / "internal" / "audit.json"
    assert measured("sorted")["loss"] == json.loads(sorted_audit.read_text())["measures"]["loss"]
    sorted_audit.unlink()
    reordered = measured("sorted")
    assert reordered["loss"]["sse"] is None  # type: ignore[index]
    assert any("reordered" in note for note in reordered["notes"])  # type: ignore[union-attr,attr-defined]
    itself = run("measure", table, table, "--policy", policy)  # the baseline
    assert itself.code == 0
    assert "an identifier that a release must not hold" in itself.out
    assert run("measure", table, table).code == 2


@pytest.mark.slow
@pytest.mark.compiled
def test_the_demo_is_made_again_each_time_but_not_over_other_things(tmp_path: Path) -> None:
    ran = run("demo", "--out", tmp_path / "demo")
    assert ran.code == 0, ran.err
    assert "5-anonymity: 5 found, 5 asked" in ran.out
    before = (tmp_path / "demo" / "release" / "public" / "release.csv").read_bytes()
    assert run("demo", "--out", tmp_path / "demo").code == 0
    assert (tmp_path / "demo" / "release" / "public" / "release.csv").read_bytes() == before
    text(tmp_path / "demo", "thesis.txt", "ten years of work")
    refused = run("demo", "--out", tmp_path / "demo")
    assert refused.code == 2
    assert "holds other things than the demo" in refused.err


@pytest.mark.slow
def test_completion_can_be_installed_and_completes_commands_and_options(tmp_path: Path) -> None:
    call = [sys.executable, "-c", "import sys; sys.argv[0] = 'kinfold'; from kinfold.cli import main; main()"]
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # the shell is named: tests may not run in one
    where = {**os.environ, **named, "PYTHONPATH": str(Path(kinfold.__file__).parents[1]), "HOME": str(tmp_path)}

    def said(*args: str, **more: str) -> str:
        ran = subprocess.run([*call, *args], env={**where, **more}, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    assert said(_KINFOLD_COMPLETE="complete_bash", COMP_WORDS="kinfold ano", COMP_CWORD="1").split() == ["anonymize"]
    asked = {"_KINFOLD_COMPLETE": "complete_bash", "COMP_WORDS": "kinfold compare --me", "COMP_CWORD": "2"}
    assert said(**asked).split() == ["--methods"]
    assert "_KINFOLD_COMPLETE" in said("--show-completion", "bash")
    said("--install-completion", "bash")
    assert "kinfold" in (tmp_path / ".bashrc").read_text("utf-8")
