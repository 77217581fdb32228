"""Publication: the old release or the whole new one, never a mix and never neither."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from command import content
from kinfold.disk import folders
from kinfold.errors import DataError, PolicyError
from kinfold.release.publication import publish

CERTIFICATE = b'{"made_with": {"kinfold": "0"}}'
OLD = {"public/release.csv": b"old", "public/certificate.json": CERTIFICATE, "internal/audit.json": b"old"}
NEW = {"public/release.csv": b"new", "public/certificate.json": CERTIFICATE, "internal/audit.json": b"new"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
OUT_OLD, OUT_NEW = ({f"out/{name}": data for name, data in files.items()} for files in (OLD, NEW))


def fill(folder: Path) -> None:
    write(folder, NEW)


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "desk" / "out"
    write(folder, OLD)
    return folder


def test_a_new_folder_and_those_above_it_are_made(tmp_path: Path) -> None:
    publish(tmp_path / "a" / "b" / "out", fill)
    assert content(tmp_path) == {f"a/b/out/{name}": data for name, data in NEW.items()}


def test_an_address_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError, match="'s3a://…' is an address"):
        publish(Path("s3a://clinic/out"), Path.mkdir)
    assert not [*tmp_path.iterdir()]


def test_an_empty_folder_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    publish(tmp_path / "out", fill)
    assert content(tmp_path / "out") == NEW


def test_a_release_is_replaced_only_by_force(out: Path) -> None:
    with pytest.raises(PolicyError, match="already holds a release"):
        publish(out, fill)
    assert content(out.parent) == OUT_OLD
    publish(out, fill, force=True)
    assert content(out.parent) == OUT_NEW


@pytest.mark.parametrize(
    "error", [DataError("bad"), KeyboardInterrupt(), OSError(28, "No space left on device"), RuntimeError()]
)
def test_whatever_goes_wrong_while_filling_nothing_is_lost_or_left(out: Path, error: BaseException) -> None:
    def half(folder: Path) -> None:
        write(folder, {"public/release.csv": b"half"})
        raise error

    expected = PolicyError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as caught:
        publish(out, half, force=True)
    if isinstance(error, OSError):
        assert "no space left to write" in str(caught.value)
        assert "free some space" in caught.value.problems[0].fix
    assert content(out.parent) == OUT_OLD
    assert list(out.parent.iterdir()) == [out]


def test_while_it_is_made_a_release_is_for_the_owners_eyes(out: Path) -> None:
    seen = []

    def look(folder: Path) -> None:
        (beside,) = (path for path in out.parent.iterdir() if path != out)
        seen.append((folder.parent == beside, beside.stat().st_mode & 0o077))
        fill(folder)

    publish(out, look, force=True)
    assert seen == [(True, 0)]


def test_afterwards_the_public_part_has_the_usual_rights_and_the_internal_one_none_for_others(out: Path) -> None:
    mask = os.umask(0o022)
    try:
        publish(out, fill, force=True)
    finally:
        os.umask(mask)
    modes = {
        path.name: path.stat().st_mode & 0o777
        for path in (out, out / "public", out / "internal", out / "public" / "release.csv")
    }
    assert modes == {"out": 0o755, "public": 0o755, "internal": 0o700, "release.csv": 0o644}


class Watcher:
    """Looks at a release again and again; what it sees amiss is raised in `result`, never lost."""

    def __init__(self, out: Path) -> None:
        self.out, self.seen, self.looks, self.stop = out, set[bytes](), 0, threading.Event()

    def watch(self) -> None:
        while not self.stop.is_set():
            folder = os.open(self.out, os.O_RDONLY)  # fails if there is none at this moment
            try:
                self.seen.add(self._look(folder))
            finally:
                os.close(folder)
            self.looks += 1

    def _look(self, folder: int) -> bytes:
        try:
            file = os.open("public/release.csv", os.O_RDONLY, dir_fd=folder)
        except FileNotFoundError:
            # Legitimate only in a folder that has lost its name since it was opened, and is being removed.
            assert not os.path.samestat(os.fstat(folder), os.stat(self.out)), "there was half a release"  # noqa: PTH116
            return b"removed"
        try:
            return os.read(file, 10)
        finally:
            os.close(file)


def test_there_is_a_release_at_every_moment_of_the_exchange(out: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux exchanges two folders in one step")
    watcher = Watcher(out)
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watcher.watch)
        try:
            for _ in range(50):
                before, until = watcher.looks, time.monotonic() + 30
                publish(out, fill, force=True)
                while watcher.looks < before + 2 and not watching.done() and time.monotonic() < until:
                    time.sleep(0.0005)  # at least one whole look at each release
                assert watching.done() or watcher.looks >= before + 2, "the watcher stands still"
        finally:
            watcher.stop.set()
        watching.result()  # raises what the watcher saw
    assert watcher.looks >= 100
    assert b"new" in watcher.seen
    assert watcher.seen <= {b"old", b"new", b"removed"}


def test_the_watcher_would_tell_of_a_moment_without_a_release(out: Path) -> None:
    watcher = Watcher(out)
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watcher.watch)
        out.rename(out.with_name("away"))
        with pytest.raises(FileNotFoundError):
            watching.result(timeout=30)


def test_the_watcher_would_tell_of_half_a_release(out: Path) -> None:
    watcher = Watcher(out)
    (out / "public" / "release.csv").unlink()
    with pytest.raises(AssertionError, match="half a release"):
        watcher.watch()


@pytest.fixture
def in_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that cannot exchange two folders in one step."""
    monkeypatch.setattr(folders, "_swap_atomically", lambda *_: False)


@pytest.mark.usefixtures("in_two_steps")
def test_where_folders_cannot_be_exchanged_they_are_renamed_one_after_the_other(out: Path) -> None:
    publish(out, fill, force=True)
    assert content(out.parent) == OUT_NEW
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.usefixtures("in_two_steps")
def test_where_the_second_rename_fails_the_old_release_is_put_back(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if path.name == "new" and not target.exists():
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(PolicyError, match="Input/output error"):
        publish(out, fill, force=True)
    assert content(out.parent) == OUT_OLD
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.usefixtures("in_two_steps")
def test_an_old_release_that_cannot_be_put_back_is_not_removed_but_put_back_by_the_next_run(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename

    def failing(path: Path, target: Path) -> Path:
        if target == out:
            raise OSError(5, "Input/output error")
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(folders, "place_folder", lambda *_: False)
        patched.setattr(Path, "rename", failing)
        with pytest.raises(PolicyError, match="Input/output error"):
            publish(out, fill, force=True)
    assert not out.exists()
    (beside,) = out.parent.iterdir()
    assert content(beside / "old") == OLD
    os.close(folders._locks.pop(beside))  # as when this process has ended
    with pytest.raises(PolicyError, match="already holds a release"):
        publish(out, fill)
    assert content(out.parent) == OUT_OLD


def test_a_signal_in_the_exchange_is_delivered_after_it(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swapped = folders._swap_atomically

    def disturbed(one: Path, other: Path) -> bool:
        signal.raise_signal(signal.SIGINT)
        return swapped(one, other)

    monkeypatch.setattr(folders, "_swap_atomically", disturbed)
    notes = folders.Journal()
    with folders.record_to(notes), pytest.raises(KeyboardInterrupt):
        publish(out, fill, force=True)
    assert notes.state == f"the new release is in place at '{out}'"
    assert content(out.parent) == OUT_NEW


def test_what_is_written_is_flushed_before_it_is_named_and_the_folder_that_names_it_after(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    fsync, swapped = os.fsync, folders._swap_atomically

    def synced(file: int) -> None:
        told.append(str(Path(f"/proc/self/fd/{file}").readlink()).removeprefix(str(out.parent)).split("/new")[-1])
        fsync(file)

    def named(one: Path, other: Path) -> bool:
        told.append("exchange")
        return swapped(one, other)

    if not Path("/proc/self/fd").exists():
        pytest.skip("this system does not tell which file is open")
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(folders, "_swap_atomically", named)
    publish(out, fill, force=True)
    at = told.index("exchange")
    assert set(told[:at]) == {"", "/public", "/internal", *(f"/{name}" for name in NEW)}
    for name in NEW:
        assert told.index(f"/{name}") < told.index(f"/{name.split('/')[0]}") < at
    assert told[at + 1 :] == [""]  # the folder that both stand in


def test_folders_with_the_names_of_a_release_are_no_release_without_a_certificate(out: Path) -> None:
    for held in (None, b"", b"[]", b"{}", b'{"made_with": null}', b'{"made_with": {"another": "1"}}', b"[" * 99999):
        certificate = out / "public" / "certificate.json"
        certificate.unlink(missing_ok=True)
        if held is not None:
            certificate.write_bytes(held)
        before = content(out.parent)
        with pytest.raises(PolicyError, match="has no kinfold certificate"):
            publish(out, fill, force=True)
        assert content(out.parent) == before


def test_other_things_that_came_while_it_was_made_are_not_replaced_even_by_force(out: Path) -> None:
    def meanwhile(folder: Path) -> None:
        fill(folder)
        (out / "thesis.txt").write_text("ten years of work")

    with pytest.raises(PolicyError, match="holds files that do not belong"):
        publish(out, meanwhile, force=True)
    assert content(out) == {**OLD, "thesis.txt": b"ten years of work"}


@pytest.mark.parametrize("there", ["nothing", "empty"])
def test_whoever_comes_second_to_a_new_folder_is_refused_at_the_exchange(tmp_path: Path, there: str) -> None:
    out = tmp_path / "out"
    if there == "empty":
        out.mkdir()

    def second(folder: Path) -> None:
        write(folder, OLD)
        publish(out, fill)  # another run, from start to end

    with pytest.raises(PolicyError, match="already holds a release"):
        publish(out, second)
    assert content(tmp_path) == OUT_NEW
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("there", ["a file", "a link"])
def test_something_else_that_took_the_name_meanwhile_is_left_alone(tmp_path: Path, there: str) -> None:
    def meanwhile(folder: Path) -> None:
        fill(folder)
        (tmp_path / "out").write_text("other") if there == "a file" else (tmp_path / "out").symlink_to("nowhere")

    with pytest.raises(PolicyError, match="is not a folder"):
        publish(tmp_path / "out", meanwhile)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_release_that_somebody_takes_away_meanwhile_is_no_hindrance(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, places = folders.place_folder, 0

    def taken_away(made: Path, folder: Path) -> bool:
        nonlocal places
        places += 1
        if places > 1:
            return place(made, folder)
        shutil.rmtree(out)
        return False

    monkeypatch.setattr(folders, "place_folder", taken_away)
    publish(out, fill, force=True)
    assert places == 2
    assert content(out.parent) == OUT_NEW


def test_a_place_that_never_comes_to_rest_is_given_up(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "place_folder", lambda *_: False)
    monkeypatch.setattr(folders, "swap_folders", lambda *_: False)
    with pytest.raises(PolicyError, match="other processes are changing"):
        publish(out, fill, force=True)
    assert content(out.parent) == OUT_OLD


def test_a_release_can_be_published_from_any_thread(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        pool.submit(publish, tmp_path / "out", fill).result()
    assert content(tmp_path / "out") == NEW


def test_a_folder_in_a_place_that_may_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PolicyError, match="is not writable"):
        publish(tmp_path / "file" / "out", fill)


RACER = """
import sys; from pathlib import Path; from kinfold.errors import PolicyError
from kinfold.release.publication import publish
def fill(folder):
    for part in ("public", "internal"):
        (folder / part).mkdir()
        for name in range(20):
            (folder / part / str(name)).write_text(sys.argv[2])
    (folder / "public" / "certificate.json").write_text('{"made_with": {"kinfold": "0"}}')
    print("ready", flush=True); sys.stdin.readline()
try:
    publish(Path(sys.argv[1]), fill, force=len(sys.argv) > 3)
except PolicyError as error:
    print(error); sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("force", [False, True])
def test_of_two_at_once_one_wins_whole(tmp_path: Path, force: bool) -> None:
    words = [sys.executable, "-c", RACER, str(tmp_path / "out")]
    racers = [
        subprocess.Popen(
            [*words, name, *(["force"] if force else [])],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two", "three")
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.communicate(timeout=60)[0] for racer in racers]
    assert sorted(racer.returncode for racer in racers) == ([0, 0, 0] if force else [0, 2, 2])
    assert force or all("already holds a release" in each for each in said if each)
    held = content(tmp_path / "out")
    held.pop("public/certificate.json")
    assert len(held) == 40
    assert len(set(held.values())) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_folders_opened_for_a_release_that_failed_go_again(tmp_path: Path) -> None:
    def failing(folder: Path) -> None:
        raise DataError("bad")

    (tmp_path / "a").mkdir()
    with pytest.raises(DataError):
        publish(tmp_path / "a" / "b" / "c" / "out", failing)
    assert [path.name for path in tmp_path.rglob("*")] == ["a"]


def test_a_killed_run_leaves_the_old_release_whole(out: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from kinfold.release.publication import publish\n"
        "def fill(folder):\n"
        "    (folder / 'public').mkdir(); (folder / 'public' / 'release.csv').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "publish(Path(sys.argv[1]), fill, force=True)"
    )
    ran = subprocess.run([sys.executable, "-c", code, str(out)], env=ENVIRONMENT, check=False)
    assert ran.returncode == -signal.SIGKILL
    assert content(out) == OLD
    (left,) = (path for path in out.parent.iterdir() if path != out)
    assert left.name.startswith(".out-")
    assert left.stat().st_mode & 0o077 == 0
    publish(out, fill, force=True)
    assert list(out.parent.iterdir()) == [out]  # the next run has swept it


def test_a_link_is_not_followed(out: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(out)
    with pytest.raises(PolicyError, match="is not a folder"):
        publish(tmp_path / "link", fill, force=True)
    assert content(out) == OLD


@pytest.mark.parametrize("name", [".", "./", ".."])
def test_the_folder_one_stands_in_is_not_pulled_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "here" / "below").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here" / "below")
    with pytest.raises(PolicyError):
        publish(Path(name), fill, force=True)
    assert content(tmp_path) == {}
    assert Path.cwd().exists()
