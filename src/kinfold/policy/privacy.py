"""The section [privacy] of a policy: what a release promises, as pydantic models."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, model_validator

from kinfold.errors import Problem
from kinfold.policy.validation import PolicyFile, Section

MAX_DIGITS = 100  # of a whole number in a policy: a double cannot hold one of more than 308


def _to_integer(value: Any) -> Any:
    # accept numpy's integers, but not True
    try:
        number = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else value
    except TypeError:  # an array of several numbers
        raise ValueError("one whole number is needed") from None
    if isinstance(number, int) and abs(number) >= 10**MAX_DIGITS:
        raise ValueError(f"a whole number has at most {MAX_DIGITS} digits")
    return number


Integer = Annotated[StrictInt, BeforeValidator(_to_integer)]
Number = Annotated[float, Field(strict=True)]  # refuses "0.2" and true
Positive = Annotated[Number, Field(gt=0)]
Share = Annotated[Number, Field(gt=0, le=1)]
Probability = Annotated[Number, Field(ge=0, le=1)]


class RiskShareKeys(Section):
    """privacy.risk_share: how many records may have a risk above a limit."""

    above: Share
    most: Annotated[Number, Field(ge=0, lt=1)]


class CombinationKeys(Section):
    """privacy.combinations: k holds on every combination of at most so many quasi-identifiers."""

    size: Annotated[Integer, Field(ge=1)]
    confidence: Share | None = None


class PopulationKeys(Section):
    """privacy.population: promises about the people that the table is a sample of."""

    table: PolicyFile | None = None  # one row for each person, with the quasi-identifiers
    size: Annotated[Integer, Field(ge=1)] | None = None  # of the population, without a table of it
    k: Annotated[Integer, Field(ge=2)] | None = None
    alpha: Annotated[Number, Field(gt=0, lt=1)] | None = None  # size: the risk that a class has fewer than k people
    presence: tuple[Probability, Probability] | None = None  # table: the share of the people of a class in the table
    uniques: Annotated[Number, Field(gt=0, lt=1)] | None = None  # size: the largest share of people who are unique
    estimator: Literal["dankar", "zayatz", "pitman", "snb"] = "dankar"

    @model_validator(mode="after")
    def _check_promise(self) -> Self:
        if (self.table is None) == (self.size is None):
            raise ValueError("population has either a table or a size")
        wanted = ("k", "presence") if self.table is not None else ("k", "uniques")
        foreign = ("presence",) if self.table is None else ("uniques", "alpha")
        if not any(getattr(self, key) is not None for key in wanted):
            raise ValueError(f"population promises nothing: add {' or '.join(wanted)}")
        for key in foreign:
            if getattr(self, key) is not None:
                raise ValueError(f"{key} is for a population with a {'table' if self.table is None else 'size'}")
        if self.size is not None and (self.k is None) != (self.alpha is None):
            raise ValueError("an estimated k-map needs k and alpha")
        if self.size is not None and self.k is not None and self.k > self.size:
            raise ValueError("k is above the size of the population")
        if self.presence is not None and self.presence[0] > self.presence[1]:
            raise ValueError("the first share of presence is above the second")
        return self


class Privacy(Section):
    """[privacy]: what the release promises about every class."""

    k: Annotated[Integer, Field(ge=2)]
    t: Share | None = None
    l: Annotated[Number, Field(ge=1)] | None = None
    l_kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: Positive | None = None
    p: Annotated[Integer, Field(ge=1)] | None = None
    alpha: Share | None = None
    beta: Positive | None = None
    beta_kind: Literal["basic", "enhanced"] = "basic"
    delta: Positive | None = None
    average_risk: Share | None = None
    risk_share: RiskShareKeys | None = None
    combinations: CombinationKeys | None = None  # k holds on these instead of all quasi-identifiers together
    population: PopulationKeys | None = None
    unit: str | None = None
    events_known: Annotated[Integer, Field(ge=1)] | None = None  # people together: events that an attacker knows
    days_known: Annotated[Integer, Field(ge=0)] = 1  # length of the periods in which they know dates; 0: not at all
    joint: StrictBool = False
    weighted: StrictBool = False  # promises about confidential columns also hold by sampling weights
    individual_risk: Share | None = None  # the largest risk of a record in the population, by sampling weights
    household: str | None = None  # a column that names households: their members show the same
    household_k: Annotated[Integer, Field(ge=2)] | None = None


def find_promise_conflicts(privacy: Privacy) -> Iterator[Problem]:
    """Yield promises about combinations or the population that cannot be kept together with others."""
    for key in ("combinations", "population"):
        if getattr(privacy, key) is None:
            continue
        for other in ("unit", "household", *(("joint",) if key == "combinations" else ())):
            if getattr(privacy, other):
                what = f"privacy.{key} with privacy.{other}: it counts rows of classes, not people or parts of classes"
                yield Problem(what, f"leave out privacy.{other} or privacy.{key}")
    for key in ("weighted", "individual_risk"):
        for other in ("unit", "joint", "combinations"):
            if getattr(privacy, key) and getattr(privacy, other):
                what = f"privacy.{key} with privacy.{other}: weights count the records of classes"
                yield Problem(what, f"leave out privacy.{other} or privacy.{key}")
