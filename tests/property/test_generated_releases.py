"""Generated releases, saved as anybody would, and checked by the plain checker and by nothing of kinfold's own.

The short form makes a few dozen, the long form thousands. A release is false where the checker finds less than what was
asked for or certified; none may be.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import cases, tally_up
from releases.expected import expected
from releases.judged_releases import Judge, released, tried
from releases.requests import Request, request

pytestmark = pytest.mark.slow

COUNT = cases(60, 1_070)  # in the long form enough for 10,000 releases, with those refused
PART = 20 if COUNT <= 60 else 100  # of few requests, chance alone may have too many refused
REFUSED = 0.3  # of the requests at most


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    """A judge, who is called once: to come takes it as long as dozens of releases."""
    with Judge() as called:
        yield called


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, COUNT, PART))
def test_no_release_is_false(first: int, judge: Judge, tmp_path: Path) -> None:
    ends, false = tried(map(request, range(first, min(COUNT, first + PART))), tmp_path, judge)
    tally_up("releases", ends["released"])
    tally_up("requests refused", ends.total() - ends["released"])
    tally_up("false releases", len(false))
    assert not false
    assert ends.total() - ends["released"] <= REFUSED * ends.total()


def test_people_with_joint_promises_under_every_model_are_among_them() -> None:
    drawn = [request(number).privacy for number in range(60)]
    asked = [each for each in drawn if {"unit", "joint"} <= {*each}]
    kinds = {each.get("l_kind") for each in asked if "l" in each}
    assert kinds == {"distinct", "entropy", "recursive"}
    assert {"t", "p", "alpha"} <= {key for each in asked for key in each}


# The judge can say no


CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "k is": lambda _: {"k": 99},
    "t of": lambda asked: {"t": dict.fromkeys(asked["confidential"], 0.0)},
    "l of": lambda asked: {"l": dict.fromkeys(asked["confidential"], 99)},
    " of ": lambda _: {"p": 99},
    "alpha of": lambda _: {"alpha": 0.01},
    "entropy": lambda asked: {"entropy": dict.fromkeys(asked["confidential"], 99)},
    "recursively": lambda asked: {"recursive": {name: [2, 0.01] for name in asked["confidential"]}},
    "the distance is": lambda asked: {"distance": dict.fromkeys(asked["confidential"], "none")},
    "the original has not": lambda asked: {"values": {name: [] for name in asked["values"]}},
    "joint promises": lambda asked: {"joint": not asked["joint"]},
    "other quasi-identifier columns": lambda asked: {"quasi-identifier": asked["quasi-identifier"][1:]},
    "other confidential columns": lambda asked: {"confidential": asked["confidential"][1:]},
    " records": lambda _: {"least": 9999},
    "records'": lambda _: {"most": 3},
    "must not be there": lambda asked: {"gone": asked["kept"][:1]},
    "one lost": lambda _: {"kept": ["nowhere"]},
}


def known(form: str) -> Request:
    """A request with confidential texts and no promise but k, so that whatever is asked for besides is too much."""
    drawn = (request(number) for number in range(1000))
    return next(r for r in drawn if r.output["format"] == form and [*r.privacy] == ["k"] and expected(r)["values"])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release with confidential texts."""
    folder = tmp_path_factory.mktemp("court")
    assert released(known("csv"), folder) == "released"
    return folder / "out" / "public"


@pytest.mark.parametrize("said", CHANGES)
def test_the_judge_finds_what_is_less_than_was_asked_for(saved: Path, said: str, judge: Judge) -> None:
    asked = expected(known("csv"))
    assert judge.falsehoods(saved, asked) == []
    assert said in str(judge.falsehoods(saved, {**asked, **CHANGES[said](asked)}))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_judge_finds_a_file_that_was_changed(form: str, tmp_path: Path, judge: Judge) -> None:
    drawn = known(form)
    assert released(drawn, tmp_path) == "released"
    table = tmp_path / "out" / "public" / f"release.{form}"
    table.write_bytes(table.read_bytes() + b"\n")
    assert "changed after the release" in str(judge.falsehoods(table.parent, expected(drawn)))


def test_the_judge_counts_people_by_the_original(tmp_path: Path, judge: Judge) -> None:
    drawn = request(5)
    assert released(drawn, tmp_path) == "released"
    public, asked = tmp_path / "out" / "public", expected(drawn)
    assert judge.falsehoods(public, asked) == []
    one = dict.fromkeys(asked["people"], "the same person")
    said = str(judge.falsehoods(public, {**asked, "people": one}))
    assert "fewer than k people" in said
    assert "people: closeness of" in str(judge.falsehoods(public, {**asked, "t": dict.fromkeys(asked["t"], 0.0)}))
    assert "the certificate says" in said
