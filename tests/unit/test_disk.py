"""Temporary folders, checkpoints and deferred signals."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import FrameType

import numpy as np
import pytest

from kinfold.disk import folders
from kinfold.disk.checkpoints import CHECKPOINT_STATE, CheckpointFolder, get_checkpoint_path
from kinfold.disk.folders import defer_signals
from kinfold.tables.queries import collect_rows

LIVE = """
import sys; from pathlib import Path; from kinfold.disk import folders
folder = folders.make_scratch("kinfold-", Path(sys.argv[1])); (folder / "copy.csv").write_text("original")
print(folder, flush=True); sys.stdin.readline()
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
HEX = "kinfold-0123abcd"


def start(place: Path) -> tuple[subprocess.Popen[str], Path]:
    """Another process with a temporary folder of its own."""
    words = [sys.executable, "-c", LIVE, str(place)]
    live = subprocess.Popen(words, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert live.stdout is not None
    return live, Path(live.stdout.readline().strip())


def abandoned(place: Path, name: str = HEX, mark: object = None, age: float = 0.0) -> Path:
    """A folder as a killed run leaves it."""
    folder = place / name
    folder.mkdir(mode=0o700)
    mark = {"purpose": "", "host": platform.node()} if mark is None else mark
    (folder / folders.MARK_FILE).write_text(json.dumps(mark))
    (folder / "copy.csv").write_text("original")
    old(folder / folders.MARK_FILE, age)
    return folder


def old(path: Path, age: float) -> None:
    os.utime(path, (time.time() - age, time.time() - age))


def test_a_folder_is_private_and_is_removed_with_its_contents(tmp_path: Path) -> None:
    folder = folders.make_scratch("kinfold-", tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "c").write_text("x")
    folders.remove_scratch(folder)
    assert list(tmp_path.iterdir()) == []
    for place in (tmp_path, tmp_path / "nowhere"):  # where there is nothing to sweep
        folders.sweep_scratch("kinfold-", place)


def test_the_journal_lists_a_folder_before_it_exists_and_until_it_is_removed(tmp_path: Path) -> None:
    notes, there = folders.Journal(), []
    with (
        folders.record_to(notes),
        folders.record_to(lambda event, what: there.append((event, Path(what).exists()))),
    ):
        folder = folders.make_scratch("kinfold-", tmp_path)
        assert notes.folders == [str(folder)]
        folders.remove_scratch(folder)
        assert notes.folders == []
    assert there == [("made", False), ("gone", False)]


def test_the_folder_of_a_killed_run_is_swept_and_that_of_a_live_run_is_not(tmp_path: Path) -> None:
    killed, left = start(tmp_path)
    live, used = start(tmp_path)
    killed.kill()
    killed.communicate()
    folders.sweep_scratch("kinfold-", tmp_path)
    assert list(tmp_path.iterdir()) == [used]
    assert (used / "copy.csv").read_text() == "original"
    live.kill()
    live.communicate()
    folders.sweep_scratch("kinfold-", tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not left.exists()


def test_a_folder_of_this_process_is_not_swept(tmp_path: Path) -> None:
    folder = folders.make_scratch("kinfold-", tmp_path)
    folders.sweep_scratch("kinfold-", tmp_path)
    assert folder.exists()
    folders.remove_scratch(folder)


@pytest.mark.parametrize("name", ["kinfold-notes", "kinfold-", "kinfold-0123abcde", "kinfold-0123ABCD", "my-0123abcd"])
def test_a_folder_with_another_name_is_not_swept(tmp_path: Path, name: str) -> None:
    folder = abandoned(tmp_path, name)
    folders.sweep_scratch("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()


@pytest.mark.parametrize("mark", [[], {}, {"purpose": "other", "host": platform.node()}, 5, None, "text"], ids=repr)
def test_a_folder_with_another_mark_is_not_swept(tmp_path: Path, mark: object) -> None:
    folder = abandoned(tmp_path, mark="" if mark is None else mark, age=10 * folders.DAY)
    folders.sweep_scratch("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()


def test_a_folder_without_a_mark_is_not_swept(tmp_path: Path) -> None:
    folder = tmp_path / HEX
    folder.mkdir(mode=0o700)
    (folder / "thesis.txt").write_text("ten years of work")
    old(folder, 10 * folders.DAY)
    folders.sweep_scratch("kinfold-", tmp_path)
    assert (folder / "thesis.txt").exists()


def test_the_folder_of_another_machine_is_swept_after_a_day(tmp_path: Path) -> None:
    folder = abandoned(tmp_path, mark={"purpose": "", "host": "elsewhere"})
    folders.sweep_scratch("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()
    old(folder / folders.MARK_FILE, folders.DAY + 60)
    folders.sweep_scratch("kinfold-", tmp_path)
    assert not folder.exists()


@pytest.mark.parametrize("half", [False, True])
def test_a_folder_that_was_never_marked_is_swept_when_old_and_empty(tmp_path: Path, half: bool) -> None:
    folder = tmp_path / HEX
    folder.mkdir(mode=0o700)
    if half:
        (folder / folders.UNFINISHED_MARK_FILE).write_text("")
    folders.sweep_scratch("kinfold-", tmp_path)
    assert folder.exists()  # a run may be writing its mark now
    old(folder, 2 * folders.MINUTE)
    folders.sweep_scratch("kinfold-", tmp_path)
    assert not folder.exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    target = abandoned(tmp_path / "home")
    (tmp_path / "tmp" / HEX).symlink_to(target)  # a folder
    marked = tmp_path / "tmp" / "kinfold-aaaaaaaa"
    marked.mkdir(mode=0o700)
    (marked / folders.MARK_FILE).symlink_to(target / folders.MARK_FILE)  # a mark
    (marked / "copy.csv").write_text("mine")
    real = abandoned(tmp_path / "tmp", "kinfold-bbbbbbbb")
    (real / "to").symlink_to(target)  # inside
    folders.sweep_scratch("kinfold-", tmp_path / "tmp")
    assert sorted(path.name for path in (tmp_path / "tmp").iterdir()) == [HEX, "kinfold-aaaaaaaa"]
    assert (target / "copy.csv").exists()
    assert (marked / "copy.csv").exists()


def test_the_folder_of_another_user_is_not_swept(tmp_path: Path) -> None:
    folder = abandoned(tmp_path)
    try:
        os.chown(folder, 65534, 65534)
    except PermissionError:
        pytest.skip("only root may give a folder away")
    folders.sweep_scratch("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()
    os.chown(folder, os.geteuid(), os.getegid())
    os.chown(folder / folders.MARK_FILE, 65534, 65534)
    folders.sweep_scratch("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()


def test_an_existing_folder_is_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = map(bytes.fromhex, ("0123abcd", "89abcdef"))
    (tmp_path / HEX).mkdir()
    monkeypatch.setattr("os.urandom", lambda _: next(names))
    assert folders.make_scratch("kinfold-", tmp_path).name == "kinfold-89abcdef"
    assert list((tmp_path / HEX).iterdir()) == []


def test_a_temporary_folder_that_cannot_be_made_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kinfold.errors import PolicyError
    from kinfold.tables.duckdb.connection import Database

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(PolicyError, match="cannot make a temporary folder: No such file") as caught:
        Database()
    assert "TMPDIR" in caught.value.problems[0].fix


def test_a_copy_of_the_original_goes_as_soon_as_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    from kinfold.tables.duckdb.engine import DuckDB

    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "latin.csv").write_bytes("name,age\nJosé,3\nZoë,4\n".encode("latin-1"))
    with DuckDB() as engine:
        frame = engine.read(tmp_path / "latin.csv")
        assert collect_rows(engine, frame).num_rows == 2
        held = [path for path in (tmp_path / "tmp").rglob("*") if path.is_file()]
        assert [path.name for path in held] == [folders.MARK_FILE]
    assert list((tmp_path / "tmp").iterdir()) == []


# Checkpoints: only for the same run and the same user, each complete or absent.


KEY = {"source": "1", "policy": "2", "kinfold": "3"}
LABELS = np.array([3, 1, 2], np.int32)


def begin(release: Path, *, resume: bool = False, **key: str) -> CheckpointFolder:
    work = CheckpointFolder(release, resume=resume, final=(ValueError,))
    assert work.begin({**KEY, **key}) == []
    return work


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The path of a release whose run was stopped after a block."""
    begin(tmp_path / "out").put("blocks-0", labels=LABELS)
    return tmp_path / "out"


def test_a_resumed_run_gets_the_checkpoints(stopped: Path) -> None:
    arrays = begin(stopped, resume=True).get("blocks-0")
    assert arrays is not None
    assert arrays["labels"].tolist() == LABELS.tolist()
    assert arrays["labels"].dtype == np.int32
    assert begin(stopped, resume=True).get("blocks-1") is None


def test_the_folder_is_private(stopped: Path) -> None:
    folder = get_checkpoint_path(stopped)
    assert folder.name == ".out.blocks"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir() if path.suffix == ".npz")


@pytest.mark.parametrize("part", KEY)
def test_checkpoints_of_another_run_are_refused_and_kept(stopped: Path, part: str) -> None:
    other = CheckpointFolder(stopped, resume=True)
    assert other.begin({**KEY, part: "another"}) == [part]
    assert begin(stopped, resume=True).get("blocks-0") is not None


def test_a_run_from_the_beginning_removes_old_checkpoints(stopped: Path) -> None:
    begin(stopped)
    assert not get_checkpoint_path(stopped).exists()


def test_a_run_without_checkpoints_can_be_resumed(tmp_path: Path) -> None:
    work = begin(tmp_path / "out", resume=True)
    assert work.get("blocks-0") is None
    assert list(tmp_path.iterdir()) == []  # the folder is made with the first checkpoint


def test_a_truncated_or_changed_file_counts_as_absent(stopped: Path) -> None:
    file = get_checkpoint_path(stopped) / "blocks-0.npz"
    for content in (file.read_bytes()[:-20], b"", b"no array", file.read_bytes().replace(b"\x03", b"\x04", 1)):
        file.write_bytes(content)
        assert begin(stopped, resume=True).get("blocks-0") is None


def test_checkpoints_are_removed_after_success_or_a_final_error_and_kept_after_a_stop(tmp_path: Path) -> None:
    for error, stays in ((None, False), (ValueError, False), (KeyboardInterrupt, True), (OSError, True)):
        work = begin(tmp_path / "out")
        try:
            with work:
                work.put("borders", labels=LABELS)
                if error is not None:
                    raise error
        except (ValueError, KeyboardInterrupt, OSError):
            pass
        assert get_checkpoint_path(tmp_path / "out").exists() == stays


def test_two_runs_to_one_release_do_not_share_checkpoints(stopped: Path) -> None:
    first, second = begin(stopped, resume=True), begin(stopped, resume=True)
    second.put("blocks-0", labels=LABELS[:1])
    assert second.get("blocks-0") is None
    arrays = first.get("blocks-0")
    assert arrays is not None
    assert len(arrays["labels"]) == 3
    second.remove()
    assert first.get("blocks-0") is not None


def test_a_link_is_not_used(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    get_checkpoint_path(tmp_path / "out").symlink_to(elsewhere)
    work = begin(tmp_path / "out")
    work.put("blocks-0", labels=LABELS)
    assert work.get("blocks-0") is None
    work.remove()
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]


def test_a_full_disk_does_not_stop_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = begin(tmp_path / "out")
    work.put("blocks-0", labels=LABELS)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(np, "savez", full)
    work.put("blocks-1", labels=LABELS)
    assert work.get("blocks-1") is None
    assert sorted(path.name for path in work.folder.iterdir()) == ["blocks-0.npz", "key.json", "lock"]


def test_the_journal_says_that_a_run_can_be_resumed(tmp_path: Path) -> None:
    events = folders.Journal()
    with folders.record_to(events):
        work = begin(tmp_path / "out")
        assert events.state == "nothing was changed"
        work.put("blocks-0", labels=LABELS)
        assert events.state == CHECKPOINT_STATE


def test_blocks_that_end_at_the_same_time_are_all_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    acquire, barrier = CheckpointFolder._acquire_lock, Barrier(8, timeout=30)

    def acquire_slowly(self: CheckpointFolder) -> bool:
        time.sleep(0.2)
        return acquire(self)

    monkeypatch.setattr(CheckpointFolder, "_acquire_lock", acquire_slowly)
    work = begin(tmp_path / "out")

    def save(block: int) -> None:
        barrier.wait()
        work.put(f"blocks-{block}", labels=LABELS)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(save, range(8)))
    assert all(work.get(f"blocks-{block}") is not None for block in range(8))


# Deferred signals: no handler runs inside the block, the first one runs after it, and handlers are restored.


@pytest.fixture
def received() -> Iterator[list[int]]:
    """The signals for which the caller's handler was called."""
    received: list[int] = []

    def handler(number: int, _: FrameType | None) -> None:
        received.append(number)

    before = signal.signal(signal.SIGTERM, handler)
    yield received
    signal.signal(signal.SIGTERM, before)


def test_a_signal_is_delivered_once_and_afterwards(received: list[int]) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    with defer_signals():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert received == []
    assert received == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_callback_is_called_at_once(received: list[int]) -> None:
    ended: list[bool] = []
    with defer_signals(lambda: ended.append(True)):
        signal.raise_signal(signal.SIGTERM)
        assert ended == [True]
    assert received == [signal.SIGTERM]


def test_an_interrupt_is_raised_instead_of_the_error_that_it_caused() -> None:
    def interrupted() -> None:
        with defer_signals():
            signal.raise_signal(signal.SIGINT)
            raise RuntimeError("interrupted")

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_signals_without_a_handler_are_not_changed() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with defer_signals():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_nothing_is_deferred_in_another_thread() -> None:
    handlers = []

    def work() -> None:
        with defer_signals():
            handlers.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [before]
