"""Drawing a chart: a Vega-Lite specification from `charts/`, values put in, SVG or PNG out.

Specifications are data, and hold every choice of form; a caller gives the values and, by their path, the few settings
that depend on them (a height, a number format). A path that the specification does not have is an error, so that the
two cannot drift apart. Nothing is fetched: a specification that asks for an address is refused by the renderer.
Cost: some tens of milliseconds a chart, and half a second more for the first one of a process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from kinfold.release.report.svg import inlined

VEGA_LITE = "6.4"  # one of those that vl-convert brings with it

VALUES = "the values of the chart"  # stands in their place until they are known
HOLES, HOLE = 7_100_000, re.compile(r"\b71000[0-9]{2}\b")  # numbers that no chart has, for those of a caller

Row = Mapping[str, object]


@dataclass(frozen=True)
class Picture:
    """What to draw: a specification by its name, its values and settings, and words for those who do not see it."""

    name: str
    values: Sequence[Row]
    title: str
    description: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)


def draw(picture: Picture, ident: str) -> str:
    """Return the picture as an SVG element for a page: no script, no style, no link; its ids start with `ident`."""
    numbers: list[float] = []
    form = json.dumps(specification(picture.name, (), _emptied(dict(picture.settings), numbers)))
    svg = _drawn(form, tuple(numbers), json.dumps([*picture.values]))
    return inlined(svg, ident, picture.title, picture.description)


@lru_cache(maxsize=32)
def _drawn(form: str, numbers: tuple[float, ...], values: str) -> str:
    """Return a specification with its numbers and values as SVG; the pages of a release share a third of their charts.

    Charts of one form differ in nothing else, and a form is translated once: numbers and values are put in afterwards.
    """
    import vl_convert  # takes a while to load, and most runs draw nothing

    before, after = (_filled(text, numbers) for text in _translated(form))
    drawn: str = vl_convert.vega_to_svg(f"{before}{values}{after}", allowed_base_urls=[])
    return drawn


@lru_cache(maxsize=256)
def _translated(form: str) -> tuple[str, str]:
    """Return a specification in Vega, before and after its values."""
    import vl_convert

    vega = vl_convert.vegalite_to_vega(form, vl_version=VEGA_LITE, config=theme())
    source = vega["data"][0]
    source["values"] = VALUES
    before, _, after = json.dumps(vega).partition(json.dumps(VALUES))
    return before, after


def _emptied(setting: Any, numbers: list[float]) -> Any:
    """Take the numbers out of settings: in their places stand those of holes, which a translation leaves as they are.

    >>> taken = []
    >>> _emptied({"width": 140, "scale": {"nice": False, "domain": [0.5, 2]}}, taken), taken
    ({'width': 7100000, 'scale': {'nice': False, 'domain': [7100001, 7100002]}}, [140, 0.5, 2])
    """
    if isinstance(setting, Mapping):
        return {key: _emptied(value, numbers) for key, value in setting.items()}
    if isinstance(setting, list):
        return [_emptied(value, numbers) for value in setting]
    if isinstance(setting, bool) or not isinstance(setting, int | float):
        return setting
    numbers.append(setting)
    return HOLES + len(numbers) - 1


def _filled(text: str, numbers: Sequence[float]) -> str:
    return HOLE.sub(lambda hole: json.dumps(numbers[int(hole[0]) - HOLES]), text)


def draw_png(picture: Picture, scale: float = 2.0) -> bytes:
    """Return the picture as PNG on white, with `scale` pixels for each unit."""
    import vl_convert

    spec = specification(picture.name, picture.values, picture.settings) | {"background": "white"}
    image: bytes = vl_convert.vegalite_to_png(
        spec, vl_version=VEGA_LITE, config=theme(), scale=scale, allowed_base_urls=[]
    )
    return image


def specification(name: str, values: Sequence[Row], settings: Mapping[str, object]) -> dict[str, Any]:
    """Return the specification with values and settings in place; a setting is named by its path.

    >>> specification("numbers", [], {"encoding.x.axis.format": "~s"})["encoding"]["x"]["axis"]["format"]
    '~s'
    """
    spec: dict[str, Any] = json.loads(_text(name))
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


def theme() -> dict[str, Any]:
    """Return the fonts and colours that all charts share."""
    config: dict[str, Any] = json.loads(_text("theme"))
    return config


def load_renderer() -> None:
    """Load what draws charts, before there is one to draw."""
    import vl_convert  # noqa: F401


@cache
def script() -> str:
    """Return the script that draws specifications in a browser: sets vega, vegaLite and vegaEmbed."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(vl_version=VEGA_LITE)  # type: ignore[call-arg]  # by its own words
    return bundle


@cache
def _text(name: str) -> str:
    return files("kinfold.release.report").joinpath("charts", f"{name}.json").read_text("utf-8")
