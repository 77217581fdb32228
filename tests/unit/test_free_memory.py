"""The memory that a run may take by default: a share of what is free, in the tightest of its control groups."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.errors import Unreachable
from kinfold.rows import free_memory as module
from kinfold.rows import resources
from kinfold.rows.engines import connection
from kinfold.rows.engines.duckdb import DuckDB
from kinfold.rows.free_memory import free_memory, shared_by
from kinfold.rows.resources import Resources

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
    assert free_memory(machine(tmp_path)) == 20 * GB
    assert free_memory(tmp_path / "another system") is None


@pytest.mark.parametrize(
    ("names", "line", "top"), [(UNIFIED, "0::", ""), (LEGACY, "4:cpu:/x\n5:memory,hugetlb:", "/memory")]
)
def test_a_control_group_leaves_its_limit_less_its_use_without_pages_of_files(
    names: dict[str, str], line: str, top: str, tmp_path: Path
) -> None:
    inner = group(f"{top}/user/job", names, "max" if names is UNIFIED else 1 << 62, GB)
    outer = group(f"{top}/user", names, 8 * GB, 5 * GB, 2 * GB)
    assert free_memory(machine(tmp_path / "outer", f"{line}/user/job\n", {**inner, **outer})) == 5 * GB
    inner = group(f"{top}/user/job", names, 4 * GB, GB)
    assert free_memory(machine(tmp_path / "inner", f"{line}/user/job\n", {**inner, **outer})) == 3 * GB
    own = group(top, names, 6 * GB, GB)  # a container that sees the path of its machine
    assert free_memory(machine(tmp_path / "container", f"{line}/docker/abc\n", own)) == 5 * GB
    full = group(top, names, GB, 3 * GB)
    assert free_memory(machine(tmp_path / "full", f"{line}/../..\n", full)) == 0


def test_a_group_that_is_slowed_down_early_counts_with_that_limit(tmp_path: Path) -> None:
    files = {**group("/a", UNIFIED, 8 * GB, GB), "sys/fs/cgroup/a/memory.high": str(4 * GB)}
    assert free_memory(machine(tmp_path, "0::/a\n", files)) == 3 * GB


@given(
    text=st.text(alphabet="0123:/.ax \n", max_size=30),
    number=st.sampled_from(["", "max", "-1", "x", "1.5", "²"]),
)
def test_files_that_nobody_expects_are_left_aside(
    tmp_path_factory: pytest.TempPathFactory, text: str, number: str
) -> None:
    files = {f"sys/fs/cgroup/a/{name}": number for name in ("memory.max", "memory.current", "memory.stat")}
    found = free_memory(machine(tmp_path_factory.mktemp("m"), f"0::/a\n{text}", files))
    assert found == 20 * GB


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_a_limit_of_addresses_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (3 * GB, 3 * GB))
    pages = GB // resource.getpagesize()
    assert free_memory(machine(tmp_path, files={"proc/self/statm": f"{pages} 5 0"})) == 2 * GB


def test_processes_side_by_side_share_what_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(module.SHARED_BY, shared_by(2)[module.SHARED_BY])
    assert free_memory(machine(tmp_path)) == 10 * GB
    assert shared_by(2) == {module.SHARED_BY: "4"}  # those that one of them starts share its part


def limit_of(engine: DuckDB) -> str:
    """Return the memory that the database of an engine may take."""
    return str(engine._db.row("SELECT current_setting('memory_limit')")[0])


@pytest.mark.parametrize("limits", [Resources(on_disk=True), Resources()], ids=["on disk", "in memory"])
def test_an_engine_may_take_a_quarter_of_what_is_free(limits: Resources, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "free_memory", lambda: 20 * GB)
    with DuckDB(limits) as engine:
        assert limit_of(engine) == "5.0 GiB"
    monkeypatch.setattr(resources, "free_memory", lambda: 0)
    with DuckDB(limits) as engine:
        assert limit_of(engine) == "512.0 MiB"
    with DuckDB(Resources(memory=4 * GB)) as engine:
        assert limit_of(engine) == "1.0 GiB"


def test_a_default_limit_never_makes_a_query_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": [f"{i:09}" for i in range(400_000)]})
    monkeypatch.setattr(resources, "free_memory", lambda: 0)
    monkeypatch.setattr(resources, "LEAST_BY_DEFAULT", 8 << 20)
    with DuckDB(Resources(threads=1)) as engine:
        assert len(engine.tally(engine.read(table), ["x"], {}).sizes) == 400_000
        assert limit_of(engine) != "8.0 MiB"
    monkeypatch.setattr(connection, "reachable_memory", lambda: 9 << 20)  # and there is no more
    with DuckDB(Resources(threads=1)) as engine, pytest.raises(Unreachable, match="not enough memory"):
        engine.tally(engine.read(table), ["x"], {})
