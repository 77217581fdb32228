"""The facts of a release that a report page shows, and how the distributions of columns are counted.

`original` distributions, measures and notes that compare with the original are for the internal page only. The public
page is built from facts without them (`Facts.public`), so it cannot show them by mistake. Three numbers are on
both pages: how many records and how many columns are removed, and the overall information loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.models import Finding
from kinfold.progress import SearchMarks
from kinfold.tables.schema import MAX_EXACT_INTEGER


@dataclass(frozen=True)
class Bins:
    """The distribution of a continuous or date column: `counts[i]` records from `edges[i]` up to `edges[i + 1]`.

    Edges are numbers, or ISO dates if `dates` is true. Original and released bins of a column share their edges.
    """

    edges: tuple[float | str, ...]
    counts: tuple[int, ...]
    missing: int = 0
    dates: bool = False


@dataclass(frozen=True)
class Shares:
    """The distribution of a categorical column: its most frequent labels and the rest."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    rest: int = 0  # records with labels that are not shown
    rest_labels: int = 0  # number of such labels
    missing: int = 0


@dataclass(frozen=True)
class ColumnFacts:
    """One column: its role, its type, how it was recoded, and its values before and after."""

    name: str
    role: str
    kind: str
    inferred: bool  # the type was detected, not declared
    treatment: str  # a phrase: how it was recoded
    released: Bins | Shares | None = None
    original: Bins | Shares | None = None
    singles_out: float = 0.0  # share of released records that this unchanged column makes unique
    lost: float | None = None  # share of its information, 0 to 1
    changed: float | None = None  # share of its cells


@dataclass(frozen=True)
class Facts:
    """Everything that a page shows."""

    title: str
    findings: tuple[Finding, ...]  # the promises with required and measured values
    records: int | None  # None on the public page
    released: int
    suppressed: int | None
    classes: int
    class_sizes: tuple[tuple[int, int], ...]  # (size, number of classes of that size), ascending
    method: str
    method_reason: str
    columns: tuple[ColumnFacts, ...]
    version: str
    measures: Mapping[str, Any] = field(default_factory=dict)  # as in the JSON contract
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()  # warnings that need the original
    numbers: Mapping[str, Any] = field(default_factory=dict)  # statistics of numeric columns before and after
    correlations: Mapping[str, Any] = field(default_factory=dict)  # of these columns before and after
    curve: SearchMarks = ()  # how a search lowered the loss
    worst_records: Sequence[Mapping[str, Any]] = ()  # original records that are easiest to single out, by SUDA2
    review: Mapping[str, Any] = field(default_factory=dict)  # questions, answers and differences, as in the audit
    internal: bool = True
    lost: float | None = None  # overall information loss, 0 to 1: also on the public page
    loss_summary: str = ""  # removed columns and the loss of the others: also on the public page
    starred: int = 0  # released records with * in every quasi-identifier

    def public(self) -> Facts:
        """Return the facts for the public page."""
        released = [column for column in self.columns if column.released is not None]
        columns = tuple(replace(column, original=None, lost=None, changed=None) for column in released)
        empty: dict[str, Any] = {key: {} for key in ("measures", "numbers", "correlations", "review")}
        empty |= {"notes": (), "cautions": (), "worst_records": (), "curve": ()}
        return replace(self, records=None, columns=columns, **empty, internal=False)


Floats: TypeAlias = NDArray[np.float64]

MAX_HISTOGRAM_BINS = 24  # that can be distinguished in the width of a chart
MAX_BAR_LABELS = 12  # rows of a chart; one more for the rest


def compute_edges(*columns: Floats) -> Floats:
    """Return bin edges for the values of one or more columns; integers get bins of integer width."""
    values = np.concatenate([np.empty(0), *(column[~np.isnan(column)] for column in columns)])
    if not len(values):
        return np.array([0.0, 1.0])
    low, high = float(values.min()), float(values.max())
    if max(-low, high) < MAX_EXACT_INTEGER and np.all(values == np.round(values)):
        width = max(1, int(np.ceil((high - low + 1) / MAX_HISTOGRAM_BINS)))
        return np.arange(low, high + width + 1, width, dtype=np.float64)[: int((high - low) // width) + 2]
    high = high if high > low else max(low + 1.0, float(np.nextafter(low, np.inf)))
    # halved, because high - low may overflow; unique, because rounding may merge or swap edges
    inside = np.linspace(low / 2, high / 2, MAX_HISTOGRAM_BINS + 1)[1:-1] * 2
    return np.unique(np.concatenate([[low], inside[(inside > low) & (inside < high)], [high]]))


def count_bins(
    values: Floats, records: NDArray[np.int64], edges: Floats, text: Callable[[float], str] | None = None
) -> Bins:
    """Count the records between edges; `text` formats edges that are dates."""
    missing = np.isnan(values)
    counts = np.histogram(values[~missing], edges, weights=records[~missing])[0]
    positions = tuple(text(edge) for edge in edges) if text else tuple(float(edge) for edge in edges)
    return Bins(positions, tuple(int(count) for count in counts), int(records[missing].sum()), dates=text is not None)


def choose_labels(columns: Sequence[Counter[str | None]], order: Sequence[str] | None) -> tuple[str, ...]:
    """Return the labels to show: in their order if they have one, else the most frequent first.

    Only labels that occur are shown. If there are too many, the most frequent are shown, still in their order.
    """
    counts = Counter({value: 0 for column in columns for value in column if value is not None})
    for column in columns:
        counts.update({value: records for value, records in column.items() if value is not None})
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    frequent = [label for label, _ in ranked[:MAX_BAR_LABELS]]
    if order is None:
        return tuple(frequent)
    positions = {label: rank for rank, label in enumerate(order)}
    labels = counts if len(counts) <= 2 * MAX_BAR_LABELS and len(order) <= 2 * MAX_BAR_LABELS else frequent
    return tuple(sorted(labels, key=lambda label: (positions.get(label, len(positions)), label)))


def count_shares(column: Counter[str | None], labels: Sequence[str]) -> Shares:
    """Count the records of each label, and those of all other labels."""
    counts = column.copy()
    missing = counts.pop(None, 0)
    rest = [count for label, count in counts.items() if label not in set(labels)]
    return Shares(tuple(labels), tuple(counts.get(label, 0) for label in labels), sum(rest), len(rest), missing)
