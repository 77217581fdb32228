"""Answers to what else was asked for, each under its own key beside the contract's.

risk.journalist, risk.individual    {max, mean}
risk.uniques                        {sample, zayatz, pitman}: with a population or sampling weights
risk.above_threshold                {threshold, prosecutor, journalist or individual}: shares of the records
risk.linkage_subsets                [{columns, linkage, bound}], bound = 1/k
risk.linkage_untouched              {columns, linkage}
loss.task                           {task, original, released, loss}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError
from kinfold.evaluation.attack import link_subsets, link_untouched
from kinfold.evaluation.pairing import Pair, Tables
from kinfold.evaluation.population import journalist, outside, sampling_weights
from kinfold.evaluation.questions import Questions
from kinfold.evaluation.sheet import Sheet, answered, remembered
from kinfold.evaluation.tasks import fit_task
from kinfold.measures import NotApplicable
from kinfold.measures.attacker import individual_risk, prosecutor_risk, share_above
from kinfold.measures.uniques import pitman_uniques, sample_uniques, zayatz_uniques
from kinfold.request.binding import BoundColumn, BoundPolicy
from kinfold.request.encoding import encode
from kinfold.rows.schema import Role

Floats: TypeAlias = NDArray[np.float64]
Beside: TypeAlias = Callable[[], Pair]


def answer(
    questions: Questions, tables: Tables, policy: BoundPolicy, beside: Beside, sheets: tuple[Sheet, Sheet]
) -> None:
    """Write the answers onto the sheets of risk and loss; `beside` is the release on its quasi-identifiers."""
    risks, losses = sheets
    seed = policy.request.method.seed
    _outside(questions, tables, beside, risks)
    if questions.linkage_subsets:
        k = int(np.bincount(beside().masked[beside().kept]).min())
        risks.write("linkage_subsets", lambda: link_subsets(_paired(tables, beside), risks, k, seed))
    if questions.linkage_untouched:
        names = [c.name for c in policy.columns if c.role in (Role.CONFIDENTIAL, Role.OTHER)]
        risks.write("linkage_untouched", lambda: link_untouched(_paired(tables, beside), risks, tables, names, seed))
    if questions.task is not None:
        kept = [column for column in policy.columns if column.role is not Role.IDENTIFIER]
        losses.write("task", lambda: fit_task(_whole(tables, kept), *questions.named_task()))


def _whole(tables: Tables, columns: Sequence[BoundColumn]) -> Pair:
    try:
        return tables.unpaired(encode(tables.engine, tables.original, columns))
    except DataError:
        if any(column.request.map for column in columns):
            raise NotApplicable("the orders and hierarchies of columns with a map know its new values alone") from None
        raise


def _paired(tables: Tables, beside: Beside) -> Pair:
    if isinstance(tables.rows, str):
        raise NotApplicable(tables.rows)
    return beside()


def _outside(questions: Questions, tables: Tables, beside: Beside, sheet: Sheet) -> None:
    """Write what somebody finds who does not know that a person is in the release."""
    found: dict[str, Callable[[], Floats]] = {"prosecutor": lambda: prosecutor_risk(_classes(beside))}
    people: Callable[[], int] | None = None
    if questions.population is not None:
        population = tables.engine.read(questions.population, form=tables.engine.form(tables.original).of_another())
        found["journalist"] = remembered(lambda: journalist(beside(), tables.engine, population))
        people = remembered(lambda: int(tables.engine.schema(population).rows))
    elif questions.sampling_weights is not None:
        column = questions.sampling_weights
        weights = remembered(lambda: sampling_weights(tables, column))
        found["individual"] = remembered(lambda: individual_risk(_classes(beside), weights()))
        people = remembered(lambda: round(float(weights().sum())))
    for name, risks in list(found.items())[1:]:
        sheet.write(name, lambda risks=risks: outside(risks()))  # type: ignore[misc]
    if people is not None:
        sheet.write("uniques", lambda: _uniques(_classes(beside), people()))
    if questions.threshold is not None:
        sheet.write("above_threshold", lambda: _above(questions.threshold or 0.0, found))


def _classes(beside: Beside) -> NDArray[np.int64]:
    return beside().masked[beside().kept]


def _above(threshold: float, risks: dict[str, Callable[[], Floats]]) -> dict[str, Any]:
    return {"threshold": threshold, **{name: share_above(found(), threshold) for name, found in risks.items()}}


def _uniques(classes: NDArray[np.int64], people: int) -> dict[str, float | None]:
    sizes = np.bincount(classes)
    found: dict[str, float | None] = {"sample": sample_uniques(sizes)}
    for name, formula in (("zayatz", zayatz_uniques), ("pitman", pitman_uniques)):
        try:
            found[name] = answered(partial(formula, sizes, people))
        except NotApplicable:
            found[name] = None
    return found
