"""Profiling: what the columns of a table are, whom they single out, and which part each could play.

A column or a combination singles a record out where no other record has the same values. Roles are proposed by names
and by values; they are a start to correct, not a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import combinations
from math import comb
from typing import Any

from kinfold.errors import plural
from kinfold.profiling.ordered_texts import scale_of
from kinfold.profiling.proposed_hierarchies import ProposedHierarchy, proposed_hierarchy
from kinfold.profiling.roles import Seen, Unit, assigned, unit_of, weight_of
from kinfold.profiling.shapes import Shape, shape_of, worth_ordering
from kinfold.progress import Progress, silent
from kinfold.rows.appearance import Appearance
from kinfold.rows.displayed import Displayed
from kinfold.rows.engines import Engine
from kinfold.rows.formulas import is_formula
from kinfold.rows.header import require_header
from kinfold.rows.name_hints import Hint, hints
from kinfold.rows.schema import Column, Kind, Role
from kinfold.rows.text_warnings import alike_told, formulas_told, name_told, texts_in

WIDEST = 8  # columns whose pairs and triples are looked at
MOST_ROWS = 30_000_000  # grouped for combinations: of a large table fewer columns are looked at
SHOWN = 10  # combinations, those that single out the most first
CLOSE = 0.3  # t of a confidential number: classes of some records reach it without becoming large
FEW_SORTS = 6  # different values from which a class is asked to hold three of them
SORTS_LEFT = 0.1  # share of the records that do not hold the two most frequent values, for that to be possible


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
    t: float | None = None  # how a confidential column could be protected
    l: int | None = None
    order: tuple[str, ...] = ()  # of an ordinal column of text
    hierarchy: ProposedHierarchy | None = None  # how it could be generalized

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; of the hierarchy what it is, for its labels are values of the table."""
        told = {key: value for key, value in vars(self).items() if key not in ("hierarchy", "order")}
        return {**told, "hierarchy": self.hierarchy.told if self.hierarchy else None}


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
    k: int = 5
    unit: Unit | None = None
    sampling_weights: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        columns = [column.to_dict() for column in self.columns]
        return {**asdict(replace(self, columns=())), "columns": columns}

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return what a notebook shows."""
        return "profile", {"profile": self}

    def __repr__(self) -> str:
        return f"<Profile: {plural(self.rows, 'record')}, {plural(len(self.columns), 'column')}>"


def profile(engine: Engine, frame: Any, progress: Progress = silent) -> Profile:
    """Look at every column, then at the pairs and triples of the most telling ones."""
    schema = engine.schema(frame)
    require_header(schema)
    variety = partial(_variety, engine, frame)
    looks = engine.appearances(frame, list(schema))
    columns = assigned([_seen(engine, frame, column, looks[column.name]) for column in schema], variety)
    k = sensible_k(schema.rows)
    unit = unit_of(columns, variety, k)
    odd = [told for seen in columns for told in _oddities(engine, frame, seen)]
    return Profile(
        schema.rows,
        tuple(_profiled(seen) for seen in columns),
        tuple(_combinations(engine, frame, columns, progress)),
        (*schema.notes, *_warnings(columns, unit), *odd),
        k=k,
        unit=unit,
        sampling_weights=weight_of(columns),
    )


def proposed_for(engine: Engine, frame: Any, name: str) -> ProposedHierarchy | None:
    """Return the hierarchy that one column could be generalized by, whatever its role."""
    column = engine.schema(frame)[name]
    seen = _seen(engine, frame, column, engine.appearances(frame, [column])[name])
    return proposed_hierarchy(seen.shape, seen.look, seen.hints)


def sensible_k(rows: int) -> int:
    """Return a k to start from: 5, and less where so few records would be one class.

    >>> sensible_k(1_000), sensible_k(8), sensible_k(3)
    (5, 3, 2)
    """
    return 5 if rows >= 50 else 3 if rows >= 6 else 2


def _seen(engine: Engine, frame: Any, column: Column, look: Appearance) -> Seen:
    named = hints(column.name)
    order = engine.succession(frame, column) if worth_ordering(column, look) else None
    return Seen(column, look, named, shape_of(column, look, order, named))


def _variety(engine: Engine, frame: Any, one: str, other: str) -> float:
    """Return how many values of the other column come with a value of this one, on average."""
    pairs, values = engine.pairs(frame, one, other)
    return pairs / max(values, 1)


def _profiled(seen: Seen) -> ColumnProfile:
    column, look = seen.column, seen.look
    kind = str(column.kind if seen.weight or look.distinct <= 1 else seen.shape.kind)
    unique = look.alone / column.rows if column.rows else 0.0
    facts = (column.name, kind, str(column.storage), look.distinct, column.nulls, unique, str(seen.role), seen.reason)
    order = scale_of(look.values) if seen.shape is Shape.SCALE else ()
    if seen.role not in (Role.QUASI, Role.CONFIDENTIAL):
        return ColumnProfile(*facts, order=order)
    hierarchy = proposed_hierarchy(seen.shape, look, seen.hints)
    if seen.role is Role.QUASI:
        return ColumnProfile(*facts, order=order, hierarchy=hierarchy)
    ordered = seen.shape.kind is not Kind.NOMINAL
    tables = hierarchy if seen.shape is Shape.DIAGNOSIS else None  # numbers that are released as they are need no bands
    return ColumnProfile(*facts, CLOSE if ordered else None, None if ordered else _diversity(look), order, tables)


def _diversity(look: Appearance) -> int:
    """Return how many different values a class could be asked to hold: three of many, two of few."""
    left = look.filled - sum(look.counts[:2])
    return 3 if look.distinct >= FEW_SORTS and left >= SORTS_LEFT * look.filled else 2


def _combinations(engine: Engine, frame: Any, columns: Sequence[Seen], progress: Progress) -> list[Combination]:
    """Return the pairs and triples of columns that single out the most; of a large table of fewer columns."""
    telling = [s for s in columns if s.role in (Role.QUASI, Role.OTHER) and s.look.distinct > 1]
    widest = sorted(telling, key=lambda s: (s.role is not Role.QUASI, -s.look.distinct))
    rows = max(columns[0].column.rows, 1) if columns else 1
    many = next(n for n in range(WIDEST, 1, -1) if n == 2 or (comb(n, 2) + comb(n, 3)) * rows <= MOST_ROWS)
    names = [s.name for s in columns if s in widest[:many]]
    sets = [*combinations(names, 2), *combinations(names, 3)]
    found = []
    for done, members in enumerate(sets):
        progress(done, len(sets))
        found.append(Combination(members, engine.alone(frame, members) / rows))
    found.sort(key=lambda c: (-c.unique, len(c.columns)))
    return found[:SHOWN]


def _oddities(engine: Engine, frame: Any, seen: Seen) -> Iterator[str]:
    """Say what is odd about a column; values of an identifier are not told apart by anybody."""
    column = seen.column
    if is_formula(column.name):
        yield name_told(column.name)
    if not column.kind.measured and seen.role != Role.IDENTIFIER:
        yield from alike_told(column.name, texts_in(engine.tally(frame, [column.name], {}), column.name))
    yield from formulas_told(column)


def _warnings(columns: Sequence[Seen], unit: Unit | None) -> Iterator[str]:
    if not any(seen.role is Role.QUASI for seen in columns):
        yield "no column is left that could be a quasi-identifier: every one seems to identify; correct the policy"
    for seen in columns:
        column, look = seen.column, seen.look
        if seen.role is Role.IDENTIFIER and look.rows_each > 1 and _numbers_people(seen, unit):
            yield (
                f"'{column.name}' looks like an identifier but repeats: {look.filled:,} rows, {look.distinct:,} values."
                " If a person has several rows, k rows are fewer than k people."
            )
        if column.nulls and seen.shape.kind.measured and seen.role is Role.QUASI:
            missed = f"'{column.name}' is {seen.shape.kind} and misses {column.nulls:,} values"
            yield f"{missed}: the policy must say what to do"


def _numbers_people(seen: Seen, unit: Unit | None) -> bool:
    named = unit is not None and unit.column == seen.name
    return named or seen.shape is Shape.SHARED_NUMBER or bool({Hint.NUMBER, Hint.PERSON} & seen.hints)
