"""The report page: what it says, and that nothing in it can act, load or leak."""

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.measures.measure_table import CATALOGUE
from kinfold.models import Finding
from kinfold.release.report import sentences as verdict
from kinfold.release.report.facts import Bins, ColumnFacts, Facts, Shares
from kinfold.release.report.page import write_page
from kinfold.release.report.wording import (
    format_distinct,
    format_number,
    format_share,
    make_visible,
    measure_text,
    shorten,
)
from report_facts import HOSTILE, hospital, hostile, many


class Elements(HTMLParser):
    """Collects the elements, attributes and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


@pytest.fixture(scope="module")
def internal() -> str:
    return write_page(hospital())


@pytest.fixture(scope="module")
def public() -> str:
    return write_page(hospital().public())


@pytest.fixture(scope="module")
def hostile_page() -> str:
    return write_page(hostile())


def one(column: ColumnFacts, **changes: object) -> str:
    return write_page(replace(hospital(), columns=(column,), **changes))


def test_the_verdict_is_a_sentence_at_the_top(internal: str) -> None:
    headline = "Every one of the 1,000 released records shares its quasi-identifiers with at least 4 others."
    text = Elements(internal).text
    assert headline in text
    assert text.index(headline) < text.index("Promises")


def test_promises_show_what_was_asked_and_found(internal: str) -> None:
    text = " ".join(Elements(internal).text.split())
    assert "at least 5 5 ✓ kept" in text
    assert "at most 0.2 0.1834 ✓ kept" in text
    assert "distinct 2-diversity of disease" in text


def test_key_numbers_are_there_with_separators(internal: str) -> None:
    text = " ".join(Elements(internal).text.split())
    for expected in ("Original records 1,000", "Classes 191", "Smallest class 5", "Average class 5.24"):
        assert expected.replace(" ", "") in text.replace(" ", "")


def test_each_column_has_its_chart_and_its_treatment(internal: str) -> None:
    facts, elements = hospital(), Elements(internal)
    with_charts = [column for column in facts.columns if column.released is not None]
    assert elements.tags["svg"] == len(with_charts) + 1  # and the class sizes
    for column in facts.columns:
        assert column.name in elements.text
        assert column.treatment in elements.text


def test_columns_that_single_people_out_are_warned_about(internal: str) -> None:
    text = " ".join(Elements(internal).text.split())
    assert "charge is released as it is. 87.3% of the records have a value" in text
    assert hospital().warnings[0] in text


def test_measures_are_put_in_words_from_the_catalogue(internal: str) -> None:
    facts = replace(hospital(), measures={"risk": {"linkage": 0.0731, "no_such_measure": 1.5}})
    entry = CATALOGUE["risk.linkage"]
    text = " ".join(Elements(write_page(facts)).text.split())
    assert f"{entry.title} {entry.meaning} 0 to 1; less is better. 0.0731" in text
    assert "no such measure 1.5" in text  # not in the catalogue: by its key
    titles = ", ".join(CATALOGUE[f"loss.{name}"].title for name in ("il4", "il", "prec"))
    assert f"Not applicable to this table: {titles}." in Elements(internal).text


@pytest.mark.parametrize("name", ["internal", "public", "hostile_page"])
def test_nothing_can_act_or_load(name: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(name)
    elements = Elements(html)
    assert not set(elements.tags) & {
        "script",
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "img",
        "image",
        "use",
    }
    assert "<script" not in html.lower()
    assert not [name for _, name, _ in elements.attributes if name.startswith("on") or name == "style"]
    assert not [name for _, name, _ in elements.attributes if name in ("href", "src", "srcset", "xlink:href", "action")]
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", html)
    addresses = set(re.findall(r"https?://[^\s\"'<]*", html))
    assert addresses <= {"http://www.w3.org/2000/svg"}


@pytest.mark.parametrize("name", ["internal", "public", "hostile_page"])
def test_the_content_security_policy_allows_the_one_style_sheet_only(name: str, request: pytest.FixtureRequest) -> None:
    html = request.getfixturevalue(name)
    assert html.count("<style>") == 1
    style = html.split("<style>")[1].split("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = next(value for tag, name, value in Elements(html).attributes if tag == "meta" and "default-src" in value)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert html.index("Content-Security-Policy") < html.index("<style>")


def test_every_text_is_shown_as_it_is_and_runs_as_nothing(hostile_page: str) -> None:
    text = Elements(hostile_page).text
    for expected in (*HOSTILE[:6], HOSTILE[10]):
        assert expected in text
    assert "49" not in re.findall(r"\{\{.*?\}\}|\b49\b", text)
    assert "a␀b␛�c��" in text
    assert "(empty)" in text
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in hostile_page
    hostile_page.encode("utf-8")


def test_identifiers_in_a_page_are_unique_and_references_lead_somewhere(hostile_page: str) -> None:
    attributes = Elements(hostile_page).attributes
    idents = [value for _, name, value in attributes if name == "id"]
    assert len(idents) == len(set(idents))
    named = [part for _, name, value in attributes if name == "aria-labelledby" for part in value.split()]
    assert set(named) <= set(idents)


def test_pictures_have_words_for_those_who_do_not_see_them(internal: str) -> None:
    elements = Elements(internal)
    roles = [value for tag, name, value in elements.attributes if tag == "svg" and name == "role"]
    assert roles == ["img"] * elements.tags["svg"]
    assert elements.tags["desc"] == elements.tags["svg"]
    assert internal.count(' viewBox="0 0 360 ') + internal.count(' viewbox="0 0 360 ') == elements.tags["svg"]


def test_the_same_facts_give_the_same_bytes(internal: str) -> None:
    assert write_page(hospital()) == internal


def test_the_internal_page_is_marked_and_the_public_one_is_not(internal: str, public: str) -> None:
    assert "Do not share" in internal
    assert '<body class="internal">' in internal
    assert "<title>Internal: patients.csv</title>" in internal
    assert "Do not share" not in public
    assert "nternal" not in Elements(public).text


def sentinels() -> Facts:
    """Facts in which everything about the original says so."""
    facts = hospital()
    secret = ColumnFacts(
        "town", "quasi-identifier", "nominal", False, "Generalized.", Shares(("north",), (9,)),
        Shares(("SENTINEL-label",), (7654321,), 7654321, 7654321, 7654321),
    )  # fmt: skip
    number = ColumnFacts(
        "height",
        "other",
        "continuous",
        False,
        "Kept.",
        Bins((0.0, 1.0), (5,)),
        Bins((0.0, 7654321.5), (7654321,), 7654321),
    )
    name = ColumnFacts("SENTINEL-identifier", "identifier", "nominal", False, "Removed.")
    return replace(
        facts,
        columns=(*facts.columns, replace(secret, lost=0.4321, changed=0.4321), number, name),
        records=7654321,
        measures={"risk": {"SENTINEL": 7654321.0}},
        notes=("SENTINEL-note",),
    )


@pytest.mark.parametrize("made", [lambda facts: facts.public(), lambda facts: replace(facts, internal=False)])
def test_the_public_page_holds_nothing_of_the_original(made) -> None:
    pattern = r"SENTINEL|7,?654,?321|7\.654|43\.2%"
    assert re.search(pattern, write_page(sentinels()))
    html = write_page(made(sentinels()))
    assert not re.search(pattern, html)
    assert 'class="before"' not in html
    assert "before and after" not in html


def test_both_pages_say_what_was_lost_in_all_and_how_many_were_left_out() -> None:
    facts = replace(
        hospital(), suppressed=17, lost=0.1234, starred=6, measures={"risk_before": {"prosecutor_max": 1.0}}
    )
    for made in (facts, facts.public()):
        said = Elements(write_page(made)).text
        for words in ("Suppressed17", "Starred6", "Information lost12.3%", "Highest risk of a record20%"):
            assert words in said
        assert ("before 100%" in said) is made.internal


def test_forty_columns_are_all_there() -> None:
    facts = many(40)
    elements = Elements(write_page(facts))
    assert elements.tags["article"] == 40
    assert elements.tags["svg"] == 41


def test_a_page_draws_the_charts_of_the_first_columns_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinfold.release.report.page.MAX_CHARTED_COLUMNS", 30)
    page = Elements(write_page(many(40)))
    assert page.tags["svg"] == 31  # and that of the class sizes
    assert page.text.count("Only the first 30 columns have charts.") == 10


def test_a_page_without_anything_says_so() -> None:
    nothing = replace(
        hospital(), title="", findings=(), records=0, released=0, classes=0, class_sizes=(), method_reason="",
        columns=(), measures={}, notes=(), warnings=(),
    )  # fmt: skip
    text = Elements(write_page(nothing)).text
    assert "No record was released." in text
    assert "Untitled table" in text
    assert "The policy has no promises." in text
    assert "svg" not in Elements(write_page(nothing)).tags


@pytest.mark.parametrize(
    "spread",
    [Shares((), ()), Bins((), ()), Bins((1.0,), ()), Bins((1.0, 2.0), (0,)), Shares((), (), missing=7), None],
)
def test_a_column_without_values_has_no_chart(spread: Bins | Shares | None) -> None:
    column = ColumnFacts("x", "other", "nominal", False, "removed" if spread is None else "", spread)
    html = one(column, class_sizes=())
    assert ("No values to show." in html) is (spread is not None)  # a removed column has none to show
    assert "<svg" not in html


def test_missing_values_are_counted_before_and_after() -> None:
    column = ColumnFacts("x", "other", "nominal", False, "", Shares(("a",), (1,), missing=1200), Shares(("a",), (1,)))
    assert "Missing values: 0 before, 1,200 after." in one(column)


def test_numbers_that_became_intervals_have_two_charts() -> None:
    column = ColumnFacts("x", "other", "continuous", False, "", Shares(("[0, 5)",), (9,)), Bins((0.0, 5.0), (9,)))
    assert one(column, class_sizes=()).count("<svg") == 2
    reverse = replace(column, released=column.original, original=column.released)
    assert one(reverse, class_sizes=()).count("<svg") == 2


def test_a_broken_promise_is_said_first() -> None:
    broken = Finding("5-anonymity", "k", None, 5, 2, False, failing=3, smallest=2)
    text = " ".join(
        Elements(write_page(replace(hospital(), findings=(broken,), class_sizes=((2, 3), (5, 188))))).text.split()
    )
    assert (
        "This table must not be released: 3 of its 191 classes have fewer than 5 records; the smallest has 2." in text
    )
    assert "✕ broken in 3 classes, the smallest of 2 records" in text


def test_the_internal_page_says_what_the_data_is_still_good_for() -> None:
    found = Elements(write_page(hospital()))
    for part in ("Statistics before and after", "53.91", "53.9", "2024-11-09", "age and income", "\N{MINUS SIGN}0.094"):
        assert part in found.text
    assert "more than 75% of the total" in found.text


def test_the_public_page_shows_nothing_that_was_found_in_the_original() -> None:
    shown = write_page(replace(hospital(), internal=False))
    for part in ("Statistics before and after", "53.91", "2024-11-09", "75% of the total", "Correlations"):
        assert part not in shown
    public = hospital().public()
    assert (public.numbers, public.correlations, public.cautions) == ({}, {}, ())


# Words and numbers of a report: exact where it matters, plain everywhere


def judged(*findings: Finding, **changes: object):
    return replace(hospital(), findings=findings, **changes)


def finding(model: str, asked: float, found: float, promise: str = "", holds: bool = True) -> Finding:
    return Finding(promise or f"{model} promise", model, "disease", asked, found, holds, 0 if holds else 2, 7)


def test_very_small_very_large_and_negative_numbers_can_be_read() -> None:
    assert ascii(format_number(0.0000123456)) == r"'1.235 \xd7 10\u207b\u2075'"
    assert ascii(format_number(1.5e18)) == r"'1.5 \xd7 10\xb9\u2078'"
    assert ascii(format_number(-0.25)) == r"'\u22120.25'"
    assert {ascii(format_number(x)) for x in (None, float("nan"), float("inf"))} == {r"'\u2013'"}


@given(st.floats(1e-4, 1e14), st.sampled_from([-1, 1]))
def test_a_quantity_is_right_to_four_digits(number: float, sign: int) -> None:
    text = format_number(sign * number).replace(",", "").replace("\N{MINUS SIGN}", "-")
    assert float(text) == pytest.approx(sign * number, rel=5.1e-4)


@given(st.floats(0, 1), st.floats(0, 1))
def test_two_numbers_that_differ_are_written_differently(one: float, other: float) -> None:
    first, second = format_distinct(one, other)
    assert (first == second) == (one == other) or abs(one - other) < 1e-16


@given(st.floats(0, 1))
def test_a_share_is_all_or_nothing_only_if_it_is(part: float) -> None:
    assert (format_share(part) == "0%") == (part == 0)
    assert (format_share(part) == "100%") == (part == 1)


@given(st.text(st.characters(exclude_categories=())), st.integers(2, 30))
def test_a_label_can_be_seen_written_and_fits(label: str, width: int) -> None:
    shown = make_visible(label)
    assert shown
    assert shown.encode("utf-8")
    assert not any(ord(character) < 32 for character in shown)
    assert measure_text(shorten(shown, width)) <= width


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
    assert verdict.write_headline(judged(k, released=released)) == sentence
    assert verdict.holds(judged(k))


def test_what_holds_is_said_for_every_model() -> None:
    name = '<bdi class="name">disease</bdi>'
    facts = judged(
        finding("t", 0.2, 0.1834), finding("l", 2, 3, "distinct 2-diversity of disease"), finding("alpha", 0.5, 0.4)
    )
    assert verdict.write_headline(facts) == "Every promise about the 1,000 released records holds."
    assert verdict.write_details(facts) == [
        f"In every class, the distribution of {name} differs from the whole release by at most 0.1834.",
        f"Every class has at least 3 different values of {name}.",
        f"In no class does a value of {name} make up more than 40%.",
    ]
    others = judged(finding("l", 2, 2.5, "entropy 2-diversity of disease"), finding("p", 2, 2))
    assert verdict.write_details(others) == [
        "entropy 2-diversity of disease holds; the value is 2.5.",
        f"Every class has at least 2 different values of {name}.",
    ]


@pytest.mark.parametrize("model", ["k", "t", "p", "alpha", "l distinct", "l entropy", "l recursive"])
def test_every_promise_has_a_meaning(model: str) -> None:
    letter, _, kind = model.partition(" ")
    meaning = verdict.explain_promise(finding(letter, 0.25, 0.25, f"{kind} promise" if kind else ""))
    assert meaning.endswith(".")
    assert "{" not in meaning
    assert ("disease" in meaning) == (letter != "k")


def test_a_promise_of_an_unknown_model_stands_by_itself() -> None:
    assert verdict.explain_promise(finding("zeta", 1, 1)) == ""
    assert verdict.describe_limit(finding("zeta", 1, 1)) == "at least"


def test_what_is_broken_comes_first_and_hides_what_holds() -> None:
    facts = judged(
        Finding("5-anonymity", "k", None, 5, 5, True),
        finding("t", 0.2, 0.2000004, "0.2-closeness of disease", holds=False),
        finding("p", 2, 1, "2-sensitivity of disease", holds=False),
    )
    assert not verdict.holds(facts)
    assert verdict.write_headline(facts) == (
        "This table must not be released: 0.2-closeness of disease does not hold in 2 classes "
        "(0.2000004 found, at most 0.2 required)."
    )
    assert len(verdict.write_details(facts)) == 1
    assert "2-sensitivity of disease" in verdict.write_details(facts)[0]


def test_one_class_that_fails_is_one() -> None:
    facts = judged(Finding("5-anonymity", "k", None, 5, 1, False, failing=1, smallest=1), classes=1)
    expected = "This table must not be released: 1 of its 1 class has fewer than 5 records; the smallest has 1."
    assert verdict.write_headline(facts) == expected


def test_many_promises_are_counted_after_the_first() -> None:
    said = verdict.write_details(judged(*(finding("t", 0.2, 0.1) for _ in range(12))))
    assert len(said) == 3
    assert said[-1] == "10 further promises kept; see below."


def test_nothing_promised_is_nothing_kept() -> None:
    assert not verdict.holds(judged())
    assert verdict.write_headline(judged()) == "Nothing was promised about the 1,000 records of this table."
    assert verdict.write_headline(judged(released=0)) == "No record was released."
    assert verdict.write_details(judged()) == []
