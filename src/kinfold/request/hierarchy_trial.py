"""A hierarchy on trial: built over the values that one column of a table holds, whatever else the policy says.

So it can be looked at, and mended, before the policy as a whole fits the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinfold.hierarchy import Hierarchy, by_rows
from kinfold.request.binding import BoundColumn
from kinfold.request.column_hierarchies import hierarchy_of, rows_of
from kinfold.request.encoding import value_texts
from kinfold.request.policy import ColumnPolicy, HierarchySpec, Output, Policy, Privacy
from kinfold.request.preparation import prepare
from kinfold.rows.engines import Engine
from kinfold.rows.schema import Kind, Role


@dataclass(frozen=True, eq=False)
class HeldValues:
    """The values of a column as its hierarchy knows them, with the records that hold each."""

    bound: BoundColumn
    counts: Mapping[str, int]

    @property
    def order(self) -> tuple[str, ...]:
        """The order of a scale; of other columns nothing."""
        return tuple(self.bound.request.order or ()) if self.bound.kind is Kind.ORDINAL else ()


def held_values(engine: Engine, frame: Any, policy: Policy, name: str) -> HeldValues:
    """Return the values that a column holds after the policy has recoded them; null is none."""
    asked = policy.columns.get(name, ColumnPolicy(role=Role.QUASI))
    alone = Policy(
        privacy=Privacy(k=2), source=policy.source, columns={name: _alone(asked)}, output=Output(others="release")
    )
    frame = prepare(engine, frame, alone).frame
    column = engine.schema(frame)[name]
    kind = asked.type or (Kind.ORDINAL if asked.order else column.kind)
    bound = BoundColumn(column, asked, kind, "generalize")
    tally = engine.tally(frame, [name], {})
    texts: list[str | None] = list(tally.keys[name])
    if kind.measured and (column.storage.kind.measured or column.date_format):
        texts = value_texts(engine, engine.distinct(frame, [name]), bound)
    counts: dict[str, int] = {}
    for text, many in zip(texts, tally.sizes.tolist(), strict=True):
        if text is not None:
            counts[text] = counts.get(text, 0) + many
    return HeldValues(bound, counts)


def _alone(asked: ColumnPolicy) -> ColumnPolicy:
    """Return a column with what is recoded before anything else, and nothing more."""
    kept = {key: getattr(asked, key) for key in ("top", "bottom", "round_to", "map", "type", "order")}
    return ColumnPolicy(role=Role.OTHER, **{key: value for key, value in kept.items() if value is not None})


def tried(values: HeldValues, spec: HierarchySpec | None) -> Hierarchy:
    """Return the hierarchy of a spec over these values, or flat; `KinfoldError` where it is none, or misses some."""
    texts = np.array(list(values.counts), object)
    if spec is None:
        return by_rows([(text,) for text in values.counts])
    request = values.bound.request.model_copy(update={"hierarchy": spec})
    bound = BoundColumn(values.bound.column, request, values.bound.kind, "generalize")
    found = hierarchy_of(bound, texts)
    rows_of(bound, found, texts)
    return found


def spec_of(name: str, keys: Any) -> HierarchySpec:
    """Return the hierarchy that some keys of a policy ask for; `PolicyError` tells every problem with its key."""
    column = {"role": str(Role.QUASI), "hierarchy": keys}
    found = Policy.parse({"privacy": {"k": 2}, "columns": {name: column}}).columns[name].hierarchy
    assert found is not None  # noqa: S101  it was given
    return found
