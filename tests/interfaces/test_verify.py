"""`verify` hears everything it is told: the certificate, a recipient's own policy, and what lies beside them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import kinfold
from command import Ran, run, text
from kinfold.errors import PolicyError, VerifyError
from kinfold.release.certificate import Certificate

TABLE = "pid,age,zip,disease,wage,note\n" + "".join(
    f"{i // 2},{20 + i},{'ab'[i % 2]},{['flu', 'cold', 'hiv'][i % 3]},{1000 + i},n{i}\n" for i in range(30)
)
COLUMNS = """
[columns]
pid = { role = "identifier" }
age = { role = "quasi" }
zip = { role = "quasi" }
disease = { role = "confidential" }
wage = { role = "confidential", type = "continuous" }
note = { role = "other" }
"""
POLICY = "[privacy]\nk = 5\n[method]\nname = 'mdav'\n" + COLUMNS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    table, policy = text(folder, "t.csv", TABLE), text(folder, "p.toml", POLICY)
    assert run("anonymize", table, "--policy", policy, "--out", folder / "out").code == 0
    return folder


@pytest.fixture
def public(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "out/public", tmp_path / "public"))


def rewritten(public: Path, change: Callable[[dict[str, Any]], object]) -> Ran:
    """Change a certificate as a forger would, checksum and all, and verify."""
    file = public / "certificate.json"
    content = json.loads(file.read_text())
    content.pop("checksum")
    change(content)
    file.write_text(Certificate(content).text())
    return run("verify", public)


# What a recipient asks for on top


def test_the_output_names_the_columns(public: Path) -> None:
    ran = run("verify", public).ok()
    assert "quasi-identifiers: age, zip" in ran.out
    assert "confidential: disease, wage" in ran.out
    said = run("verify", public, "--json").json
    assert (said["quasi"], said["confidential"]) == (["age", "zip"], ["disease", "wage"])


def test_a_folder_is_judged_by_the_policy_too(made: Path, public: Path) -> None:
    asked = text(made, "more.toml", POLICY.replace("k = 5", "k = 9"))
    ran = run("verify", public, "--policy", asked).fails(5, "9-anonymity does not hold")
    assert "5-anonymity: 5 found, 5 required, holds" in ran.out
    assert run("verify", public, "--policy", made / "p.toml").code == 0
    assert run("verify", public, "--policy", made / "p.toml", "--set", "privacy.t=0.01").code == 5


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("privacy.k=5", 0),
        ("privacy.k=6", 5),
        ("privacy.t=1.0", 0),
        ("privacy.t=0.01", 5),
        ("privacy.l=2", 0),
        ("privacy.l=4", 5),
        ("columns.wage.t=0.001", 5),
        ("privacy.alpha=0.1", 5),
        ("privacy.nonsense=1", 2),
        ("columns.nobody.role=quasi", 5),
        ("columns.note.role=quasi", 5),
        ("columns.note.role=identifier", 5),
    ],
)
def test_single_keys_are_asked_of_a_folder(public: Path, setting: str, code: int) -> None:
    ran = run("verify", public, "--set", setting)
    assert ran.code == code, ran.err


def test_columns_that_the_policy_drops_must_be_gone(made: Path, public: Path) -> None:
    unnamed = POLICY.replace('note = { role = "other" }\n', "")
    for others, code in (("drop", 5), ("refuse", 5), ("release", 0)):
        policy = text(made, "others.toml", unnamed + f"[output]\nothers = '{others}'\n")
        assert run("verify", public, "--policy", policy).code == code
        assert run("verify", public / "release.csv", "--policy", policy).code == code
    ran = run("verify", public / "release.csv", "--policy", policy, "--set", "output.others=drop")
    assert "'note' is in the release" in ran.err


def test_python_verifies_a_folder_as_the_command_does(made: Path, public: Path) -> None:
    assert kinfold.verify(public).holds
    assert kinfold.verify(str(made / "out"), twice=True).k == 5
    assert not kinfold.verify(public, k=9).holds
    assert kinfold.verify(public, k=5, l=2).holds
    assert not kinfold.verify(public, made / "p.toml", rows_only=True).problems
    with pytest.raises(PolicyError, match="a policy and k were given"):
        kinfold.verify(public, made / "p.toml", k=9)


# People


@pytest.mark.slow
def test_promises_about_people_are_not_checkable_without_their_column(made: Path, tmp_path: Path) -> None:
    policy = text(made, "unit.toml", POLICY.replace("k = 5", "k = 5\nunit = 'pid'"))
    out = tmp_path / "out"
    assert run("anonymize", made / "t.csv", "--policy", policy, "--out", out).code == 0
    cases = [(out,), (out, "--policy", policy), (out / "public/release.csv", "--policy", policy)]
    cases.append((out, "--policy", made / "p.toml"))
    said = "the promise about people cannot be checked from the file, because it has no column 'pid'"
    for case in cases:
        ran = run("verify", *case).ok()
        assert said in " ".join(ran.out.split())
        ran = run("verify", *case, "--require-people").fails(5, said)
        ran = run("verify", *case, "--rows-only").ok()
        assert "people" not in ran.out
    told = run("verify", out, "--json").json
    assert told["holds"]
    assert said in told["notes"][0]
    assert run("verify", out, "--set", "privacy.k=99").code == 5  # rows that do not hold
    assert run("verify", made / "out", "--policy", policy).code == 5  # a release that promises nothing about people
    assert run("verify", made / "out", "--require-people").code == 0  # nor need it
    assert kinfold.verify(out).notes
    assert not kinfold.verify(out, require_people=True).holds
    assert not kinfold.verify(out / "public/release.csv", policy, require_people=True).holds
    assert kinfold.verify(out, rows_only=True).notes == ()


# What lies in the folder


@pytest.mark.parametrize("name", ["release.csv.bak", ".DS_Store", "original.csv", "notes"])
def test_a_file_that_the_certificate_does_not_list_fails(public: Path, name: str) -> None:
    (public / name).mkdir() if name == "notes" else (public / name).write_text("x")
    run("verify", public).fails(5, f"'{name}' is in")


def test_a_changed_report_fails(public: Path) -> None:
    (public / "report.html").write_text("<p>all is well</p>")
    run("verify", public).fails(5, "'report.html' was changed")


def test_the_table_and_its_certificate_are_enough(public: Path) -> None:
    (public / "report.html").unlink()
    assert run("verify", public, "--twice").code == 0


# A certificate that says something else than what is there


def test_a_certificate_that_was_written_anew_with_nothing_changed_holds(public: Path) -> None:
    assert rewritten(public, dict.copy).code == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(promises=[]),
        lambda c: [column.update(role="other") for column in c["columns"] if column["role"] == "quasi-identifier"],
        lambda c: c["found"].update(k=50),
        lambda c: c["found"]["t"].update(wage=0.0001),
        lambda c: c["found"]["l"].update(disease=9),
        lambda c: c["promises"][0].update(found=50),
        lambda c: c["promises"][0].update(asked=50),
        lambda c: c["promises"][0].update(promise="50-anonymity"),
        lambda c: c["release"].update(records=31),
        lambda c: c["release"].update(classes=1),
        lambda c: c["columns"].pop(),
        lambda c: c["columns"].append(c["columns"][0]),
        lambda c: c["columns"].append({"name": "ghost", "role": "other", "type": "nominal"}),
        lambda c: c["columns"][0].update(role="identifier"),
        lambda c: c["release"].update(sha256="0" * 64),
        lambda c: c["report"].update(sha256="0" * 64),
    ],
)
def test_figures_that_are_not_those_found_fail(public: Path, change: Callable[[dict[str, Any]], object]) -> None:
    rewritten(public, change).fails(5, "fix: ")


def confidential(content: dict[str, Any], name: str) -> dict[str, Any]:
    return next(column for column in content["columns"] if column["name"] == name)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(columns={}),
        lambda c: c.update(columns=[5]),
        lambda c: c.update(promises=None),
        lambda c: c.update(found=[]),
        lambda c: c.pop("joint"),
        lambda c: c.update(joint="perhaps"),
        lambda c: c.update(more=1),
        lambda c: c.update(format=1),
        lambda c: c["release"].pop("file"),
        lambda c: c["release"].update(file="../release.csv"),
        lambda c: c["release"].update(file="/etc/hostname"),
        lambda c: c["release"].update(file="report.html"),
        lambda c: c["release"].update(file="gone.csv"),
        lambda c: c["release"].update(sha256=5),
        lambda c: c["release"].update(separator="x"),
        lambda c: c["release"].update(records=-1),
        lambda c: c["promises"][0].update(model="Trust"),
        lambda c: c["promises"][0].update(parameters={"k": "5"}),
        lambda c: c["promises"][0].update(parameters={"k": True}),
        lambda c: c["promises"][0].update(parameters={"k": 0}),
        lambda c: c["promises"][0].update(parameters={"k": 2.5}),
        lambda c: c["promises"][0].update(parameters={}),
        lambda c: c["promises"].append({**c["promises"][0], "model": "TCloseness", "parameters": {"t": 0.2}}),
        lambda c: c["promises"].append(
            {**c["promises"][0], "model": "PSensitive", "parameters": {"p": 1, "column": "age"}}
        ),
        lambda c: confidential(c, "disease").update(distance="ordered"),
        lambda c: confidential(c, "disease").update(distance="hierarchical"),
        lambda c: confidential(c, "disease").pop("distance"),
        lambda c: confidential(c, "disease").update(hierarchy=[["flu"], ["flu"]]),
        lambda c: confidential(c, "wage").update(type="date", dates="%Y'); DROP TABLE t0; --"),
        lambda c: confidential(c, "wage").update(type="rational"),
    ],
)
def test_a_certificate_of_another_shape_is_refused_with_a_sentence(
    public: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    ran = rewritten(public, change)
    assert ran.code in (3, 5), ran.err
    assert "certificate" in ran.err or "is not in" in ran.err or "ending" in ran.err or "was changed" in ran.err
    assert "fix: " in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("column", "change", "what"),
    [
        ("wage", {"type": "date"}, "30 of its 30 values are not dates"),
        ("disease", {"type": "continuous", "distance": "ordered"}, "30 of its 30 values are not numbers"),
        (
            "disease",
            {"type": "ordinal", "distance": "ordered", "order": ["flu", "cold"]},
            "1 of its 3 values are not in",
        ),
        (
            "disease",
            {"distance": "hierarchical", "hierarchy": [["flu", "*"], ["cold", "*"]]},
            "lacks 1 of its 3 values",
        ),
    ],
)
def test_values_that_are_not_what_the_certificate_says_fail(
    public: Path, column: str, change: dict[str, Any], what: str
) -> None:
    rewritten(public, lambda content: confidential(content, column).update(change)).fails(5, what)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"checksum": NaN}', '{"a": 1e999, "checksum": ""}', "\x00"])
def test_a_certificate_that_cannot_be_read(public: Path, content: str) -> None:
    (public / "certificate.json").write_text(content)
    assert run("verify", public).code in (3, 5)


def test_twice_needs_a_file_that_the_second_checker_reads(made: Path, tmp_path: Path) -> None:
    rows = text(tmp_path, "t.jsonl", '{"a": 1}\n{"a": 1}\n')
    with pytest.raises(PolicyError, match="reads only CSV and Parquet"):
        kinfold.verify(rows, quasi=["a"], k=2, twice=True)
    assert kinfold.verify(rows, quasi=["a"], k=2).holds
    with pytest.raises(PolicyError, match="reads only CSV and Parquet"):
        kinfold.verify(pd.DataFrame({"a": [1, 1]}), quasi=["a"], k=2, twice=True)


def test_a_verdict_that_fails_says_so_when_it_is_required(public: Path) -> None:
    with pytest.raises(VerifyError, match="9-anonymity does not hold"):
        kinfold.verify(public, k=9).require()


def test_a_table_that_has_problems_is_not_asked_twice(tmp_path: Path) -> None:
    rows = text(tmp_path, "t.csv", "a,b\n1,1\n1,1\n")
    verdict = kinfold.verify(rows, quasi=["a"], k=2, twice=True)
    assert [problem.what for problem in verdict.problems] == ["the column 'b' is in the release, but not in the policy"]


def test_a_release_that_changes_while_it_is_read_fails(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads((public / "certificate.json").read_text())
    sums = {entry["file"]: entry["sha256"] for entry in (told["release"], told["report"], *told["documents"])}
    monkeypatch.setattr("kinfold.release.inspection.hash_file", lambda path: sums[path.name])
    (public / "release.csv").write_text((public / "release.csv").read_text().replace("flu", "cold"))
    with pytest.raises(VerifyError, match="changed while it was read"):
        kinfold.verify(public)


def test_measuring_needs_the_columns_of_the_policy(made: Path, tmp_path: Path) -> None:
    rows = text(tmp_path, "t.csv", "age,zip\n1,a\n")
    run("measure", made / "t.csv", rows, "--policy", made / "p.toml").fails(3, "'disease' is not in the release")


def test_a_recipient_may_ask_for_a_table_that_a_spreadsheet_does_not_run(tmp_path: Path) -> None:
    table = text(tmp_path, "t.csv", "age,note\n" + "30,=1+1\n30,@x\n" * 3)
    for safe in ("false", "true"):
        asked = ("--quasi", "age", "-k", 3, "--others", "release", "--set", f"output.spreadsheet_safe={safe}")
        assert run("anonymize", table, *asked, "--out", tmp_path / safe).code == 0
        ran = run("verify", tmp_path / safe, "--set", "output.spreadsheet_safe=true")
        assert ran.code == (0 if safe == "true" else 5), ran.err


def test_the_frame_of_a_file_has_types_and_verifies_as_the_folder_does(made: Path) -> None:
    release = kinfold.anonymize(made / "t.csv", made / "p.toml")
    assert [str(release.frame.schema.field(name).type) for name in ("age", "zip", "wage")] == [
        "int64",
        "string",
        "int64",
    ]
    asked = {"quasi": ["age", "zip"], "confidential": ["disease", "wage"], "others": "release", "k": 5}
    assert kinfold.verify(release.frame, **asked).t == kinfold.verify(made / "out").t


# Values that should have become others

RECODED = {  # what a policy may say, and the value that is left of it in a release that was made without it
    "columns.age.top=30": "columns.age.top",
    "columns.age.bottom=40": "columns.age.bottom",
    "columns.wage.top=1010.5": "columns.wage.top",
    "columns.wage.round_to=7": "columns.wage.round_to",
    "columns.disease.map={hiv='other'}": "columns.disease.map",
    "columns.zip.map={a='c'}": "columns.zip.map",
}


@pytest.mark.parametrize("said", RECODED)
def test_values_that_a_recipient_wants_recoded_are_looked_for(public: Path, said: str) -> None:
    ran = run("verify", public, "--set", said).fails(5)
    assert f"that {RECODED[said]} recodes" in ran.err + ran.out
    assert kinfold.verify(public).holds


@pytest.mark.parametrize(
    "said", ["columns.age.top=90", "columns.disease.map={flu='cold', cold='flu'}", "columns.age.round_to=7"]
)
def test_values_that_may_be_there_are_not_held_against_a_release(public: Path, said: str) -> None:
    assert run("verify", public, "--set", said).code == 0


@pytest.mark.slow
def test_a_release_with_recoded_values_holds_by_its_own_policy(tmp_path: Path) -> None:
    table = text(tmp_path, "t.csv", TABLE)
    said = "[columns.age]\nrole = 'quasi'\ntop = 40\nbottom = 25\nround_to = 5\n[columns.wage]\nrole = 'confidential'\n"
    said += "round_to = 10\ntop = 1020\n[columns.disease]\nrole = 'confidential'\nmap = { hiv = 'other', flu = '' }\n"
    policy = text(tmp_path, "p.toml", f"[privacy]\nk = 5\n[output]\nothers = 'drop'\n{said}")
    assert run("anonymize", table, "--policy", policy, "--out", tmp_path / "out").code == 0
    assert run("verify", tmp_path / "out", "--policy", policy).code == 0
    assert run("verify", tmp_path / "out" / "public" / "release.csv", "--policy", policy).code == 0
    assert run("verify", table, "--policy", policy).code == 5
