"""Disclosure risk of a table in memory, as functions of plain tables: `kinfold.risk.individual(table, keys, weights)`.

`table` is a frame of pandas, polars or pyarrow, a dict of lists, a list of dicts, or a two-dimensional array. `keys`
names the columns that an attacker knows: one name or several. Records with equal values in all of them are a class. A
missing value is a value of its own; where it is read otherwise, the function says so. No function changes the table.
Results are arrays in the order of the records, numbers, or objects that also read as mappings.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, check_arguments
from kinfold.measures.formulas import attackers, uniques
from kinfold.measures.formulas.arrays import NamedResult, NotApplicable, group_rows
from kinfold.measures.formulas.attribute_disclosure import (
    Combinations,
    Likeness,
    interval_by_deviation,
    measure_combinations,
    measure_likeness,
)
from kinfold.measures.formulas.attribute_disclosure import multi_entropy as _multi_entropy
from kinfold.measures.formulas.special_uniques import SpecialUniques, score_special_uniques
from kinfold.measures.formulas.uniques import LogLinearRisk, measure_log_linear
from kinfold.models.population import find_k_map_size
from kinfold.tables.plain_columns import (
    Keys,
    count_people,
    encode_columns,
    encode_pair,
    encode_values,
    list_keys,
    list_values,
    read_numbers,
)

__all__ = [
    "combinations", "counts", "household", "individual", "interval", "k_map_size", "likeness", "log_linear",
    "multi_entropy", "population_uniques", "presence", "suda2",
]  # fmt: skip


@check_arguments
def suda2(table: Any, keys: Keys, dis: float = 0.1) -> SpecialUniques:
    """Return the SUDA2 scores of each record, its DIS scores, and the contributions of the columns in percent.

    A missing value makes no record unique. `dis` is the share of the sample that is taken away to estimate the risk of
    a match. `by_record` has the contributions to the score of each record. If no class has two records, every DIS score
    is 1, and `note` says so.

    >>> people = {"age": [30, 41, 30], "sex": ["f", "m", "f"], "town": ["a", "b", "b"]}
    >>> result = suda2(people, ["age", "sex", "town"])
    >>> result.score.tolist(), {name: round(share, 1) for name, share in result.contributions.items()}
    ([2, 4, 2], {'age': 37.5, 'sex': 37.5, 'town': 50.0})
    """
    codes = encode_columns(table, keys)
    return score_special_uniques(codes, [str(name) for name in list_keys(keys)], dis)


@check_arguments
def individual(table: Any, keys: Keys, weights: Any = None, missing: str = "value") -> NDArray[np.float64]:
    """Return the individual risk of each record: the expected 1 / F, with F people of its class in the population.

    `weights` is a column or one number per record: how many people it stands for, from 1 up. Without weights, the
    table is the population, and the risk is 1 / class size. `missing` as in `counts`.

    >>> individual({"age": [30, 30, 41]}, "age", [55, 55, 17]).round(4).tolist()
    [0.0171, 0.0171, 0.1771]
    """
    if missing == "value":
        classes = _classify(table, keys)
        if weights is None:
            return attackers.prosecutor_risk(classes)
        return attackers.individual_risk(classes, _read_weights(table, weights))
    result = counts(table, keys, weights, missing)
    return attackers.mean_reciprocal(result.f, result.f / result.F)


@dataclass(frozen=True, eq=False, repr=False)
class Counts(NamedResult):
    """The records and the people of the class of each record."""

    f: NDArray[np.float64]
    F: NDArray[np.float64]  # the sum of the weights; the records without weights


@check_arguments
def counts(table: Any, keys: Keys, weights: Any = None, missing: str = "value", alpha: float = 1.0) -> Counts:
    """Return the size of the class of each record, and the sum of its weights.

    `missing` is "value" (a missing value is a value of its own) or "any" (it fits every value, as in sdcMicro); then a
    record of another class that lacks a value counts `alpha`, and one that lacks all of several keys counts for records
    that lack some. An attacker can tell a missing value from others, so no
    promise of kinfold uses "any".

    >>> counts({"age": [30, 30, None]}, "age", [10, 20, 30], missing="any").f.tolist()
    [3.0, 3.0, 3.0]
    """
    if missing not in ("value", "any"):
        raise PolicyError(f"missing = '{missing}' is not known", fix="use value or any")
    if not 0 <= alpha <= 1:
        raise PolicyError("alpha is not between 0 and 1", fix="give the share that a missing value counts")
    codes = encode_columns(table, keys)
    weight = np.ones(len(codes)) if weights is None else _read_weights(table, weights)
    if len(weight) != len(codes):
        raise DataError(f"{len(weight):,} weights for {len(codes):,} records", fix="give one weight per record")
    if missing == "any":
        return Counts(*attackers.count_fitting(codes, weight, alpha))
    classes = group_rows(codes)[0]
    sizes, people = (np.asarray(np.bincount(classes, each), np.float64) for each in (np.ones(len(classes)), weight))
    return Counts(sizes[classes], people[classes])


def _read_weights(table: Any, weights: Any) -> NDArray[np.float64]:
    """Return sampling weights; raise if there are none, or one is below 1."""
    if weights is None:
        raise PolicyError("there are no sampling weights", fix="name their column, or give one number per record")
    weight = read_numbers(table, weights, "sampling weights")
    if below := int((weight < 1).sum() + np.isinf(weight).sum()):
        what = f"sampling weights: {below:,} of {len(weight):,} are below 1 or infinite"
        raise DataError(what, fix="a weight is the number of people that a record stands for, at least 1")
    return weight


@check_arguments
def log_linear(
    table: Any, keys: Keys, weights: Any, interactions: Sequence[Sequence[str | int]] = (), pi: str = "cell"
) -> LogLinearRisk:
    """Return the population uniques (`tau1`) and the correct matches (`tau2`) expected among the sample uniques.

    The model has the main effects of the keys, as categories, and `interactions` of some: `[("age", "sex")]`. The
    sampling fraction `pi` is that of each cell ("cell": records over the sum of their weights) or of the whole table
    ("overall"). Weights are a column, or one number per record.

    >>> people = {"age": [30, 30, 41, 30], "sex": ["f", "m", "f", "f"]}
    >>> result = log_linear(people, ["age", "sex"], [10, 10, 10, 10])
    >>> round(result.tau1, 6), round(result.tau2, 6)
    (0.002342, 0.295949)
    """
    if pi not in ("cell", "overall"):
        raise PolicyError(f"pi = '{pi}' is not known", fix="use cell or overall")
    names, codes = list_keys(keys), encode_columns(table, keys)
    unknown = [str(name) for each in interactions for name in each if name not in names]
    if unknown:
        raise PolicyError(f"interactions name {', '.join(unknown)}", fix="name keys only")
    places = [[names.index(name) for name in each] for each in interactions]
    with _applicable("give fewer interactions, or coarser columns"):
        return measure_log_linear(codes, _read_weights(table, weights), places, by_cell=pi == "cell")


@check_arguments
def interval(original: Any, released: Any, k: float = 0.05) -> float:
    """Return the share of records whose numbers all lie within k deviations of the released ones.

    Both are arrays of numbers, records by columns, in the same order.

    >>> interval([[1.0], [2.0], [9.0], [10.0]], [[1.5], [1.5], [9.0], [10.0]])
    0.5
    """
    with _applicable("give two or more records without missing numbers"):
        return interval_by_deviation(original, released, k)


@check_arguments
def household(risk: Any, household: Any) -> NDArray[np.float64]:
    """Return for each record the chance that a person of its household is found: 1 - Π (1 - risk) over the household.

    `household` has a value for each record; records with equal values are one household.

    >>> household([0.1, 0.5, 0.2], ["a", "a", "b"]).round(3).tolist()
    [0.55, 0.55, 0.2]
    """
    label = encode_values(household, "household")
    if missing := int((label < 0).sum()):
        what = f"household: {missing:,} of {len(label):,} are missing"
        raise DataError(what, fix="give every record its household, a number of its own if it lives alone")
    with _applicable("give one risk and one household per record"):
        return attackers.household_risk(read_numbers(None, risk, "risks"), label)


@check_arguments
def population_uniques(table: Any, keys: Keys, population: Any, estimator: str = "dankar") -> float | None:
    """Return the estimated number of people who are unique in the population that the table is a sample of.

    `population` is the number of people, or a table with a row for each. `estimator` is zayatz, pitman, snb, or dankar
    (pitman up to a sampling fraction of 0.1, above it the less of zayatz and snb). If the estimate does not exist, the
    result is None, and a warning says why.

    >>> people = {"age": [30, 30, 31, 31, 32, 33, 34, 35]}
    >>> round(population_uniques(people, "age", 80, "zayatz"), 2)
    20.93
    """
    formulas = {name: getattr(uniques, f"{name}_uniques") for name in ("zayatz", "pitman", "snb", "dankar")}
    if estimator not in formulas:
        raise PolicyError(f"the estimator '{estimator}' is not known", fix=f"use one of {', '.join(formulas)}")
    sizes = np.bincount(_classify(table, keys))
    try:
        return float(formulas[estimator](sizes, count_people(population)))
    except NotApplicable as error:
        warnings.warn(error.reason, stacklevel=2)
        return None


@check_arguments
def k_map_size(n: int, population: int, k: int, alpha: float, *, truncated: bool = True) -> int:
    """Return the number of records that a class needs to have k people in the population with confidence 1 - alpha.

    `n` is the number of records and `population` the number of people. By default the size of a class is a Poisson
    variable that is not 0, because every class has a record; otherwise (`truncated=False`) a plain one.

    >>> k_map_size(30_162, 150_000, k=5, alpha=0.1)
    4
    """
    if not 1 <= n <= population or k < 1 or not all(float(each).is_integer() for each in (n, population, k)):
        what = "n, population and k are not counts of a sample and its population"
        raise PolicyError(what, fix="give whole numbers, 1 ≤ n ≤ population and k ≥ 1")
    if not 0 < alpha < 1:
        raise PolicyError("alpha is not between 0 and 1", fix="give the risk of a wrong estimate, such as 0.05")
    return find_k_map_size(int(n), int(population), int(k), alpha, truncated=truncated)


@check_arguments
def likeness(table: Any, keys: Keys, column: str | int) -> Likeness:
    """Return how far the values of a confidential column in the classes are from those of the table.

    `beta` and `enhanced_beta` are the least β that hold; `enhanced_beta` is infinite if none does. `delta` is over
    every value of the column in every class: infinite if one is absent from a class.

    >>> table = {"age": [30, 30, 30, 41, 41, 41], "disease": ["flu", "flu", "flu", "flu", "flu", "cold"]}
    >>> result = likeness(table, "age", "disease")
    >>> round(result.beta, 4), result.enhanced_beta, result.delta, result.value_is_absent
    (1.0, inf, inf, True)
    """
    return measure_likeness(_classify(table, keys), encode_columns(table, column)[:, 0])


@check_arguments
def multi_entropy(table: Any, keys: Keys, columns: Keys) -> NDArray[np.float64]:
    """Return the multi-entropy l of the class of each record: the least exp(entropy) of a confidential column.

    Each of the columns is looked at in the parts of the class that agree in the other ones.

    >>> table = {"age": [30, 30, 30, 30], "disease": ["flu", "flu", "cold", "cold"], "job": ["a", "b", "a", "b"]}
    >>> multi_entropy(table, "age", ["disease", "job"]).round(6).tolist()
    [2.0, 2.0, 2.0, 2.0]
    """
    return _multi_entropy(_classify(table, keys), encode_columns(table, columns))


@dataclass(frozen=True, eq=False, repr=False)
class Presence(NamedResult):
    """The share of each class of the population that is in the table."""

    presence: NDArray[np.float64]  # of the class of each record
    presence_min: float  # of the classes of the table
    presence_max: float
    presence_min_all_population_classes: float  # 0 if a class of the population has no record
    kmap_population_min: int  # people of the smallest class of the table: the k of k-map
    people: NDArray[np.int64]  # of the class of each record


@check_arguments
def presence(table: Any, keys: Keys, population: Any) -> Presence:
    """Return how surely an attacker with a table of the population knows that a person is in the table.

    >>> result = presence({"age": [30, 30, 41]}, "age", {"age": [30, 30, 30, 41, 50]})
    >>> result.presence.round(2).tolist(), result.presence_min_all_population_classes, result.kmap_population_min
    ([0.67, 0.67, 1.0], 0.0, 1)
    """
    records, people = encode_pair(table, population, keys)
    group, _ = group_rows(np.vstack([records, people]))
    classes, there = group[: len(records)], np.bincount(group[len(records) :], minlength=int(group.max()) + 1)
    sizes = np.bincount(classes, minlength=len(there))
    share = attackers.presence(sizes, there)
    inside = share[classes]
    return Presence(
        inside, float(inside.min()), float(inside.max()), float(share.min()), int(there[classes].min()), there[classes]
    )


@check_arguments
def combinations(table: Any, keys: Keys, size: int, column: str | int | None = None) -> Combinations:
    """Return the least class of every combination of at most `size` keys, and the confidence in a confidential column.

    Shorter combinations have no smaller class and no higher confidence, so `sizes` and `combinations` count those of
    `size` keys. `by_value` has the largest confidence of each value of that column.

    >>> table = {"age": [30, 30, 41, 41], "sex": ["f", "m", "m", "m"], "ill": ["no", "yes", "yes", "yes"]}
    >>> result = combinations(table, ["age", "sex"], size=1, column="ill")
    >>> result.least_class, result.confidence, result.combinations, result.count_below(2)
    (1, 1.0, 4, 1)
    """
    codes = encode_columns(table, keys)
    if column is None:
        return measure_combinations(codes, size)
    value, names = list_values(table, column)
    result = measure_combinations(codes, size, value)
    assert result.by_value is not None  # noqa: S101  there is a column
    labels = [*names, None] if (value < 0).any() else names
    return replace(result, by_value=dict(zip(labels, np.asarray(result.by_value).tolist(), strict=False)))


@contextmanager
def _applicable(fix: str) -> Iterator[None]:
    """Raise a `DataError` where a formula does not apply."""
    try:
        yield
    except NotApplicable as error:
        raise DataError(error.reason, fix=fix) from None


def _classify(table: Any, keys: Keys) -> NDArray[np.int64]:
    """Return the class of each record."""
    return group_rows(encode_columns(table, keys))[0]
