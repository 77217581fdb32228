"""The grid: every method at every k (and t) on one table, in parallel, each result kept as soon as it is there.

A result is kept under a name made of the table, the policy and the setting. A comparison that was stopped goes on where
it was; one whose table or policy has changed starts anew.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from kinfold.errors import KinfoldError
from kinfold.policy import Policy
from kinfold.progress import Progress, silent

WORKERS = 2


@dataclass(frozen=True)
class Setting:
    """One point of the grid."""

    method: str
    k: int
    t: float | None = None

    def applied(self, policy: Policy) -> Policy:
        """Return the policy at this point."""
        privacy = policy.privacy.model_copy(update={"k": self.k} | ({"t": self.t} if self.t is not None else {}))
        return policy.model_copy(
            update={"privacy": privacy, "method": policy.method.model_copy(update={"name": self.method})}
        )


@dataclass(frozen=True)
class Outcome:
    """What came of a setting: its measures, or why there are none."""

    setting: Setting
    measures: Mapping[str, Any] | None
    failure: str = ""


def settings(methods: Sequence[str], ks: Sequence[int], ts: Sequence[float] = ()) -> list[Setting]:
    """Return the points of the grid, method by method."""
    return [Setting(method, k, t) for method, k, t in product(methods, ks, ts or (None,))]


def run(
    source: Any, policy: Policy, grid: Sequence[Setting], kept: Path | None = None, progress: Progress = silent
) -> list[Outcome]:
    """Try every setting; results that are already kept are not made again."""
    key = _fingerprint(source, policy) if kept else ""
    found = {setting: outcome for setting in grid if kept and (outcome := _recalled(kept, key, setting))}
    progress(len(found), len(grid))
    for setting, outcome in _tried(source, policy, [s for s in grid if s not in found]):
        found[setting] = outcome
        if kept:
            _remember(kept, key, outcome)
        progress(len(found), len(grid))
    return [found[setting] for setting in grid]


def _tried(source: Any, policy: Policy, grid: Sequence[Setting]) -> Iterator[tuple[Setting, Outcome]]:
    workers = min(WORKERS, len(grid), os.cpu_count() or 1)
    if workers < 2:
        yield from ((setting, attempt(source, policy, setting)) for setting in grid)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(attempt, source, policy, setting): setting for setting in grid}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def attempt(source: Any, policy: Policy, setting: Setting) -> Outcome:
    """Make one release in memory and measure it; a request that cannot be met is an outcome too."""
    from kinfold.flow import anonymize

    try:
        release = anonymize(source, setting.applied(policy))
    except KinfoldError as error:
        return Outcome(setting, None, error.problems[0].what)
    return Outcome(
        setting, {**release.measures.to_dict(), "seconds": round(release.seconds, 3), "steps": release.plan.steps}
    )


def _fingerprint(source: Any, policy: Policy) -> str:
    found = hashlib.sha256(policy.model_dump_json().encode())
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    else:
        found.update(str(source).encode())
    return found.hexdigest()[:16]


def _place(kept: Path, key: str, setting: Setting) -> Path:
    t = "" if setting.t is None else f"-t{setting.t}"
    return kept / f"{key}-{setting.method}-k{setting.k}{t}.json"


def _recalled(kept: Path, key: str, setting: Setting) -> Outcome | None:
    try:
        told = json.loads(_place(kept, key, setting).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return Outcome(setting, told["measures"], told["failure"])


def _remember(kept: Path, key: str, outcome: Outcome) -> None:
    kept.mkdir(parents=True, exist_ok=True)
    place = _place(kept, key, outcome.setting)
    beside = place.with_suffix(".part")
    beside.write_text(json.dumps({"measures": outcome.measures, "failure": outcome.failure}), encoding="utf-8")
    beside.replace(place)
