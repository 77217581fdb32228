"""Requests: what auto chooses, levels as a vector, and requests that once ended in a traceback."""

from __future__ import annotations

import inspect
import json
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from command import run, text
from kinfold.comparison.grid import Setting
from kinfold.errors import PolicyError, Unreachable
from kinfold.methods import plan as choice
from kinfold.methods.partition.refine import refine_under
from kinfold.methods.partition.requirement import Requirement
from kinfold.models import LDiversity
from kinfold.policy.model import ColumnPolicy, HierarchySpec, Method, Policy
from kinfold.policy.registry import list_method_names, list_methods
from kinfold.policy.schema import build_policy
from kinfold.tables.points import NominalScale, Points
from kinfold.tables.tally import tally_labels

TABLE = pa.table(
    {
        "age": [20 + 3 * i % 17 for i in range(30)],
        "zip": [f"0{i % 7}{i % 3}" for i in range(30)],
        "wage": [1000 + i % 5 for i in range(30)],
        "who": [f"p{i % 24}" for i in range(30)],
    }
)
TRUE: dict[str, dict[str, Any]] = {
    "age": {"role": "quasi", "type": "continuous", "average": "generalize", "hierarchy": {"intervals": [5, 10]}},
    "zip": {"role": "quasi", "type": "nominal", "average": "generalize", "hierarchy": {"mask": 3}},
    "wage": {"role": "confidential", "type": "continuous"},
    "who": {"role": "identifier"},
}


def policy(columns: dict[str, dict[str, Any]], method: dict[str, Any] | None = None, **privacy: Any) -> dict[str, Any]:
    return {"privacy": {"k": 3, **privacy}, "method": {"name": "auto", **(method or {})}, "columns": columns}


def plan(columns: dict[str, dict[str, Any]], method: dict[str, Any] | None = None, **privacy: Any) -> Any:
    return kinfold.anonymize(TABLE, policy(columns, method, **privacy)).plan


def without(column: str, key: str) -> dict[str, dict[str, Any]]:
    return {**TRUE, column: {name: value for name, value in TRUE[column].items() if name != key}}


def test_where_values_must_stay_true_it_generalizes_and_says_why() -> None:
    found = plan(TRUE)
    assert found.method == "mingen-cell"
    assert "values must stay true" in found.reason
    assert plan(TRUE, t=0.4).method == "mingen-cell"  # which keeps it


@pytest.mark.slow
@pytest.mark.compiled  # a partition is refined for as many steps however small the table
@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (without("age", "average"), "numbers are averaged"),
        (without("zip", "average"), "categories are averaged"),
        (without("age", "hierarchy"), "a range is narrower than any level"),
        (without("zip", "hierarchy"), "there is nothing to go up"),
    ],
)
def test_otherwise_it_partitions(columns: dict[str, dict[str, Any]], why: str) -> None:
    assert plan(columns).method == "mdav", why
    assert plan(columns, t=0.5).method == "t-first", why
    assert "t-closeness is asked for" in plan(columns, t=0.5).reason


@pytest.mark.slow
@pytest.mark.compiled
def test_what_generalizers_cannot_do_is_left_to_partitioners(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(TRUE, unit="who").method == "mingen-cell"
    monkeypatch.setattr(choice, "MAX_SEPARATE_RECORDS", TABLE.num_rows - 1)
    assert plan(TRUE, unit="who").method == "mdav"
    assert plan(TRUE, joint=True).method == "mdav"
    with pytest.raises(kinfold.PolicyError, match="one by one"):
        plan(TRUE, {"name": "mingen-cell"}, joint=True)
    assert plan(TRUE, {"objective": "discernibility"}).method == "mdav"
    assert plan(TRUE, {"refine": "exact"}).method == "mdav"


@pytest.mark.compiled
def test_a_method_that_takes_too_long_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(list_methods()["mingen-cell"], auto_max_records=TABLE.num_rows - 1)
    monkeypatch.setattr(choice, "list_methods", lambda: {**list_methods(), "mingen-cell": slow})
    assert plan(TRUE).method == "mdav"
    monkeypatch.setattr(
        choice, "list_methods", lambda: {**list_methods(), "mingen-cell": replace(slow, auto_max_records=30)}
    )
    assert plan(TRUE).method == "mingen-cell"


def test_what_it_took_is_recorded_and_repeats_the_release() -> None:
    release = kinfold.anonymize(TABLE, policy(TRUE))
    applied = release.policy.record_choices(release.plan.method, release.plan.steps)
    assert applied.method.name == "mingen-cell"
    again = kinfold.anonymize(TABLE, Policy.parse(applied.model_dump(mode="json", exclude_none=True)))
    assert again.frame.equals(release.frame)


def test_a_named_method_is_refused_what_it_cannot_search_by() -> None:
    with pytest.raises(PolicyError, match="'mingen-cell' cannot search by discernibility"):
        plan(TRUE, {"name": "mingen-cell", "objective": "discernibility"})


# Levels as a vector: the node of the lattice that a policy names.


ZIPS = ["02138", "02138", "02139", "02139", "02141", "02142", "94305"]
SEXES = ["f", "f", "m", "f", "m", "m", "f"]
ZIP_TABLE = pa.table({"zip": ZIPS, "sex": SEXES, "illness": ["a", "b", "a", "b", "a", "b", "a"]})
HEIGHTS = {"zip": 5, "sex": 1}


def levels_policy(
    levels: Any, k: int = 2, suppression: float = 0, name: str = "lattice", **output: str
) -> dict[str, Any]:
    return {
        "privacy": {"k": k},
        "method": {"name": name, "levels": levels, "suppression": suppression},
        "columns": {
            "zip": {"role": "quasi", "type": "nominal", "hierarchy": {"mask": 5}},
            "sex": {"role": "quasi", "type": "nominal"},
            "illness": {"role": "sensitive"},
        },
        "output": {"order": "kept", **output},
    }


def label(text: str, hidden: int) -> str:
    return "*" if hidden == len(text) else text[: len(text) - hidden] + "*" * hidden


@pytest.mark.slow
def test_every_node_is_released_as_plain_masking_and_counting_have_it() -> None:
    for z, s in product(range(HEIGHTS["zip"] + 1), range(HEIGHTS["sex"] + 1)):
        rows = [(label(zip_, z), label(sex, s)) for zip_, sex in zip(ZIPS, SEXES, strict=True)]
        kept = [row for row in rows if rows.count(row) >= 2]
        if not kept:
            with pytest.raises(Unreachable):
                kinfold.anonymize(ZIP_TABLE, levels_policy({"zip": z, "sex": s}, suppression=7))
            continue
        release = kinfold.anonymize(ZIP_TABLE, levels_policy({"zip": z, "sex": s}, suppression=7))
        frame = release.frame
        assert list(zip(frame["zip"].to_pylist(), frame["sex"].to_pylist(), strict=True)) == kept, (z, s)
        assert release.verdict.k >= 2


def test_a_node_that_suppresses_more_than_is_allowed_is_unreachable_and_says_how_much() -> None:
    with pytest.raises(Unreachable, match="suppression of 5 of 7 records, and at most 4 may be suppressed") as said:
        kinfold.anonymize(ZIP_TABLE, levels_policy({"zip": 0, "sex": 0}, suppression=4))
    assert "method.levels" in str(said.value)
    assert len(kinfold.anonymize(ZIP_TABLE, levels_policy({"zip": 0, "sex": 0}, suppression=5)).frame) == 2


@pytest.mark.parametrize("method", ["lattice", "mingen-cell", "auto"])
def test_the_top_of_every_hierarchy_suppresses_no_record(method: str) -> None:
    """All records have only stars, which is one class; of some records it would be suppression."""
    table = pa.table({"zip": ["02138", "02138", "99999", "11111"]})
    column = {"role": "quasi", "hierarchy": {"mask": 5}, "average": "generalize"}
    request = {"privacy": {"k": 2}, "columns": {"zip": column}, "method": {"name": method, "suppression": 0}}
    assert kinfold.anonymize(table, request).frame["zip"].to_pylist() == ["*"] * 4


def test_suppression_may_be_a_share() -> None:
    assert len(kinfold.anonymize(ZIP_TABLE, levels_policy({"zip": 1, "sex": 1}, suppression=0.15)).frame) == 6
    with pytest.raises(Unreachable):
        kinfold.anonymize(ZIP_TABLE, levels_policy({"zip": 1, "sex": 1}, suppression=0.14))


def test_suppressed_records_can_be_starred() -> None:
    release = kinfold.anonymize(ZIP_TABLE, levels_policy({"zip": 1, "sex": 1}, suppression=7, suppressed="star"))
    assert release.frame["zip"].to_pylist() == ["0213*"] * 4 + ["*"] * 3


def test_the_release_says_which_levels_it_has_and_whose_they_are() -> None:
    notes = kinfold.anonymize(ZIP_TABLE, levels_policy({"sex": 1, "zip": 5})).plan.notes
    assert "levels: zip 5 of 5, sex 1 of 1" in notes
    assert "the policy sets the levels" in notes


def test_the_optimum_of_the_search_named_as_levels_gives_the_same_rows() -> None:
    found = kinfold.anonymize(ZIP_TABLE, levels_policy(None, suppression=1))
    named = dict.fromkeys(HEIGHTS, 0)
    for part in found.plan.notes[0].removeprefix("levels: ").split(", "):
        name, level, *_ = part.split()
        named[name] = int(level)
    assert kinfold.anonymize(ZIP_TABLE, levels_policy(named, suppression=1)).frame.equals(found.frame)


def test_every_problem_with_the_levels_is_told_at_once() -> None:
    with pytest.raises(PolicyError) as caught:
        kinfold.anonymize(ZIP_TABLE, levels_policy({"zip": 6, "illness": 1}))
    said = str(caught.value)
    assert "'illness' is not a quasi-identifier" in said
    assert "'zip' has level 6, and its hierarchy ends at level 5" in said
    assert "'sex' has no level" in said


@pytest.mark.parametrize("level", [-1, 1.5, "1", True])
def test_a_level_is_a_whole_number_from_0_up(level: Any) -> None:
    with pytest.raises(PolicyError, match=r"method\.levels"):
        Policy.parse(levels_policy({"zip": level}))


@pytest.mark.parametrize("name", [name for name in list_method_names() if name != "lattice"])
def test_levels_with_another_method_are_refused_and_not_ignored(name: str) -> None:
    with pytest.raises(PolicyError, match='levels are for name = "lattice"'):
        Policy.parse(levels_policy({"zip": 1, "sex": 1}, name=name))
    assert all(key in Method.model_fields for each in list_methods().values() for key in each.keys)


def test_a_comparison_keeps_the_levels_for_the_lattice_alone() -> None:
    asked = Policy.parse(levels_policy({"zip": 1, "sex": 1}))
    assert Setting("lattice", 2, None).apply_to(asked).method.levels == {"zip": 1, "sex": 1}
    other = Setting("mdav", 2, None).apply_to(asked)
    assert other.method.levels is None
    assert Policy.parse(other.model_dump(exclude_none=True)) == other


def test_levels_survive_the_policy_file() -> None:
    asked = Policy.parse(levels_policy({"zip": 1, "sex": 1}))
    assert Policy.parse(tomllib.loads(asked.toml())) == asked


# Requests that once ended in a traceback or a broken promise: one test a cause.


N = 60


def words(seed: int, many: int, n: int = N) -> list[str]:
    return [f"w{i}" for i in np.random.default_rng(seed).integers(0, many, n)]


def request_policy(columns: dict[str, Any], method: str = "auto", **privacy: Any) -> dict[str, Any]:
    return {"privacy": {"k": 3, **privacy}, "method": {"name": method, "refine_steps": 20}, "columns": columns}


def test_quasi_identifiers_that_are_all_nominal_with_t(tmp_path: Path) -> None:
    rows = "".join(f"{a},{b},{c}\n" for a, b, c in zip(words(1, 2), words(2, 9), words(3, 3), strict=True))
    table = text(tmp_path, "t.csv", "sex,zip,disease\n" + rows)
    asked = ("--quasi", "sex,zip", "--confidential", "disease", "-k", 5, "-t", 0.3)
    assert run("anonymize", table, *asked, "--out", tmp_path / "out").code == 0


def test_points_without_numbers_are_refined_under_a_promise() -> None:
    codes = np.random.default_rng(0).integers(0, 9, (N, 1)).astype(np.int32)
    points = Points(np.empty((N, 0)), codes, (NominalScale.flat(9),))
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
        kinfold.anonymize(table, request_policy(columns, method, t=0.5))


@pytest.mark.slow
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
    release = kinfold.anonymize(table, request_policy(columns, method, t=0.5))
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


@pytest.mark.slow
@pytest.mark.parametrize("role", ["quasi", "confidential"])
@pytest.mark.parametrize("unit", [5e-324, 1e-170, 1e140])
def test_numbers_whose_squares_a_double_cannot_hold(role: str, unit: float, tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    table = pa.table({"age": chance.integers(20, 90, N), "x": chance.integers(0, 9, N) * unit})
    columns = {"age": {"role": "quasi"}, "x": {"role": role, "type": "continuous"}}
    release = kinfold.anonymize(table, request_policy(columns, "mdav"))
    json.dumps(release.measures.to_dict(), allow_nan=False)
    json.dumps(release.measures.statistics.to_dict(), allow_nan=False)
    release.save(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize("role", ["quasi", "confidential"])
@pytest.mark.parametrize("method", ["auto", "mdav"])
def test_years_after_9999(role: str, method: str, tmp_path: Path) -> None:
    day = 86_400_000_000
    first = 2_932_897 * day  # the first of January 10000
    moments = pa.array([first + day * int(i) for i in np.random.default_rng(0).integers(0, 999, N)], pa.timestamp("us"))
    columns = {"age": {"role": "quasi"}, "x": {"role": role, "type": "date"}, "sex": {"role": "confidential"}}
    table = pa.table({"age": [i % 7 for i in range(N)], "x": moments, "sex": words(0, 2)})
    kinfold.anonymize(table, request_policy(columns, method, t=0.9)).save(tmp_path / "out")
    assert run("verify", tmp_path / "out").code == 0


def test_a_generalizing_method_does_not_ask_for_the_hierarchy_that_is_there() -> None:
    table = pa.table({"age": list(range(N))})
    columns = {"age": {"role": "quasi", "average": "mean", "hierarchy": {"intervals": [5, 20]}}}
    with pytest.raises(kinfold.PolicyError, match=r"columns.age.average is mean[\s\S]*leave out the average"):
        kinfold.anonymize(table, request_policy(columns, "lattice"))


THINGS: list[Any] = [5, 10**400, float("nan"), float("inf"), 1j, True, b"x", "1" * 400, print, object()]
THINGS += [[[1]], [None], {1: 2}]
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
            build_policy(given, {}) if name == "policy" else build_policy(None, asked)


@pytest.mark.parametrize(
    "key", [*ColumnPolicy.model_fields, *(f"hierarchy.{each}" for each in HierarchySpec.model_fields)]
)
def test_a_key_of_a_column_that_holds_anything_is_refused_or_taken(key: str) -> None:
    name, _, inner = key.partition(".")
    for given in [*THINGS, [10**400], -(10**400), 2**64, 5e-324]:
        with suppress(kinfold.KinfoldError):
            Policy.parse(request_policy({"a": {"role": "quasi", name: {inner: given} if inner else given}}))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: kinfold.anonymize(PEOPLE, 5), "the policy is of the type int"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=print, k=3), "quasi is given as builtin_function_or_method"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=["a"], k=3, progress=5), "progress is given as int"),
        (lambda: kinfold.anonymize(PEOPLE, request_policy({"a": {"role": "quasi", "top": 10**400}})), "columns.a.top"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=["a"], k=3, memory="9" * 400 + "GB"), "so much memory"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=["a"], k=10**400), "at most 100 digits"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=["a"], k=10**99, others="drop"), f"only {N} records"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=["a"], confidential=["s"], k=3, p=10**400), "at most 100 digits"),
        (
            lambda: kinfold.anonymize(PEOPLE, quasi=["a"], k=3, population={"size": 99, "k": 10**12, "alpha": 0.1}),
            "above the size of the population",
        ),
        (lambda: kinfold.anonymize(PEOPLE, request_policy({"s": {"role": "confidential", "order": []}})), "s.order"),
        (lambda: kinfold.anonymize(PEOPLE, quasi=["a"], k=3, average_risk=5e-324, others="drop"), "records"),
        (
            lambda: kinfold.compare(PEOPLE, request_policy({"a": {"role": "quasi"}}), methods=["mdav"], k=1j),
            "k is given as",
        ),
        (lambda: kinfold.measure(PEOPLE, PEOPLE, quasi=["a"], k=3, threshold="x"), "the threshold"),
        (lambda: kinfold.measure(PEOPLE, PEOPLE, quasi=["a"], k=3, task=[1]), "task is given as list"),
        (lambda: kinfold.profile("1" * 400), "the path cannot be used"),
        (lambda: kinfold.verify("1" * 400, quasi=["a"], k=3), "the path cannot be used"),
    ],
)
def test_what_no_function_takes_is_refused_with_a_message(call: Any, said: str) -> None:
    with pytest.raises(kinfold.KinfoldError, match=said):
        call()


class Uncomparable:
    """A value whose comparison is neither true nor false, as those of arrays, frames and `pandas.NA` are."""

    def __bool__(self) -> bool:
        raise TypeError

    __eq__ = __ne__ = lambda self, _: self  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


CALLS: list[tuple[Any, tuple[str, ...]]] = [
    (kinfold.anonymize, ("answers", "accept_proposal", "progress", "ask", "saved", "after", "task", "method")),
    (kinfold.verify, ("rows_only", "require_people", "twice", "together_with", "thousands")),
    (partial(kinfold.measure, PEOPLE), ("measures", "columns", "task", "linkage_subsets", "sampling_weights")),
]


@pytest.mark.parametrize(("call", "name"), [(call, name) for call, names in CALLS for name in names])
def test_an_argument_that_cannot_be_compared_is_refused_by_its_name(call: Any, name: str) -> None:
    with pytest.raises(kinfold.PolicyError, match=f"{name}.* is given as Uncomparable"):
        call(PEOPLE, quasi=["a"], k=3, others="drop", **{name: Uncomparable()})


def test_measures_of_risk_name_an_argument_that_they_cannot_take() -> None:
    for call, name in ((kinfold.risk.interval, "k"), (kinfold.risk.counts, "alpha")):
        with pytest.raises(kinfold.PolicyError, match=f"{name} is given as Uncomparable"):
            call(PEOPLE, ["a"], **{name: Uncomparable()})


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"seed": 2.5}, {"steps": "3"}, {"seconds": float("nan")}])
def test_refinement_names_an_argument_that_it_cannot_take(wrong: dict[str, Any]) -> None:
    with pytest.raises(kinfold.PolicyError, match=f"{next(iter(wrong))} is given as"):
        kinfold.partition.refine([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1], 2, **wrong)


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"answers": {1: 2}}, "answers is given as dict, but must be a mapping with names"),
        ({"after": "folder"}, "after is given as str, but must be a list of paths"),
        ({"na": "\ud800"}, "'source.na' is text that is not Unicode"),
        ({"quasi": ["\ud800"]}, "'columns' is text that is not Unicode"),
    ],
)
def test_names_and_texts_that_cannot_be_written_are_refused(keywords: dict[str, Any], said: str) -> None:
    with pytest.raises(kinfold.PolicyError, match=said):
        kinfold.anonymize(PEOPLE, **{"quasi": ["a"], "k": 3, "others": "drop"} | keywords)


@pytest.mark.parametrize("path", ["\0", "\ud800", "a" * 5000])
def test_a_path_that_no_file_has_is_refused_wherever_it_is_given(path: str, tmp_path: Path) -> None:
    table = text(tmp_path, "t.csv", "a\n" + "1\n2\n" * 20)
    people = {"unit": "a"}, {"surrogate": True}
    column, plain = {"role": "quasi"}, request_policy({"a": {"role": "quasi"}})
    requests = [
        plain | {"engine": {"spill": path}},
        request_policy({"a": column | {"hierarchy": {"file": path}}}),
        request_policy({"a": column}, population={"table": path, "k": 3}),
        request_policy({"a": column}, **people[0]) | {"output": {**people[1], "surrogate_secret": path}},
        request_policy({"a": column}, **people[0]) | {"output": people[1], "tables": {"b": {"file": path}}},
        path,
    ]
    release = kinfold.anonymize(table, plain)
    calls = [
        *(lambda request=each: kinfold.anonymize(table, request) for each in requests),  # type: ignore[misc]
        lambda: kinfold.anonymize(path, plain),
        lambda: kinfold.verify(path, plain),
        lambda: kinfold.verify(release.save(tmp_path / "out", force=True), together_with=[path]),
        lambda: release.save(path),
    ]
    for call in calls:
        with pytest.raises(kinfold.KinfoldError, match="cannot be used"):
            call()


@pytest.mark.parametrize("c", [1e308, 5e-324])
def test_any_c_of_recursive_diversity(c: float) -> None:
    tally = tally_labels(np.array([0, 0, 0, 1, 1]), {"s": ["flu", "flu", "cold", "flu", "cold"]})
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us")])
@pytest.mark.parametrize("year", [-719_528, -800_000, 3_000_000])
def test_confidential_dates_of_any_year(kind: pa.DataType, year: int, tmp_path: Path) -> None:
    days = pa.array([(year, year + 1, 18_000)[i % 3] for i in range(24)], pa.int32()).cast(pa.date32()).cast(kind)
    table = pa.table({"a": [i % 6 for i in range(24)], "d": days})
    columns = {"a": {"role": "quasi"}, "d": {"role": "confidential"}}
    kinfold.anonymize(table, request_policy(columns, t=0.9)).save(tmp_path / "out")  # both checkers agree
    assert kinfold.verify(tmp_path / "out", twice=True).holds


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%d %H:%M:%S"])
def test_confidential_dates_of_the_year_0_in_a_csv_file(form: str, tmp_path: Path) -> None:
    days = [form.replace("%Y", y).replace("%m", "02").replace("%d", "29") for y in ("0000", "2000", "0004")]
    days = [day.replace("%H:%M:%S", "10:00:00") for day in days]
    table = text(tmp_path, "t.csv", "a,d\n" + "".join(f"{i % 6},{days[i % 3]}\n" for i in range(24)))
    columns = {"a": {"role": "quasi"}, "d": {"role": "confidential", "type": "date"}}
    kinfold.anonymize(table, {**request_policy(columns, t=0.9), "source": {"dates": form}}).save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).holds
