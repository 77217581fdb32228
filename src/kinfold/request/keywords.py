"""Keywords: a policy without a file, in the signature of whatever takes one, so that help and completion list them.

quasi, confidential, identifier      lists of columns
method                               the name of one
k, t, refine, others, ...            every key of the policy's sections, as the policy has it
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

from pydantic import BaseModel

from kinfold.errors import PolicyError
from kinfold.request.policy import EngineSection, Method, Output, Policy, Privacy, Report, Source, from_roles

Function = TypeVar("Function", bound=Callable[..., Any])

LISTS = ("quasi", "confidential", "identifier")
SECTIONS: dict[str, type[BaseModel]] = {
    "privacy": Privacy,
    "method": Method,
    "output": Output,
    "report": Report,
    "source": Source,
    "engine": EngineSection,
}
NAMES = {("method", "name"): "method", ("engine", "name"): "engine"}  # keys whose section is their keyword


def requested(policy: Any, request: Mapping[str, Any]) -> Policy:
    """Return the policy that was given, or one made of roles and levels; both together are an error."""
    if policy is not None and not request:
        return Policy.of(policy)
    if policy is not None:
        raise PolicyError(
            f"a policy and {', '.join(request)} were given", fix="put them into the policy, or leave it out"
        )
    return Policy.parse(policy_values(request))


def policy_values(request: Mapping[str, Any]) -> dict[str, Any]:
    """Sort keywords into the sections of a policy: quasi=, confidential=, identifier=, k=, t=, method=, others=, ..."""
    sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    lists: dict[str, Sequence[str]] = {}
    for key, value in request.items():
        if key in LISTS:
            lists[key] = _columns(key, value)
        elif key in NAMES.values():
            sections[key]["name"] = value
        else:
            sections[section_of(key)][key] = value
    return from_roles(**lists, settings=sections)


def _columns(key: str, given: Any) -> list[str]:
    """Return the names of columns, given as one text or several."""
    names: list[Any] = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [None]
    if isinstance(given, bytes | Mapping) or not all(isinstance(name, str) for name in names):
        what = f"{key} is given as {type(given).__name__}, and is a list of the names of columns"
        raise PolicyError(what, fix=f'write {key}=["age", "zip"]')
    return names


def section_of(key: str) -> str:
    """Return the section of a policy that a key belongs to; of one that nobody knows `privacy`, which will say so."""
    return next((section for section, model in SECTIONS.items() if key in model.model_fields), "privacy")


def listing(*more: type, sections: Sequence[str] = tuple(SECTIONS)) -> Callable[[Function], Function]:
    """Put every keyword of a policy, or of some sections, into the signature of a function that takes them as `**`.

    `more` are dataclasses whose fields it takes as well.
    """

    def listed(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        names = {each.name for each in own}
        asked = [each for each in (*_of_dataclasses(more), *_of_policy(sections)) if each.name not in names]
        unique = list({each.name: each for each in reversed(asked)}.values())[::-1]
        function.__signature__ = signature.replace(parameters=[*own, *unique])  # type: ignore[attr-defined]
        return function

    return listed


def _of_policy(sections: Sequence[str]) -> Iterator[inspect.Parameter]:
    yield from (_keyword(name, ()) for name in LISTS if "privacy" in sections)
    for section in sections:
        for name, field in SECTIONS[section].model_fields.items():
            yield _keyword(NAMES.get((section, name), name), None if field.is_required() else field.default)


def _of_dataclasses(more: tuple[type, ...]) -> Iterator[inspect.Parameter]:
    for each in more:
        assert is_dataclass(each)  # noqa: S101  as its callers give it
        for field in fields(each):
            yield _keyword(field.name, None if field.default is MISSING else field.default)


def _keyword(name: str, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
