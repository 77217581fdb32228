"""The page's scripts: by node's own test runner, and by eslint, which `make axe` fetches from npm into build/.

Where node or eslint is missing this is skipped, and says so; in CI it fails: a skip shows nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "src/kinfold/studio/static"
ESLINT = ROOT / "build/node_modules/eslint/bin/eslint.js"


def node() -> str:
    return needed(shutil.which("node"), "no node on this machine")


def needed(path: str | None, missing: str) -> str:
    """Return what is there; else skip, or fail where CI promised it."""
    if path is None and os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{missing}: CI must have it", pytrace=False)
    if path is None:
        pytest.skip(missing)
    return path


@pytest.mark.slow
def test_the_scripts_of_the_page() -> None:
    files = sorted(map(str, HERE.glob("*.test.mjs")))
    assert len(files) >= 5
    ran = subprocess.run(
        [node(), "--test", "--test-reporter=tap", *files], capture_output=True, text=True, timeout=280, check=False
    )
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    assert "# fail 0" in ran.stdout


@pytest.mark.slow
def test_eslint_finds_nothing() -> None:
    linter = ESLINT if ESLINT.exists() else None
    path = needed(linter and str(linter), "no eslint on this machine: `make axe` fetches it from npm")
    told = ["--max-warnings", "0", "--config", str(HERE / "eslint.config.mjs"), str(PAGE), str(HERE)]
    ran = subprocess.run([node(), path, *told], capture_output=True, text=True, timeout=280, check=False, cwd=ROOT)
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
