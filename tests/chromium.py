"""The browser on this machine. Where there is none its tests are skipped, but in CI they fail: a skip shows nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NO_FEATURES = (
    # a process for each window that draws the list below its address, and one in reserve for the next page
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "SpareRendererForSitePerProcess"),
    # what playwright turns off: the last list counts
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "LensOverlay"),
    *("HttpsFirstBalancedModeAutoEnable", "MediaRouter", "PaintHolding", "ThirdPartyStoragePartitioning"),
    *("OptimizationHints", "NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
)
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    f"--disable-features={','.join(NO_FEATURES)}",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")


def found() -> str:
    """The path of a browser; else skip, or fail where CI promised one."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None and os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail("no chromium in CI: install it, for the browser tests must run there", pytrace=False)
    if path is None:
        pytest.skip("no chromium on this machine")
    return path


@contextmanager
def opened() -> Iterator[Browser]:
    """Open the browser. One at a time: playwright holds the thread's event loop for as long as it is open."""
    from playwright.sync_api import sync_playwright

    path = found()
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
