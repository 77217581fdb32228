"""Generated tables: no deadline on a busy machine; CI draws the same ones every time, other runs draw new ones.

With the compiler off (`make coverage`) the kernels are plain Python, a hundred times slower: a few tables of each kind.
"""

import os

import pytest
from hypothesis import settings

settings.register_profile("explore", deadline=None)
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("plain", deadline=None, derandomize=True, max_examples=8)
settings.load_profile(
    "plain" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "repeat" if os.environ.get("CI") else "explore"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With the compiler off, let no test draw more tables than the profile says, whatever it asks for itself."""
    if os.environ.get("NUMBA_DISABLE_JIT") != "1":
        return
    for item in items:
        test = getattr(item, "obj", None)
        asked = getattr(test, "_hypothesis_internal_use_settings", None)
        if asked is not None:
            test._hypothesis_internal_use_settings = settings(asked, max_examples=min(asked.max_examples, 8))
