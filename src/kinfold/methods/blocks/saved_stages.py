"""A shelf: where a long run puts what it has done, for a later run that goes on where this one was stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray


class Shelf(Protocol):
    """Arrays by name. What was put there whole is found again, what was not is not."""

    def get(self, name: str) -> Mapping[str, NDArray[Any]] | None:
        """Return what was put under a name, or nothing."""

    def put(self, name: str, **arrays: NDArray[Any]) -> None:
        """Put arrays under a name."""


class Bare:
    """A shelf that keeps nothing."""

    def get(self, name: str) -> None:
        """Return nothing."""

    def put(self, name: str, **arrays: NDArray[Any]) -> None:
        """Keep nothing."""


BARE = Bare()
