"""The choice of a method: the one that the policy names, or what `auto` takes.

`auto` takes the methods that declare why it should, of the family that the request asks for, and of those that lack
nothing the one that needs most: it knows most of what was asked.

    generalize    where values must stay true: every quasi-identifier says `average = "generalize"` and has a hierarchy
    partition     otherwise, and where no generalizer can keep what is promised or would be done in minutes

Measured on Adult with ARX's hierarchies, k = 5: the granularity that `mingen-cell` keeps, and `mdav` with refinement
(processor seconds). 1,000 records: 0.826 (2) and 0.817 (3). 5,000 records: 0.898 (9) and 0.884 (26); with l = 2, 0.819
(2) and 0.761 (32). 30,162 records: 0.950 (38) and 0.921 (8). `lattice`, at its optimum, keeps 0.285 of 5,000 records.
"""

from __future__ import annotations

from kinfold.methods.planning.needs import lacking
from kinfold.methods.task import Task
from kinfold.request.methods import AUTO, Declaration, Family, registry
from kinfold.rows.schema import Role


def chosen(task: Task) -> tuple[Declaration, str]:
    """Return the method for a task, and why it is that one."""
    if task.method.name != AUTO:
        return registry()[task.method.name], "named in the policy"
    fitting = _fitting(task, "generalize") if _must_stay_true(task) else []
    best = max(fitting or _fitting(task, "partition"), key=lambda method: len(method.needs))
    return best, best.auto


def _fitting(task: Task, family: Family) -> list[Declaration]:
    of_family = [method for method in registry().values() if method.auto and method.family == family]
    quick = [method for method in of_family if method.auto_up_to is None or task.records <= method.auto_up_to]
    return [method for method in quick if not lacking(method, task)]


def _must_stay_true(task: Task) -> bool:
    if task.method.refine == "exact":  # which is for partitions
        return False
    return all(column.average == "generalize" and column.request.hierarchy for column in task.policy.of(Role.QUASI))
