"""The studio in a real browser: one server, as a user starts it; every test has a session of its own in it."""

from collections.abc import Iterator

import pytest

from browser.visits import Studio, serving


@pytest.fixture(scope="session")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with serving(folder=tmp_path_factory.mktemp("studio")) as running:
        yield running
