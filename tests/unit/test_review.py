"""The questions of a policy: which are open, what an answer sets, and which answers are refused."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.errors import PolicyError
from kinfold.policy.binding import bind
from kinfold.policy.model import Policy
from kinfold.policy.review import apply_answers, complete_changes, find_answered
from kinfold.policy.toml_values import parse_policy
from kinfold.tables.schema import Column, Schema, Storage

UNIT = {
    "question": "Is each value of 'pid' one person?",
    "seen": "3.2 rows for each value",
    "sets": "privacy.unit",
    "proposed": "pid",
    "answers": ["pid", "none"],
}
ROLE = {
    "question": "May others know the 'flc.grp' of a person?",
    "sets": 'columns."flc.grp".role',
    "proposed": "quasi-identifier",
    "answers": ["quasi-identifier", "confidential", "remove"],
}
CODES = {
    "question": "Is -9 missing?",
    "sets": "columns.age.na",
    "proposed": "[-9]",
    "answers": ["[-9]", "none", "[-9, 99]"],
}
QUESTIONS = {"unit": UNIT, "role": ROLE, "codes": CODES}
VALUES: dict[str, Any] = {
    "privacy": {"k": 3, "unit": "pid"},
    "method": {"suppression": 0},
    "columns": {
        "pid": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "na": [-9]},
        "flc.grp": {"role": "quasi-identifier", "missing": "separate"},
    },
}


def asked(**answers: str) -> dict[str, Any]:
    questions = {
        name: each | ({"answer": answers[name]} if name in answers else {}) for name, each in QUESTIONS.items()
    }
    return {**copy.deepcopy(VALUES), "review": questions}


def decisions(policy: Policy) -> dict[str, Any]:
    return policy.model_dump(exclude_unset=True, exclude={"review"})


def edit_by_hand(answers: dict[str, str]) -> dict[str, Any]:
    values = copy.deepcopy(VALUES)
    if answers.get("unit") == "none":
        del values["privacy"]["unit"]
    if answers.get("role", "quasi-identifier") != "quasi-identifier":
        values["columns"]["flc.grp"]["role"] = answers["role"]
    if answers.get("codes") == "none":
        del values["columns"]["age"]["na"]
    if answers.get("codes") == "[-9, 99]":
        values["columns"]["age"]["na"] = [-9, 99]
    return values


ANSWERS = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(each["answers"]) for name, each in QUESTIONS.items()}
)


@given(ANSWERS, ANSWERS)
def test_an_answered_policy_is_the_policy_edited_by_hand(first: dict[str, str], second: dict[str, str]) -> None:
    """Answers in the file, answers given later (which win), and the answered policy read again."""
    by_hand = Policy.parse(edit_by_hand({**first, **second}))
    policy = Policy.parse(asked(**first)).answer(second)
    assert decisions(policy) == decisions(by_hand)
    assert {*policy.review.open_questions} == {*QUESTIONS} - {*first, *second}
    again = Policy.parse(parse_policy(policy.toml(), "p"))
    assert again.model_dump() == policy.model_dump()
    accepted = policy.answer({}, accept_proposal=True)
    assert decisions(accepted) == decisions(by_hand)
    assert accepted.review.accepted == len({*QUESTIONS} - {*first, *second})
    assert not accepted.review.open_questions


@given(ANSWERS)
def test_the_values_of_the_caller_are_not_changed(answers: dict[str, str]) -> None:
    values = asked(**answers)
    before = copy.deepcopy(values)
    apply_answers(values)
    assert values == before


@pytest.mark.parametrize(
    ("name", "given", "meant"),
    [
        ("unit", "yes", "pid"),
        ("unit", "proposed", "pid"),
        ("unit", " no ", "none"),
        ("unit", True, "pid"),
        ("unit", False, "none"),
        ("unit", None, "none"),
        ("role", "YES", "quasi-identifier"),
        ("role", "remove", "remove"),
    ],
)
def test_short_answers(name: str, given: Any, meant: str) -> None:
    policy = Policy.parse(asked()).answer({name: given})
    assert policy.review.questions[name].answer == meant


@pytest.mark.parametrize(("answer", "roles"), [("yes", "remove"), ("no", "confidential"), ("remove", "remove")])
def test_a_question_may_set_several_keys(answer: str, roles: str) -> None:
    sets = ["columns.rent.role", "columns.tax.role"]
    question = {
        "question": "Leave them out?",
        "sets": sets,
        "proposed": "remove",
        "answers": ["remove", "confidential"],
    }
    columns = VALUES["columns"] | {"rent": {"role": "remove"}, "tax": {"role": "remove"}}
    policy = Policy.parse({**VALUES, "columns": columns, "review": {"rent": question}})
    assert policy.review.asks_for_role("tax")
    answered = policy.answer({"rent": answer})
    assert [str(answered.columns[name].role) for name in ("rent", "tax")] == [roles, roles]
    assert Policy.parse(parse_policy(answered.toml(), "p")).model_dump() == answered.model_dump()
    values = parse_policy(answered.toml(), "p")
    assert find_answered(values, ("columns", "tax", "role")) == "rent"
    both = {("columns", name, "role"): "confidential" for name in ("rent", "tax")}
    assert complete_changes(policy.review, values, both)["review", "rent", "answer"] == "confidential"
    one = {("columns", "rent", "role"): "confidential"}
    assert complete_changes(policy.review, values, one) == one  # the other is still asked about


def test_words_that_are_answers_mean_themselves() -> None:
    odd = {**UNIT, "proposed": "no", "answers": ["no", "yes"]}
    policy = Policy.parse({**VALUES, "review": {"odd": odd}}).answer({"odd": "yes"})
    assert policy.privacy.unit == "yes"


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"units": "none"}, r"no question 'units', did you mean 'unit'\?\n  fix: its questions: unit, role, codes"),
        ({"reviewer": "me"}, "no question 'reviewer'"),
        ({"unit": "maybe"}, "question 'unit': 'maybe' is not an answer; the answers are pid, none"),
        ({"role": "no"}, "'no' is not an answer; the answers are quasi-identifier, confidential, remove"),
    ],
)
def test_other_names_and_answers_are_refused(answers: dict[str, str], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        Policy.parse(asked()).answer(answers)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"answer": "maybe"}, "'review.unit' is refused: 'maybe' is not an answer; the answers are pid, none"),
        ({"proposed": "hid"}, "'review.unit' is refused: the proposed answer is not one of the answers"),
        ({"answers": []}, "'review.unit.answers'"),
        ({"sets": "unit"}, "'review.unit.sets' is refused: it is not a key of the policy"),
        ({"sets": ["privacy.unit", "unit"]}, "'review.unit.sets' is refused: it is not a key of the policy"),
        ({"sets": "review.reviewer"}, "'review.unit.sets' is refused: it is not a key of the policy"),
        (
            {"awnser": "pid"},
            r"unknown key 'review.unit.awnser', did you mean 'answer'\?\n  fix: known keys there: question",
        ),
    ],
)
def test_a_wrong_question_is_a_problem_of_the_policy(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        Policy.parse({**VALUES, "review": {"unit": {**UNIT, **keys}}})


def test_a_proposal_wins_over_another_answer_in_the_policy() -> None:
    values = asked(unit="pid")
    del values["privacy"]["unit"]
    assert Policy.parse(values).privacy.unit == "pid"
    values["privacy"]["unit"] = "household"  # not one of the answers: somebody chose another column
    assert Policy.parse(values).privacy.unit == "household"


def test_a_key_that_was_edited_is_no_accepted_proposal() -> None:
    values = asked()
    del values["privacy"]["unit"]
    policy = Policy.parse(values).answer({}, accept_proposal=True)
    assert policy.privacy.unit is None
    assert (policy.review.questions["unit"].answer, policy.review.accepted) == ("none", 2)


def test_answers_are_given_by_name() -> None:
    with pytest.raises(PolicyError, match="answers is given as list"):
        Policy.parse(asked()).answer(["unit"])


def test_open_questions_are_listed_with_what_was_seen() -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.parse(asked(codes="none")).review.require_answers()
    assert str(caught.value) == (
        "question 'unit': Is each value of 'pid' one person?\n"
        "  seen: 3.2 rows for each value\n"
        "  proposed: pid; answers: pid, none\n"
        '  fix: --answer unit=ANSWER, or write answer = "ANSWER" in [review.unit] of the policy, '
        "or delete [review.unit] to keep the policy as it is\n"
        "question 'role': May others know the 'flc.grp' of a person?\n"
        "  proposed: quasi-identifier; answers: quasi-identifier, confidential, remove\n"
        '  fix: --answer role=ANSWER, or write answer = "ANSWER" in [review.role] of the policy, '
        "or delete [review.role] to keep the policy as it is\n"
        "nothing is released, because 2 questions of the policy are open\n"
        "  fix: answer each, or take all proposals with --accept-proposal; the certificate and the reports then say so"
    )


def test_the_name_of_a_column_may_have_dots() -> None:
    question = {**ROLE, "sets": "columns.flc.grp.role", "answer": "remove"}
    policy = Policy.parse({**VALUES, "review": {"role": question}})
    assert policy.columns["flc.grp"].removed


def test_a_policy_without_questions_asks_nothing() -> None:
    policy = Policy.parse(VALUES).answer({}, accept_proposal=True)
    policy.review.require_answers()
    assert not policy.review.statement
    with pytest.raises(PolicyError, match=r"no question 'unit'\n  fix: its questions: none"):
        policy.answer({"unit": "none"})


def test_an_answer_about_a_role_leaves_the_other_keys() -> None:
    column = Column("flc.grp", Storage.NUMBER, rows=9, distinct=9, numbers=9)
    schema = Schema.from_columns([Column("pid", Storage.TEXT, 9), replace(column, name="age"), column], 9)
    bound = bind(Policy.parse(asked(role="remove")), schema)
    assert bound["flc.grp"].removed
    with pytest.raises(PolicyError, match="'average' and 'missing' are for quasi-identifiers"):
        bind(Policy.parse(edit_by_hand({"role": "remove"})), schema)
