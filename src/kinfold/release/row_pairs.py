"""Row pairs: which rows of a release are which of its original, for whoever measures the two tables side by side.

By position where the release kept the order of its rows; else by classes, where these leave no doubt; else what the
audit of the release recorded is taken along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.evaluation import Questions, Tables
from kinfold.evaluation.matching import matched
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


def by_position(original: Any, released: Any, before: int, after: int) -> NDArray[np.intp] | str:
    """Pair rows by their position, or say why that cannot be done."""
    if before != after:
        return f"the original has {plural(before, 'row')} and the release {plural(after, 'row')}: they cannot be paired"
    if any(isinstance(table, DatabaseAddress) for table in (original, released)):
        return "the rows of a database have no order of their own: they cannot be paired"
    if isinstance(released, Path) and was_sorted(released):
        return "the certificate beside the release says that its rows were reordered: they cannot be paired"
    return np.arange(before)


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
