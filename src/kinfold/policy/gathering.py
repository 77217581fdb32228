"""What a policy asks for that needs every record in one place, if an engine limits how many one place holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kinfold.errors import PolicyError, Problem
from kinfold.policy.model import Policy
from kinfold.tables.engine import Engine

GATHERING_FIX = "use engine duckdb; or, if the driver has the memory, raise engine.driver_rows"


def require_collectable(engine: Engine, frame: Any, policy: Policy) -> None:
    """Refuse what needs every record in one place if the table has more than one place may hold."""
    reasons = [*_find_reasons(policy)] if engine.max_collected_rows is not None else []
    if reasons:
        refuse_to_collect(engine, engine.schema(frame).rows, reasons)


def refuse_to_collect(engine: Engine, records: int, reasons: Iterable[str]) -> None:
    """Raise with these reasons if so many records do not fit into one place."""
    limit = engine.max_collected_rows
    if limit is not None and records > limit:
        where = f"the driver of Spark would hold all {records:,} records, and it may collect {limit:,} at a time"
        raise PolicyError(Problem(f"{reason}: {where}", GATHERING_FIX) for reason in reasons)


def _find_reasons(policy: Policy) -> Iterator[str]:
    """Yield what needs every record, whatever the method."""
    privacy = policy.privacy
    if privacy.unit is not None:
        yield "privacy.unit counts people over the whole table"
    if privacy.household is not None:
        yield "privacy.household keeps households together over the whole table"
    if privacy.joint:
        yield "privacy.joint keeps promises about combinations of confidential values over the whole table"
    if policy.rules:
        yield "edit rules ([[rules]]) are checked in every record"
    if policy.sampling_weights is not None:
        yield "sampling weights are added up record by record"
    if policy.report.measures == "all":
        yield 'report.measures = "all" compares every record'
    if perturbed := [f"columns.{name}" for name, column in policy.columns.items() if column.perturb is not None]:
        yield f"perturb ({', '.join(perturbed)}) changes values in the order of the records"
