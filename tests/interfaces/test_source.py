"""How a table is written, as a steward says it: options, policies and keywords, right ones and wrong ones."""

import csv
import json
import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kinfold
from command import Ran, run, text
from kinfold import checker
from kinfold.errors import DataError

SECRET = "1.987,65"
HEAD = "age;weight;sex;born;income"
ROWS = [
    f"{20 + i % 7};{60 + i % 5},{i % 4}5;{'mf'[i % 2]};{1 + i % 28:02d}.{1 + i % 12:02d}.19{50 + i % 40};"
    f"{1 + i % 3}.{100 + 17 * i},{i % 10}0"
    for i in range(40)
]
POLICY = """
[privacy]
k = 3
t = 0.6
[method]
name = "mdav"
[columns]
age = { role = "quasi" }
weight = { role = "quasi" }
sex = { role = "quasi" }
born = { role = "quasi" }
income = { role = "confidential" }
"""
SOURCE = '[source]\ndecimal = ","\nthousands = "."\ndates = "%d.%m.%Y"\nna = "NA"\n'
HIERARCHIES = (
    "columns.age.hierarchy.intervals=[5, 20]",
    "columns.weight.hierarchy.intervals=[0.5, 2]",
    'columns.born.hierarchy.dates=["year", "decade"]',
    "privacy.t=1",
)
WRITTEN = ("--decimal", ",", "--thousands", ".", "--dates", "%d.%m.%Y", "--na", "NA")


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    text(tmp_path, "t.csv", "\n".join([HEAD, *ROWS]) + "\n")
    text(tmp_path, "policy.toml", POLICY)
    text(tmp_path, "source.toml", SOURCE + POLICY)
    return tmp_path


def anonymize(desk: Path, *args: object, policy: str = "policy.toml", table: str = "t.csv") -> Ran:
    shutil.rmtree(desk / "out", ignore_errors=True)
    return run("anonymize", desk / table, "--policy", desk / policy, "--out", desk / "out", *args)


def released(desk: Path) -> list[dict[str, str]]:
    with (desk / "out" / "public" / "release.csv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter=";"))


@pytest.mark.slow
def test_policy_options_and_settings_say_the_same(desk: Path) -> None:
    releases = []
    for said in [
        {"policy": "source.toml"},
        {"args": WRITTEN},
        {
            "args": [
                a
                for key in ("decimal=,", "thousands=.", "dates=%d.%m.%Y", 'na=["NA"]')
                for a in ("--set", f"source.{key}")
            ]
        },
    ]:
        anonymize(desk, *said.get("args", ()), policy=str(said.get("policy", "policy.toml"))).ok()
        releases.append((desk / "out" / "public" / "release.csv").read_bytes())
    assert len({*releases}) == 1
    settings = {"decimal": ",", "thousands": ".", "dates": "%d.%m.%Y", "na": ["NA"]}
    roles = {"quasi": ["age", "weight", "sex", "born"], "confidential": ["income"]}
    made = kinfold.anonymize(desk / "t.csv", k=3, t=0.6, method="mdav", **roles, **settings)
    made.save(desk / "python")
    assert (desk / "python" / "public" / "release.csv").read_bytes() == releases[0]


def test_the_release_of_a_table_with_decimal_commas_has_them(desk: Path) -> None:
    assert anonymize(desk, policy="source.toml").code == 0
    rows = released(desk)
    assert len(rows) == len(ROWS)
    assert all("." not in row["weight"] + row["income"] and "," in row["income"] for row in rows)
    held = sorted(Decimal(row["income"].replace(",", ".")) for row in rows)
    assert held == sorted(Decimal(line.split(";")[4].replace(".", "").replace(",", ".")) for line in ROWS)
    told = json.loads((desk / "out" / "public" / "certificate.json").read_text())["release"]
    assert (told["separator"], told["decimal"]) == (";", ",")


def test_both_checkers_judge_it(desk: Path) -> None:
    assert anonymize(desk, policy="source.toml").code == 0
    public = desk / "out" / "public"
    assert run("verify", desk / "out", "--twice").code == 0
    assert checker.check_release(public)["holds"]
    assert run("verify", public / "release.csv", "--policy", desk / "source.toml", "--twice").code == 0
    run("measure", desk / "t.csv", public / "release.csv", "--policy", desk / "source.toml", "--json").ok()


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        ("output.round=false",),
        ("method.name=mingen-cell", *HIERARCHIES),
        ("method.name=lattice", "method.suppression=20", "output.suppressed=star", *HIERARCHIES),
        ("output.format=parquet",),
        ("columns.weight.average=generalize",),
        ("columns.income.type=nominal", "columns.income.t=0.99"),
        ("output.order=kept", "output.suppressed=star"),
        ("output.spreadsheet_safe=true",),
    ],
    ids=str,
)
def test_whatever_is_released_is_read_as_it_is_written(desk: Path, settings: tuple[str, ...]) -> None:
    args = [a for setting in settings for a in ("--set", setting)]
    anonymize(desk, *args, policy="source.toml").ok()
    assert run("verify", desk / "out", "--twice").code == 0


def test_numbers_of_a_parquet_release_are_numbers(desk: Path) -> None:
    assert anonymize(desk, "--format", "parquet", policy="source.toml").code == 0
    table = pq.read_table(desk / "out" / "public" / "release.parquet")
    assert pa.types.is_floating(table.schema.field("income").type)
    assert pa.types.is_date(table.schema.field("born").type)


def test_without_being_told_a_run_says_what_it_sees(desk: Path) -> None:
    anonymize(desk).fails(
        3,
        "column 'income' seems to hold numbers with a decimal comma and thousands marks: 40 of its 40",
        'source.decimal = "," (--decimal) and source.thousands = "." (--thousands)',
        "column 'weight' seems to hold numbers with a decimal comma",
    )
    assert not (desk / "out").exists()
    nominal = [a for name in ("income", "weight") for a in ("--set", f"columns.{name}.type=nominal")]
    assert anonymize(desk, *nominal, "--set", "privacy.t=0.99").code == 0


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (("--decimal", "."), 3, "column 'weight' seems to hold numbers with a decimal comma"),
        (("--decimal", ",", "--set", "columns.weight.type=continuous"), 3, "column 'income' seems"),
        (("--decimal", ","), 3, 'set source.thousands = "." (--thousands)'),
        (("--decimal", "x"), 2, "--decimal: 'source.decimal' should be '.' or ','"),
        (("--decimal", ",", "--thousands", ","), 2, "the same character"),
        (("--thousands", "ab"), 2, "--thousands"),
        (("--separator", "ab"), 2, "--separator"),
        (("--separator", "tab"), 3, "the header has no tab"),
        (("--encoding", "klingon"), 2, "--encoding: 'source.encoding' is refused: there is no such encoding"),
        (("--encoding", "utf-16"), 3, "is not text in utf-16"),
        (("--dates", "%d%m%Y"), 2, "digits alone"),
        (("--dates", "day"), 2, "--dates"),
        (("--sheet", "0"), 2, "--sheet"),
        (("--set", "source.nah=NA"), 2, "unknown key 'source.nah', did you mean 'na'?"),
        (("--format", "xlsx"), 2, "--format: 'output.format' should be 'csv' or 'parquet'"),
        (("--decimals", ","), 2, "No such option"),
    ],
    ids=str,
)
def test_a_wrong_option_is_told_by_its_name(desk: Path, args: tuple[str, ...], code: int, said: str) -> None:
    ran = anonymize(desk, *args)
    assert (ran.code, said in ran.err) == (code, True), ran.err
    assert "correct it in the policy" not in ran.err
    assert "61,15" not in ran.err


def test_a_wrong_key_is_told_by_the_file(desk: Path) -> None:
    text(desk, "policy.toml", '[source]\ndecimal = "x"\n' + POLICY)
    anonymize(desk).fails(2, "policy.toml': 'source.decimal' should be '.' or ','")


@pytest.mark.parametrize(
    ("line", "column", "counts"),
    [
        ("33;61.5;m;01.01.1950;1.100,00", "weight", "40 of its 41 values are numbers, 1 is not"),
        ("33;61,5;m;01.01.1950;many", "income", "40 of its 41 values are numbers, 1 is not"),
        ("33;61,5;m;soon;1.100,00", "born", "40 of its 41 values are dates, 1 is not"),
        ("old;61,5;m;01.01.1950;1.100,00", "age", "40 of its 41 values are numbers, 1 is not"),
    ],
)
def test_a_value_that_does_not_fit_stops_the_run_with_counts(desk: Path, line: str, column: str, counts: str) -> None:
    text(desk, "t.csv", "\n".join([HEAD, *ROWS, line]) + "\n")
    ran = anonymize(desk, policy="source.toml").fails(3, f"column '{column}' seems", counts)
    assert not {"61.5", "many", "soon", "old;"} & {*ran.err.split()}


def test_a_declared_column_says_which_key_would_help(desk: Path) -> None:
    types = (("income", "continuous"), ("sex", "date"))
    anonymize(desk, "--decimal", ",", *(a for n, kind in types for a in ("--set", f"columns.{n}.type={kind}"))).fails(
        3,
        "column 'income' is declared continuous, but 40 of 40 values are not numbers",
        'fix: set source.thousands = "." (--thousands), or declare it nominal',
        "column 'sex' is declared date, but not every value is one",
        'source.dates = "%d.%m.%Y" (--dates)',
    )


@pytest.mark.compiled
def test_ambiguous_dates_stop_a_run_with_both_readings(desk: Path) -> None:
    lines = ["day,x", *(f"0{1 + i % 9}/0{1 + i % 8}/2020,{i % 3}" for i in range(30))]
    path = text(desk, "d.csv", "\n".join(lines) + "\n")
    run("anonymize", path, "--quasi", "day,x", "-k", "2", "--out", desk / "d").fails(
        3, "ambiguous", 'source.dates = "%d/%m/%Y" or "%m/%d/%Y" (--dates)'
    )
    assert run("anonymize", path, "--quasi", "day,x", "-k", "2", "--out", desk / "d", "--dates", "%m/%d/%Y").code == 0
    assert run("verify", desk / "d", "--twice").code == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "form",
    ["%Y-%m-%dT%H:%M:%S.000Z", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT00:00:00.000", "%Y-%m-%d %H:%M:%S.%f", "%Y%m%d", "z"],
)
def test_moments_are_written_again_as_they_were(desk: Path, form: str) -> None:
    zones = ("+01:00", "+02:00")
    moments = pd.date_range("1990-01-01 10:00:00.25", periods=30, freq="D")
    texts = [
        m.strftime("%Y-%m-%dT%H:%M:%S") + zones[i % 2] if form == "z" else m.strftime(form)
        for i, m in enumerate(moments)
    ]
    path = text(desk, "m.csv", "\n".join(["at,seen", *(f"{one},{one}" for one in texts)]) + "\n")
    columns = {"at": {"role": "quasi"}, "seen": {"role": "confidential"}}
    source = {"dates": form} if form == "%Y%m%d" else {}
    made = kinfold.anonymize(path, {"source": source, "privacy": {"k": 3, "t": 0.9}, "columns": columns})
    made.save(desk / "m")
    assert kinfold.verify(desk / "m", twice=True).k >= 3
    with (desk / "m" / "public" / "release.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["seen"] for row in rows} == {*texts}
    assert all(pd.Timestamp(row["at"]) is not pd.NaT and len(row["at"]) == len(texts[0]) for row in rows)


@pytest.mark.compiled
def test_whole_numbers_with_a_point_stay_whole(desk: Path) -> None:
    path = text(desk, "w.csv", "\n".join(["age,x", *(f"{20 + i}.0,{i % 2}" for i in range(20))]) + "\n")
    made = kinfold.anonymize(path, quasi=["age"], confidential=["x"], k=3)
    made.save(desk / "w")
    with (desk / "w" / "public" / "release.csv").open(newline="") as file:
        assert all(float(row["age"]).is_integer() for row in csv.DictReader(file))
    frame = pd.DataFrame({"age": [float(20 + i) for i in range(20)], "x": [i % 2 for i in range(20)]})
    ages = kinfold.anonymize(frame, quasi=["age"], confidential=["x"], k=3).frame["age"]
    assert ages.dtype == "float64"
    assert all(age.is_integer() for age in ages)


# frames


ORDER = ["low", "middle", "high"]
LEVELS = [ORDER[i % 3] for i in range(12)]


@pytest.mark.parametrize(
    "column",
    [
        pd.DataFrame({"a": pd.Categorical(LEVELS, ORDER, ordered=True)}),
        pl.DataFrame({"a": pl.Series(LEVELS, dtype=pl.Enum(ORDER))}),
        pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in range(12)]), ORDER, ordered=True)}),
    ],
    ids=["pandas", "polars", "pyarrow"],
)
def test_ordered_categories_bring_their_order(column: Any) -> None:
    release = kinfold.anonymize(column, quasi=["a"], k=3, method="mdav")
    bound = release.policy["a"]
    assert (str(bound.kind), bound.request.order) == ("ordinal", tuple(ORDER))


def test_categories_without_an_order_have_none() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(LEVELS)})
    assert str(kinfold.anonymize(frame, quasi=["a"], k=3, method="mdav").policy["a"].kind) == "nominal"


def test_words_for_missing_in_a_frame_are_missing_in_its_release() -> None:
    frame = pd.DataFrame({"a": [1, 1, 1, 2, 2, 2], "word": ["NA", "x", "y", "x", "y", "x"]})
    release = kinfold.anonymize(frame, quasi=["a"], confidential=["word"], k=3, na=["NA"], method="mdav")
    assert release.frame["word"].isna().sum() == 1


# other files


@pytest.mark.compiled
def test_a_workbook_goes_the_whole_way(desk: Path) -> None:
    book = openpyxl.Workbook()
    book.active.title = "people"
    book.active.append(["age", "born", "ill"])
    for i in range(30):
        book.active.append([20 + i if i % 9 else "NA", date(1960 + i, 1, 1), "yn"[i % 2]])
    book.create_sheet("notes").append(["nothing"])
    book.save(desk / "t.xlsx")
    roles = ("--quasi", "age,born", "--confidential", "ill", "-k", "3", "--out", desk / "x")
    assert "--sheet" in run("anonymize", desk / "t.xlsx", *roles).err
    ran = run("anonymize", desk / "t.xlsx", *roles, "--sheet", "people")
    assert 'source.na = ["NA"] (--na)' in ran.err
    more = ("--sheet", "1", "--na", "NA", "--set", "columns.age.missing=mean")
    run("anonymize", desk / "t.xlsx", *roles, *more).ok()
    assert run("verify", desk / "x", "--twice").code == 0
    assert run("profile", desk / "t.xlsx", "--sheet", "people", "--json").json["source"]["sheet"] == "people"


@pytest.mark.parametrize(("declared", "written"), [("utf-8", "cp1252"), ("latin-1", "utf-8"), ("utf-16", "utf-8")])
def test_an_encoding_that_is_not_the_file_s_is_refused(tmp_path: Path, declared: str, written: str) -> None:
    path = text(tmp_path, "t.csv", "größe,b\n1,2\n3,4\n".encode(written))
    with pytest.raises(DataError, match=r"the declared source\.encoding"):
        kinfold.profile(path, encoding=declared)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "mac-roman", "cp850"])
def test_a_declared_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    path = text(tmp_path, "t.csv", "größe,b\n1,ä\n3,ß\n".encode(encoding))
    assert [c.name for c in kinfold.profile(path, encoding=encoding).columns] == ["größe", "b"]


def test_every_command_that_reads_a_table_has_the_options() -> None:
    for command in ("profile", "anonymize", "verify", "measure", "compare", "lattice", "hierarchy"):
        told = run(command, "--help").out
        assert all(
            f"--{key}" in told for key in ("na", "decimal", "thousands", "dates", "encoding", "separator", "sheet")
        )


def test_a_folder_is_read_as_its_certificate_says(desk: Path) -> None:
    assert anonymize(desk, policy="source.toml").code == 0
    run("verify", desk / "out", "--decimal", ".").fails(2, "--decimal is for a table")


def test_numbers_with_a_point_are_none_where_a_comma_is_declared(tmp_path: Path) -> None:
    path = text(tmp_path, "t.csv", "\n".join(["a;b", *(f"{i}.5;x" for i in range(20))]) + "\n")
    run(
        "anonymize", path, "--quasi", "a", "--confidential", "b", "-k", "2", "--out", tmp_path / "o", "--decimal", ","
    ).fails(
        3,
        "column 'a' seems to hold numbers with a decimal point: 20 of its 20 values are numbers",
        'set source.decimal = "." (--decimal)',
    )


@pytest.mark.slow
def test_a_comparison_reads_the_table_as_it_is_written(desk: Path) -> None:
    methods = ("--methods", "mdav,v-mdav", "--k", "3")
    run("compare", desk / "t.csv", "--policy", desk / "source.toml", *methods, "--out", desk / "c", "--json").ok()


@pytest.mark.slow
def test_a_hierarchy_of_a_column_with_decimal_commas_has_points(desk: Path) -> None:
    setting = ("--set", "columns.weight.hierarchy.intervals=[0.5, 2]")
    args = ("--policy", desk / "source.toml", "--column", "weight", "--out", desk / "h.csv", *setting)
    run("hierarchy", desk / "t.csv", *args).ok()
    assert (desk / "h.csv").read_text().startswith("60.05;")
