"""What each method needs of a request, said once: a request that lacks it is refused by it, and tests choose by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kinfold.request.policy import GENERALIZING


@dataclass(frozen=True)
class Needs:
    """What a method cannot do without; a method that is not listed below needs nothing."""

    t: bool = False  # a t to keep while it forms classes
    one_number: bool = False  # a single quasi-identifier, of numbers or dates
    hierarchies: bool = False  # one for every quasi-identifier of numbers or dates
    rows: bool = False  # promises about rows, each column by itself: neither `unit` nor `joint`


NEEDS: Mapping[str, Needs] = {
    "univariate": Needs(one_number=True),
    "t-merge": Needs(t=True),
    "k-first": Needs(t=True),
    "t-first": Needs(t=True),
    **dict.fromkeys(GENERALIZING, Needs(hierarchies=True, rows=True)),
}


def needs(method: str) -> Needs:
    """Return what a method needs."""
    return NEEDS.get(method, Needs())
