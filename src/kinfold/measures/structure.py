"""Structure between columns: relations of the original that the release breaks.

The relations are found on a sample of the original (`tables.relations`) and counted on both tables, or on the sample of
a large table. Only relations of a column that was recoded are looked for: others stay as they are. A label or a range
in the release is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from kinfold.measures.pairing import TablePair
from kinfold.policy.binding import BoundPolicy
from kinfold.policy.model import Rule
from kinfold.policy.rule_checks import count_violations
from kinfold.policy.rules import bind_rules
from kinfold.tables.engine import Engine
from kinfold.tables.queries import limit_sample, sample_positions
from kinfold.tables.relations import SAMPLED_ROWS, Relation, SampledColumn, find_relations
from kinfold.tables.schema import Role, Schema

MAX_COLUMNS = 60  # compared with each other
MAX_ROWS_COUNTED = 240_000  # of larger tables, about so many rows of each
MAX_LISTED = 20  # relations that break, the worst first


def measure_structure(tables: TablePair, policy: BoundPolicy) -> dict[str, Any]:
    """Return the number of relations found, and those that more records of the release break than of the original."""
    engine, sample = tables.engine, tables.sample
    original, released = tables.inspected
    rows, note = engine.schema(original).rows, {"estimated": sample.note} if sample else {}
    if rows > (most := limit_sample(engine, MAX_ROWS_COUNTED)):  # rules are counted on columns in memory
        original, released = (_take_sample(engine, frame) for frame in (original, released))
        note = note or {"estimated": f"estimated from {most:,} of {rows:,} records"}
    schemas = [engine.schema(frame) for frame in (original, released)]
    names = [c.name for c in policy.columns if c.role is not Role.IDENTIFIER and all(c.name in s for s in schemas)]
    known = {relation.check: relation for relation in _find(engine, original, policy, names[:MAX_COLUMNS])}
    # a relation that cannot be an edit rule is left out
    rules = [rule for check in known for rule in bind_rules([Rule(check=check)], policy.columns)[0]]
    counts = count_violations(replace(policy, rules=tuple(rules)), engine, original, released)
    sizes = [max(schema.rows, 1) for schema in schemas]
    broken = [each for each in counts if each.after / sizes[1] > each.before / sizes[0]]
    broken.sort(key=lambda each: (each.before / sizes[0] - each.after / sizes[1], each.check))
    listed = [
        {"kind": known[each.check].kind, "columns": list(known[each.check].columns), **asdict(each)}
        for each in broken[:MAX_LISTED]
    ]
    return {"found": len(counts), "broken": listed, "records": schemas[1].rows, **note}


def _take_sample(engine: Engine, frame: Any) -> Any:
    rows = engine.schema(frame).rows
    return engine.take(frame, sample_positions(rows, limit_sample(engine, min(rows, MAX_ROWS_COUNTED))))[0]


def _find(engine: Engine, frame: Any, policy: BoundPolicy, names: Sequence[str]) -> list[Relation]:
    schema = engine.schema(frame)
    if not names:
        return []
    if schema.rows > (size := limit_sample(engine, SAMPLED_ROWS)):
        frame = engine.take(frame, sample_positions(schema.rows, size))[0]
    recoded = {column.name for column in policy.with_role(Role.QUASI)}
    return find_relations([*_read_columns(engine, frame, schema, policy, names)], recoded)


def _read_columns(
    engine: Engine, frame: Any, schema: Schema, policy: BoundPolicy, names: Sequence[str]
) -> Iterator[SampledColumn]:
    numeric = [n for n in names if schema[n].storage.kind.is_numeric and policy[n].kind.is_numeric]
    table = engine.collect(frame, {name: schema[name] if name in numeric else None for name in names})
    for name in names:
        if name in numeric:
            numbers = np.asarray(table.column(name).to_numpy(zero_copy_only=False), np.float64)
            finite = np.where(np.isfinite(numbers), numbers, np.nan)
            yield SampledColumn.from_numbers(name, finite, dates=policy[name].kind == "date")
        else:
            yield SampledColumn.from_texts(name, table.column(name))
