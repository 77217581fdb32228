"""The commands, as a person and as a program see them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import kinfold
from command import content, run, text

TABLE = "id;[/red]age;zip;disease\n" + "".join(
    f"p{i};{20 + i * 3 % 40};0213{i % 3};{'flu' if i % 2 else 'cold'}\n" for i in range(30)
)
ROLES = ("--quasi", "[/red]age,zip", "--confidential", "disease", "--identifier", "id", "-k", "3", "--method", "mdav")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table and three releases of it: sorted twice, and in the order of the table."""
    folder = tmp_path_factory.mktemp("desk")
    table = text(folder, "t.csv", TABLE)
    for name, more in {"out [red]": (), "again": ("--json",), "kept": ("--keep-order",)}.items():
        ran = run("anonymize", table, *ROLES, "--out", folder / name, *more).ok()
        text(folder, f"{name}.said", ran.out)
    return folder


def test_every_command_has_help_with_an_example() -> None:
    commands = [line.split()[1] for line in run("--help").out.splitlines() if line.startswith("│ ") and line[2] != " "]
    found = {name for name in commands if not name.startswith("-")}
    assert {"demo", "profile", "anonymize", "verify", "measure"} <= found
    for name in found:
        said = run(name, "--help").ok()
        assert f"kinfold {name}" in said.out, name


def test_the_version() -> None:
    assert run("--version").out.startswith("kinfold 0.")


def test_anonymize_tells_a_person_what_holds_what_it_cost_and_where_it_is(desk: Path) -> None:
    out, said = desk / "out [red]", (desk / "out [red].said").read_text()
    for words in ("3-anonymity: 3 found, 3 required, holds", "information lost: ", "risk of a record: "):
        assert words in said
    assert str(out / "public") in said
    assert (out / "public" / "release.csv").read_text().startswith("[/red]age;zip;disease\n")


def test_anonymize_tells_a_program_one_object(desk: Path) -> None:
    found = json.loads((desk / "again.said").read_text())
    assert (found["records"], found["released"], found["suppressed"], found["k"]) == (30, 30, 0, 3)
    assert found["asked"]["k"] == 3
    assert found["method"] == "mdav"
    assert set(found["l"]) == set(found["t"]) == {"disease"}
    assert 0 <= found["loss"]["sse_ratio"] <= 1
    assert {path.name for path in (desk / "again").rglob("*")} == {
        *("public", "release.csv", "certificate.json", "report.html"),
        *("dictionary.json", "dictionary.md", "datapackage.json"),
        *("internal", "audit.json", "policy.toml"),
    }


def test_rows_are_sorted_unless_their_order_is_to_be_kept(desk: Path) -> None:
    first, second = (
        (desk / name / "public" / "release.csv").read_text().splitlines()[1:] for name in ("again", "kept")
    )
    assert first == sorted(first) == sorted(second)
    assert [line.split(";")[2] for line in second] == [line.split(";")[3] for line in TABLE.splitlines()[1:]]


def test_a_run_and_the_policy_as_applied_repeat_the_release(desk: Path, tmp_path: Path) -> None:
    one, two = content(desk / "out [red]" / "public"), content(desk / "again" / "public")
    assert one == two
    run("anonymize", desk / "t.csv", "--policy", desk / "again/internal/policy.toml", "--out", tmp_path / "two").ok()
    two = content(tmp_path / "two" / "public")
    assert one["release.csv"] == two["release.csv"]
    assert one["certificate.json"] == two["certificate.json"]


def test_parquet_is_written_when_asked(desk: Path, tmp_path: Path) -> None:
    run("anonymize", desk / "t.csv", *ROLES, "--out", tmp_path / "out", "--format", "parquet").ok()
    assert (tmp_path / "out" / "public" / "release.parquet").exists()
    assert run("verify", tmp_path / "out").code == 0


def test_any_table_is_verified_against_a_policy(desk: Path) -> None:
    policy, release = desk / "again/internal/policy.toml", desk / "again/public/release.csv"
    assert run("verify", release, "--policy", policy).code == 0
    run("verify", desk / "t.csv", "--policy", policy).fails(5, "the column 'id' is in the release, but must be removed")
    stricter = run("verify", release, "--policy", policy, "--set", "privacy.k=9", "--json")
    stricter.fails(5, "9-anonymity does not hold: 3 found, 9 required")
    assert not stricter.json["holds"]
    assert run("verify", desk / "t.csv").code == 2


def test_measure_pairs_rows_by_position_or_says_why_not(desk: Path) -> None:
    table, policy = desk / "t.csv", desk / "kept/internal/policy.toml"

    def measured(name: str) -> Any:
        options = ("--policy", policy, "--json", "--show-values")
        return run("measure", table, desk / name / "public/release.csv", *options).ok().json

    for name in ("kept", "again"):
        audit = desk / name / "internal" / "audit.json"
        assert measured(name)["loss"] == json.loads(audit.read_text())["measures"]["loss"]
    audit.unlink()
    reordered = measured("again")
    assert reordered["loss"]["sse"] is None
    assert any("reordered" in note for note in reordered["notes"])
    itself = run("measure", table, table, "--policy", policy).ok()  # the baseline
    assert "a column that a release must not hold" in itself.out
    assert run("measure", table, table).code == 2


@pytest.mark.slow
@pytest.mark.compiled
def test_the_demo_is_made_again_each_time_but_not_over_other_things(tmp_path: Path) -> None:
    ran = run("demo", "--out", tmp_path / "demo").ok()
    assert "5-anonymity: 5 found, 5 required, holds" in ran.out
    before = (tmp_path / "demo" / "release" / "public" / "release.csv").read_bytes()
    assert run("demo", "--out", tmp_path / "demo").code == 0
    assert (tmp_path / "demo" / "release" / "public" / "release.csv").read_bytes() == before
    text(tmp_path / "demo", "thesis.txt", "ten years of work")
    run("demo", "--out", tmp_path / "demo").fails(2, "holds files that do not belong to the demo")


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
