"""The result of a generalization method, and what its levels reveal (the minimality attack).

A search takes the least general levels that keep every promise. An attacker who knows all quasi-identifiers, the method
and the policy therefore knows that the levels one step below failed. If k did not fail there, a confidential value did:

    for each column that could be one level lower
        skip it if k alone fails there: then the levels reveal nothing
        for each released class that splits there, and each confidential column
            enumerate which record may hold which value of the class (all orders of up to 6 records, a sample of 1,000
            orders for larger classes), and mark the arrangements in which a part of the class fails
    belief = share of the arrangements in which a person holds a value, given that some part of some class failed

An arrangement in which the class itself does not fail is weighted by the probability that another class or column did.
With `extra_level = q` the levels may also have been raised at random: an arrangement in which nothing failed then has
the weight q / (columns that could be raised) instead of 0.

Reference: Wong, Fu, Wang & Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
Cost: at most 400 classes with 1,000 arrangements each; larger tables are not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.generalize.domain import Domain, Floats, Levels, Mask
from kinfold.methods.generalize.lattice_search import nodes_below
from kinfold.methods.generalize.levels import Generalization, Models, mark_failing
from kinfold.models import Model
from kinfold.tables.tally import Ints, Spread, Tally

if TYPE_CHECKING:
    from kinfold.methods.task import Task


Counts: TypeAlias = NDArray[np.int64]

MAX_ENUMERATED_RECORDS = 6  # 720 orders
SAMPLED_ORDERS = 1_000  # of a larger class
MIN_EFFECTIVE_ORDERS = 100  # fewer give no reliable estimate
MAX_SPLIT_CLASSES = 400  # times confidential columns: about a second
MAX_COUNTS_PER_CLASS = 5_000_000  # over all arrangements: 40 MB


@dataclass(frozen=True)
class Belief:
    """The probability that a person holds a value, given the method (posterior) and given the class only (prior)."""

    column: str
    posterior: float
    prior: float


@dataclass(frozen=True, eq=False)
class _SplitClass:
    """A released class that splits into parts of `sizes`: `counts[arrangement, part, value]` and the failing ones."""

    column: str
    sizes: Ints
    counts: Counts
    fails: Mask

    def strongest(self, weights: Floats) -> Belief | None:
        """Return the strongest belief about a record of any part, or None if too few orders support it."""
        if not weights.any():
            return None
        if self.sizes.sum() > MAX_ENUMERATED_RECORDS and weights.sum() ** 2 < MIN_EFFECTIVE_ORDERS * (weights**2).sum():
            return None
        expected = np.tensordot(weights, self.counts, 1) / weights.sum()
        posterior = expected / self.sizes[:, None]
        value = int(np.argmax(posterior.max(axis=0)))
        prior = float(self.counts[0, :, value].sum() / self.sizes.sum())
        return Belief(self.column, float(posterior[:, value].max()), prior)


def find_strongest_belief(domain: Domain, models: Models, levels: Levels, extra_level: float = 0.0) -> Belief | None:
    """Return the strongest belief from minimal levels; None if there is none or the table is too large.

    A search without suppression must have chosen the levels.
    """
    value_models = [model for model in models if model.column is not None]
    size_models = [model for model in models if model.column is None]
    if not value_models:
        return None
    beliefs: list[Belief] = []
    for below in nodes_below(levels):
        if mark_failing(size_models, domain.roll_up(below).tally).any():
            continue
        classes = _find_split_classes(domain, value_models, levels, below)
        if classes is None:
            return None
        # the probability of the levels if the levels below fail, and if they hold (raised at random)
        if_failed = 1.0 if levels == domain.heights else 1.0 - extra_level
        raisable = sum(level < height for level, height in zip(below, domain.heights, strict=True))
        beliefs += _compute_beliefs(classes, if_failed, extra_level / raisable)
    return max(beliefs, key=lambda belief: belief.posterior, default=None)


def _compute_beliefs(classes: Sequence[_SplitClass], if_failed: float, if_held: float) -> Iterator[Belief]:
    holding = np.array([1.0 - float(each.fails.mean()) for each in classes])
    for i, each in enumerate(classes):
        others_hold = float(np.prod(np.delete(holding, i)))
        otherwise = (1.0 - others_hold) * if_failed + others_hold * if_held
        belief = each.strongest(np.where(each.fails, if_failed, otherwise))
        if belief is not None:
            yield belief


def _find_split_classes(domain: Domain, models: Models, levels: Levels, below: Levels) -> list[_SplitClass] | None:
    """Return each released class that splits one step below, by confidential column; None if there are too many."""
    part, released = domain.classes(below), domain.classes(levels)
    part_sizes = np.bincount(part, domain.tally.sizes).astype(np.int64)
    owner = np.empty(len(part_sizes), np.int64)
    owner[part] = released
    splits = np.flatnonzero(np.bincount(owner) > 1)
    names = dict.fromkeys(str(model.column) for model in models)
    spreads = domain.tally.merge(released, {}).spreads
    max_parts, max_values = int(np.bincount(owner).max()) + 1, max(len(spreads[name].values) for name in names)
    if len(splits) * len(names) > MAX_SPLIT_CLASSES or SAMPLED_ORDERS * max_parts * max_values > MAX_COUNTS_PER_CLASS:
        return None
    return [
        _arrange_class(
            [model for model in models if model.column == name], spreads[name], int(place), part_sizes[owner == place]
        )
        for name in names
        for place in splits
    ]


def _arrange_class(models: Sequence[Model], spread: Spread, place: int, sizes: Ints) -> _SplitClass:
    here = spread.group == place
    held = np.repeat(spread.code[here], spread.count[here])
    if len(held) <= MAX_ENUMERATED_RECORDS:
        orders = np.array(list(permutations(held.tolist())), np.int64)
    else:  # a fixed sample
        shape = (SAMPLED_ORDERS, len(held))
        orders = np.random.default_rng(0).permuted(np.broadcast_to(held, shape), axis=1)
    part = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.zeros((len(orders), len(sizes), len(spread.values)), np.int64)
    np.add.at(counts, (np.arange(len(orders))[:, None], part[None, :], orders), 1)
    # t-closeness compares with the whole table: add the records of all other classes to every arrangement
    rest = spread.totals() - np.bincount(held, minlength=len(spread.values))
    others = [np.broadcast_to(rest, (len(orders), 1, len(rest)))] if rest.any() else []
    groups = np.concatenate([counts, *others], axis=1)
    table = groups.reshape(-1, len(rest))
    group, code = np.nonzero(table)
    arranged = Spread(group, code, table[group, code], spread.values)
    tally = Tally({}, table.sum(axis=1), {str(models[0].column): arranged})
    fails = np.asarray(mark_failing(models, tally).reshape(groups.shape[:2])[:, : len(sizes)].any(axis=1))
    return _SplitClass(str(models[0].column), sizes, counts, fails)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The generalization that a method releases, notes about it, and the steps of the search."""

    generalization: Generalization
    notes: tuple[str, ...] = ()
    steps: int | None = None
    belief: Belief | None = None  # from the minimality attack


def measure_minimality(task: Task, released: Generalization) -> Belief | None:
    """Return the strongest belief from the minimality attack.

    None if records may be suppressed, and for promises about combinations or the population: it takes class sizes.
    """
    if task.method.suppression or released.vector is None or released.domain.keyed or released.domain.population:
        return None
    return find_strongest_belief(released.domain, task.models, released.vector, task.method.extra_level or 0.0)


def describe_levels(released: Generalization) -> str:
    """Return a note with the level of each column."""
    domain = released.domain
    levels = zip(domain.names, released.vector or (), domain.heights, strict=True)
    return "levels: " + ", ".join(f"{name} {level} of {height}" for name, level, height in levels)
