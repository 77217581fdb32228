"""Faults: whatever happens to a run, the old release or the whole new one is there, and nothing of the original is.

Killed at random moments, a full disk, a disk that becomes read-only, files that may not grow, no memory. Each time the
release that is there holds, what may be left is for the owner's eyes, and the next run works and sweeps.
"""

import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from command import content, run, text
from kinfold.disk import folders
from kinfold.release import folder as release_folder
from kinfold.tables import resources
from ledger import cases, tally_up
from processes import Command, ending, gone, start

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes and mounts as Linux has them"),
    pytest.mark.trust("faults"),
]

KILLS = min(200, cases(6, 20))
SECRET = "Xanthippe"
TABLE = f"name,age,zip,disease\n{SECRET},20,10000,a\n" + "\n".join(
    f"p{i},{20 + i % 50},{10000 + i % 7},{'abc'[i % 3]}" for i in range(80)
)
LISTS = ("--identifier", "name", "--quasi", "age,zip", "--confidential", "disease")
ARGS = (*LISTS, "-k", "3", "--method", "mdav")  # too few records to need a kernel


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("earlier")
    table = text(place, "table.csv", TABLE + "\n")
    assert run("anonymize", table, *ARGS, "--out", place / "out").code == 0
    return place


@pytest.fixture
def desk(earlier: Path, tmp_path: Path) -> Path:
    """A folder with a table and an earlier release."""
    shutil.copytree(earlier, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tmp").mkdir()
    return tmp_path


def anonymize(desk: Path, out: str = "out", *args: object, **options: object) -> Command:
    return start(desk, "anonymize", desk / "table.csv", *ARGS, "--out", desk / out, "--force", *args, **options)


def left(desk: Path) -> list[Path]:
    """What is there besides the table and whole releases."""
    return sorted([*desk.glob(".*"), *(desk / "tmp").iterdir()])


def check_hidden(desk: Path) -> None:
    """Whatever a run left is for the owner's eyes; so is the internal part of a release."""
    for path in left(desk):
        found = path.lstat()
        assert stat.S_ISDIR(found.st_mode)
        assert found.st_mode & 0o077 == 0, f"{path} is open to others"
    for internal in desk.glob("*/internal"):
        assert internal.stat().st_mode & 0o077 == 0


def check_whole(release: Path) -> None:
    """A release is whole: its parts are all there, and it holds."""
    assert sorted(path.name for path in release.iterdir()) == ["internal", "public"]
    run("verify", release).ok()
    assert SECRET not in (release / "public" / "release.csv").read_text()


# Kills


def took(desk: Path) -> float:
    """How long a whole run takes at this moment."""
    started = time.monotonic()
    with ending(anonymize(desk)) as command:
        assert command.ended() == 0, command.said
    return time.monotonic() - started


def killed(desk: Path, out: str, number: signal.Signals, after: float) -> Command:
    with ending(anonymize(desk, out)) as command:
        try:
            command.process.wait(after)
        except subprocess.TimeoutExpired:
            children = Path(f"/proc/{command.process.pid}/task/{command.process.pid}/children").read_text().split()
            command.process.send_signal(number)
            command.ended()
            assert all(gone(int(child)) for child in children)
        else:
            command.ended()
    return command


def identity(release: Path) -> int | None:
    return release.stat().st_ino if release.exists() else None


def check_told(command: Command, number: signal.Signals, changed: bool) -> None:
    """The code and the words are true of what is there."""
    code = command.process.returncode
    begun = {signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}[number]
    assert code in (0, begun, -number), command.said  # -number: before Python had begun
    assert "Traceback" not in command.said
    if code == 0:
        assert changed
    elif code == 143:
        assert ("the new release is in place" in command.said) is changed
        assert ("nothing was changed" in command.said) is not changed
        assert len(command.said.splitlines()) == 1


@pytest.mark.trust("runs of kills")
@pytest.mark.timeout(1500)
def test_kills_at_random_moments(desk: Path, record_property: Callable[[str, object], None]) -> None:
    rng = random.Random(7)
    length, changes, cut = took(desk), 0, 0
    for trial in range(KILLS):
        tally_up("faults tried")
        number = rng.choice([signal.SIGKILL, signal.SIGTERM])
        out = "out" if trial % 4 else "fresh"  # to replace, or the first
        shutil.rmtree(desk / "fresh", ignore_errors=True)
        before = identity(desk / out)
        # Evenly over the whole run, and a third of them where the files are written and exchanged.
        command = killed(desk, out, number, length * (rng.uniform(0.6, 1.1) if trial % 3 == 0 else rng.uniform(0, 1.1)))
        changed = identity(desk / out) != before
        check_told(command, number, changed)
        check_hidden(desk)
        check_whole(desk / "out")
        if (desk / "fresh").exists():
            check_whole(desk / "fresh")
        if number is signal.SIGTERM and command.process.returncode == 143:
            assert not list((desk / "tmp").iterdir()) or cut  # its own, unless an earlier kill left some
        tally_up("faults passed")
        changes, cut = changes + changed, cut + (command.process.returncode != 0)
        if trial % 5 == 4:
            length = (length + took(desk)) / 2
            check_swept(desk)
            cut = 0
    took(desk)
    assert changes < KILLS
    record_property("kills survived", KILLS)


def check_swept(desk: Path) -> None:
    """The run that went through has swept what the killed ones left, but for what another folder's run left."""
    names = [path for path in left(desk) if not path.name.startswith(".fresh-")]
    marked = [path for path in names if (path / ".kinfold").exists() or any(path.rglob("*.csv"))]
    assert marked == []


# Others


def test_of_two_runs_to_one_new_folder_one_wins_and_the_other_is_told(desk: Path) -> None:
    waiting = (
        "import sys, time; from pathlib import Path; from kinfold.disk import folders; place = folders.place_folder\n"
        "def together(*args):\n"
        "    print('ready', file=sys.stderr, flush=True)\n"
        f"    while not Path({str(desk / 'go')!r}).exists(): time.sleep(0.001)\n"
        "    return place(*args)\n"
        "folders.place_folder = together"
    )
    args = ("anonymize", desk / "table.csv", *ARGS, "--out", desk / "new")
    with ending(start(desk, *args, before=waiting)) as one, ending(start(desk, *args, before=waiting)) as two:
        one.until("ready")
        two.until("ready")
        text(desk, "go", "")
        assert sorted([one.ended(), two.ended()]) == [0, 2]
    second = one if one.process.returncode else two
    assert "already holds a release" in second.said
    assert "fix: " in second.said
    check_whole(desk / "new")
    assert left(desk) == []


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_source_that_changes_while_it_is_read(desk: Path, encoding: str) -> None:
    text(desk, "table.csv", (TABLE + "\nJosé,30,10001,b\n").encode(encoding))
    before = content(desk / "out")
    growing = (
        "from kinfold.tables.readers import reading; load = reading._load_csv\n"
        "def changed(*args, **form):\n"
        f"    open({str(desk / 'table.csv')!r}, 'a').write('p,30,10001,b\\n')\n"
        "    return load(*args, **form)\n"
        "reading._load_csv = changed"
    )
    with ending(anonymize(desk, before=growing)) as command:
        assert command.ended() == 3, command.said
    assert "changed while it was read" in command.said
    assert content(desk / "out") == before
    assert left(desk) == []


# Disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a small disk of a given size."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = []

    def mount(size: str) -> Path:
        found = shutil.which("mount")
        words = [found or "mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        if not found or subprocess.run(words, check=False, capture_output=True).returncode:
            pytest.skip("this system does not let the tests mount a small disk")
        mounted.append(place)
        return place

    yield mount
    for each in mounted:
        subprocess.run(["umount", "-l", each], check=True)


def size_of(folder: Path) -> int:
    return sum(4096 * (1 + path.stat().st_size // 4096) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.8, 0.95, 1.5])
def test_a_disk_that_gets_full_at_any_moment(desk: Path, disk: Callable[[str], Path], share: float) -> None:
    release = size_of(desk / "out")
    place = disk(f"{int(release * (1 + share)) // 1024}k")
    shutil.copytree(desk / "out", place / "out")
    before = content(place)
    ran = run("anonymize", desk / "table.csv", *ARGS, "--out", place / "out", "--force")
    assert ran.code == (2 if share < 1 else 0), ran.err
    assert [path.name for path in place.iterdir()] == ["out"]
    check_whole(place / "out")
    if share < 1:
        assert "space" in ran.err
        assert "fix: " in ran.err
        assert content(place) == before


def test_a_temporary_folder_that_gets_full(desk: Path, disk: Callable[[str], Path]) -> None:
    place = disk("64k")
    rows = "\n".join(f"José,{20 + i % 50},{10000 + i % 7},a" for i in range(9000))
    text(desk, "table.csv", f"name,age,zip,disease\n{rows}\n".encode("latin-1"))
    before = content(desk / "out")
    environment = "import os; os.environ['TMPDIR'] = " + repr(str(place))
    with ending(anonymize(desk, before=environment)) as command:
        assert command.ended() == 2, command.said
    assert "set TMPDIR to another folder" in command.said
    assert content(desk / "out") == before
    assert list(place.iterdir()) == []


LARGE = ("--identifier", "name", "--quasi", "age", "--confidential", "disease", "-k", "3", "--method", "lattice")
TREE = ("--set", "columns.age.hierarchy={intervals=[5,10,50]}", "--memory", "600MB")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose rows take some megabytes on disk."""
    chance, n = np.random.default_rng(0), 200_000
    ages, ill = chance.integers(20, 90, n), chance.choice(["a", "b", "c"], n)
    table = pa.table({"name": [f"{SECRET}{i:07d}" for i in range(n)], "age": ages, "disease": ill})
    place = tmp_path_factory.mktemp("large") / "table.parquet"
    parquet.write_table(table, place)
    return place


@pytest.mark.parametrize("size", ["512k", "1m", "2m", None], ids=str)
def test_too_little_disk_for_the_spill_or_too_little_memory(
    large: Path, tmp_path: Path, disk: Callable[[str], Path], size: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("the disk that rows are spilled to is full", "engine.spill")
    if size is None:  # a share of the memory as if the table were a hundred times as large
        words = ("not enough memory", "engine.memory")
        monkeypatch.setattr(resources, "ENGINE_MEMORY_SHARE", 0.003)
    before, place = large.read_bytes(), disk(size or "64m")
    ran = run("anonymize", large, *LARGE, *TREE, "--spill", place, "--out", tmp_path / "out").fails(4, *words)
    assert SECRET not in ran.err
    assert list(place.iterdir()) == []
    assert not (tmp_path / "out").exists()
    assert large.read_bytes() == before


def test_a_disk_that_is_read_only(desk: Path, disk: Callable[[str], Path]) -> None:
    place = disk("4m")
    shutil.copytree(desk / "out", place / "out")
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    ran = run("anonymize", desk / "table.csv", *ARGS, "--out", place / "out", "--force").fails(2)
    assert "not writable" in ran.err or "Read-only" in ran.err
    assert "fix: " in ran.err
    check_whole(place / "out")


def test_a_disk_that_becomes_read_only_meanwhile(
    desk: Path, disk: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = disk("4m")
    shutil.copytree(desk / "out", place / "out")
    before = content(place / "out")
    fill = release_folder._fill

    def filled(*args: object) -> None:
        fill(*args)  # type: ignore[arg-type]
        (beside,) = (path for path in folders._locks if path.parent == place)
        os.close(folders._locks.pop(beside))  # no disk becomes read-only while a file of it is open for writing
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)

    args = ("anonymize", desk / "table.csv", *ARGS, "--out", place / "out", "--force")
    with monkeypatch.context() as patched:
        patched.setattr(release_folder, "_fill", filled)
        ran = run(*args)
    assert ran.code == 2, ran.err
    assert "Read-only file system" in ran.err
    assert content(place / "out") == before
    subprocess.run(["mount", "-o", "remount,rw", place], check=True)
    assert all(path.stat().st_mode & 0o077 == 0 for path in place.iterdir() if path.name != "out")
    assert run(*args).code == 0
    assert [path.name for path in place.iterdir()] == ["out"]
    check_whole(place / "out")


# Limits


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        *((resource.RLIMIT_FSIZE, size) for size in (0, 5_000, 15_000)),
        *((resource.RLIMIT_AS, megabytes << 20) for megabytes in (150, 450, 1400)),
        *(pytest.param(resource.RLIMIT_AS, megabytes << 20, marks=pytest.mark.long) for megabytes in (300, 700, 1000)),
        pytest.param(resource.RLIMIT_FSIZE, 500, marks=pytest.mark.long),
    ],
)
def test_files_that_may_not_grow_and_too_little_memory(desk: Path, kind: int, most: int) -> None:
    codes, word = ((2,), "space") if kind == resource.RLIMIT_FSIZE else ((1, 4), "memory")
    before = content(desk / "out")
    with ending(anonymize(desk, preexec_fn=lambda: resource.setrlimit(kind, (most, most)))) as command:
        assert command.ended() in codes, command.said
    assert word in command.said
    assert "fix: " in command.said
    assert "Traceback" not in command.said
    assert SECRET not in command.said
    assert content(desk / "out") == before
    assert left(desk) == []
