"""Measurement: what a release costs and what it risks, from the original rows and the released ones side by side.

Every measure of the contract has its key; one that does not apply is null, with the reason under `notes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.binding import BoundColumn, BoundPolicy
from kinfold.encoding import Attribute
from kinfold.engines import Engine
from kinfold.measurement.loss import loss
from kinfold.measurement.pairing import pair_up
from kinfold.measurement.risk import risk
from kinfold.release import Verdict
from kinfold.schema import Role


@dataclass(frozen=True)
class Measures:
    """Risk and loss as in the JSON contract."""

    values: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, nested by `risk` and `loss`."""
        return dict(self.values)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


def measure_release(
    engine: Engine,
    released: Any,
    policy: BoundPolicy,
    verdict: Verdict,
    attributes: Sequence[Attribute],
    rows: NDArray[np.intp] | str,
) -> Measures:
    """Measure a release: `rows` leads each of its rows to the original's, or says why they cannot be paired."""
    quasi = [column.name for column in policy.of(Role.QUASI)]
    sizes = engine.tally(released, quasi, {}).sizes
    pair, reason = (None, rows) if isinstance(rows, str) else (pair_up(engine, released, attributes, rows), "")
    shown = None if pair is None else _only(pair, quasi)
    suppressed = policy.rows - verdict.records
    lost = loss(pair, sizes, max(suppressed, 0), reason)
    risked = risk(shown, sizes, policy.policy.privacy.k, _confidential(engine, released, policy), reason)
    return Measures(
        {
            "records": policy.rows,
            "released": verdict.records,
            "suppressed": suppressed,
            "classes": verdict.classes,
            "k": verdict.k,
            "l": dict(verdict.l),
            "t": dict(verdict.t),
            "risk": risked.values,
            "loss": lost.values,
            "notes": [*risked.notes, *lost.notes],
        }
    )


def _only(pair: Any, names: Sequence[str]) -> Any:
    """Return the pair on the quasi-identifiers: what an attacker knows."""
    columns = tuple(column for column in pair.columns if column.name in names)
    return type(pair)(columns, pair.kept)


def _confidential(engine: Engine, released: Any, policy: BoundPolicy) -> dict[str, Any]:
    """Return the confidential columns of the release: numbers where they are measured, else codes, -1 for null."""
    schema, values = engine.schema(released), {}
    for column in policy.of(Role.CONFIDENTIAL):
        numeric = _is_measured(column, schema[column.name])
        held = engine.collect(released, {column.name: schema[column.name] if numeric else None}).column(0)
        if numeric:
            values[column.name] = held.to_numpy(zero_copy_only=False).astype(np.float64)
        else:
            encoded = held.combine_chunks().dictionary_encode()
            values[column.name] = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _is_measured(column: BoundColumn, found: Any) -> bool:
    return column.kind.measured and (found.storage.kind.measured or bool(found.date_format))
