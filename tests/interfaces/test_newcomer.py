"""A newcomer's task: a method in one file, its line in the registry and its page, with no other edit.

It is done in a copy of the package, by other processes.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kinfold

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
TOY = '''"""Toy: records in the order of their first number, k at a time; the rest goes into the last class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.policy.registry import Declaration

if TYPE_CHECKING:
    from kinfold.methods.task import Task
    from kinfold.progress import Progress
    from kinfold.tables.points import Labels, Points

METHOD = Declaration(name="toy", family="partition", summary="every k records in a row", page="toy")


def run(records: Points, task: Task, progress: Progress) -> Labels:
    """Return the class of each record."""
    place = np.argsort(np.argsort(records.numbers[:, 0], kind="stable"))
    progress(len(records), len(records))
    return np.minimum(place // task.k, len(records) // task.k - 1).astype(np.int32)
'''


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, of its documentation and of what the tests draw, with one method more."""
    folder = tmp_path_factory.mktemp("house")
    leave = shutil.ignore_patterns("__pycache__")
    package = Path(kinfold.__file__).parent
    leave_kernels = shutil.ignore_patterns("__pycache__", "kernels")
    shutil.copytree(package, folder / "src" / "kinfold", ignore=leave_kernels)
    (folder / "src" / "kinfold" / "kernels").symlink_to(package / "kernels")  # with their machine code
    for part in ("docs/methods", "tools", "tests/battery"):
        shutil.copytree(ROOT / part, folder / part, ignore=leave)
    (folder / "src" / "kinfold" / "methods" / "partition" / "toy.py").write_text(TOY)
    registry = folder / "src" / "kinfold" / "policy" / "registry.py"
    last = '    "t-first": "kinfold.methods.partition.t_first",\n'
    text = registry.read_text()
    assert last in text
    registry.write_text(text.replace(last, last + '    "toy": "kinfold.methods.partition.toy",\n'))
    (folder / "docs" / "methods" / "toy.md").write_text(
        "# Toy\n\n`toy` puts every k records in a row into one class.\n"
    )
    (folder / "patients.csv").write_text("age,job\n" + "".join(f"{20 + 7 * i % 31},{'ab'[i % 2]}\n" for i in range(20)))
    return folder


def python(house: Path, *args: object) -> subprocess.CompletedProcess[str]:
    places = [house / "src", house / "tests", house]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places)), "COLUMNS": "200"}
    command = [sys.executable, *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=house, env=environment, timeout=120, check=False)


def command(house: Path, *args: object) -> subprocess.CompletedProcess[str]:
    return python(house, "-c", "from kinfold.cli import main; main()", *args)


def test_help_names_it(house: Path) -> None:
    assert "t-first, toy, datafly" in " ".join(command(house, "anonymize", "--help").stdout.split())


def test_a_policy_takes_it_and_its_release_is_verified(house: Path) -> None:
    asked = ("--quasi", "age,job", "-k", 3, "--method", "toy", "--out", "out", "--json")
    ran = command(house, "anonymize", "patients.csv", *asked)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["method"] == "toy"
    assert json.loads(ran.stdout)["classes"] <= 6
    assert command(house, "verify", "out", "--twice").returncode == 0
    assert 'name = "toy"' in (house / "out" / "internal" / "policy.toml").read_text()


def test_a_wrong_spelling_leads_to_it(house: Path) -> None:
    ran = command(house, "anonymize", "patients.csv", "--quasi", "age", "-k", 3, "--method", "toys", "--out", "none")
    assert ran.returncode == 2
    assert "did you mean 'toy'?" in ran.stderr


def test_the_battery_tries_it(house: Path) -> None:
    code = "from battery.factors import FACTORS, choices; print(*FACTORS['method'])"
    assert "toy" in python(house, "-c", code).stdout.split()


def test_the_documentation_has_it(house: Path) -> None:
    before = python(house, "-m", "tools.methods", "--check")
    assert before.returncode == 1
    assert before.stderr.splitlines() == [
        "README.md: the table is not what the methods declare; make it anew with make docs"
    ]
    assert python(house, "-m", "tools.methods").returncode == 0
    assert "| [`toy`](toy.md) | every k records in a row | partitions | nothing |" in (
        house / "docs" / "methods" / "README.md"
    ).read_text("utf-8")


def test_without_its_page_it_is_told(house: Path) -> None:
    page = house / "docs" / "methods" / "toy.md"
    text = page.read_text()
    page.unlink()
    try:
        assert "toy.md: there is no such page" in python(house, "-m", "tools.methods", "--check").stderr
    finally:
        page.write_text(text)
