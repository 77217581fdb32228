"""The questions of a policy, their answers, and how the policy differs from the proposal.

A question is open while it has no answer. An answer sets the keys that the question names, as `--set` does; "none"
removes them. The proposed answer leaves the policy as it is, unless the key has the value of another answer.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, ValidationError, model_validator

from kinfold.errors import PolicyError, Problem, plural
from kinfold.policy.toml_values import KeyPath, format_toml_key, override_keys, parse_key, parse_value
from kinfold.policy.validation import Section, suggest_name
from kinfold.tables.schema import ROLE_SYNONYMS

UNIT_KEY = "privacy.unit"
NONE = "none"  # the answer that removes the key
ACCEPTING_WORDS = ("yes", "proposed")

Text = Annotated[str, Field(min_length=1)]


def _check_keys(given: str | tuple[str, ...]) -> str | tuple[str, ...]:
    for text in _list_keys(given):
        if len(parse_key(text)) < 2 or parse_key(text)[0] == "review":
            raise ValueError("it is not a key of the policy, such as privacy.unit")
    return given


def _list_keys(given: Any) -> tuple[str, ...]:
    return tuple(map(str, given)) if isinstance(given, list | tuple) else (str(given),)


class ReviewQuestion(Section):
    """[review.NAME]: a question that only the data holder can answer."""

    question: Text
    seen: str = ""
    sets: Annotated[Text | Annotated[tuple[Text, ...], Field(min_length=1)], AfterValidator(_check_keys)]
    proposed: Text
    answers: Annotated[tuple[Text, ...], Field(min_length=1)]
    answer: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the answer sets."""
        return _list_keys(self.sets)

    @model_validator(mode="after")
    def _check_answers(self) -> Self:
        if self.proposed not in self.answers:
            raise ValueError("the proposed answer is not one of the answers")
        if self.answer:
            self.choose(self.answer)
        return self

    def choose(self, given: str) -> str:
        """Return the answer that is meant; `yes` is the proposal, and `no` the other one of two answers."""
        text, word = given.strip(), given.strip().lower()
        if text in self.answers:
            return text
        if word in ACCEPTING_WORDS:
            return self.proposed
        if word == "no" and len(self.answers) == 2:
            return next(answer for answer in self.answers if answer != self.proposed)
        raise ValueError(f"'{given}' is not an answer; the answers are {', '.join(self.answers)}")

    def read_answer(self, answer: str) -> Any:
        """Return the value that an answer gives its keys; the name of a column may look like a number."""
        if answer == NONE:
            return None
        return answer if self.keys == (UNIT_KEY,) else parse_value(answer)


class Proposal(Section):
    """[review.proposal]: what was proposed, to compare with the policy."""

    unit: str | None = None
    questions: tuple[str, ...] = ()
    roles: dict[str, str] = Field(default_factory=dict)  # of each column


class Review(Section):
    """[review]: the questions by name, the reviewer who answers them, and the proposal."""

    FURTHER_KEYS: ClassVar = ReviewQuestion

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, ReviewQuestion] = Field(init=False)

    reviewer: str | None = None
    accept_proposal: StrictBool = False  # open questions are answered as proposed
    proposal: Proposal | None = None

    @property
    def questions(self) -> dict[str, ReviewQuestion]:
        """The questions by name."""
        return dict(self.__pydantic_extra__ or {})

    @property
    def open_questions(self) -> dict[str, ReviewQuestion]:
        """The questions without an answer, unless all proposals are accepted."""
        return {} if self.accept_proposal else self._unanswered

    @property
    def _unanswered(self) -> dict[str, ReviewQuestion]:
        return {name: each for name, each in self.questions.items() if not each.answer}

    @property
    def accepted(self) -> int:
        """The number of questions whose proposal was accepted without review."""
        return len(self._unanswered) if self.accept_proposal else 0

    @property
    def statement(self) -> str:
        """The sentence that says how many proposals were accepted without review; empty if none were."""
        if not self.accepted:
            return ""
        were = plural(self.accepted, "question was", "questions were")
        return f"{were} answered by accepting kinfold's proposal without review"

    def asks_for_role(self, column: str) -> bool:
        """Whether a question asks for the role of a column; its other keys may then be those of another role."""
        keys = [parse_key(key) for each in self.questions.values() for key in each.keys]
        return ("columns", column, "role") in keys

    def require_answers(self) -> None:
        """Raise with every open question, what was seen and proposed, and how to answer it."""
        questions = self.open_questions
        if questions:
            problems = [_describe_question(name, each) for name, each in questions.items()]
            count = plural(len(problems), "question of the policy is", "questions of the policy are")
            fix = (
                "answer each, or take all proposals with --accept-proposal; the certificate and the reports then say so"
            )
            raise PolicyError([*problems, Problem(f"nothing is released, because {count} open", fix)])

    def resolve_answers(self, given: Mapping[str, Any]) -> dict[KeyPath, str]:
        """Return answers by the key of the policy that holds them; raise for unknown names and other answers."""
        answers: dict[KeyPath, str] = {}
        problems = []
        for name, value in given.items():
            known = ", ".join(self.questions) or "none"
            if name not in self.questions:
                what = f"the policy has no question '{name}'{suggest_name(name, [*self.questions])}"
                problems.append(Problem(what, f"its questions: {known}"))
                continue
            try:
                answers["review", name, "answer"] = self.questions[name].choose(_to_answer(value))
            except ValueError as error:
                problems.append(Problem(f"question '{name}': {error}", "give one of them, or yes for the proposal"))
        if problems:
            raise PolicyError(problems)
        return answers


def _to_answer(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NONE if value is None else str(value)


def _describe_question(name: str, question: ReviewQuestion) -> Problem:
    """Return an open question as a problem, with what was seen and proposed, and how to answer it."""
    seen = (f"seen: {question.seen}",) if question.seen else ()
    proposed = f"proposed: {question.proposed}; answers: {', '.join(question.answers)}"
    section = f"[{format_toml_key('review', name)}]"
    write = f'write answer = "ANSWER" in {section} of the policy'
    fix = f"--answer {name}=ANSWER, or {write}, or delete {section} to keep the policy as it is"
    return Problem(f"question '{name}': {question.question}", fix, key=("review", name), details=(*seen, proposed))


def apply_answers(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of a policy with the keys that its answers set; a wrong question is left to its check."""
    review = values.get("review")
    if not isinstance(review, Mapping):
        return values
    changed, accepted = copy.deepcopy(dict(values)), review.get("accept_proposal") is True
    for name, section in review.items():
        if name in Review.model_fields:
            continue
        try:
            question = ReviewQuestion.model_validate(section)
        except ValidationError:
            continue
        if question.answer:
            override_keys(changed, _list_changes(changed, question, question.choose(question.answer)))
        elif accepted and (answer := _find_other_answer(changed, question)) is not None:
            override_keys(changed, {("review", name, "answer"): answer})  # the policy was edited: that is the answer
    return changed


def complete_changes(review: Review, values: Mapping[str, Any], changes: Mapping[KeyPath, Any]) -> dict[KeyPath, Any]:
    """Return changes of a policy with what they imply.

    An answer sets its keys. A key that a question asks for answers it; a value that is no answer removes the question.
    A question about several keys stays open if only some of them are set.
    """
    more: dict[KeyPath, Any] = {}
    for name, question in review.questions.items():
        place, paths = ("review", name, "answer"), [_find_path(values, key) for key in question.keys]
        if changes.get(place) in question.answers:
            more |= _list_changes(values, question, changes[place])
        elif all(path in changes for path in paths):
            answer = _find_answer(question, question.answers, [changes[path] for path in paths])
            more |= {place: answer} if answer else {place[:2]: None}
    return {**more, **changes}


def find_answered(values: Mapping[str, Any], path: KeyPath) -> str | None:
    """Return the name of the question whose answer in the policy sets a key, or None."""
    review = values.get("review")
    sections = review.items() if isinstance(review, Mapping) else ()
    questions = {name: each for name, each in sections if isinstance(each, Mapping) and each.get("answer")}
    return next(
        (name for name, each in questions.items() if path in map(parse_key, _list_keys(each.get("sets")))), None
    )


def _list_changes(values: Mapping[str, Any], question: ReviewQuestion, answer: str) -> dict[KeyPath, Any]:
    """Return the keys that an answer sets: none if the proposal stands already."""
    if answer == question.proposed and _find_other_answer(values, question) is None:
        return {}
    return {_find_path(values, key): question.read_answer(answer) for key in question.keys}


def _find_other_answer(values: Mapping[str, Any], question: ReviewQuestion) -> str | None:
    """Return the answer, other than the proposal, whose value every key has; None if there is none."""
    current = [_get_value(values, _find_path(values, key)) for key in question.keys]
    return _find_answer(question, [each for each in question.answers if each != question.proposed], current)


def _find_answer(question: ReviewQuestion, answers: Sequence[str], values: Sequence[Any]) -> str | None:
    texts = [_to_texts(value) for value in values]
    read = {each: _to_texts(question.read_answer(each)) for each in answers}
    return next((each for each in answers if all(read[each] == text for text in texts)), None)


def _find_path(values: Mapping[str, Any], key: str) -> KeyPath:
    """Return the path of a key; the name of a column may have dots."""
    path, columns = parse_key(key), values.get("columns")
    if path[0] != "columns" or not isinstance(columns, Mapping):
        return path
    names = {end: ".".join(path[1:end]) for end in range(2, len(path))}
    return next((("columns", name, *path[end:]) for end, name in names.items() if name in columns), path)


def _to_texts(value: Any) -> Any:
    """Return a value in a form in which the text of a policy and a checked policy can be compared."""
    if isinstance(value, list | tuple):
        return [_to_texts(each) for each in value]
    return value if value is None else str(value)


def _get_value(values: Any, path: KeyPath) -> Any:
    for part in path:
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def describe_review(review: Review, roles: Mapping[str, str], unit: str | None) -> dict[str, Any]:
    """Return what was asked, answered and changed, for the audit and the internal report."""
    questions = [_describe_answer(review, name, each) for name, each in review.questions.items()]
    unknown = dict.fromkeys(ReviewQuestion.model_fields)
    questions += [
        {"name": name, **unknown, "answered_by": "the policy was edited"}
        for name in (review.proposal.questions if review.proposal else ())
        if name not in review.questions
    ]
    return {
        "reviewer": review.reviewer,
        "accepted_without_review": review.accepted,
        "questions": questions,
        "compared": review.proposal is not None,
        "differences": [] if review.proposal is None else list(_compare(review.proposal, roles, unit)),
    }


def _describe_answer(review: Review, name: str, question: ReviewQuestion) -> dict[str, Any]:
    accepted = not question.answer
    answer = question.proposed if accepted else question.choose(question.answer)
    how = "accepted without review" if accepted else review.reviewer or "not named"
    return {"name": name, **question.model_dump(mode="json"), "answer": answer, "answered_by": how}


def _compare(proposal: Proposal, roles: Mapping[str, str], unit: str | None) -> Iterator[dict[str, Any]]:
    """Yield the roles, and the unit, that are not those of the proposal."""
    if proposal.unit != unit:
        yield {"key": "privacy.unit", "proposed": proposal.unit, "policy": unit}
    before = {name: str(ROLE_SYNONYMS.get(role, role)) for name, role in proposal.roles.items()}
    for name in dict.fromkeys((*before, *roles) if before else ()):
        proposed, role = before.get(name), roles.get(name)
        if proposed != role:
            yield {"key": format_toml_key("columns", name, "role"), "proposed": proposed, "policy": role}
