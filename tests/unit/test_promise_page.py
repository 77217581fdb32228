"""The page of promises: its numbers follow each other, its tests exist, and the reports say what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kinfold.release.report.limits import LIMITS
from kinfold.release.report.page import page
from report_facts import hospital

ROOT = Path(__file__).parents[2]
PROMISE = (ROOT / "docs" / "promise.md").read_text("utf-8")


def test_sentences_are_numbered_one_after_the_other_on_a_page_that_can_be_read_at_once() -> None:
    numbers = [int(number) for number in re.findall(r"^(\d+)\. \*\*", PROMISE, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(PROMISE.splitlines()) <= 120


def test_every_test_that_the_page_names_exists() -> None:
    written = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", PROMISE)
    assert named
    assert [name for name in named if f"def {name}(" not in written] == []


@pytest.mark.parametrize("number", LIMITS)
def test_the_sentences_of_the_reports_are_sentences_of_the_page(number: int) -> None:
    _, limits = PROMISE.split("## What is not promised")
    assert f"\n{number}. **{LIMITS[number]}**" in limits


@pytest.mark.parametrize("internal", [True, False])
def test_both_reports_name_the_page_and_say_what_is_not_promised(internal: bool) -> None:
    html = page(hospital() if internal else hospital().public())
    assert "docs/promise.md" in html
    assert all(f'<li value="{number}">{sentence}</li>' in html for number, sentence in LIMITS.items())


def test_the_readme_and_the_security_page_lead_to_it() -> None:
    assert all("(docs/promise.md)" in (ROOT / name).read_text("utf-8") for name in ("README.md", "SECURITY.md"))
