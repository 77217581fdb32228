"""Profiling: what the columns of a table are, whom they single out, and which part each could play.

A column or a combination singles a record out where no other record has the same values. Roles are proposed by names
and by values; they are a start to correct, not a verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any

from kinfold.errors import plural
from kinfold.progress import Progress, silent
from kinfold.rows.engines import Engine
from kinfold.rows.formulas import is_formula
from kinfold.rows.header import require_header
from kinfold.rows.notebook import Displayed
from kinfold.rows.schema import Column, Kind, Role, Schema, Storage
from kinfold.rows.tally import Tally
from kinfold.rows.text_warnings import alike_told, formulas_told, name_told, texts_in

IDENTIFYING = (
    r"(?i:(^|[_\W])(id|name|ssn|passport|e-?mail|phone|mobile|address|street|iban|mrn|uuid|insurance_?no)([_\W]|$))"
    r"|(Id|ID|Name)$"
)
CONFIDENTIAL = (
    r"disease|diagnos|condition|income|salary|wage|debt|religio|politic|sexual|therapy|crime"
    r"|(?<![a-z])(charge|cost|drug|hiv)"  # but not discharge, Pentecost, archive
)
ALMOST_ALL = 0.95  # share of different values from which a column is taken for an identifier
WIDEST = 8  # columns whose pairs and triples are looked at
SHOWN = 10  # combinations, those that single out the most first


@dataclass(frozen=True)
class ColumnProfile:
    """One column: what it is, how much it singles out by itself, and the role it could play."""

    name: str
    kind: str
    storage: str
    distinct: int
    missing: int
    unique: float  # share of records that it makes unique
    role: str
    reason: str


@dataclass(frozen=True)
class Combination:
    """Columns that together make a share of the records unique."""

    columns: tuple[str, ...]
    unique: float


@dataclass(frozen=True)
class Profile(Displayed):
    """A table at a glance."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    combinations: tuple[Combination, ...]
    warnings: tuple[str, ...]
    source: Mapping[str, Any] = field(default_factory=dict)  # how the table is written: see `source_guess`
    readings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return what a notebook shows."""
        return "profile", {"profile": self}

    def __repr__(self) -> str:
        return f"<Profile: {plural(self.rows, 'record')}, {plural(len(self.columns), 'column')}>"


def profile(engine: Engine, frame: Any, progress: Progress = silent) -> Profile:
    """Look at every column, then at the pairs and triples of the most telling ones."""
    schema = engine.schema(frame)
    require_header(schema)
    columns: list[ColumnProfile] = []
    odd: list[str] = []
    for column in schema:
        alone = engine.tally(frame, [column.name], {})
        columns.append(_profiled(column, _share_alone(alone)))
        odd += _oddities(column, columns[-1].role, alone)
    telling = [c for c in columns if c.role not in (Role.IDENTIFIER, Role.CONFIDENTIAL) and c.distinct > 1]
    widest = sorted(telling, key=lambda c: -c.distinct)[:WIDEST]
    names = [c.name for c in columns if c in widest]
    sets = [*combinations(names, 2), *combinations(names, 3)]
    found = []
    for done, members in enumerate(sets):
        progress(done, len(sets))
        found.append(Combination(members, _unique(engine, frame, members)))
    found.sort(key=lambda c: (-c.unique, len(c.columns)))
    return Profile(schema.rows, tuple(columns), tuple(found[:SHOWN]), (*_warnings(schema, columns), *odd))


def _unique(engine: Engine, frame: Any, names: Sequence[str]) -> float:
    return _share_alone(engine.tally(frame, names, {}))


def _share_alone(tally: Tally) -> float:
    return float((tally.sizes == 1).sum() / tally.sizes.sum())


def _oddities(column: Column, role: str, alone: Tally) -> Iterator[str]:
    """Say what is odd about a column; values of an identifier are not told apart by anybody."""
    if is_formula(column.name):
        yield name_told(column.name)
    if not column.kind.measured and role != Role.IDENTIFIER:
        yield from alike_told(column.name, texts_in(alone, column.name))
    yield from formulas_told(column)


def _profiled(column: Column, unique: float) -> ColumnProfile:
    role, reason = propose(column)
    return ColumnProfile(
        column.name, str(column.kind), str(column.storage), column.distinct, column.nulls, unique, str(role), reason
    )


def propose(column: Column) -> tuple[Role, str]:
    """Return the role that a column could play, and why."""
    filled = column.rows - column.nulls
    if re.search(IDENTIFYING, column.name):
        return Role.IDENTIFIER, "its name says that it identifies"
    if column.storage is Storage.TEXT and filled > 1 and column.distinct >= ALMOST_ALL * filled:
        return Role.IDENTIFIER, "almost every record has a text of its own"
    if re.search(CONFIDENTIAL, column.name, re.IGNORECASE):
        return Role.CONFIDENTIAL, "its name says that it is sensitive"
    if column.distinct <= 1:
        return Role.OTHER, "it tells nobody apart"
    return Role.QUASI, "somebody else may know it"


def _warnings(schema: Schema, columns: Sequence[ColumnProfile]) -> list[str]:
    warnings = []
    for column in columns:
        filled = schema.rows - column.missing
        if column.role == Role.IDENTIFIER and column.distinct < filled:
            warnings.append(
                f"'{column.name}' looks like an identifier but repeats: {filled:,} rows, "
                f"{plural(column.distinct, 'value')}."
                " If a person has several rows, k rows are fewer than k people."
            )
        if column.missing and column.kind in (Kind.CONTINUOUS, Kind.DATE) and column.role == Role.QUASI:
            warnings.append(
                f"'{column.name}' is {column.kind} and misses {plural(column.missing, 'value')}: "
                "the policy must say what to do"
            )
    return warnings
