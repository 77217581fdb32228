"""Proposals on tables with a known truth: nothing is released unsafely without a question, and questions are few."""

from __future__ import annotations

import re
import tomllib
from functools import cache

import numpy as np
import polars as pl
import pytest

import kinfold
from kinfold.policy.model import Policy
from kinfold.profiling.profile import Profile
from kinfold.profiling.starter_policy import write_starter_policy
from proposals.scores import list_dangers, score_tables
from proposals.tables import ProposalTable, list_makers
from reference.public_data import found

pytestmark = pytest.mark.slow

PROPOSALS_IN_WORDS = {  # what "yes" says, and the proposed answer that it must be
    r"Shall th.+ of codes be left out: ": r"drop",
    r"mean that the value is missing\?$": r"\[.+\]",
    r"^Is each value of '.+' one person with several rows\?$": r"(?!none).+",
    r"^Does each person have several rows, ": r"(?!none).+",
    r"^May a person have several rows\?": r"[1-9][0-9]+",  # the larger k
    r"Leave (it|them) out\?$": r"remove",
    r"^Is '.+' a sampling weight\?$": r"weight",
    r"Protect (it|them) in the same way, as (a quasi-identifier|quasi-identifiers)\?$": r"quasi-identifier",
}
MAX_MEAN_QUESTIONS = 1.5
MIN_SHARE = 0.9  # precision and recall of every kind of decision
PUBLIC = {
    "sdcmicro_testdata.csv": {"household": "ori_hid", "weights": {"sampling_weight", "household_weights"}},
    "free1.csv": {"household": None, "weights": {"WEIGHT"}},
    "francdat.csv": {"household": None, "weights": {"w"}},
    "adult/adult.csv": {"household": None, "weights": set()},
    "census.csv": {"household": None, "weights": {"AFNLWGT"}},
}


@cache
def profile_tables() -> list[tuple[ProposalTable, Profile]]:
    """Every table with its profile."""
    return [(table := make(), kinfold.profile(table.frame)) for make in list_makers()]


def test_there_are_tables_enough() -> None:
    names = [table.name for table, _ in profile_tables()]
    assert len({*names}) == len(names) >= 40


def test_no_table_is_released_unsafely_without_a_question() -> None:
    dangers = {table.name: [*list_dangers(table.truth, profile)] for table, profile in profile_tables()}
    assert {name: each for name, each in dangers.items() if each} == {}


def test_questions_are_few() -> None:
    questions = [len(profile.questions) for _, profile in profile_tables()]
    assert sum(questions) / len(questions) < MAX_MEAN_QUESTIONS
    ordinary = [profile for table, profile in profile_tables() if table.name.startswith("ordinary")]
    assert max(len(profile.questions) for profile in ordinary) <= 1


def make_dependent_table() -> pl.DataFrame:
    """People with two amounts that their region tells."""
    rng = np.random.default_rng(4)
    region = rng.integers(0, 12, 600)
    known = {"age": rng.integers(18, 90, 600), "sex": rng.choice(["f", "m"], 600), "region": region}
    return pl.DataFrame(known | {"income": 900.5 + 31.3 * (region % 7), "salary": 40.25 + 7.7 * (region % 5)})


def make_tables_of_rows() -> list[pl.DataFrame]:
    """Several rows of each person: numbered, but without a constant fact; and without a number."""
    rng = np.random.default_rng(5)
    who = np.repeat(np.arange(120), 5)
    values = {"ldl": np.round(rng.normal(3, 0.7, 600), 2)}
    facts = {"sex": rng.choice(["f", "m"], 120)[who], "yob": rng.integers(1940, 2005, 120)[who]}
    samples = {"sample": [f"P{person:04}-{row % 5}" for row, person in enumerate(who)]}
    return [pl.DataFrame({"nr": who + 1001} | values), pl.DataFrame(samples | facts | values)]


def test_columns_with_the_same_reason_have_one_question() -> None:
    table = make_dependent_table()
    (question,) = kinfold.profile(table).questions
    reason = "Each of 'income' and 'salary' is determined by 'region', which others may know."
    assert question.question == f"{reason} Protect them in the same way, as quasi-identifiers?"
    policy = Policy.parse(tomllib.loads(write_starter_policy(kinfold.profile(table))))
    answered = policy.answer({question.name: "confidential"}).columns
    assert {(str(answered[name].role), answered[name].t) for name in ("income", "salary")} == {("confidential", 0.3)}


def test_yes_keeps_the_proposal_of_every_question() -> None:
    """A steward answers the words of a question, not the key that it sets."""
    kinds = set()
    more = [make_dependent_table(), *make_tables_of_rows()]
    for profile in [*(profile for _, profile in profile_tables()), *map(kinfold.profile, more)]:
        policy = Policy.parse(tomllib.loads(write_starter_policy(profile)))
        for each in profile.questions:
            (words,) = [words for words in PROPOSALS_IN_WORDS if re.search(words, each.question)]
            assert re.fullmatch(PROPOSALS_IN_WORDS[words], each.proposed), each.question
            answered = policy.answer({each.name: "yes"})
            assert answered.review.questions[each.name].answer == each.proposed
            assert answered.model_dump(exclude={"review"}) == policy.model_dump(exclude={"review"})
            kinds.add(words)
    assert kinds == {*PROPOSALS_IN_WORDS}


def test_most_decisions_are_right() -> None:
    scores = score_tables(profile_tables())
    assert len(scores) == 8
    poor = {kind: score for kind, score in scores.items() if min(score.precision, score.recall) < MIN_SHARE}
    assert {*poor} <= {"identifier"}  # the number of a member in a household is removed too
    assert all(score.recall >= MIN_SHARE for score in scores.values())


def test_amounts_that_look_like_codes_or_keys_are_kept() -> None:
    """Days of illness that most people do not have, and rounded incomes of households, are no codes and no numbers."""
    (profile,) = [profile for table, profile in profile_tables() if table.name == "unnamed numbers"]
    kept = {column.name: column.role for column in profile.columns if column.name in ("zw_dni", "hh_income")}
    assert kept == {"zw_dni": "confidential", "hh_income": "confidential"}
    assert profile.unit is None


@pytest.mark.parametrize("name", PUBLIC)
def test_public_files(name: str) -> None:
    profile = kinfold.profile(found(name))
    roles = {column.name: column.role for column in profile.columns}
    expected = PUBLIC[name]
    assert {column for column, role in roles.items() if role == "weight"} == expected["weights"]
    assert (profile.unit.column if profile.unit and not profile.unit.people else None) == expected["household"]
    silent = [c.name for c in profile.columns if c.role == "other" and c.distinct > 1 and not c.undecided]
    assert silent == []
    assert len(profile.questions) <= 2
