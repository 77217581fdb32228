"""One studio for all tests that need no limits of their own; each has a session, or shares one with its module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kinfold.studio.refusals import StudioLimits
from kinfold.studio.server import Studio
from studio.visitor import Visitor, studio


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with studio(StudioLimits(sessions=1000), workspace=tmp_path_factory.mktemp("workspace")) as server:
        yield server


@pytest.fixture(scope="module")
def demo(made: Studio) -> Visitor:
    visitor = Visitor.let_in(made)
    visitor.demo()
    return visitor
