"""Row pairs: which rows of a release are which of its original, for whoever measures the two tables side by side.

By position where the release kept the order of its rows (see `evaluation.row_order`); else by classes, where these
leave no doubt; else what the audit of the release recorded is taken along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.evaluation import Questions, Tables
from kinfold.evaluation.matching import matched
from kinfold.evaluation.row_order import row_order
from kinfold.release.inspection import was_sorted
from kinfold.release.recalling import recorded_measures
from kinfold.request.binding import BoundPolicy
from kinfold.request.encoding import Attribute
from kinfold.rows.databases.address import DatabaseAddress
from kinfold.rows.engines import Engine
from kinfold.rows.recoding import without
from kinfold.rows.schema import Role


def without_identifiers(engine: Engine, released: Any, bound: BoundPolicy) -> tuple[Any, list[str]]:
    """Return a table without the identifiers that it still holds, as an original does, and what to say of them."""
    schema = engine.schema(released)
    held = [column.name for column in bound.of(Role.IDENTIFIER) if column.name in schema]
    if not held:
        return released, []
    told = f"{', '.join(map(repr, held))}: an identifier that a release must not hold; it was left aside"
    return engine.apply(released, without(held, schema.names, schema.rows), schema), [told]


def paired_rows(
    tables: Tables, sides: Sides, bound: BoundPolicy, attributes: Sequence[Attribute], questions: Questions
) -> tuple[Tables, str, list[str]]:
    """Return the tables with rows paired by position, by classes or not at all; how, and what to say about it."""
    found = by_position(tables, sides, bound, attributes)
    if isinstance(found.rows, str):
        tables = by_classes(replace(tables, rows=found.rows), bound, attributes, sides.released, questions)
        how = "not paired" if isinstance(tables.rows, str) else "paired by classes"
        return tables, f"{how}: {found.why}", []
    doubts = [f"rows are paired by position, but {found.why}"] if found.doubtful else []
    return replace(tables, rows=found.rows), f"paired by position: {found.why}", doubts


@dataclass(frozen=True, eq=False)
class Sides:
    """Where both tables came from, and the original after single values were recoded, as they are released."""

    original: Any
    released: Any
    prepared: Any


@dataclass(frozen=True, eq=False)
class Pairing:
    """The original row of each released one, or why rows are not paired; and what speaks for it."""

    rows: NDArray[np.intp] | str
    why: str
    doubtful: bool = False

    @classmethod
    def refused(cls, why: str) -> Pairing:
        """Return no pairs."""
        return cls(f"{why}: they cannot be paired", why)


def by_position(tables: Tables, sides: Sides, bound: BoundPolicy, attributes: Sequence[Attribute]) -> Pairing:
    """Pair rows by their position, unless something shows that they are not those of the original in its order.

    A policy that says `output.order = "kept"` is believed, unless untouched columns deny it.
    """
    engine, before = tables.engine, bound.rows
    after = engine.schema(tables.released).rows
    if before != after:
        told = f"the original has {plural(before, 'row')} and the release {plural(after, 'row')}"
        return Pairing.refused(told)
    if any(isinstance(table, DatabaseAddress) for table in (sides.original, sides.released)):
        return Pairing.refused("the rows of a database have no order of their own")
    if isinstance(sides.released, Path) and was_sorted(sides.released):
        return Pairing.refused("the certificate beside the release says that its rows were reordered")
    rows = np.arange(before)
    untouched = [column for column in bound.columns if column.role in (Role.CONFIDENTIAL, Role.OTHER)]
    quasi = [attribute for attribute in attributes if attribute.bound.role is Role.QUASI]
    kept = bound.request.output.order == "kept"
    found = row_order(tables, sides.prepared, untouched, quasi, kept=kept)
    if found.reordered:
        return Pairing.refused(f'{found.why}; if they are in the order of the original, say output.order = "kept"')
    return Pairing(rows, found.why, found.doubtful)


def by_classes(
    tables: Tables, bound: BoundPolicy, attributes: Sequence[Attribute], released: Any, questions: Questions
) -> Tables:
    """Pair rows by their classes where these leave no doubt, else take along what the audit of the release recorded."""
    quasi = [attribute for attribute in attributes if attribute.bound.role is Role.QUASI]
    others = [column.name for column in bound.columns if column.role in (Role.CONFIDENTIAL, Role.OTHER)]
    rows = matched(tables, quasi, others)
    if rows is not None:
        return replace(tables, rows=rows)
    checksum = tables.engine.checksum(tables.original)
    recorded = recorded_measures(released, checksum, bound) if isinstance(released, Path) else {}
    usable = ("risk",) * (questions.weights == "k") + ("loss",) * (questions.columns == "quasi")
    return replace(tables, recorded={section: recorded.get(section, {}) for section in usable})
