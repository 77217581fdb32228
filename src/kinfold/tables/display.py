"""HTML display of results in notebooks.

The modules that define results must not import the module that draws them. It is imported by name when a notebook
displays a result.
"""

from __future__ import annotations

import importlib
from typing import Any

NOTEBOOK_MODULE = "kinfold.release.report.page"


class Displayable:
    """A result that a notebook shows as HTML."""

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return the kind of display and its arguments."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        html: str = importlib.import_module(NOTEBOOK_MODULE).draw_value(*self.display())
        return html
