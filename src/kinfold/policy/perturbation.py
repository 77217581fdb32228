"""Perturbation of columns: the keys of `columns.NAME.perturb`, and the columns that they fit.

Perturbation promises nothing about privacy. It comes before the method: classes are formed, and every promise is
checked, with the perturbed values. These combinations are refused, because a promise or a statement would be wrong:

    a removed column, a weight      nothing of it is released, or it must stay what it counts
    generalized or suppressed       a generalized value must contain the original value
    people together, if quasi       rows of a person have one value, but are perturbed one by one
    regions that differ in a        members of a household move together
    household
    noise with l, p or alpha        noise makes equal values differ, so that every class would be diverse
    noise of text                   there is nothing to add it to
    a rule that repairs records     perturbed values may break it in records that no class average can repair
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictBool, StrictInt, model_validator

from kinfold.errors import Problem
from kinfold.policy.validation import Section
from kinfold.tables.schema import Kind, Role

if TYPE_CHECKING:
    from kinfold.policy.binding import BoundColumn
    from kinfold.policy.model import Policy
    from kinfold.policy.rules import BoundRule

PerturbationKind: TypeAlias = Literal[
    "pram", "noise", "correlated noise", "rank swapping", "micro-averages", "record swapping"
]
StrictNumber = Annotated[float, Field(strict=True)]
Probability = Annotated[StrictNumber, Field(ge=0, le=1)]

KINDS: Mapping[str, PerturbationKind] = {  # by key of the policy
    "pram": "pram",
    "matrix": "pram",
    "noise": "noise",
    "correlated_noise": "correlated noise",
    "rank_swap": "rank swapping",
    "micro": "micro-averages",
    "record_swap": "record swapping",
}
KIND_TEXTS: Mapping[PerturbationKind, str] = {
    "pram": "some values are replaced by others at random (invariant PRAM)",
    "noise": "random noise is added",
    "correlated noise": "random noise is added, correlated as the columns are",
    "rank swapping": "values of similar size are swapped between records",
    "micro-averages": "neighbouring values are replaced by their mean",
    "record swapping": "some households exchange their values with households elsewhere",
}
MAX_ROW_ERROR = 1e-9  # of the sum of a row of probabilities


class Perturbation(Section):
    """[columns.NAME.perturb]: how the values of a column are perturbed; exactly one of the kinds."""

    FORMS: ClassVar = tuple(KINDS)

    pram: Annotated[StrictNumber, Field(ge=0, lt=1)] | None = None  # probability that a value is not drawn again
    matrix: dict[str, dict[str, Probability]] | None = None  # transition probabilities, made invariant
    noise: Annotated[StrictNumber, Field(gt=0)] | None = None  # share of the standard deviation
    correlated_noise: Annotated[StrictNumber, Field(gt=0)] | None = None  # share of the covariances
    rank_swap: Annotated[StrictNumber, Field(gt=0, le=100)] | None = None  # percent of the ranks
    micro: Annotated[StrictInt, Field(ge=2)] | None = None  # records that share each mean
    record_swap: Probability | None = None  # share of the households that exchange their regions
    similar: tuple[str, ...] = ()  # record_swap: columns in which households that swap agree
    rare: tuple[str, ...] = ()  # record_swap: columns whose rare values force a household to swap
    rare_below: Annotated[StrictInt, Field(ge=1)] | None = None  # records of an area that make a value not rare
    publish: StrictBool = False  # the parameters in the certificate

    @model_validator(mode="after")
    def _check_one_kind(self) -> Self:
        if sum(getattr(self, form) is not None for form in self.FORMS) != 1:
            raise ValueError(f"perturb has exactly one of {', '.join(self.FORMS)}")
        if bool(self.rare) != bool(self.rare_below):
            raise ValueError("rare and rare_below go together: columns, and a number of records")
        if (self.similar or self.rare) and self.record_swap is None:
            raise ValueError("similar, rare and rare_below are for record_swap")
        for row in (self.matrix or {}).values():
            if abs(sum(row.values()) - 1) > MAX_ROW_ERROR:
                raise ValueError("the probabilities of a row of the matrix do not sum to 1")
        if self.matrix is not None and not {new for row in self.matrix.values() for new in row} <= {*self.matrix}:
            raise ValueError("a row of the matrix names a value that has no row itself")
        return self

    @property
    def key(self) -> str:
        """The key that names the kind."""
        return next(form for form in self.FORMS if getattr(self, form) is not None)

    @property
    def kind(self) -> PerturbationKind:
        """The kind of perturbation."""
        return KINDS[self.key]


@dataclass(frozen=True, eq=False)
class PerturbedColumn:
    """How a column was perturbed; `parameters` are what the certificate publishes if the policy says so."""

    kind: PerturbationKind
    parameters: Mapping[str, Any]
    published: bool = False
    categories: tuple[str, ...] = ()  # of PRAM, as `matrix`
    matrix: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    variance: float = 0.0  # of the noise
    places: NDArray[np.intp] | None = None  # of record swapping: the record whose value each record gets
    counts: Mapping[str, int] = field(default_factory=dict)  # of record swapping: households, and those that swapped

    def describe(self) -> dict[str, Any]:
        """Return the entry of the certificate: the kind, and the parameters if they are published."""
        return {"kind": self.kind, **(self.parameters if self.published else {})}


def find_perturbation_problems(
    columns: Sequence[BoundColumn], policy: Policy, rules: Sequence[BoundRule]
) -> Iterator[Problem]:
    """Yield the columns that cannot be perturbed as the policy says."""
    perturbed = [column for column in columns if column.request.perturb is not None]
    for column in perturbed:
        yield from _check_column(column, policy)
    shares = {c.name: c.request.perturb.correlated_noise for c in perturbed}  # type: ignore[union-attr]
    correlated = {name: share for name, share in shares.items() if share is not None}
    if len(correlated) == 1:
        what = f"columns.{next(iter(correlated))}.perturb: correlated_noise needs two or more columns"
        yield Problem(what, "use noise, or give other columns correlated_noise too")
    elif len({*correlated.values()}) > 1:
        what = f"the columns {', '.join(map(repr, correlated))} have different shares of correlated_noise"
        yield Problem(what, "give them the same share, or use noise")
    yield from _check_swaps({c.name: c.request.perturb for c in perturbed}, columns)  # type: ignore[misc]
    for rule in rules:
        for name in dict.fromkeys(name for name, _ in rule.column_types if rule.repair and name in shares):
            what = f"rules: a rule with repair = true names '{name}', which is perturbed"
            yield Problem(what, "leave out repair, or do not perturb the column")


def _check_swaps(perturbed: Mapping[str, Perturbation], columns: Sequence[BoundColumn]) -> Iterator[Problem]:
    """Yield what keeps households from exchanging the regions in some columns."""
    swapped = {name: how for name, how in perturbed.items() if how.record_swap is not None}
    if len({how.model_copy(update={"publish": False}).model_dump_json() for how in swapped.values()}) > 1:
        what = f"the columns {', '.join(map(repr, swapped))} have different keys of record_swap"
        yield Problem(what, "give them the same: households exchange all levels of their region at once")
    named = {name for how in swapped.values() for name in (*how.similar, *how.rare)}
    for name in sorted(named - ({column.name for column in columns} - {*perturbed})):
        what = f"record_swap names '{name}' as similar or rare, which is not a column, or is perturbed itself"
        yield Problem(what, "name columns of the table that are not perturbed")


def _check_column(bound: BoundColumn, policy: Policy) -> Iterator[Problem]:
    where, how = f"columns.{bound.name}.perturb", bound.request.perturb
    assert how is not None  # noqa: S101  the caller checks
    if bound.role not in (Role.QUASI, Role.CONFIDENTIAL, Role.OTHER):
        yield Problem(f"{where}: the role is {bound.role}", "leave perturb out: it is for columns that are released")
        return
    if bound.role is Role.QUASI and bound.average in ("generalize", "suppress"):
        treated = "generalized" if bound.average == "generalize" else "suppressed"
        what = f"{where}: the column is {treated}, and its values would not contain the original ones"
        yield Problem(what, "leave perturb out, or give the column an average such as mean, median or mode")
    if bound.role is Role.QUASI and policy.method.people is not None:
        what = f"{where}: rows are perturbed one by one, and method.people recodes a person's rows alike"
        yield Problem(what, "leave out perturb, or method.people")
    by_record = bound.role is Role.QUASI and how.record_swap is None
    if by_record and policy.privacy.household is not None and bound.request.household is not False:
        what = f"{where}: members are perturbed one by one, and privacy.household recodes what they share alike"
        yield Problem(what, f"leave perturb out, or set columns.{bound.name}.household = false")
    numeric = bound.column.storage.kind.is_numeric or bool(bound.column.date_format)
    if how.kind == "rank swapping" and bound.kind is Kind.NOMINAL and not numeric:
        yield Problem(f"{where}: rank_swap is for columns with an order, but this one is nominal", "use pram")
    elif how.kind not in ("pram", "rank swapping", "record swapping") and not (
        numeric and bound.kind is not Kind.ORDINAL
    ):
        yield Problem(f"{where}: {how.key} is for numbers and dates", "use pram, or rank_swap for an ordinal column")
    diversity, privacy = bound.request.l or policy.privacy.l, policy.privacy
    noise = how.kind in ("noise", "correlated noise")
    if noise and bound.role is Role.CONFIDENTIAL and (diversity or privacy.p or privacy.alpha):
        what = f"{where}: noise makes equal values differ, so that l, p and alpha would hold without meaning"
        yield Problem(what, "use rank_swap or micro, or leave l, p and alpha out")
