"""Every example of README, docs and --help runs, on the demo table, and prints what it shows.

A page is gone through from top to bottom in one folder that holds the demo (`kinfold demo`): patients.csv, policy.toml
and release, but those that the page itself makes; and in one Python, which has no name but those
that the page itself has made.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import kinfold
from arx_projects import project, study
from command import run
from examples import KINDS, PAGES, ROOT, Block, Command, agree, blocks, commands, helped, without_seconds
from kinfold.demo import show
from kinfold.demo.table import patients
from kinfold.request.policy import Policy
from other_tools import MU_ANT, REPORT, SCRIPT
from postgres import PASSWORD, Server

pytestmark = [pytest.mark.compiled, pytest.mark.slow]

RUNNABLE = [page for page in PAGES if any(block.kind in KINDS for block in blocks(page))]
SLOW = ("README.md", "comparing.md", "compare")  # more than a few seconds
DEMO_POLICY = Path(kinfold.__file__).parent / "demo" / "policy.toml"
POLICY_FILE = re.compile(r"# ([\w-]+\.toml)\n")
NOT_RUN = {  # by page, how many blocks the tests cannot run; each says why above it, and the site shows that
    "README.md": 1,  # the tests themselves
    "docs/guides/hundred-million-rows.md": 1,
    "docs/guides/pipeline.md": 1,  # for another machine
    "docs/methods/blocks.md": 1,  # a run that somebody stops
    "docs/spark.md": 4,  # Java, a cluster, a session: tests/engines/test_spark.py has these
    "docs/studio.md": 1,
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo, and what else examples speak of."""
    folder = tmp_path_factory.mktemp("demo")
    show(folder)
    shutil.copy(folder / "patients.csv", folder / "city.csv")
    shutil.copy(folder / "policy.toml", folder / "our-policy.toml")
    shutil.copy(folder / "release" / "public" / "release.csv", folder / "released.csv")
    shutil.copy(Path(kinfold.__file__).with_name("checker.py"), folder / "checker.py")
    project(folder, study())
    for name, text in (("properties.xml", MU_ANT), ("report.html", REPORT), ("protect.R", SCRIPT)):
        (folder / name).write_text(text, "utf-8")
    _clinic_file(folder / "clinic.db")
    return folder


def _clinic_file(path: Path) -> None:
    """Write the demo table into an SQLite file."""
    table = patients()
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(f"CREATE TABLE patients ({', '.join(table.column_names)})")
        rows = [
            [None if v is None else str(v) if isinstance(v, date) else v for v in row.values()]
            for row in table.to_pylist()
        ]
        connection.executemany(f"INSERT INTO patients VALUES ({', '.join('?' * table.num_columns)})", rows)
    connection.close()


def clinic(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let postgresql://ada@localhost/clinic be a database of the tests' server that holds the demo table."""
    server.run("DROP DATABASE IF EXISTS clinic")
    server.run("CREATE DATABASE clinic")
    server.put("patients", patients(), name="clinic")
    server.run("ALTER TABLE patients ALTER charge TYPE numeric(10,2)", name="clinic")
    monkeypatch.setenv("PGPORT", str(server.port))
    monkeypatch.setenv("PGPASSWORD", unquote(PASSWORD))


def place(folder: Path, demo: Path, asked: list[Command]) -> None:
    """Fill a folder with the demo, but what the commands make themselves."""
    made = {word for each in asked for option, word in zip(each.words, each.words[1:], strict=False) if _makes(option)}
    shutil.copytree(demo, folder, ignore=lambda _, names: [name for name in names if name in made], dirs_exist_ok=True)


def _makes(option: str) -> bool:
    return option in ("--out", "--write-policy")


def ran(command: Command, folder: Path) -> tuple[int, str, str]:
    """Run a command: kinfold in this process, `make demo` as the Makefile has it, Python as a process."""
    words = ["kinfold", "demo"] if command.words == ["make", "demo"] else command.words
    if words[:2] == ["kinfold", "studio"]:
        return begun(words, folder)
    if words[0] == "kinfold":
        done = run(*words[1:])
        return done.code, done.out, done.err
    assert words[0] == "python", words
    other = subprocess.run(
        [sys.executable, *words[1:]], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    return other.returncode, other.stdout, other.stderr


def begun(words: list[str], folder: Path) -> tuple[int, str, str]:
    """Start what ends only when somebody ends it, and end it once it says that it is there."""
    code = "from kinfold.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": "1"}
    told = [sys.executable, "-c", code, *words[1:], "--no-browser"]
    with subprocess.Popen(told, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        ended = process.wait(30)
    return 0 if ended == 130 and "http://127.0.0.1:" in said else 1, said, ""


def check(command: Command, folder: Path) -> None:
    """Run a command, and hold what it does against what is written of it."""
    code, said, errors = ran(command, folder)
    assert code == command.code, (command.words, said, errors)
    if command.shown:
        told, shown = without_seconds((said or errors).splitlines()), without_seconds(command.shown)
        assert agree(told, shown), (told, shown)


@pytest.mark.parametrize(
    ("name", "command"),
    [pytest.param(*each, marks=pytest.mark.slow if each[0] in SLOW else ()) for each in helped()],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_examples_of_the_help_run(
    name: str, command: Command, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(tmp_path, demo, [command])
    monkeypatch.chdir(tmp_path)
    if name == "warmup":  # compiles every kernel there is, which the other tests do as they need them
        pytest.skip("takes minutes where nothing is compiled")
    check(command, tmp_path)


def test_every_command_has_an_example() -> None:
    assert {name for name, _ in helped()} >= {"demo", "profile", "anonymize", "verify", "measure", "compare", "lattice"}


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.slow) if page.name in SLOW else page for page in RUNNABLE],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_examples_of_a_page_run(
    page: Path,
    demo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    found = [block for block in blocks(page) if block.kind in KINDS and block.why is None]
    if any("postgresql://ada@localhost" in block.text for block in found):
        clinic(request.getfixturevalue("server"), monkeypatch)
    place(tmp_path, demo, [each for block in found if block.kind in ("console", "sh") for each in commands(block.text)])
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in found:
        RUNNERS[block.kind](block, tmp_path, names)
    capsys.readouterr()


def run_console(block: Block, folder: Path, _: dict[str, Any]) -> None:
    for each in commands(block.text):
        check(each, folder)


def run_python(block: Block, folder: Path, names: dict[str, Any]) -> None:
    if ">>>" in block.text:
        parsed = doctest.DocTestParser().get_doctest(block.text, names, "example", None, block.line)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert runner.run(parsed, clear_globs=False).failed == 0
        names.update(parsed.globs)  # for the blocks below
        return
    code = compile(block.text, f"line {block.line}", "exec")
    exec(code, names)


def run_policy(block: Block, folder: Path, _: dict[str, Any]) -> None:
    """Run a policy on the demo table; a part of one goes on top of the demo's, a column elsewhere is only read.

    One whose first line names a file (`# hospital.toml`) is written there, for the commands of the page to run.
    """
    asked = tomllib.loads(block.text)
    if named := POLICY_FILE.match(block.text):
        (folder / named[1]).write_text(block.text, "utf-8")
        Policy.parse(asked)
        return
    if "privacy" not in asked:
        asked = _on_top(tomllib.loads(DEMO_POLICY.read_text("utf-8")), asked)
    policy = Policy.parse(asked)
    if {*policy.columns} <= {
        *patients().column_names
    } and "source" not in asked:  # which is of a table written otherwise
        output = policy.output.model_copy(update={"others": "drop"})
        kinfold.anonymize(folder / "patients.csv", policy.model_copy(update={"output": output}))


def _on_top(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = dict(below)
    for key, value in above.items():
        inside = isinstance(value, dict) and isinstance(both.get(key), dict)
        both[key] = _on_top(both[key], value) if inside else value
    return both


RUNNERS: dict[str, Callable[[Block, Path, dict[str, Any]], None]] = {
    "console": run_console,
    "sh": run_console,
    "python": run_python,
    "toml": run_policy,
}


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    every = [(str(page.relative_to(ROOT)), block) for page in PAGES for block in blocks(page)]
    assert Counter(name for name, block in every if block.why is not None) == NOT_RUN
    fenced = [
        (name, block.line)
        for name, block in every
        if block.kind not in KINDS and block.why is None and "kinfold " in block.text
    ]
    assert fenced == []  # a command in a fence without a kind would not be run


def test_what_is_left_out_of_an_output_may_be_anything_and_nothing_else_may() -> None:
    told = ["a", "b", "c", "d"]
    assert all(
        agree(told, shown) for shown in (told, ["a", "..."], ["...", "c", "..."], ["...", "d"], ["a", "...", "d"])
    )
    assert not any(
        agree(told, shown) for shown in (["a"], ["b", "..."], ["...", "c"], ["...", "c", "b", "..."], [*told, "e"])
    )


def test_a_wrong_example_is_noticed(tmp_path: Path) -> None:
    """The runner fails where a code, a line or a key is not what the page says."""
    with pytest.raises(AssertionError):
        check(Command(["kinfold", "verify", str(tmp_path / "nowhere")]), tmp_path)
    with pytest.raises(AssertionError):
        check(Command(["kinfold", "--version"], 0, ["kinfold 0.0.0"]), tmp_path)
    with pytest.raises(AssertionError):
        run_python(Block("python", ">>> 1 + 1\n3\n", 1), tmp_path, {})
    with pytest.raises(kinfold.PolicyError):
        run_policy(Block("toml", "[privacy]\nk = 5\nq = 2\n", 1), tmp_path, {})
