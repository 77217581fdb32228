"""Words and numbers of a report: exact where it matters, plain everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.models import Finding
from kinfold.release.report import verdict_sentences as verdict
from kinfold.release.report.wording import apart, quantity, share, shortened, text_width, visible
from report_facts import hospital


def judged(*findings: Finding, **changes: object):
    return replace(hospital(), findings=findings, **changes)


def finding(model: str, asked: float, found: float, promise: str = "", holds: bool = True) -> Finding:
    return Finding(promise or f"{model} promise", model, "disease", asked, found, holds, 0 if holds else 2, 7)


def test_very_small_very_large_and_negative_numbers_can_be_read() -> None:
    assert ascii(quantity(0.0000123456)) == r"'1.235 \xd7 10\u207b\u2075'"
    assert ascii(quantity(1.5e18)) == r"'1.5 \xd7 10\xb9\u2078'"
    assert ascii(quantity(-0.25)) == r"'\u22120.25'"
    assert {ascii(quantity(x)) for x in (None, float("nan"), float("inf"))} == {r"'\u2013'"}


@given(st.floats(1e-4, 1e14), st.sampled_from([-1, 1]))
def test_a_quantity_is_right_to_four_digits(number: float, sign: int) -> None:
    text = quantity(sign * number).replace(",", "").replace("\N{MINUS SIGN}", "-")
    assert float(text) == pytest.approx(sign * number, rel=5.1e-4)


@given(st.floats(0, 1), st.floats(0, 1))
def test_two_numbers_that_differ_are_written_differently(one: float, other: float) -> None:
    first, second = apart(one, other)
    assert (first == second) == (one == other) or abs(one - other) < 1e-16


@given(st.floats(0, 1))
def test_a_share_is_all_or_nothing_only_if_it_is(part: float) -> None:
    assert (share(part) == "0%") == (part == 0)
    assert (share(part) == "100%") == (part == 1)


@given(st.text(st.characters(exclude_categories=())), st.integers(2, 30))
def test_a_label_can_be_seen_written_and_fits(label: str, width: int) -> None:
    shown = visible(label)
    assert shown
    assert shown.encode("utf-8")
    assert not any(ord(character) < 32 for character in shown)
    assert text_width(shortened(shown, width)) <= width


@pytest.mark.parametrize(
    ("found", "released", "sentence"),
    [
        (5, 1000, "Every one of the 1,000 released records shares its quasi-identifiers with at least 4 others."),
        (2, 9, "Every one of the 9 released records shares its quasi-identifiers with at least 1 other."),
        (9, 9, "All 9 released records share the same quasi-identifiers."),
    ],
)
def test_k_in_plain_english(found: int, released: int, sentence: str) -> None:
    k = Finding("k", "k", None, 2, found, True)
    assert verdict.headline(judged(k, released=released)) == sentence
    assert verdict.holds(judged(k))


def test_what_holds_is_said_for_every_model() -> None:
    name = '<bdi class="name">disease</bdi>'
    facts = judged(
        finding("t", 0.2, 0.1834), finding("l", 2, 3, "distinct 2-diversity of disease"), finding("alpha", 0.5, 0.4)
    )
    assert verdict.headline(facts) == "Each of the 1,000 released records keeps every promise made about it."
    assert verdict.further(facts) == [
        f"In every class, {name} is spread as in the whole release, to within 0.1834.",
        f"Every class holds at least 3 different values of {name}.",
        f"In no class does a value of {name} make up more than 40%.",
    ]
    others = judged(finding("l", 2, 2.5, "entropy 2-diversity of disease"), finding("p", 2, 2))
    assert verdict.further(others) == [
        "entropy 2-diversity of disease holds; 2.5 was found.",
        f"Every class holds at least 2 different values of {name}.",
    ]


@pytest.mark.parametrize("model", ["k", "t", "p", "alpha", "l distinct", "l entropy", "l recursive"])
def test_every_promise_has_a_meaning(model: str) -> None:
    letter, _, kind = model.partition(" ")
    meaning = verdict.meaning(finding(letter, 0.25, 0.25, f"{kind} promise" if kind else ""))
    assert meaning.endswith(".")
    assert "{" not in meaning
    assert ("disease" in meaning) == (letter != "k")


def test_a_promise_of_an_unknown_model_stands_by_itself() -> None:
    assert verdict.meaning(finding("zeta", 1, 1)) == ""
    assert verdict.limit(finding("zeta", 1, 1)) == "at least"


def test_what_is_broken_comes_first_and_hides_what_holds() -> None:
    facts = judged(
        Finding("5-anonymity", "k", None, 5, 5, True),
        finding("t", 0.2, 0.2000004, "0.2-closeness of disease", holds=False),
        finding("p", 2, 1, "2-sensitivity of disease", holds=False),
    )
    assert not verdict.holds(facts)
    assert verdict.headline(facts) == (
        "This table must not be released: 0.2-closeness of disease does not hold in 2 classes "
        "(0.2000004 found where at most 0.2 was asked)."
    )
    assert len(verdict.further(facts)) == 1
    assert "2-sensitivity of disease" in verdict.further(facts)[0]


def test_one_class_that_fails_is_one() -> None:
    facts = judged(Finding("5-anonymity", "k", None, 5, 1, False, failing=1, smallest=1), classes=1)
    expected = "This table must not be released: 1 of its 1 class holds fewer than 5 records, the smallest 1."
    assert verdict.headline(facts) == expected


def test_many_promises_are_counted_after_the_first() -> None:
    said = verdict.further(judged(*(finding("t", 0.2, 0.1) for _ in range(12))))
    assert len(said) == 3
    assert said[-1] == "10 further promises kept; see below."


def test_nothing_promised_is_nothing_kept() -> None:
    assert not verdict.holds(judged())
    assert verdict.headline(judged()) == "Nothing was promised about the 1,000 records of this table."
    assert verdict.headline(judged(released=0)) == "No record was released."
    assert verdict.further(judged()) == []
