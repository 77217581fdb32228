"""Guessing: the first line of a CSV file and how a table is written."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import kinfold
from command import run, text
from kinfold.policy.model import Policy
from kinfold.profiling.starter_policy import write_starter_policy
from kinfold.tables.column_names import find_values_in_header

NAMES = {
    "plain": ("name,age,sex", "Ann,34,f", "Ben,51,m"),
    "one row": ("name,age,sex", "Ann,34,f"),
    "no row": ("name,age,sex",),
    "years of a wide table": ("country,2019,2020,2021", "Chile,17.2,18,19.9", "Peru,30,31.5,32"),
    "decades of a wide table": ("country,1990,2000,2010", "Chile,17,18,19", "Peru,30,31,32"),
    "dates above counts of words": ("city,2024-01-01", "Ulm,low", "Bonn,high"),
    "numbered columns": ("x1,x2,y10", "0.1,3,a", "0.7,4,b"),
    "a column named like one of its values": ("smoker,age,sex", "smoker,34,f", "never,51,m"),
    "a header written twice": ("name,sex", "Ann,f", "name,sex", "Ben,m"),
    "numbers above nothing": ("name,1", "Ann,", "Ben,"),
    "spaces": ("date of birth, place ", "1990-01-01,Ulm"),
    "codes of a survey above codes of the same form": ("HB030,RB080,RB090,DB040", "1,1954,2,AT11", "2,1987,1,AT12"),
}
RECORDS = {
    "numbers": (("Ann,34,02138", "Ben,51,02139"), (2, 3)),
    "numbers among missing ones": (("Ann,34", "Ben,NA", "Cid,51"), (2,)),
    "decimals with a comma": (("Ann;3,5", "Ben;4,25"), (2,)),
    "dates": (("Ann,1990-01-01", "Ben,1991-12-31"), (2,)),
    "dates in words": (("Ann,3 Jan 2024", "Ben,14 Feb 2024"), (2,)),
    "times": (("Ann,10:20", "Ben,11:30"), (2,)),
    "telephones": (("Ann,+49 171 5", "Ben,+49 172 6"), (2,)),
    "codes": (("P00123,flu", "P00124,cold"), (1,)),
    "addresses": (("ann@x.org,flu", "ben@y.org,cold"), (1,)),
    "years of birth": (("Ann,1984,1999", "Ben,1985,2001"), (2, 3)),
    "words that are found again": (("Ann,f,flu", "Ben,m,flu", "Cid,f,cold"), (2, 3)),
    "one word that is found again": (("Ann,f", "Ben,m", "Cid,f"), (2,)),
    "a single column": (("flu", "cold", "flu"), (1,)),
    "a number that is none": (("Ann,nan", "Ben,3.5"), (2,)),
}


def rows_of(lines: tuple[str, ...]) -> list[list[str]]:
    return [line.split(";" if ";" in line else ",") for line in lines]


@pytest.mark.parametrize("lines", NAMES.values(), ids=NAMES)
def test_a_line_of_names_is_a_header(lines: tuple[str, ...]) -> None:
    first, *rows = rows_of(lines)
    assert find_values_in_header(first, rows) == ()


@pytest.mark.parametrize(("lines", "places"), RECORDS.values(), ids=RECORDS)
def test_a_record_is_no_header(lines: tuple[str, ...], places: tuple[int, ...]) -> None:
    first, *rows = rows_of(lines)
    assert find_values_in_header(first, rows) == places


RAW = "Xanthippe,34,f,02138\nZebulon,51,m,02139\nXerxes,51,f,02139\n"
COMMANDS = {
    "profile": ("profile", "DATA"),
    "profile as JSON": ("profile", "DATA", "--json"),
    "anonymize": ("anonymize", "DATA", "--quasi", "age,sex", "-k", "2", "--out", "OUT"),
    "a name that is nearly there": ("anonymize", "DATA", "--quasi", "Xantippe,3", "-k", "2", "--out", "OUT"),
    "as JSON, with values": ("anonymize", "DATA", "--quasi", "z", "-k2", "--out", "OUT", "--json", "--show-values"),
    "verify": ("verify", "DATA", "--policy", "POLICY"),
    "measure": ("measure", "GOOD", "DATA", "--policy", "POLICY"),
    "lattice": ("lattice", "DATA", "--policy", "POLICY"),
    "compare": ("compare", "DATA", "--policy", "POLICY", "--out", "OUT"),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("raw", [RAW, RAW.replace("34", "f"), RAW.replace("34", "")], ids=["plain", "twice", "empty"])
def test_no_message_shows_a_record_of_a_file_without_a_header(
    command: tuple[str, ...], raw: str, tmp_path: Path
) -> None:
    places = {
        "DATA": text(tmp_path, "raw.csv", raw),
        "GOOD": text(tmp_path, "good.csv", "age,sex\n34,f\n51,m\n51,f\n"),
        "POLICY": text(
            tmp_path, "p.toml", '[privacy]\nk=2\n[columns.age]\nrole="quasi"\n[columns.sex]\nrole="quasi"\n'
        ),
        "OUT": tmp_path / "out",
    }
    ran = run(*(places.get(word, word) for word in command))
    assert ran.code == (4 if command[0] == "compare" else 3)  # no setting of a comparison is possible
    assert "first line does not look like a header" in ran.err
    said = ran.out + ran.err.replace(str(tmp_path), "").replace("2019", "")
    assert not any(value in said for value in ("Xanthippe", "34", "02138", "'f'"))
    assert not (tmp_path / "out" / "public").exists()


@pytest.mark.slow
def test_a_name_that_the_policy_knows_makes_it_a_header(tmp_path: Path) -> None:
    wide = text(tmp_path, "wide.csv", "city,2019\n" + "Ulm,5\nBonn,6\n" * 4)
    assert run("profile", wide).code == 3
    ran = run("anonymize", wide, "--quasi", "2019", "--others", "drop", "-k", "2", "--out", tmp_path / "out", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["k"] >= 2
    assert run("verify", tmp_path / "out").code == 0  # the certificate names its columns


# Guessing: how a table seems to be written, what is told of it, and what is left open.


FILLING = [str(i) for i in range(3, 40)]


def column(tmp_path: Path, *values: str, name: str = "x") -> Path:
    """A table of one telling column beside plain ones."""
    lines = [f"{name};n;word", *(f'"{value}";{i % 7};{"ab"[i % 2]}' for i, value in enumerate(values))]
    return text(tmp_path, "t.csv", "\n".join(lines) + "\n")


def found(tmp_path: Path, *values: str, **declared: Any) -> tuple[dict[str, Any], str, str]:
    """What is guessed of a table with such a column, the kind of the column, and what is told."""
    profile = kinfold.profile(column(tmp_path, *values), **declared)
    guessed = {key: value for key, value in profile.source.items() if key not in ("separator", "encoding")}
    guessed |= {"column": profile.columns[0].na} if profile.columns[0].na else {}
    return guessed, profile.columns[0].kind, "\n".join(profile.readings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "guessed"),
    [
        (("1,5", "2,25", "3"), {"decimal": ","}),
        (("1.234,5", "2,25", "3"), {"decimal": ",", "thousands": "."}),
        (("1.234.567", "2.345.678", "3"), {"decimal": ",", "thousands": "."}),
        (("1,234.5", "2.25", "3"), {"thousands": ","}),
        (("1,234,567", "2,345,678", "3"), {"thousands": ","}),
        (("1'234.5", "2", "3"), {"thousands": "'"}),
        (("1 234,5", "2", "3,25"), {"decimal": ",", "thousands": " "}),
        (("1\u202f234,5", "2", "3,25"), {"decimal": ",", "thousands": " "}),
        (("1\u00a0234", "2", "3"), {"thousands": " "}),
        (("1.5", "2", "3"), {}),
        (("1e5", "2,5", "3"), {"decimal": ","}),
        (("-1,5", "+2,5", ",5"), {"decimal": ","}),
    ],
    ids=str,
)
def test_marks_of_numbers(tmp_path: Path, values: tuple[str, ...], guessed: dict[str, str]) -> None:
    assert found(tmp_path, *values, *FILLING)[:2] == (guessed, "continuous")


@pytest.mark.slow
@pytest.mark.parametrize("word", ["NA", "n/a", "-", ".", "?", "NULL", "#N/A", "nan", "k.A.", "..", "None"])
def test_a_column_of_numbers_with_a_few_words_is_a_column_of_numbers(tmp_path: Path, word: str) -> None:
    guessed, kind, told = found(tmp_path, "1.5", word, word, *FILLING)
    assert (guessed, kind) == ({"column": (word,)}, "continuous")
    assert f"guessed: {word!r} means missing" in told
    assert "'x' 2" in told


def test_numbers_and_other_words_are_not_words_for_missing(tmp_path: Path) -> None:
    assert found(tmp_path, "999", "999", *FILLING)[:2] == ({}, "continuous")
    guessed, kind, told = found(tmp_path, "SECRET", *FILLING)
    assert (guessed, kind) == ({}, "nominal")
    assert "37 of its 38 values are numbers, 1 is not" in told
    assert "SECRET" not in told


def test_an_unknown_word_that_repeats_among_numbers_is_a_question(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("\n".join(["x", *["ND"] * 4, *(str(i * i % 97 / 4) for i in range(80))]), "utf-8")
    profile = kinfold.profile(path)
    assert (profile.columns[0].kind, profile.columns[0].na) == ("continuous", ("ND",))
    assert [each.question for each in profile.questions] == ["Does ND in 'x' mean that the value is missing?"]


def test_a_word_among_grades_is_a_grade(tmp_path: Path) -> None:
    profile = kinfold.profile(column(tmp_path, *[*"123456789U"] * 9))
    assert (profile.questions, profile.columns[0].na, profile.columns[0].kind) == ((), (), "nominal")


def test_no_question_about_the_codes_of_a_column_that_is_left_out(tmp_path: Path) -> None:
    amounts = [str(30_000 + 2 * i * i) for i in range(400)]
    kept = kinfold.profile(column(tmp_path, *amounts, *["999999"] * 5, name="income"))
    assert [question.name for question in kept.questions] == ["na_income"]
    codes = ["622020", "411010", "782510"] * 60 + ["999999"] * 40
    lines = ["age,sex,CBOR", *(f"{20 + i * 7 % 61},{'fm'[i * i % 7 % 2]},{code}" for i, code in enumerate(codes))]
    left_out = kinfold.profile(text(tmp_path, "codes.csv", "\n".join(lines)))
    assert [column.na for column in left_out.columns if column.undecided] == [("999999",)]
    assert [question.name for question in left_out.questions] == ["codes"]


def test_brackets_around_an_amount_are_a_minus_sign(tmp_path: Path) -> None:
    path = column(tmp_path, *(f"${i},0{i}0.50" for i in range(1, 9)), "($1,250.00)", "(40)", "$-3")
    policy = tomllib.loads(write_starter_policy(kinfold.profile(path)))
    assert policy["columns"]["x"]["unit"] == ["$"]
    columns = {"x": {**policy["columns"]["x"], "role": "quasi-identifier"}}
    policy = {"privacy": {"k": 2}, "source": policy["source"], "output": {"others": "drop"}, "columns": columns}
    released = kinfold.anonymize(path, Policy.parse(policy)).frame["x"].to_pylist()
    assert min(released) < -400


def test_words_among_words_are_words(tmp_path: Path) -> None:
    assert found(tmp_path, "NA", "DE", "AT", "CH", "FR", "NL")[:2] == ({}, "nominal")


def test_codes_with_a_zero_before_them_are_no_numbers(tmp_path: Path) -> None:
    assert found(tmp_path, "02138", "02139", "NA", "01234", "05678")[:2] == ({"column": ("NA",)}, "nominal")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "guessed", "kind"),
    [
        (("31.12.2024", "1.2.2023"), {"dates": "%d.%m.%Y"}, "date"),
        (("31/12/2024", "01/02/2023"), {"dates": "%d/%m/%Y"}, "date"),
        (("12/31/2024", "01/02/2023"), {"dates": "%m/%d/%Y"}, "date"),
        (("31.12.2024", "NA", *["1.2.2023"] * 9), {"column": ("NA",), "dates": "%d.%m.%Y"}, "date"),
        (("2024-12-31T10:11:12.000Z", "2023-01-02T00:00:00.000Z"), {}, "date"),
        (("2024-12-31T10:11:12+01:00", "2023-06-02T00:00:00+02:00"), {}, "date"),
        (("2024-12-31T10:11:12.5", "2023-01-02T00:00:00.25"), {}, "date"),
        (("2024-12-31T00:00:00Z", "2023-01-02T00:00:00Z"), {}, "date"),
        (("2024-12-31 00:00:00.000", "2023-01-02 00:00:00.000"), {}, "date"),
        (("31-JAN-2024", "01-Feb-2023"), {"dates": "%d-%b-%Y"}, "date"),
        (("31.12.24", "01.02.99"), {"dates": "%d.%m.%y"}, "date"),
        (("31-JAN-24", "01-Feb-23"), {"dates": "%d-%b-%y"}, "date"),
    ],
    ids=str,
)
def test_formats_of_dates(tmp_path: Path, values: tuple[str, ...], guessed: dict[str, Any], kind: str) -> None:
    assert found(tmp_path, *values)[:2] == (guessed, kind)


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        (("01/02/2024", "03/04/2023", "05/06/2022"), 'source.dates = "%d/%m/%Y" or "%m/%d/%Y"'),
        (("1,234", "2,345", "13,456"), 'source.decimal = "," (--decimal) if the commas are decimal'),
    ],
    ids=["dates", "numbers"],
)
def test_what_can_be_read_in_two_ways_is_called_ambiguous(tmp_path: Path, values: tuple[str, ...], remedy: str) -> None:
    guessed, kind, told = found(tmp_path, *values)
    assert (guessed, kind) == ({}, "nominal")
    assert "ambiguous" in told
    assert remedy in told


def test_two_digits_are_of_no_century(tmp_path: Path) -> None:
    guessed, kind, told = found(tmp_path, "31.12.45", "01.02.99", "03.04.01")
    assert (guessed, kind) == ({}, "nominal")
    assert 'source.dates = "%d.%m.%y"' in told
    assert found(tmp_path, "31.12.45", "01.02.99", "03.04.01", dates="%d.%m.%y")[1] == "date"


def test_one_column_decides_for_another(tmp_path: Path) -> None:
    lines = ["a;b;x;y", *(f"{1 + i % 9}.{100 + i};0,{5 + i};01/02/20{10 + i};{13 + i}/01/2001" for i in range(9))]
    profile = kinfold.profile(text(tmp_path, "t.csv", "\n".join(lines) + "\n"))
    assert {key: profile.source.get(key) for key in ("decimal", "thousands", "dates")} == {
        "decimal": ",",
        "thousands": ".",
        "dates": "%d/%m/%Y",
    }
    assert [c.kind for c in profile.columns] == ["continuous", "continuous", "date", "date"]


def test_thousands_beside_a_missing_word_fit_the_decimal_commas_of_another_column(tmp_path: Path) -> None:
    lines = ["income;hours", *(f"{1 + i % 7}.{100 + i};3{i % 9},5" for i in range(40)), "k.A.;38,5"]
    profile = kinfold.profile(text(tmp_path, "t.csv", "\n".join(lines) + "\n"))
    assert (profile.source["decimal"], profile.source["thousands"]) == (",", ".")
    assert [column.kind for column in profile.columns] == ["continuous", "continuous"]


def test_columns_that_contradict_each_other_decide_nothing(tmp_path: Path) -> None:
    lines = ["a;b", *(f"1,{5 + i};2.{5 + i}" for i in range(9))]
    profile = kinfold.profile(text(tmp_path, "t.csv", "\n".join(lines) + "\n"))
    assert "decimal" not in profile.source
    assert "not decided: column 'a' seems to hold numbers with a decimal comma" in "\n".join(profile.readings)


def test_what_is_declared_is_not_guessed(tmp_path: Path) -> None:
    guessed, _, told = found(tmp_path, "1,5", "2,25", "NA", *FILLING, na=["x"], decimal=",")
    assert guessed == {"na": ["x"], "decimal": ","}
    assert "as declared: numbers are written with decimal ','" in told
    assert "guessed" not in told


def test_a_starter_policy_says_how_the_table_is_written(tmp_path: Path) -> None:
    path = column(tmp_path, "1.234,5", "NA", *FILLING)
    path.write_bytes(path.read_text().replace("word", "größe").encode("cp1252"))
    written = tomllib.loads(write_starter_policy(kinfold.profile(path)))
    assert written["source"] == {
        "separator": ";",
        "encoding": "cp1252",
        "decimal": ",",
        "thousands": ".",
    }
    assert written["columns"]["x"]["na"] == ["NA"]
    assert Policy.parse(written).source.form.thousands == "."


def test_every_guessed_format_of_dates_is_accepted_in_a_policy(tmp_path: Path) -> None:
    written = tomllib.loads(write_starter_policy(kinfold.profile(column(tmp_path, "05Jan2020", "31Dec2021"))))
    assert Policy.parse(written).source.form.dates == (written["source"]["dates"],) == ("%d%b%Y",)


def test_a_plain_table_needs_no_source(tmp_path: Path) -> None:
    plain = text(tmp_path, "t.csv", "a,b\n1,x\n2,y\n3,x\n")
    assert "source" not in tomllib.loads(write_starter_policy(kinfold.profile(plain)))


def test_the_command_tells_and_prints_it(tmp_path: Path) -> None:
    path = column(tmp_path, "1,5", "NA", *FILLING)
    told = run("profile", path)
    assert "read with: separator = ';'" in told.out
    assert "guessed: numbers are written with decimal ',' in 'x'" in told.out
    assert '"decimal": ","' in run("profile", path, "--json").out
