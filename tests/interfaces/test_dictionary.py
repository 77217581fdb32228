"""The data dictionary in the public folder: right, the same every time, loadable, and silent about the original."""

import csv
import json
import re
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kinfold
from command import run
from kinfold import checker
from kinfold.measures.pairing import NumberCounts
from kinfold.release.dictionary import list_labels
from kinfold.tables.schema import Column, Storage

DOCUMENTS = ("dictionary.json", "dictionary.md", "datapackage.json")


def people(records: int = 60) -> pd.DataFrame:
    """Return people who do not exist; one town has a single inhabitant."""
    return pd.DataFrame(
        {
            "age": [20 + i * 7 % 50 for i in range(records)],
            "town": ["Nowhere", *(("Bern", "Bern", "Chur")[i % 3] for i in range(1, records))],
            "born": pd.to_datetime("1980-01-01") + pd.to_timedelta([i * 31 for i in range(records)], "D"),
            "charge": [round(10.5 * i, 2) for i in range(records)],
            "level": [("low", "mid", "top")[i % 3] for i in range(records)],
            "ward": [None if i % 20 == 0 else "a|b" if i % 2 else "=c" for i in range(records)],
            "name": [f"p{i}" for i in range(records)],
        }
    )


def policy(**output: Any) -> dict[str, Any]:
    columns = {
        "age": {"role": "quasi", "top": 60},
        "town": {"role": "quasi"},
        "born": {"role": "quasi"},
        "charge": {"role": "confidential"},
        "level": {"role": "confidential", "type": "ordinal", "order": ["none", "low", "mid", "top"]},
        "ward": {"role": "other"},
        "name": {"role": "identifier"},
    }
    return {"privacy": {"k": 5}, "method": {"name": "mdav"}, "columns": columns, "output": output}


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kinfold.anonymize(people(), policy()).save(tmp_path_factory.mktemp("made") / "out") / "public"


def test_each_column_has_its_type_role_treatment_values_and_missing(public: Path) -> None:
    columns = {each["name"]: each for each in json.loads((public / "dictionary.json").read_text("utf-8"))["columns"]}
    rows = [*csv.DictReader((public / "release.csv").read_text("utf-8").splitlines())]
    assert [*columns] == [*rows[0]]
    ages = [int(row["age"]) for row in rows]
    assert columns["age"] == {
        "name": "age",
        "type": "integer",
        "scale": "continuous",
        "role": "quasi-identifier",
        "treatment": "60 and above are shown as 60, then replaced by the mean of its class",
        "missing": 0,
        "distinct": len({*ages}),
        "range": [min(ages), max(ages)],
    }
    assert (columns["town"]["type"], columns["town"]["values"]) == ("string", ["Bern", "Chur"])
    assert (columns["born"]["type"], columns["charge"]["range"]) == ("date", [0.0, 619.5])
    assert columns["level"]["values"] == ["low", "mid", "top"]  # in their order, and only those that occur
    assert (columns["ward"]["missing"], columns["ward"]["values"]) == (3, ["=c", "a|b"])
    table = (public / "dictionary.md").read_text("utf-8")
    assert "| ward | string, nominal | other | released as it is | =c, a\\|b | 3 |" in table


def test_missing_and_different_values_are_those_of_the_released_rows(tmp_path: Path) -> None:
    """Not those of the classes, and not those of the source: records that were left out must not be counted."""
    table = people().assign(ward=lambda rows: [None] * 9 + [*map(str, rows.index[9:])])
    table.loc[::4, "age"] = None
    asked = policy(surrogate=True) | {"privacy": {"k": 5, "unit": "name"}}
    asked["columns"] = {**asked["columns"], "age": {"role": "quasi", "type": "continuous", "missing": "separate"}}
    asked["columns"]["born"] = {"role": "quasi", "missing": "drop"}
    table.loc[:2, "born"] = None
    made = kinfold.anonymize(table, asked).save(tmp_path / "out") / "public"
    rows = [*csv.DictReader((made / "release.csv").read_text("utf-8").splitlines())]
    assert len(rows) == len(table) - 3
    for column in json.loads((made / "dictionary.json").read_text("utf-8"))["columns"]:
        present = [row[column["name"]] for row in rows if row[column["name"]]]
        assert (column["missing"], column["distinct"]) == (len(rows) - len(present), len({*present})), column["name"]
    assert ">57<" in re.sub(r"\s+", "", (made / "report.html").read_text("utf-8"))  # people, each with a key


def test_years_that_stand_for_dates_are_labels_and_not_numbers_of_days(tmp_path: Path) -> None:
    asked = {"age": {"role": "remove"}, "born": {"role": "quasi", "hierarchy": {"dates": ["year", "decade"]}}}
    columns = {name: {"role": "other"} for name in policy()["columns"]} | asked
    method = {"name": "lattice", "levels": {"born": 1}, "suppression": 5}
    people().to_csv(tmp_path / "people.csv", index=False)
    release = kinfold.anonymize(tmp_path / "people.csv", {"privacy": {"k": 2}, "method": method, "columns": columns})
    made = release.save(tmp_path / "out") / "public"
    column = json.loads((made / "dictionary.json").read_text("utf-8"))["columns"][1]
    years = sorted({row["born"] for row in csv.DictReader((made / "release.csv").read_text("utf-8").splitlines())})
    assert (column["name"], column["values"]) == ("born", years)
    assert "range" not in column
    assert "1975-" not in (made / "report.html").read_text("utf-8")  # day 1985 after 1970 was in June 1975
    assert release.measures.statistics.numbers["born"]["after"] is None
    assert "born" not in release.measures["loss"]["shift"]


def test_no_document_names_a_value_that_is_not_released(public: Path) -> None:
    for name in DOCUMENTS:
        text = (public / name).read_text("utf-8")
        assert not [word for word in ("Nowhere", "none", "p7", '"name": "name"') if word in text], name


@pytest.mark.slow
@pytest.mark.parametrize("output", [{}, {"format": "parquet"}, {"spreadsheet_safe": True}])
def test_the_documents_have_the_same_bytes_each_time_and_both_checkers_accept_them(
    output: dict[str, Any], tmp_path: Path
) -> None:
    made = [kinfold.anonymize(people(), policy(**output)).save(tmp_path / name) / "public" for name in ("one", "two")]
    for name in DOCUMENTS:
        assert (made[0] / name).read_bytes() == (made[1] / name).read_bytes()
    assert kinfold.verify(made[0], twice=True).holds
    assert ("apostrophe" in (made[0] / "dictionary.md").read_text("utf-8")) == ("spreadsheet_safe" in output)


@pytest.mark.slow
@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_changed_document_is_found_by_both_checkers_and_a_missing_one_is_no_problem(
    name: str, tmp_path: Path
) -> None:
    made = kinfold.anonymize(people(), policy()).save(tmp_path / "out") / "public"
    (made / name).write_text("{}", "utf-8")
    run("verify", made).fails(5, f"'{name}' was changed")
    assert checker.check_release(made)["problems"] == [
        f"a file or the certificate was changed after the release: {name}"
    ]
    (made / name).unlink()
    run("verify", made).ok()
    assert checker.check_release(made)["holds"]
    (made / "dictionary.txt").write_text("", "utf-8")
    run("verify", made).fails(5, "'dictionary.txt' is in")


READ = {"integer": int, "string": str, "number": Decimal}


def load(public: Path) -> list[dict[str, Any]]:
    """Read a release by its data package alone, as a recipient's program does."""
    (resource,) = json.loads((public / "datapackage.json").read_text("utf-8"))["resources"]
    lines = (public / resource["path"]).read_bytes().decode(resource["encoding"]).splitlines()
    fields = {field["name"]: field for field in resource["schema"]["fields"]}

    def read(name: str, text: str) -> Any:
        field = fields[name]
        if text in resource["schema"]["missingValues"]:
            return None
        if field["type"] in ("date", "datetime"):
            return datetime.strptime(text, {"default": "%Y-%m-%d"}.get(field["format"], field["format"]))
        return READ[field["type"]](text.replace(field.get("decimalChar", "."), "."))

    table = csv.DictReader(lines, delimiter=resource["dialect"]["delimiter"])
    return [{name: read(name, text) for name, text in row.items()} for row in table]


def test_a_recipient_loads_the_release_with_its_types(tmp_path: Path) -> None:
    german = people().assign(
        born=lambda rows: rows.born.dt.strftime("%d.%m.%Y"),
        charge=lambda rows: rows.charge.map(lambda value: f"{value:.2f}".replace(".", ",")),
    )
    german.to_csv(tmp_path / "people.csv", index=False, sep=";")
    source = {"decimal": ",", "dates": "%d.%m.%Y"}
    made = kinfold.anonymize(tmp_path / "people.csv", policy() | {"source": source}).save(tmp_path / "out")
    rows = load(made / "public")
    assert sorted(row["charge"] for row in rows) == sorted(Decimal(str(charge)) for charge in people().charge)
    assert {type(row["born"]) for row in rows} == {datetime}
    assert sum(row["ward"] is None for row in rows) == 3


def test_value_labels_are_listed_for_released_codes_and_labels_only() -> None:
    column = Column("sex", Storage.INTEGER, 3, labels={"1": "woman", "2": "man", "3": "not said"})
    expected = {"labels": {"1": "woman", "2": "man"}}
    assert list_labels(column, Counter({"woman": 2, "man": 1, None: 1})) == expected
    assert list_labels(column, NumberCounts(np.array([1.0, 2.0, np.nan]), np.array([1, 1, 1]))) == expected
    assert list_labels(column, Counter({"other": 1})) == list_labels(None, Counter({"woman": 1})) == {}
