"""What the data is still good for, as a page shows it: numbers before and after, and correlations that moved most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from kinfold.release.report.facts import Moved, Related, Summary

MOST_PAIRS = 8  # rows of a table that is read; the audit has all


def moved(numbers: Mapping[str, Mapping[str, Any]]) -> tuple[Moved, ...]:
    """Return the columns that are numbers, those of which the release still has numbers with both sides."""
    return tuple(
        Moved(name, _summary(sides["before"]), None if sides["after"] is None else _summary(sides["after"]))
        for name, sides in numbers.items()
        if sides["before"] is not None
    )


def _summary(side: Mapping[str, Any]) -> Summary:
    quantiles = side["quantiles"]
    return Summary(side["mean"], math.sqrt(side["variance"]), quantiles["0.05"], quantiles["0.5"], quantiles["0.95"])


def related(correlations: Mapping[str, Any]) -> tuple[Related, ...]:
    """Return the pairs of columns whose correlation moved most, the farthest first.

    >>> grid = {"columns": ["a", "b"], "before": [[1.0, 0.5], [0.5, 1.0]], "after": [[1.0, 0.25], [0.25, 1.0]]}
    >>> related(grid)
    (Related(one='a', other='b', before=0.5, after=0.25),)
    """
    names, before, after = correlations["columns"], correlations["before"], correlations["after"]
    pairs = [
        Related(names[i], names[j], before[i][j], after[i][j])
        for i, j in combinations(range(len(names)), 2)
        if before[i][j] is not None and after[i][j] is not None
    ]
    return tuple(sorted(pairs, key=lambda pair: -abs(pair.after - pair.before))[:MOST_PAIRS])
