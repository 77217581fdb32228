"""Charts of distributions: class sizes, the values of a column before and after, and estimates of an analysis.

    class sizes  one bar per size, or per range of sizes if there are many; no bar spans both sides of k
    bins         one bar per bin; the bars after are narrower and stand inside the bars before
    shares       one row per label: the labels before in their order, then those that are new after
    one of each  (numbers that became intervals): two charts, one above the other

A label that the other side does not show has 0 records there if that side shows all of its labels, and no bar
otherwise: it may be among the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from kinfold.errors import plural
from kinfold.progress import SearchMarks
from kinfold.release.report.chart import Chart, ChartRow
from kinfold.release.report.facts import Bins, ColumnFacts, Shares
from kinfold.release.report.wording import format_count, format_number, make_visible, measure_text, shorten

MAX_BARS = 13  # and one more if k falls inside a bar
MAX_WIDE_BARS = 9  # wide enough for numbers of four digits
ROUND_STEPS = [digit * 10**power for power in range(19) for digit in (1, 2, 5)]


def chart_class_sizes(sizes: Sequence[tuple[int, int]], k: int) -> Chart | None:
    """Return the chart of (size, number of classes); bars of sizes below `k` are highlighted."""
    if not sizes:
        return None
    bars = group_sizes(sizes, k)
    exact = 10_000 if len(bars) <= MAX_WIDE_BARS else 1000
    values = [
        {
            "bar": bar,
            "label": _label_bar(low, high),
            "classes": n,
            "shown": _shorten_number(n, exact) if n else "",
            "kept": low >= k,
        }
        for bar, (low, high, n) in enumerate(bars)
    ]
    smallest, largest = min(size for size, _ in sizes), max(size for size, _ in sizes)
    total = plural(sum(classes for _, classes in sizes), "class", "classes")
    description = f"{total}, the smallest of {plural(smallest, 'record')}, the largest of {plural(largest, 'record')}."
    lines = 2 if any("\n" in str(row["label"]) for row in values) else 1
    settings = {"encoding.x.axis.titlePadding": 10 + 13 * lines, "padding.bottom": 30 + 13 * lines}
    return Chart("class_sizes", values, "How many classes there are of each size", description, settings)


def chart_search(curve: SearchMarks) -> Chart | None:
    """Return the chart of a search: its loss, and its lower bound if one is proved, as shares of the first loss."""
    if len(curve) < 2:
        return None
    last, names = len(curve) - 1, {"loss": "loss {}", "bound": "at least {}"}
    rows = [
        {"seconds": mark[0], "share": mark[at], "line": line, "shown": text.format(f"{mark[at]:.1%}") * (i == last)}
        for at, (line, text) in enumerate(names.items(), start=1)
        for i, mark in enumerate(curve)
        if mark[at] is not None
    ]
    description = "; ".join(str(row["shown"]) for row in rows if row["shown"]) + f" after {curve[last][0]:.1f} seconds."
    return Chart("search", rows, "How the search lowered the loss", description)


MAX_ESTIMATES_SHOWN = 30  # rows of the chart; the audit has all
MAX_DISTANCE = 4.0  # in half widths of an interval; farther points stand at the edge


def chart_estimates(task: str, estimates: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the chart of an analysis before and after: each released estimate in the interval of the original."""
    rows = []
    for row, each in enumerate(estimates[:MAX_ESTIMATES_SHOWN]):
        name = each["column"] if each["category"] is None else f"{each['column']} = {each['category']}"
        half = (each["high"] - each["low"]) / 2
        moved = (each["after"] - each["before"]) / half if each["after"] is not None and half else 0.0
        after = "vanished" if each["after"] is None else format_number(each["after"])
        rows.append(
            {
                "row": row,
                "label": shorten(f"{each['statistic']}, {make_visible(name)}", 42),
                "low": -1,
                "high": 1,
                "place": None if each["after"] is None else max(-MAX_DISTANCE, min(MAX_DISTANCE, moved)),
                "inside": each["inside"],
                "shown": f"{format_number(each['before'])} \N{RIGHTWARDS ARROW} {after}",
            }
        )
    inside = sum(each["inside"] for each in estimates)
    description = f"{inside} of {plural(len(estimates), 'estimate')} inside the confidence intervals of the original."
    return Chart("estimates", rows, f"Estimates of {make_visible(task)}", description, {"height": 22 * len(rows)})


def group_sizes(sizes: Sequence[tuple[int, int]], k: int) -> list[tuple[int, int, int]]:
    """Return bars of (from, to, number of classes) without gaps.

    Up to 13 consecutive sizes get a bar each. More sizes are grouped: in steps of equal width if the largest class is
    at most twenty times the smallest, else in ranges that start at 1, 2, 5, 10, 20, 50 and so on.

    >>> group_sizes([(5, 90), (7, 3)], 5)
    [(5, 5, 90), (6, 6, 0), (7, 7, 3)]
    >>> group_sizes([(2, 8), (6, 3), (4000, 1)], 3)[:2]
    [(2, 2, 8), (3, 4, 0)]
    """
    first, last = min(size for size, _ in sizes), max(size for size, _ in sizes)
    inner = {start for start in (*_choose_starts(first, last), k) if first < start <= last}
    starts = [first, *sorted(inner)]
    ends = [*(start - 1 for start in starts[1:]), last]
    return [
        (low, high, sum(classes for size, classes in sizes if low <= size <= high))
        for low, high in zip(starts, ends, strict=True)
    ]


def _choose_starts(first: int, last: int) -> Sequence[int]:
    most = MAX_BARS if last < 1000 else MAX_WIDE_BARS
    if last - first < most:
        return range(first, last + 1)
    if last <= 20 * max(first, 1):
        width = next(step for step in ROUND_STEPS if (last - first) / step <= most - 2)
        return range(first - first % width, last + 1, width)
    return [step for step in ROUND_STEPS if first < step <= last][: MAX_BARS - 1]


def _label_bar(low: int, high: int) -> str:
    """Return one size, or the two ends of a range on two lines."""
    if low == high:
        return format_count(low)
    exact = 1000 if high - low > 0.04 * high else high + 1  # shortened only if both ends stay different
    return f"{_shorten_number(low, exact)}\N{EN DASH}\n{_shorten_number(high, exact)}"


def _shorten_number(number: int, exact: int) -> str:
    """Return a number in full below `exact`, else with three digits.

    >>> [_shorten_number(n, 10_000) for n in (999, 1234, 56_789, 1_500_000)], _shorten_number(1999, 1000)
    (['999', '1,234', '56.8k', '1.5M'], '2k')
    """
    if number < exact:
        return format_count(number)
    unit, letter = next(pair for pair in ((10**9, "B"), (10**6, "M"), (1000, "k")) if number >= pair[0])
    short = number / unit
    return (f"{short:,.0f}" if short >= 100 else f"{short:.1f}".removesuffix(".0")) + letter


MAX_CHART_BINS = 40  # narrower bins cannot be distinguished
MAX_CHART_LABELS = 10  # rows of a chart
ROW_HEIGHT = 21  # pixels: a line of text with margins
LABEL_WIDTH = 19  # characters that fit left of the bars
TOTAL_WIDTH = 360  # the same in all charts of a column, so that letters have the same size
MIN_AXIS_LENGTH, MAX_AXIS_LENGTH = 1e-290, 1e300  # Vega cannot divide shorter or longer axes
DAY_MILLISECONDS = 86_400_000.0  # Vega's time scales count milliseconds


def chart_column(column: ColumnFacts) -> list[Chart]:
    """Return the charts of a column: none without values, two if the kind of values changed."""
    before, after = column.original, column.released
    name = make_visible(column.name)
    bins = [side if isinstance(side, Bins) else None for side in (before, after)]
    shares = [side if isinstance(side, Shares) else None for side in (before, after)]
    charts = [_chart_bins(name, *bins), _chart_shares(name, *shares)]
    if isinstance(before, Shares):
        charts.reverse()  # the chart before is above the chart after
    return [chart for chart in charts if chart is not None]


def _chart_bins(name: str, before: Bins | None, after: Bins | None) -> Chart | None:
    sides = [(when, _merge_bins(bins)) for when, bins in (("before", before), ("after", after)) if bins is not None]
    inset = {"before": 0.04, "after": 0.24 if before is not None else 0.04}
    values = [row for when, bins in sides for row in _list_bin_rows(bins, when, inset[when])]
    edges = [edge for _, bins in sides for edge in _get_positions(bins)]
    if not values or not all(map(math.isfinite, edges)):
        return None
    low, high = min(edges), max(edges)
    if not MIN_AXIS_LENGTH < high - low < MAX_AXIS_LENGTH:
        return None
    dates = any(bins.dates for _, bins in sides)
    settings = {
        "encoding.x.axis.format": _choose_date_format(high - low) if dates else _choose_number_format(low, high),
        "encoding.x.scale": {"nice": False, "domain": [low, high], **({"type": "utc"} if dates else {"zero": False})},
        "encoding.y.axis.format": "~s" if max(max(bins.counts) for _, bins in sides) >= 10_000 else ",d",
    }
    ends = [str(sides[0][1].edges[0]), str(sides[-1][1].edges[-1])]
    description = f"Histogram from {ends[0]} to {ends[1]}; " + _describe_sides([when for when, _ in sides])
    return Chart("dates" if dates else "numbers", values, f"{name}: how its values are spread", description, settings)


def _list_bin_rows(bins: Bins, when: str, inset: float) -> Iterator[ChartRow]:
    """Yield one bar per bin with records, narrowed by `inset` of its width on both sides."""
    for (low, high), records in zip(pairwise(_get_positions(bins)), bins.counts, strict=True):
        if records:
            margin = inset * (high - low)
            yield {"when": when, "start": low + margin, "end": high - margin, "count": records}


def _get_positions(bins: Bins) -> list[float]:
    """Return the edges as numbers, dates as milliseconds; a single value gets a bin around it."""
    edges = []
    for edge in bins.edges:
        if bins.dates:
            moment = datetime.fromisoformat(str(edge))
            edges.append((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
        else:
            edges.append(float(edge))
    if len(edges) == 2 and edges[0] == edges[1]:
        width = DAY_MILLISECONDS / 2 if bins.dates else 0.5
        return [edges[0] - width, edges[1] + width]
    return edges


def _merge_bins(bins: Bins) -> Bins:
    """Return the bins, merged with their neighbours if there are too many for a small chart.

    >>> _merge_bins(Bins(tuple(range(82)), (1,) * 81)).counts[-2:]
    (3, 3)
    >>> _merge_bins(Bins((0, 1, 2), (3, 4))).counts
    (3, 4)
    """
    step = math.ceil(len(bins.counts) / MAX_CHART_BINS)
    if step < 2:
        return bins
    starts = range(0, len(bins.counts), step)
    edges = (*(bins.edges[start] for start in starts), bins.edges[-1])
    return Bins(edges, tuple(sum(bins.counts[start : start + step]) for start in starts), bins.missing, bins.dates)


def _choose_number_format(low: float, high: float) -> str:
    """Return the d3 format of an axis: 1990 (a year) without separator, 250,000 with one, 2.5M shortened.

    >>> [_choose_number_format(low, high) for low, high in ((0, 1), (1990, 2020), (0, 250_000), (0, 3e6), (0, 1e12))]
    ['.4~g', '.4~g', ',.0f', '~s', '.3~g']
    """
    largest = max(abs(low), abs(high))
    if 10_000 <= largest < 1e9 and high - low >= 10:
        return ",.0f" if largest < 1e6 else "~s"
    extra_digits = math.ceil(math.log10(largest / (high - low))) if high > low and largest else 0
    return f".{max(4 if largest < 10_000 else 3, extra_digits + 2)}~g"


def _choose_date_format(span: float) -> str:
    """Return the d3 format of a time axis that is `span` milliseconds long."""
    if span > 4 * 365 * DAY_MILLISECONDS:
        return "%Y"
    if span > 75 * DAY_MILLISECONDS:
        return "%b %Y"
    return "%-d %b" if span > 3 * DAY_MILLISECONDS else "%-d %b %H:%M"


def _chart_shares(name: str, before: Shares | None, after: Shares | None) -> Chart | None:
    sides = [
        (when, _limit_labels(shares)) for when, shares in (("before", before), ("after", after)) if shares is not None
    ]
    visible = {label for _, shares in sides for label in shares.labels}
    every = dict.fromkeys(label for shares in (before, after) if shares is not None for label in shares.labels)
    labels = [label for label in every if label in visible]  # in their order, even if the sides show different labels
    rest = max((shares.rest_labels for _, shares in sides), default=0)
    rows: list[ChartRow] = [
        {"row": row, "when": "label", "label": shorten(make_visible(label), LABEL_WIDTH), "rest": False}
        for row, label in enumerate(labels)
    ]
    if rest:
        numbers = list(dict.fromkeys(shares.rest_labels for _, shares in sides if shares.rest_labels))  # before, after
        label = f"{' → '.join(map(format_count, numbers))} {'other' if numbers == [1] else 'others'}"
        rows.append({"row": len(labels), "when": "label", "label": label, "rest": True})
    rows += [row for when, shares in sides for row in _list_share_rows(shares, when, labels)]
    if not labels:
        return None
    largest = max((label for _, shares in sides[-1:] for label in zip(shares.counts, shares.labels, strict=True)))
    description = f"Bars for {plural(len(labels), 'value')}; " + _describe_sides([when for when, _ in sides])
    description += f" The most frequent {sides[-1][0]}: {make_visible(largest[1])}, {plural(largest[0], 'record')}."
    settings = {"height": ROW_HEIGHT * (len(labels) + bool(rest)), **_compute_layout(rows, len(sides))}
    return Chart("labels", rows, f"{name}: how often each value occurs", description, settings)


def _compute_layout(rows: list[ChartRow], sides: int) -> dict[str, object]:
    """Return the positions of labels, bars and numbers; the bars get the width that is left."""
    longest = max(measure_text(str(row["label"])) for row in rows if row["when"] == "label")
    left = min(132, max(44, 14 + 6.3 * longest))
    digits = max(len(format_count(int(str(row["count"])))) for row in rows if "count" in row)
    column = max(34, 12 + 6.4 * digits)
    width = TOTAL_WIDTH - left - sides * column
    return {
        "padding.left": left,
        "padding.right": sides * column,
        "width": width,
        "layer.1.mark.height": 7 if sides > 1 else 12,  # a bar after fits inside the bar before
        "layer.2.encoding.x.value": -left,
        "layer.3.encoding.x.value": width + column,
        "layer.4.encoding.x.value": width + sides * column,
    }


def _list_share_rows(shares: Shares, when: str, labels: list[str]) -> Iterator[ChartRow]:
    """Yield the bars of one side; a label that may be among the rest has none."""
    counts = dict(zip(shares.labels, shares.counts, strict=True))
    for row, label in enumerate(labels):
        if label in counts or not shares.rest_labels:
            yield {"row": row, "when": when, "count": counts.get(label, 0)}
    if shares.rest_labels:
        yield {"row": len(labels), "when": when, "count": shares.rest}


def _limit_labels(shares: Shares) -> Shares:
    """Return the shares with the most frequent labels that fit a small chart, in their order."""
    if len(shares.labels) <= MAX_CHART_LABELS:
        return shares
    ranked = sorted(range(len(shares.labels)), key=lambda i: (-shares.counts[i], i))
    kept = sorted(ranked[:MAX_CHART_LABELS])
    rest = sum(shares.counts) - sum(shares.counts[i] for i in kept)
    return Shares(
        tuple(shares.labels[i] for i in kept),
        tuple(shares.counts[i] for i in kept),
        shares.rest + rest,
        shares.rest_labels + len(shares.labels) - len(kept),
        shares.missing,
    )


def _describe_sides(whens: list[str]) -> str:
    return "before and after." if len(whens) == 2 else f"{whens[0]}."
