"""Every example of README, docs and --help runs, on the demo table, and prints what it shows.

A page is gone through from top to bottom in one empty folder and in one Python: what an example reads, the page has
made above it. Only what belongs to the reader is given (`YOURS`): a project or a script of another tool, a database
server. `kinfold demo --out demo`, which most pages begin with, is run once and copied after that.
"""

import csv
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
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import kinfold
from arx_projects import project, study
from command import run
from examples import KINDS, PAGES, ROOT, Block, Command, agree, blocks, commands, helped, without_seconds
from kinfold.demo import make_patients
from kinfold.policy.model import Policy
from other_tools import MU_ANT, REPORT, SCRIPT
from postgres import PASSWORD, Server

pytestmark = [pytest.mark.compiled, pytest.mark.slow]

RUNNABLE = [page for page in PAGES if any(block.kind in KINDS for block in blocks(page))]
DEMO = ["kinfold", "demo", "--out", "demo"]
YOURS = {  # by page, the files that a reader comes with: each says so
    "docs/arx.md": ("study.deid",),
    "docs/guides/from-arx.md": ("study.deid",),
    "docs/moving.md": ("properties.xml", "report.html", "protect.R"),
}
ADULT = Path(os.environ.get("KINFOLD_DATA", ROOT.parent / "shared" / "data")) / "adult"
DEMO_POLICY = Path(kinfold.__file__).parent / "demo" / "policy.toml"
POLICY_FILE = re.compile(r"# ([\w-]+\.toml)\n")
NOT_RUN = {  # by page, how many blocks the tests cannot run; each says why above it, and the site shows that
    "README.md": 1,  # the tests themselves
    "docs/guides/hundred-million-rows.md": 1,
    "docs/guides/pipeline.md": 1,  # for another machine
    "docs/methods/blocks.md": 1,  # a run that somebody stops
    "docs/spark.md": 5,  # Java, a cluster, a session: tests/engines/test_spark.py has these
    "docs/release.md": 1,
    "docs/studio.md": 1,
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let comparisons start no processes, which takes seconds; tests/interfaces/test_compare.py has them."""
    monkeypatch.setattr("kinfold.comparison.grid.MAX_WORKERS", 1)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `kinfold demo` leaves."""
    folder = tmp_path_factory.mktemp("once") / "demo"
    ran_once = run("demo", "--out", folder).ok()
    (folder.parent / "said").write_text(ran_once.out, "utf-8")
    return folder


@pytest.fixture(scope="module")
def yours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of other tools, which a reader brings along."""
    folder = tmp_path_factory.mktemp("yours")
    project(folder, study())
    for name, text in (("properties.xml", MU_ANT), ("report.html", REPORT), ("protect.R", SCRIPT)):
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def table(demo: Path, yours: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the help speaks of: tables, a policy and a release of the reader's own."""
    folder = tmp_path_factory.mktemp("help")
    shutil.copytree(demo, folder, dirs_exist_ok=True)
    shutil.copytree(yours, folder, dirs_exist_ok=True)
    shutil.copy(folder / "patients.csv", folder / "city.csv")
    shutil.copy(folder / "release" / "public" / "release.csv", folder / "released.csv")
    with (folder / "patients.csv").open(newline="") as file, sqlite3.connect(folder / "clinic.db") as connection:
        names, *rows = csv.reader(file)
        connection.execute(f"CREATE TABLE patients ({', '.join(names)})")
        connection.executemany(f"INSERT INTO patients VALUES ({', '.join('?' * len(names))})", rows)
    connection.close()
    return folder


def clinic(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let postgresql://ada@localhost/clinic be a database of the tests' server that holds the demo table."""
    server.run("DROP DATABASE IF EXISTS clinic")
    server.run("CREATE DATABASE clinic")
    server.put("patients", make_patients(), name="clinic")
    server.run("ALTER TABLE patients ALTER charge TYPE numeric(10,2)", name="clinic")
    monkeypatch.setenv("PGPORT", str(server.port))
    monkeypatch.setenv("PGPASSWORD", unquote(PASSWORD))


def made(command: Command) -> set[str]:
    """Return what a command makes itself, by its options."""
    pairs = zip(command.words, command.words[1:], strict=False)
    return {word for option, word in pairs if option in ("--out", "--write-policy")}


def ran(command: Command, folder: Path, demo: Path | None = None) -> tuple[int, str, str]:
    """Run a command: kinfold in this process, `make demo` as the Makefile has it, Python as a process."""
    words = DEMO if command.words == ["make", "demo"] else command.words
    if demo is not None and words == DEMO:
        shutil.copytree(demo, folder / "demo")
        return 0, (demo.parent / "said").read_text("utf-8"), ""
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


def check(command: Command, folder: Path, demo: Path | None = None) -> None:
    """Run a command, and hold what it does against what is written of it."""
    code, said, errors = ran(command, folder, demo)
    assert code == command.code, (command.words, said, errors)
    if command.shown:
        told, shown = without_seconds((said or errors).splitlines()), without_seconds(command.shown)
        assert agree(told, shown), (told, shown)


@pytest.mark.parametrize(
    ("name", "command"),
    list(helped()),
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_examples_of_the_help_run(
    name: str, command: Command, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = made(command)
    shutil.copytree(table, tmp_path, ignore=lambda _, names: own & {*names}, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if name == "warmup":  # compiles every kernel there is, which the other tests do as they need them
        pytest.skip("takes minutes where nothing is compiled")
    check(command, tmp_path)


def test_the_quick_start_can_follow_the_readme_in_one_folder() -> None:
    pages = (ROOT / "README.md", ROOT / "docs" / "quickstart.md")
    consoles = [[each for each in blocks(page) if each.kind == "console"] for page in pages]
    first, second = ({name for b in each for c in commands(b.text) for name in made(c)} for each in consoles)
    assert first
    assert not first & second


def test_every_command_has_an_example() -> None:
    assert {name for name, _ in helped()} >= {"demo", "profile", "anonymize", "verify", "measure", "compare", "lattice"}


@pytest.mark.parametrize(
    "page",
    RUNNABLE,
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_the_examples_of_a_page_run(
    page: Path,
    demo: Path,
    yours: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    found = [block for block in blocks(page) if block.kind in KINDS and block.why is None]
    if any("postgresql://ada@localhost" in block.text for block in found):
        clinic(request.getfixturevalue("server"), monkeypatch)
    for name in YOURS.get(str(page.relative_to(ROOT)), ()):
        shutil.copy(yours / name, tmp_path)
    if page.name == "case-study.md":
        if not ADULT.is_dir():
            pytest.skip("the Adult file is not here: KINFOLD_DATA names the folder of the benchmark files")
        shutil.copytree(ADULT, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in found:
        RUNNERS[block.kind](block, demo, names)
    capsys.readouterr()


def run_console(block: Block, demo: Path, _: dict[str, Any]) -> None:
    for each in commands(block.text):
        check(each, Path(), demo)


def run_python(block: Block, _: Path, names: dict[str, Any]) -> None:
    if ">>>" in block.text:
        parsed = doctest.DocTestParser().get_doctest(block.text, names, "example", None, block.line)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert runner.run(parsed, clear_globs=False).failed == 0
        names.update(parsed.globs)  # for the blocks below
        return
    code = compile(block.text, f"line {block.line}", "exec")
    exec(code, names)


def run_policy(block: Block, demo: Path, _: dict[str, Any]) -> None:
    """Run a policy on the demo table; a part of one goes on top of the demo's, a column elsewhere is only read.

    One whose first line names a file (`# hospital.toml`) is saved there, as a reader does, for the page's commands.
    """
    asked = tomllib.loads(block.text)
    if named := POLICY_FILE.match(block.text):
        Path(named[1]).write_text(block.text, "utf-8")
        Policy.parse(asked)
        return
    if "privacy" not in asked:
        asked = _on_top(tomllib.loads(DEMO_POLICY.read_text("utf-8")), asked)
    policy = Policy.parse(asked)
    if {*policy.columns} <= {
        *make_patients().column_names
    } and "source" not in asked:  # which is of a table written otherwise
        output = policy.output.model_copy(update={"others": "drop"})
        kinfold.anonymize(demo / "patients.csv", policy.model_copy(update={"output": output}))


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


def test_every_page_runs_in_an_empty_folder_but_for_files_that_it_calls_the_readers_own() -> None:
    for page, names in YOURS.items():
        text = " ".join((ROOT / page).read_text("utf-8").split())
        assert all(re.search(rf"`{name}`[^:]*your own", text) for name in names), page


def test_a_newcomer_who_repeats_a_step_is_told_that_it_was_done_and_how_to_do_it_again(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same in the folder of the demo, which holds a policy and a release already."""
    shutil.copytree(demo, tmp_path / "demo")
    monkeypatch.chdir(tmp_path / "demo")
    for asked in (
        ("profile", "patients.csv", "--write-policy", "policy.toml"),
        ("anonymize", "patients.csv", "--policy", "policy.toml", "--out", "release"),
    ):
        run(*asked).fails(2, f"'{asked[-1]}'", "--force")
        assert run(*asked, "--force").code == 0


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
