"""The page of a comparison: the advice in a sentence, the R-U map, and every setting with its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from kinfold.release.report.page import rendered


def comparison_page(facts: Mapping[str, Any], svg: str) -> str:
    """Return one HTML file that needs nothing but itself."""
    return rendered("comparison.html.j2", facts=facts, chart=Markup(svg))  # noqa: S704  written again in svg.py
