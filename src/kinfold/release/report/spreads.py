"""From the spread of a column to the values of its charts, before and after side by side.

    bins         one bar a bin; the bars after are narrower and stand inside the bars before
    shares       one row a label: the labels before in their order, then those that are new after
    one of each  (numbers that became intervals): two charts, one above the other

A label that the other side does not show has 0 records there if that side shows all of its labels, and no bar
otherwise: it may be among the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise

from kinfold.release.report.chart import Picture, Row
from kinfold.release.report.facts import Bins, ColumnFacts, Shares
from kinfold.release.report.wording import count, plural, shortened, text_width, visible

MOST_BINS = 40  # narrower ones cannot be told apart
MOST_LABELS = 10  # rows of a chart
ROW_HEIGHT = 21  # pixels: a line of text and some air
LABEL_WIDTH = 19  # characters that fit left of the bars
TOTAL_WIDTH = 360  # of every chart of a column, so that letters have one size in all of them
TINIEST, LARGEST = 1e-290, 1e300  # lengths of an axis that Vega can divide
DAY = 86_400_000.0  # in milliseconds, the unit of Vega's time scales


def pictures(column: ColumnFacts) -> list[Picture]:
    """Return the charts of a column: none if nothing is known about it, two where its kind of values changed."""
    before, after = column.original, column.released
    name = visible(column.name)
    if isinstance(before, Bins | None) and isinstance(after, Bins | None):
        made = [_histogram(name, before, after)]
    elif isinstance(before, Shares | None) and isinstance(after, Shares | None):
        made = [_bars(name, before, after)]
    elif isinstance(before, Bins):
        made = [_histogram(name, before, None), _bars(name, None, after if isinstance(after, Shares) else None)]
    else:
        made = [_bars(name, before, None), _histogram(name, None, after if isinstance(after, Bins) else None)]
    return [picture for picture in made if picture is not None]


def _histogram(name: str, before: Bins | None, after: Bins | None) -> Picture | None:
    sides = [(when, _merged(bins)) for when, bins in (("before", before), ("after", after)) if bins is not None]
    inset = {"before": 0.04, "after": 0.24 if before is not None else 0.04}
    values = [row for when, bins in sides for row in _bin_rows(bins, when, inset[when])]
    edges = [edge for _, bins in sides for edge in _positions(bins)]
    if not values or not all(map(math.isfinite, edges)):
        return None
    low, high = min(edges), max(edges)
    if not TINIEST < high - low < LARGEST:
        return None
    dates = any(bins.dates for _, bins in sides)
    settings = {
        "encoding.x.axis.format": _date_format(high - low) if dates else _number_format(low, high),
        "encoding.x.scale": {**({"type": "utc"} if dates else {}), "nice": False, "zero": False, "domain": [low, high]},
        "encoding.y.axis.format": "~s" if max(max(bins.counts) for _, bins in sides) >= 10_000 else ",d",
    }
    ends = [str(sides[0][1].edges[0]), str(sides[-1][1].edges[-1])]
    description = f"Histogram from {ends[0]} to {ends[1]}; " + _compared([when for when, _ in sides])
    return Picture("dates" if dates else "numbers", values, f"{name}: how its values are spread", description, settings)


def _bin_rows(bins: Bins, when: str, inset: float) -> Iterator[Row]:
    """Yield one bar for each bin that holds records, narrowed by `inset` of its width on either side."""
    for (low, high), records in zip(pairwise(_positions(bins)), bins.counts, strict=True):
        if records:
            margin = inset * (high - low)
            yield {"when": when, "start": low + margin, "end": high - margin, "count": records}


def _positions(bins: Bins) -> list[float]:
    """Return the edges as numbers, dates as milliseconds; a single value gets a bin of some width around it."""
    edges = [_milliseconds(str(edge)) if bins.dates else float(edge) for edge in bins.edges]
    if len(edges) == 2 and edges[0] == edges[1]:
        width = DAY / 2 if bins.dates else 0.5
        return [edges[0] - width, edges[1] + width]
    return edges


def _milliseconds(date: str) -> float:
    moment = datetime.fromisoformat(date)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000


def _merged(bins: Bins) -> Bins:
    """Return the bins, or so many neighbours put together that they can be told apart in a small chart.

    >>> _merged(Bins(tuple(range(82)), (1,) * 81)).counts[-2:]
    (3, 3)
    >>> _merged(Bins((0, 1, 2), (3, 4))).counts
    (3, 4)
    """
    step = math.ceil(len(bins.counts) / MOST_BINS)
    if step < 2:
        return bins
    starts = range(0, len(bins.counts), step)
    edges = (*(bins.edges[start] for start in starts), bins.edges[-1])
    return Bins(edges, tuple(sum(bins.counts[start : start + step]) for start in starts), bins.missing, bins.dates)


def _number_format(low: float, high: float) -> str:
    """Return the d3 format of an axis: 1990 (a year) without a separator, 250,000 with one, 2.5M in short.

    >>> [_number_format(low, high) for low, high in ((0, 1), (1990, 2020), (0, 250_000), (0, 3e6), (0, 1e12))]
    ['.4~g', '.4~g', ',.0f', '~s', '.3~g']
    """
    largest = max(abs(low), abs(high))
    if 10_000 <= largest < 1e9 and high - low >= 10:
        return ",.0f" if largest < 1e6 else "~s"
    apart = math.ceil(math.log10(largest / (high - low))) if high > low and largest else 0
    return f".{max(4 if largest < 10_000 else 3, apart + 2)}~g"


def _date_format(span: float) -> str:
    """Return the d3 format of a time axis that is `span` milliseconds long."""
    if span > 4 * 365 * DAY:
        return "%Y"
    if span > 75 * DAY:
        return "%b %Y"
    return "%-d %b" if span > 3 * DAY else "%-d %b %H:%M"


def _bars(name: str, before: Shares | None, after: Shares | None) -> Picture | None:
    sides = [(when, _fewest(shares)) for when, shares in (("before", before), ("after", after)) if shares is not None]
    shown = {label for _, shares in sides for label in shares.labels}
    every = dict.fromkeys(label for shares in (before, after) if shares is not None for label in shares.labels)
    labels = [label for label in every if label in shown]  # in their order, also where one side shows other ones
    rest = max((shares.rest_labels for _, shares in sides), default=0)
    rows: list[Row] = [
        {"row": row, "when": "label", "label": shortened(visible(label), LABEL_WIDTH), "rest": False}
        for row, label in enumerate(labels)
    ]
    if rest:
        rows.append({"row": len(labels), "when": "label", "label": _rest_label(sides), "rest": True})
    rows += [row for when, shares in sides for row in _share_rows(shares, when, labels)]
    if not labels:
        return None
    largest = max((label for _, shares in sides[-1:] for label in zip(shares.counts, shares.labels, strict=True)))
    description = f"Bars for {plural(len(labels), 'value')}; " + _compared([when for when, _ in sides])
    description += f" The most frequent {sides[-1][0]}: {visible(largest[1])}, {plural(largest[0], 'record')}."
    settings = {"height": ROW_HEIGHT * (len(labels) + bool(rest)), **_room(rows, len(sides))}
    return Picture("labels", rows, f"{name}: how often each value occurs", description, settings)


def _room(rows: list[Row], sides: int) -> dict[str, object]:
    """Return the places of labels, bars and numbers: the bars get what the longest label and the numbers leave."""
    longest = max(text_width(str(row["label"])) for row in rows if row["when"] == "label")
    left = min(132, max(44, 14 + 6.3 * longest))
    digits = max(len(count(int(str(row["count"])))) for row in rows if "count" in row)
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


def _share_rows(shares: Shares, when: str, labels: list[str]) -> Iterator[Row]:
    """Yield the bars of one side; a label that may be among the rest has none."""
    counts = dict(zip(shares.labels, shares.counts, strict=True))
    for row, label in enumerate(labels):
        if label in counts or not shares.rest_labels:
            yield {"row": row, "when": when, "count": counts.get(label, 0)}
    if shares.rest_labels:
        yield {"row": len(labels), "when": when, "count": shares.rest}


def _fewest(shares: Shares) -> Shares:
    """Return the shares with no more labels than a small chart holds: the most frequent ones, in their order."""
    if len(shares.labels) <= MOST_LABELS:
        return shares
    ranked = sorted(range(len(shares.labels)), key=lambda i: (-shares.counts[i], i))
    kept = sorted(ranked[:MOST_LABELS])
    rest = sum(shares.counts) - sum(shares.counts[i] for i in kept)
    return Shares(
        tuple(shares.labels[i] for i in kept),
        tuple(shares.counts[i] for i in kept),
        shares.rest + rest,
        shares.rest_labels + len(shares.labels) - len(kept),
        shares.missing,
    )


def _rest_label(sides: list[tuple[str, Shares]]) -> str:
    """Return how many labels are not shown, before and after where these differ."""
    numbers = list(dict.fromkeys(shares.rest_labels for _, shares in sides if shares.rest_labels))
    return f"{' → '.join(map(count, numbers))} {'other' if numbers == [1] else 'others'}"


def _compared(whens: list[str]) -> str:
    return "before and after." if len(whens) == 2 else f"{whens[0]}."
