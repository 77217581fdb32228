"""kinfold: anonymize tables about people with as little information loss as possible, and verify the result."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from kinfold import partition, perturb, risk
    from kinfold.comparison import compare
    from kinfold.errors import Cancelled, DataError, KinfoldError, PolicyError, Unreachable, VerifyError
    from kinfold.pipeline import anonymize, measure, profile, verify
    from kinfold.policy.model import Policy
    from kinfold.release.release import Release

# The module of each public name, imported at first use, so that `import kinfold` stays fast.
_MODULES = {
    "Cancelled": "errors",
    "DataError": "errors",
    "KinfoldError": "errors",
    "Policy": "policy.model",
    "PolicyError": "errors",
    "Release": "release.release",
    "Unreachable": "errors",
    "VerifyError": "errors",
    "anonymize": "pipeline",
    "compare": "comparison",
    "measure": "pipeline",
    "profile": "pipeline",
    "verify": "pipeline",
}

__all__ = [
    "Cancelled", "DataError", "KinfoldError", "Policy", "PolicyError", "Release", "Unreachable", "VerifyError",
    "anonymize", "compare", "measure", "partition", "perturb", "profile", "risk", "verify",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("partition", "perturb", "risk"):
        return importlib.import_module(f"kinfold.{name}")
    if name in _MODULES:
        return getattr(importlib.import_module(f"kinfold.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'kinfold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
