"""Charts: specifications as data, values that come out right, SVG that is safe, all in one palette."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.release.report import distribution_charts as class_sizes
from kinfold.release.report import risk_utility_map as risk_utility
from kinfold.release.report.chart import VEGA_LITE, Chart, build_specification, draw, draw_png, inline_svg, load_theme
from kinfold.release.report.distribution_charts import chart_column
from kinfold.release.report.facts import Bins, ColumnFacts, Shares
from kinfold.release.report.risk_utility_map import (
    MAP_HEIGHTS,
    Trial,
    boxes_overlap,
    find_pareto_front,
    line_crosses_box,
    place_labels,
)

CHARTS = files("kinfold.release.report").joinpath("charts")
NAMES = sorted(item.name.removesuffix(".json") for item in CHARTS.iterdir() if item.name != "theme.json")
TRIALS = [Trial(method, k, 1 / k, k / 20 + i / 9) for i, method in enumerate(("mdav", "<lattice>")) for k in (3, 5, 10)]


def column(released: Bins | Shares | None, original: Bins | Shares | None = None) -> ColumnFacts:
    return ColumnFacts("x", "other", "nominal", False, "", released, original)


def values(picture: Chart, when: str) -> list[tuple[object, ...]]:
    keys = {"label": ("row", "label")}.get(when, ("row", "count") if picture.name == "labels" else ("count",))
    return [tuple(row[key] for key in keys) for row in picture.values if row["when"] == when]


def strings(node: object) -> list[str]:
    if isinstance(node, dict):
        return [text for key, value in node.items() for text in (key, *strings(value))]
    if isinstance(node, list):
        return [text for value in node for text in strings(value)]
    return [node] if isinstance(node, str) else []


@pytest.mark.parametrize("name", NAMES)
def test_a_specification_is_data_without_values_addresses_or_code(name: str) -> None:
    spec = json.loads(CHARTS.joinpath(f"{name}.json").read_text("utf-8"))
    assert spec["data"] == {"values": []}
    assert spec["$schema"].endswith(f"/v{VEGA_LITE[0]}.json")
    assert not set(strings(spec)) & {"expr", "calculate", "labelExpr", "url", "href", "signal", "params", "usermeta"}
    assert not [text for text in strings(spec) if "datum" in text]


@pytest.mark.parametrize("name", NAMES)
def test_a_specification_without_values_still_draws(name: str) -> None:
    svg = draw(Chart(name, [], "empty"), "c")
    assert ElementTree.fromstring(svg).get("viewBox")


NUMBERS = st.floats(-1e12, 1e12).filter(lambda x: abs(x) > 1e-9)
EDGES = st.lists(NUMBERS, min_size=2, max_size=9, unique=True).map(sorted)
DAYS = st.lists(st.dates(), min_size=2, max_size=9, unique=True).map(lambda days: sorted(map(str, days)))
COUNTED = st.integers(1, 99_999)
SIZES = st.one_of(st.integers(1, 40), st.integers(900, 3000), st.integers(1, 10**9))


@st.composite
def drawings(draw: st.DrawFn) -> Chart:
    """Pictures of all forms that a report has, with whatever settings their values lead to."""
    form = draw(st.sampled_from(["numbers", "dates", "labels", "sizes", "map"]))
    if form == "map":
        return risk_utility.chart_trials(
            [replace(t, risk=draw(st.floats(1e-6, 1)), loss=draw(NUMBERS)) for t in TRIALS]
        )
    if form == "sizes":
        found = class_sizes.chart_class_sizes(
            sorted(draw(st.dictionaries(SIZES, COUNTED, min_size=1, max_size=9)).items()), 5
        )
        assert found is not None
        return found
    sides = []
    for _ in range(draw(st.integers(1, 2))):
        names = [*range(draw(st.integers(1, 9)))] if form == "labels" else draw(EDGES if form == "numbers" else DAYS)
        many = len(names) - (form != "labels")
        counts = tuple(draw(st.lists(COUNTED, min_size=many, max_size=many)))
        texts = tuple("m" * (i % 40) for i in names) if form == "labels" else tuple(names)
        sides.append(Shares(texts, counts) if form == "labels" else Bins(texts, counts, dates=form == "dates"))
    return chart_column(column(*sides))[0]


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(drawings())
def test_a_form_that_was_translated_before_draws_what_it_would_draw_alone(picture: Chart) -> None:
    import vl_convert

    whole = json.dumps(build_specification(picture.name, picture.values, picture.settings))
    alone = vl_convert.vegalite_to_svg(whole, vl_version=VEGA_LITE, config=load_theme(), allowed_base_urls=[])
    assert draw(picture, "c") == inline_svg(alone, "c", picture.title, picture.description)


def test_a_setting_that_the_specification_does_not_have_is_an_error() -> None:
    with pytest.raises(KeyError, match="no setting 'encoding"):
        build_specification("numbers", [], {"encoding.x.axis.colour": "red"})
    with pytest.raises(KeyError):
        build_specification("numbers", [], {"layer.0": 1})


def test_the_style_sheet_and_the_charts_have_the_same_colours() -> None:
    style = files("kinfold.release.report").joinpath("templates", "page.css").read_text("utf-8")
    before, after = load_theme()["range"]["category"][:2]
    assert f"--before: {before};" in style
    assert f"--after: {after};" in style


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_before_and_after_differ_in_lightness_and_letters_can_be_read() -> None:
    """Told apart without colour, on paper too: 3 to 1 for shapes, 4.5 to 1 for text (WCAG 2.2, 1.4.11 and 1.4.3)."""
    before, after = load_theme()["range"]["category"][:2]
    edge = build_specification("numbers", [], {})["encoding"]["stroke"]["scale"]["range"][0]
    assert contrast(before, after) > 3
    assert contrast(edge, "#ffffff") > 3
    assert contrast(after, "#ffffff") > 4.5
    spec = json.dumps(build_specification("labels", [], {}))
    letters = re.findall(r'"type": "text"[^}]*"color": "(#\w{6})"', spec)
    assert len(letters) == 2
    assert min(contrast(colour, "#ffffff") for colour in [*letters, load_theme()["axis"]["labelColor"]]) > 4.5


def test_svg_keeps_shapes_and_text_only() -> None:
    svg = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9">
      <defs><clipPath id="clip0"><rect x="0" y="0" width="9" height="9"/></clipPath></defs>
      <script>alert(1)</script><style>*{}</style><foreignObject><p/></foreignObject><image xlink:href="http://x"/>
      <a xlink:href="http://x"><text>link</text></a>
      <g clip-path="url(#clip0)" onclick="alert(1)" style="fill:red">
      <path d="M0.123456,1" fill="url(http://x)" stroke="red"/>
      <text x="1" class="c">&lt;b&gt; "q" &amp;</text></g></svg>"""
    out = inline_svg(svg, "c7", 'a "title" <b>', "d & d")
    root = ElementTree.fromstring(out)
    tags = {element.tag.split("}")[1] for element in root.iter()}
    assert tags == {"svg", "title", "desc", "defs", "clipPath", "rect", "g", "path", "text"}
    assert [element.text for element in root.iter() if element.tag.endswith("text")] == ['<b> "q" &']
    assert 'clip-path="url(#c7-clip0)"' in out
    assert 'id="c7-clip0"' in out
    assert "M0.12,1" in out
    assert not re.search(r"onclick|style=|class=|href|http://x|alert", out)
    assert root.find("{http://www.w3.org/2000/svg}title").text == 'a "title" <b>'


def test_bars_after_stand_inside_bars_before() -> None:
    (picture,) = chart_column(column(Bins((0.0, 10.0, 20.0), (3, 4)), Bins((0.0, 10.0, 20.0), (5, 2))))
    assert picture.name == "numbers"
    before = [row for row in picture.values if row["when"] == "before"]
    after = [row for row in picture.values if row["when"] == "after"]
    assert [row["count"] for row in before] == [5, 2]
    assert [row["count"] for row in after] == [3, 4]
    for wide, narrow in zip(before, after, strict=True):
        assert wide["start"] < narrow["start"] < narrow["end"] < wide["end"]
    assert picture.settings["encoding.x.scale"]["domain"] == [0.0, 20.0]


def test_dates_are_placed_without_regard_to_the_time_zone() -> None:
    bins = Bins(("1969-12-31", "1970-01-01", "1970-01-02"), (1, 2), dates=True)
    (picture,) = chart_column(column(bins))
    assert picture.name == "dates"
    assert picture.settings["encoding.x.scale"]["domain"] == [-86_400_000.0, 86_400_000.0]


@pytest.mark.slow
def test_a_time_axis_looks_the_same_everywhere_on_earth() -> None:
    code = (
        "from kinfold.release.report.chart import draw;"
        "from kinfold.release.report.distribution_charts import chart_column;"
        "from kinfold.release.report.facts import *;"
        "b = Bins(('2024-01-01', '2024-01-11', '2024-01-21'), (1, 2), dates=True);"
        "print(draw(*chart_column(ColumnFacts('x', 'other', 'date', False, '', b)), 'c'))"
    )
    drawn = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "TZ": zone, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True, capture_output=True, timeout=120,
        ).stdout
        for zone in ("America/New_York", "Asia/Tokyo")
    }  # fmt: skip
    assert len(drawn) == 1
    assert b" Jan</text>" in drawn.pop()


def test_a_single_value_has_a_bar_of_some_width() -> None:
    for bins in (Bins((5.0, 5.0), (9,)), Bins(("2024-02-29", "2024-02-29"), (9,), dates=True)):
        (picture,) = chart_column(column(bins))
        (bar,) = picture.values
        assert bar["start"] < bar["end"]
        assert draw(picture, "c")


def test_values_that_are_not_finite_have_no_chart() -> None:
    assert chart_column(column(Bins((0.0, float("inf")), (3,)))) == []


def test_labels_of_both_sides_have_a_row_each_and_the_rest_one_more() -> None:
    before = Shares(("a", "b", "c"), (5, 4, 1), rest=3, rest_labels=2)
    after = Shares(("b", "d"), (9, 4))
    (picture,) = chart_column(column(after, before))
    assert values(picture, "label") == [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "2 others")]
    assert values(picture, "before") == [(0, 5), (1, 4), (2, 1), (4, 3)]  # d may be among the rest
    assert values(picture, "after") == [
        (0, 0),
        (1, 9),
        (2, 0),
        (3, 4),
    ]  # all labels are shown: the others are not there


def test_two_labels_that_look_the_same_keep_their_own_rows() -> None:
    (picture,) = chart_column(column(Shares(("a\x00", "a␀", "y" * 30, "y" * 31), (4, 3, 2, 1))))
    assert values(picture, "after") == [(0, 4), (1, 3), (2, 2), (3, 1)]


@given(st.lists(st.integers(0, 50), min_size=11, max_size=60))
def test_more_labels_than_fit_go_to_the_rest_and_no_record_is_lost(counts: list[int]) -> None:
    labels = tuple(f"v{i}" for i in range(len(counts)))
    (picture,) = chart_column(column(Shares(labels, tuple(counts), rest=7, rest_labels=3)))
    shown = values(picture, "after")
    assert len(shown) == 11
    assert sum(count for _, count in shown) == sum(counts) + 7
    assert values(picture, "label")[-1][1] == f"{len(counts) - 10 + 3} others"


@given(st.lists(st.integers(0, 50), min_size=1, max_size=200).filter(any))
def test_more_bins_than_fit_are_put_together_and_no_record_is_lost(counts: list[int]) -> None:
    (picture,) = chart_column(column(Bins(tuple(float(i) for i in range(len(counts) + 1)), tuple(counts))))
    assert len(picture.values) <= 40
    assert sum(row["count"] for row in picture.values) == sum(counts)


@given(st.dictionaries(SIZES, st.integers(1, 10**6), min_size=1, max_size=60), st.integers(2, 50))
def test_class_sizes_fall_in_one_bar_each_and_no_bar_crosses_k(counts: dict[int, int], k: int) -> None:
    sizes = sorted(counts.items())
    bars = class_sizes.group_sizes(sizes, k)
    assert len(bars) <= class_sizes.MAX_BARS + 1
    assert not any(low < k <= high for low, high, _ in bars)
    assert sum(classes for _, _, classes in bars) == sum(counts.values())
    assert (bars[0][0], bars[-1][1]) == (sizes[0][0], sizes[-1][0])
    assert all(high + 1 == low for (_, high, _), (low, _, _) in pairwise(bars))


def test_classes_smaller_than_k_stand_out() -> None:
    picture = class_sizes.chart_class_sizes([(2, 1), (3, 4), (5, 9)], 5)
    assert [row["kept"] for row in picture.values] == [False, False, False, True]
    assert "#a8361f" in draw(picture, "c")
    assert class_sizes.chart_class_sizes([], 5) is None


def test_ranges_of_sizes_are_labelled_in_short() -> None:
    picture = class_sizes.chart_class_sizes([(3, 1), (5, 9), (400_000, 2)], 4)
    labels = [row["label"].replace("\n", "").replace("\N{EN DASH}", "-") for row in picture.values]
    assert labels[:4] == ["3", "4", "5-9", "10-19"]
    assert labels[-3:] == ["5k-10k", "10k-20k", "20k-400k"]
    assert [row["kept"] for row in picture.values][:2] == [False, True]
    narrow = class_sizes.chart_class_sizes([(10_500, 1), (10_600, 9)], 4)
    assert narrow.values[0]["label"] == "10,500\N{EN DASH}\n10,519"


def test_the_pareto_front_is_what_no_trial_beats() -> None:
    trials = [Trial("a", 3, 0.5, 0.1), Trial("a", 5, 0.2, 0.3), Trial("b", 5, 0.5, 0.3), Trial("b", 3, 0.5, 0.1)]
    costs = [(trial.risk, trial.loss) for trial in trials]
    assert find_pareto_front(costs) == [True, True, False, True]  # equal trials do not beat each other


def test_the_map_names_each_method_and_k_and_escapes_them() -> None:
    svg = draw(risk_utility.chart_trials(TRIALS), "map")
    texts = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("text")]
    assert {f"{trial.method} {trial.k}" for trial in TRIALS} <= set(texts)
    assert "<lattice>" not in svg


METHODS = ("mdav", "v-mdav", "approximate", "t-merge", "k-first", "t-first", "datafly", "mu-argus", "mingen", "lattice")


def clustered(seed: int) -> list[Trial]:
    """Trials as a comparison has them: much the same risk at each k, and losses that lie close together or coincide."""
    random = np.random.default_rng(seed)
    methods, ks = METHODS[: int(random.integers(2, 11))], (2, 3, 5, 10, 25, 50)[: int(random.integers(1, 7))]
    spread = float(random.choice([0.0, 0.001, 0.3]))
    return [
        Trial(m, k, 1 / k * random.choice([1.0, 0.97]), 0.02 * k + spread * random.random())
        for m in methods
        for k in ks
    ]


@pytest.mark.parametrize("seed", range(12))
def test_names_on_the_map_touch_no_other_name_no_point_and_no_line_runs_through_them(seed: int) -> None:
    trials = clustered(seed)
    most_risk, most_loss = (1.08 * max(getattr(t, part) for t in trials) for part in ("risk", "loss"))
    names = [f"{trial.method} {trial.k}" for trial in trials]

    def points(height: int) -> list[tuple[float, float]]:
        return [(474 * t.loss / most_loss, height * (1 - t.risk / most_risk)) for t in trials]

    for height in MAP_HEIGHTS:
        found = place_labels(points(height), names, (474, height))
        if None not in found:
            break
    named = [(point, place) for point, place in zip(points(height), found, strict=True) if place is not None]
    assert len(named) >= 0.9 * len(trials)
    assert len(trials) > 12 or len(named) == len(trials)
    for (_, one), (_, other) in combinations(named, 2):
        assert not boxes_overlap(one.box, other.box)
    for _, place in named:
        assert not any(boxes_overlap(place.box, (x - 5, y - 5, x + 5, y + 5)) for x, y in points(height))
        assert 0 <= place.box[0] < place.box[2] <= 474 + 20
        lines = [(point, other.end) for point, other in named if other.end and other is not place]
        assert not any(line_crosses_box(*line, place.box) for line in lines)
    drawn = risk_utility.chart_trials(trials)
    assert drawn.settings["height"] in MAP_HEIGHTS
    assert sum("label" in row for row in drawn.values) >= 0.9 * len(trials)


def test_a_name_stands_beside_its_point_while_it_can() -> None:
    def aligned(points: list[tuple[float, float]], names: list[str]) -> list[str]:
        return [place.align for place in place_labels(points, names, (474, 326)) if place]

    assert aligned([(100.0, 100.0)], ["mdav 3"]) == ["left"]  # of the point it is right: it starts there
    assert aligned([(100.0, 100.0), (125.0, 100.0)], ["mdav 3", "mdav 5"]) == ["right", "left"]
    assert aligned([(470.0, 100.0)], ["mdav 3"]) == ["right"]  # at the right edge
    five = [place.box for place in place_labels([(100.0, 100.0)] * 5, ["a"] * 5, (474, 326)) if place]
    assert [box[1] for box in five] == [100 + (line - 2.5) * 13 for line in range(5)]  # on each other: in one block
    ring = [(100 + 14 * x, 100 + 14 * y) for x in range(3) for y in range(3)]
    led = [place.end is not None for place in place_labels(ring, ["mdav 3"] * 9, (474, 326)) if place]
    assert 0 < sum(led) < len(led) == 9  # the one in the middle by a line


def test_a_line_crosses_what_it_runs_through() -> None:
    box = (10.0, 10.0, 20.0, 20.0)
    assert line_crosses_box((0.0, 15.0), (30.0, 15.0), box)
    assert line_crosses_box((15.0, 15.0), (16.0, 15.0), box)
    assert not line_crosses_box((0.0, 5.0), (30.0, 5.0), box)
    assert not line_crosses_box((0.0, 15.0), (9.0, 15.0), box)
    assert not line_crosses_box((0.0, 30.0), (30.0, 15.0), (10.0, 10.0, 12.0, 12.0))


@pytest.mark.parametrize("trials", [[], [Trial("a", 3, 0.0, 0.0)], TRIALS])
def test_the_map_can_be_had_as_png(trials: list[Trial]) -> None:
    image = draw_png(risk_utility.chart_trials(trials), scale=1)
    assert image.startswith(b"\x89PNG")
    width, height = int.from_bytes(image[16:20]), int.from_bytes(image[20:24])
    assert (width, height) == (560, 416)


def test_the_same_picture_gives_the_same_bytes() -> None:
    picture = class_sizes.chart_class_sizes([(5, 3), (9, 1)], 5)
    assert draw(picture, "c") == draw(replace(picture), "c")
