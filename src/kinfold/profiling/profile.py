"""Profiles: what the columns of a table are, which records they single out, and which role each could have.

A column or a combination of columns singles out a record if no other record has the same values. Roles are proposed by
names and by values; they are a start to correct, not a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from kinfold.errors import plural
from kinfold.profiling.dependencies import (
    MAX_COMPARED_ROWS,
    RowEvidence,
    RowSample,
    combine_codes,
    draw_sample,
    find_dependencies,
    find_near_keys,
)
from kinfold.profiling.hierarchy_proposals import ProposedHierarchy, propose_hierarchy
from kinfold.profiling.people import People, RowComparison, Unit, find_people
from kinfold.profiling.questions import OpenQuestion, ask_about_codes, ask_about_dependent, ask_about_weights
from kinfold.profiling.roles import (
    COORDINATES,
    RoleProposal,
    assign_roles,
    find_possible_weights,
    find_weights,
    list_treatment,
    propose_roles,
    protect_dependent,
)
from kinfold.profiling.shapes import (
    MAX_CODE_VALUES,
    Shape,
    detect_shape,
    find_coordinates,
    find_scale,
    is_skewed_count,
    needs_order,
)
from kinfold.profiling.value_hints import are_births, find_value_hints
from kinfold.progress import Progress, no_progress
from kinfold.tables.column_names import SENSITIVE_HINTS, Hint, find_hints, require_header
from kinfold.tables.display import Displayable
from kinfold.tables.engine import Engine
from kinfold.tables.queries import compute_order_stats, count_unique_rows
from kinfold.tables.relations import Relation, SampledColumn, find_relations
from kinfold.tables.schema import Column, Kind, Role, Storage, ValueStats
from kinfold.tables.source_form import ColumnForm, has_time
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
MAX_ROUNDS = 3  # of the search for dependent columns: a treated column may depend on another
MAX_TITLE_WORDS = 8  # of the label of a column of SPSS or Stata, to take it for a name
MAX_RULES = 6  # of each kind
PROPOSED_T = 0.3  # t of a confidential number; small classes can reach it
MIN_COMMON_COUNT = 50  # mean records of a post code that tells little about a person
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
    undecided: bool = False  # whether the answer to a question decides about its release
    depends_on: tuple[str, ...] = ()  # protected or removed columns that it tells
    order: tuple[str, ...] = ()  # of an ordinal column of text
    average: str | None = None  # proposed instead of the default of its type
    hierarchy: ProposedHierarchy | None = None  # proposed generalization
    na: tuple[str, ...] = ()  # codes for missing values
    unit: tuple[str, ...] = ()  # before or after its numbers
    of: str | None = None  # person or event, if a person has several rows: whose attribute it is

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
    rows_of_person: int = 1  # at most, if no column numbers people with several rows
    sampling_weights: str | None = None
    rules: tuple[Relation, ...] = ()  # edit rules that hold in almost all records
    questions: tuple[OpenQuestion, ...] = ()  # that the steward has to answer before a release

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; the check of an implication names values of the table and is left out."""
        rules = [replace(rule, check="") if rule.kind == "implication" else rule for rule in self.rules]
        values = asdict(replace(self, columns=(), rules=tuple(rules)))
        return values | {"columns": [column.to_dict() for column in self.columns]}

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return the kind of display and its values for a notebook."""
        return "profile", {"profile": self}

    def __repr__(self) -> str:
        return f"<Profile: {plural(self.rows, 'record')}, {plural(len(self.columns), 'column')}>"


def profile(engine: Engine, frame: Any, progress: Progress = no_progress) -> Profile:
    """Profile every column, then the pairs and triples of the most telling columns."""
    schema = engine.schema(frame)
    require_header(schema)
    stats = engine.profile(frame, list(schema))
    observed = [_observe_column(engine, frame, column, stats[column.name]) for column in schema]
    forms = frame.form.get_columns(schema.names)
    evidence = RowEvidence(engine, frame, draw_sample(engine, frame, list(schema)))
    columns, people, questions = _propose(observed, evidence)
    unit = people.unit.column if people.unit and people.unit.people else None
    uniqueness = Uniqueness(engine, frame, evidence, unit)
    text_warnings = [warning for column in columns for warning in _list_text_warnings(engine, frame, column)]
    profiles = [_profile_column(proposal, uniqueness, forms.get(proposal.name, ColumnForm())) for proposal in columns]
    return Profile(
        schema.rows,
        tuple(profiles if unit is None else _mark_attributes(engine, frame, profiles, unit)),
        tuple(_find_combinations(uniqueness, columns, progress)),
        (*schema.notes, *_list_role_warnings(columns, people.unit), *text_warnings),
        k=choose_k(schema.rows),
        unit=people.unit,
        rows_of_person=people.rows_of_person,
        sampling_weights=find_weights(columns),
        rules=tuple(_propose_rules(evidence.sample, columns)),
        questions=tuple(questions),
    )


def _mark_attributes(
    engine: Engine, frame: Any, columns: Sequence[ColumnProfile], unit: str
) -> Iterator[ColumnProfile]:
    """Yield the columns with whose attribute each is: of the person if it has one value in all rows of every person."""
    people = sum(classes for _, classes in engine.count_classes(frame, [unit]))
    for column in columns:
        if column.role in (Role.IDENTIFIER, Role.REMOVE):
            yield column
        else:
            pairs = sum(classes for _, classes in engine.count_classes(frame, [unit, column.name]))
            yield replace(column, of="person" if pairs == people else "event")


def _propose_rules(sample: RowSample, columns: Sequence[RoleProposal]) -> Iterator[Relation]:
    """Yield edit rules of columns that are recoded, sums first; of two columns, the one implication that says most."""
    roles = (Role.QUASI, Role.CONFIDENTIAL, Role.OTHER)
    released = [column for column in columns if column.role in roles or column.undecided]
    sampled = [_sample_column(sample, column) for column in released if column.stats.distinct > 1]
    recoded = {column.name for column in released if column.role is Role.QUASI or column.undecided}
    relations = find_relations(sampled, recoded)
    for kind in ("sum", "order", "function", "implication"):
        best = sorted((rule for rule in relations if rule.kind == kind), key=lambda rule: -rule.expected)
        if kind == "implication":
            best = [*{frozenset(rule.columns): rule for rule in reversed(best)}.values()][::-1]
        yield from best[:MAX_RULES]


def _sample_column(sample: RowSample, column: RoleProposal) -> SampledColumn:
    codes, dates = sample.codes[column.name][sample.compared], column.shape.kind is Kind.DATE
    if column.name in sample.numbers and column.shape.kind.is_numeric:
        return SampledColumn.from_numbers(column.name, sample.numbers[column.name][sample.compared], dates=dates)
    labels = sample.labels[column.name]
    return SampledColumn(column.name, None, np.where(codes < 0, len(labels), codes), [*labels, None])


def _propose(
    observed: Sequence[RoleProposal], evidence: RowEvidence
) -> tuple[list[RoleProposal], People, list[OpenQuestion]]:
    """Return the columns with their roles, whose rows they are, and what the steward has to answer."""
    single = _remove_by_values(propose_roles(observed, evidence.determines))
    people = find_people(single, RowComparison(single, evidence), choose_k(evidence.sample.table_rows))
    placed = assign_roles(single, people.keys)
    columns = _treat_dependent(placed, people, evidence)
    questions = [*people.questions]
    questions += _ask_about_dependent(placed, columns, [question.name for question in questions])
    if weights := find_possible_weights(columns):
        reason = "a number with many decimals, different in almost every record: perhaps sampling weights"
        columns = [each.with_role(Role.WEIGHT, reason) if each.name in weights else each for each in columns]
        questions.append(ask_about_weights(weights))
    if codes := [column.name for column in columns if column.undecided]:
        questions.append(ask_about_codes(codes))
    return columns, people, questions


def _remove_by_values(columns: Sequence[RoleProposal]) -> list[RoleProposal]:
    """Return columns whose values are coordinates with the role remove, and names and addresses with their reason."""
    places = {*find_coordinates([(column.column, column.stats) for column in columns if not column.hints])}
    result = []
    for column in columns:
        if column.role is not Role.IDENTIFIER and column.name in places:
            result.append(replace(column.with_role(Role.REMOVE, f"numbers like {COORDINATES}"), weight=False))
        elif column.role is Role.IDENTIFIER and Hint.PERSON in column.hints - find_hints(
            f"{column.name} {column.column.title}"
        ):
            result.append(column.with_role(Role.IDENTIFIER, "its values are names or addresses of people"))
        else:
            result.append(column)
    return result


def _ask_about_dependent(
    placed: Sequence[RoleProposal], columns: Sequence[RoleProposal], used: Sequence[str]
) -> list[OpenQuestion]:
    """Return a question for each reason to give confidential columns another role."""
    changed: dict[tuple[str, Role], list[RoleProposal]] = {}
    for before, after in zip(placed, columns, strict=True):
        if before.role is Role.CONFIDENTIAL is not after.role and _has_sensitive_meaning(before):
            changed.setdefault((str(after.dependency), after.role), []).append(after)
    questions: list[OpenQuestion] = []
    for (_, role), group in changed.items():
        roles = [*dict.fromkeys(map(str, (role, Role.CONFIDENTIAL, Role.REMOVE)))]
        names = [*used, *(question.name for question in questions)]
        if dependency := group[0].dependency:
            questions.append(ask_about_dependent(dependency, [each.name for each in group], roles, names))
    return questions


def _has_sensitive_meaning(proposal: RoleProposal) -> bool:
    """Whether a column is confidential by its meaning, so that another role needs a decision."""
    return bool(proposal.sensitive_hint or proposal.shape is Shape.DIAGNOSIS)


def _treat_dependent(columns: list[RoleProposal], people: People, evidence: RowEvidence) -> list[RoleProposal]:
    """Give columns that tell a protected or removed one the same treatment; these may tell others."""
    if people.unit is not None:
        unit, treated = people.unit, list_treatment(columns)
        if not unit.people or not all(evidence.determines(unit.column, name) for name in treated.protected):
            links = find_near_keys(evidence.sample, treated.unchanged, unit.column, people=unit.people)
            columns = protect_dependent(columns, links)
        columns = [_remove_copy(column, unit.column, evidence) for column in columns]
        evidence = evidence.with_group(people.unit.column)
    sources: set[str] | None = None
    for _ in range(MAX_ROUNDS):
        dependencies = find_dependencies(evidence, list_treatment(columns, sources))
        columns = protect_dependent(columns, dependencies)
        sources = {*dependencies}
        if not sources:
            break
    return columns


def _remove_copy(column: RoleProposal, key: str, evidence: RowEvidence) -> RoleProposal:
    """Return a code without a known meaning as identifier if it numbers the same people or households as their key."""
    coded = column.role is Role.QUASI and not column.known_hint and column.shape in (Shape.CODE, Shape.MANY_CODES)
    if coded and evidence.determines(column.name, key) and evidence.determines(key, column.name):
        return column.with_role(Role.IDENTIFIER, column.shape.value, f"says the same as '{key}'")
    return column


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
    if len(column.title.split()) <= MAX_TITLE_WORDS:  # a whole question mentions many things
        named |= find_hints(column.title)
    if form := frame.form.get_columns([column.name]).get(column.name):
        named |= {Hint.MEASURE} if form.unit else set()
    if column.storage in (Storage.INTEGER, Storage.NUMBER) and is_skewed_count(stats):
        named -= {Hint.NUMBER}  # dni are numbers of people in Spain, and days in Poland
    if column.storage is Storage.TEXT:
        by_values = find_value_hints(column.name, stats)
        if Hint.PERSON in by_values:
            named -= {*SENSITIVE_HINTS, Hint.EDUCATION, Hint.WORK, Hint.FAMILY}  # a taxpayer is no tax
        named |= by_values
    if not named and column.storage.kind is not Kind.DATE and are_births(stats.values):
        named |= {Hint.BIRTH}
    order = compute_order_stats(engine, frame, column) if needs_order(column, stats) else None
    return RoleProposal(column, stats, named, detect_shape(column, stats, order, named))


def _profile_column(proposal: RoleProposal, uniqueness: Uniqueness, form: ColumnForm) -> ColumnProfile:
    column, stats, shape, role = proposal.column, proposal.stats, proposal.shape, proposal.role
    facts = ColumnProfile(
        column.name,
        str(_choose_kind(proposal)),
        str(column.storage),
        stats.distinct,
        column.nulls,
        uniqueness.measure_column(column.name, stats),
        str(role),
        proposal.reason,
        undecided=proposal.undecided,
        depends_on=proposal.depends_on,
        order=find_scale(stats.values) if shape is Shape.SCALE else (),
        na=form.na,
        unit=form.unit,
    )
    answerable = (proposal.depends_on and _has_sensitive_meaning(proposal)) or (
        role is Role.WEIGHT and not proposal.weight
    )
    if role is Role.CONFIDENTIAL or answerable:
        facts = replace(facts, **_choose_promise(proposal))  # also for the answer that makes it confidential
    if role not in (Role.QUASI, Role.CONFIDENTIAL):
        return facts
    if role is Role.QUASI or shape is Shape.DIAGNOSIS:  # confidential numbers are released unchanged, without bands
        facts = replace(facts, hierarchy=propose_hierarchy(shape, stats, proposal.hints))
    return replace(facts, average="generalize") if role is Role.QUASI and _must_stay_true(proposal) else facts


def _choose_kind(proposal: RoleProposal) -> Kind:
    """Return the type to propose: dates of birth that are generalized are nominal, so that classes fit their hierarchy.

    As dates, 1959 and 1961 are close, but their label is forty years wide.
    """
    if proposal.weight or proposal.stats.distinct <= 1:
        return proposal.column.kind
    day = proposal.shape is Shape.MOMENT and not has_time(proposal.column.date_format)
    if proposal.role is Role.QUASI and day and _must_stay_true(proposal):
        return Kind.NOMINAL
    return proposal.shape.kind


def _choose_promise(proposal: RoleProposal) -> dict[str, Any]:
    """Return the promise about a confidential column: t of a number, l of a category."""
    if proposal.shape.kind is not Kind.NOMINAL:
        return {"t": PROPOSED_T}
    return {"l": _choose_l(proposal.stats) if _has_sensitive_meaning(proposal) else 2}


def _must_stay_true(proposal: RoleProposal) -> bool:
    """Whether one value of a class would be false for most others, and that of few people: a post code, a birthday."""
    if proposal.shape is Shape.MOMENT:
        return Hint.BIRTH in proposal.hints
    if proposal.shape is Shape.POST_CODE:
        return proposal.stats.distinct > MAX_CODE_VALUES or proposal.stats.mean_count < MIN_COMMON_COUNT
    return proposal.shape is Shape.MANY_CODES


def _choose_l(stats: ValueStats) -> int:
    """Return the number of different values to require in each class: three if there are many, else two."""
    left = stats.filled - sum(stats.counts[:2])
    return 3 if stats.distinct >= MIN_VALUES_FOR_L3 and left >= MIN_SHARE_FOR_L3 * stats.filled else 2


def _find_combinations(
    uniqueness: Uniqueness, columns: Sequence[RoleProposal], progress: Progress
) -> list[Combination]:
    """Return the pairs and triples of columns that single out the most people."""
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
        combined.append(Combination(members, uniqueness.measure(members)))
    combined.sort(key=lambda c: (-c.unique, len(c.columns)))
    return combined[:MAX_COMBINATIONS]


class Uniqueness:
    """The share of people that values single out: of records, or of the people who have several records each."""

    def __init__(self, engine: Engine, frame: Any, evidence: RowEvidence, unit: str | None) -> None:
        self._engine, self._frame, self._evidence = engine, frame, evidence
        self._rows = evidence.sample.table_rows
        self._unit = unit if self._rows <= MAX_COMPARED_ROWS else None

    def measure_column(self, name: str, stats: ValueStats) -> float:
        """Return the share that one column singles out."""
        if self._unit is None:
            return stats.unique_rows / self._rows if self._rows else 0.0
        return self.measure((name,))

    def measure(self, names: Sequence[str]) -> float:
        """Return the share that a combination of columns singles out."""
        if self._unit is None:
            return count_unique_rows(self._engine, self._frame, names) / max(self._rows, 1)
        person = self._evidence.get_codes(self._unit) + 1
        people = int(person.max(initial=0)) + 1
        values = combine_codes([self._evidence.get_codes(name) for name in names], self._rows, people)
        ordered = np.sort(values * people + person)
        value = ordered // people
        owner = ordered - value * people
        ends = np.append(np.flatnonzero(np.diff(value)), len(value) - 1)
        starts = np.append(0, ends[:-1] + 1)
        singled = np.zeros(people, np.bool_)
        singled[owner[starts[owner[starts] == owner[ends]]]] = True  # values that one person has
        return float(singled.sum()) / max(int(np.count_nonzero(np.bincount(person))), 1)


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
        if unit is None and proposal.role is Role.IDENTIFIER and stats.mean_count > 1 and people:
            yield (
                f"'{column.name}' looks like an identifier but repeats: {stats.filled:,} rows, "
                f"{stats.distinct:,} values. If a person has several rows, k rows are fewer than k people."
            )
        if column.nulls and _choose_kind(proposal).is_numeric and proposal.role is Role.QUASI:
            missed = f"'{column.name}' is {proposal.shape.kind} and misses {column.nulls:,} values"
            yield f'{missed}: set `missing` in the policy; a starter policy has "separate"'
