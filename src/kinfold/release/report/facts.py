"""The facts of a release: what a report page shows, gathered beforehand, with nothing left to compute but pictures.

`original` distributions, measures and notes that compare with the original are for the internal page only; the public
page is made from facts that do not hold them (`Facts.public`), so it cannot show them by mistake. Two numbers are on
both pages: how many records were left out, and the share of the information that was lost in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kinfold.models import Finding


@dataclass(frozen=True)
class Bins:
    """How a continuous or date column is spread: `counts[i]` records from `edges[i]` up to `edges[i + 1]`.

    Edges are numbers, or ISO dates where `dates` is true. Original and released bins of a column share their edges.
    """

    edges: tuple[float | str, ...]
    counts: tuple[int, ...]
    missing: int = 0
    dates: bool = False


@dataclass(frozen=True)
class Shares:
    """How a categorical column is spread: the most frequent labels (in order, for an ordinal column) and the rest."""

    labels: tuple[str, ...]
    counts: tuple[int, ...]
    rest: int = 0  # records with labels that are not shown
    rest_labels: int = 0  # how many labels that is
    missing: int = 0


@dataclass(frozen=True)
class ColumnFacts:
    """One column: its part, its kind, what was done to it, and its values before and after."""

    name: str
    role: str
    kind: str
    inferred: bool  # the kind was found out, not declared
    treatment: str  # a sentence: what was done to it
    released: Bins | Shares | None = None
    original: Bins | Shares | None = None
    singles_out: float = 0.0  # share of released records that this column, left as it is, makes unique
    lost: float | None = None  # of its information, 0 to 1
    changed: float | None = None  # share of its cells


@dataclass(frozen=True)
class Summary:
    """A column of numbers, or of dates as text, in five."""

    mean: float | str
    deviation: float  # of dates in days
    low: float | str  # 5 percent of the values are below
    middle: float | str
    high: float | str  # 5 percent are above


@dataclass(frozen=True)
class Moved:
    """A column of numbers before and after; None where the release has none."""

    name: str
    before: Summary
    after: Summary | None


@dataclass(frozen=True)
class Related:
    """The correlation of two columns before and after."""

    one: str
    other: str
    before: float
    after: float


@dataclass(frozen=True)
class Facts:
    """Everything a page shows."""

    title: str
    findings: tuple[Finding, ...]  # the promises: asked, found, holds
    records: int | None  # None on the public page
    released: int
    suppressed: int | None  # records left out: how many, not who
    classes: int
    class_sizes: tuple[tuple[int, int], ...]  # (size, number of classes of that size), ascending
    method: str
    method_reason: str
    columns: tuple[ColumnFacts, ...]
    version: str
    measures: Mapping[str, Any] = field(
        default_factory=dict
    )  # as in the JSON contract: nested, None where not applicable
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()  # warnings that were found by looking at the original
    moved: tuple[Moved, ...] = ()
    related: tuple[Related, ...] = ()
    internal: bool = True
    lost: float | None = None  # of the information of the quasi-identifiers, 0 to 1: one number, which may leave
    starred: int = 0  # released records with * in every quasi-identifier

    def public(self) -> Facts:
        """Return the facts that may leave: of the original how many records were left out and what was lost in all."""
        columns = tuple(
            replace(column, original=None, lost=None, changed=None)
            for column in self.columns
            if column.released is not None
        )
        nothing: dict[str, Any] = dict.fromkeys(("notes", "cautions", "moved", "related"), ())
        return replace(self, records=None, columns=columns, measures={}, **nothing, internal=False)
