"""kinfold: release data about people so that nobody in it can be found and as little as possible is lost."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kinfold import partition
    from kinfold.comparison import compare
    from kinfold.errors import Cancelled, DataError, KinfoldError, PolicyError, Unreachable, VerifyError
    from kinfold.flow import anonymize, measure, profile, verify
    from kinfold.release.release import Release
    from kinfold.request.policy import Policy

# Each public name and the room it lives in, opened when it is first asked for: importing kinfold costs next to nothing.
_ROOMS = {
    "Cancelled": "errors",
    "DataError": "errors",
    "KinfoldError": "errors",
    "Policy": "request.policy",
    "PolicyError": "errors",
    "Release": "release.release",
    "Unreachable": "errors",
    "VerifyError": "errors",
    "anonymize": "flow",
    "compare": "comparison",
    "measure": "flow",
    "profile": "flow",
    "verify": "flow",
}

__all__ = [
    "Cancelled",
    "DataError",
    "KinfoldError",
    "Policy",
    "PolicyError",
    "Release",
    "Unreachable",
    "VerifyError",
    "anonymize",
    "compare",
    "measure",
    "partition",
    "profile",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "partition":
        return importlib.import_module("kinfold.partition")
    if name in _ROOMS:
        return getattr(importlib.import_module(f"kinfold.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'kinfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
