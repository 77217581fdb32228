"""Row pairs: which row of a release belongs to which row of its original.

Rows are paired by position if the release kept their order, else by class if the classes are unambiguous. Otherwise
the measures recorded in the audit of the release are used. The audit counts only if its checksums match both files and
its policy has the same quasi-identifiers and the same k.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.measures.options import MeasureOptions
from kinfold.measures.pairing import TablePair
from kinfold.measures.row_matching import detect_row_order, match_rows
from kinfold.policy.binding import BoundPolicy
from kinfold.policy.encoding import Attribute
from kinfold.release.inspection import is_sorted
from kinfold.tables.databases.address import DatabaseAddress
from kinfold.tables.engine import Engine
from kinfold.tables.readers.files import hash_file
from kinfold.tables.recoding import build_drop_recoding
from kinfold.tables.schema import Role

INFERRED_KEYS = ("type", "missing")  # the recorded policy has them even if the holder's policy left them out


@dataclass(frozen=True, eq=False)
class PairSources:
    """The sources of both tables, and the original with single values recoded, as they are released."""

    original: Any
    released: Any
    prepared: Any


@dataclass(frozen=True, eq=False)
class Pairing:
    """The original row of each released row, or why rows are not paired; and the reason."""

    rows: NDArray[np.intp] | str
    reason: str
    doubtful: bool = False

    @classmethod
    def refuse(cls, reason: str) -> Pairing:
        """Return a pairing without pairs."""
        return cls(f"{reason}: they cannot be paired", reason)


def drop_removed(engine: Engine, released: Any, bound: BoundPolicy) -> tuple[Any, list[str]]:
    """Return a table without the removed columns that it still holds, and a warning about them."""
    schema = engine.schema(released)
    names = [column.name for column in bound.columns if column.removed and column.name in schema]
    if not names:
        return released, []
    warning = f"{', '.join(map(repr, names))}: a column that a release must not hold; it is ignored"
    return engine.apply(released, build_drop_recoding(names, schema.names, schema.rows), schema), [warning]


def pair_rows(
    tables: TablePair,
    sources: PairSources,
    bound: BoundPolicy,
    attributes: Sequence[Attribute],
    options: MeasureOptions,
) -> tuple[TablePair, str, list[str]]:
    """Pair rows by position, by class or not at all; return the tables, how they are paired, and warnings."""
    pairing = pair_by_position(tables, sources, bound, attributes)
    if isinstance(pairing.rows, str):
        tables = pair_by_classes(replace(tables, rows=pairing.rows), bound, attributes, sources.released, options)
        result = "not paired" if isinstance(tables.rows, str) else "paired by classes"
        return tables, f"{result}: {pairing.reason}", []
    warnings = [f"rows are paired by position, but {pairing.reason}"] if pairing.doubtful else []
    return replace(tables, rows=pairing.rows), f"paired by position: {pairing.reason}", warnings


def pair_by_position(
    tables: TablePair, sources: PairSources, bound: BoundPolicy, attributes: Sequence[Attribute]
) -> Pairing:
    """Pair rows by position, unless there is evidence that the release has another order.

    With `output.order = "kept"` in the policy, only unchanged columns count as evidence.
    """
    engine, before = tables.engine, bound.rows
    after = engine.schema(tables.released).rows
    if before != after:
        return Pairing.refuse(f"the original has {plural(before, 'row')} and the release {plural(after, 'row')}")
    if any(isinstance(source, DatabaseAddress) for source in (sources.original, sources.released)):
        return Pairing.refuse("the rows of a database have no order")
    if isinstance(sources.released, Path) and is_sorted(sources.released):
        return Pairing.refuse("the certificate of the release says that its rows were reordered")
    unchanged = [column for column in bound.released if column.role is not Role.QUASI]
    quasi = [attribute for attribute in attributes if attribute.bound.role is Role.QUASI]
    kept = bound.request.output.order == "kept"
    order = detect_row_order(tables, sources.prepared, unchanged, quasi, kept=kept)
    if order.reordered:
        return Pairing.refuse(f'{order.reason}; if the rows are in the original order, set output.order = "kept"')
    return Pairing(np.arange(before), order.reason, order.doubtful)


def pair_by_classes(
    tables: TablePair, bound: BoundPolicy, attributes: Sequence[Attribute], released: Any, options: MeasureOptions
) -> TablePair:
    """Pair rows by class if the classes are unambiguous, else add the measures that the audit recorded."""
    quasi = [attribute for attribute in attributes if attribute.bound.role is Role.QUASI]
    others = [column.name for column in bound.released if column.role is not Role.QUASI]
    rows = match_rows(tables, quasi, others)
    if rows is not None:
        return replace(tables, rows=rows)
    checksum = tables.original.checksum
    recorded = read_recorded_measures(released, checksum, bound) if isinstance(released, Path) else {}
    usable = ("risk",) * (options.weights == "k") + ("loss",) * (options.columns == "quasi")
    return replace(tables, recorded={section: recorded.get(section, {}) for section in usable})


def read_recorded_measures(released: Path, original: str | None, bound: BoundPolicy) -> Mapping[str, Mapping[str, Any]]:
    """Return the measures of a release by section from its audit; empty if there is no audit of these files."""
    file = released.parent.parent / "internal" / "audit.json"
    try:
        if not file.is_file():  # reading a pipe may never end
            return {}
        audit = json.loads(file.read_text("utf-8"))
        source = audit["source"].get("sha256", audit["source"].get("rows"))
        if original is None or source != original or audit["release"]["sha256"] != hash_file(released):
            return {}
        policy = bound.request.model_dump(mode="json", exclude_none=True)
        if _select_comparable(audit["policy"]) != _select_comparable(policy):
            return {}
        return {section: dict(audit["measures"][section]) for section in ("risk", "loss")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _select_comparable(policy: Mapping[str, Any]) -> Any:
    columns = {
        name: {key: value for key, value in column.items() if key not in INFERRED_KEYS}
        for name, column in policy["columns"].items()
        if column["role"] == Role.QUASI
    }
    return policy["privacy"]["k"], columns
