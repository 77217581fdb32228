"""The browser on this machine. Where there is none its tests are skipped, but in CI they fail: a skip shows nothing."""

from __future__ import annotations

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")


def found() -> str:
    """The path of a browser; else skip, or fail where CI promised one."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None and os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail("no chromium in CI: install it, for the browser tests must run there", pytrace=False)
    if path is None:
        pytest.skip("no chromium on this machine")
    return path
