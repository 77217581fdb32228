"""Every method, every kind of columns, every model and pair of models: a release that keeps its promises, or a reason."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import kinfold
from battery.cases import Case, case
from battery.factors import choices
from battery.plain import broken, rows_in, rows_of
from kinfold.policy import METHODS

RELEASED = 0.4  # of the cases of a method at least


@pytest.mark.parametrize("method", METHODS)
def test_every_request_ends_in_a_release_that_keeps_its_promises_or_in_a_reason(method: str, tmp_path: Path) -> None:
    ends: Counter[str] = Counter()
    for choice in choices():
        if choice["method"] != method:
            continue
        drawn = case(choice)
        folder = tmp_path / str(choice["number"])
        folder.mkdir()
        try:
            ends[ended(drawn, folder)] += 1
        except Exception as error:
            raise AssertionError(f"the case of {choice}: {type(error).__name__}") from error
    assert ends["released"] >= RELEASED * ends.total(), ends


def ended(drawn: Case, folder: Path) -> str:
    """Run a case and judge how it ended; return the end."""
    try:
        release = kinfold.anonymize(drawn.source(folder), drawn.policy)
    except (kinfold.PolicyError, kinfold.DataError, kinfold.Unreachable) as error:
        refused_well(error, drawn)
        return type(error).__name__
    json.dumps(release.measures.to_dict(), allow_nan=False)
    keeps_promises(rows_of(release.frame), drawn)
    if drawn.choice["saved"]:
        release.save(folder / "out")
        keeps_promises(rows_in(folder / "out" / "public"), drawn)
    return "released"


def keeps_promises(rows: list[dict], drawn: Case) -> None:
    assert rows
    joint = drawn.confidential if drawn.joint else ()
    assert broken(rows, drawn.quasi, drawn.k, drawn.promises, joint) == []


def refused_well(error: kinfold.KinfoldError, drawn: Case) -> None:
    """A refusal says what to do and shows no value of the data."""
    assert all(problem.what and problem.fix for problem in error.problems)
    shown = [value for value in drawn.values() if value in str(error)]
    assert not shown
