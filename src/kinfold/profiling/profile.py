"""Profiles: what the columns of a table are, which records they single out, and which role each could have.

A column or a combination of columns singles out a record if no other record has the same values. Roles are proposed by
names and by values; they are a start to correct, not a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import combinations
from math import comb
from typing import Any

from kinfold.errors import plural
from kinfold.profiling.hierarchy_proposals import ProposedHierarchy, propose_hierarchy
from kinfold.profiling.questions import Question
from kinfold.profiling.roles import RoleProposal, Unit, assign_roles, find_unit, find_weights
from kinfold.profiling.shapes import Shape, detect_shape, find_scale, needs_order
from kinfold.profiling.value_hints import find_value_hints
from kinfold.progress import Progress, no_progress
from kinfold.tables.column_names import Hint, find_hints, require_header
from kinfold.tables.display import Displayable
from kinfold.tables.engine import Engine
from kinfold.tables.queries import compute_order_stats, count_unique_rows, count_value_pairs
from kinfold.tables.schema import Column, Kind, Role, Storage, ValueStats
from kinfold.tables.source_form import ColumnForm
from kinfold.tables.text_values import (
    describe_formula_name,
    describe_formulas,
    describe_look_alikes,
    get_text_counts,
    is_formula,
)

MAX_COMBINED_COLUMNS = 8  # columns whose pairs and triples are counted
MAX_GROUPED_ROWS = 30_000_000  # rows times combinations; for a large table fewer columns are combined
MAX_COMBINATIONS = 10  # that the profile lists, the worst first
PROPOSED_T = 0.3  # t of a confidential number; small classes can reach it
MIN_VALUES_FOR_L3 = 6  # different values of a column; with fewer, l = 2 is proposed
MIN_SHARE_FOR_L3 = 0.1  # share of records outside the two most frequent values; with less, l = 2 is proposed


@dataclass(frozen=True)
class ColumnProfile:
    """One column: its type, the share of records that it makes unique, and a proposed role."""

    name: str
    kind: str
    storage: str
    distinct: int
    missing: int
    unique: float  # share of records that it makes unique
    role: str
    reason: str
    t: float | None = None  # proposed promise about a confidential column
    l: int | None = None
    order: tuple[str, ...] = ()  # of an ordinal column of text
    hierarchy: ProposedHierarchy | None = None  # proposed generalization
    na: tuple[str, ...] = ()  # codes for missing values
    unit: tuple[str, ...] = ()  # before or after its numbers

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, without labels of the hierarchy, which are values of the table."""
        values = {key: value for key, value in vars(self).items() if key not in ("hierarchy", "order")}
        return {**values, "hierarchy": self.hierarchy.description if self.hierarchy else None}


@dataclass(frozen=True)
class Combination:
    """Columns whose combination makes a share of the records unique."""

    columns: tuple[str, ...]
    unique: float


@dataclass(frozen=True)
class Profile(Displayable):
    """The columns of a table, the combinations that single people out, and proposals for a policy."""

    rows: int
    columns: tuple[ColumnProfile, ...]
    combinations: tuple[Combination, ...]
    warnings: tuple[str, ...]
    source: Mapping[str, Any] = field(default_factory=dict)  # the detected format: see `source_detection`
    readings: tuple[str, ...] = ()
    k: int = 5
    unit: Unit | None = None
    sampling_weights: str | None = None
    questions: tuple[Question, ...] = ()  # that the steward has to answer before a release

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(replace(self, columns=())) | {"columns": [column.to_dict() for column in self.columns]}

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return the kind of display and its values for a notebook."""
        return "profile", {"profile": self}

    def __repr__(self) -> str:
        return f"<Profile: {plural(self.rows, 'record')}, {plural(len(self.columns), 'column')}>"


def profile(engine: Engine, frame: Any, progress: Progress = no_progress) -> Profile:
    """Profile every column, then the pairs and triples of the most telling columns."""
    schema = engine.schema(frame)
    require_header(schema)
    variety = partial(_compute_variety, engine, frame)
    stats = engine.profile(frame, list(schema))
    columns = assign_roles([_observe_column(engine, frame, column, stats[column.name]) for column in schema], variety)
    forms = frame.form.get_columns(schema.names)
    k = choose_k(schema.rows)
    unit = find_unit(columns, variety, k)
    text_warnings = [warning for column in columns for warning in _list_text_warnings(engine, frame, column)]
    return Profile(
        schema.rows,
        tuple(_profile_column(proposal, forms.get(proposal.name, ColumnForm())) for proposal in columns),
        tuple(_find_combinations(engine, frame, columns, progress)),
        (*schema.notes, *_list_role_warnings(columns, unit), *text_warnings),
        k=k,
        unit=unit,
        sampling_weights=find_weights(columns),
    )


def propose_hierarchy_for(engine: Engine, frame: Any, name: str) -> ProposedHierarchy | None:
    """Return a hierarchy for one column, whatever its role."""
    column = engine.schema(frame)[name]
    proposal = _observe_column(engine, frame, column, engine.profile(frame, [column])[name])
    return propose_hierarchy(proposal.shape, proposal.stats, proposal.hints)


def choose_k(rows: int) -> int:
    """Return a k to start from: 5, or less for a very small table.

    >>> choose_k(1_000), choose_k(8), choose_k(3)
    (5, 3, 2)
    """
    return 5 if rows >= 50 else 3 if rows >= 6 else 2


def _observe_column(engine: Engine, frame: Any, column: Column, stats: ValueStats) -> RoleProposal:
    named = find_hints(column.name)
    if form := frame.form.get_columns([column.name]).get(column.name):
        named |= {Hint.MEASURE} if form.unit else set()
    if column.storage is Storage.TEXT:
        named |= find_value_hints(column.name, stats)
    order = compute_order_stats(engine, frame, column) if needs_order(column, stats) else None
    return RoleProposal(column, stats, named, detect_shape(column, stats, order, named))


def _compute_variety(engine: Engine, frame: Any, one: str, other: str) -> float:
    """Return the average number of values of `other` per value of `one`."""
    pairs, values = count_value_pairs(engine, frame, one, other)
    return pairs / max(values, 1)


def _profile_column(proposal: RoleProposal, form: ColumnForm) -> ColumnProfile:
    column, stats, shape, role = proposal.column, proposal.stats, proposal.shape, proposal.role
    facts = ColumnProfile(
        column.name,
        str(column.kind if proposal.weight or stats.distinct <= 1 else shape.kind),
        str(column.storage),
        stats.distinct,
        column.nulls,
        stats.unique_rows / column.rows if column.rows else 0.0,
        str(role),
        proposal.reason,
        order=find_scale(stats.values) if shape is Shape.SCALE else (),
        na=form.na,
        unit=form.unit,
    )
    if role not in (Role.QUASI, Role.CONFIDENTIAL):
        return facts
    if role is Role.QUASI or shape is Shape.DIAGNOSIS:  # confidential numbers are released unchanged, without bands
        facts = replace(facts, hierarchy=propose_hierarchy(shape, stats, proposal.hints))
    if role is Role.QUASI:
        return facts
    return replace(facts, l=_choose_l(stats)) if shape.kind is Kind.NOMINAL else replace(facts, t=PROPOSED_T)


def _choose_l(stats: ValueStats) -> int:
    """Return the number of different values to require in each class: three if there are many, else two."""
    left = stats.filled - sum(stats.counts[:2])
    return 3 if stats.distinct >= MIN_VALUES_FOR_L3 and left >= MIN_SHARE_FOR_L3 * stats.filled else 2


def _find_combinations(
    engine: Engine, frame: Any, columns: Sequence[RoleProposal], progress: Progress
) -> list[Combination]:
    """Return the pairs and triples of columns that single out the most records."""
    candidates = [s for s in columns if s.role in (Role.QUASI, Role.OTHER) and s.stats.distinct > 1]
    widest = sorted(candidates, key=lambda s: (s.role is not Role.QUASI, -s.stats.distinct))
    rows = max(columns[0].column.rows, 1) if columns else 1
    limit = next(
        n for n in range(MAX_COMBINED_COLUMNS, 1, -1) if n == 2 or (comb(n, 2) + comb(n, 3)) * rows <= MAX_GROUPED_ROWS
    )
    names = [s.name for s in columns if s in widest[:limit]]
    sets = [*combinations(names, 2), *combinations(names, 3)]
    combined = []
    for done, members in enumerate(sets):
        progress(done, len(sets))
        combined.append(Combination(members, count_unique_rows(engine, frame, members) / rows))
    combined.sort(key=lambda c: (-c.unique, len(c.columns)))
    return combined[:MAX_COMBINATIONS]


def _list_text_warnings(engine: Engine, frame: Any, proposal: RoleProposal) -> Iterator[str]:
    """Yield warnings about formulas and look-alike texts; not about values of identifiers."""
    column = proposal.column
    if is_formula(column.name):
        yield describe_formula_name(column.name)
    if not column.kind.is_numeric and proposal.role != Role.IDENTIFIER:
        tally = engine.tally(frame, [column.name], {})
        yield from describe_look_alikes(column.name, get_text_counts(tally, column.name))
    yield from describe_formulas(column)


def _list_role_warnings(columns: Sequence[RoleProposal], unit: Unit | None) -> Iterator[str]:
    if not any(proposal.role is Role.QUASI for proposal in columns):
        yield "no column can be a quasi-identifier, because every column seems to identify people; correct the policy"
    for proposal in columns:
        column, stats = proposal.column, proposal.stats
        people = proposal.shape is Shape.SHARED_NUMBER or bool({Hint.NUMBER, Hint.PERSON} & proposal.hints)
        people = people or (unit is not None and unit.column == proposal.name)
        if proposal.role is Role.IDENTIFIER and stats.mean_count > 1 and people:
            yield (
                f"'{column.name}' looks like an identifier but repeats: {stats.filled:,} rows, "
                f"{stats.distinct:,} values. If a person has several rows, k rows are fewer than k people."
            )
        if column.nulls and proposal.shape.kind.is_numeric and proposal.role is Role.QUASI:
            missed = f"'{column.name}' is {proposal.shape.kind} and misses {column.nulls:,} values"
            yield f"{missed}: set `missing` in the policy"
