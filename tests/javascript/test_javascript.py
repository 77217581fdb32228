"""The page's scripts, by node's own test runner. Where node is missing this is skipped, and says so."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def node() -> str:
    path = shutil.which("node")
    if path is None:
        pytest.skip("no node on this machine")
    return path


def test_the_scripts_of_the_page() -> None:
    files = sorted(map(str, HERE.glob("*.test.mjs")))
    assert len(files) >= 5
    ran = subprocess.run(
        [node(), "--test", "--test-reporter=tap", *files], capture_output=True, text=True, timeout=280, check=False
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert "# fail 0" in ran.stdout
