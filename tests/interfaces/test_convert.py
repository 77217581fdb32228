"""From a project of ARX to a release: `convert`, `anonymize`, `verify`; and hierarchies back to ARX."""

import csv
import stat
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from arx_projects import (
    AGES,
    IDENTIFYING,
    ILLNESSES,
    QUASI,
    SENSITIVE,
    Defined,
    age,
    illness,
    project,
    study,
    text,
    weights,
    zip_code,
)
from command import Ran, content, run
from command import text as write
from reference.public_data import adult, found

PROMISES = ["2-anonymity", "distinct-2-diversity for attribute 'illness'"]


def converted(tmp_path: Path, path: Path) -> tuple[Ran, dict[str, Any]]:
    """Convert a project and read the policy back."""
    ran = run("convert", path, "--out", tmp_path / "study").ok()
    return ran, tomllib.loads((tmp_path / "study/policy.toml").read_text(encoding="utf-8"))


def anonymized(tmp_path: Path) -> Ran:
    """Run the converted folder as it was written, and verify what came out."""
    folder = tmp_path / "study"
    ran = run(
        "anonymize", folder / "data.csv", "--policy", folder / "policy.toml", "--out", tmp_path / "out", "--json"
    ).ok()
    assert run("verify", tmp_path / "out/public").code == 0
    return ran


def released(tmp_path: Path) -> list[dict[str, str]]:
    with (tmp_path / "out/public/release.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=";"))


# The whole way


def test_a_project_becomes_a_folder_that_runs_as_written(tmp_path: Path) -> None:
    ran, policy = converted(tmp_path, project(tmp_path, study(), PROMISES, config=text("metric", "Loss (0.5)")))
    assert "note" not in ran.out
    assert "kinfold anonymize" in ran.out
    assert set(content(tmp_path / "study")) == {
        "data.csv",
        "policy.toml",
        "hierarchies/age.csv",
        "hierarchies/zip.csv",
    }
    assert policy["privacy"] == {"k": 2}
    assert policy["method"] == {"name": "lattice", "suppression": 0.0, "objective": "granularity"}
    assert policy["columns"] == {
        "name": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "type": "continuous", "hierarchy": {"file": "hierarchies/age.csv"}},
        "zip": {"role": "quasi-identifier", "type": "nominal", "hierarchy": {"file": "hierarchies/zip.csv"}},
        "illness": {"role": "confidential", "type": "nominal", "l": 2},
        "visits": {"role": "other"},
    }
    found = anonymized(tmp_path).json
    assert (found["k"], found["l"], found["released"]) == (2, {"illness": 2}, 8)
    assert {row["age"] for row in released(tmp_path)} == {"20s", "30s"}
    assert {row["zip"] for row in released(tmp_path)} == {"02138", "02139", "02141", "02142"}


def test_the_folder_holds_the_original_data_and_is_its_owners(tmp_path: Path) -> None:
    converted(tmp_path, project(tmp_path, study()))
    assert stat.S_IMODE((tmp_path / "study").stat().st_mode) == 0o700
    assert (tmp_path / "study/data.csv").read_text().startswith("name;age;zip")


def test_levels_that_are_all_fixed_become_a_vector(tmp_path: Path) -> None:
    columns = [age(least="2", most="2"), zip_code(least="1", most="1")]
    ran, policy = converted(tmp_path, project(tmp_path, columns, ["3-anonymity"]))
    assert policy["method"]["levels"] == {"age": 2, "zip": 1}
    assert "note" not in ran.out
    anonymized(tmp_path)
    assert sorted({(row["age"], row["zip"]) for row in released(tmp_path)}) == [("*", "0213*"), ("*", "0214*")]


def test_bounds_that_leave_a_choice_are_said_to_be_left_out(tmp_path: Path) -> None:
    ran, policy = converted(tmp_path, project(tmp_path, [age(least="1"), zip_code(least="1", most="1")]))
    assert "levels" not in policy["method"]
    assert "the bounds on the levels of 'age', 'zip' are left out" in ran.out
    anonymized(tmp_path)


@pytest.mark.parametrize("separator", ["\t", ",", "#"])
def test_any_separator_of_a_project_runs(tmp_path: Path, separator: str) -> None:
    converted(tmp_path, project(tmp_path, study(), separator=separator))
    assert anonymized(tmp_path).json["released"] == 8


@pytest.mark.slow
@pytest.mark.parametrize("distance", ["equal", "ordered", "hierarchical"])
def test_t_closeness_is_carried_over_with_its_distance(tmp_path: Path, distance: str) -> None:
    said = f"0.5-closeness with {distance} distance for attribute 'illness'"
    _, policy = converted(tmp_path, project(tmp_path, study(), ["2-anonymity", said]))
    asked = policy["columns"]["illness"]
    assert (asked["t"], asked["distance"]) == (0.5, distance)
    assert ("hierarchy" in asked) == (distance == "hierarchical")
    assert asked.get("order") == (sorted(set(ILLNESSES)) if distance == "ordered" else None)
    assert anonymized(tmp_path).json["t"]["illness"] <= 0.5


def test_t_closeness_by_a_hierarchy_that_is_not_there_becomes_a_stricter_one(tmp_path: Path) -> None:
    said = "0.5-closeness with hierarchical distance for attribute 'illness'"
    parts = {"input/hierarchies/illness.csv": None}
    ran, policy = converted(tmp_path, project(tmp_path, study(), ["2-anonymity", said], parts=parts))
    assert policy["columns"]["illness"]["distance"] == "equal"
    assert "which is stricter" in ran.out
    anonymized(tmp_path)


def test_every_kind_of_column_runs(tmp_path: Path) -> None:
    days = [f"2024-0{i % 2 + 1}-1{i % 3}" for i in range(8)]
    columns = [
        Defined("day", days, QUASI, "Date", "yyyy-MM-dd", [(d, d[:7], "*") for d in sorted(set(days))]),
        Defined("rate", ["1.5", "2.0"] * 4, QUASI, "Decimal", hierarchy=[("1.5", "low", "*"), ("2.0", "low", "*")]),
        Defined("grade", ["low", "high", "low", "NULL"] * 2, QUASI, "Ordinal", "low\nmid\nhigh"),
        Defined("gap", ["3", ""] * 4, QUASI, "Integer", hierarchy=[("3", "*"), ("", "*")]),
        Defined("pay", ["10", "20", "30", "NULL"] * 2, SENSITIVE, "Integer"),
        Defined("seen", ["01.02.2003", "13.02.2003"] * 4, SENSITIVE, "Date", "dd.MM.yyyy"),
    ]
    said = [f"0.9-closeness with ordered distance for attribute '{name}'" for name in ("pay", "seen")]
    ran, policy = converted(tmp_path, project(tmp_path, columns, ["2-anonymity", *said]))
    kinds = {name: column["type"] for name, column in policy["columns"].items()}
    assert kinds == {
        "day": "date",
        "rate": "continuous",
        "grade": "ordinal",
        "gap": "continuous",
        "pay": "ordinal",
        "seen": "date",
    }
    assert policy["columns"]["grade"]["order"] == ["low", "high", "NULL"]
    assert policy["columns"]["pay"]["order"] == ["10", "20", "30", "NULL"]
    assert policy["columns"]["gap"]["missing"] == "separate"
    assert "'pay' is Integer in ARX, but not every value is written as one" in ran.out
    anonymized(tmp_path)


def test_numbers_written_in_another_way_than_ours_are_looked_up_as_they_are(tmp_path: Path) -> None:
    values = ["1.50", "2", "NULL", "007"] * 2
    rows = [(value, "some", "*") for value in sorted(set(values))]
    ran, policy = converted(tmp_path, project(tmp_path, [Defined("n", values, QUASI, "Decimal", hierarchy=rows)]))
    assert policy["columns"]["n"]["type"] == "nominal"
    assert "'n' is Decimal in ARX" in ran.out
    anonymized(tmp_path)
    assert {row["n"] for row in released(tmp_path)} == set(values)


def test_names_that_are_paths_stay_in_the_folder_and_run(tmp_path: Path) -> None:
    names = ["../../up", "/etc/passwd", "a.b", "a_B", 'q"; 1', "Größe", "**"]
    columns = [Defined(name, ["1", "2"] * 4, QUASI, hierarchy=[("1", "*"), ("2", "*")]) for name in names]
    _, policy = converted(tmp_path, project(tmp_path, columns))
    files = {name for name in content(tmp_path / "study") if name.startswith("hierarchies/")}
    assert files == {column["hierarchy"]["file"] for column in policy["columns"].values()}
    assert len(files) == len(names)
    assert {path.name for path in tmp_path.iterdir()} == {"study", "study.deid"}
    anonymized(tmp_path)


# What is said


def test_what_cannot_be_carried_over_is_said_and_stands_in_the_policy(tmp_path: Path) -> None:
    torn = [("1", "a", "x"), ("2", "a", "y")]
    columns = [
        replace(age(), averaged="Arithmetic mean"),
        zip_code(),
        Defined("torn", ["1", "2"] * 4, QUASI, hierarchy=torn),
        Defined("plain", ["5", "6"] * 4, QUASI, "Integer"),
    ]
    config = text("metric", "Non-uniform entropy") + weights(age=0.5, zip=0.0, torn=0.25, plain=0.5)
    ran, policy = converted(
        tmp_path, project(tmp_path, columns, ["2-anonymity", "5-flags", "(0.1, 0.4)-presence"], config=config)
    )
    written = (tmp_path / "study/policy.toml").read_text()
    for said in (
        "left out, because kinfold has no such model: 5-flags",
        "left out, because a project keeps its population in serialized form only: (0.1, 0.4)-presence; add",
        "ARX measures quality by Non-uniform entropy, kinfold by granularity",
        "'age': ARX averages it (Arithmetic mean); in kinfold it is generalized",
        "left out: the hierarchy of 'torn': 1 label of level 1 has more than one parent",
        "'plain' has no hierarchy: nominal in kinfold",
        "'zip': its weight is 0",
    ):
        assert f"note: {said}" in ran.out
        assert f"# note: {said}" in written
    assert "hierarchy" not in policy["columns"]["torn"]
    assert [column.get("weight") for column in policy["columns"].values()] == [0.5, None, 0.25, 0.5]
    anonymized(tmp_path)


def test_a_project_that_only_averages_is_microaggregated(tmp_path: Path) -> None:
    columns = [Defined("age", AGES, QUASI, "Integer", averaged="Arithmetic mean"), illness()]
    ran, policy = converted(tmp_path, project(tmp_path, columns, ["4-anonymity"]))
    assert policy["method"] == {"name": "auto"}
    assert "ARX averages it (Arithmetic mean); in kinfold it is averaged by its type" in ran.out
    anonymized(tmp_path)
    assert {row["age"] for row in released(tmp_path)} == {"22", "32"}


def test_a_hierarchy_that_misses_values_is_said_by_number_alone(tmp_path: Path) -> None:
    columns = [replace(zip_code(), hierarchy=[("02138", "*"), ("02139", "*")])]
    ran, _ = converted(tmp_path, project(tmp_path, columns))
    assert "the hierarchy of 'zip' lacks 2 of its 4 values" in ran.out
    assert "02141" not in ran.out


def test_a_project_without_quasi_identifiers_is_said(tmp_path: Path) -> None:
    ran, _ = converted(tmp_path, project(tmp_path, [Defined("name", ["a", "b"], IDENTIFYING)]))
    assert "no column is a quasi-identifier" in ran.out


def test_names_that_differ_only_in_case_are_said(tmp_path: Path) -> None:
    ran, _ = converted(tmp_path, project(tmp_path, [age(), Defined("Age", AGES)]))
    assert "'age' and 'Age' differ only in case: rename one" in ran.out


def test_json_is_one_object(tmp_path: Path) -> None:
    path = project(tmp_path, study(), ["5-map"])
    found = run("convert", path, "--out", tmp_path / "study", "--json").json
    assert found["hierarchies"] == ["age.csv", "zip.csv"]
    assert found["folder"] == str(tmp_path / "study")
    assert len(found["notes"]) == 2


# What is refused


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    path = project(tmp_path, study())
    (tmp_path / "study").mkdir()
    write(tmp_path / "study", "mine.txt", "mine")
    run("convert", path, "--out", tmp_path / "study").fails(2, "already exists")
    assert set(content(tmp_path / "study")) == {"mine.txt"}


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    converted(tmp_path, project(tmp_path, study()))


def test_a_place_that_cannot_be_written_is_a_problem_of_the_request(tmp_path: Path) -> None:
    file = write(tmp_path, "file", "")
    run("convert", project(tmp_path, study()), "--out", file / "study").fails(2, "cannot write")


def test_a_file_that_is_no_project_ends_with_code_3_and_leaves_nothing(tmp_path: Path) -> None:
    run("convert", write(tmp_path, "x.deid", "nothing"), "--out", tmp_path / "study").fails(3, "is not a zip archive")
    assert not (tmp_path / "study").exists()


def test_a_record_that_does_not_fit_the_header_leaves_nothing(tmp_path: Path) -> None:
    path = project(tmp_path, [age()], parts={"data/input.csv": b"age\n21;secret\n"})
    ran = run("convert", path, "--out", tmp_path / "study").fails(3, "record 1 has 2 fields")
    assert "secret" not in ran.err
    assert [entry.name for entry in tmp_path.iterdir()] == ["study.deid"]


# Adult


@pytest.mark.slow
def test_adult_as_a_project_releases_what_its_hierarchies_release_by_themselves(tmp_path: Path) -> None:
    names, rows = adult()
    columns, policy = [], "[privacy]\nk = 5\n[method]\nname = 'lattice'\nsuppression = 0.02\n"
    for place, name in enumerate(names):
        values = [row[place] for row in rows]
        if name == "salary-class":
            columns.append(Defined(name, values, SENSITIVE))
            policy += f"[columns.{name}]\nrole = 'confidential'\n"
            continue
        file = found(f"adult/adult_hierarchy_{name}.csv")
        with file.open(newline="") as lines:
            tree = list(csv.reader(lines, delimiter=";"))
        columns.append(Defined(name, values, QUASI, "Integer" if name == "age" else "String", hierarchy=tree))
        policy += f"[columns.{name}]\nrole = 'quasi-identifier'\nhierarchy = {{ file = '{file.resolve()}' }}\n"
    config = text("relativeMaxOutliers", "0.02") + text("metric", "Loss")
    ran, _ = converted(tmp_path, project(tmp_path, columns, ["5-anonymity"], config=config))
    assert "note" not in ran.out
    anonymized(tmp_path)
    by_hand = write(tmp_path, "policy.toml", policy)
    assert run("anonymize", found("adult/adult.csv"), "--policy", by_hand, "--out", tmp_path / "hand").code == 0
    mine, theirs = (tmp_path / name / "public/release.csv" for name in ("out", "hand"))
    assert mine.read_bytes() == theirs.read_bytes()


# Hierarchies, the other way


POLICY = """
[privacy]
k = 2
[method]
name = "mdav"
[columns.name]
role = "identifier"
[columns.age]
role = "quasi-identifier"
hierarchy = { intervals = [10] }
[columns.zip]
role = "quasi-identifier"
hierarchy = { mask = 2 }
[columns.illness]
role = "confidential"
hierarchy = { tree = { airways = ["flu", "cold"], joints = ["gout"] } }
[columns.visits]
role = "other"
"""


@pytest.fixture
def table(tmp_path: Path) -> tuple[Path, Path]:
    rows = zip(*([column.name, *column.values] for column in study()), strict=True)
    data = write(tmp_path, "t.csv", "".join(",".join(row) + "\n" for row in rows))
    return data, write(tmp_path, "policy.toml", POLICY)


@pytest.mark.parametrize(
    ("column", "lines"),
    [
        ("age", [f"{a};{a[0]}0-{a[0]}9;*" for a in AGES]),
        ("zip", ["02138;0213*;021**;*", "02139;0213*;021**;*", "02141;0214*;021**;*", "02142;0214*;021**;*"]),
        ("illness", ["flu;airways;*", "cold;airways;*", "gout;joints;*"]),
    ],
)
def test_a_hierarchy_is_written_as_arx_reads_it(
    table: tuple[Path, Path], tmp_path: Path, column: str, lines: list[str]
) -> None:
    data, policy = table
    ran = run("hierarchy", data, "--policy", policy, "--column", column, "--out", tmp_path / "h.csv").ok()
    assert f"{len(lines)} values" in ran.out
    assert (tmp_path / "h.csv").read_text().splitlines() == lines


@pytest.mark.parametrize("column", ["visits", "nobody"])
def test_a_column_without_a_hierarchy_is_a_problem_of_the_request(
    table: tuple[Path, Path], tmp_path: Path, column: str
) -> None:
    data, policy = table
    run("hierarchy", data, "--policy", policy, "--column", column, "--out", tmp_path / "h.csv").fails(
        2, f"no hierarchy for a column '{column}'"
    )
    assert not (tmp_path / "h.csv").exists()


def test_a_hierarchy_needs_a_policy_and_a_new_file(table: tuple[Path, Path], tmp_path: Path) -> None:
    data, policy = table
    assert run("hierarchy", data, "--column", "zip", "--out", tmp_path / "h.csv").code == 2
    taken = run("hierarchy", data, "--policy", policy, "--column", "zip", "--out", policy)
    assert (taken.code, policy.read_text()) == (2, POLICY)
    run("hierarchy", data, "--policy", policy, "--column", "zip", "--out", tmp_path / "no" / "h.csv").fails(
        2, "cannot write"
    )
