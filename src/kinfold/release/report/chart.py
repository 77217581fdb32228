"""Draw charts: a Vega-Lite specification from `charts/`, with values inserted, as SVG or PNG.

Specifications are data and hold every design choice. A caller gives the values and, by path, the few settings that
depend on them (a height, a number format). A path that the specification does not have is an error, so that code and
specification stay in step. Nothing is fetched: the renderer refuses specifications with an address. The SVG is parsed
and written again with a short list of elements and attributes, so it holds no script, style or link.
Cost: about ten milliseconds per chart, and 0.3 seconds to start the renderer, once in a process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

NAMESPACE = "{http://www.w3.org/2000/svg}"
FONT = "Helvetica Neue, Arial, Liberation Sans, DejaVu Sans, sans-serif"
ELEMENTS = frozenset({"g", "path", "line", "rect", "circle", "text", "tspan", "defs", "clipPath"})
ATTRIBUTES = frozenset(
    [
        *("id", "clip-path", "transform", "d", "x", "y", "dx", "dy", "x1", "x2", "y1", "y2", "cx", "cy", "r"),
        *("width", "height", "fill", "fill-opacity", "opacity", "stroke", "stroke-width", "stroke-dasharray"),
        *("stroke-opacity", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit"),
        *("text-anchor", "font-size", "font-weight", "font-style"),
    ]
)
DEFAULTS = {("opacity", "1"), ("transform", "translate(0,0)"), ("stroke-width", "1"), ("font-weight", "normal")}
LONG_DECIMALS = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
REFERENCE = re.compile(r"url\(#([\w-]+)\)")


def inline_svg(svg: str, ident: str, title: str, description: str = "") -> str:
    """Return the SVG as an element for a page, with id, title and description."""
    root = ElementTree.fromstring(svg)  # noqa: S314  from vl-convert, without entities
    body = "".join(_write_element(child, ident) for child in root)
    named = f"{ident}-title {ident}-description" if description else f"{ident}-title"
    described = f'<desc id="{ident}-description">{escape(description)}</desc>' if description else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{ident}" viewBox="{escape(root.get("viewBox", ""))}" role="img" '
        f'aria-labelledby="{named}" font-family="{FONT}">'
        f'<title id="{ident}-title">{escape(title)}</title>{described}{body}</svg>'
    )


def _write_element(element: ElementTree.Element, ident: str) -> str:
    tag = element.tag.removeprefix(NAMESPACE)
    unpainted = element.get("fill") is None and element.get("stroke") is None
    if tag not in ELEMENTS or (tag == "path" and (unpainted or not element.get("d"))):  # Vega writes invisible paths
        return ""
    inside = escape(element.text or "", quote=False) if tag in ("text", "tspan") else ""
    inside += "".join(_write_element(child, ident) for child in element)
    if tag in ("g", "defs", "text") and not inside:
        return ""
    attributes = "".join(_write_attribute(name, value, ident) for name, value in element.attrib.items())
    if tag == "g" and not attributes:  # a group without attributes
        return inside
    return f"<{tag}{attributes}>{inside}</{tag}>" if inside else f"<{tag}{attributes}/>"


def _write_attribute(name: str, value: str, ident: str) -> str:
    if name not in ATTRIBUTES or (name, value) in DEFAULTS:
        return ""
    if "url(" in value:
        reference = REFERENCE.fullmatch(value)
        return f' {name}="url(#{ident}-{reference[1]})"' if reference else ""
    if name == "id":
        value = f"{ident}-{value}"
    value = LONG_DECIMALS.sub(lambda number: f"{round(float(number[0]), 2) + 0:g}", value)
    return f' {name}="{escape(value)}"'


VEGA_LITE = "6.4"  # a version that vl-convert includes

VALUES_PLACEHOLDER = "the values of the chart"  # replaced by the values after compiling
FIRST_PLACEHOLDER = 7_100_000  # 100 numbers that no chart uses
PLACEHOLDER = re.compile(r"\b71000[0-9]{2}\b")

ChartRow = Mapping[str, object]


@dataclass(frozen=True)
class Chart:
    """A chart: the name of its specification, its values and settings, and texts for screen readers."""

    name: str
    values: Sequence[ChartRow]
    title: str
    description: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)


def draw(chart: Chart, ident: str) -> str:
    """Return the chart as an SVG element without script, style or link; its ids start with `ident`."""
    numbers: list[float] = []
    form = json.dumps(build_specification(chart.name, (), _extract_numbers(dict(chart.settings), numbers)))
    svg = _render_svg(form, tuple(numbers), json.dumps([*chart.values]))
    return inline_svg(svg, ident, chart.title, chart.description)


@lru_cache(maxsize=32)
def _render_svg(form: str, numbers: tuple[float, ...], values: str) -> str:
    """Return a specification with its numbers and values as SVG.

    A form is compiled once; numbers and values are inserted afterwards. The two pages of a release share many charts.
    """
    import vl_convert  # slow to load, and most runs draw no chart

    before, after = (
        PLACEHOLDER.sub(lambda hole: json.dumps(numbers[int(hole[0]) - FIRST_PLACEHOLDER]), text)
        for text in _compile_vega(form)
    )
    svg: str = vl_convert.vega_to_svg(f"{before}{values}{after}", allowed_base_urls=[])
    return svg


@lru_cache(maxsize=256)
def _compile_vega(form: str) -> tuple[str, str]:
    """Return a specification in Vega, split at its values."""
    import vl_convert

    vega = vl_convert.vegalite_to_vega(form, vl_version=VEGA_LITE, config=load_theme())
    vega["data"][0]["values"] = VALUES_PLACEHOLDER
    before, _, after = json.dumps(vega).partition(json.dumps(VALUES_PLACEHOLDER))
    return before, after


def _extract_numbers(setting: Any, numbers: list[float]) -> Any:
    """Replace the numbers in settings with placeholders that the compiler leaves unchanged, and collect them.

    >>> numbers = []
    >>> _extract_numbers({"width": 140, "scale": {"nice": False, "domain": [0.5, 2]}}, numbers), numbers
    ({'width': 7100000, 'scale': {'nice': False, 'domain': [7100001, 7100002]}}, [140, 0.5, 2])
    """
    if isinstance(setting, Mapping):
        return {key: _extract_numbers(value, numbers) for key, value in setting.items()}
    if isinstance(setting, list):
        return [_extract_numbers(value, numbers) for value in setting]
    if isinstance(setting, bool) or not isinstance(setting, int | float):
        return setting
    numbers.append(setting)
    return FIRST_PLACEHOLDER + len(numbers) - 1


def draw_png(chart: Chart, scale: float = 2.0) -> bytes:
    """Return the chart as PNG on white, with `scale` pixels per unit."""
    import vl_convert

    spec = build_specification(chart.name, chart.values, chart.settings) | {"background": "white"}
    options: dict[str, Any] = {"vl_version": VEGA_LITE, "config": load_theme(), "scale": scale, "allowed_base_urls": []}
    image: bytes = vl_convert.vegalite_to_png(spec, **options)
    return image


def build_specification(name: str, values: Sequence[ChartRow], settings: Mapping[str, object]) -> dict[str, Any]:
    """Return the specification with values and settings; a setting is named by its path.

    >>> build_specification("numbers", [], {"encoding.x.axis.format": "~s"})["encoding"]["x"]["axis"]["format"]
    '~s'
    """
    spec: dict[str, Any] = json.loads(_read_chart(name))
    spec["data"]["values"] = list(values)
    for path, value in settings.items():
        *parents, last = path.split(".")
        place: Any = spec
        for parent in parents:
            place = place[int(parent)] if isinstance(place, list) else place[parent]
        if last not in place:
            raise KeyError(f"the chart {name!r} has no setting {path!r}")
        place[last] = value
    return spec


def load_theme() -> dict[str, Any]:
    """Return the fonts and colours of all charts."""
    config: dict[str, Any] = json.loads(_read_chart("theme"))
    return config


def load_renderer() -> None:
    """Load the renderer before the first chart is drawn."""
    import vl_convert  # noqa: F401


def start_renderer() -> None:
    """Start the renderer before the first chart is drawn; no other thread runs meanwhile."""
    draw(Chart("class_sizes", (), ""), "nothing")


def get_script() -> str:
    """Return the script that draws specifications in a browser: it defines vega, vegaLite and vegaEmbed."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(vl_version=VEGA_LITE)  # type: ignore[call-arg]  # by its own words
    return bundle


def load_script(cached: Path) -> str:
    """Return the script from a file that only this user can change; else make it, and save it there if possible."""
    with contextlib.suppress(OSError), cached.open(encoding="utf-8") as file:
        status = os.fstat(file.fileno())
        if status.st_mode & 0o022 == 0 and status.st_uid in (getattr(os, "getuid", lambda: status.st_uid)(), 0):
            return file.read()
    script = get_script()
    with contextlib.suppress(OSError):
        cached.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = cached.with_suffix(f".{os.getpid()}")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(script)
        part.replace(cached)
    return script


@cache
def _read_chart(name: str) -> str:
    return files("kinfold.release.report").joinpath("charts", f"{name}.json").read_text("utf-8")
