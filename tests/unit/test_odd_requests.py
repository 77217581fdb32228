"""Requests that once ended in a traceback or a broken promise: one test a cause."""

from __future__ import annotations

import inspect
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from command import run, text
from kinfold.methods.partition.refine_under import refine_under
from kinfold.methods.partition.requirement import Requirement
from kinfold.models import LDiversity
from kinfold.request.keywords import requested
from kinfold.request.policy import ColumnPolicy, HierarchySpec, Policy
from kinfold.rows.points import Nested, Points
from kinfold.rows.tally import of_labels

N = 60


def words(seed: int, many: int, n: int = N) -> list[str]:
    return [f"w{i}" for i in np.random.default_rng(seed).integers(0, many, n)]


def policy(columns: dict[str, Any], method: str = "auto", **privacy: Any) -> dict[str, Any]:
    return {"privacy": {"k": 3, **privacy}, "method": {"name": method, "refine_steps": 20}, "columns": columns}


def test_quasi_identifiers_that_are_all_nominal_with_t(tmp_path: Path) -> None:
    rows = "".join(f"{a},{b},{c}\n" for a, b, c in zip(words(1, 2), words(2, 9), words(3, 3), strict=True))
    table = text(tmp_path, "t.csv", "sex,zip,disease\n" + rows)
    asked = ("--quasi", "sex,zip", "--confidential", "disease", "-k", 5, "-t", 0.3)
    assert run("anonymize", table, *asked, "--out", tmp_path / "out").code == 0


def test_points_without_numbers_are_refined_under_a_promise() -> None:
    codes = np.random.default_rng(0).integers(0, 9, (N, 1)).astype(np.int32)
    points = Points(np.empty((N, 0)), codes, (Nested.flat(9),))
    wages = Requirement.close(np.arange(N) % 5, 0.9)
    start = (np.arange(N) // 3).astype(np.int32)
    found = refine_under(points, start, 3, [wages], steps=400 * N)
    assert np.bincount(found.labels).min() >= 3
    assert found.cost < 20


@pytest.mark.parametrize("method", ["auto", "t-first", "k-first", "t-merge", "mdav"])
def test_fewer_records_than_k_with_t(method: str) -> None:
    table = pa.table({"age": [71, 72], "disease": ["flu", "cold"]})
    columns = {"age": {"role": "quasi"}, "disease": {"role": "confidential"}}
    with pytest.raises(kinfold.Unreachable, match="k is 3, but there are only 2 records"):
        kinfold.anonymize(table, policy(columns, method, t=0.5))


@pytest.mark.parametrize("method", ["auto", "datafly", "lattice", "mingen-cell"])
def test_a_hierarchy_over_a_column_of_nothing_but_nulls(method: str, tmp_path: Path) -> None:
    nothing = pa.nulls(N, pa.string())
    table = pa.table({"sex": words(1, 2), "zip": nothing, "disease": nothing})
    hierarchy = {"mask": 3}
    columns = {
        "sex": {"role": "quasi"},
        "zip": {"role": "quasi", "type": "nominal", "hierarchy": hierarchy},
        "disease": {"role": "confidential", "type": "nominal", "hierarchy": hierarchy},
    }
    release = kinfold.anonymize(table, policy(columns, method, t=0.5))
    assert release.frame.column("zip").null_count == N
    release.save(tmp_path / "out")
    assert run("verify", tmp_path / "out").code == 0


@pytest.mark.parametrize(("n", "t", "people", "seed"), [(17, 0.2, 12, 35), (24, 0.15, 8, 39), (30, 0.2, 12, 10)])
def test_people_are_counted_in_classes_as_released(n: int, t: float, people: int, seed: int) -> None:
    """Classes that come out alike are one in the release, and a person in both is counted once."""
    chance = np.random.default_rng(seed)
    table = pa.table(
        {
            "zip": [f"w{i}" for i in chance.integers(0, 30, n)],
            "wage": chance.integers(0, 12, n),
            "who": [f"p{i}" for i in chance.integers(0, people, n)],
        }
    )
    columns = {
        "zip": {"role": "quasi", "type": "nominal", "average": "generalize"},
        "wage": {"role": "confidential", "type": "continuous"},
        "who": {"role": "identifier"},
    }
    asked = {"privacy": {"k": 3, "t": t, "unit": "who"}, "method": {"name": "mdav"}, "columns": columns}
    assert kinfold.anonymize(table, asked).verdict.holds


@pytest.mark.parametrize("role", ["quasi", "confidential"])
@pytest.mark.parametrize("unit", [5e-324, 1e-170, 1e140])
def test_numbers_whose_squares_a_double_cannot_hold(role: str, unit: float, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    table = pa.table({"age": chance.integers(20, 90, N), "x": chance.integers(0, 9, N) * unit})
    columns = {"age": {"role": "quasi"}, "x": {"role": role, "type": "continuous"}}
    release = kinfold.anonymize(table, policy(columns, "mdav"))
    json.dumps(release.measures.to_dict(), allow_nan=False)
    json.dumps(release.measures.statistics.to_dict(), allow_nan=False)
    release.save(tmp_path / "out")


@pytest.mark.parametrize("role", ["quasi", "confidential"])
@pytest.mark.parametrize("method", ["auto", "mdav"])
def test_years_after_9999(role: str, method: str, tmp_path: Path) -> None:
    day = 86_400_000_000
    first = 2_932_897 * day  # the first of January 10000
    moments = pa.array([first + day * int(i) for i in np.random.default_rng(0).integers(0, 999, N)], pa.timestamp("us"))
    columns = {"age": {"role": "quasi"}, "x": {"role": role, "type": "date"}, "sex": {"role": "confidential"}}
    table = pa.table({"age": [i % 7 for i in range(N)], "x": moments, "sex": words(0, 2)})
    kinfold.anonymize(table, policy(columns, method, t=0.9)).save(tmp_path / "out")
    assert run("verify", tmp_path / "out").code == 0


def test_a_generalizing_method_does_not_ask_for_the_hierarchy_that_is_there() -> None:
    table = pa.table({"age": list(range(N))})
    columns = {"age": {"role": "quasi", "average": "mean", "hierarchy": {"intervals": [5, 20]}}}
    with pytest.raises(kinfold.PolicyError, match=r"columns.age.average is mean[\s\S]*leave out the average"):
        kinfold.anonymize(table, policy(columns, "lattice"))


THINGS: list[Any] = [
    5,
    10**400,
    float("nan"),
    float("inf"),
    1j,
    True,
    b"x",
    "1" * 400,
    print,
    object(),
    [[1]],
    [None],
    {1: 2},
]
PEOPLE = pa.table({"a": [i % 12 for i in range(N)], "b": [i % 7 for i in range(N)], "s": words(5, 3)})
KEYWORDS = [
    each
    for each in inspect.signature(kinfold.anonymize).parameters
    if each not in ("source", "progress", "ask", "saved")
]


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_keyword_of_a_wrong_type_is_refused_or_taken(name: str) -> None:
    for given in THINGS:
        with suppress(kinfold.KinfoldError):
            asked = {"quasi": ["a"], "k": 3, name: given}
            requested(given, {}) if name == "policy" else requested(None, asked)


@pytest.mark.parametrize(
    "key", [*ColumnPolicy.model_fields, *(f"hierarchy.{each}" for each in HierarchySpec.model_fields)]
)
def test_a_key_of_a_column_that_holds_anything_is_refused_or_taken(key: str) -> None:
    name, _, inner = key.partition(".")
    for given in [*THINGS, [10**400], -(10**400), 2**64, 5e-324]:
        with suppress(kinfold.KinfoldError):
            Policy.parse(policy({"a": {"role": "quasi", name: {inner: given} if inner else given}}))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: kinfold.anonymize(PEOPLE, 5), "the policy is given as int"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=print, k=3), "quasi is given as builtin_function_or_method"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=["a"], k=3, progress=5), "progress is given as int"),
        (lambda: kinfold.anonymize(PEOPLE, policy({"a": {"role": "quasi", "top": 10**400}})), "columns.a.top"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=["a"], k=3, memory="9" * 400 + "GB"), "so much memory"),
        (lambda: kinfold.compare(PEOPLE, policy({"a": {"role": "quasi"}}), methods=["mdav"], k=1j), "k is given as"),
        (lambda: kinfold.measure(PEOPLE, PEOPLE, quasi=["a"], k=3, threshold="x"), "the threshold"),
        (lambda: kinfold.measure(PEOPLE, PEOPLE, quasi=["a"], k=3, task=[1]), "the task"),
        (lambda: kinfold.profile("1" * 400), "the path cannot be used"),
        (lambda: kinfold.verify("1" * 400, quasi=["a"], k=3), "the path cannot be used"),
    ],
)
def test_what_no_function_takes_is_refused_with_a_message(call: Any, said: str) -> None:
    with pytest.raises(kinfold.KinfoldError, match=said):
        call()


@pytest.mark.parametrize("c", [1e308, 5e-324])
def test_any_c_of_recursive_diversity(c: float) -> None:
    tally = of_labels(np.array([0, 0, 0, 1, 1]), {"s": ["flu", "flu", "cold", "flu", "cold"]})
    assert LDiversity(2, "s", "recursive", c).check(tally).found == (2 if c > 1 else 0)


def test_a_release_used_from_many_threads(tmp_path: Path) -> None:
    release = kinfold.anonymize(PEOPLE, quasi=["a", "b"], confidential=["s"], k=5)

    def use(turn: int) -> int:
        if turn % 2:
            return len(release.frame) + len(release.labels) - N
        release.save(tmp_path / str(turn), progress=(lambda *_: None) if turn % 4 else None)
        return N

    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(use, range(8))] == [N] * 8
    files = [(tmp_path / turn / "public" / "release.csv").read_bytes() for turn in "0246"]
    assert len({*files}) == 1


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us")])
@pytest.mark.parametrize("year", [-719_528, -800_000, 3_000_000])
def test_confidential_dates_of_any_year(kind: pa.DataType, year: int, tmp_path: Path) -> None:
    days = pa.array([(year, year + 1, 18_000)[i % 3] for i in range(24)], pa.int32()).cast(pa.date32()).cast(kind)
    table = pa.table({"a": [i % 6 for i in range(24)], "d": days})
    columns = {"a": {"role": "quasi"}, "d": {"role": "confidential"}}
    kinfold.anonymize(table, policy(columns, t=0.9)).save(tmp_path / "out")  # both checkers agree
    assert kinfold.verify(tmp_path / "out", twice=True).holds


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%d %H:%M:%S"])
def test_confidential_dates_of_the_year_0_in_a_csv_file(form: str, tmp_path: Path) -> None:
    days = [form.replace("%Y", y).replace("%m", "02").replace("%d", "29") for y in ("0000", "2000", "0004")]
    days = [day.replace("%H:%M:%S", "10:00:00") for day in days]
    table = text(tmp_path, "t.csv", "a,d\n" + "".join(f"{i % 6},{days[i % 3]}\n" for i in range(24)))
    columns = {"a": {"role": "quasi"}, "d": {"role": "confidential", "type": "date"}}
    kinfold.anonymize(table, {**policy(columns, t=0.9), "source": {"dates": form}}).save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).holds
