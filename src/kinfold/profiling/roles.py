"""Roles: propose the role of each column, by its values first and by its name second.

1. each column alone: its shape, the hints in its name, the role that follows from both
2. sampling weights: by name, or numbers with fractions that repeat together with another column
3. the table: a few quasi-identifiers, those that others know best; a few confidential columns, because many cannot be
   protected at once; other columns are released if they have few values, else removed
4. the unit: numbers that repeat identify people, or households, with several rows

The proposal is a start to correct, and it runs: in doubt it removes a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kinfold.profiling.shapes import MAX_CODE_VALUES, Shape, is_nearly_unique
from kinfold.tables.column_names import (
    IDENTIFYING_HINTS,
    PUBLICLY_KNOWN_HINTS,
    SENSITIVE_HINTS,
    Hint,
    find_hints,
)
from kinfold.tables.schema import Column, Role, Storage, ValueStats

MAX_QUASI = 8
ENOUGH_RECOGNIZED_QUASI = 3  # recognized by name or format; then unrecognized codes are not used
MAX_UNRECOGNIZED_QUASI = 6  # quasi-identifiers if unrecognized codes are needed
MAX_CONFIDENTIAL = 5
MAX_VARIETY_OF_ONE = 1.01  # average number of values per value of another column; a few may be errors
MAX_AGES_OF_PERSON = 1.5  # average number of ages of a person with several rows
MAX_AVERAGED_VALUE = 1e150  # the square of a larger value overflows
MIN_RECORDS_PER_WEIGHT = 5  # records that share a weight; rarer weights are removed

Variety = Callable[[str, str], float]  # average number of values of the second column per value of the first

RECOGNIZED_SHAPES = (Shape.MOMENT, Shape.AGE, Shape.YEAR, Shape.POST_CODE)  # others may know these, whatever the name


@dataclass(frozen=True)
class RoleProposal:
    """A column with statistics of its values, hints in its name, its shape, and the proposed role."""

    column: Column
    stats: ValueStats
    hints: frozenset[Hint]
    shape: Shape
    role: Role = Role.OTHER
    reason: str = ""
    weight: bool = False  # a column of sampling weights

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def known_hint(self) -> Hint | None:
        """The kind of public knowledge that the name hints at."""
        return next((hint for hint in PUBLICLY_KNOWN_HINTS if hint in self.hints), None)

    @property
    def sensitive_hint(self) -> Hint | None:
        """The kind of sensitive information that the name hints at."""
        return next((hint for hint in SENSITIVE_HINTS if hint in self.hints), None)

    def with_role(self, role: Role, *reasons: str) -> RoleProposal:
        """Return the column with a role and its reasons."""
        return replace(self, role=role, reason="; ".join(reasons))


def assign_roles(columns: Sequence[RoleProposal], variety: Variety) -> list[RoleProposal]:
    """Return the columns with roles that fit together."""
    single = [_propose_alone(column) for column in columns]
    weighted = [_propose_weight(column, single, variety) for column in single]
    quasi = _choose_quasi(weighted)
    placed = [_propose_in_table(column, quasi) for column in weighted]
    confidential = [column for column in placed if column.role is Role.CONFIDENTIAL]
    ranked = sorted(confidential, key=lambda column: not column.sensitive_hint)  # telling names first
    surplus = {column.name for column in ranked[MAX_CONFIDENTIAL:]}
    why = f"removed: more than {MAX_CONFIDENTIAL} confidential columns are hard to protect together"
    return [
        column.with_role(Role.IDENTIFIER, column.shape.value, why) if column.name in surplus else column
        for column in placed
    ]


def _propose_alone(proposal: RoleProposal) -> RoleProposal:
    """Return a column with the role that it has without regard to the others."""
    reason = proposal.shape.value
    if proposal.shape in (Shape.NOTHING, Shape.CONSTANT):
        return proposal.with_role(Role.OTHER, reason)
    if proposal.shape in (Shape.TEXT, Shape.OWN_NUMBER, Shape.SHARED_NUMBER):
        return proposal.with_role(Role.IDENTIFIER, reason)
    if max(abs(proposal.stats.low), abs(proposal.stats.high)) > MAX_AVERAGED_VALUE:
        return proposal.with_role(Role.IDENTIFIER, reason, "removed: some values are too large to average")
    if _names_people(proposal):
        return proposal.with_role(Role.IDENTIFIER, "its name says that it identifies")
    if proposal.sensitive_hint or proposal.shape is Shape.DIAGNOSIS:
        by_name = [_describe_hint(proposal, proposal.sensitive_hint)] if proposal.sensitive_hint else []
        return proposal.with_role(Role.CONFIDENTIAL, reason, *by_name, "must not be inferred")
    if not proposal.known_hint and proposal.shape is Shape.AMOUNT:
        return proposal.with_role(Role.CONFIDENTIAL, reason, "must not be inferred")
    by_name = [_describe_hint(proposal, proposal.known_hint)] if proposal.known_hint else []
    return proposal.with_role(Role.QUASI, reason, *by_name, "others may know it")


def _describe_hint(proposal: RoleProposal, hint: Hint) -> str:
    by_name = hint in find_hints(proposal.name)
    return f"its {'name hints' if by_name else 'values hint'} at {hint.phrase}"


def _names_people(proposal: RoleProposal) -> bool:
    """Whether a name says that a column identifies people, and not something else, such as a region."""
    if proposal.hints.isdisjoint(IDENTIFYING_HINTS) or proposal.shape is Shape.MOMENT:
        return False
    return is_nearly_unique(proposal.stats) or not (proposal.known_hint or proposal.sensitive_hint)


def _propose_weight(proposal: RoleProposal, columns: Sequence[RoleProposal], variety: Variety) -> RoleProposal:
    """Return a column of sampling weights with its role: released only if many records share each weight."""
    number = proposal.column.storage in (Storage.INTEGER, Storage.NUMBER)
    if not number or not proposal.stats.filled or not proposal.stats.low > 0:
        return proposal
    if proposal.shape in (Shape.OWN_NUMBER, Shape.SHARED_NUMBER):
        return proposal
    if not (_has_weight_name(proposal) or _repeats_like_weights(proposal, columns, variety)):
        return proposal
    weight = replace(proposal, weight=True)
    reason = "sampling weights, for the risk in the population"
    if proposal.stats.min_count >= MIN_RECORDS_PER_WEIGHT:
        advice = "analysts need them, but they may reveal the stratum; role identifier removes them"
        return weight.with_role(Role.OTHER, reason, advice)
    return weight.with_role(Role.IDENTIFIER, reason, "removed: few records share some of them")


def _has_weight_name(proposal: RoleProposal) -> bool:
    """Whether the name means sampling weights, and the values are not body weights."""
    if Hint.WEIGHT not in proposal.hints or Hint.BODY in proposal.hints:
        return False
    stats = proposal.stats
    weighs_bodies = stats.high <= 300 and stats.mean <= 120  # kilograms or pounds
    body = weighs_bodies and stats.distinct > MAX_CODE_VALUES and (proposal.column.decimals or 0) <= 1
    return Hint.SAMPLING in proposal.hints or Hint.HOUSEHOLD in proposal.hints or not body


def _repeats_like_weights(proposal: RoleProposal, columns: Sequence[RoleProposal], variety: Variety) -> bool:
    """Whether a few fractional numbers, far apart, follow the values of another column, such as a stratum."""
    stats = proposal.stats
    if proposal.shape is not Shape.AMOUNT or stats.whole_numbers == stats.filled:
        return False
    if stats.low < 1 or stats.mean_count < 10:
        return False
    places = (stats.high - stats.low) * 10.0 ** (proposal.column.decimals or 12)
    if stats.distinct > 0.05 * places or proposal.sensitive_hint or proposal.known_hint:
        return False
    strata = [other for other in columns if other.stats.mean_count >= 2 and other.stats.distinct >= stats.distinct]
    groups = (Shape.CODE, Shape.MANY_CODES, Shape.POST_CODE, Shape.SHARED_NUMBER)
    return any(other.shape in groups and variety(other.name, proposal.name) <= MAX_VARIETY_OF_ONE for other in strata)


def _choose_quasi(columns: Sequence[RoleProposal]) -> list[str]:
    """Choose a few quasi-identifiers: what others know best, one of each kind first."""
    candidates = [proposal for proposal in columns if proposal.role is Role.QUASI]
    placed = [proposal for proposal in candidates if proposal.known_hint or proposal.shape in RECOGNIZED_SHAPES]
    chosen = _rank_candidates(placed)[:MAX_QUASI]
    if len(chosen) < ENOUGH_RECOGNIZED_QUASI:
        rest = sorted((s for s in candidates if s not in placed), key=lambda s: s.shape is Shape.MANY_CODES)
        chosen += rest[: MAX_UNRECOGNIZED_QUASI - len(chosen)]
    return [proposal.name for proposal in chosen or _choose_fallback(columns)[:MAX_QUASI]]


def _rank_candidates(columns: Sequence[RoleProposal]) -> list[RoleProposal]:
    """Order columns by how many of the same kind come before, then by how well known that kind is."""
    natural = {Shape.AGE: Hint.AGE, Shape.YEAR: Hint.BIRTH, Shape.MOMENT: Hint.BIRTH, Shape.POST_CODE: Hint.PLACE}
    kinds = [column.known_hint or natural[column.shape] for column in columns]
    ranks = [(kinds[:place].count(kind), PUBLICLY_KNOWN_HINTS.index(kind)) for place, kind in enumerate(kinds)]
    return [column for _, column in sorted(zip(ranks, columns, strict=True), key=lambda pair: pair[0])]


def _choose_fallback(columns: Sequence[RoleProposal]) -> list[RoleProposal]:
    """Return possible quasi-identifiers if there is none: numbers, else any column that is not removed."""
    numbers = [proposal for proposal in columns if proposal.role is Role.CONFIDENTIAL and not proposal.sensitive_hint]
    kept = [proposal for proposal in columns if proposal.role is Role.CONFIDENTIAL]
    return numbers or kept or [proposal for proposal in columns if proposal.role is Role.OTHER and not proposal.weight]


def _propose_in_table(proposal: RoleProposal, quasi: Sequence[str]) -> RoleProposal:
    """Return a column as quasi-identifier if it is chosen, else with another role."""
    reason = proposal.shape.value
    if (proposal.name in quasi) == (proposal.role is Role.QUASI):
        return proposal
    if proposal.name in quasi:
        return proposal.with_role(Role.QUASI, reason, "no other column is better known to others")
    if proposal.shape in (Shape.CODE, Shape.SCALE) and proposal.stats.distinct <= MAX_CODE_VALUES:
        return proposal.with_role(Role.OTHER, reason, "probably unknown to others; if not, make it a quasi-identifier")
    advice = "removed: it would single people out; role quasi-identifier keeps it"
    return proposal.with_role(Role.IDENTIFIER, reason, advice)


@dataclass(frozen=True)
class Unit:
    """A column whose values have several rows each: people, or households of people with one row each."""

    column: str
    people: bool


def find_unit(columns: Sequence[RoleProposal], variety: Variety, k: int) -> Unit | None:
    """Return the column that says which rows belong together; the finest if there are several."""
    units = [
        proposal
        for proposal in columns
        if (proposal.shape is Shape.SHARED_NUMBER or Hint.NUMBER in proposal.hints)
        and proposal.role is Role.IDENTIFIER
        and proposal.stats.mean_count >= 1.05
        and proposal.stats.distinct >= 2 * k
    ]
    if not units:
        return None
    finest = max(units, key=lambda proposal: proposal.stats.distinct)
    household = Hint.HOUSEHOLD in finest.hints or any(_differs_within(finest, column, variety) for column in columns)
    return Unit(finest.name, not household)


def _differs_within(unit: RoleProposal, proposal: RoleProposal, variety: Variety) -> bool:
    """Whether rows of a unit differ in facts that are constant for a person: sex, date of birth, almost age."""
    age = proposal.shape is Shape.AGE
    if proposal.stats.distinct < 2 or not (age or {Hint.SEX, Hint.BIRTH} & proposal.hints):
        return False
    return variety(unit.name, proposal.name) > (MAX_AGES_OF_PERSON if age else MAX_VARIETY_OF_ONE)


def find_weights(columns: Sequence[RoleProposal]) -> str | None:
    """Return the column of sampling weights."""
    weights = [proposal for proposal in columns if proposal.weight]
    rank = sorted(weights, key=lambda proposal: (Hint.HOUSEHOLD in proposal.hints, Hint.SAMPLING not in proposal.hints))
    return rank[0].name if rank else None
