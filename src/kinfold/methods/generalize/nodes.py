"""The nodes of a generalization lattice: what each suppresses, what it loses, and what it says about all below it.

A node is a level for each attribute. Its classes that miss a promise are its outliers; it holds if they are no more
than the threshold TS allows and something is left. Its loss is the plain loss of its levels and the extra that its
suppressed records cost. For every node further down

    the plain loss is what it is there, and the extra is at least the `cut` of this node

because absorbing models suppress at least the same records there, and each costs more, for its cells say more. A node
that does not hold has an infinite cut: nothing below it holds. With TS = 0 this is so for every monotone model, with
TS > 0 for absorbing ones only; a model that is neither gives no cut. Records that are starred to fill the class of the
starred ones count towards TS and the loss, but not towards the cut: a node below may need none.

Views of nodes seen are kept, and a new node is rolled up from the smallest one below it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kinfold.methods.generalize.domain import Domain, Levels, Mask, View
from kinfold.methods.generalize.loss import CellLoss, Loss, Objective, loss_of
from kinfold.methods.generalize.outliers import Models, failing, outliers, threshold
from kinfold.models import Model

KEPT_VIEWS = 128  # roll-ups of the table, to make others from; not tuned
KEPT_ROWS = 4_000_000  # in all views together
TOLERANCE = 1e-12  # losses closer than this are equal


@dataclass(frozen=True)
class Node:
    """One generalization of a table; `loss` counts what is suppressed, and is infinite where it does not hold."""

    levels: Levels
    classes: int
    outliers: int  # records to suppress
    holds: bool
    loss: float
    prec: float
    plain: float  # the loss while nothing is suppressed
    cut: float

    @property
    def rank(self) -> tuple[float, float, Levels]:
        """What to sort by: loss, then the highest Prec, then the order of the levels."""
        return (self.loss, -self.prec, self.levels)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        told = {"levels": list(self.levels), "classes": self.classes, "outliers": self.outliers, "holds": self.holds}
        return told | {"loss": self.loss if self.holds else None, "prec": self.prec}


class Nodes:
    """Evaluates nodes, each once."""

    def __init__(
        self,
        domain: Domain,
        models: Models,
        suppression: float = 0,
        objective: Objective = "granularity",
        weights: Mapping[str, float] | None = None,
        *,
        starred: bool = False,
    ) -> None:
        self.domain = domain
        self.models = models
        self._starred = starred
        self.allowed = threshold(suppression, domain.records)
        self.loss: Loss = loss_of(domain, objective, weights)
        self._prec = CellLoss.of(domain, "prec", weights)
        self._absorbing: list[Model] = [model for model in models if model.absorbing]
        self.prunes = all(model.monotone if self.allowed == 0 else model.absorbing and not starred for model in models)
        self.cuts = self.prunes or bool(self._absorbing)  # otherwise no node says anything about others
        self.seen: dict[Levels, Node] = {}
        self._views = _Views(domain)

    def __getitem__(self, levels: Levels) -> Node:
        """Return the node at these levels."""
        if levels not in self.seen:
            self.seen[levels] = self._evaluate(levels)
        return self.seen[levels]

    def suppressed(self, levels: Levels) -> Mask:
        """Mark the rows of the domain that the node suppresses."""
        gone = self._gone(self.domain.at(levels))
        return np.asarray(gone[self.domain.classes(levels)], np.bool_)

    def _gone(self, view: View) -> Mask:
        return outliers(self.models, view.tally, starred=self._starred)

    def _evaluate(self, levels: Levels) -> Node:
        view = self._views.at(levels)
        gone = self._gone(view)
        count = int(view.tally.sizes[gone].sum())
        holds = self._allows(count)
        plain = self.loss.plain(view)
        extra = self.loss.suppressing(view, gone) if holds else math.inf
        prec = (1.0 - self._prec.plain(view)) * (1.0 - count / self.domain.records)
        cut = extra if self.prunes else self._cut(view)
        return Node(levels, len(view), count, holds, plain + extra, prec, plain, cut)

    def _cut(self, view: View) -> float:
        if not self._absorbing:
            return 0.0
        gone = failing(self._absorbing, view.tally)
        return self.loss.suppressing(view, gone) if self._allows(int(view.tally.sizes[gone].sum())) else math.inf

    def _allows(self, suppressed: int) -> bool:
        return suppressed <= self.allowed and suppressed < self.domain.records


class _Views:
    """The views of the last nodes, to roll up from."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._kept: list[View] = [domain.bottom]
        self._levels = np.zeros((KEPT_VIEWS, len(domain.names)), np.int64)
        self._sizes = np.full(KEPT_VIEWS, len(domain), np.int64)
        self._room = max(min(KEPT_VIEWS, KEPT_ROWS // max(len(domain), 1)), 2)
        self._next = 1

    def at(self, levels: Levels) -> View:
        """Roll up from the smallest view below; the bottom is always there."""
        count = len(self._kept)
        below = (self._levels[:count] <= np.asarray(levels)).all(axis=1)
        nearest = int(np.argmin(np.where(below, self._sizes[:count], len(self._domain) + 1)))
        view = self._domain.at(levels, self._kept[nearest])
        self._keep(view)
        return view

    def _keep(self, view: View) -> None:
        place = self._next
        if place == len(self._kept):
            self._kept.append(view)
        else:
            self._kept[place] = view
        self._levels[place], self._sizes[place] = view.levels, len(view)
        self._next = place + 1 if place + 1 < self._room else 1
