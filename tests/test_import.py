"""Importing kinfold costs next to nothing, and shows few names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import kinfold

HEAVY = {"numba", "pandas", "polars", "duckdb", "pyarrow", "pydantic", "rich", "starlette", "typer", "scipy", "numpy"}


def imported() -> tuple[float, set[str]]:
    code = (
        "import json, sys, time; started = time.perf_counter(); import kinfold; "
        "print(json.dumps([time.perf_counter() - started, [name for name in sys.modules if '.' not in name]]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(kinfold.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    seconds, modules = json.loads(ran.stdout)
    return seconds, set(modules)


def test_importing_is_quick_and_loads_nothing_heavy() -> None:
    seconds, modules = min((imported() for _ in range(3)), key=lambda found: found[0])
    assert modules.isdisjoint(HEAVY)
    assert seconds < 0.4


def test_the_help_of_the_command_loads_nothing_that_only_a_run_needs() -> None:
    """The parts are loaded where they are used, not where they are mentioned."""
    code = "import sys; from kinfold.cli.app import app; print(*(name for name in sys.modules if '.' not in name))"
    environment = {**os.environ, "PYTHONPATH": str(Path(kinfold.__file__).parents[1])}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert {"typer", "rich"} <= set(ran.stdout.split())
    assert set(ran.stdout.split()).isdisjoint(HEAVY - {"typer", "rich"})


def test_there_are_few_public_names_and_all_are_there() -> None:
    assert len(kinfold.__all__) <= 25
    assert sorted(kinfold.__all__) == kinfold.__all__
    for name in kinfold.__all__:
        assert getattr(kinfold, name) is not None
    assert set(dir(kinfold)) == {*kinfold.__all__, "__version__"}


def test_what_is_promised_is_there_in_a_fresh_interpreter() -> None:
    """Where nothing else was imported: another import could put a module under the name that is asked for."""
    functions = ("mdav", "vmdav", "univariate", "approximate", "t_merge", "k_first", "t_first", "refine")
    lines = [
        "import kinfold",
        f"assert all(callable(getattr(kinfold.partition, name)) for name in {functions})",
        "import kinfold.partition as door",
        "assert kinfold.partition is door",
        *(f"from kinfold import {name}; assert {name} is kinfold.{name}" for name in kinfold.__all__),
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(kinfold.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True, env=environment)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(kinfold, "anonymise")
