"""Roles: propose the role of each column, by its values first and by its name second.

1. each column alone: its shape, the hints in its name, the role that follows from both
2. sampling weights: by name, or numbers with fractions that repeat together with another column
3. the keys of people and households: see `people`
4. the table: a few quasi-identifiers, those that others know best. The steward is asked about other codes, because a
   code without a known meaning may be a name or an age group. Columns of many codes are removed.
5. columns that depend on a quasi-identifier or on a removed column: see `dependencies`

The proposal runs, and in doubt it removes a column or asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from kinfold.profiling.dependencies import ColumnDependency, Treatment
from kinfold.profiling.shapes import MAX_CODE_VALUES, Shape, is_nearly_unique
from kinfold.tables.column_names import (
    IDENTIFYING_HINTS,
    PUBLICLY_KNOWN_HINTS,
    SENSITIVE_HINTS,
    Hint,
    find_hints,
    mentions,
)
from kinfold.tables.schema import Column, Role, Storage, ValueStats

MAX_QUASI = 8  # of a proposal: more lose most of the information
ENOUGH_RECOGNIZED_QUASI = 2  # recognized by name or format; then unrecognized codes are not used
MAX_UNRECOGNIZED_QUASI = 6  # quasi-identifiers if unrecognized codes are needed
MIN_ROWS_OF_FLAG = 10  # mean rows of a value of a column that says yes or no
MIN_MEAN_COUNT = 1.05  # rows of a value of a column whose values repeat
MAX_AVERAGED_VALUE = 1e150  # the square of a larger value overflows
MAX_DEVIATION_OF_MEAN = 0.002  # from 1, of sampling weights that are scaled to the size of the sample
MAX_DEVIATION_OF_FINE = 0.1  # the same, of numbers with so many decimals that they were computed
MAX_DEVIATION_OF_NEWBORNS = 0.22  # of weights, as a share of their mean; sampling weights differ more
BIRTH_RECORD_WORDS = (
    "apgar* gest* ssw zwduur zwanger* schwanger* neonat* newborn* parit* gravid* *wochen delivery* geburtsart*"
)
MIN_FINE_DECIMALS, MAX_FINE_DECIMALS = 4, 8  # numbers that a program computes have more
MAX_POSSIBLE_WEIGHTS = 2  # more such columns are measurements
MIN_RATIO_OF_WEIGHTS = 1.5  # of the highest weight of a stratum to the lowest; means of groups are closer
MAX_DAY = 31  # the highest number of a month or a day of the month
MIN_SHARE_OF_MONTHS = 0.8  # of these numbers that occur
DATE_ENDING = re.compile(r"[\W_]*(m|mm|mo|mon|month|monat|mois|mes|mese|d|dd|t|tag|day|jour|dia|giorno)[\W\d_]*")
MIN_ROWS_FOR_MEAN = 100  # of a column that is called weights by its mean

Determines = Callable[[str, str], bool]  # whether the first column determines the second

COORDINATES = "coordinates: a point on a map can be the home of a person"

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
    undecided: bool = False  # whether a question decides about its release
    dependency: ColumnDependency | None = None  # on protected or removed columns that it tells
    surplus: bool = False  # removed only because there are quasi-identifiers enough

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def depends_on(self) -> tuple[str, ...]:
        """The protected or removed columns that it tells."""
        return self.dependency.sources if self.dependency else ()

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
        return replace(self, role=role, reason="; ".join(reasons), undecided=False)


def propose_roles(columns: Sequence[RoleProposal], determines: Determines) -> list[RoleProposal]:
    """Return the columns with the roles that they have alone, and sampling weights."""
    single = [_propose_part_of_date(_propose_alone(column), columns) for column in columns]
    return _weigh_replicates([_propose_weight(column, single, determines) for column in single])


def _weigh_replicates(columns: Sequence[RoleProposal]) -> list[RoleProposal]:
    """Return numbers named like a column of weights and a number as weights too: the replicates PWGTP1, PWGTP2 ..."""
    weights = {column.name.casefold(): column for column in columns if column.weight}
    result = []
    for column in columns:
        weight = weights.get(re.sub(r"_?\d+$", "", column.name.casefold()))
        number = column.column.storage in (Storage.INTEGER, Storage.NUMBER) and column.stats.distinct > MAX_CODE_VALUES
        if weight and number and not column.weight and column.role is not Role.IDENTIFIER:
            column = replace(column, weight=True).with_role(Role.WEIGHT, weight.reason)
        result.append(column)
    return result


def assign_roles(columns: Sequence[RoleProposal], keys: Sequence[str]) -> list[RoleProposal]:
    """Return the columns with roles that fit together; `keys` identify people or households."""
    keyed = [_propose_key(column) if column.name in keys else column for column in columns]
    quasi = _choose_quasi(keyed)
    placed = [_propose_in_table(column, quasi) for column in keyed]
    return _ask_about_unrecognized(placed)


def _propose_key(proposal: RoleProposal) -> RoleProposal:
    """Return a key of people or households as identifier."""
    if proposal.role is Role.IDENTIFIER:
        return proposal
    return proposal.with_role(Role.IDENTIFIER, proposal.shape.value, "several rows share each value")


def _ask_about_unrecognized(columns: Sequence[RoleProposal]) -> list[RoleProposal]:
    """Return unrecognized codes as undecided: confidential or other, they would be released as they are."""
    return [
        replace(column, undecided=True) if column.role is Role.OTHER and not _is_harmless(column) else column
        for column in columns
    ]


def _is_harmless(proposal: RoleProposal) -> bool:
    return proposal.shape in (Shape.NOTHING, Shape.CONSTANT)


def _propose_alone(proposal: RoleProposal) -> RoleProposal:
    """Return a column with the role that it has without regard to the others."""
    reason = proposal.shape.value
    if proposal.shape in (Shape.NOTHING, Shape.CONSTANT):
        return proposal.with_role(Role.OTHER, reason)
    if proposal.shape is Shape.TEXT:
        return proposal.with_role(Role.REMOVE, reason)
    if Hint.POINT in proposal.hints and proposal.stats.distinct > MAX_CODE_VALUES:
        return proposal.with_role(Role.REMOVE, COORDINATES)
    if proposal.shape in (Shape.OWN_NUMBER, Shape.SHARED_NUMBER):
        return proposal.with_role(Role.IDENTIFIER, reason)
    if max(abs(proposal.stats.low), abs(proposal.stats.high)) > MAX_AVERAGED_VALUE:
        return proposal.with_role(Role.REMOVE, reason, "some values are too large to average")
    if _names_people(proposal):
        return proposal.with_role(Role.IDENTIFIER, "its name says that it identifies")
    if not _is_known_anyway(proposal) and (proposal.sensitive_hint or proposal.shape is Shape.DIAGNOSIS):
        by_name = [_describe_hint(proposal, proposal.sensitive_hint)] if proposal.sensitive_hint else []
        return proposal.with_role(Role.CONFIDENTIAL, reason, *by_name, "must not be inferred")
    if not proposal.known_hint and proposal.shape is Shape.AMOUNT:
        return proposal.with_role(Role.CONFIDENTIAL, reason, "must not be inferred")
    by_name = [_describe_hint(proposal, proposal.known_hint)] if proposal.known_hint else []
    return proposal.with_role(Role.QUASI, reason, *by_name, "others may know it")


def _is_known_anyway(proposal: RoleProposal) -> bool:
    """Whether others may know the values, whatever they are about: the day or year of an event, an age, a place."""
    age = proposal.shape in (Shape.AGE, Shape.AMOUNT) and Hint.AGE in proposal.hints  # in years, months or days
    return age or proposal.shape in (Shape.MOMENT, Shape.YEAR, Shape.POST_CODE)


def _propose_part_of_date(proposal: RoleProposal, columns: Sequence[RoleProposal]) -> RoleProposal:
    """Return the month or day next to a year as known to others: `diag_m` and `diag_year` are one date."""
    stats = proposal.stats
    if proposal.role is not Role.CONFIDENTIAL or not 1 <= stats.low <= stats.high <= MAX_DAY or stats.distinct < 2:
        return proposal
    if stats.whole_numbers < stats.filled or stats.distinct < MIN_SHARE_OF_MONTHS * stats.high:
        return proposal
    name = proposal.name.casefold()
    years = (column.name for column in columns if column.shape is Shape.YEAR)
    for year in years:
        stem = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, year.casefold(), strict=False)))
        ending = DATE_ENDING.fullmatch(name[stem:])
        if stem >= 2 and ending:
            return proposal.with_role(Role.QUASI, proposal.shape.value, f"with '{year}' a date, which others may know")
    return proposal


def _describe_hint(proposal: RoleProposal, hint: Hint) -> str:
    by_name, by_title = hint in find_hints(proposal.name), hint in find_hints(proposal.column.title)
    return f"its {'name hints' if by_name else 'label hints' if by_title else 'values hint'} at {hint.phrase}"


def _names_people(proposal: RoleProposal) -> bool:
    """Whether a name says that a column identifies people, and not something else, such as a region."""
    if proposal.hints.isdisjoint(IDENTIFYING_HINTS) or proposal.shape is Shape.MOMENT:
        return False
    flag = proposal.stats.distinct <= 2 and proposal.stats.mean_count >= MIN_ROWS_OF_FLAG
    if flag and Hint.NUMBER not in proposal.hints:
        return False  # whether there is one: a doctor, a phone
    return is_nearly_unique(proposal.stats) or not (proposal.known_hint or proposal.sensitive_hint)


def _propose_weight(proposal: RoleProposal, columns: Sequence[RoleProposal], determines: Determines) -> RoleProposal:
    """Return a column of sampling weights with its role."""
    number = proposal.column.storage in (Storage.INTEGER, Storage.NUMBER) and Hint.POINT not in proposal.hints
    yes_or_no = proposal.stats.distinct == 2 and proposal.stats.high == 1  # w: woman
    if not number or yes_or_no or not proposal.stats.low >= 0 or not proposal.stats.high > 0:
        return proposal
    if proposal.shape is Shape.OWN_NUMBER and Hint.SAMPLING not in proposal.hints:
        return proposal
    named = _has_weight_name(proposal) and not _weighs_newborns(proposal, columns)
    measured = Hint.MEASURE in proposal.hints  # such as creatinine, whose mean is 1
    like_weights = _has_mean_one(proposal) or _repeats_like_weights(proposal, columns, determines)
    if not named and (measured or not like_weights):
        return proposal
    reason = "sampling weights, for the risk in the population"
    advice = 'exact weights may identify a household or a stratum; with average = "mean" they are released by class'
    return replace(proposal, weight=True).with_role(Role.WEIGHT, reason, advice)


def _has_weight_name(proposal: RoleProposal) -> bool:
    """Whether the name means sampling weights, and the values are not body weights."""
    if Hint.WEIGHT not in proposal.hints or Hint.BODY in proposal.hints:
        return False
    stats = proposal.stats
    weighs_bodies = stats.high <= 300 and 30 <= stats.mean <= 220  # kilograms or pounds
    body = weighs_bodies and stats.distinct > MAX_CODE_VALUES and (proposal.column.decimals or 0) <= 1
    return Hint.SAMPLING in proposal.hints or Hint.HOUSEHOLD in proposal.hints or not body


def _weighs_newborns(proposal: RoleProposal, columns: Sequence[RoleProposal]) -> bool:
    """Whether weights are whole grams of newborns, close together, in a table of births."""
    stats = proposal.stats
    if (
        Hint.SAMPLING in proposal.hints
        or stats.whole_numbers < stats.filled
        or not 200 <= stats.low <= stats.high <= 7000
    ):
        return False
    numbers, counts = np.array([float(value) for value in stats.values]), np.array(stats.counts)
    deviation = float(np.sqrt(np.cov(numbers, fweights=counts))) if stats.distinct > 2 else 0.0
    births = any(mentions(column.name, BIRTH_RECORD_WORDS) for column in columns)
    return births and 2_500 <= stats.mean <= 4_000 and deviation <= MAX_DEVIATION_OF_NEWBORNS * stats.mean


def _has_mean_one(proposal: RoleProposal) -> bool:
    """Whether fractional numbers without a known meaning have the mean 1, like weights of a sample of that size."""
    stats = proposal.stats
    if proposal.shape is not Shape.AMOUNT or stats.filled < MIN_ROWS_FOR_MEAN or not stats.low > 0:
        return False
    meaning = proposal.known_hint or proposal.sensitive_hint
    decimals = proposal.column.decimals
    fine = decimals is None or decimals >= MIN_FINE_DECIMALS
    deviation = MAX_DEVIATION_OF_FINE if fine and is_nearly_unique(stats) else MAX_DEVIATION_OF_MEAN
    return not meaning and abs(stats.mean - 1) <= deviation and stats.high < 50


def _repeats_like_weights(proposal: RoleProposal, columns: Sequence[RoleProposal], determines: Determines) -> bool:
    """Whether a few fractional numbers, far apart, follow the values of another column, such as a stratum."""
    stats = proposal.stats
    if proposal.shape is not Shape.AMOUNT or stats.whole_numbers == stats.filled:
        return False
    if stats.low < 1 or stats.mean_count < 10 or stats.high < MIN_RATIO_OF_WEIGHTS * stats.low:
        return False
    places = (stats.high - stats.low) * 10.0 ** (proposal.column.decimals or 12)
    if stats.distinct > 0.05 * places or proposal.sensitive_hint or proposal.known_hint:
        return False
    strata = [other for other in columns if other.stats.mean_count >= 2 and other.stats.distinct >= stats.distinct]
    groups = (Shape.CODE, Shape.MANY_CODES, Shape.POST_CODE, Shape.SHARED_NUMBER)
    return any(other.shape in groups and determines(other.name, proposal.name) for other in strata)


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
    if proposal.known_hint:
        limit = f"others may know it, and there are {len(quasi)} quasi-identifiers; role quasi-identifier keeps it"
        return replace(proposal.with_role(Role.REMOVE, reason, limit), surplus=True)
    if proposal.shape in (Shape.CODE, Shape.SCALE) and proposal.stats.distinct <= MAX_CODE_VALUES:
        return proposal.with_role(Role.OTHER, reason, "its meaning is unknown")
    removed = proposal.with_role(Role.REMOVE, reason, "it would single people out; role quasi-identifier keeps it")
    return replace(removed, surplus=True)


def list_treatment(columns: Sequence[RoleProposal], sources: Collection[str] | None = None) -> Treatment:
    """Return what a release does to each column; with `sources`, only these are protected or removed."""
    varied = [column for column in columns if column.shape not in (Shape.NOTHING, Shape.CONSTANT)]
    relevant = [column for column in varied if sources is None or column.name in sources]
    return Treatment(
        [column.name for column in varied if column.role in (Role.OTHER, Role.CONFIDENTIAL) or column.surplus],
        [column.name for column in relevant if column.role is Role.QUASI],
        [column.name for column in relevant if column.role in (Role.IDENTIFIER, Role.REMOVE) and not column.surplus],
        {column.name for column in varied if column.stats.mean_count >= MIN_MEAN_COUNT},
    )


def protect_dependent(
    columns: Sequence[RoleProposal], dependencies: Mapping[str, ColumnDependency]
) -> list[RoleProposal]:
    """Return columns that tell a protected or removed column with the same treatment."""
    roles = {column.name: column.role for column in columns}
    return [
        _treat_dependent(column, dependencies[column.name], roles) if column.name in dependencies else column
        for column in columns
    ]


def _treat_dependent(column: RoleProposal, dependency: ColumnDependency, roles: Mapping[str, Role]) -> RoleProposal:
    """Return a column as quasi-identifier if it tells one; as removed if it tells a removed column."""
    known = any(roles[source] is Role.QUASI for source in dependency.sources)
    if column.surplus and not (known and dependency.adds_nothing):
        return column  # it is removed already
    role = Role.QUASI if known else Role.REMOVE
    treated = column.with_role(role, column.shape.value, str(dependency))
    return replace(treated, dependency=dependency, surplus=False)


def find_possible_weights(columns: Sequence[RoleProposal]) -> list[str]:
    """Return confidential numbers without a known meaning that may be sampling weights, if the table has no others.

    They are positive, different in almost every record, and have more decimals than what is measured. Where there are
    many such numbers, a program computed them.
    """
    if any(column.weight for column in columns):
        return []
    names = [column.name for column in columns if column.role is Role.CONFIDENTIAL and _may_weigh(column)]
    return names if len(names) <= MAX_POSSIBLE_WEIGHTS else []


def _may_weigh(proposal: RoleProposal) -> bool:
    stats, decimals = proposal.stats, proposal.column.decimals or 0
    fine = proposal.shape is Shape.AMOUNT and MIN_FINE_DECIMALS <= decimals <= MAX_FINE_DECIMALS
    if not fine or proposal.hints or stats.filled < MIN_ROWS_FOR_MEAN or not is_nearly_unique(stats):
        return False
    return stats.filled == proposal.column.rows and MIN_RATIO_OF_WEIGHTS * stats.low <= stats.high and stats.low > 0


def find_weights(columns: Sequence[RoleProposal]) -> str | None:
    """Return the column of sampling weights."""
    weights = [proposal for proposal in columns if proposal.weight]
    rank = sorted(weights, key=lambda proposal: (Hint.HOUSEHOLD in proposal.hints, Hint.SAMPLING not in proposal.hints))
    return rank[0].name if rank else None
