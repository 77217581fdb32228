"""Generated releases, saved as anybody would save them, and checked by the plain checker and by nothing of kinfold's own.

The short form makes a few dozen, the long form thousands. A release is false where the checker finds less than what was
asked for or certified; none may be.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger import SCALE, tally_up
from releases.court import Judge, released, tried
from releases.expected import expected
from releases.requests import request

SHORT, LONG, PART = 60, 1_000, 20  # the long form has so many for each unit of scale
COUNT = SHORT if SCALE <= 1 else round(LONG * SCALE)
REFUSED = 0.3  # of the requests at most


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, COUNT, PART))
def test_no_release_is_false(first: int, tmp_path: Path) -> None:
    ends, false = tried(map(request, range(first, min(COUNT, first + PART))), tmp_path)
    tally_up("releases", ends["released"])
    tally_up("releases checked twice", ends["released"])
    tally_up("requests refused", ends.total() - ends["released"])
    tally_up("false releases", len(false))
    assert not false
    assert ends.total() - ends["released"] <= REFUSED * ends.total()


# The judge can say no


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release whose request promises k and l of texts."""
    folder = tmp_path_factory.mktemp("court")
    drawn = request(LIED_ABOUT)
    assert released(drawn, folder) == "released"
    return folder / "out" / "public"


LIED_ABOUT = 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"k": 99}, "k is "),
        ({"least": 9999}, "records"),
        ({"most": 3}, "records"),
        ({"quasi-identifier": []}, "other quasi-identifier columns"),
        ({"confidential": []}, "other confidential columns"),
        ({"joint": True}, "joint promises"),
        ({"kept": ["nowhere"]}, "or one lost"),
    ],
)
def test_the_judge_finds_what_is_less_than_was_asked_for(saved: Path, change: dict[str, object], said: str) -> None:
    asked = expected(request(LIED_ABOUT))
    with Judge() as judge:
        assert judge.falsehoods(saved, asked) == []
        assert said in str(judge.falsehoods(saved, {**asked, **change}))


def test_the_judge_finds_a_file_that_was_changed(saved: Path, tmp_path: Path) -> None:
    for file in saved.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    told = json.loads((tmp_path / "certificate.json").read_text())
    (tmp_path / told["release"]["file"]).write_bytes((saved / told["release"]["file"]).read_bytes() + b"\n")
    with Judge() as judge:
        assert "changed afterwards" in str(judge.falsehoods(tmp_path, expected(request(LIED_ABOUT))))
