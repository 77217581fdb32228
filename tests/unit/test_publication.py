"""Publication: the old release or the whole new one, never a mix and never neither."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from command import content
from kinfold import publication
from kinfold.errors import DataError, PolicyError
from kinfold.publication import publish

OLD = {"public/release.csv": b"old", "internal/audit.json": b"old"}
NEW = {"public/release.csv": b"new", "internal/audit.json": b"new"}


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


def test_an_empty_folder_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    publish(tmp_path / "out", fill)
    assert content(tmp_path / "out") == NEW


def test_a_release_is_replaced_only_by_force(out: Path) -> None:
    with pytest.raises(PolicyError, match="holds a release already"):
        publish(out, fill)
    assert content(out.parent) == {f"out/{name}": data for name, data in OLD.items()}
    publish(out, fill, force=True)
    assert content(out.parent) == {f"out/{name}": data for name, data in NEW.items()}


@pytest.mark.parametrize(
    "error", [DataError("bad"), KeyboardInterrupt(), OSError(28, "No space left on device"), RuntimeError()]
)
def test_whatever_goes_wrong_while_filling_nothing_is_lost_or_left(out: Path, error: BaseException) -> None:
    def half(folder: Path) -> None:
        write(folder, {"public/release.csv": b"half"})
        raise error

    expected = PolicyError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        publish(out, half, force=True)
    assert content(out.parent) == {f"out/{name}": data for name, data in OLD.items()}
    assert list(out.parent.iterdir()) == [out]


def test_no_space_is_told_as_such(out: Path) -> None:
    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(PolicyError, match="no space left to write") as caught:
        publish(out, full, force=True)
    assert "free some space" in caught.value.problems[0].fix


def test_while_it_is_made_a_release_is_for_the_owners_eyes(out: Path) -> None:
    seen = []

    def look(folder: Path) -> None:
        seen.append((folder.parent == out.parent, folder.stat().st_mode & 0o077))
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


def test_there_is_a_release_at_every_moment_of_the_exchange(out: Path) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux exchanges two folders in one step")
    seen: set[bytes] = set()
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            folder = os.open(out, os.O_RDONLY)  # one folder, whatever its name becomes
            file = os.open("public/release.csv", os.O_RDONLY, dir_fd=folder)
            seen.add(os.read(file, 10))
            os.close(file)
            os.close(folder)

    failed: list[BaseException] = []

    def watched() -> None:
        try:
            watch()
        except FileNotFoundError as error:
            if not Path("/proc").exists() or "public" not in str(error):
                failed.append(error)

    watcher = threading.Thread(target=watched)
    watcher.start()
    try:
        for _ in range(50):
            publish(out, fill, force=True)
    finally:
        stop.set()
        watcher.join()
    assert failed == []
    assert seen <= {b"old", b"new"}


def test_where_folders_cannot_be_exchanged_they_are_renamed_one_after_the_other(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publication, "_swapped", lambda *_: False)
    publish(out, fill, force=True)
    assert content(out.parent) == {f"out/{name}": data for name, data in NEW.items()}


def test_a_killed_run_leaves_the_old_release_whole(out: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from kinfold.publication import publish\n"
        "def fill(folder):\n"
        "    (folder / 'public').mkdir(); (folder / 'public' / 'release.csv').write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "publish(Path(sys.argv[1]), fill, force=True)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", code, str(out)], env=environment, check=False)
    assert ran.returncode == -signal.SIGKILL
    assert content(out) == OLD
    left = [path for path in out.parent.iterdir() if path != out]
    assert all(path.name.startswith(".out-") and path.stat().st_mode & 0o077 == 0 for path in left)


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
