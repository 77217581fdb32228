"""What a notebook shows of a value: a picture of it, made when the notebook asks.

The values live in many rooms, and only one of them draws. It is opened by its name, as `kinfold` opens its rooms, so
that none of the others has to know it.
"""

from __future__ import annotations

import importlib
from typing import Any

PAINTER = "kinfold.release.report.notebook"


class Displayed:
    """A value that a notebook shows as more than a line of text; it says what, and the painter draws it."""

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return the sort of picture, and what it needs."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        drawn: str = importlib.import_module(PAINTER).drawn(*self.display())
        return drawn
