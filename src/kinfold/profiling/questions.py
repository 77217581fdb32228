"""Questions: what only the steward can answer, and what changes who is protected.

A starter policy contains the proposed answer of each question and asks it in `[review]`. A question names the key that
its answer sets, so that an answer changes nothing else. It is worded so that "yes" keeps the proposal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import tomlkit

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
    sets: str  # a dotted key of the policy, such as `privacy.unit` or `columns.popul.role`
    proposed: str  # in the starter policy already; `none`: the key is not set
    answers: tuple[str, ...]  # as text, the proposed one first

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


def ask_about_role(name: str, question: str, evidence: str, roles: Sequence[str], used: Sequence[str]) -> OpenQuestion:
    """Return a question about the role of a column; the first role is the proposed one."""
    key = format_role_key(name)
    return OpenQuestion(name_question(name, used), question, evidence, key, roles[0], tuple(roles))


def format_role_key(column: str) -> str:
    """Return the key of the role of a column.

    >>> format_role_key("age"), format_role_key("date of birth")
    ('columns.age.role', 'columns."date of birth".role')
    """
    return f"columns.{tomlkit.key(column).as_string()}.role"


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
