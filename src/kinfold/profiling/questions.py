"""Questions: what only the steward can answer, and what changes who is protected.

A starter policy contains the proposed answer of each question and asks it in `[review]`. A question names the key that
its answer sets, so that an answer changes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

REMOVES_KEY = "none"  # the answer that removes the key
MAX_NAME = 40  # characters of the name of a question


@dataclass(frozen=True)
class Question:
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
    names = [plain, *(f"{plain}_{number}" for number in range(2, len(used) + 2))]
    return next(name for name in names if name not in used)
