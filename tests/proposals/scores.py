"""Scores of proposals: what a profile decides about tables with a known truth, and whether its policy is safe.

A decision is a pair of a table and a column. Precision is the share of the decisions that are true, recall the share of
the true ones that were made or asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kinfold.profiling.profile import ColumnProfile, Profile
from proposals.tables import CONFIDENTIAL, ID, QUASI, REMOVE, WEIGHT, ProposalTable, Truth

GONE = {ID, REMOVE, WEIGHT}  # roles that are not released, or only rounded
SAFE_ROLES = {ID: GONE, QUASI: {*GONE, QUASI}, CONFIDENTIAL: {*GONE, CONFIDENTIAL}, WEIGHT: GONE, REMOVE: {*GONE}}


@dataclass
class Score:
    """How often a kind of decision was right, wrong, missed or asked about."""

    right: int = 0
    wrong: int = 0
    missed: int = 0
    asked: int = 0

    @property
    def precision(self) -> float:
        """The share of the decisions that are true."""
        return self.right / max(self.right + self.wrong, 1)

    @property
    def recall(self) -> float:
        """The share of the truth that was decided or asked about."""
        return (self.right + self.asked) / max(self.right + self.asked + self.missed, 1)


def score_tables(pairs: Iterable[tuple[ProposalTable, Profile]]) -> dict[str, Score]:
    """Return the scores of each kind of decision."""
    scores: dict[str, Score] = {}
    for table, profile in pairs:
        for kind, decided, true, asked in list_decisions(table.truth, profile):
            score = scores.setdefault(kind, Score())
            score.right += len(decided & true)
            score.wrong += len(decided - true)
            score.asked += len((true - decided) & asked)
            score.missed += len(true - decided - asked)
    return scores


def list_decisions(truth: Truth, profile: Profile) -> Iterator[tuple[str, set[str], set[str], set[str]]]:
    """Yield each kind of decision with the columns that were decided, that are true, and that were asked about."""
    asked = list_asked(profile)
    by_role = {role: {c.name for c in profile.columns if c.role == role and not c.undecided} for role in SAFE_ROLES}
    known = {*truth.roles}
    for kind, role in {
        "identifier": ID,
        "quasi-identifier": QUASI,
        "confidential": CONFIDENTIAL,
        "sampling weight": WEIGHT,
    }.items():
        true = {name for name, true_role in truth.roles.items() if true_role == role}
        yield kind, by_role[role] & known, true, asked
    unit = {profile.unit.column} if profile.unit and profile.unit.people else set()
    yield "rows of a person", unit, {truth.unit} - {None}, unit if "privacy.unit" in asked else set()
    household = {profile.unit.column} if profile.unit and not profile.unit.people else set()
    yield "household", household, {truth.household} - {None}, set()
    treated = {c.name for c in profile.columns if c.role in (QUASI, *GONE)} & truth.dependent
    flagged = {c.name for c in profile.columns if c.depends_on}
    yield "dependent column", treated | flagged, {*truth.dependent}, asked
    coded = {f"{c.name} {code}" for c in profile.columns for code in c.na}
    yield (
        "code for missing",
        coded,
        {f"{name} {code}" for name, codes in truth.missing.items() for code in codes},
        set(),
    )


def list_asked(profile: Profile) -> set[str]:
    """The columns that questions are about, and the keys that the answers set."""
    asked = {column.name for column in profile.columns if column.undecided}
    for question in profile.questions:
        for key in question.keys:
            asked |= {key} | {c.name for c in profile.columns if key.startswith(f"columns.{c.name}.")}
    return asked


def list_dangers(truth: Truth, profile: Profile) -> Iterator[str]:
    """Yield what an unedited policy would release unsafely without a question."""
    asked = list_asked(profile)
    for column in profile.columns:
        allowed = SAFE_ROLES.get(truth.roles.get(column.name, ""), set())
        as_known = column.role == QUASI and truth.roles.get(column.name) == CONFIDENTIAL  # protected, if in another way
        if allowed and column.name not in asked and column.role not in allowed and not as_known:
            yield f"{column.name} is {column.role}"
        yield from list_unprotected(column)
    if truth.unit and "privacy.unit" not in asked and (profile.unit is None or profile.unit.column != truth.unit):
        yield f"rows of {truth.unit} count as people"
    for name, codes in truth.missing.items():
        own = next(column for column in profile.columns if column.name == name)
        if missed := {*codes} - {*own.na}:
            yield f"{len(missed)} codes of {name} count as values"


def list_unprotected(column: ColumnProfile) -> Iterator[str]:
    """Yield a confidential column without a promise of its own, and an unknown code that is released silently."""
    if column.role == CONFIDENTIAL and column.t is None and column.l is None:
        yield f"{column.name} has neither t nor l"
    if column.role == "other" and column.distinct > 1 and not column.undecided:
        yield f"{column.name} is released as it is"


def format_scores(scores: Mapping[str, Score], tables: int, questions: int) -> list[str]:
    """Return the scores as a table in Markdown."""
    lines = ["| decision | true cases | precision | recall | asked |", "| --- | --- | --- | --- | --- |"]
    for kind, score in scores.items():
        true = score.right + score.missed + score.asked
        lines.append(f"| {kind} | {true} | {score.precision:.2f} | {score.recall:.2f} | {score.asked} |")
    return [*lines, "", f"{questions} questions about {tables} tables: {questions / tables:.2f} a table."]
