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
from processes import PATIENCE, Command, ending, gone, start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are looked at through /proc"),
    pytest.mark.trust("faults"),
]

RECORDS, BATCH = 700, 100
ARGS = ("--quasi", "a,b", "--confidential", "wage", "-k", "4", "-t", "0.3", "--method", "mdav", "--others", "drop")
BLOCKS = ("--set", "method.block=50", "--set", "method.refine_steps=12")

# Small batches, so that a table of a few hundred records is saved in several pieces.
SIZES = {
    "kinfold.methods.blocks.pool.BATCH_RECORDS": BATCH,
    "kinfold.methods.classes.MAX_TABLED_RECORDS": 100,
    "kinfold.methods.partition.refine.RECORDS_UNDER_PROMISES": 100,
    "kinfold.methods.partition.refine.BLOCKS_PER_BATCH": 4,
}
# A process with these sizes announces each checkpoint and waits for ever once it has written COUNT of the stage STAGE.
WAITING = """
import importlib, sys, threading, time
for name, size in {sizes}.items():
    module, _, constant = name.rpartition(".")
    setattr(importlib.import_module(module), constant, size)
from kinfold.disk.checkpoints import CheckpointFolder
put = CheckpointFolder.put
saved, lock = [], threading.Lock()
def put_and_wait(self, name, **arrays):
    put(self, name, **arrays)
    with lock:
        saved.append(name)
        print("saved", len(saved), name, file=sys.stderr, flush=True)
        while name.startswith({stage!r}) and len(saved) >= {count}:
            time.sleep(0.01)
CheckpointFolder.put = put_and_wait
"""


@pytest.fixture(scope="module", autouse=True)
def small_batches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, size in SIZES.items():
            patch.setattr(name, size)
        yield


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
    run("anonymize", folder / "table.csv", *ARGS, *BLOCKS, "--out", folder / "whole").ok()
    return folder


@pytest.fixture
def place(desk: Path) -> Iterator[Path]:
    """Where the release of a test goes; nothing is left there."""
    yield desk / "out"
    shutil.rmtree(desk / "out", ignore_errors=True)
    shutil.rmtree(get_checkpoint_path(desk / "out"), ignore_errors=True)


def stop_at(desk: Path, stage: str, count: int) -> Command:
    """Start a run that waits once it has written a number of checkpoints, the last of them of a stage."""
    before = WAITING.format(sizes=SIZES, stage=stage, count=count)
    args = ("anonymize", desk / "table.csv", *ARGS, *BLOCKS, "--out", desk / "out")
    command = start(desk, *args, before=before)
    command.until(f" {stage}")
    command.until(f"saved {count} ")
    return command


def public(folder: Path) -> dict[str, bytes]:
    return {name: data for name, data in content(folder / "public").items() if name != "report.html"}


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The checkpoints that runs in this process write."""
    names, put = set(), CheckpointFolder.put

    def record(self: CheckpointFolder, name: str, **arrays: np.ndarray) -> None:
        names.add(name)
        put(self, name, **arrays)

    monkeypatch.setattr(CheckpointFolder, "put", record)
    return names


def resume(desk: Path, place: Path, stage: str, saved: set[str]) -> None:
    """Resume, and compare with the run that was not interrupted."""
    kept = {path.stem for path in get_checkpoint_path(place).glob("*.npz")}
    assert any(name.startswith(stage) for name in kept)
    run("anonymize", desk / "table.csv", *ARGS, *BLOCKS, "--out", place, "--resume").ok()
    assert not saved & (kept - {"refinement"})  # finished work is not repeated
    assert public(place) == public(desk / "whole")
    assert not get_checkpoint_path(place).exists()


@pytest.mark.parametrize(
    ("stage", "count", "number"),
    [("blocks", 3, signal.SIGINT), ("borders", 1, signal.SIGHUP), ("refinement", 1, signal.SIGTERM)],
)
def test_a_run_that_is_stopped_goes_on_and_ends_the_same(
    desk: Path, place: Path, stage: str, count: int, number: signal.Signals, saved: set[str]
) -> None:
    with ending(stop_at(desk, stage, count)) as command:
        command.process.send_signal(number)
        assert command.ended() == 128 + number
    assert f"stopped; {CHECKPOINT_STATE}" in command.said
    assert command.left == []
    assert not place.exists()
    assert get_checkpoint_path(place).stat().st_mode & 0o777 == 0o700
    resume(desk, place, stage, saved)


@pytest.mark.parametrize(("whom", "count"), [("run", 1), ("command", 2)])
def test_a_run_that_is_killed_goes_on_and_ends_the_same(
    desk: Path, place: Path, whom: str, count: int, saved: set[str]
) -> None:
    with ending(stop_at(desk, "blocks", count)) as command:
        child = command.run()
        os.kill(child if whom == "run" else command.process.pid, signal.SIGKILL)
        command.ended()
        assert gone(child)
    resume(desk, place, "blocks", saved)


def test_another_input_or_policy_is_refused_and_a_new_run_ignores_the_checkpoints(
    desk: Path, place: Path, tmp_path: Path, saved: set[str]
) -> None:
    with ending(stop_at(desk, "borders", 1)) as command:
        command.process.send_signal(signal.SIGTERM)
        command.ended()
    held = content(get_checkpoint_path(place))
    other = text(tmp_path, "table.csv", (desk / "table.csv").read_text().replace("\n", "\n0.5,1,7\n", 1))
    run("anonymize", other, *ARGS, *BLOCKS, "--out", place, "--resume").fails(
        2, "cannot resume: the stopped run read another input"
    )
    args = ("anonymize", desk / "table.csv", *ARGS, *BLOCKS, "--out", place)
    run(*args, "--seed", "5", "--resume").fails(
        2, "cannot resume: the stopped run had another policy", "leave out --resume"
    )
    assert content(get_checkpoint_path(place)) == held
    assert not place.exists()
    run(*args).ok()
    assert "blocks-0" in saved
    assert public(place) == public(desk / "whole")
    assert not get_checkpoint_path(place).exists()


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
def test_a_run_that_a_listener_ends_leaves_no_thread_at_work(desk: Path, stage: str) -> None:
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
        self._db.execute("SELECT sum(a.range * b.range % 7) FROM range(10000000) a, range(10000000) b")

    monkeypatch.setattr(DuckDB, "schema", endless)

    def listen(stage: str, done: int, total: int) -> None:
        if began and time.monotonic() - began[0] > 0.3:
            raise kinfold.Cancelled("enough")

    with pytest.raises(kinfold.Cancelled):
        kinfold.anonymize(desk / "table.csv", quasi=["a"], k=3, others="drop", progress=listen)
    assert time.monotonic() - began[0] < PATIENCE / 10  # it would go on for hours
