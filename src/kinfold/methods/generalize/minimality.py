"""The minimality attack: what someone who knows the method concludes from the levels that it chose.

A search takes the least general levels that keep every promise. So whoever knows all quasi-identifiers, the method and
the policy knows that the levels one step below failed. Where k did not fail there, a confidential value must have:

    for each column that could be one level lower
        skip it if k alone fails there: the levels tell nothing
        for each released class that splits there, and each confidential column
            enumerate who may hold which of the values of the class (all orders of up to 6 records; 1,000 drawn of
            more), and mark the arrangements in which a part of the class fails
    belief = share of the arrangements in which a person holds a value, given that some part of some class failed

An arrangement in which the class itself does not fail counts with the probability that another class or column did.
With `extra_level = q` the levels may also have been raised at random: an arrangement in which nothing failed then
counts q / (columns that could be raised) instead of 0.

Reference: Wong, Fu, Wang & Pei, "Minimality attack in privacy preserving data publishing", VLDB 2007.
Cost: at most 400 classes, 1,000 arrangements each; a table that has more, or larger ones, is not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.methods.generalize.domain import Domain, Floats, Levels, Mask
from kinfold.methods.generalize.lattice_search import lowered
from kinfold.methods.generalize.outliers import Models, failing
from kinfold.models import Model
from kinfold.rows.tally import Ints, Spread, Tally

Counts: TypeAlias = NDArray[np.int64]

ENUMERATED = 6  # records of a class whose 720 orders are all looked at
DRAWS = 1_000  # orders drawn of a larger class
RELIABLE = 100  # effective number of draws that a belief is estimated from, at least
CLASSES = 400  # classes and columns to look at: about a second
CELLS = 5_000_000  # counts of one class, over all of its arrangements: 40 MB


@dataclass(frozen=True)
class Belief:
    """How probable it is that a person holds a value: to someone who knows the method, and by the class alone."""

    column: str
    known: float
    shown: float


@dataclass(frozen=True, eq=False)
class _SplitClass:
    """A released class whose parts are `sizes` records large; `counts[arrangement, part, value]` and which fail."""

    column: str
    sizes: Ints
    counts: Counts
    fails: Mask

    @property
    def share_failing(self) -> float:
        return float(self.fails.mean())

    def strongest(self, weights: Floats) -> Belief | None:
        """Return the value that is most probable for a record of any part; None if too few draws tell."""
        if not weights.any():
            return None
        if self.sizes.sum() > ENUMERATED and weights.sum() ** 2 < RELIABLE * (weights**2).sum():
            return None
        expected = np.tensordot(weights, self.counts, 1) / weights.sum()
        known = expected / self.sizes[:, None]
        value = int(np.argmax(known.max(axis=0)))
        shown = float(self.counts[0, :, value].sum() / self.sizes.sum())
        return Belief(self.column, float(known[:, value].max()), shown)


def strongest_belief(domain: Domain, models: Models, levels: Levels, extra_level: float = 0.0) -> Belief | None:
    """Return the strongest belief that minimal levels allow; None if they allow none, or there is too much to look at.

    The levels are those that a search chose where no record may be suppressed.
    """
    about_values = [model for model in models if model.column is not None]
    by_rows = [model for model in models if model.column is None]
    if not about_values:
        return None
    beliefs: list[Belief] = []
    for below in lowered(levels):
        if failing(by_rows, domain.at(below).tally).any():
            continue
        classes = _split_classes(domain, about_values, levels, below)
        if classes is None:
            return None
        beliefs += _beliefs(classes, *_likelihoods(domain.heights, levels, below, extra_level))
    return max(beliefs, key=lambda belief: belief.known, default=None)


def _likelihoods(heights: Levels, levels: Levels, below: Levels, extra_level: float) -> tuple[float, float]:
    """Return how probable the levels are where those below fail, and where they hold and were raised at random."""
    stays = 1.0 if levels == heights else 1.0 - extra_level
    raisable = sum(level < height for level, height in zip(below, heights, strict=True))
    return stays, extra_level / raisable


def _beliefs(classes: Sequence[_SplitClass], if_failed: float, if_held: float) -> Iterator[Belief]:
    holding = np.array([1.0 - each.share_failing for each in classes])
    for place, each in enumerate(classes):
        others_hold = float(np.prod(np.delete(holding, place)))
        otherwise = (1.0 - others_hold) * if_failed + others_hold * if_held
        belief = each.strongest(np.where(each.fails, if_failed, otherwise))
        if belief is not None:
            yield belief


def _split_classes(domain: Domain, models: Models, levels: Levels, below: Levels) -> list[_SplitClass] | None:
    """Return every released class that has several parts one step below, for each confidential column."""
    part, released = domain.classes(below), domain.classes(levels)
    part_sizes = np.bincount(part, domain.tally.sizes).astype(np.int64)
    owner = np.empty(len(part_sizes), np.int64)
    owner[part] = released
    splits = np.flatnonzero(np.bincount(owner) > 1)
    names = dict.fromkeys(str(model.column) for model in models)
    spreads = domain.tally.merge(released, {}).spreads
    most_parts, most_values = int(np.bincount(owner).max()) + 1, max(len(spreads[name].values) for name in names)
    if len(splits) * len(names) > CLASSES or DRAWS * most_parts * most_values > CELLS:
        return None
    return [
        _arranged(
            [model for model in models if model.column == name], spreads[name], int(place), part_sizes[owner == place]
        )
        for name in names
        for place in splits
    ]


def _arranged(models: Sequence[Model], spread: Spread, place: int, sizes: Ints) -> _SplitClass:
    here = spread.group == place
    held = np.repeat(spread.code[here], spread.count[here])
    orders = _orders(held)
    part = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.zeros((len(orders), len(sizes), len(spread.values)), np.int64)
    np.add.at(counts, (np.arange(len(orders))[:, None], part[None, :], orders), 1)
    # t compares with the whole table: every arrangement stands beside the records of all other classes
    rest = spread.totals() - np.bincount(held, minlength=len(spread.values))
    beside = [np.broadcast_to(rest, (len(orders), 1, len(rest)))] if rest.any() else []
    groups = np.concatenate([counts, *beside], axis=1)
    table = groups.reshape(-1, len(rest))
    group, code = np.nonzero(table)
    found = Spread(group, code, table[group, code], spread.values)
    tally = Tally({}, table.sum(axis=1), {str(models[0].column): found})
    fails = np.asarray(failing(models, tally).reshape(groups.shape[:2])[:, : len(sizes)].any(axis=1))
    return _SplitClass(str(models[0].column), sizes, counts, fails)


def _orders(held: Ints) -> Ints:
    """Return the orders of some values, a row each; the same ones every time."""
    if len(held) <= ENUMERATED:
        return np.array(list(permutations(held.tolist())), np.int64)
    random = np.random.default_rng(0)
    return random.permuted(np.broadcast_to(held, (DRAWS, len(held))), axis=1)
