"""Bad input gets a clear error, and nothing is lost: one test for each thing that can be wrong."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pytest

import kinfold
from command import content, run, text

GOOD = """\
name,age,zip,level,disease
Xanthippe,31,02138,low,flu
Yaroslava,32,02138,low,flu
Zebulon,33,02139,mid,cold
Quirinus,61,02139,mid,flu
Philomena,62,02141,high,cold
Ozymandias,63,02141,high,flu
"""
SECRETS = ("Xanthippe", "Zebulon", "02138", "02139", "61", "flu", "SECRET")
POLICY = """\
[privacy]
k = 3
[method]
name = "mdav"
[columns.name]
role = "identifier"
[columns.age]
role = "quasi-identifier"
type = "continuous"
[columns.zip]
role = "quasi-identifier"
[columns.level]
role = "quasi-identifier"
type = "ordinal"
order = ["low", "mid", "high"]
[columns.disease]
role = "confidential"
"""


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real release, made before the one that goes wrong."""
    folder = tmp_path_factory.mktemp("earlier")
    table, policy = text(folder, "table.csv", GOOD), text(folder, "policy.toml", POLICY)
    assert run("anonymize", table, "--policy", policy, "--out", folder / "release").code == 0
    return folder / "release"


@pytest.fixture
def desk(earlier: Path, tmp_path: Path) -> Path:
    """A folder with a good table, a good policy and an earlier release."""
    text(tmp_path, "table.csv", GOOD)
    text(tmp_path, "policy.toml", POLICY)
    shutil.copytree(earlier, tmp_path / "out")
    return tmp_path


def refused(desk: Path, code: int, *words: str, args: tuple[object, ...] = (), table: str = "table.csv") -> str:
    """Anonymize over the earlier release; it must fail with the code, say the words, tell no value, touch nothing."""
    before = content(desk)
    ran = run("anonymize", desk / table, "--policy", desk / "policy.toml", "--out", desk / "out", "--force", *args)
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert "fix: " in ran.err
    for word in words:
        assert word in ran.err
    said = ran.err.replace(str(desk), "")  # the folder's own number is no value of the data
    for secret in SECRETS:
        assert secret not in said
    assert content(desk) == before
    return ran.err


def change(desk: Path, edits: Iterable[tuple[str, str, str]]) -> None:
    for name, old, new in edits:
        content = (desk / name).read_text()
        assert old in content
        (desk / name).write_text(content.replace(old, new, 1))


def test_the_good_table_passes(desk: Path) -> None:
    assert run("anonymize", desk / "table.csv", "--policy", desk / "policy.toml", "--out", desk / "new").code == 0


# Each mistake: what is written instead (file, old text, new text), further options, and words of the message

TABLE, RULES = "table.csv", "policy.toml"
Edits = list[tuple[str, str, str]]
TREE = (RULES, "[columns.zip]", '[columns.zip]\nhierarchy = { levels = [["02138", "a"], ["02141", "b"]] }')
CONTINUOUS, CONFIDENTIAL = 'type = "continuous"', 'role = "confidential"'

UNREADABLE: dict[str, tuple[Edits, tuple[str, ...]]] = {
    "too few fields": (
        [(TABLE, "Zebulon,33,02139,mid,cold", "SECRET,31,02138,low")],
        ("1 line has another number of fields than the header", "(line 4)", "correct these lines"),
    ),
    "too many fields": (
        [(TABLE, "Zebulon,33,02139,mid,cold", "SECRET,31,02138,low,flu,more")],
        ("1 line has another number of fields than the header", "(line 4)", "correct these lines"),
    ),
    "many ragged rows": (
        [(TABLE, "high,flu\n", "high,flu\n" + "SECRET\n" * 9)],
        ("9 lines have another number of fields", "(line 8, 9, 10, 11, 12, ...)"),
    ),
    "an open quote": ([(TABLE, "Zebulon", '"SECRET')], ("wrong quote", "correct these lines")),
    "one name twice": (
        [(TABLE, "name,age,zip", "name,age,age")],
        ("columns 2 and 3 have the same name", "rename all but one"),
    ),
    "names that differ in case only": (
        [(TABLE, "name,age,zip", "name,age,Age")],
        ("columns 2 and 3 have the same name", "rename all but one"),
    ),
    "no name": ([(TABLE, "name,age,zip", "name,,zip")], ("column 2 has no name", "name every column")),
    "text in a continuous column": (
        [(TABLE, ",33,", ",SECRET,")],
        ("column 'age' is declared continuous, but 1 of 6 values are not numbers", "declare it nominal"),
    ),
    "text in a continuous confidential column": (
        [(RULES, CONFIDENTIAL, f"{CONFIDENTIAL}\n{CONTINUOUS}")],
        ("column 'disease' is declared continuous, but 6 of 6", "declare it nominal"),
    ),
    "text in a column of dates": (
        [(RULES, CONTINUOUS, 'type = "date"')],
        ("column 'age' is declared date", "2024-12-31"),
    ),
    **{
        value: (
            [(TABLE, ",33,", f",{value},")],
            ("column 'age' holds 1 value that is infinite or not a number", "correct or empty them"),
        )
        for value in ("inf", "-Infinity", "NaN", "+inf")
    },
    "numbers too large to square": (
        [(TABLE, ",33,", ",1e200,")],
        ("column 'age' holds values above", "larger units"),
    ),
    "missing numbers": (
        [(TABLE, ",33,", ",,")],
        (
            "column 'age' is continuous and 1 of its values are missing",
            "choose columns.age.missing: separate, mean or drop",
        ),
    ),
    "no number at all": (
        [(TABLE, f",{age},", ",,") for age in (31, 32, 33, 61, 62, 63)],
        ("column 'age' has no values at all", "drop it"),
    ),
    "a category outside the order": (
        [(TABLE, "33,02139,mid", "33,02139,SECRET")],
        ("column 'level': 1 category is not in its order", "add them to columns.level.order"),
    ),
    "a hierarchy that misses categories": (
        [TREE],
        ("the hierarchy of 'zip' misses 1 of its 3 categories", "add them to the hierarchy"),
    ),
    "a hierarchy file that is not there": (
        [(RULES, "[columns.zip]", '[columns.zip]\nhierarchy = { file = "zip.csv" }')],
        ("zip.csv", "No such file", "check the path"),
    ),
    "problems of two columns": (
        [(TABLE, "33,02139,mid", "33,02139,SECRET"), TREE],
        ("column 'level'", "the hierarchy of 'zip'"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNREADABLE)
def test_data_that_is_not_as_declared(desk: Path, name: str) -> None:
    edits, words = UNREADABLE[name]
    change(desk, edits)
    refused(desk, 3, *words)


ENCODED = ("is not text in UTF-8", "save it as UTF-8")
EMPTY = ("'table.csv' is empty", "a header and at least one row")
HEADER = b"name,age,zip,level,disease"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        *((data, EMPTY) for data in (b"", b"\n\n", b"\xef\xbb\xbf", b"  \r\n\t\n")),
        *((HEADER + end, ("'table.csv' has no rows", "at least one row")) for end in (b"", b"\n", b"\r\n\r\n")),
        (GOOD.encode("utf-16")[2:], ENCODED),
        (GOOD.encode() + b"\x81\xfe\x8d", ENCODED),
        (bytes(range(256)) * 4, ENCODED),
    ],
    ids=range(10),
)
def test_a_file_without_rows_or_in_another_encoding(desk: Path, data: bytes, words: tuple[str, ...]) -> None:
    text(desk, "table.csv", data)
    refused(desk, 3, *words)


def test_no_such_file(desk: Path) -> None:
    refused(desk, 3, "no such file", "nowhere.csv", "check the path", table="nowhere.csv")
    (desk / "table.parts").mkdir()
    refused(desk, 3, "is a folder", "name a file", table="table.parts")
    text(desk, "table.dat", b"PK")
    endings = (".csv", ".parquet", ".jsonl", ".json", ".xlsx", ".dta", ".sav", ".gz")
    refused(desk, 3, "table.dat", "ending", *endings, table="table.dat")


def test_offending_categories_are_shown_when_asked_for(desk: Path) -> None:
    change(desk, [(TABLE, "33,02139,mid", "33,02139,Sesame")])
    args = ("--policy", desk / "policy.toml", "--out", desk / "new", "--show-values")
    assert "(Sesame)" in run("anonymize", desk / "table.csv", *args).err


SEPARATE = f'{CONTINUOUS}\nmissing = "separate"\nmissing_rare = "refuse"'
UNREACHABLE: dict[str, tuple[Edits, tuple[object, ...], tuple[str, ...]]] = {
    "fewer than k records": ([], ("-k", 7), ("k is 7, but there are only 6 records", "lower k")),
    "fewer than k people": (
        [
            (RULES, "k = 3", 'k = 3\nunit = "name"'),
            *((TABLE, name, "Xanthippe") for name in ("Yaroslava", "Zebulon", "Quirinus", "Philomena")),
        ],
        (),
        ("k is 3, but 'name' names only 2 people", "lower k"),
    ),
    "fewer than k records after some were left out": (
        [(TABLE, ",33,", ",,"), (RULES, CONTINUOUS, f'{CONTINUOUS}\nmissing = "drop"')],
        ("-k", 6),
        ("k is 6, but there are only 5 records", "lower k"),
    ),
    "a rare pattern of missing values": (
        [(TABLE, ",33,", ",,"), (RULES, CONTINUOUS, SEPARATE)],
        (),
        ("1 pattern of missing values is shared by fewer than k = 3 records (1 in all)", '"drop"'),
    ),
}


@pytest.mark.parametrize("name", UNREACHABLE)
def test_a_request_that_the_table_cannot_meet(desk: Path, name: str) -> None:
    edits, args, words = UNREACHABLE[name]
    change(desk, edits)
    refused(desk, 4, *words, args=args)


WRONG: list[tuple[Edits, tuple[str, ...], tuple[str, ...]]] = [
    *(
        ([(RULES, "k = 3", f"k = {k}")], (), ("'privacy.k'", "k is a whole number from 2 up"))
        for k in ("1", "0", "-3", "2.5", '"5"', "true", "[5]", "nan")
    ),
    ([(RULES, "k = 3", "")], (), ("'privacy.k' is missing", "for example k = 5")),
    (
        [],
        ("--quasi", "disease"),
        ("column 'disease' is given as confidential and as quasi-identifier", "one role"),
    ),
    (
        [
            (TABLE, "name,age", "name,ages"),
            (RULES, "[columns.age]", "[columns.ages]"),
            (RULES, "[columns.level]", "[columns.levels]"),
        ],
        (),
        (
            "column 'level' is in the table but not in the policy, did you mean 'levels'?",
            "no column 'levels', did you mean 'level'?",
            "give [columns.level] a role, or use --others release or --others drop",
        ),
    ),
    (
        [(TABLE, "name,age,zip", "name,age,zpi")],
        (),
        ("no column 'zip', did you mean 'zpi'?", "edit [columns] in the policy"),
    ),
    *(
        ([(RULES, old, new)], (), (f"unknown key '{key}, did you mean '{near}'?", "known keys there: "))
        for old, new, key, near in [
            ("k = 3", "k = 3\nkk = 3", "privacy.kk'", "k"),
            ("[privacy]", "[output]\nrounded = true\n[privacy]", "output.rounded'", "round"),
            ('type = "ordinal"', 'typ = "ordinal"', "columns.level.typ'", "type"),
            ("[privacy]", "[privasy]\n[privacy]", "privasy'", "privacy"),
        ]
    ),
    ([], ("--method", "mdva"), ("no method 'mdva', did you mean 'mdav'?", "known methods are ")),
    *(
        ([(RULES, "k = 3", line)], (), ("policy.toml' is not TOML", "line", "fix the TOML syntax in line"))
        for line in ("k = ", "[privacy", "k = 3\nk = 4", 'k = 3 "')
    ),
    *(
        (
            [(RULES, "k = 3", f"k = 3\n{key}"), (RULES, CONFIDENTIAL, 'role = "other"')],
            (),
            (f"'privacy.{key.split()[0]}' is set, but no column is confidential", "role confidential"),
        )
        for key in ("t = 0.2", "l = 2", "p = 2", "alpha = 0.5")
    ),
    ([], ("--set", "k"), ("has no value",)),
    ([], ("--set", "privacy.k.x=1"), ("'k' in the policy is not a section",)),
    ([], ("--set", "output.format=xls"), ("'output.format'",)),
]


@pytest.mark.parametrize(("edits", "args", "words"), WRONG, ids=range(len(WRONG)))
def test_a_request_that_is_wrong(desk: Path, edits: Edits, args: tuple[str, ...], words: tuple[str, ...]) -> None:
    change(desk, edits)
    refused(desk, 2, *words, args=args)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--quasi", "age", "-k", "2.5"), ("-k",)),
        (("--quasi", "age", "-k", "five"), ("-k",)),
        (
            ("--quasi", "age,zip", "--confidential", "zip", "-k", "2"),
            ("column 'zip' is given as quasi-identifier and as confidential", "give each column one role"),
        ),
        (
            ("--confidential", "name,age,zip,level,disease", "-k", "2"),
            ("no column has the role 'quasi-identifier'", "--quasi a,b"),
        ),
        (("--nosuch",), ()),
    ],
)
def test_options_that_are_wrong(desk: Path, args: tuple[str, ...], words: tuple[str, ...]) -> None:
    run("anonymize", desk / "table.csv", *args, "--out", desk / "new").fails(2, *words)


def test_a_command_that_is_unknown() -> None:
    run("nosuch").fails(2)


def test_a_policy_that_cannot_be_read(desk: Path) -> None:
    text(desk, "policy.toml", POLICY.encode("utf-16"))
    refused(desk, 2, "is not UTF-8 text", "save it as UTF-8")
    text(desk, "policy.toml", "columns = 5\n[privacy]\nk = 2\n")
    refused(desk, 2, "'columns' in the policy is not a section", args=("--quasi", "age"))
    (desk / "policy.toml").unlink()
    refused(desk, 2, "policy.toml': No such file", "--write-policy")


def test_a_folder_that_holds_other_things_is_not_replaced_even_by_force(desk: Path) -> None:
    text(desk / "out", "thesis.txt", "ten years of work")
    refused(desk, 2, "holds files that do not belong to a release", "name a new folder")


def test_a_file_in_the_place_of_the_folder(desk: Path) -> None:
    shutil.rmtree(desk / "out")
    text(desk, "out", "a file")
    refused(desk, 2, "is not a folder", "--out DIR")


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("out", ("already holds a release", "--force")),
        ("table.csv/out", ("not writable", "fix: ")),
        ("/proc/release", ("'/proc", "choose a folder that you may write to")),
    ],
)
def test_a_folder_that_cannot_be_written(desk: Path, out: str, words: tuple[str, ...]) -> None:
    before = content(desk)
    run("anonymize", desk / "table.csv", "--policy", desk / "policy.toml", "--out", desk / out).fails(2, *words)
    assert content(desk) == before


@pytest.mark.slow
def test_the_command_by_itself_exits_with_the_code_of_the_error(desk: Path) -> None:
    args = ("anonymize", desk / "nowhere.csv", "--quasi", "age", "-k", "3", "--out", desk / "new")
    words = [sys.executable, "-c", "from kinfold.cli import main; main()", *map(str, args)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error: no such file")
    assert not (desk / "new").exists()


def test_all_problems_of_all_hierarchies_are_told_at_once() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "z"], "b": ["p", "q", "r"], "c": ["1", "2", "3"], "d": ["u", "v", "u"]})
    columns = {
        "a": {"role": "quasi", "hierarchy": {"levels": [["x", "1"], ["x", "2"]]}},
        "b": {"role": "quasi", "hierarchy": {"levels": [["p", "1"]]}},
        "c": {"role": "quasi", "type": "nominal", "hierarchy": {"file": "nowhere.csv"}},
        "d": {"role": "confidential", "hierarchy": {"levels": [["u", "1"]]}},
    }
    with pytest.raises(kinfold.PolicyError) as refused:
        kinfold.anonymize(frame, {"privacy": {"k": 2}, "columns": columns})
    told = [problem.what for problem in refused.value.problems]
    assert len(told) == 4
    assert all(any(word in what for what in told) for word in ("'a'", "'b'", "nowhere.csv", "'d'"))
    del columns["a"], columns["c"]
    with pytest.raises(kinfold.DataError, match="'b'") as refused_data:  # the policy itself is fine
        kinfold.anonymize(frame[["b", "d"]], {"privacy": {"k": 2}, "columns": columns})
    assert len(refused_data.value.problems) == 2
