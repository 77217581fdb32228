"""A run in blocks that is stopped, killed or crashes goes on where it was, and ends as if nothing had happened."""

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import kinfold
from command import content, run, text
from kinfold.disk.checkpoints import CHECKPOINT_STATE, CheckpointFolder, get_checkpoint_path
from kinfold.methods import classes
from kinfold.methods.blocks import pool
from processes import PATIENCE, Command, ending, gone, start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at through /proc"),
    pytest.mark.trust("faults"),
]

RECORDS, BATCH = 700, 100
ARGS = ("--quasi", "a,b", "--confidential", "wage", "-k", "4", "-t", "0.3", "--method", "mdav", "--others", "drop")
BLOCKS = ("--set", "method.block=50", "--set", "method.refine_steps=12")

# Blocks are saved one by one, rounds are small, and a step that is named never ends, once it is said that it has begun.
SMALL = f"""
import sys, threading, time
from kinfold.methods import classes
from kinfold.methods.blocks import pool
from kinfold.methods.partition import block_search
pool.BATCH_RECORDS, classes.MAX_TABLED_RECORDS = {BATCH}, 100
block_search.RECORDS_UNDER_PROMISES, block_search.BLOCKS_PER_BATCH = 100, 4
from kinfold.disk.checkpoints import CheckpointFolder
put = CheckpointFolder.put
saved, lock = [], threading.Lock()
def slow(self, name, **arrays):
    put(self, name, **arrays)
    with lock:
        saved.append(name)
        print("saved", len(saved), name, file=sys.stderr, flush=True)
        while any(name.startswith(each) for each in STOPS) and len(saved) >= MANY:
            time.sleep(0.01)
"""
STOPPED = SMALL + "STOPS, MANY = {!r}, {}\nCheckpointFolder.put = slow\n"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    random = np.random.default_rng(0)
    lines = (
        f"{a:.2f},{b},{w}"
        for a, b, w in zip(
            random.normal(size=RECORDS), random.integers(0, 9, RECORDS), random.integers(0, 99, RECORDS), strict=True
        )
    )
    text(folder, "table.csv", "a,b,wage\n" + "\n".join(lines) + "\n")
    with ending(anonymize(folder, "whole", before=SMALL)) as command:
        assert command.ended() == 0, command.said
    return folder


@pytest.fixture
def place(desk: Path) -> Iterator[Path]:
    """Where the release of a test goes; nothing is left there."""
    yield desk / "out"
    shutil.rmtree(desk / "out", ignore_errors=True)
    shutil.rmtree(get_checkpoint_path(desk / "out"), ignore_errors=True)


def anonymize(desk: Path, out: str, *args: str, before: str = SMALL) -> Command:
    return start(desk, "anonymize", desk / "table.csv", *ARGS, *BLOCKS, "--out", desk / out, *args, before=before)


def public(folder: Path) -> dict[str, bytes]:
    return {name: held for name, held in content(folder / "public").items() if name != "report.html"}


@pytest.mark.parametrize(
    ("stops", "many", "number"),
    [
        pytest.param(("blocks",), 1, signal.SIGTERM, marks=pytest.mark.slow),
        (("blocks",), 3, signal.SIGINT),
        pytest.param(("borders",), 1, signal.SIGHUP, marks=pytest.mark.slow),
        (("refinement",), 1, signal.SIGTERM),
    ],
    ids=["first block", "some blocks", "borders", "refinement"],
)
def test_a_run_that_is_stopped_goes_on_and_ends_the_same(
    desk: Path, place: Path, stops: tuple[str, ...], many: int, number: signal.Signals
) -> None:
    with ending(anonymize(desk, "out", before=STOPPED.format(stops, many))) as command:
        command.until(f" {stops[0]}")
        command.until(f"saved {many} ")
        command.process.send_signal(number)
        assert command.ended() == 128 + number
    assert f"stopped; {CHECKPOINT_STATE}" in command.said
    assert command.left == []
    assert not place.exists()
    assert get_checkpoint_path(place).stat().st_mode & 0o777 == 0o700
    goes_on(desk, place, stops)


def goes_on(desk: Path, place: Path, stops: tuple[str, ...]) -> None:
    """Resume, and compare with the run that nobody stopped."""
    kept = {path.stem for path in get_checkpoint_path(place).glob("*.npz")}
    assert any(name.startswith(stops) for name in kept)
    with ending(anonymize(desk, "out", "--resume", before=STOPPED.format((), 0))) as command:
        assert command.ended() == 0, command.said
    again = {line.split()[2] for line in command.said.splitlines() if line.startswith("saved")}
    assert not again & {name for name in kept if name != "refinement"}  # what was done is not done again
    assert public(place) == public(desk / "whole")
    assert not get_checkpoint_path(place).exists()
    assert command.left == []


@pytest.mark.parametrize("whom", [pytest.param("run", marks=pytest.mark.slow), "command"])
def test_a_run_that_is_killed_goes_on_and_ends_the_same(desk: Path, place: Path, whom: str) -> None:
    with ending(anonymize(desk, "out", before=STOPPED.format(("blocks",), 2))) as command:
        command.until("saved 2")
        child = command.run()
        os.kill(child if whom == "run" else command.process.pid, signal.SIGKILL)
        command.ended()
        assert gone(child)
    goes_on(desk, place, ("blocks",))


@pytest.mark.slow
def test_a_run_that_begins_anew_does_not_look_at_what_was_kept(desk: Path, place: Path) -> None:
    with ending(anonymize(desk, "out", before=STOPPED.format(("borders",), 1))) as command:
        command.until(" borders")
        command.process.send_signal(signal.SIGTERM)
        command.ended()
    with ending(anonymize(desk, "out", before=STOPPED.format((), 0))) as command:
        assert command.ended() == 0, command.said
    assert "blocks-0" in command.said
    assert public(place) == public(desk / "whole")
    assert not get_checkpoint_path(place).exists()


def test_another_input_or_policy_is_refused_with_the_reason(desk: Path, place: Path, tmp_path: Path) -> None:
    with ending(anonymize(desk, "out", before=STOPPED.format(("borders",), 1))) as command:
        command.until(" borders")
        command.process.send_signal(signal.SIGTERM)
        command.ended()
    held = content(get_checkpoint_path(place))
    other = text(tmp_path, "table.csv", (desk / "table.csv").read_text().replace("\n", "\n0.5,1,7\n", 1))
    run("anonymize", other, *ARGS, *BLOCKS, "--out", place, "--resume").fails(
        2, "cannot resume: the stopped run read another input"
    )
    run("anonymize", desk / "table.csv", *ARGS, *BLOCKS, "--seed", "5", "--out", place, "--resume").fails(
        2, "cannot resume: the stopped run had another policy", "leave out --resume"
    )
    assert content(get_checkpoint_path(place)) == held
    assert not place.exists()


def test_a_run_that_can_never_be_met_leaves_nothing(desk: Path, place: Path) -> None:
    args = ("--quasi", "a,b", "--confidential", "wage", "-k", "4", "-l", "500", "--method", "mdav", "--others", "drop")
    run("anonymize", desk / "table.csv", *args, "--set", "method.block=50", "--out", place).fails(4)
    assert not get_checkpoint_path(place).exists()


def test_without_blocks_nothing_is_kept_and_resume_begins_at_the_start(desk: Path, place: Path) -> None:
    run("anonymize", desk / "table.csv", *ARGS, "--out", place, "--resume").ok()
    assert not get_checkpoint_path(place).exists()


# The library


def test_a_listener_that_raises_ends_the_run_and_it_can_be_resumed(desk: Path, tmp_path: Path) -> None:
    policy = {
        "privacy": {"k": 4},
        "method": {"name": "mdav", "block": 50},
        "columns": {"a": {"role": "quasi-identifier"}, "b": {"role": "quasi-identifier"}},
        "output": {"others": "drop"},
    }
    stages: list[str] = []

    def listen(stage: str, done: int, total: int) -> None:
        stages.append(stage)
        if stage == "apply":
            raise kinfold.Cancelled("enough")

    table, out = desk / "table.csv", tmp_path / "out"
    with pytest.raises(kinfold.Cancelled), CheckpointFolder(out) as saved:
        kinfold.anonymize(table, policy, progress=listen, saved=saved)
    assert {"read", "blocks", "borders"} <= set(stages)
    assert get_checkpoint_path(out).exists()
    with CheckpointFolder(out, resume=True) as saved:
        resumed = kinfold.anonymize(table, policy, saved=saved)
    assert (resumed.labels == kinfold.anonymize(table, policy).labels).all()
    assert not get_checkpoint_path(out).exists()
    with pytest.raises(kinfold.PolicyError, match="checksum"), CheckpointFolder(out, resume=True) as saved:
        kinfold.anonymize(resumed.frame, policy, saved=saved)


@pytest.mark.parametrize("stage", ["cut", "blocks", "borders", "refine", "verify"])
def test_a_run_that_a_listener_ends_leaves_no_thread_at_work(
    desk: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "BATCH_RECORDS", BATCH)
    monkeypatch.setattr(classes, "MAX_TABLED_RECORDS", 100)
    before, asked = threading.active_count(), {"method": "mdav", "block": 50}

    def listen(name: str, done: int, total: int) -> None:
        if name == stage:
            raise kinfold.Cancelled("enough")

    asked |= {"refine_steps": 10**6} if stage == "refine" else {}
    with pytest.raises(kinfold.Cancelled):
        kinfold.anonymize(desk / "table.csv", quasi=["a", "b"], k=3, others="drop", progress=listen, **asked)
    until = time.monotonic() + PATIENCE
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_a_run_in_the_middle_of_a_query_ends_within_two_seconds(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kinfold.tables.duckdb.engine import DuckDB

    began: list[float] = []

    def endless(self: DuckDB, *_: object) -> None:
        began.append(time.monotonic())
        self._db.connection.execute("SELECT sum(a.range * b.range % 7) FROM range(10000000) a, range(10000000) b")

    monkeypatch.setattr(DuckDB, "schema", endless)

    def listen(stage: str, done: int, total: int) -> None:
        if began and time.monotonic() - began[0] > 0.3:
            raise kinfold.Cancelled("enough")

    with pytest.raises(kinfold.Cancelled):
        kinfold.anonymize(desk / "table.csv", quasi=["a"], k=3, others="drop", progress=listen)
    assert time.monotonic() - began[0] < PATIENCE / 10  # it would go on for hours
