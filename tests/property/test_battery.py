"""Every method, every kind of columns, every model and pair of models, whatever is missing: a release, or a reason.

A release keeps its promises when they are checked by their definitions, on the frame and on the file. A refusal says
what to do and shows no value of the data; and where one class of all records would have kept every promise, a
method that forms classes may not refuse, unless more records than may be suppressed would keep no quasi-identifier.
"""

import importlib
import json
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kinfold
from battery.cases import Case, case, get_needs
from battery.factors import FACTORS, choices
from battery.plain import WEIGHT, Row, broken, rows_in, rows_of, text
from kinfold.methods import partition
from kinfold.policy.registry import AUTO, list_method_names, list_methods
from ledger import tally_up

RELEASED = 0.2  # of the requests of a method, at least: univariate is refused wherever there is more than one column
EMPTIED = re.compile("([0-9]+) records? would keep no quasi-identifier, but at most ([0-9]+) may be suppressed")
REFUSALS = (kinfold.PolicyError, kinfold.DataError, kinfold.Unreachable)
LARGE = 8  # records above which the way of large tables is taken, where a case asks for it


def test_every_registered_method_is_in_the_battery() -> None:
    assert [AUTO, *list_methods()] == list(FACTORS["method"])


def test_every_pair_of_factors_meets() -> None:
    rows = choices()
    for one in FACTORS:
        for other in FACTORS:
            met = {(row[one], row[other]) for row in rows}
            wanted = {(a, b) for a in FACTORS[one] for b in FACTORS[other] if one != other or a == b}
            assert met >= wanted, (one, other)


@pytest.mark.slow
@pytest.mark.timeout(3000)  # with KINFOLD_TRUST_SCALE
@pytest.mark.parametrize("method", list_method_names())
def test_every_request_ends_in_a_release_that_keeps_its_promises_or_in_a_reason(method: str, tmp_path: Path) -> None:
    ends: Counter[str] = Counter()
    for choice in choices():
        if choice["method"] == method:
            ends[judged(case(choice), tmp_path)] += 1
    tally_up("requests of the battery", ends.total())
    tally_up("releases of the battery", ends["released"])
    assert ends["released"] >= RELEASED * ends.total(), ends


def judged(drawn: Case, folder: Path) -> str:
    """Run a case in a folder of its own; an end that is none is told with the choice that it came from."""
    place = folder / str(drawn.choice["number"])
    place.mkdir()
    try:
        with of_size(drawn.choice["size"]):
            return ended(drawn, place)
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} in the case of {drawn.choice}") from error


@contextmanager
def of_size(size: str) -> Iterator[None]:
    """Let tables of a few records take the way of large ones: the thresholds of the partitioners, lowered."""
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.iter_modules(partition.__path__, f"{partition.__name__}.")
    ]
    bounded = [module for module in modules if hasattr(module, "SMALL")] if size == "large" else []
    with pytest.MonkeyPatch.context() as patch:
        for module in bounded:
            patch.setattr(module, "SMALL", LARGE)
        yield


def ended(drawn: Case, folder: Path) -> str:
    """Run a case and judge how it ended; return the end."""
    source, policy = drawn.source(folder), drawn.ask(folder)
    try:
        release = kinfold.anonymize(source, policy)
    except REFUSALS as error:
        refused_well(error, drawn)
        return type(error).__name__
    json.dumps(release.measures.to_dict(), allow_nan=False)
    frame = release.frame
    rows = rows_of(frame)
    if WEIGHT in drawn.table.column_names:
        weights = [
            n for n, stays in zip(drawn.table.column(WEIGHT).to_pylist(), release.recoding.kept, strict=True) if stays
        ]
        rows = [{**row, WEIGHT: weight} for row, weight in zip(rows, weights, strict=True)]
    keeps_promises(rows, drawn)
    if drawn.unit:
        keeps_people_apart(rows, release.recoding.kept, drawn)
    elif not drawn.choice["saved"] and drawn.choice["source"] != "csv":  # the frame of a CSV file is text
        assert kinfold.verify(frame, policy).holds
    if drawn.choice["saved"]:
        release.save(folder / "out")
        keeps_promises(rows_in(folder / "out" / "public"), drawn)
    return "released"


def keeps_promises(rows: Sequence[Row], drawn: Case) -> None:
    assert rows
    known = [each for each in drawn.promises if each.model != "individual risk" or WEIGHT in rows[0]]  # not in a file
    assert broken(rows, drawn.quasi, drawn.k, known, drawn.confidential if drawn.joint else ()) == []


def keeps_people_apart(rows: Sequence[Row], kept: np.ndarray, drawn: Case) -> None:
    """In every class there are k people."""
    people = [who for who, stays in zip(drawn.table.column(drawn.unit).to_pylist(), kept, strict=True) if stays]
    classes: dict[Any, set[str]] = {}
    for row, who in zip(rows, people, strict=True):
        classes.setdefault(tuple(text(row[name]) for name in drawn.quasi), set()).add(who)
    assert min(map(len, classes.values())) >= drawn.k


def refused_well(error: kinfold.KinfoldError, drawn: Case) -> None:
    assert all(problem.what and problem.fix for problem in error.problems)
    assert not [value for value in drawn.values() if value in str(error)]
    if isinstance(error, kinfold.Unreachable) and "rows" not in get_needs(drawn.choice["method"]) and not drawn.unit:
        rows = drawn.as_one()
        joint = drawn.confidential if drawn.joint else ()
        limit, records = drawn.choice["suppression"], drawn.table.num_rows
        limit = int(limit * records + 1e-9) if isinstance(limit, float) else limit
        if emptied := EMPTIED.match(str(error)):
            assert int(emptied[1]) > int(emptied[2]) <= limit
            return
        if records - len(rows) > limit:  # left out for a missing value: the limit counts these too
            assert "suppress" in str(error) or not rows
            return
        assert not rows or broken(rows, drawn.quasi, drawn.k, drawn.promises, joint)
