"""Saved work: kept for the same run alone, for the owner alone, whole or not at all."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from kinfold.disk import journal
from kinfold.disk.saved_work import WORD, SavedWork, place_of

KEY = {"source": "1", "policy": "2", "kinfold": "3"}
LABELS = np.array([3, 1, 2], np.int32)


def begun(release: Path, *, resume: bool = False, **key: str) -> SavedWork:
    work = SavedWork(release, resume=resume, final=(ValueError,))
    assert work.begin({**KEY, **key}) == []
    return work


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The place of a release whose run was stopped after a block."""
    begun(tmp_path / "out").put("blocks-0", labels=LABELS)
    return tmp_path / "out"


def test_what_was_put_is_found_by_the_run_that_resumes(stopped: Path) -> None:
    held = begun(stopped, resume=True).get("blocks-0")
    assert held is not None
    assert held["labels"].tolist() == LABELS.tolist()
    assert held["labels"].dtype == np.int32
    assert begun(stopped, resume=True).get("blocks-1") is None


def test_it_is_the_owners_alone(stopped: Path) -> None:
    folder = place_of(stopped)
    assert folder.name == ".out.blocks"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir() if path.suffix == ".npz")


@pytest.mark.parametrize("part", KEY)
def test_work_about_something_else_is_refused_and_kept(stopped: Path, part: str) -> None:
    other = SavedWork(stopped, resume=True)
    assert other.begin({**KEY, part: "another"}) == [part]
    assert begun(stopped, resume=True).get("blocks-0") is not None


def test_a_run_that_begins_anew_removes_what_was_there(stopped: Path) -> None:
    begun(stopped)
    assert not place_of(stopped).exists()


def test_nothing_to_resume_is_no_reason_to_refuse(tmp_path: Path) -> None:
    work = begun(tmp_path / "out", resume=True)
    assert work.get("blocks-0") is None
    assert list(tmp_path.iterdir()) == []  # and nothing is made before there is something to keep


def test_a_file_that_is_cut_off_or_changed_counts_as_none(stopped: Path) -> None:
    file = place_of(stopped) / "blocks-0.npz"
    for content in (file.read_bytes()[:-20], b"", b"no array", file.read_bytes().replace(b"\x03", b"\x04", 1)):
        file.write_bytes(content)
        assert begun(stopped, resume=True).get("blocks-0") is None


def test_done_or_failed_for_good_it_is_removed_and_stopped_it_stays(tmp_path: Path) -> None:
    for error, stays in ((None, False), (ValueError, False), (KeyboardInterrupt, True), (OSError, True)):
        work = begun(tmp_path / "out")
        try:
            with work:
                work.put("borders", labels=LABELS)
                if error is not None:
                    raise error
        except (ValueError, KeyboardInterrupt, OSError):
            pass
        assert place_of(tmp_path / "out").exists() == stays


def test_two_runs_to_one_place_do_not_share_their_work(stopped: Path) -> None:
    first, second = begun(stopped, resume=True), begun(stopped, resume=True)
    second.put("blocks-0", labels=LABELS[:1])
    assert second.get("blocks-0") is None
    held = first.get("blocks-0")
    assert held is not None
    assert len(held["labels"]) == 3
    second.remove()
    assert first.get("blocks-0") is not None


def test_a_folder_of_somebody_else_or_a_link_is_not_used(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("x")
    place_of(tmp_path / "out").symlink_to(elsewhere)
    work = begun(tmp_path / "out")
    work.put("blocks-0", labels=LABELS)
    assert work.get("blocks-0") is None
    work.remove()
    assert [path.name for path in elsewhere.iterdir()] == ["precious"]


def test_no_space_is_no_reason_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = begun(tmp_path / "out")
    work.put("blocks-0", labels=LABELS)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(np, "savez", full)
    work.put("blocks-1", labels=LABELS)
    assert work.get("blocks-1") is None
    assert sorted(path.name for path in work.folder.iterdir()) == ["blocks-0.npz", "key.json", "lock"]


def test_whoever_ends_the_run_learns_that_it_can_be_resumed(tmp_path: Path) -> None:
    heard = journal.Journal()
    with journal.heard(heard):
        work = begun(tmp_path / "out")
        assert heard.state == "nothing was changed"
        work.put("blocks-0", labels=LABELS)
        assert heard.state == WORD


def test_blocks_that_end_at_the_same_moment_are_all_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked, together = SavedWork._locked, Barrier(8, timeout=30)

    def slowly(self: SavedWork) -> bool:
        time.sleep(0.2)
        return locked(self)

    monkeypatch.setattr(SavedWork, "_locked", slowly)
    work = begun(tmp_path / "out")

    def ended(block: int) -> None:
        together.wait()
        work.put(f"blocks-{block}", labels=LABELS)

    with ThreadPoolExecutor(8) as several:
        list(several.map(ended, range(8)))
    assert all(work.get(f"blocks-{block}") is not None for block in range(8))
