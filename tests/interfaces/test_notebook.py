"""What a notebook shows: an element for each value, with its charts, names escaped, and a short line of text."""

import inspect
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import kinfold
from kinfold.comparison import Outcome, Setting, rank

NAME = "<b>age</b>"
FRAME = pd.DataFrame(
    {
        NAME: [20 + i * 7 % 41 for i in range(30)],
        "town": [("north", "south", "east")[i % 3] for i in range(30)],
        "disease": [("flu", "cold")[i % 2] for i in range(30)],
    }
)
ROLES: dict[str, Any] = {"quasi": [NAME, "town"], "confidential": ["disease"], "k": 3, "method": "mdav"}


class Words(HTMLParser):
    """The elements and the text of a piece of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, _: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def release() -> kinfold.Release:
    return kinfold.anonymize(FRAME, **ROLES)


def outcome(method: str, k: int, risk: float, loss: float) -> Outcome:
    measures = {"risk": {"linkage": risk}, "loss": {"overall": loss}}
    return Outcome(Setting(method, k), {**measures, "classes": 1, "suppressed": 0, "seconds": 0.1})


def shown(release: kinfold.Release, kind: str) -> Any:
    if kind == "comparison":
        return rank([outcome("mdav", 3, 0.3, 0.1), outcome("<i>x</i>", 5, 0.2, 0.4)])
    return {
        "release": lambda: release,
        "verdict": lambda: release.verdict,
        "measures": lambda: release.measures,
        "profile": lambda: kinfold.profile(FRAME),
    }[kind]()


@pytest.mark.parametrize(
    ("kind", "words", "charts"),
    [
        ("release", "Every one of the 30 released records shares", 3),
        ("verdict", "3-anonymity", 0),
        ("measures", "of the information of the quasi-identifiers was lost", 0),
        ("profile", "30 records, 3 columns", 0),
        ("comparison", "Take mdav with", 1),
    ],
)
def test_a_value_is_shown_with_its_charts_and_its_names_escaped(
    release: kinfold.Release, kind: str, words: str, charts: int
) -> None:
    html = shown(release, kind)._repr_html_()
    page = Words(html)
    assert words in page.text
    assert page.tags.count("svg") == charts
    assert not {"script", "img", "a", "link", "iframe"} & set(page.tags)
    assert "<b>age" not in html
    assert "<i>x" not in html
    if kind in ("release", "measures", "profile"):
        assert NAME in page.text
        assert page.text.count("%") >= 2


def test_two_of_them_in_one_notebook_share_no_identifier(release: kinfold.Release) -> None:
    one, other = ({part.split('"')[0] for part in release._repr_html_().split(' id="')[1:]} for _ in range(2))
    assert one
    assert not one & other


def test_the_text_of_a_value_is_a_short_line(release: kinfold.Release) -> None:
    lost = release.measures["loss"]["overall"]
    assert repr(release) == f"<Release: 30 records in 9 classes, k = 3, {lost:.1%} lost, by mdav>"
    assert repr(release.verdict) == "<Verdict: holds; 30 records in 9 classes, k = 3>"
    assert repr(release.measures) == f"<Measures: {lost:.1%} lost, highest risk 33.3%>"
    assert repr(kinfold.profile(FRAME)) == "<Profile: 30 records, 3 columns>"
    assert repr(shown(release, "comparison")) == "<Comparison: 2 settings; the best is mdav with k = 3>"
    assert len(repr(release.measures.risk_by_record)) < 80


def test_the_keywords_are_in_the_signature_and_each_one_is_taken() -> None:
    for function in (kinfold.anonymize, kinfold.verify, kinfold.measure):
        listed = inspect.signature(function).parameters
        assert {"quasi", "confidential", "identifier", "k", "t", "l", "method", "refine", "others", "order"} <= set(
            listed
        )
        assert not [name for name, each in listed.items() if each.kind is inspect.Parameter.VAR_KEYWORD]
    assert {"weights", "population", "threshold", "task", "columns"} <= set(
        inspect.signature(kinfold.measure).parameters
    )
    own = {"source", "policy", "progress", "ask", "saved", "answers", "accept_proposal", "after"}
    from kinfold.policy.schema import collect_policy_values

    for name, each in inspect.signature(kinfold.anonymize).parameters.items():
        if name not in own:
            sections = collect_policy_values({name: each.default if each.default is not None else []})
            assert name in ("quasi", "confidential", "identifier") or any(sections.values()), name
    assert Path(inspect.getsourcefile(inspect.unwrap(kinfold.anonymize)) or "").name == "pipeline.py"


def test_a_keyword_that_nobody_knows_is_an_error_that_names_it() -> None:
    with pytest.raises(kinfold.PolicyError, match="kk"):
        kinfold.anonymize(FRAME, **{**ROLES, "kk": 5})


def test_a_verdict_draws_what_was_found_beside_what_was_asked(release: kinfold.Release) -> None:
    wide = kinfold.verify(release.frame, quasi=list(release.verdict.quasi), k=2, others="release")
    assert 'style="width: 100.0%' in wide._repr_html_()
    assert 'style="left: 66.7%' in wide._repr_html_()  # three found, two asked
