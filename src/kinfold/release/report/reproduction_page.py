"""The page of a reproduction: every exhibit of the papers, ours beside theirs, and their figures drawn anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from kinfold.release.report.page import rendered


def reproduction_page(facts: Mapping[str, Any], charts: Mapping[str, Sequence[str]]) -> str:
    """Return one HTML file that needs nothing but itself; `charts` are SVG, by paper and place of the exhibit."""
    drawn = {name: [Markup(svg) for svg in svgs] for name, svgs in charts.items()}  # noqa: S704  made by svg.py
    return rendered("reproduction.html.j2", facts=facts, charts=drawn)
