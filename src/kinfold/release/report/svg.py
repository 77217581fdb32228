"""Making a drawn chart safe and fit to stand inside a page.

The SVG is read and written again: only elements and attributes of a short list pass, so neither script nor style nor
link can be in what comes out, whatever the data held. Identifiers get the chart's own prefix, coordinates two
decimals, and the picture a title and a description for those who do not see it.
"""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

NAMESPACE = "{http://www.w3.org/2000/svg}"
FONT = "Helvetica Neue, Arial, Liberation Sans, DejaVu Sans, sans-serif"
ELEMENTS = frozenset({"g", "path", "line", "rect", "circle", "text", "tspan", "defs", "clipPath"})
GEOMETRY = frozenset(
    {"transform", "d", "x", "y", "dx", "dy", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"}
)
PAINT = frozenset({"fill", "fill-opacity", "opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity"})
LINES = frozenset({"stroke-linecap", "stroke-linejoin", "stroke-miterlimit"})
LETTERS = frozenset({"text-anchor", "font-size", "font-weight", "font-style"})
ATTRIBUTES = GEOMETRY | PAINT | LINES | LETTERS | {"id", "clip-path"}
DEFAULTS = {("opacity", "1"), ("transform", "translate(0,0)"), ("stroke-width", "1"), ("font-weight", "normal")}
LONG_DECIMALS = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
REFERENCE = re.compile(r"url\(#([\w-]+)\)")


def inlined(svg: str, ident: str, title: str, description: str = "") -> str:
    """Return the SVG as an element for a page, named `ident`, with its title and description."""
    root = ElementTree.fromstring(svg)  # noqa: S314  drawn by vl-convert a moment ago, no entities
    body = "".join(_written(child, ident) for child in root)
    named = f"{ident}-title {ident}-description" if description else f"{ident}-title"
    described = f'<desc id="{ident}-description">{escape(description)}</desc>' if description else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{ident}" viewBox="{escape(root.get("viewBox", ""))}" role="img" '
        f'aria-labelledby="{named}" font-family="{FONT}">'
        f'<title id="{ident}-title">{escape(title)}</title>{described}{body}</svg>'
    )


def _written(element: ElementTree.Element, ident: str) -> str:
    tag = element.tag.removeprefix(NAMESPACE)
    if tag not in ELEMENTS or (tag == "path" and not _drawn(element)):
        return ""
    inside = escape(element.text or "", quote=False) if tag in ("text", "tspan") else ""
    inside += "".join(_written(child, ident) for child in element)
    if tag in ("g", "defs", "text") and not inside:
        return ""
    attributes = "".join(_attribute(name, value, ident) for name, value in element.attrib.items())
    if tag == "g" and not attributes:  # a group that groups nothing
        return inside
    return f"<{tag}{attributes}>{inside}</{tag}>" if inside else f"<{tag}{attributes}/>"


def _drawn(path: ElementTree.Element) -> bool:
    """Whether a path leaves a mark: Vega writes many that do not."""
    return bool(path.get("d")) and not (path.get("fill") is None and path.get("stroke") is None)


def _attribute(name: str, value: str, ident: str) -> str:
    if name not in ATTRIBUTES or (name, value) in DEFAULTS:
        return ""
    if "url(" in value:
        found = REFERENCE.fullmatch(value)
        return f' {name}="url(#{ident}-{found[1]})"' if found else ""
    if name == "id":
        value = f"{ident}-{value}"
    return f' {name}="{escape(LONG_DECIMALS.sub(_rounded, value))}"'


def _rounded(number: re.Match[str]) -> str:
    return f"{round(float(number[0]), 2) + 0:g}"
