"""Words for what a page lets people choose: what each means, in a sentence, and the risk that it leaves."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, get_args, get_origin

from kinfold.release.report import verdict_sentences
from kinfold.release.report.limits import LIMITS
from kinfold.release.report.page import ROLES
from kinfold.release.report.wording import share
from kinfold.request.binding import AVERAGES
from kinfold.request.methods import AUTO, IN_WORDS, registry
from kinfold.request.policy import ColumnPolicy, Method, Output, Policy, Privacy

TYPES = {
    "continuous": "Numbers: they have differences and means.",
    "ordinal": "Categories that have an order.",
    "nominal": "Categories without an order.",
    "date": "Days or moments.",
}
MISSING = {
    "refuse": "Stop, so that somebody decides.",
    "separate": "Records that miss the same values are grouped among themselves.",
    "mean": "Missing values are released as the mean of their class, and the report says so.",
    "drop": "Records with a missing value are left out.",
}
AVERAGE = {
    "mean": "The mean of the class.",
    "median": "The middle value of the class.",
    "convex-median": "The value in the middle that keeps the spread of an ordered scale.",
    "mode": "The most frequent value of the class.",
    "generalize": "The narrowest true statement about the whole class.",
    "suppress": "The value where the class agrees on it, else nothing.",
}
OTHERS = {
    "refuse": "A column that nobody named stops the run.",
    "release": "Columns that nobody named are released as they are.",
    "drop": "Columns that nobody named are left out.",
}
LEFT = {
    "k": "Somebody who knows a person's quasi-identifiers finds the record with a chance of at most 1 in k; what all "
    "records of a class share is learnt all the same.",
    "l": "What is confidential is not learnt for certain; a value that is likely in a class is still likely.",
    "t": "Little more is learnt about a person than the whole release tells about everybody.",
    "unit": "The promises hold for people, however many rows each has.",
    "refine": "The same promises with less information lost; it takes the time it is given.",
    "prove": "So much time, after the run, for a proof of how far the loss may be above the least possible: the bound "
    "of the search's curve.",
    "suppression": "So many records, or such a share, may be left out where they would cost the others too much.",
}


SECTIONS = (Privacy, Method, ColumnPolicy, Output)


def choices() -> dict[str, list[Any]]:
    """Return what the keys of a policy may say that choose among words.

    >>> choices()["others"]
    ['refuse', 'release', 'drop']
    """
    found: dict[str, list[Any]] = {}
    for section in SECTIONS:
        for name, field in section.model_fields.items():
            if texts := [each for each in _literals(field.annotation) if isinstance(each, str)]:
                found[name] = texts
    return found


def _literals(kind: Any) -> list[Any]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    return [each for part in get_args(kind) for each in _literals(part)]


def now(policy: Policy) -> dict[str, dict[str, str]]:
    """Return what is promised and how it is kept, as the policy stands, with the risk that it leaves."""
    privacy, method = policy.privacy, policy.method
    found = {"k": _promise("k", privacy.k, f"finds the record with a chance of at most 1 in {privacy.k}")}
    if privacy.l is not None:
        found["l"] = _promise(privacy.l_kind, privacy.l, LEFT["l"])
    if privacy.t is not None:
        found["t"] = _promise("t", privacy.t, LEFT["t"])
    found["k"]["leaves"] = (
        f"Somebody who knows a person's quasi-identifiers {found['k']['leaves']}, {share(1 / privacy.k)}; "
        "what all records of a class share is learnt all the same."
    )
    declared = registry().get(method.name)
    summary = declared.summary if declared else words()["methods"][0]["sentence"]
    return found | {"method": {"sentence": summary, "leaves": ""}}


def _promise(kind: str, level: float, leaves: str) -> dict[str, str]:
    return {"sentence": verdict_sentences.meaning_of(kind, f"{level:g}"), "leaves": leaves}


@cache
def words() -> dict[str, Any]:
    """Return every choice with its sentence."""
    methods: list[dict[str, Any]] = [
        {"name": AUTO, "family": None, "sentence": "the best of the others for the table", "needs": []}
    ]
    methods += [
        {"name": each.name, "family": each.family, "sentence": each.summary, "needs": [IN_WORDS[n] for n in each.needs]}
        for each in registry().values()
    ]
    return {
        "roles": {name: {"title": title, "sentence": sentence} for name, (title, sentence) in ROLES.items()},
        "types": TYPES,
        "models": {
            name: {"sentence": verdict_sentences.meaning_of(kind, name), "leaves": LEFT[name]}
            for name, kind in (("k", "k"), ("l", "distinct"), ("t", "t"))
        },
        "l_kinds": {kind: verdict_sentences.meaning_of(kind, "l") for kind in ("distinct", "entropy", "recursive")},
        "keys": {name: LEFT[name] for name in ("unit", "refine", "prove", "suppression")},
        "methods": methods,
        "missing": MISSING,
        "average": AVERAGE,
        "averages_by_type": {str(kind): list(names) for kind, names in AVERAGES.items()},
        "others": OTHERS,
        "choices": choices(),
        "not_promised": list(LIMITS),
    }
