"""Memory: what a run may take by default, and lack of memory in every form."""

from __future__ import annotations

import errno
import gc
import importlib
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.cli import process as memory
from kinfold.errors import Unreachable
from kinfold.tables import resources
from kinfold.tables.duckdb import connection
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.resources import Resources, build_worker_environment, get_free_memory

GB = 1 << 30
MEMINFO = "MemTotal: 33554432 kB\nMemFree: 1048576 kB\nMemAvailable: 20971520 kB\n"  # 20 GB can be had
UNIFIED = {"limit": "memory.max", "use": "memory.current", "pages": "inactive_file"}
LEGACY = {"limit": "memory.limit_in_bytes", "use": "memory.usage_in_bytes", "pages": "total_inactive_file"}


def machine(root: Path, groups: str = "", files: dict[str, str] | None = None) -> Path:
    """Write the files of a machine below a folder."""
    for name, text in {"proc/meminfo": MEMINFO, "proc/self/cgroup": groups, **(files or {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def group(path: str, names: dict[str, str], limit: object, use: int, pages: int = 0) -> dict[str, str]:
    """Return the files of a control group."""
    place = f"sys/fs/cgroup{path}"
    return {
        f"{place}/{names['limit']}": f"{limit}\n",
        f"{place}/{names['use']}": f"{use}\n",
        f"{place}/memory.stat": f"anon 1\n{names['pages']} {pages}\n",
    }


def test_what_the_machine_can_give_is_free(tmp_path: Path) -> None:
    assert get_free_memory(machine(tmp_path)) == 20 * GB
    assert get_free_memory(tmp_path / "another system") is None


@pytest.mark.parametrize(
    ("names", "line", "top"), [(UNIFIED, "0::", ""), (LEGACY, "4:cpu:/x\n5:memory,hugetlb:", "/memory")]
)
def test_a_control_group_leaves_its_limit_less_its_use_without_pages_of_files(
    names: dict[str, str], line: str, top: str, tmp_path: Path
) -> None:
    inner = group(f"{top}/user/job", names, "max" if names is UNIFIED else 1 << 62, GB)
    outer = group(f"{top}/user", names, 8 * GB, 5 * GB, 2 * GB)
    assert get_free_memory(machine(tmp_path / "outer", f"{line}/user/job\n", {**inner, **outer})) == 5 * GB
    inner = group(f"{top}/user/job", names, 4 * GB, GB)
    assert get_free_memory(machine(tmp_path / "inner", f"{line}/user/job\n", {**inner, **outer})) == 3 * GB
    own = group(top, names, 6 * GB, GB)  # a container that sees the path of its machine
    assert get_free_memory(machine(tmp_path / "container", f"{line}/docker/abc\n", own)) == 5 * GB
    full = group(top, names, GB, 3 * GB)
    assert get_free_memory(machine(tmp_path / "full", f"{line}/../..\n", full)) == 0


def test_a_group_that_is_slowed_down_early_counts_with_that_limit(tmp_path: Path) -> None:
    files = {**group("/a", UNIFIED, 8 * GB, GB), "sys/fs/cgroup/a/memory.high": str(4 * GB)}
    assert get_free_memory(machine(tmp_path, "0::/a\n", files)) == 3 * GB


@given(
    text=st.text(alphabet="0123:/.ax \n", max_size=30),
    number=st.sampled_from(["", "max", "-1", "x", "1.5", "²"]),
)
def test_files_that_nobody_expects_are_left_aside(
    tmp_path_factory: pytest.TempPathFactory, text: str, number: str
) -> None:
    files = {f"sys/fs/cgroup/a/{name}": number for name in ("memory.max", "memory.current", "memory.stat")}
    found = get_free_memory(machine(tmp_path_factory.mktemp("m"), f"0::/a\n{text}", files))
    assert found == 20 * GB


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_limit_of_addresses_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (3 * GB, 3 * GB))
    pages = GB // resource.getpagesize()
    assert get_free_memory(machine(tmp_path, files={"proc/self/statm": f"{pages} 5 0"})) == 2 * GB


def test_processes_side_by_side_share_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(resources.PROCESSES_VARIABLE, build_worker_environment(2)[resources.PROCESSES_VARIABLE])
    assert get_free_memory(machine(tmp_path)) == 10 * GB
    assert build_worker_environment(2) == {
        resources.PROCESSES_VARIABLE: "4"
    }  # those that one of them starts share its part


def limit_of(engine: DuckDB) -> str:
    """Return the memory that the database of an engine may take."""
    return str(engine._db.row("SELECT current_setting('memory_limit')")[0])


@pytest.mark.parametrize("limits", [Resources(on_disk=True), Resources()], ids=["on disk", "in memory"])
def test_an_engine_may_take_a_quarter_of_what_is_free(limits: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "get_free_memory", lambda *_: 20 * GB)
    with DuckDB(limits) as engine:
        assert limit_of(engine) == "5.0 GiB"
    monkeypatch.setattr(resources, "get_free_memory", lambda *_: 0)
    with DuckDB(limits) as engine:
        assert limit_of(engine) == "512.0 MiB"
    with DuckDB(Resources(memory=4 * GB)) as engine:
        assert limit_of(engine) == "1.0 GiB"


@pytest.mark.slow
def test_a_default_limit_never_makes_a_query_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": [f"{i:09}" for i in range(400_000)]})
    monkeypatch.setattr(resources, "get_free_memory", lambda *_: 0)
    monkeypatch.setattr(resources, "MIN_ENGINE_BYTES", 8 << 20)
    with DuckDB(Resources(threads=1)) as engine:
        assert len(engine.tally(engine.read(table), ["x"], {}).sizes) == 400_000
        assert limit_of(engine) != "8.0 MiB"
    monkeypatch.setattr(connection, "get_reachable_memory", lambda: 9 << 20)  # and there is no more
    with DuckDB(Resources(threads=1)) as engine, pytest.raises(Unreachable, match="not enough memory"):
        engine.tally(engine.read(table), ["x"], {})


# Want of memory is told as such in every guise that it takes.


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setattr(memory, "_lost_memory_errors", [])
    monkeypatch.setattr(sys, "unraisablehook", lambda met: pytest.fail(f"not heard: {met.exc_type}"))


def after(cause, error):
    """An exception that came of another."""
    try:
        try:
            raise cause
        except type(cause):
            raise error  # noqa: B904
    except type(error) as found:
        return found


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "no"),
        ImportError("libx.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        after(MemoryError(), SystemError("returned a result with an exception set")),
        after(OSError(errno.ENOMEM, "no"), ValueError("half read")),
    ],
)
def test_every_guise_is_told_as_what_it_is(error):
    told = memory.explain_memory_error(error)
    assert told is not None
    assert "memory" in str(told)
    assert told.exit_code == 4


def test_a_bug_is_a_bug():
    assert memory.explain_memory_error(after(KeyError("x"), ValueError("y"))) is None
    assert memory.explain_memory_error(OSError(errno.EACCES, "no")) is None


def test_a_library_that_does_not_say_why_ran_out_of_memory_if_there_is_none(monkeypatch):
    assert memory.explain_memory_error(SystemError("returned NULL without setting an exception")) is None
    monkeypatch.setattr(memory, "MIN_FREE_MEMORY", 1 << 62)
    assert memory.explain_memory_error(SystemError("returned NULL without setting an exception")) is not None
    assert memory.explain_memory_error(ValueError("a bug")) is None


class Grudge:
    """Whose going cannot be told to anybody."""

    def __del__(self):
        raise MemoryError


@pytest.fixture
def listening(monkeypatch):
    """Listens as a run does, and tells with which code it was left."""
    codes = []
    for name in ("_exits", "_lost_memory_errors"):
        monkeypatch.setattr(memory, name, [])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    memory.watch_memory_errors(codes.append)
    return codes


def test_a_run_in_a_process_of_its_own_is_left_at_once(listening):
    with pytest.raises(SystemExit):  # this way out does not end the process, so the exception comes after it
        memory.exit_without_memory(4)
    assert listening == [4]


def test_linear_algebra_is_not_loaded_without_room(listening, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(memory, "MIN_FREE_MEMORY", 1 << 60)  # more than any system gives
    with pytest.raises(MemoryError):
        importlib.import_module("scipy.linalg")


@pytest.mark.slow
def test_memory_that_is_short_in_a_callback_is_remembered(listening):
    grudge = Grudge()
    del grudge
    gc.collect()
    assert memory.explain_memory_error(SystemError("odd")) is not None
    assert memory.explain_memory_error(SystemExit(0)) is None
