"""SIGINT, SIGTERM and SIGHUP end any command, wherever it is: at once, tidily, with a true word and the right code."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command import content, run, text
from processes import BUSY, PATIENCE, Command, ending, gone, start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at through /proc"),
    pytest.mark.trust("faults"),
]

TABLE = "age,zip,disease\n" + "\n".join(f"{20 + i % 50},{10000 + i % 7},{'abc'[i % 3]}" for i in range(60)) + "\n"
ARGS = ("--quasi", "age,zip", "--confidential", "disease", "-k", "3", "--method", "mdav")
SIGNALS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
UNCHANGED = "stopped; nothing was changed"
IN_PLACE = "stopped; the new release is in place at '{}'"

READING = BUSY + "from kinfold.tables.duckdb.engine import DuckDB; DuckDB.schema = lambda *_: busy({!r})"
WRITTEN = BUSY + "from kinfold.cli import output; output.print_release = lambda *_, **__: busy({!r})"


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("earlier")
    table = text(folder, "table.csv", TABLE)
    assert run("anonymize", table, *ARGS, "--out", folder / "out").code == 0
    return folder


@pytest.fixture
def desk(earlier: Path, tmp_path: Path) -> Path:
    """A folder with a table and an earlier release."""
    shutil.copytree(earlier, tmp_path, dirs_exist_ok=True)
    return tmp_path


def anonymize(desk: Path, out: str = "out", **options: object) -> Command:
    return start(desk, "anonymize", desk / "table.csv", *ARGS, "--out", desk / out, "--force", **options)


def terminated(command: Command) -> None:
    """Stop a command once it is busy."""
    command.until("busy")
    command.process.send_signal(signal.SIGTERM)
    assert command.ended() == 143


def told(command: Command) -> list[str]:
    """What it said, but for the word that it had begun."""
    return [line for line in command.said.splitlines() if line != "busy"]


@pytest.mark.parametrize(
    ("number", "how"),
    [
        *((signal.SIGTERM, how) for how in ("python", "c", "kernel", "threads")),
        *((signal.SIGINT, "database"), (signal.SIGHUP, "arrow")),
        *(
            pytest.param(number, how, marks=pytest.mark.long)
            for number in SIGNALS
            for how in ("kernel", "database")
            if (number, how) not in ((signal.SIGTERM, "kernel"), (signal.SIGINT, "database"))
        ),
    ],
)
def test_a_signal_ends_a_run_whatever_it_is_doing_with_its_code(desk: Path, number: signal.Signals, how: str) -> None:
    before = content(desk)
    with ending(anonymize(desk, before=READING.format(how))) as command:
        command.until("busy")
        child = command.run()
        started = time.monotonic()
        command.process.send_signal(number)
        assert command.ended() == SIGNALS[number]
        assert time.monotonic() - started < PATIENCE / 2  # it would go on for hours
    assert told(command) == [UNCHANGED]
    assert command.out == ""
    assert command.left == []
    assert content(desk) == before
    assert gone(child)


def test_a_signal_to_everybody_at_the_terminal_is_told_once(desk: Path) -> None:
    with ending(anonymize(desk, before=READING.format("python"), start_new_session=True)) as command:
        command.until("busy")
        for _ in range(3):  # an impatient person
            os.killpg(command.process.pid, signal.SIGINT)
        assert command.ended() == 130
    assert told(command) == [UNCHANGED]
    assert command.left == []


def test_a_signal_to_the_process_that_does_the_work_counts_too(desk: Path) -> None:
    with ending(anonymize(desk, before=READING.format("database"))) as command:
        command.until("busy")
        os.kill(command.run(), signal.SIGTERM)
        assert command.ended() == 143
    assert told(command) == [UNCHANGED]


def test_after_the_exchange_the_new_release_is_in_place_and_that_is_said(desk: Path) -> None:
    before = content(desk / "out")
    with ending(anonymize(desk, before=WRITTEN.format("c"))) as command:
        terminated(command)
    assert told(command) == [IN_PLACE.format(desk / "out")]
    assert content(desk / "out").keys() == before.keys()
    assert content(desk / "out") != before  # the reports tell when they were made
    assert run("verify", desk / "out").code == 0
    assert sorted(path.name for path in desk.iterdir()) == ["out", "table.csv", "tmp"]
    assert command.left == []


SLOWLY = """
import os, sys, time
from kinfold.disk import folders
from pathlib import Path
swap, rename = folders._swap_atomically, Path.rename
def slow():
    print("busy", file=sys.stderr, flush=True)
    time.sleep(0.7)
def one_step(one, other):
    slow()
    return swap(one, other)
def two_steps(path, target):
    if path.name == "new" and not target.exists():
        slow()
    return rename(path, target)
"""
STEPS = {
    "one": "folders._swap_atomically = one_step",
    "two": "folders._swap_atomically = lambda *_: False; Path.rename = two_steps",
}


@pytest.mark.parametrize("steps", STEPS)
def test_the_exchange_is_not_cut(desk: Path, steps: str) -> None:
    with ending(anonymize(desk, before=SLOWLY + STEPS[steps])) as command:
        command.until("busy")
        command.process.send_signal(signal.SIGINT)
        assert command.ended() == 130
    assert told(command) == [IN_PLACE.format(desk / "out")]
    assert run("verify", desk / "out").code == 0
    assert sorted(path.name for path in desk.iterdir()) == ["out", "table.csv", "tmp"]
    assert command.left == []


def test_folders_that_were_opened_for_the_release_go_again(desk: Path) -> None:
    before = BUSY + "from kinfold.release import folder; folder._fill = lambda *_: busy('c')"
    with ending(anonymize(desk, "a/b/out", before=before)) as command:
        command.until("busy")
        assert [path.stat().st_mode & 0o077 for path in (desk / "a" / "b").iterdir()] == [0]
        command.process.send_signal(signal.SIGTERM)
        assert command.ended() == 143
    assert told(command) == [UNCHANGED]
    assert sorted(path.name for path in desk.iterdir()) == ["out", "table.csv", "tmp"]


@pytest.mark.parametrize(
    "args",
    [
        ("profile", "table.csv"),
        ("verify", "out"),
        ("measure", "table.csv", "out/public/release.csv", "--policy", "out/internal/policy.toml"),
        ("lattice", "table.csv", "--policy", "out/internal/policy.toml"),
    ],
    ids=lambda args: args[0],
)
def test_every_command_can_be_stopped(desk: Path, args: tuple[str, ...]) -> None:
    before = BUSY + "from kinfold.tables.duckdb.engine import DuckDB; DuckDB.read = lambda *_, **__: busy('c')"
    held = content(desk)
    with ending(start(desk, *args, before=before, cwd=desk)) as command:
        terminated(command)
    assert told(command) == [UNCHANGED]
    assert command.left == []
    assert content(desk) == held


def test_a_demo_that_is_stopped_does_not_say_that_nothing_was_changed(desk: Path) -> None:
    with ending(start(desk, "demo", "--out", desk / "demo", before=READING.format("c"))) as command:
        terminated(command)
    assert told(command) == [f"stopped; '{desk / 'demo'}' has been overwritten in part"]
    assert command.left == []


def test_a_comparison_ends_with_its_workers(desk: Path) -> None:
    policy = desk / "out" / "internal" / "policy.toml"
    many = ",".join(map(str, range(2, 19)))
    args = ("compare", desk / "table.csv", "--policy", policy, "--methods", "mdav,v-mdav", "--k", many)
    with ending(start(desk, *args, "--out", desk / "compared")) as command:
        runs, until = desk / "compared" / "runs", time.monotonic() + PATIENCE
        while not (runs.exists() and any(runs.glob("*.json"))) and time.monotonic() < until:
            time.sleep(0.01)
        child = command.run()
        workers = [int(word) for word in Path(f"/proc/{child}/task/{child}/children").read_text().split()]
        command.process.send_signal(signal.SIGTERM)
        assert command.ended() == 143
    assert told(command) == [f"stopped; the results so far are in '{runs}'"]
    assert len(workers) >= 2
    assert all(gone(worker) for worker in workers)
    assert command.left == []


def test_if_the_command_is_killed_its_run_goes_with_it_and_the_next_one_sweeps(desk: Path) -> None:
    before = content(desk / "out")
    with ending(anonymize(desk, before=READING.format("kernel"))) as command:
        command.until("busy")
        child = command.run()
        command.process.kill()
        assert command.ended() == -signal.SIGKILL
    assert gone(child)
    assert content(desk / "out") == before
    assert command.left != []
    assert all(path.stat().st_mode & 0o077 == 0 for path in command.left)
    with ending(anonymize(desk, before="")) as command:
        assert command.ended() == 0
    assert command.left == []


@pytest.mark.parametrize(
    ("number", "code", "words"),
    [(signal.SIGKILL, 4, "for lack of memory; nothing was changed"), (signal.SIGSEGV, 1, "the run crashed (SIGSEGV)")],
)
def test_a_run_that_is_ended_by_something_else_is_explained_and_tidied_up(
    desk: Path, number: signal.Signals, code: int, words: str
) -> None:
    with ending(anonymize(desk, before=READING.format("c"))) as command:
        command.until("busy")
        os.kill(command.run(), number)
        assert command.ended() == code
    assert words in command.said
    assert "fix: " in command.said
    assert command.left == []


def test_a_run_that_was_told_not_to_hear_of_hangups_goes_on(desk: Path) -> None:
    before = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "import os, sys; from kinfold.tables.duckdb.engine import DuckDB; schema = DuckDB.schema\n"
        "def hung_up(*args):\n"
        "    os.kill(os.getppid(), signal.SIGHUP)\n"
        "    return schema(*args)\n"
        "DuckDB.schema = hung_up"
    )
    with ending(anonymize(desk, before=before)) as command:
        assert command.ended() == 0


def test_other_codes_and_words_come_through(desk: Path) -> None:
    for args, code, out, err in (
        (("--version",), 0, "kinfold ", ""),
        (("profile", desk / "nowhere.csv"), 3, "", "error: no such file"),
        (("nosuch",), 2, "", "No such command"),
    ):
        with ending(start(desk, *args)) as command:
            assert command.ended() == code
        assert out in command.out
        assert err in command.said


# The library: nothing is installed, and Ctrl-C is what it is in any program


LIBRARY = """
import os, signal, sys, threading, time
import kinfold
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
from kinfold.tables.duckdb.engine import DuckDB
query = "SELECT sum(a.range * b.range % 7) FROM range(10000000) a, range(10000000) b"
engine = DuckDB()
try:
    threading.Thread(target=lambda: (time.sleep(0.5), os.kill(os.getpid(), signal.SIGINT)), daemon=True).start()
    engine._db.{}
except KeyboardInterrupt:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert engine._db.execute("SELECT 1") == [(1,)]
    print("interrupted")
"""
QUIET = """
import os, signal, threading, time
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.errors import Cancelled
signal.signal(signal.SIGINT, lambda *_: print("heard"))
engine, done = DuckDB(), threading.Event()
def again():
    while not done.wait(0.5):
        os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=again).start()
try:
    engine._db.execute("SELECT sum(a.range * b.range % 7) FROM range(10000000) a, range(10000000) b")
except Cancelled:
    done.set()
    print("cancelled")
"""


@pytest.mark.parametrize("call", ["execute(query)", "arrow(query)"])
def test_ctrl_c_in_the_library_interrupts_the_database(call: str, tmp_path: Path) -> None:
    assert said_by(LIBRARY.format(call), tmp_path) == "interrupted\n"


def test_a_handler_that_raises_nothing_cancels_the_query(tmp_path: Path) -> None:
    assert set(said_by(QUIET, tmp_path).split()) == {"heard", "cancelled"}


def said_by(code: str, tmp_path: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", code]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()) == []
    return ran.stdout
