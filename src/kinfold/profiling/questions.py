"""Questions: what only the steward can answer, and what changes who is protected.

A starter policy contains the proposed answer of each question and asks it in `[review]`. A question names the key that
its answer sets, so that an answer changes nothing else. It is worded so that "yes" keeps the proposal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import tomlkit

from kinfold.profiling.dependencies import LINKS, LINKS_EVENTS, ColumnDependency
from kinfold.tables.schema import Role

REMOVES_KEY = "none"  # the answer that removes the key
OTHER_KEYS = ("reviewer", "accept_proposal", "proposal")  # of `[review]`
MAX_NAME = 40  # characters of the name of a question
MAX_LISTED = 12  # columns that a question names


@dataclass(frozen=True)
class OpenQuestion:
    """An open question: what was seen, the key of the policy that the answer sets, and the proposed answer."""

    name: str  # short, for `--answer NAME=VALUE`
    question: str
    seen: str
    sets: str | tuple[str, ...]  # a dotted key of the policy, such as `privacy.unit`, or several
    proposed: str  # in the starter policy already; `none`: the key is not set
    answers: tuple[str, ...]  # as text, the proposed one first

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the answer sets."""
        return (self.sets,) if isinstance(self.sets, str) else self.sets

    def __post_init__(self) -> None:
        if not self.answers or self.answers[0] != self.proposed:
            raise ValueError(f"question {self.name!r}: the first answer is not the proposed one")


def name_question(topic: str, used: Sequence[str]) -> str:
    """Return a name of letters, digits and underscores that no other question has.

    >>> name_question("role of Körper-Größe", ["unit"]), name_question("unit", ["unit"])
    ('role_of_Körper_Größe', 'unit_2')
    """
    plain = re.sub(r"[^\w]+", "_", topic).strip("_")[:MAX_NAME] or "question"
    unavailable = {*used, *OTHER_KEYS}
    names = [plain, *(f"{plain}_{number}" for number in range(2, len(unavailable) + 2))]
    return next(name for name in names if name not in unavailable)


def ask_about_dependent(
    dependency: ColumnDependency, columns: Sequence[str], roles: Sequence[str], used: Sequence[str]
) -> OpenQuestion:
    """Return a question about the role of columns that tell the same; the first role is the proposed one."""
    keys = tuple(map(format_role_key, columns))
    what, it = describe_dependency(dependency, columns), "it" if len(columns) == 1 else "them"
    if roles[0] == Role.REMOVE:
        reason = "" if dependency.phrase in (LINKS, LINKS_EVENTS) else ", which is left out"
        question = f"{what}{reason}. Leave {it} out?"
    else:
        question = f"{what}, which others may know. Protect {it} in the same way, as {_count_quasi(columns)}?"
    by_itself = "its name or values, it" if len(columns) == 1 else "their names or values, they"
    evidence = f"by {by_itself} would be confidential"
    sets = keys[0] if len(keys) == 1 else keys
    return OpenQuestion(name_question(columns[0], used), question, evidence, sets, roles[0], tuple(roles))


def describe_dependency(dependency: ColumnDependency, columns: Sequence[str]) -> str:
    """Return what columns tell: the start of a sentence.

    >>> describe_dependency(ColumnDependency("eqIncome", ("hid",), LINKS), ["eqIncome"])
    "Everyone in a household ('hid') has the same 'eqIncome', so it shows who lives together"
    >>> describe_dependency(ColumnDependency("rent", ("zip",), "determines"), ["rent", "tax"])
    "Each of 'rent' and 'tax' determines 'zip'"
    """
    *first, last = [f"'{column}'" for column in columns]
    listed = f"{', '.join(first)} and {last}" if first else last
    shows, unit = "they show" if first else "it shows", dependency.sources[0]
    if dependency.phrase == LINKS:
        return f"Everyone in a household ('{unit}') has the same {listed}, so {shows} who lives together"
    if dependency.phrase == LINKS_EVENTS:
        return f"All rows of a person ('{unit}') have the same {listed}, so {shows} which rows are of one person"
    return f"{'Each of ' if first else ''}{listed} {dependency}"


def _count_quasi(columns: Sequence[str]) -> str:
    return "a quasi-identifier" if len(columns) == 1 else "quasi-identifiers"


def format_role_key(column: str) -> str:
    """Return the key of the role of a column.

    >>> format_role_key("age"), format_role_key("date of birth")
    ('columns.age.role', 'columns."date of birth".role')
    """
    return f"columns.{tomlkit.key(column).as_string()}.role"


def ask_about_weights(names: Sequence[str]) -> OpenQuestion:
    """Return the question whether numbers are sampling weights.

    >>> ask_about_weights(["f9"]).answers
    ('weight', 'confidential', 'remove')
    """
    listed = " and ".join(f"'{name}'" for name in names)
    question = f"Is {listed} a sampling weight?" if len(names) == 1 else f"Are {listed} sampling weights?"
    evidence = (
        "positive numbers with many decimals, different in almost every record; a weight that is released exactly"
    )
    evidence += " identifies a record; the proposed answer leaves it out"
    keys = tuple(map(format_role_key, names))
    sets = keys[0] if len(keys) == 1 else keys
    return OpenQuestion("weight", question, evidence, sets, "weight", ("weight", "confidential", "remove"))


def ask_about_codes(names: Sequence[str]) -> OpenQuestion:
    """Return the question whether codes of unknown meaning are left out.

    >>> ask_about_codes(["q1"]).question
    'Shall this column of codes be left out: q1? To keep it, give it a section with a role in the policy: [columns.q1].'
    """
    listed = ", ".join(names[:MAX_LISTED]) + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")
    section = f"[columns.{tomlkit.key(names[0]).as_string()}]"
    if len(names) == 1:
        question = f"Shall this column of codes be left out: {listed}?"
        advice = f"To keep it, give it a section with a role in the policy: {section}."
        evidence = (
            "a few values; neither name nor values say what it means; with other columns it may single people out"
        )
    else:
        question = f"Shall these {len(names)} columns of codes be left out: {listed}?"
        advice = f"To keep some of them, give each a section with a role in the policy, such as {section}."
        evidence = "a few values each; neither names nor values say what they mean; together they may single people out"
    return OpenQuestion("codes", f"{question} {advice}", evidence, "output.others", "drop", ("drop", "release"))
