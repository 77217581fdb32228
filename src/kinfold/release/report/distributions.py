"""Gathering: from columns as arrays to the distributions that a report draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.release.report.facts import Bins, Shares

Floats: TypeAlias = NDArray[np.float64]

BINS = 24  # that are told apart in the width of a chart
MOST_LABELS = 12  # rows of a chart; the rest is one more
WHOLE = 2.0**53  # whole numbers are one apart up to here


def edges_of(*columns: Floats) -> Floats:
    """Return bin edges that cover the values of one or more columns; whole numbers get bins of whole width."""
    known = np.concatenate([np.empty(0), *(column[~np.isnan(column)] for column in columns)])
    if not len(known):
        return np.array([0.0, 1.0])
    low, high = float(known.min()), float(known.max())
    if max(-low, high) < WHOLE and np.all(known == np.round(known)):
        width = max(1, int(np.ceil((high - low + 1) / BINS)))
        return np.arange(low, high + width + 1, width, dtype=np.float64)[: int((high - low) // width) + 2]
    high = high if high > low else max(low + 1.0, float(np.nextafter(low, np.inf)))
    # halved, for the difference of two numbers may be none; distinct, for rounding may merge or swap the edges
    inside = np.linspace(low / 2, high / 2, BINS + 1)[1:-1] * 2
    return np.unique(np.concatenate([[low], inside[(inside > low) & (inside < high)], [high]]))


def bins(values: Floats, records: NDArray[np.int64], edges: Floats, text: Callable[[float], str] | None = None) -> Bins:
    """Count the records with values between edges; `text` writes an edge where it is a date."""
    missing = np.isnan(values)
    counts = np.histogram(values[~missing], edges, weights=records[~missing])[0]
    shown = tuple(text(edge) for edge in edges) if text else tuple(float(edge) for edge in edges)
    return Bins(shown, tuple(int(count) for count in counts), int(records[missing].sum()), dates=text is not None)


def labels_of(columns: Sequence[Counter[str | None]], order: Sequence[str] | None) -> tuple[str, ...]:
    """Return the labels to show: in their order where they have one, else the most frequent over all columns.

    Only labels that occur: an order may name values that are not released. Of too many the most frequent are shown,
    still in their order.
    """
    counts = Counter({value: 0 for column in columns for value in column if value is not None})
    for column in columns:
        counts.update({value: records for value, records in column.items() if value is not None})
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    frequent = [label for label, _ in ranked[:MOST_LABELS]]
    if order is None:
        return tuple(frequent)
    place = {label: rank for rank, label in enumerate(order)}
    shown = counts if len(counts) <= 2 * MOST_LABELS and len(order) <= 2 * MOST_LABELS else frequent
    return tuple(sorted(shown, key=lambda label: (place.get(label, len(place)), label)))


def shares(column: Counter[str | None], labels: Sequence[str]) -> Shares:
    """Count the labels of a column, and what is left beside them."""
    counts = column.copy()
    missing = counts.pop(None, 0)
    rest = [count for label, count in counts.items() if label not in set(labels)]
    return Shares(tuple(labels), tuple(counts.get(label, 0) for label in labels), sum(rest), len(rest), missing)
