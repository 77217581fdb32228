"""What CI promises: a missing browser, database or node fails the run, and is never a skip there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

import chromium
import postgres
from ledger import SCALE

ROOT = Path(__file__).parents[2]


def test_generated_cases_are_the_same_in_every_run_but_those_of_the_long_form() -> None:
    assert settings.default.derandomize == (SCALE <= 1)
    assert "test quick coverage: export PYTHONHASHSEED := 0" in (ROOT / "Makefile").read_text("utf-8")


def test_without_a_browser_tests_are_skipped_but_fail_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception):
        chromium.found()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no chromium in CI"):
        chromium.found()


def test_without_a_database_tests_are_skipped_but_fail_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(postgres, "PLACES", ())
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception):
        postgres.programs()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no PostgreSQL in CI"):
        postgres.programs()


def test_the_run_of_ci_fails_and_says_so_where_no_browser_can_be_had(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "Makefile").write_text("test spark:\n\t@:\n")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "env", "dirname", "make"):
        (tools / name).symlink_to(str(shutil.which(name)))
    ran = _run(tmp_path, tools)
    assert ran.returncode == 1
    assert "no chromium" in ran.stderr
    for name in ("chromium", "initdb", "java"):
        (tools / name).symlink_to(str(shutil.which("true")))
    ran = _run(tmp_path, tools)
    assert ran.returncode == 1
    assert "no node" in ran.stderr
    for name in ("node", "npm"):
        (tools / name).symlink_to(str(shutil.which("true")))
    ran = _run(tmp_path, tools)
    assert ran.returncode == 1
    assert "no axe-core" in ran.stderr
    (tmp_path / "Makefile").write_text("test spark axe:\n\t@:\n")
    assert _run(tmp_path, tools).returncode == 0


def _run(folder: Path, tools: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": str(tools)}
    command = [str(tools / "bash"), str(folder / ".ci" / "run")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
