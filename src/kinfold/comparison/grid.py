"""The grid: every method at every k (and t) on one table, in parallel, each result kept as soon as it is there.

A result is kept under a name made of the table, the policy and the setting. A comparison that was stopped goes on where
it was; one whose table, policy or hierarchy files have changed starts anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from kinfold.comparison.cache import ResultCache
from kinfold.comparison.outcome import Outcome, Setting
from kinfold.comparison.workers import tried
from kinfold.errors import PolicyError
from kinfold.progress import Progress, silent
from kinfold.request.policy import Policy


def settings(methods: Sequence[str], ks: Sequence[int], ts: Sequence[float] = ()) -> list[Setting]:
    """Return the points of the grid, method by method; a point that is named twice counts once."""
    named = [each.strip() for each in _given("methods", methods, str) if each.strip()]
    ks, ts = _given("k", ks, int), _given("t", ts, int | float)
    if not named or not ks:
        raise PolicyError("there is nothing to compare", fix="name methods and values of k")
    return list(dict.fromkeys(Setting(method, k, t) for method, k, t in product(named, ks, ts or (None,))))


def _given(name: str, values: Any, kind: Any) -> list[Any]:
    """Return one value or several as a list, if each is of some kind."""
    found = list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]
    found = [each.item() if hasattr(each, "item") else each for each in found]  # of numpy
    if any(isinstance(each, bool) or not isinstance(each, kind) for each in found):
        what = f"{name} is given as {type(values).__name__}, or holds something else than it may"
        raise PolicyError(what, fix='write methods=["mdav", "lattice"], k=[3, 5], t=[0.2]')
    return found


def run(
    source: Any, policy: Policy, grid: Sequence[Setting], folder: Path | None = None, progress: Progress = silent
) -> list[Outcome]:
    """Try every setting; results that are already kept in the folder are not made again."""
    for setting in grid:
        setting.applied(policy)  # a method or a level that nobody knows is an error, not an outcome
    cache = ResultCache.of(folder, source, policy) if folder else None
    found = {setting: outcome for setting in grid if cache and (outcome := cache.recall(setting))}
    progress(len(found), len(grid))
    for outcome in tried(source, policy, [setting for setting in grid if setting not in found]):
        found[outcome.setting] = outcome
        if cache:
            cache.remember(outcome)
        progress(len(found), len(grid))
    return [found[setting] for setting in grid]
