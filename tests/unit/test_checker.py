"""The second checker: one file of plain Python, which knows nothing of kinfold and finds what the engine finds."""

from __future__ import annotations

import ast
import csv
import json
import math
import runpy
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinfold
from kinfold import checker
from kinfold.checker import (
    check_release,
    check_table,
    effective_values,
    make_nominal_distance,
    make_ordered_distance,
    meets_entropy,
    parse_moment,
)
from kinfold.errors import VerifyError
from kinfold.release.inspection import check_folder, require_agreement
from kinfold.tables.schema import NUMBER_PATTERN, normalize_category

FILE = Path(checker.__file__)
counts = st.dictionaries(st.integers(0, 5), st.integers(1, 4), min_size=1)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = pa.table(
        {
            "age": list(range(20)),
            "disease": ["flu", "cold", None, "hiv"] * 5,
            "wage": [str(i % 7) for i in range(20)],
            "grade": ["low", "mid", "high", "mid"] * 5,
        }
    )
    columns = {
        "age": {"role": "quasi"},
        "disease": {"role": "confidential", "hierarchy": {"tree": {"lung": ["flu", "cold"], "blood": ["hiv"]}}},
        "wage": {"role": "confidential", "type": "continuous"},
        "grade": {"role": "confidential", "type": "ordinal", "order": ["low", "mid", "high", "top"]},
    }
    asked = {"privacy": {"k": 4, "t": 0.5, "l": 2, "p": 2, "alpha": 0.8}, "columns": columns}
    folder = tmp_path_factory.mktemp("checked") / "out"
    kinfold.anonymize(table, asked).save(folder)
    return folder / "public"


def alone(*args: object) -> subprocess.CompletedProcess[str]:
    """Run the file as a recipient does: no package of the environment, nothing but Python."""
    return subprocess.run([sys.executable, "-I", "-S", *map(str, args)], capture_output=True, text=True, check=False)


def test_it_is_small_and_knows_nothing_but_the_standard_library() -> None:
    lines = FILE.read_text().splitlines()
    assert len(lines) <= 705
    for node in ast.walk(ast.parse("\n".join(lines))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        assert {name.split(".")[0] for name in names} <= {*sys.stdlib_module_names, "pyarrow"}


K2 = {"model": "KAnonymity", "parameters": {"k": 2}, "promise": "2-anonymity", "asked": 2, "found": 2}


def certificate(**changes: Any) -> dict[str, Any]:
    column = {"name": "d", "role": "confidential", "type": "nominal", "distance": "equal"}
    told = {
        "release": {"separator": ",", "records": 4, "classes": 2},
        "columns": [{"name": "q", "role": "quasi-identifier"}, column | changes.pop("column", {})],
        "promises": [K2],
        "joint": False,
        "found": {"k": 2, "l": {"d": 2}, "t": {"d": 0.0}},
    }
    return told | changes


def table(folder: Path, text: str) -> Path:
    path = folder / "t.csv"
    path.write_text(text)
    return path


ROWS = "q,d\na,1\na,2\nb,1\nb,2\n"


@pytest.mark.slow
def test_a_table_is_what_its_certificate_says(tmp_path: Path) -> None:
    assert check_table(table(tmp_path, ROWS), certificate())["holds"]


@pytest.mark.parametrize(
    ("text", "changes", "problem"),
    [
        ("q,d\na,1\n", {}, "other figures"),
        ("q,d\n", {}, "other figures"),
        ("", {}, "not a CSV file"),
        ('q,d\n"a,1\n', {}, "not a CSV file"),
        ("q,e\na,1\n", {}, "other columns"),
        ("q,d,e\na,1,2\n", {}, "other columns"),
        ("q,d\na,1,2\n", {}, "fields than the header"),
        ("q,q\na,1\n", {}, "fields than the header"),
        (ROWS, {"found": {"k": 3, "l": {"d": 2}, "t": {"d": 0.0}}}, "other figures"),
        (ROWS, {"found": {"k": 2, "l": {}, "t": {"d": 0.0}}}, "other figures"),
        (ROWS, {"found": {"k": 2, "l": {"d": 2}, "t": {"d": 0.1}}}, "other figures"),
        (ROWS, {"promises": [K2 | {"asked": 3, "promise": "3-anonymity"}]}, "other figures"),
        (ROWS.replace("2", "x"), {"column": {"type": "continuous", "distance": "ordered"}}, "1 of the values of 'd'"),
        (ROWS, {"column": {"type": "date", "distance": "ordered"}}, None),
        (ROWS.replace("2", "2020-1"), {"column": {"type": "date", "distance": "ordered"}}, "1 of the values of 'd'"),
        (ROWS, {"column": {"type": "ordinal", "distance": "ordered", "order": ["1"]}}, "1 of the values of 'd'"),
        (ROWS, {"column": {"distance": "hierarchical", "hierarchy": [["1", "*"]]}}, "lacks 1 values of the column"),
    ],
)
def test_what_is_not_as_it_says_fails(tmp_path: Path, text: str, changes: Any, problem: str | None) -> None:
    found = check_table(table(tmp_path, text), certificate(**changes))
    if problem is None:
        assert found["holds"]
    else:
        assert not found["holds"]
        assert problem in found["problems"][0]


def test_a_promise_that_is_missed_fails_though_the_figures_are_right(tmp_path: Path) -> None:
    promise = {"model": "KAnonymity", "parameters": {"k": 3}, "promise": "3-anonymity", "asked": 3, "found": 2}
    found = check_table(table(tmp_path, ROWS), certificate(promises=[promise]))
    assert not found["holds"]
    assert found["problems"] == []


MODELS = [
    ("TCloseness", {"t": 0.25}, 0.25, True),
    ("TCloseness", {"t": 0.2499}, 0.25, False),
    ("AlphaK", {"alpha": 1.0}, 1.0, True),
    ("AlphaK", {"alpha": 0.99}, 1.0, False),
    ("PSensitive", {"p": 1}, 1, True),
    ("PSensitive", {"p": 2}, 1, False),
    ("LDiversity", {"l": 1, "kind": "distinct", "c": 1.0}, 1, True),
    ("LDiversity", {"l": 2, "kind": "distinct", "c": 1.0}, 1, False),
    ("LDiversity", {"l": 1.0, "kind": "entropy", "c": 1.0}, 1.0, True),
    ("LDiversity", {"l": 1.01, "kind": "entropy", "c": 1.0}, 1.0, False),
    ("LDiversity", {"l": 1, "kind": "recursive", "c": 1.5}, 1, True),
    ("LDiversity", {"l": 2, "kind": "recursive", "c": 1.5}, 1, False),
    ("LDiversity", {"l": 1, "kind": "recursive", "c": 1.0}, 0, False),
]


@pytest.mark.parametrize(("model", "parameters", "figure", "holds"), MODELS)
def test_each_model_at_its_limit(tmp_path: Path, model: str, parameters: Any, figure: float, holds: bool) -> None:
    """The class a has 1 and 1, the class b 1 and 2, so that the table has three of 1 and one of 2."""
    promise = {"model": model, "parameters": {**parameters, "column": "d"}, "promise": "it", "asked": 0}
    promise["found"] = figure
    told = certificate(promises=[promise], found={"k": 2, "l": {"d": 1}, "t": {"d": 0.25}})
    (answer,) = check_table(table(tmp_path, "q,d\na,1\na,1\nb,1\nb,2\n"), told)["promises"]
    assert answer["found"] == pytest.approx(figure)
    assert answer["holds"] is holds


def test_a_joint_promise_is_asked_of_whoever_knows_the_other_column(tmp_path: Path) -> None:
    other = {"name": "e", "role": "confidential", "type": "nominal", "distance": "equal"}
    told = certificate(joint=True)
    told["columns"].append(other)
    path = table(tmp_path, "q,d,e\na,1,x\na,2,y\nb,1,x\nb,2,x\n")
    assert check_table(path, told)["found"]["l"] == {"d": 1, "e": 1}
    assert check_table(path, told | {"joint": False})["found"]["l"] == {"d": 2, "e": 1}


def test_numbers_with_a_comma_are_numbers_where_the_certificate_says_so(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    path.write_text("pay;note;age\n-1,5;a,b;\n1.000,25;c.d;7\n", encoding="utf-8")
    columns = [{"name": name, "role": "insensitive"} for name in ("pay", "note", "age")]
    told = {"separator": ";", "decimal": ","}
    commas = checker.read_table(path, {"release": told, "columns": columns})
    points = checker.read_table(path, {"release": {"separator": ";"}, "columns": columns})
    assert commas["note"] == points["note"] == ["a,b", "c.d"]  # no number: left as it is
    assert points["pay"] == ["-1,5", "1.000,25"]
    assert commas["age"] == [None, "7"]
    path.write_text("pay;note;age\n-1,5;a,b;\n2,25;c.d;7\n", encoding="utf-8")
    assert checker.read_table(path, {"release": told, "columns": columns})["pay"] == ["-1.5", "2.25"]


def test_what_the_csv_module_allows_is_as_before(tmp_path: Path) -> None:
    left = csv.field_size_limit(131_072)
    assert check_table(table(tmp_path, ROWS.replace("a", "x" * 200_000)), certificate())["holds"]
    assert csv.field_size_limit(left) == 131_072


def test_null_is_a_value_and_a_single_empty_field_is_an_empty_line(tmp_path: Path) -> None:
    told = certificate(release={"separator": ",", "records": 4, "classes": 2}, found={"k": 2, "l": {}, "t": {}})
    told["columns"] = told["columns"][:1]
    assert check_table(table(tmp_path, 'q\na\na\n\n""\n'), told)["holds"]


# Arithmetic, against the definitions


@given(st.lists(counts, min_size=1, max_size=5))
def test_the_distance_over_an_order_is_the_sum_over_all_values(classes: list[dict[int, int]]) -> None:
    values = [value for held in classes for value, count in held.items() for _ in range(count)]
    order = sorted(set(values))
    measured = make_ordered_distance(values)
    for held in classes:
        size = sum(held.values())
        gaps = [
            abs(
                Fraction(sum(count for value, count in held.items() if value <= v), size)
                - Fraction(sum(value <= v for value in values), len(values))
            )
            for v in order
        ]
        assert measured(held) == (sum(gaps) / (len(order) - 1) if len(order) > 1 else 0)


@given(st.lists(counts, min_size=1, max_size=5))
def test_the_distance_over_levels_is_the_mean_of_total_variations(classes: list[dict[int, int]]) -> None:
    values = [value for held in classes for value, count in held.items() for _ in range(count)]
    levels = [{v: v for v in range(6)}, {v: v // 2 for v in range(6)}, {v: v // 3 for v in range(6)}]
    measured = make_nominal_distance(values, levels)
    for held in classes:
        size = sum(held.values())
        total = Fraction(0)
        for level in levels:
            for label in range(6):
                here = Fraction(sum(n for v, n in held.items() if level[v] == label), size)
                total += abs(here - Fraction(sum(level[v] == label for v in values), len(values))) / 2
        assert measured(held) == total / 3


@given(counts)
def test_entropy_is_compared_exactly_at_the_border(held: dict[int, int]) -> None:
    equal = dict.fromkeys(range(len(held)), 7)
    assert meets_entropy(equal, float(len(held)))  # l equally frequent values are l-diverse
    assert not meets_entropy(equal, math.nextafter(len(held), math.inf) if len(held) < 3 else len(held) + 1e-9)
    assert meets_entropy(held, effective_values(held) * (1 - 1e-6))
    assert not meets_entropy(held, effective_values(held) * (1 + 1e-6))


def test_moments_stand_in_their_order_to_the_last_digit() -> None:
    order = ["0044-03-15 (BC)", "0001-01-01", "1999-12-31", "2000-02-29 00:00", "2000-02-29T00:00:00.000000001"]
    order += ["2000-02-29 00:00:00.1", "2000-02-29 01:00+00", "2000-02-29 01:30:00", "2000-03-01", "10000-01-01"]
    assert all(one < other for one, other in pairwise([parse_moment(text, None) for text in order]))
    assert parse_moment("2000-01-01 12:00:00+02", None) == parse_moment("2000-01-01T10:00:00Z", None)
    assert parse_moment("2000-01-01 12:00:00-02:30", None) == parse_moment("2000-01-01 14:30", None)
    assert parse_moment("31.12.1999", "%d.%m.%Y") < parse_moment("01.01.2000", "%d.%m.%Y")
    assert parse_moment("17", None) > parse_moment("-3", None)
    assert (
        parse_moment("2001-02-29", None) is parse_moment("soon", None) is parse_moment("1.1.2000", "%d/%m/%Y") is None
    )


# On a release: last, for it takes longest to make, and most mistakes show before


def test_a_recipient_with_nothing_but_python_can_run_it(public: Path, tmp_path: Path) -> None:
    copied = tmp_path / "checker.py"
    copied.write_bytes(FILE.read_bytes())
    ran = alone(copied, public)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    found = check_folder(public)
    assert (said["found"]["k"], said["found"]["l"]) == (found.k, dict(found.l))
    assert said["found"]["t"] == pytest.approx(dict(found.t))
    assert {promise["promise"] for promise in said["promises"]} == {f.promise for f in found.findings}
    assert set(said["found"]["alpha"]) == {"disease", "wage", "grade"}


def test_parquet_that_is_none_or_without_pyarrow_is_told_in_words(
    public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = json.loads((public / "certificate.json").read_text())
    told["release"]["file"] = "release.parquet"
    (tmp_path / "certificate.json").write_text(json.dumps(told))
    (tmp_path / "release.parquet").write_bytes(b"PAR1 and then nothing")
    said = check_release(tmp_path)
    assert not said["holds"]
    assert said["problems"][1:] == ["the table is not a Parquet file"]
    ran = alone(FILE, tmp_path)
    assert (ran.returncode, "pip install pyarrow" in ran.stderr) == (1, True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SystemExit, match="pip install pyarrow"):
        check_table(tmp_path / "t.parquet", certificate())


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_the_file_as_a_program(
    public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "certificate.json").write_bytes((public / "certificate.json").read_bytes())
    (tmp_path / "release.csv").write_bytes((public / "release.csv").read_bytes() + b"\n")
    for folder, code in ((public, 0), (tmp_path, 5)):
        monkeypatch.setattr(sys, "argv", ["checker.py", str(folder)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_module("kinfold.checker", run_name="__main__")
        assert ended.value.code == code
        printed = capsys.readouterr().out
        assert json.loads(printed)["holds"] is (code == 0)
        assert printed.startswith('{\n  "')  # two spaces, as people read it


def test_what_was_changed_fails(public: Path, tmp_path: Path) -> None:
    for name, change in (("release.csv", ("flu", "cold")), ("certificate.json", ('"k": 4', '"k": 2'))):
        for file in public.iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        (tmp_path / name).write_text((tmp_path / name).read_text().replace(*change, 1))
        said = check_release(tmp_path)
        assert not said["holds"]
        assert "was changed after the release" in said["problems"][0]
        assert alone(FILE, tmp_path).returncode == 5


# Agreement


def test_two_checkers_that_do_not_agree_stop_the_release(public: Path) -> None:
    verdict, said = check_folder(public), check_release(public)
    require_agreement(verdict, said)
    wrong: list[dict[str, Any]] = [
        {"records": 21},
        {"classes": 1},
        {"holds": False},
        {"found": said["found"] | {"k": said["found"]["k"] + 1}},
        {"found": said["found"] | {"l": {**said["found"]["l"], "wage": 1}}},
        {"found": said["found"] | {"t": {}}},
        {"promises": said["promises"][:-1]},
        {"promises": [*said["promises"][:-1], said["promises"][-1] | {"found": 0.1}]},
    ]
    for change in wrong:
        with pytest.raises(VerifyError, match="do not agree"):
            require_agreement(verdict, said | change)


def test_a_release_leaves_only_if_both_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = kinfold.anonymize(pa.table({"a": [1, 2, 3, 4], "d": list("xyxy")}), quasi=["a"], confidential=["d"], k=2)
    real = checker.check_release

    def other(folder: Path) -> dict[str, Any]:
        return real(folder) | {"classes": 99}

    monkeypatch.setattr("kinfold.release.inspection.checker.check_release", other)
    with pytest.raises(VerifyError, match="do not agree on classes"):
        release.save(tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_categories_that_are_numbers_are_told_apart_as_numbers() -> None:
    texts = ["1", "1.0", "+1", " 1e0", "10e-1", "0", "-0", "0.00", "01", "00", "x", "1x", "nan", "1e5", "100000", "1 0"]
    mine = len({checker.parse_category(text) for text in texts})
    assert mine == len({normalize_category(text) for text in texts}) == 9
    column = {"name": "d", "type": "ordinal", "order": ["0", "1.0"]}
    assert checker.rank_values(["1", "-0.0", None, "+1"], column) == [2, 1, 0, 2]


@given(st.lists(st.from_regex(rf"\A({NUMBER_PATTERN})\Z") | st.text("0.-+e 1", max_size=5), min_size=2, max_size=8))
def test_both_checkers_tell_the_same_categories_apart(texts: list[str]) -> None:
    for one, other in pairwise(texts):
        assert (normalize_category(one) == normalize_category(other)) == (
            checker.parse_category(one) == checker.parse_category(other)
        )
