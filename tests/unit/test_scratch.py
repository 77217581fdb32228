"""Temporary folders: the owner's alone, gone with the run, and swept by the next one, nothing else being touched."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kinfold.disk import journal, scratch

LIVE = """
import sys; from pathlib import Path; from kinfold.disk import scratch
folder = scratch.make("kinfold-", Path(sys.argv[1])); (folder / "copy.csv").write_text("original")
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


def left_behind(place: Path, name: str = HEX, told: object = None, age: float = 0.0) -> Path:
    """A folder as a killed run leaves it."""
    folder = place / name
    folder.mkdir(mode=0o700)
    told = {"purpose": "", "host": platform.node()} if told is None else told
    (folder / scratch.MARK).write_text(json.dumps(told))
    (folder / "copy.csv").write_text("original")
    old(folder / scratch.MARK, age)
    return folder


def old(path: Path, age: float) -> None:
    os.utime(path, (time.time() - age, time.time() - age))


def test_a_folder_is_the_owners_alone_and_goes_with_all_it_holds(tmp_path: Path) -> None:
    folder = scratch.make("kinfold-", tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "b" / "c").write_text("x")
    scratch.remove(folder)
    assert list(tmp_path.iterdir()) == []


def test_the_journal_knows_a_folder_before_it_is_there_and_until_it_is_gone(tmp_path: Path) -> None:
    notes, there = journal.Journal(), []
    with (
        journal.heard(notes),
        journal.heard(lambda event, what: there.append((event, Path(what).exists()))),
    ):
        folder = scratch.make("kinfold-", tmp_path)
        assert notes.made == [str(folder)]
        scratch.remove(folder)
        assert notes.made == []
    assert there == [("made", False), ("gone", False)]


def test_what_a_killed_run_left_is_swept_and_what_a_live_run_uses_is_not(tmp_path: Path) -> None:
    killed, left = start(tmp_path)
    live, used = start(tmp_path)
    killed.kill()
    killed.communicate()
    scratch.sweep("kinfold-", tmp_path)
    assert list(tmp_path.iterdir()) == [used]
    assert (used / "copy.csv").read_text() == "original"
    live.kill()
    live.communicate()
    scratch.sweep("kinfold-", tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not left.exists()


def test_a_folder_of_this_very_process_is_not_swept(tmp_path: Path) -> None:
    folder = scratch.make("kinfold-", tmp_path)
    scratch.sweep("kinfold-", tmp_path)
    assert folder.exists()
    scratch.remove(folder)


@pytest.mark.parametrize("name", ["kinfold-notes", "kinfold-", "kinfold-0123abcde", "kinfold-0123ABCD", "my-0123abcd"])
def test_another_name_is_left_alone(tmp_path: Path, name: str) -> None:
    folder = left_behind(tmp_path, name)
    scratch.sweep("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()


@pytest.mark.parametrize("told", [[], {}, {"purpose": "other", "host": platform.node()}, 5, None, "text"], ids=repr)
def test_a_mark_for_another_purpose_or_of_another_kind_is_left_alone(tmp_path: Path, told: object) -> None:
    folder = left_behind(tmp_path, told="" if told is None else told, age=10 * scratch.DAY)
    scratch.sweep("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()


def test_a_folder_merely_named_so_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / HEX
    folder.mkdir(mode=0o700)
    (folder / "thesis.txt").write_text("ten years of work")
    old(folder, 10 * scratch.DAY)
    scratch.sweep("kinfold-", tmp_path)
    assert (folder / "thesis.txt").exists()


def test_what_another_machine_left_is_swept_after_a_day(tmp_path: Path) -> None:
    folder = left_behind(tmp_path, told={"purpose": "", "host": "elsewhere"})
    scratch.sweep("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()
    old(folder / scratch.MARK, scratch.DAY + 60)
    scratch.sweep("kinfold-", tmp_path)
    assert not folder.exists()


@pytest.mark.parametrize("half", [False, True])
def test_a_folder_that_was_never_marked_is_swept_when_old_and_empty(tmp_path: Path, half: bool) -> None:
    folder = tmp_path / HEX
    folder.mkdir(mode=0o700)
    if half:
        (folder / scratch.HALF_MADE).write_text("")
    scratch.sweep("kinfold-", tmp_path)
    assert folder.exists()  # somebody may be marking it at this moment
    old(folder, 2 * scratch.MINUTE)
    scratch.sweep("kinfold-", tmp_path)
    assert not folder.exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    target = left_behind(tmp_path / "home")
    (tmp_path / "tmp" / HEX).symlink_to(target)  # a folder
    marked = tmp_path / "tmp" / "kinfold-aaaaaaaa"
    marked.mkdir(mode=0o700)
    (marked / scratch.MARK).symlink_to(target / scratch.MARK)  # a mark
    (marked / "copy.csv").write_text("mine")
    real = left_behind(tmp_path / "tmp", "kinfold-bbbbbbbb")
    (real / "to").symlink_to(target)  # inside
    scratch.sweep("kinfold-", tmp_path / "tmp")
    assert sorted(path.name for path in (tmp_path / "tmp").iterdir()) == [HEX, "kinfold-aaaaaaaa"]
    assert (target / "copy.csv").exists()
    assert (marked / "copy.csv").exists()


def test_what_another_user_left_is_left_alone(tmp_path: Path) -> None:
    folder = left_behind(tmp_path)
    try:
        os.chown(folder, 65534, 65534)
    except PermissionError:
        pytest.skip("only root may give a folder away")
    scratch.sweep("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()
    os.chown(folder, os.geteuid(), os.getegid())
    os.chown(folder / scratch.MARK, 65534, 65534)
    scratch.sweep("kinfold-", tmp_path)
    assert (folder / "copy.csv").exists()


def test_a_name_that_is_taken_is_left_to_whoever_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = iter(["0123abcd", "89abcdef"])
    (tmp_path / HEX).mkdir()
    monkeypatch.setattr("secrets.token_hex", lambda _: next(names))
    assert scratch.make("kinfold-", tmp_path).name == "kinfold-89abcdef"
    assert list((tmp_path / HEX).iterdir()) == []


def test_a_temporary_folder_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kinfold.errors import PolicyError
    from kinfold.rows.engines.connection import Connection

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(PolicyError, match="cannot make a temporary folder: No such file") as caught:
        Connection()
    assert "TMPDIR" in caught.value.problems[0].fix


def test_sweeping_where_there_is_nothing_or_no_folder_is_quiet(tmp_path: Path) -> None:
    scratch.sweep("kinfold-", tmp_path)
    scratch.sweep("kinfold-", tmp_path / "nowhere")


def test_a_copy_of_the_original_goes_as_soon_as_it_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    from kinfold.rows.engines.duckdb import DuckDB

    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "latin.csv").write_bytes("name,age\nJosé,3\nZoë,4\n".encode("latin-1"))
    with DuckDB() as engine:
        frame = engine.read(tmp_path / "latin.csv")
        assert engine.rows(frame).num_rows == 2
        held = [path for path in (tmp_path / "tmp").rglob("*") if path.is_file()]
        assert [path.name for path in held] == [scratch.MARK]
    assert list((tmp_path / "tmp").iterdir()) == []
