"""Bad input gets a clear error, and nothing is lost: one test for each thing that can be wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
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


def change(desk: Path, old: str, new: str, name: str = "table.csv") -> None:
    path = desk / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))


def test_the_good_table_passes(desk: Path) -> None:
    assert run("anonymize", desk / "table.csv", "--policy", desk / "policy.toml", "--out", desk / "new").code == 0


# Code 3: the data cannot be read as declared


def test_no_such_file(desk: Path) -> None:
    refused(desk, 3, "no such file", "nowhere.csv", "check the path", table="nowhere.csv")


def test_a_folder_instead_of_a_file(desk: Path) -> None:
    (desk / "table.parts").mkdir()
    refused(desk, 3, "is a folder", "name a file", table="table.parts")


def test_an_ending_that_is_not_known(desk: Path) -> None:
    text(desk, "table.dat", b"PK")
    refused(desk, 3, "table.dat", "ending", ".csv", ".xlsx", table="table.dat")


@pytest.mark.parametrize("nothing", [b"", b"\n\n", b"\xef\xbb\xbf", b"  \r\n\t\n"], ids=repr)
def test_an_empty_file(desk: Path, nothing: bytes) -> None:
    text(desk, "table.csv", nothing)
    refused(desk, 3, "'table.csv' is empty", "a header and at least one row")


@pytest.mark.parametrize("end", ["", "\n", "\r\n\r\n"], ids=repr)
def test_a_header_and_nothing_else(desk: Path, end: str) -> None:
    text(desk, "table.csv", "name,age,zip,level,disease" + end)
    refused(desk, 3, "'table.csv' has no rows", "at least one row")


@pytest.mark.parametrize("line", ["SECRET,31,02138,low", "SECRET,31,02138,low,flu,more"])
def test_ragged_rows(desk: Path, line: str) -> None:
    change(desk, "Zebulon,33,02139,mid,cold", line)
    refused(desk, 3, "1 line has other fields than the header", "(line 4)", "mend those lines")


def test_every_ragged_row_is_counted(desk: Path) -> None:
    text(desk, "table.csv", GOOD + "SECRET\n" * 9)
    refused(desk, 3, "9 lines have other fields", "(line 8, 9, 10, 11, 12, ...)")


def test_a_quote_that_is_never_closed(desk: Path) -> None:
    change(desk, "Zebulon", '"SECRET')
    refused(desk, 3, "broken quote", "mend those lines")


def test_two_columns_of_one_name(desk: Path) -> None:
    change(desk, "name,age,zip", "name,age,age")
    refused(desk, 3, "columns 2 and 3 have the same name", "rename all but one")


def test_two_columns_whose_names_differ_in_case_only(desk: Path) -> None:
    change(desk, "name,age,zip", "name,age,Age")
    refused(desk, 3, "columns 2 and 3 have the same name", "rename all but one")


def test_a_column_without_a_name(desk: Path) -> None:
    change(desk, "name,age,zip", "name,,zip")
    refused(desk, 3, "column 2 has no name", "name every column")


@pytest.mark.parametrize(
    "data",
    [GOOD.encode("utf-16")[2:], GOOD.encode() + b"\x81\xfe\x8d", bytes(range(256)) * 4],
    ids=["utf-16", "?", "!"],
)
def test_an_encoding_that_cannot_be_read(desk: Path, data: bytes) -> None:
    text(desk, "table.csv", data)
    refused(desk, 3, "'table.csv' is not text in UTF-8", "save it as UTF-8")


def test_numbers_and_text_in_a_column_declared_continuous(desk: Path) -> None:
    change(desk, ",33,", ",SECRET,")
    refused(desk, 3, "column 'age' is declared continuous, but 1 of 6 values are not numbers", "declare it nominal")


def test_text_in_a_confidential_column_declared_continuous(desk: Path) -> None:
    change(desk, 'role = "confidential"', 'role = "confidential"\ntype = "continuous"', "policy.toml")
    refused(desk, 3, "column 'disease' is declared continuous, but 6 of 6", "declare it nominal")


def test_text_in_a_column_declared_date(desk: Path) -> None:
    change(desk, 'type = "continuous"', 'type = "date"', "policy.toml")
    refused(desk, 3, "column 'age' is declared date", "2024-12-31")


@pytest.mark.parametrize("value", ["inf", "-Infinity", "NaN", "+inf"])
def test_values_that_are_infinite_or_not_a_number(desk: Path, value: str) -> None:
    change(desk, ",33,", f",{value},")
    refused(desk, 3, "column 'age' holds 1 value that is infinite or not a number", "correct or empty them")


def test_numbers_too_large_to_square(desk: Path) -> None:
    change(desk, ",33,", ",1e200,")
    refused(desk, 3, "column 'age' holds values beyond", "larger units")


def test_missing_values_in_a_continuous_column(desk: Path) -> None:
    change(desk, ",33,", ",,")
    said = refused(desk, 3, "column 'age' is continuous and 1 of its values are missing")
    assert "choose columns.age.missing: separate, mean or drop" in said


def test_a_continuous_column_without_any_value(desk: Path) -> None:
    for age in ("31", "32", "33", "61", "62", "63"):
        change(desk, f",{age},", ",,")
    refused(desk, 3, "column 'age' has no values at all", "drop it")


def test_a_category_outside_the_order(desk: Path) -> None:
    change(desk, "33,02139,mid", "33,02139,SECRET")
    refused(desk, 3, "column 'level': 1 category is not in its order", "add them to columns.level.order")


def test_a_hierarchy_that_misses_categories(desk: Path) -> None:
    change(
        desk, "[columns.zip]", '[columns.zip]\nhierarchy = { levels = [["02138", "a"], ["02141", "b"]] }', "policy.toml"
    )
    refused(desk, 3, "the hierarchy of 'zip' misses 1 of its 3 categories", "add them to the hierarchy")


def test_a_hierarchy_file_that_is_not_there(desk: Path) -> None:
    change(desk, "[columns.zip]", '[columns.zip]\nhierarchy = { file = "zip.csv" }', "policy.toml")
    refused(desk, 3, "zip.csv", "No such file", "check the path")


def test_offending_categories_are_shown_when_asked_for(desk: Path) -> None:
    change(desk, "33,02139,mid", "33,02139,Sesame")
    args = ("--policy", desk / "policy.toml", "--out", desk / "new", "--show-values")
    assert "(Sesame)" in run("anonymize", desk / "table.csv", *args).err


def test_problems_of_all_columns_are_told_at_once(desk: Path) -> None:
    change(desk, "33,02139,mid", "33,02139,SECRET")
    change(
        desk, "[columns.zip]", '[columns.zip]\nhierarchy = { levels = [["02138", "a"], ["02141", "b"]] }', "policy.toml"
    )
    refused(desk, 3, "column 'level'", "the hierarchy of 'zip'")


# Code 4: the table cannot meet the request


def test_fewer_than_k_records(desk: Path) -> None:
    refused(desk, 4, "k is 7, but there are only 6 records", "lower k", args=("-k", 7))


def test_fewer_than_k_people(desk: Path) -> None:
    change(desk, "k = 3", 'k = 3\nunit = "name"', "policy.toml")
    for name in ("Yaroslava", "Zebulon", "Quirinus", "Philomena"):
        change(desk, name, "Xanthippe")
    refused(desk, 4, "k is 3, but 'name' names only 2 people", "lower k")


def test_fewer_than_k_records_after_some_were_left_out(desk: Path) -> None:
    change(desk, ",33,", ",,")
    change(desk, 'type = "continuous"', 'type = "continuous"\nmissing = "drop"', "policy.toml")
    refused(desk, 4, "k is 6, but there are only 5 records", "lower k", args=("-k", 6))


def test_a_pattern_of_missing_values_that_fewer_than_k_share(desk: Path) -> None:
    change(desk, ",33,", ",,")
    separate = 'type = "continuous"\nmissing = "separate"\nmissing_rare = "refuse"'
    change(desk, 'type = "continuous"', separate, "policy.toml")
    refused(desk, 4, "1 pattern of missing values is shared by fewer than k = 3 records (1 in all)", '"drop"')


# Code 2: the request is wrong


@pytest.mark.parametrize("k", ["1", "0", "-3", "2.5", '"5"', "true", "[5]", "nan"])
def test_k_below_two_or_not_a_whole_number(desk: Path, k: str) -> None:
    change(desk, "k = 3", f"k = {k}", "policy.toml")
    refused(desk, 2, "'privacy.k'", "k is a whole number from 2 up")


def test_k_that_is_missing(desk: Path) -> None:
    change(desk, "k = 3", "", "policy.toml")
    refused(desk, 2, "'privacy.k' is missing", "for example k = 5")


@pytest.mark.parametrize("k", ["2.5", "five"])
def test_k_on_the_command_line_that_is_not_a_whole_number(desk: Path, k: str) -> None:
    ran = run("anonymize", desk / "table.csv", "--quasi", "age", "-k", k, "--out", desk / "new")
    assert ran.code == 2
    assert "-k" in ran.err


def test_a_column_in_two_roles(desk: Path) -> None:
    refused(
        desk,
        2,
        "column 'disease' is given as confidential and as quasi-identifier",
        "one role",
        args=("--quasi", "disease"),
    )


def test_a_column_in_two_lists(desk: Path) -> None:
    lists = ("--quasi", "age,zip", "--confidential", "zip", "-k", "2")
    ran = run("anonymize", desk / "table.csv", *lists, "--out", desk / "new")
    assert ran.code == 2
    assert "column 'zip' is given as quasi-identifier and as confidential" in ran.err
    assert "give each column one role" in ran.err


def test_no_quasi_identifier(desk: Path) -> None:
    lists = ("--confidential", "name,age,zip,level,disease", "-k", "2")
    ran = run("anonymize", desk / "table.csv", *lists, "--out", desk / "new")
    assert ran.code == 2
    assert "no column has the role 'quasi-identifier'" in ran.err
    assert "--quasi a,b" in ran.err


def test_a_column_that_the_policy_does_not_name(desk: Path) -> None:
    change(desk, "name,age", "name,ages", "table.csv")
    change(desk, "[columns.age]", "[columns.ages]", "policy.toml")
    change(desk, "[columns.level]", "[columns.levels]", "policy.toml")
    said = refused(desk, 2, "column 'level' is in the table but not in the policy, did you mean 'levels'?")
    assert "no column 'levels', did you mean 'level'?" in said
    assert "give [columns.level] a role, or say --others release or --others drop" in said


def test_a_column_that_the_table_does_not_have(desk: Path) -> None:
    change(desk, "name,age,zip", "name,age,zpi")
    refused(desk, 2, "no column 'zip', did you mean 'zpi'?", "edit [columns] in the policy")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("k = 3", "k = 3\nkk = 3", "unknown key 'privacy.kk', did you mean 'k'?"),
        ("[privacy]", "[output]\nrounded = true\n[privacy]", "unknown key 'output.rounded', did you mean 'round'?"),
        ('type = "ordinal"', 'typ = "ordinal"', "unknown key 'columns.level.typ', did you mean 'type'?"),
        ("[privacy]", "[privasy]\n[privacy]", "unknown key 'privasy', did you mean 'privacy'?"),
    ],
)
def test_an_unknown_key(desk: Path, old: str, new: str, words: str) -> None:
    change(desk, old, new, "policy.toml")
    refused(desk, 2, words, "known keys there: ")


def test_an_unknown_method(desk: Path) -> None:
    refused(desk, 2, "no method 'mdva', did you mean 'mdav'?", "known are ", args=("--method", "mdva"))


@pytest.mark.parametrize("line", ["k = ", "[privacy", "k = 3\nk = 4", 'k = 3 "'])
def test_toml_that_does_not_parse(desk: Path, line: str) -> None:
    change(desk, "k = 3", line, "policy.toml")
    refused(desk, 2, "policy.toml' is not TOML", "line", "mend that line")


def test_a_policy_that_is_not_utf_8(desk: Path) -> None:
    text(desk, "policy.toml", POLICY.encode("utf-16"))
    refused(desk, 2, "is not UTF-8 text", "save it as UTF-8")


def test_a_policy_that_is_not_there(desk: Path) -> None:
    (desk / "policy.toml").unlink()
    refused(desk, 2, "policy.toml': No such file", "--write-policy")


@pytest.mark.parametrize("key", ["t = 0.2", "l = 2", "p = 2", "alpha = 0.5"])
def test_a_promise_about_confidential_columns_where_there_is_none(desk: Path, key: str) -> None:
    change(desk, "k = 3", f"k = 3\n{key}", "policy.toml")
    change(desk, 'role = "confidential"', 'role = "other"', "policy.toml")
    refused(desk, 2, f"'privacy.{key.split()[0]}' is asked for, but no column is confidential", "name one")


def test_a_release_that_is_there_already(desk: Path) -> None:
    before = content(desk)
    ran = run("anonymize", desk / "table.csv", "--policy", desk / "policy.toml", "--out", desk / "out")
    assert ran.code == 2
    assert "holds a release already" in ran.err
    assert "--force" in ran.err
    assert content(desk) == before


def test_a_folder_that_holds_other_things_is_not_replaced_even_by_force(desk: Path) -> None:
    text(desk / "out", "thesis.txt", "ten years of work")
    refused(desk, 2, "holds other things than a release", "name a new folder")


def test_a_file_in_the_place_of_the_folder(desk: Path) -> None:
    shutil.rmtree(desk / "out")
    text(desk, "out", "a file")
    refused(desk, 2, "is not a folder", "--out DIR")


def test_a_folder_inside_a_file(desk: Path) -> None:
    ran = run("anonymize", desk / "table.csv", "--policy", desk / "policy.toml", "--out", desk / "table.csv" / "out")
    assert ran.code == 2
    assert "not writable" in ran.err
    assert "fix: " in ran.err


def test_a_folder_that_may_not_be_written(desk: Path) -> None:
    ran = run("anonymize", desk / "table.csv", "--policy", desk / "policy.toml", "--out", "/proc/release")
    assert ran.code == 2
    assert "'/proc" in ran.err
    assert "choose a folder that you may write to" in ran.err


def test_options_that_are_unknown_are_usage_errors(desk: Path) -> None:
    assert run("anonymize", desk / "table.csv", "--nosuch").code == 2
    assert run("nosuch").code == 2


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("k", "has no value"),
        ("privacy.k.x=1", "'k' in the policy is not a section"),
        ("output.format=xls", "'output.format'"),
    ],
)
def test_a_setting_that_makes_no_sense(desk: Path, setting: str, words: str) -> None:
    refused(desk, 2, words, args=("--set", setting))


def test_roles_over_a_policy_that_is_no_set_of_columns(desk: Path) -> None:
    text(desk, "policy.toml", "columns = 5\n[privacy]\nk = 2\n")
    refused(desk, 2, "'columns' in the policy is not a section", args=("--quasi", "age"))


# The disk


LIMITED = """
import resource
from kinfold.release import folder
publish = folder.publish

def limited(*args, **options):
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
    publish(*args, **options)

folder.publish = limited
"""


def _command(*args: object, before: str = "") -> subprocess.CompletedProcess[str]:
    code = f"{before}\nfrom kinfold.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.run(words, capture_output=True, text=True, env=environment, check=False)


def _many_rows(desk: Path) -> None:
    rows = [
        f"p{i},{20 + i % 60},{10000 + i % 7},low,flu" for i in range(2900)
    ]  # few enough to need no kernel: its cache could not be written either
    text(desk, "table.csv", "name,age,zip,level,disease\n" + "\n".join(rows) + "\n")


def test_a_file_that_may_not_grow_to_its_size_leaves_the_old_release(desk: Path) -> None:
    _many_rows(desk)
    before = content(desk)
    args = (
        "anonymize",
        desk / "table.csv",
        "--policy",
        desk / "policy.toml",
        "--out",
        desk / "out",
        "--force",
        "-k",
        500,
    )
    ran = _command(*args, before=LIMITED)
    assert ran.returncode == 2, ran.stderr
    assert "free space" in ran.stderr or "no space left" in ran.stderr
    assert "fix: " in ran.stderr
    assert content(desk) == before


def test_a_full_disk_leaves_the_old_release(desk: Path) -> None:
    disk = desk / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    if (
        not mount
        or subprocess.run(
            [mount, "-t", "tmpfs", "-o", "size=96k", "tmpfs", disk], check=False, capture_output=True
        ).returncode
    ):
        pytest.skip("this system does not let the tests mount a small disk")
    try:
        shutil.copytree(desk / "out", disk / "out", ignore=shutil.ignore_patterns("report.html"))
        _many_rows(desk)
        before = content(disk)
        args = ("--policy", desk / "policy.toml", "--out", disk / "out", "--force", "-k", 500)
        ran = run("anonymize", desk / "table.csv", *args)
        assert ran.code == 2, ran.err
        assert "space" in ran.err
        assert "fix: " in ran.err
        assert content(disk) == before
    finally:
        subprocess.run(["umount", disk], check=True)


def test_the_command_by_itself_exits_with_the_code_of_the_error(desk: Path) -> None:
    ran = _command("anonymize", desk / "nowhere.csv", "--quasi", "age", "-k", "3", "--out", desk / "new")
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
