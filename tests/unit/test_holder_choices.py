"""Where mu-Argus stands between its steps, against what it does when it is run."""

from __future__ import annotations

import numpy as np

from kinfold.hierarchy import by_intervals, by_mask
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.mu_argus import mu_argus, standing
from kinfold.progress import tell_cost, watching
from kinfold.rows.tally import Tally


def domain() -> Domain:
    draw = np.random.default_rng(3)
    zips = np.array([f"0{n}" for n in draw.integers(2100, 2140, 60)], object)
    ages = np.array([str(n) for n in draw.integers(20, 60, 60)], object)
    hierarchies = {"zip": by_mask(sorted(set(zips)), 3), "age": by_intervals(sorted(set(ages)), [5, 20])}
    return Domain.of_tally(Tally({"zip": zips, "age": ages}, np.ones(60, np.int64)), hierarchies)


def test_each_choice_leads_where_it_was_said_to_lead() -> None:
    table, choices = domain(), []
    for _ in range(3):
        now = standing(table, 3, choices)
        run = mu_argus(table, 3, holder=choices)
        assert tuple(now.levels.values()) == run.levels
        assert now.outliers == sum(1 for combos in run.outliers if combos)
        assert all(n <= now.outliers for n in now.combinations.values())
        if not now.next:
            return
        name = min(now.next, key=lambda each: now.next[each])
        choices.append(name)
        assert standing(table, 3, choices).outliers == now.next[name]


def test_costs_are_told_to_those_who_watch_and_to_nobody_after() -> None:
    heard: list[float] = []
    with watching(heard.append):
        tell_cost(2.0)
        tell_cost(1.0)
    tell_cost(0.5)
    assert heard == [2.0, 1.0]
