"""Control characters in names: drawn as escapes on the terminal, escaped in JSON, pictures in the report."""

import importlib
import io
import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text
from typer.testing import CliRunner

from command import Ran, run, text
from kinfold.cli import app as application
from kinfold.cli import output, process, terminal
from kinfold.cli.app import app
from kinfold.cli.terminal import Terminal, escape_json, escape_unprintable
from kinfold.policy.registry import METHOD_MODULES

EVIL = "a\x1b[2J\x07\x9b31m\u202e\u2066\u200b\u2028\u00adb"
ANYTHING = st.text(st.characters(exclude_categories=()))


def unseen(said: str) -> list[str]:
    """What must not reach a terminal raw; lines end, and nothing else."""
    return [c for c in said if c != "\n" and (unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp"))]


@given(ANYTHING)
def test_plain_text_is_one_line_that_can_be_seen_and_written(name: str) -> None:
    shown = escape_unprintable(name)
    assert shown.isprintable()
    assert shown.encode("utf-8") is not None
    assert (shown == name) == name.isprintable()


@given(ANYTHING)
def test_plain_json_reads_back_the_same(name: str) -> None:
    shown = escape_json(json.dumps({name: [name]}, ensure_ascii=False, indent=2))
    assert not unseen(shown)
    assert shown.encode("utf-8") is not None
    assert json.loads(shown) == {name: [name]}


@given(ANYTHING)
def test_nothing_unseen_goes_through_a_terminal_in_any_form(name: str) -> None:
    screen = io.StringIO()
    console = Terminal(file=screen, markup=False, highlight=False, emoji=False, width=500)
    console.print(name)
    console.print(Text(name, style="red"))
    assert screen.getvalue().count("\n") == 2
    table = Table()
    table.add_column(Text(name))
    table.add_row(name)
    console.print(table)
    with Progress(TextColumn("{task.description}", markup=False), BarColumn(), console=console) as bar:
        bar.add_task(name)
    assert not unseen(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue()))


def table(folder: Path, name: str = EVIL) -> Path:
    rows = "".join(f'{20 + i % 4},"x{EVIL}{i % 2}",{i % 3}\n' for i in range(12))
    return text(folder, f"t{EVIL}.csv", f'age,"{name}","new\nline"\n{rows}')


def commands(folder: Path) -> dict[str, tuple[object, ...]]:
    data, out = table(folder), folder / f"out{EVIL}"
    roles = ("--quasi", f"age,{EVIL}", "-k", 2, "--out", out)
    policy = text(
        folder, "p.toml", f'[privacy]\nk=2\n[columns.age]\nrole="quasi"\n[columns.{json.dumps(EVIL)}]\nrole="key"\n'
    )
    return {
        "profile": ("profile", data),
        "profile as JSON": ("profile", data, "--json"),
        "starter": ("profile", data, "--write-policy", folder / f"p{EVIL}.toml"),
        "release": ("anonymize", data, *roles, "--others", "release"),
        "release as JSON": ("anonymize", data, *roles, "--others", "release", "--json", "--force"),
        "a column nobody named": ("anonymize", data, *roles, "--force"),
        "no such column": ("anonymize", data, "--quasi", f"b{EVIL}", "-k", 2, "--out", out, "--force"),
        "offending values": (
            *("anonymize", data, *roles, "--force", "--others", "drop", "--show-values"),
            *("--set", f"columns.{EVIL}.order=[1]", "--set", f"columns.{EVIL}.type=ordinal"),
        ),
        "verify": ("verify", out),
        "measure": ("measure", data, data, "--policy", policy, "--set", "output.others=release"),
        "no such file": ("profile", folder / f"none{EVIL}.csv"),
        "no such policy": ("verify", data, "--policy", folder / f"none{EVIL}.toml"),
        "an option that is none": ("anonymize", data, f"--{EVIL}"),
        "too many arguments": ("profile", data, EVIL),
        "no number": ("anonymize", data, "-k", EVIL, "--out", out),
        "no such command": (EVIL,),
        "a key that is none": ("anonymize", data, *roles, "--force", "--set", f"privacy.{EVIL}=1"),
        "no such engine": ("anonymize", data, *roles, "--force", "--engine", EVIL),
        "no such method": ("anonymize", data, *roles, "--force", "--method", EVIL),
    }


@pytest.mark.slow
def test_no_command_lets_a_control_character_through(tmp_path: Path) -> None:
    for name, command in commands(tmp_path).items():
        ran: Ran = run(*command)
        assert ran.out + ran.err, name
        assert not unseen(ran.out + ran.err), name
        if "--json" in command:
            json.loads(ran.out)


def test_a_line_break_in_a_name_makes_no_line_of_its_own(tmp_path: Path) -> None:
    data = text(tmp_path, "t.csv", '"a\nerror: all is well",b\nu,v\n')
    ran = run("anonymize", data, "--quasi", "b", "-k", 2, "--out", tmp_path / "out").fails(2)
    assert not any(line.startswith("error: all") for line in ran.err.splitlines())
    assert r"'a\nerror: all is well'" in ran.err


@pytest.mark.parametrize("internal", [False, True])
def test_the_report_draws_control_characters_as_pictures(internal: bool, tmp_path: Path) -> None:
    run(*commands(tmp_path)["release"]).ok()
    page = tmp_path / f"out{EVIL}" / ("internal" if internal else "public") / "report.html"
    assert not unseen(page.read_text(encoding="utf-8"))


def test_the_bar_is_gone_before_results_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()  # both streams, as on a terminal
    shown = Terminal(file=screen, force_terminal=True, highlight=False, markup=False, width=100)
    for module in (terminal, output, application):
        for name in ("out", "err"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, shown)
    monkeypatch.setattr(terminal, "BAR_DELAY_SECONDS", 0.0)
    table = text(tmp_path, "t.csv", "age,town\n" + "".join(f"{20 + i * 7 % 31},t{i % 3}\n" for i in range(30)))
    run("anonymize", table, "--quasi", "age,town", "-k", "3", "--method", "mdav", "--out", tmp_path / "out").ok()
    said = screen.getvalue()
    before, _, results = said.partition("holds")
    assert "━" in before  # whichever of its stages it came to show
    assert "\x1b[2K" in before  # what a bar leaves is wiped away
    assert "keep private" in " ".join(results.split())  # a long path wraps the line
    assert not re.search(r"\x1b\[(2K|1A|\?25)|measuring|━", results)


def test_a_bar_that_has_ended_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "err", Terminal(file=screen, force_terminal=True, width=80))
    monkeypatch.setattr(terminal, "BAR_DELAY_SECONDS", 0.0)
    with terminal.ProgressBar() as bar:
        bar("plan", 1, 2)
        bar.end()
        said = screen.getvalue()
        bar("done", 2, 2)
    assert "grouping" in said
    assert screen.getvalue() == said


@pytest.mark.parametrize("user", [None, "pyspark", "pyreadstat"])
def test_pandas_is_loaded_only_for_what_needs_it(user, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in process.PANDAS_USERS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    if user is None:
        with pytest.raises(ModuleNotFoundError):
            process._ImportGuard().find_spec("pandas")
    else:
        monkeypatch.setitem(sys.modules, user, sys)
        process._ImportGuard().find_spec("pandas")


# Exceptions that nobody foresaw: code 1, the place in kinfold's code, what to do, and no value of the data


TABLE = "age,sex\n" + "".join(f"{age},{sex}\n" for age in range(71234, 71240) for sex in "fm")
ERRORS = {
    "value": ValueError("cannot convert 71234"),
    "recursion": RecursionError("71234"),
    "disk": OSError(28, "No space left on device", "/home/71234"),
    "key": KeyError(71234),
}


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], tuple[object, ...]]:
    """Make a method fail, and return a command that runs it."""
    (tmp_path / "t.csv").write_text(TABLE)

    def make(error: Exception) -> tuple[object, ...]:
        def broken(*_: Any, **__: Any) -> None:
            raise error

        monkeypatch.setattr(importlib.import_module(METHOD_MODULES["mdav"]), "run", broken)
        asked = ("--quasi", "age,sex", "-k", 3, "--method", "mdav", "--out", tmp_path / "out")
        return ("anonymize", tmp_path / "t.csv", *asked)

    return make


def shown(args: tuple[object, ...]) -> Ran:
    """Run a command as a person would, in whose environment nothing is set."""
    result = CliRunner().invoke(
        app, [str(arg) for arg in args], catch_exceptions=False, env={"KINFOLD_TRACEBACK": None}
    )
    return Ran(result.exit_code, result.stdout, result.stderr)


def test_want_of_memory_is_no_bug(failing: Callable[[Exception], tuple[object, ...]], tmp_path: Path) -> None:
    ran = shown(failing(MemoryError("71234 bytes")))
    assert ran.code == 4  # this table cannot be released on this machine
    assert "not enough memory" in ran.err
    assert "71234" not in ran.err.replace(str(tmp_path), "") + ran.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ERRORS)
def test_an_unexpected_exception_is_code_1_with_its_place_and_no_value(
    name: str, failing: Callable[[Exception], tuple[object, ...]], tmp_path: Path
) -> None:
    ran = shown(failing(ERRORS[name])).fails(1, "in kinfold/methods/classes.py, line ", "  fix: ")
    assert "71234" not in ran.err.replace(str(tmp_path), "") + ran.out
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out").exists()


def test_each_kind_says_what_it_is(failing: Callable[[Exception], tuple[object, ...]]) -> None:
    told = {name: shown(failing(error)).err for name, error in ERRORS.items()}
    assert "bug in kinfold: ValueError in kinfold/" in told["value"]
    assert "please report the line above" in told["value"]
    assert "nested too deeply" in told["recursion"]
    assert "No space left on device" in told["disk"]


def test_a_developer_sees_the_exception_itself(failing: Callable[[Exception], tuple[object, ...]]) -> None:
    with pytest.raises(KeyError):
        run(*failing(ERRORS["key"]))


def test_a_bug_before_a_command_begins_is_shown_as_one(tmp_path: Path) -> None:
    """Run as a process of its own: `main` holds what the commands do not."""
    script = tmp_path / "broken.py"
    script.write_text(
        "import sys\n"
        "from kinfold.cli import app as commands, main\n"
        "def broken():\n    raise LookupError('71234')\n"
        "commands.app.command(name='break')(broken)\n"
        "sys.argv = ['kinfold', 'break']\n"
        "main()\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 1
    assert "bug in kinfold: LookupError" in ran.stderr
    assert "71234" not in ran.stderr
    assert "Traceback" not in ran.stderr
