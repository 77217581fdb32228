"""Words for what a page lets people choose: what each means, in a sentence, and the risk that it leaves."""

from __future__ import annotations

from functools import cache
from typing import Any

from kinfold.models import Finding
from kinfold.release.report import verdict_sentences
from kinfold.release.report.limits import LIMITS
from kinfold.release.report.page import ROLES
from kinfold.request.binding import AVERAGES
from kinfold.request.methods import AUTO, IN_WORDS, registry

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
    "suppression": "So many records, or such a share, may be left out where they would cost the others too much.",
}


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
        "models": {name: {"sentence": _meaning(name), "leaves": LEFT[name]} for name in ("k", "l", "t")},
        "keys": {name: LEFT[name] for name in ("unit", "refine", "suppression")},
        "methods": methods,
        "missing": MISSING,
        "average": AVERAGE,
        "averages_by_type": {str(kind): list(names) for kind, names in AVERAGES.items()},
        "others": OTHERS,
        "not_promised": list(LIMITS),
    }


def _meaning(model: str) -> str:
    """Say what a promise means, with its letter where a number would stand."""
    asked = {"k": 7919.0, "l": 7919.0, "t": 0.7919}[model]
    finding = Finding(f"distinct {model}", model, "the column", asked, asked, True)
    told = str(verdict_sentences.meaning(finding).striptags())
    return told.replace("7,919", model).replace("7919", model).replace("0.7919", model)
