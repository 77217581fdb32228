"""Questions: what only the steward can answer, and what changes who is protected.

A starter policy contains the proposed answer of each question and asks it in `[review]`. A question names the key that
its answer sets, so that an answer changes nothing else.
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
    """Return the question whether codes of unknown meaning are released."""
    listed = ", ".join(names[:MAX_LISTED]) + (f" and {len(names) - MAX_LISTED} more" if len(names) > MAX_LISTED else "")
    columns = "this column" if len(names) == 1 else f"these {len(names)} columns"
    question = (
        f"Can {columns} of codes be released as they are, because others do not know them about a person: {listed}?"
    )
    evidence = "a few values each; neither names nor values say what they mean; together they may single people out"
    return OpenQuestion("codes", question, evidence, "output.others", "drop", ("drop", "release"))
