"""Exceptions that nobody foresaw: code 1, the place in kinfold's code, what to do, and no value of the data."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from command import Ran, run
from kinfold.cli.app import app
from kinfold.request.methods import module_of

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

        monkeypatch.setattr(importlib.import_module(module_of("mdav")), "run", broken)
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
    ran = shown(failing(ERRORS[name]))
    assert ran.code == 1
    assert "in kinfold/methods/planning/running.py, line " in ran.err
    assert "  fix: " in ran.err
    assert "71234" not in ran.err.replace(str(tmp_path), "") + ran.out
    assert "Traceback" not in ran.err
    assert not (tmp_path / "out").exists()


def test_each_kind_says_what_it_is(failing: Callable[[Exception], tuple[object, ...]]) -> None:
    told = {name: shown(failing(error)).err for name, error in ERRORS.items()}
    assert "kinfold met a bug: ValueError in kinfold/" in told["value"]
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
    assert "kinfold met a bug: LookupError" in ran.stderr
    assert "71234" not in ran.stderr
    assert "Traceback" not in ran.stderr
