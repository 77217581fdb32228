"""The grid: run every method at every k (and t) on one table, in parallel, and cache each result.

A result is cached under a name made of the table, the policy and the setting, so a stopped comparison continues where
it was. If the table, the policy or a hierarchy file changes, it starts again. Two worker processes run at a time. The
pool is loky's, because Python's own would run the caller's script again. Workers end with the caller; their temporary
files are in a folder of the caller.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from kinfold import __version__
from kinfold.disk import folders
from kinfold.errors import DataError, KinfoldError, PolicyError, Unreachable, report_failed_write, require_regular_file
from kinfold.policy.model import Policy
from kinfold.policy.registry import foreign_keys
from kinfold.policy.toml_values import override_keys
from kinfold.progress import Progress, no_progress
from kinfold.tables.databases.address import DatabaseAddress, parse_source
from kinfold.tables.frames import to_arrow
from kinfold.tables.resources import build_worker_environment

MAX_WORKERS = 2  # each may hold the table and a partition; more workers would run out of memory
PARENT_CHECK_SECONDS = 0.2  # between checks whether the parent process is still running
SCRATCH_PREFIX = "kinfold-"


@dataclass(frozen=True)
class Setting:
    """A method with a k, and with a t if t is compared."""

    method: str
    k: int
    t: float | None = None

    def apply_to(self, policy: Policy) -> Policy:
        """Return the policy with this setting, validated; open questions do not matter, because nothing is released."""
        values = policy.model_dump(exclude_unset=True, exclude={"review"})
        keys: dict[tuple[str, ...], Any] = {("privacy", "k"): self.k, ("method", "name"): self.method}
        override_keys(values, keys if self.t is None else keys | {("privacy", "t"): self.t})
        for key in foreign_keys(self.method):  # keys of other methods
            values["method"].pop(key, None)
        return Policy.parse(values)

    def __str__(self) -> str:
        return f"{self.method}, k = {self.k}" + ("" if self.t is None else f", t = {self.t:g}")


@dataclass(frozen=True)
class Outcome:
    """The measures of a setting, or why it failed."""

    setting: Setting
    measures: Mapping[str, Any] | None
    failure: str = ""


def run_setting(source: Any, policy: Policy, setting: Setting) -> Outcome:
    """Anonymize and measure in memory; a request that cannot be met is an outcome too."""
    from kinfold.pipeline import anonymize

    try:
        release = anonymize(source, setting.apply_to(policy))
    except KinfoldError as error:
        return Outcome(setting, None, error.problems[0].what)
    plan = release.plan
    facts = {"seconds": round(release.seconds, 3), "steps": plan.steps, "method": plan.method}
    return Outcome(setting, {**release.measures.to_dict(show_values=False), **facts})


def run_settings(source: Any, policy: Policy, grid: Sequence[Setting]) -> Iterator[Outcome]:
    """Yield the outcome of each setting as soon as it is ready."""
    workers = min(MAX_WORKERS, len(grid), os.cpu_count() or 1)
    if workers < 2:
        yield from (run_setting(source, policy, setting) for setting in grid)
        return
    from loky import ProcessPoolExecutor  # slow to load

    folders.sweep_scratch(SCRATCH_PREFIX)
    scratch = folders.make_scratch(SCRATCH_PREFIX)
    pool = ProcessPoolExecutor(
        workers, initializer=_start_worker, initargs=(str(scratch), os.getpid()), env=build_worker_environment(workers)
    )
    try:
        futures = [pool.submit(run_setting, source, policy, setting) for setting in grid]
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        raise Unreachable(
            "the system ended a worker process, most likely because memory ran out",
            fix="try again: finished results are cached; or compare on fewer records",
        ) from None
    finally:
        pool.shutdown(wait=False, kill_workers=True)
        folders.remove_scratch(scratch)


def _start_worker(scratch: str, caller: int) -> None:
    """Ignore Ctrl-C, let the parent terminate the worker, and use its folder for temporary files."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGHUP})  # blocked by the `kinfold` command
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = scratch
    threading.Thread(target=_exit_with_parent, args=(caller,), daemon=True).start()


def _exit_with_parent(caller: int) -> None:
    while os.getppid() == caller:
        time.sleep(PARENT_CHECK_SECONDS)
    os._exit(1)


@dataclass(frozen=True)
class ResultCache:
    """A folder of results, and a hash of the table and the policy.

    Each setting has one file, written under a temporary name and then renamed.
    """

    folder: Path
    key: str

    @classmethod
    def open(cls, folder: Path, source: Any, policy: Policy) -> ResultCache:
        """Return the cache of a table and a policy."""
        key = hashlib.sha256(__version__.encode())
        for part in (*_policy_parts(policy), *_table_parts(source)):
            key.update(len(part).to_bytes(8, "big"))
            key.update(part)
        return cls(folder, key.hexdigest()[:16])

    def read(self, setting: Setting) -> Outcome | None:
        """Return the cached outcome of a setting, or None if it cannot be read."""
        try:
            result = json.loads(self._get_file(setting).read_text(encoding="utf-8"))
            return Outcome(setting, result["measures"], result["failure"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, outcome: Outcome) -> None:
        """Store an outcome; an interrupted write leaves no partial file."""
        file = self._get_file(outcome.setting)
        part = file.with_suffix(".part")
        with report_failed_write(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps({"measures": outcome.measures, "failure": outcome.failure}), encoding="utf-8")
            with folders.protect_rename(file, f"the results so far are in '{self.folder}'"):
                part.replace(file)

    def _get_file(self, setting: Setting) -> Path:
        t = "" if setting.t is None else f"-t{setting.t!r}"
        return self.folder / f"{self.key}-{setting.method}-k{setting.k}{t}.json"


def _policy_parts(policy: Policy) -> Iterator[bytes]:
    """Yield the policy without method and k, and the hashes of its hierarchy files."""
    method = policy.method.model_copy(update={"name": "auto"})
    privacy = policy.privacy.model_copy(update={"k": 2})
    yield policy.model_copy(update={"method": method, "privacy": privacy}).model_dump_json().encode()
    for column in policy.columns.values():
        if column.hierarchy and column.hierarchy.file:
            yield _hash_file(column.hierarchy.file)


def _table_parts(source: Any) -> Iterator[bytes]:
    origin = parse_source(source) if isinstance(source, str) else source
    if isinstance(origin, Path):
        yield _hash_file(origin)
        return
    if isinstance(origin, DatabaseAddress):
        from kinfold.pipeline import open_engine

        with open_engine() as engine:
            yield str(engine.read(origin).checksum).encode()
        return
    table = to_arrow(source)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    yield hashlib.sha256(sink.getvalue()).digest()


def _hash_file(path: Path) -> bytes:
    require_regular_file(path, DataError(f"'{path}' is not a regular file", fix="save the table to a file first"))
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        what = f"'{path}' cannot be read: {error.strerror}"
        raise DataError(what, fix="check the path and its permissions") from None


def build_grid(methods: Sequence[str], ks: Sequence[int], ts: Sequence[float] = ()) -> list[Setting]:
    """Return the settings of the grid without duplicates, method by method."""
    names = [each.strip() for each in _as_list("methods", methods, str) if each.strip()]
    ks, ts = _as_list("k", ks, int), _as_list("t", ts, int | float)
    if not names or not ks:
        raise PolicyError("there is nothing to compare", fix="name methods and values of k")
    return list(dict.fromkeys(Setting(method, k, t) for method, k, t in product(names, ks, ts or (None,))))


def _as_list(name: str, values: Any, kind: Any) -> list[Any]:
    """Return one value or several as a list; raise if one is of another type."""
    items = list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]
    items = [each.item() if hasattr(each, "item") else each for each in items]  # numpy scalars
    if any(isinstance(each, bool) or not isinstance(each, kind) for each in items):
        what = f"{name} is given as {type(values).__name__}, or holds a value of another type"
        raise PolicyError(what, fix='write methods=["mdav", "lattice"], k=[3, 5], t=[0.2]')
    return items


def run_grid(
    source: Any, policy: Policy, grid: Sequence[Setting], folder: Path | None = None, progress: Progress = no_progress
) -> list[Outcome]:
    """Run every setting that has no cached result in the folder."""
    for setting in grid:
        setting.apply_to(policy)  # an unknown method or level is an error, not an outcome
    cache = ResultCache.open(folder, source, policy) if folder else None
    outcomes = {setting: outcome for setting in grid if cache and (outcome := cache.read(setting))}
    progress(len(outcomes), len(grid))
    for outcome in run_settings(source, policy, [setting for setting in grid if setting not in outcomes]):
        outcomes[outcome.setting] = outcome
        if cache:
            cache.write(outcome)
        progress(len(outcomes), len(grid))
    return [outcomes[setting] for setting in grid]
