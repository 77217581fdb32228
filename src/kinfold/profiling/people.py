"""People: which rows belong to one person, and which to one household.

A key is a column whose values have several rows each. What does not change in a lifetime decides whose rows they are:

    a person       sex, birth and ethnicity are the same in all rows of a value, and age is almost the same
    a household    they differ, and a value has a few rows
    a group        they differ, and a value has many rows: a school, a doctor, a town
    unknown        the table has no such column, or they contradict each other: the steward is asked

A person without a column of numbers, as in a panel of households (household, member, year), is protected by the key of
the household. If there is none, the proposed k is k times the rows that hardly any person exceeds: so many rows are k
people. In doubt a key is the unit, because to count households or groups instead of people is never too lenient.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain, islice
from math import ceil

import numpy as np

from kinfold.profiling.dependencies import MAX_COMPARED_ROWS, Agreement, Codes, RowEvidence, combine_codes, compare_rows
from kinfold.profiling.questions import REMOVES_KEY, OpenQuestion
from kinfold.profiling.roles import RoleProposal
from kinfold.profiling.shapes import (
    QUANTITY_HINTS,
    WRITTEN_DATE,
    Shape,
    are_full_post_codes,
    has_waves,
    is_nearly_unique,
)
from kinfold.tables.column_names import PERSON_WORDS, Hint, mentions
from kinfold.tables.schema import Storage

MIN_ROWS_PER_KEY = 1.05  # mean number of rows of a value
MIN_ROWS_PER_UNKNOWN_KEY = 1.2  # if neither name nor shape says that the column identifies
MIN_KEYS = 10  # different values of a key
MIN_NAMED_KEYS = 3  # if the name or the shape says that the column identifies, and constant facts that it does people
MAX_HOUSEHOLD_SIZE = 15.0  # mean rows of a value; more are a group
MAX_UNEXPLAINED_CONSTANT = 0.05  # share of the expected differences within the rows of a person; a few are errors
MIN_UNEXPLAINED_VARYING = 0.3  # from here on the values differ within a person; between the two it is unclear
MAX_UNEXPLAINED_AGE = 0.1  # share of the variance of ages within the rows of a person
MEMBER_ENDING = re.compile(r"[-_./:](\d{1,3}|[A-Za-z]{1,2}\d{0,3})$")  # of a number with a person's: P0001-1, 17_V2
MAX_ENDINGS = 30  # different ends of numbers that start with the number of a person
MIN_ROWS_PER_START = 1.5  # of the start of numbers, or of a full name
MIN_FILLED = 0.9  # share of rows with a value, of facts that are compared together
MAX_UNEXPLAINED_BY_FACTS = 0.7  # of the expected differences in sex within equal facts, which other people may share
DEVIATIONS_BY_FACTS = 3.0  # of the share that remains by chance, about one over the root of the expected differences
ROWS_OF_MANY = 4  # times the rows that the person of a random row has: hardly any person has more
MAX_PAIRS = 60  # of columns that may number people together
MIN_GAPS = 20  # numbers between assigned numbers, in the mean
MIN_DETERMINED = 2  # columns that a key without facts determines, to ask whether it numbers people
MIN_FACTS_OF_NAMED = 1  # that are constant if a group and a member number people
MIN_FACTS_OF_UNNAMED = 2  # if the name of the member's number says nothing

COUNTED_PEOPLE = "pers person* people"


class Whose(StrEnum):
    """Whose rows share a value of a key."""

    PERSON = "person"
    HOUSEHOLD = "household"
    GROUP = "group"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Unit:
    """A column whose values have several rows each: people, or households of people with one row each."""

    column: str
    people: bool


@dataclass(frozen=True)
class People:
    """The keys of a table: the unit that k counts, the household number, and a question if they are uncertain."""

    unit: Unit | None = None
    keys: tuple[str, ...] = ()  # columns that identify people or households
    questions: tuple[OpenQuestion, ...] = ()
    rows_of_person: int = 1  # at most, if people have several rows and no column numbers them


@dataclass(frozen=True)
class _Key:
    proposal: RoleProposal
    whose: Whose
    constant: tuple[str, ...]
    varying: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.proposal.name

    @property
    def has_many_values(self) -> bool:
        return self.proposal.stats.distinct >= MIN_KEYS


class RowComparison:
    """Compares the rows of a key by the facts that are constant for a person."""

    def __init__(self, columns: Sequence[RoleProposal], evidence: RowEvidence) -> None:
        self.evidence = evidence
        varied = [column for column in columns if column.stats.distinct > 1 and not column.weight]
        self._varied = [column.name for column in varied]
        self.describes_people = any({Hint.SEX, Hint.BIRTH, Hint.AGE, Hint.ORIGIN} & column.hints for column in varied)
        self._facts = [column for column in varied if _is_constant_fact(column)]
        self.shared_facts = {fact.name for fact in self._facts if not {Hint.SEX, Hint.BIRTH} & fact.hints}
        self._ages = [column for column in varied if Hint.AGE in column.hints and column not in self._facts]
        self._possible_ages = [column for column in varied if column.shape is Shape.AGE and column not in self._ages]
        self.possible_ages = {column.name for column in self._possible_ages}

    def judge(self, keys: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the facts that are constant and those that vary within equal keys."""
        facts = [fact.name for fact in self._facts if fact.name not in keys]
        constant, varying = _sort_facts({name: self.evidence.compare(keys, name) for name in facts})
        self._judge_ages(self._ages, keys, constant, varying)
        if not constant and not varying:  # a blood pressure may look like an age
            self._judge_ages(self._possible_ages, keys, constant, varying)
        return tuple(constant), tuple(varying)

    def list_determined(self, key: str) -> tuple[str, ...]:
        """Return the columns that a key determines and that do not determine the key, as copies of it do."""
        determines = self.evidence.determines
        others = (name for name in self._varied if name != key)
        return tuple(name for name in others if determines(key, name) and not determines(name, key))

    def differs(self, keys: Sequence[str]) -> bool:
        """Whether the first fact varies within equal keys, or there is none: then no other one needs a look."""
        rows = self.evidence.compare(keys, self._facts[0].name) if self._facts else None
        return rows is None or (rows.evident and rows.unexplained >= MIN_UNEXPLAINED_VARYING)

    def judge_starts(self, starts: Codes) -> tuple[list[str], list[str]]:
        """Return the facts that are constant and those that vary within texts that start alike."""
        facts = [fact.name for fact in self._facts]
        return _sort_facts({name: compare_rows([starts], self.evidence.get_codes(name), None) for name in facts})

    def count_rows(self, keys: Sequence[str]) -> Codes:
        """Return the numbers of rows with the same values."""
        sample = self.evidence.sample
        whole = sample.table_rows <= MAX_COMPARED_ROWS
        return _count_rows([self.evidence.get_codes(key) if whole else sample.codes[key] for key in keys])

    def _judge_ages(
        self, ages: Sequence[RoleProposal], keys: Sequence[str], constant: list[str], varying: list[str]
    ) -> None:
        for age in (age for age in ages if age.name not in keys):
            within = self.evidence.measure_spread(keys, age.name)
            if within is not None:
                (constant if within <= MAX_UNEXPLAINED_AGE else varying).append(age.name)


def _sort_facts(rows: Mapping[str, Agreement]) -> tuple[list[str], list[str]]:
    """Return the facts that are constant and those that vary."""
    evident = {name: each.unexplained for name, each in rows.items() if each.evident}
    constant = [name for name, unexplained in evident.items() if unexplained <= MAX_UNEXPLAINED_CONSTANT]
    return constant, [name for name, unexplained in evident.items() if unexplained >= MIN_UNEXPLAINED_VARYING]


def _is_constant_fact(column: RoleProposal) -> bool:
    """Whether a fact does not change in a lifetime."""
    born = Hint.BIRTH in column.hints and column.shape in (Shape.MOMENT, Shape.YEAR, Shape.AMOUNT, Shape.MANY_CODES)
    return born or bool({Hint.SEX, Hint.ORIGIN} & column.hints)


def find_people(columns: Sequence[RoleProposal], comparison: RowComparison, k: int) -> People:
    """Return the unit of a table; if no column numbers people with several rows, how many rows a person may have."""
    people = _find_numbered(columns, comparison)
    if people.unit is not None and people.unit.people:
        return people
    starts, pairs = _find_starts(columns, comparison), _find_pairs(columns, comparison)
    rows = next(chain(starts, pairs, _find_equal_facts(columns, comparison, people.keys)), None)
    return people if rows is None else _ask_about_rows(people, rows, k)


def _find_numbered(columns: Sequence[RoleProposal], comparison: RowComparison) -> People:
    """Return the unit of a table: of several keys of people, the one with the fewest values."""
    candidates = [
        column for column in columns if _may_be_key(column) and not _is_determined_by_known(column, columns, comparison)
    ]
    keys = [_judge_key(column, comparison) for column in candidates]
    keys = [key for key in keys if Hint.STAFF not in key.proposal.hints or key.whose is Whose.PERSON]
    people = [key for key in keys if key.whose is Whose.PERSON]
    households = [key for key in keys if key.whose is Whose.HOUSEHOLD and key.has_many_values]
    unknown = [key for key in keys if key.whose is Whose.UNKNOWN and (key.has_many_values or _numbers_people(key))]
    unknown = [key for key in unknown if len(key.constant) >= MIN_DETERMINED] or unknown
    if any(map(_numbers_each_person, columns)):
        unknown = [key for key in unknown if _looks_like_key(key.proposal)]
    identifying = tuple(key.name for key in (*people, *households))
    if people:
        return People(Unit(_get_coarsest(people).name, people=True), identifying)
    if households:
        household = max(households, key=lambda key: key.proposal.stats.distinct)
        return _ask_about_panel(household, columns, comparison, identifying)
    if unknown:
        key, others = _choose_unknown(unknown, comparison.evidence)
        named = mentions(key.name, PERSON_WORDS) and not key.varying and not others
        question = () if named else (_ask_about_unit(key, others),)
        return People(Unit(key.name, people=True), (key.name,), question)
    return People()


def _numbers_each_person(column: RoleProposal) -> bool:
    """Whether almost every row has its own person: by name, a number of people; or their names and mail addresses."""
    by_name = mentions(column.name, PERSON_WORDS) and column.shape is Shape.OWN_NUMBER
    return by_name or (Hint.PERSON in column.hints and is_nearly_unique(column.stats))


def _numbers_people(key: _Key) -> bool:
    """Whether the name says that a column numbers people, however few: `patient_id`, `id`, but not `user_type`."""
    if mentions(key.name, COUNTED_PEOPLE) and _counts_from_one(key.proposal) and Hint.NUMBER not in key.proposal.hints:
        return False  # how many live in a flat
    words = [word for word in re.split(r"[\W\d_]+", key.name) if word]
    named = mentions(key.name, PERSON_WORDS)
    return (named and (Hint.NUMBER in key.proposal.hints or len(words) == 1)) or mentions("".join(words), "id uid pid")


def _choose_unknown(keys: Sequence[_Key], evidence: RowEvidence) -> tuple[_Key, list[str]]:
    """Return the key whose values hold whole values of all others, else the likeliest, and others that may be it.

    The coarsest is never too lenient. Without one, a person may have several values of the coarser key: of places.
    """
    coarsest = _get_coarsest(keys)
    rest = [key for key in keys if key is not coarsest]
    if all(evidence.determines(key.name, coarsest.name) for key in rest):
        return coarsest, []
    best = max(keys, key=lambda key: (mentions(key.name, PERSON_WORDS), key.proposal.stats.distinct))
    return best, [key.name for key in keys if key is not best]


def _get_coarsest(keys: Sequence[_Key]) -> _Key:
    return min(keys, key=lambda key: key.proposal.stats.distinct)


def _may_be_key(column: RoleProposal) -> bool:
    """Whether the values of a column repeat and can be numbers or names of people."""
    stats = column.stats
    named = _looks_like_key(column)
    if stats.distinct < (MIN_NAMED_KEYS if named else MIN_KEYS) or column.shape in (Shape.MOMENT, Shape.SCALE):
        return False
    if stats.mean_count < (MIN_ROWS_PER_KEY if named else MIN_ROWS_PER_UNKNOWN_KEY):
        return False
    if column.column.storage is Storage.NUMBER and stats.whole_numbers < stats.filled:
        return False
    if are_full_post_codes(stats, column.hints):
        return False
    if named or (Hint.PERSON in column.hints and not column.known_hint):
        return True
    meaning = column.known_hint or column.sensitive_hint or not QUANTITY_HINTS.isdisjoint(column.hints)
    return not meaning and column.shape not in (Shape.CODE, Shape.YEAR, Shape.TEXT)


def _is_determined_by_known(key: RoleProposal, columns: Sequence[RoleProposal], comparison: RowComparison) -> bool:
    """Whether each place, occupation or the like has one value of a key: it numbers these and not people."""
    about = (Hint.PLACE, Hint.COUNTRY, Hint.WORK, Hint.EDUCATION)
    others = (column for column in columns if column.known_hint in about and column.shape is not Shape.MOMENT)
    determines = comparison.evidence.determines
    named = key.shape is Shape.SHARED_NUMBER or mentions(key.name, PERSON_WORDS)
    known = (other.name for other in others if other.name != key.name and determines(other.name, key.name))
    return any(not (named and determines(key.name, other)) for other in known)  # each person may have their own place


def _looks_like_key(column: RoleProposal) -> bool:
    """Whether name or values of a column say that it identifies."""
    if column.shape is Shape.SHARED_NUMBER:
        return True
    if column.known_hint and Hint.HOUSEHOLD not in column.hints:
        return False
    if QUANTITY_HINTS & column.hints and Hint.NUMBER not in column.hints:
        return False  # the income of a household
    return bool({Hint.NUMBER, Hint.HOUSEHOLD} & column.hints) or mentions(column.name, PERSON_WORDS)


def _judge_key(column: RoleProposal, comparison: RowComparison) -> _Key:
    """Return whose rows share a value of a column."""
    constant, varying = comparison.judge((column.name,))
    if not constant and comparison.possible_ages.issuperset(varying) and mentions(column.name, PERSON_WORDS):
        varying = ()  # what changes is a blood pressure: the name of the key says more
    whose = _decide(column, constant, varying, comparison.shared_facts)
    guessed = not constant and comparison.possible_ages.issuperset(varying)
    if not guessed or whose not in (Whose.GROUP, Whose.UNKNOWN):
        return _Key(column, whose, constant, varying)
    determined = comparison.list_determined(column.name)
    numbered = has_waves(column.shape, column.stats) or (
        not comparison.describes_people and _has_assigned_numbers(column)
    )
    full_names = Hint.PERSON in column.hints and column.stats.mean_words >= 2  # of people with several rows, it seems
    named = full_names and column.stats.mean_count >= MIN_ROWS_PER_START
    if len(determined) >= MIN_DETERMINED or numbered or named:
        whose = Whose.UNKNOWN
    return _Key(column, whose, determined, ())


def _decide(column: RoleProposal, constant: Sequence[str], varying: Sequence[str], shared: Collection[str]) -> Whose:
    """Return whose rows share a value; the `shared` facts, such as origin, are often those of a whole family."""
    named, household = _looks_like_key(column), Hint.HOUSEHOLD in column.hints
    if varying and all(fact in shared for fact in constant):
        constant = ()
    if constant and not varying and (named or len(constant) > 1) and not household:
        return Whose.PERSON
    if varying and not constant:
        few = column.stats.mean_count <= MAX_HOUSEHOLD_SIZE and named
        return Whose.HOUSEHOLD if few or household else Whose.GROUP
    if household and not constant:
        return Whose.HOUSEHOLD
    return Whose.UNKNOWN if named or (constant and not varying) else Whose.GROUP


def _has_assigned_numbers(column: RoleProposal) -> bool:
    """Whether a column without a meaning counts from 0 or 1 without gaps, or has codes with gaps: people, devices."""
    stats = column.stats
    if column.shape is not Shape.MANY_CODES or all(map(WRITTEN_DATE.fullmatch, stats.values)):
        return False
    if stats.high > 0:
        return _counts_from_one(column) or (stats.high - stats.low >= MIN_GAPS * stats.distinct >= MIN_GAPS * MIN_KEYS)
    coded = sum(any(map(str.isdigit, value)) and " " not in value.strip() for value in stats.values)
    return coded >= MIN_FILLED * len(stats.values)


def _ask_about_unit(key: _Key, others: Sequence[str]) -> OpenQuestion:
    change = "changes" if len(key.varying) == 1 else "change"
    pairs = ((key.constant, _agree(key.constant)), (key.varying, change))
    facts = [f"{_list_names(names)} {verb} within a value" for names, verb in pairs if names]
    rows = f"{key.proposal.stats.mean_count:.1f} rows for each value of '{key.name}'"
    evidence = "; ".join([rows, *(facts or ["no column such as sex or date of birth says whose rows they are"])])
    question = f"Is each value of '{key.name}' one person with several rows?"
    if others:
        evidence += f"; or another column numbers the people: {_list_names(others)}"
    return OpenQuestion("unit", question, evidence, "privacy.unit", key.name, (key.name, *others, REMOVES_KEY))


def _agree(constant: Sequence[str]) -> str:
    return "does not change" if len(constant) == 1 else "do not change"


def _list_names(names: Sequence[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)


def _ask_about_panel(
    household: _Key, columns: Sequence[RoleProposal], comparison: RowComparison, keys: tuple[str, ...]
) -> People:
    """Return the household as unit if its members have several rows each, else only as a household."""
    for column in columns:
        if column.name == household.name or not 2 <= column.stats.distinct <= 2 * MAX_HOUSEHOLD_SIZE:
            continue
        if column.known_hint not in (None, Hint.FAMILY):
            continue
        constant, varying = comparison.judge((household.name, column.name))
        if len(constant) > 1 and not varying:
            both = f"'{household.name}' and '{column.name}'"
            evidence = f"{both} together identify a person with several rows: {_list_names(constant)} do not change"
            question = f"Does each person have several rows, numbered by {both}?"
            answers = (household.name, REMOVES_KEY)
            ask = OpenQuestion("unit", question, evidence, "privacy.unit", household.name, answers)
            return People(Unit(household.name, people=True), keys, (ask,))
    return People(Unit(household.name, people=False), keys)


@dataclass(frozen=True)
class _Rows:
    """Rows of one person that no column numbers: what shows them, and how many share the facts of a person."""

    evidence: str
    groups: Codes  # the numbers of rows with the same facts
    of_others: float = 0.0  # share of the pairs of rows in a group that are of two people
    keys: tuple[str, ...] = ()  # columns that identify people together with others

    @property
    def most(self) -> int:
        """The rows of the largest group: no person has more."""
        return int(self.groups.max(initial=1))

    @property
    def bound(self) -> int:
        """The rows that hardly any person exceeds: a few times as many as the person of a random row has."""
        in_group = float((self.groups**2).sum() / max(self.groups.sum(), 1))
        return min(self.most, ceil(ROWS_OF_MANY * (1 + (1 - self.of_others) * max(in_group - 1, 0))))


def _ask_about_rows(people: People, rows: _Rows, k: int) -> People:
    """Return people with a question for k: so many rows that k people have no more."""
    question = "May a person have several rows? No column numbers the people."
    up_to = (
        f"a person has up to {rows.most:,} rows: the proposed k counts all rows of a person, the other answer one row"
    )
    if rows.bound < rows.most:
        more, groups = int((rows.groups > rows.bound).sum()), len(rows.groups)
        up_to = (
            f"{more:,} of {groups:,} people may have more than {rows.bound:,} rows, up to {rows.most:,}: the proposed "
        )
        up_to += f"k counts {rows.bound:,} rows of a person, the second answer {rows.most:,}, the last one row"
    evidence = f"{rows.evidence}; {up_to}; a column of numbers in privacy.unit is more exact"
    answers = tuple(dict.fromkeys(str(k * each) for each in (rows.bound, rows.most, 1)))
    ask = OpenQuestion("unit", question, evidence, "privacy.k", answers[0], answers)
    return replace(people, keys=(*people.keys, *rows.keys), questions=(ask,), rows_of_person=rows.bound)


def _find_starts(columns: Sequence[RoleProposal], comparison: RowComparison) -> Iterator[_Rows]:
    """Yield numbers of records that start with the number of a person: P0001-1, P0001-2."""
    if comparison.evidence.sample.table_rows > MAX_COMPARED_ROWS:
        return
    own = [column for column in columns if column.shape is Shape.OWN_NUMBER]
    for column in (column for column in own if not column.column.likely_type):  # a date ends with its year
        ends = [MEMBER_ENDING.search(value) for value in column.stats.values]
        if None in ends or len({end and end[0] for end in ends}) > MAX_ENDINGS:
            continue
        starts = _encode_starts(comparison.evidence.get_texts(column.name))
        constant, varying = comparison.judge_starts(starts)
        if varying or column.stats.filled < MIN_ROWS_PER_START * len({*starts.tolist()}):
            continue
        same = f", and {_list_names(constant)} {_agree(constant)}" if constant else ""
        yield _Rows(f"values of '{column.name}' differ only after the last sign{same}", _count_rows([starts]))


def _encode_starts(texts: Sequence[str | None]) -> Codes:
    """Return a code for the part of each text before its last number or letter."""
    starts: dict[str | None, int] = {None: -1}
    cut = (each if each is None else MEMBER_ENDING.sub("", each) for each in texts)
    return np.array([starts.setdefault(each, len(starts) - 1) for each in cut], np.int64)


def _count_rows(columns: Sequence[Codes]) -> Codes:
    """Return the numbers of rows with the same codes; rows with a missing value do not count."""
    kept = np.logical_and.reduce([codes >= 0 for codes in columns])
    combined = combine_codes([codes[kept] for codes in columns], int(kept.sum()))
    return np.unique(combined, return_counts=True)[1].astype(np.int64)


def _find_pairs(columns: Sequence[RoleProposal], comparison: RowComparison) -> Iterator[_Rows]:
    """Yield a group and the number of a member that together number people: centre and subject."""
    plain = [column for column in columns if _may_number_with_another(column)]
    members = [column for column in plain if _looks_like_key(column) or _counts_from_one(column)]
    members.sort(key=lambda column: not _looks_like_key(column))
    pairs = ((group, member) for member in members for group in plain if group.name != member.name)
    rows = comparison.evidence.sample.table_rows
    few = (pair for pair in pairs if pair[0].stats.distinct * pair[1].stats.distinct <= rows)
    for group, member in islice(few, MAX_PAIRS):
        names = (group.name, member.name)
        if comparison.differs(names):
            continue
        constant, varying = comparison.judge(names)
        enough = MIN_FACTS_OF_NAMED if _looks_like_key(member) else MIN_FACTS_OF_UNNAMED
        separately = [{*comparison.judge((name,))[1]} for name in names]
        if len(constant) >= enough and not varying and {*constant} <= separately[0] & separately[1]:
            evidence = f"within equal {_list_names(names)}, {_list_names(constant)} {_agree(constant)}"
            keys = (member, *([group] if group.shape is not Shape.CODE and not group.known_hint else []))
            yield _Rows(evidence, comparison.count_rows(names), keys=tuple(key.name for key in keys))


def _may_number_with_another(column: RoleProposal) -> bool:
    """Whether a column of codes, without a meaning that others may know, can number people together with another."""
    shapes = (Shape.CODE, Shape.MANY_CODES, Shape.SHARED_NUMBER, Shape.AGE, Shape.AMOUNT, Shape.POST_CODE)
    meaning = column.known_hint not in (None, Hint.PLACE, Hint.FAMILY) or column.sensitive_hint or column.weight
    whole = column.column.storage is not Storage.NUMBER or column.stats.whole_numbers == column.stats.filled
    return not meaning and column.shape in shapes and whole and column.stats.mean_count >= MIN_ROWS_PER_UNKNOWN_KEY


def _counts_from_one(column: RoleProposal) -> bool:
    """Whether a column has the whole numbers from 0 or 1 on, without gaps."""
    stats = column.stats
    number = column.column.storage in (Storage.INTEGER, Storage.NUMBER)
    return number and stats.low in (0, 1) and stats.high - stats.low + 1 == stats.distinct


def _find_equal_facts(
    columns: Sequence[RoleProposal], comparison: RowComparison, households: Sequence[str]
) -> Iterator[_Rows]:
    """Yield facts whose combination is one person: people of the same birth and place have one sex only by repetition.

    Sex does not depend on birth or place, so that it differs among people who share them. Without a column of sex, a
    place differs among people with the same day of birth.
    """
    varied = [column for column in columns if column.stats.distinct > 1 and not column.weight]
    full = [column for column in varied if column.stats.filled >= MIN_FILLED * column.column.rows]
    births = [column for column in full if {Hint.BIRTH, Hint.AGE} & column.hints and Hint.SEX not in column.hints]
    places = [column for column in full if {Hint.PLACE, Hint.ORIGIN, Hint.COUNTRY} & column.hints]
    sexes = [column for column in full if Hint.SEX in column.hints]
    days = [column for column in births if column.shape is Shape.MOMENT]
    targets = sexes or (places if days else [])
    if not births or not targets:
        return
    target = targets[0].name
    facts = [*households, *(column.name for column in (*births, *(places if sexes else ())))]
    keys = [name for name in dict.fromkeys(facts) if name != target]
    rows = comparison.evidence.compare(keys, target)
    by_chance = 1 - DEVIATIONS_BY_FACTS / max(rows.expected, 1.0) ** 0.5
    if rows.evident and rows.unexplained <= min(MAX_UNEXPLAINED_BY_FACTS, by_chance):
        evidence = f"rows with equal {_list_names(keys)} have the same '{target}' far more often than by chance"
        yield _Rows(evidence, comparison.count_rows((*keys, target)), rows.unexplained)
