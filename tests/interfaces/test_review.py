"""Questions of a policy: no release while one is open, every way to answer, and what a release records of it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import kinfold
from command import run, text
from kinfold.errors import PolicyError
from kinfold.policy.model import Policy

TABLE = "pid,age,sex,ill\n" + "".join(f"{i // 2},{20 + i // 2},{'fm'[i % 4 // 2]},{'abc'[i % 3]}\n" for i in range(48))
POLICY = """
[privacy]
k = 3
unit = "pid"
[method]
name = "mdav"
[columns]
pid = { role = "identifier" }
age = { role = "quasi-identifier" }
sex = { role = "quasi-identifier" }
ill = { role = "confidential" }
[review]
reviewer = "Dr. Ada Example"
[review.unit]
question = "Is each value of 'pid' one person?"
seen = "2.0 rows for each value"
sets = "privacy.unit"
proposed = "pid"
answers = ["pid", "none"]
answer = ""
[review.sex]
question = "Do others know the sex?"
sets = "columns.sex.role"
proposed = "quasi-identifier"
answers = ["quasi-identifier", "other"]
[review.proposal]
unit = "pid"
roles = { pid = "identifier", age = "other", sex = "key", ill = "confidential" }
questions = ["unit", "sex", "weight"]
"""
STATEMENT = "2 questions were answered by accepting kinfold's proposal without review"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    text(tmp_path, "t.csv", TABLE)
    text(tmp_path, "p.toml", POLICY)
    return tmp_path


def release(desk: Path, *options: str) -> dict[str, Any]:
    """Release the table and return the audit."""
    given = ("--policy", desk / "p.toml", "--out", desk / "out", "--force")
    run("anonymize", desk / "t.csv", *given, *options).ok()
    run("verify", desk / "out/public", "--twice").ok()
    return dict(json.loads((desk / "out/internal/audit.json").read_text()))


def certificate(desk: Path) -> dict[str, Any]:
    return dict(json.loads((desk / "out/public/certificate.json").read_text()))


def test_nothing_is_released_while_a_question_is_open(desk: Path) -> None:
    for answered in ((), ("--answer", "unit=none")):
        ran = run("anonymize", desk / "t.csv", "--policy", desk / "p.toml", "--out", desk / "out", *answered)
        ran.fails(
            2, "question 'sex': Do others know the sex?", "proposed: quasi-identifier; answers: quasi-identifier, other"
        )
        assert ("seen: 2.0 rows for each value" in ran.err) == (not answered)
        assert not (desk / "out").exists()
    with pytest.raises(PolicyError, match="2 questions of the policy are open"):
        kinfold.anonymize(desk / "t.csv", desk / "p.toml")


def test_commands_that_release_nothing_do_not_ask(desk: Path) -> None:
    policy = ("--policy", desk / "p.toml")
    release(desk, "--accept-proposal")
    run("verify", desk / "out/public", *policy).ok()
    run("measure", desk / "t.csv", desk / "out/public/release.csv", *policy).ok()
    run("compare", desk / "t.csv", *policy, "--methods", "mdav", "--k", "3", "--out", desk / "compared").ok()


def answer_in_the_file(desk: Path) -> dict[str, Any]:
    answered = POLICY.replace('answer = ""', 'answer = "none"')
    text(desk, "p.toml", answered.replace('"other"]\n', '"other"]\nanswer = "yes"\n'))
    return release(desk)


def answer_with_options(desk: Path) -> dict[str, Any]:
    return release(desk, "--answer", "unit=none", "--answer", "sex=yes")


def answer_in_python(desk: Path) -> dict[str, Any]:
    made = kinfold.anonymize(desk / "t.csv", desk / "p.toml", answers={"unit": "none", "sex": "yes"})
    made.save(desk / "out")
    return dict(json.loads((desk / "out/internal/audit.json").read_text()))


def delete_the_questions(desk: Path) -> dict[str, Any]:
    values = tomllib.loads(POLICY)
    del values["privacy"]["unit"], values["review"]["unit"], values["review"]["sex"]
    kinfold.anonymize(desk / "t.csv", values).save(desk / "out")
    return dict(json.loads((desk / "out/internal/audit.json").read_text()))


WAYS = [answer_in_the_file, answer_with_options, answer_in_python, delete_the_questions]


@pytest.mark.slow
@pytest.mark.parametrize("answer", WAYS)
def test_every_way_to_answer_gives_the_same_release(desk: Path, answer: Any) -> None:
    audit = answer(desk)
    found = (desk / "out/public/release.csv").read_bytes()
    assert "people" not in certificate(desk)["release"]
    assert "review" not in certificate(desk)
    by_hand = tomllib.loads(POLICY)
    del by_hand["review"], by_hand["privacy"]["unit"]
    kinfold.anonymize(desk / "t.csv", by_hand).save(desk / "by_hand")
    assert found == (desk / "by_hand/public/release.csv").read_bytes()
    differences = [
        {"key": "privacy.unit", "proposed": "pid", "policy": None},
        {"key": "columns.age.role", "proposed": "other", "policy": "quasi-identifier"},
    ]
    assert audit["review"]["differences"] == differences
    run("anonymize", desk / "t.csv", "--policy", desk / "out/internal/policy.toml", "--out", desk / "again").ok()
    assert (desk / "again/public/release.csv").read_bytes() == found


def test_the_audit_says_who_answered_what(desk: Path) -> None:
    review = release(desk, "--answer", "unit=none", "--accept-proposal")["review"]
    answers = {each["name"]: (each["answer"], each["answered_by"]) for each in review["questions"]}
    assert answers == {
        "unit": ("none", "Dr. Ada Example"),
        "sex": ("quasi-identifier", "accepted without review"),
        "weight": (None, "the policy was edited"),
    }
    assert (review["reviewer"], review["accepted_without_review"]) == ("Dr. Ada Example", 1)


def test_accepted_proposals_are_stated_everywhere(desk: Path) -> None:
    audit = release(desk, "--accept-proposal")
    assert certificate(desk)["review"] == {"questions": 2, "accepted": 2, "statement": STATEMENT}
    assert STATEMENT in audit["notes"]
    assert STATEMENT in run("verify", desk / "out/public").ok().out
    for part in ("public", "internal"):
        assert STATEMENT.replace("'", "&#39;") in (desk / f"out/{part}/report.html").read_text()
    made = kinfold.anonymize(desk / "t.csv", desk / "p.toml", accept_proposal=True)
    assert STATEMENT in made.plan.notes


def test_the_internal_report_can_be_signed(desk: Path) -> None:
    release(desk, "--answer", "unit=none", "--accept-proposal")
    internal, public = ((desk / f"out/{part}/report.html").read_text() for part in ("internal", "public"))
    expected = ["Do others know the sex?", "2.0 rows for each value", "Dr. Ada Example", "columns.age.role"]
    expected += ["Approved by", "Signature", "the policy was edited"]
    assert [words for words in expected if words not in internal] == []
    assert [words for words in expected if words in public] == []


def test_a_key_has_one_origin(desk: Path) -> None:
    text(desk, "p.toml", POLICY.replace('answer = ""', 'answer = "none"'))
    given = ("anonymize", desk / "t.csv", "--policy", desk / "p.toml", "--out", desk / "out")
    run(*given, "--set", "privacy.unit=pid").fails(2, "the answer of the question 'unit' in the policy sets this key")
    run(*given, "--answer", "unit").fails(2, "--answer unit has no value")


def test_columns_on_the_command_line_have_no_questions(desk: Path) -> None:
    options = ("--quasi", "age,sex", "--others", "drop", "-k", "3", "--out", desk / "out")
    run("anonymize", desk / "t.csv", *options).ok()
    assert "review" not in json.loads((desk / "out/internal/audit.json").read_text())


@pytest.mark.parametrize("name", ["2019", "3.50", "true", "[x]"])
@pytest.mark.parametrize("proposed", ["the column", "none"])
def test_the_name_of_a_unit_may_look_like_a_number(name: str, proposed: str) -> None:
    values = tomllib.loads(POLICY.replace('"pid"', f'"{name}"').replace("\npid =", f'\n"{name}" ='))
    values["review"].pop("proposal")
    if proposed == "none":
        values["review"]["unit"] |= {"proposed": "none"}
        values["privacy"].pop("unit")
    policy = Policy.of(values)
    assert [policy.answer({"unit": each}).privacy.unit for each in (name, "none")] == [name, None]
