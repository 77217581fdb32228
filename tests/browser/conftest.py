"""The studio in a real browser: a server of its own for each test that wants one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from browser.visits import Studio, serving


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with serving(folder=tmp_path) as running:
        yield running
