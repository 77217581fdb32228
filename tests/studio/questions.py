"""The policy of the demo with two questions."""

from __future__ import annotations

from kinfold.demo import read_demo_policy

QUESTIONS = """
[review.unit]
question = "Is each name one person?"
seen = "1.0 rows for each value"
sets = "privacy.unit"
proposed = "none"
answers = ["none", "name"]
answer = ""
[review.education]
question = "May others know the education of a person?"
sets = "columns.education.role"
proposed = "quasi-identifier"
answers = ["quasi-identifier", "confidential", "remove"]
"""


def policy_with_questions() -> str:
    return read_demo_policy().rstrip("\n") + "\n" + QUESTIONS
