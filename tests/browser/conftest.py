"""The studio in a real browser: one browser for all tests, a server of its own for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

import chromium
from browser.visits import FLAGS, Studio, serving


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium.found()
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with serving(folder=tmp_path) as running:
        yield running
