"""Description: collect the facts of a release from its rows for the two report pages.

The public page is computed from the released rows alone, including the edges of its charts, except for three
numbers: how many records and how many columns are removed, and the overall information loss.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kinfold import __version__
from kinfold.errors import KinfoldError
from kinfold.hierarchies import TOP, Hierarchy
from kinfold.measures.pairing import NumberCounts, ValueCounts, count_values, max_distinct_counted
from kinfold.measures.release_warnings import check_k_alone, check_linked_rows
from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import build_hierarchy, format_value
from kinfold.policy.preparation import describe_recoding
from kinfold.policy.rule_checks import describe_rule_counts
from kinfold.release.release import Release
from kinfold.release.report.facts import (
    Bins,
    ColumnFacts,
    Facts,
    Shares,
    choose_labels,
    compute_edges,
    count_bins,
    count_shares,
)
from kinfold.release.report.wording import summarize_loss
from kinfold.tables.databases.address import DatabaseAddress
from kinfold.tables.queries import count_unique_rows
from kinfold.tables.recoding import Drop, Keep, Replace
from kinfold.tables.schema import AS_TEXT, Column, Kind, OrderedReading, Role
from kinfold.tables.text_values import warn_of_formulas, warn_of_look_alikes

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
BELOW, ABOVE = ("<", "≤", "up to", "under"), (">", "≥", "over")


def order_labels(bound: BoundColumn, labels: Collection[str]) -> tuple[str, ...] | None:
    """Return the labels of a column in their order, or None if they have none.

    A declared order is complete; labels that it does not have come after it.
    """
    declared = _get_declared_order(bound)
    if declared is not None:
        positions = {label: i for i, label in enumerate(declared)}
        return (*declared, *sorted({label for label in labels if label not in positions}, key=get_band_start))
    spec = bound.request.hierarchy
    if bound.kind.is_numeric or (spec is not None and (spec.intervals or spec.dates)):
        return tuple(sorted(set(labels), key=get_band_start))
    return tuple(sorted(set(labels), key=lambda label: (label == TOP, label))) if spec is not None else None


def _get_declared_order(bound: BoundColumn) -> tuple[str, ...] | None:
    """Return the order in the policy: of an ordinal column, or of a hierarchy that is written out."""
    spec = bound.request.hierarchy
    if bound.kind is Kind.ORDINAL and bound.request.order:
        return tuple(bound.request.order)
    if spec is None or (spec.levels, spec.tree, spec.file) == (None, None, None):
        return None
    try:
        return order_hierarchy_labels(build_hierarchy(bound, ()))
    except KinfoldError:  # an unused hierarchy may be wrong; a chart is no reason to stop
        return None


def order_hierarchy_labels(hierarchy: Hierarchy) -> tuple[str, ...]:
    """Return every label of a hierarchy by the first value that it covers, lower levels first.

    >>> order_hierarchy_labels(Hierarchy.from_rows([("b", "low"), ("a", "low"), ("z", "high")]))
    ('b', 'low', 'a', 'z', 'high', '*')
    """
    first: dict[str, tuple[int, int]] = {}
    for level in range(hierarchy.height + 1):
        for row, label in enumerate(hierarchy.labels[:, level]):
            first.setdefault(str(label), (row, level))
    return tuple(sorted(first, key=lambda label: (label == TOP, *first[label])))


def get_band_start(label: str) -> tuple[object, ...]:
    """Return the sort key of a band: its first number or date; labels without one come last.

    >>> sorted(["100-109", "*", "10-19", "<10", "85+", "[20, 30]", "unknown"], key=get_band_start)
    ['<10', '10-19', '[20, 30]', '85+', '100-109', 'unknown', '*']
    """
    numbers = [float(number) for number in NUMBER.findall(re.sub(r"(?<=\d)-(?=\d)", " ", label))]
    if label == TOP or not numbers:
        return (1 + (label == TOP), (), 0, label)
    open_end = -1 if label.startswith(BELOW) else 1 if label.startswith(ABOVE) or label.endswith("+") else 0
    return (0, (numbers[0],), open_end, tuple(numbers[1:]), label)


class ReleaseContents:
    """The columns of a release, each read once for both pages."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.schema = release.engine.schema(release.released)
        self.before = release.engine.schema(release.original)
        self._values: dict[tuple[str, bool], ValueCounts] = {}
        self._unique_shares: dict[str, float] = {}

    def values(self, bound: BoundColumn, *, original: bool = False) -> ValueCounts:
        """Return the values of a column with their numbers of records."""
        key = bound.name, original
        if key not in self._values:
            engine, sample = self.release.engine, self.release.sample
            frame = self.release.original if original else self.release.released
            self._values[key] = count_values(engine, frame, bound, sample, original=original)
        return self._values[key]

    def count_filled(self, bound: BoundColumn) -> tuple[int, int]:
        """Return the number of released records with a value of a column, and of different values.

        The schema has those of the source, or of the classes.
        """
        release = self.release
        many = self.schema[bound.name].distinct > max_distinct_counted(release.engine)
        if many and (release.sample is not None or release.engine.max_collected_rows is not None):
            sizes = release.engine.count_classes(release.released, [bound.name], present=[bound.name])
            return sum(rows * values for rows, values in sizes), sum(values for _, values in sizes)
        values = self.values(bound)
        if isinstance(values, Counter):
            return values.total() - values[None], len({*values} - {None})
        present = ~np.isnan(values.values)
        return int(values.records[present].sum()), int(present.sum())

    def unique_share(self, bound: BoundColumn, column: Column) -> float:
        """Return the share of records that a column makes unique."""
        if bound.name not in self._unique_shares:
            self._unique_shares[bound.name] = _compute_unique_share(self.release, bound, column)
        return self._unique_shares[bound.name]


def describe(contents: ReleaseContents, *, internal: bool) -> Facts:
    """Collect the facts of a page; the public one has only three numbers about the original."""
    release = contents.release
    verdict, plan = release.verdict, release.plan
    columns = tuple(_describe_column(contents, column, internal) for column in release.policy.columns)
    visible = columns if internal else tuple(c for c in columns if c.released is not None)
    tally = release.engine.tally(release.released, release.terms.quasi, {})
    stars = np.logical_and.reduce([np.asarray(values) == TOP for values in tally.keys.values()])
    starred = int(tally.sizes[stars].sum())
    gap = "" if plan.gap is None else f"within {plan.gap:.2%} of the least information loss possible at this k"
    return Facts(
        title=release.source.name if internal and isinstance(release.source, Path | DatabaseAddress) else "Release",
        findings=verdict.all_findings,
        records=release.policy.rows if internal else None,
        released=verdict.records,
        suppressed=release.policy.rows - verdict.records,
        classes=verdict.classes,
        class_sizes=tuple(sorted(Counter(tally.sizes.tolist()).items())),
        method=plan.method,
        method_reason=plan.reason if internal else gap,
        columns=visible,
        version=__version__,
        measures=release.measures.to_dict() if internal else {},
        notes=_list_notes(release) if internal else (),
        warnings=() if internal else (*plan.public_notes, *_list_warnings(release)),
        internal=internal,
        curve=plan.curve if internal else (),
        lost=release.measures["loss"]["overall"],
        loss_summary=summarize_loss(release.measures.values),
        starred=starred,
        **(_compare_with_original(release) if internal else {}),
    )


def _list_warnings(release: Release) -> tuple[str, ...]:
    """Return warnings about the released rows for a recipient."""
    engine, frame, safe = release.engine, release.released, release.policy.request.output.spreadsheet_safe
    return (
        *check_k_alone(engine, frame, release.policy),
        *check_linked_rows(engine, frame, release.policy),
        *warn_of_look_alikes(engine, frame, release.policy.text_columns),
        *(() if safe else warn_of_formulas(engine, frame, safe=False)),
    )


def _compare_with_original(release: Release) -> dict[str, Any]:
    """Return the facts that need the original."""
    statistics = release.measures.statistics
    worse = describe_rule_counts([rule for rule in release.rules if rule.is_worse])[0]
    request = release.policy.request
    return {
        "review": release.policy.describe_review() if request.review.model_fields_set else {},
        "cautions": (*worse, *release.measures.warnings),
        "numbers": statistics.numbers,
        "worst_records": release.measures.worst_records,
        "correlations": statistics.correlations,
    }


def _list_notes(release: Release) -> tuple[str, ...]:
    quasi = release.policy.with_role(Role.QUASI)
    return (*release.plan.notes, *(f"'{c.name}' was taken as {c.kind}" for c in quasi if c.inferred))


def _describe_column(contents: ReleaseContents, bound: BoundColumn, internal: bool) -> ColumnFacts:
    treatment = contents.release.plan.recoding.columns[bound.name]
    column = contents.schema.get(bound.name)
    inferred = internal and bound.inferred  # the public page does not show how the policy was written
    facts = {"name": bound.name, "role": bound.released_role, "kind": str(bound.kind), "inferred": inferred}
    if isinstance(treatment, Drop) or column is None:
        reason = bound.request.reason if bound.in_policy else "the policy does not name it"
        return ColumnFacts(**facts, treatment=f"removed: {reason}" if reason else "removed")  # type: ignore[arg-type]
    if bound.surrogate:
        filled, different = contents.count_filled(bound)
        keys = Shares((), (), rest=filled, rest_labels=different, missing=column.rows - filled)
        return ColumnFacts(**facts, treatment=describe_treatment(bound, Keep()), released=keys)  # type: ignore[arg-type]
    recoded = bound.name in contents.release.prepared.changed
    unchanged = isinstance(treatment, Keep) and bound.request.perturb is None
    compared = internal and (isinstance(treatment, Replace) or recoded)
    before = contents.values(bound, original=True) if compared else None
    after = contents.values(bound)
    texts = {value for side in (before, after) if isinstance(side, Counter) for value in side if value}
    order = order_labels(bound, texts)
    released, original = _count_distributions(bound, after, before, order)
    loss = contents.release.measures["loss"]
    return ColumnFacts(
        **facts,  # type: ignore[arg-type]
        treatment=", then ".join(
            filter(None, (describe_recoding(bound.request), describe_treatment(bound, treatment)))
        ),
        released=released,
        original=original,
        singles_out=contents.unique_share(bound, column) if unchanged else 0.0,
        lost=(loss["by_column"] or {}).get(bound.name) if internal else None,
        changed=(loss["changed"] or {}).get(bound.name) if internal else None,
    )


def describe_treatment(bound: BoundColumn, treatment: Keep | Replace) -> str:
    """Return a phrase that says how a column was recoded."""
    if bound.surrogate:
        return "each value is replaced by a key of its own"
    if isinstance(treatment, Keep):
        return "" if bound.request.perturb else "released as it is"
    if bound.event and bound.role is Role.QUASI:
        how = (
            "counted from the first event of the person, on a random day" if bound.kind is Kind.DATE else "generalized"
        )
        return f"{how}; left empty where too few people have the same"
    if bound.suppressed:
        return "left empty where its class differs, or released as it is"
    if bound.average == "generalize":
        how = "its hierarchy" if bound.request.hierarchy else "ranges"
        return f"replaced by the narrowest statement that is true of its whole class, by {how}"
    if bound.average == "shares":
        return "replaced by one value of its class, so that the shares in the whole table stay about the same"
    return f"replaced by the {bound.average.replace('-', ' ')} of its class"


def _count_distributions(
    bound: BoundColumn, after: Any, before: Any, order: Sequence[str] | None
) -> tuple[Bins | Shares, Bins | Shares | None]:
    """Count both sides over the same edges or the same labels."""
    numbers = [column.finite for column in (after, before) if isinstance(column, NumberCounts)]
    texts = [column for column in (after, before) if isinstance(column, Counter)]
    edges, format_edge = compute_edges(*numbers), partial(_format_day, bound) if bound.kind is Kind.DATE else None
    labels = choose_labels(texts, order)

    def count(column: Any) -> Bins | Shares:
        if isinstance(column, NumberCounts):
            return count_bins(column.finite, column.records, edges, format_edge)
        return count_shares(column, labels)

    return count(after), None if before is None else count(before)


def _format_day(bound: BoundColumn, edge: float) -> str:
    """Return an edge of a chart as a date within the calendar of four-digit years."""
    first, last = (float((end - date(1970, 1, 1)).days) for end in (date.min, date.max))
    return format_value(bound, min(max(edge, first), last))


def _compute_unique_share(release: Release, bound: BoundColumn, column: Column) -> float:
    """Return the share of records with a value of their own, counted on exact values."""
    if release.sample is not None or column.distinct > max_distinct_counted(
        release.engine
    ):  # there may be as many values as records
        return count_unique_rows(release.engine, release.released, [bound.name]) / max(release.verdict.records, 1)
    reading = AS_TEXT
    if column.holds(bound.kind) and not column.not_finite:
        dates = bound.kind is Kind.DATE
        reading = OrderedReading("moment", column.date_format) if dates else OrderedReading("number")
    totals = release.engine.tally(release.released, (), {bound.name: reading}).spreads[bound.name].totals()
    return float((totals == 1).sum() / max(totals.sum(), 1))
