"""The engine, on a ground so plain that every step can be followed."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from kinfold.methods.annealing import Budget, Cycle, Walk


class Downhill:
    """A partition is one number and costs as much; every step takes one off, down to the floor."""

    chunk = 10

    def __init__(self, floor: int) -> None:
        self.floor, self.begun, self.heats = floor, [], []

    def begin(self, labels):
        self.at = int(labels[0])
        self.begun.append(self.at)

    def take(self, heats):
        self.heats += heats.tolist()
        self.at = max(self.floor, self.at - len(heats))

    def better(self, labels, cost):
        return (np.array([self.at]), float(self.at)) if self.at < cost else (labels, cost)


def walked(budget: Budget, floor: int = -(10**9), start: int = 1000, first: int = 25):
    ground = Downhill(floor)
    walk = Walk(ground, np.array([start]), float(start))
    return walk.follow(walk.doubling(first, 4.0), budget), ground


@pytest.mark.parametrize("steps", [1, 9, 10, 11, 25, 26, 75, 333])
def test_as_many_steps_are_taken_as_the_budget_has(steps):
    found, ground = walked(Budget(steps, None))
    assert (found.steps, len(ground.heats), found.cost) == (steps, steps, 1000 - steps)


def test_cycles_begin_from_the_best_and_double():
    _, ground = walked(Budget(175, None))
    assert ground.begun == [1000, 975, 925]


def test_every_cycle_starts_hot_and_ends_cold():
    _, ground = walked(Budget(75, None))
    expected = [4.0 * (1 - t / 25) ** 2 for t in range(25)] + [4.0 * (1 - t / 50) ** 2 for t in range(50)]
    assert ground.heats == pytest.approx(expected)


def test_fewer_steps_are_the_beginning_of_more():
    short, long = (walked(Budget(steps, None))[1].heats for steps in (120, 200))
    assert short == long[:120]


def test_seconds_of_nothing_take_no_step():
    found, ground = walked(Budget(None, 0.0))
    assert (found.steps, ground.begun) == (0, [])


def test_a_run_of_seconds_is_whole_chunks():
    found, _ = walked(Budget(None, 0.05))
    ends = {25 * (2**c - 1) for c in range(40)}
    assert found.steps > 0
    assert found.steps % 10 in {end % 10 for end in ends} | {0, 5}


def test_a_partition_that_costs_nothing_ends_the_walk():
    found, _ = walked(Budget(10**6, None), floor=0, start=100)
    assert (found.cost, found.steps) == (0.0, 175)


def test_the_history_falls_and_ends_at_the_cost():
    found, _ = walked(Budget(60, None))
    costs = [mark.cost for mark in found.history]
    assert costs == sorted(costs, reverse=True)
    assert (costs[0], costs[-1]) == (1000.0, found.cost)


def test_a_plan_may_hold_cycles_of_any_kind():
    ground = Downhill(0)
    walk = Walk(ground, np.array([50]), 50.0)
    plan = iter([Cycle(np.array([40]), 5, 0.0), Cycle(np.array([90]), 5, 1.0)])
    found = walk.follow(plan, Budget(None, None))
    assert (ground.begun, found.cost, found.steps) == ([40, 90], 35.0, 10)


def test_doubling_goes_on_as_long_as_it_is_asked():
    walk = Walk(Downhill(0), np.array([50]), 50.0)
    assert [cycle.steps for cycle in islice(walk.doubling(3, 1.0), 5)] == [3, 6, 12, 24, 48]
