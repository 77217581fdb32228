"""Choose a method, check what it needs, and plan the recoding of a table.

The policy holds only the name of the method; the registry (`policy.registry`) says what it is. `auto` takes, of the
methods of the family that the policy needs and that lack nothing, the one with the most needs: it uses most of the
policy.

    generalize    if values must stay true: every quasi-identifier has `average = "generalize"` and a hierarchy
    partition     otherwise, and if no generalizing method can keep the promises or finish within minutes

Measured on Adult with ARX's hierarchies, k = 5: the granularity that `mingen-cell` keeps, and `mdav` with refinement
(processor seconds). 1,000 records: 0.826 (2) and 0.817 (3). 5,000 records: 0.898 (9) and 0.884 (26); with l = 2,
0.819 (2) and 0.761 (32). 30,162 records: 0.950 (16) and 0.921 (8). `lattice`, at its optimum, keeps 0.285 of 5,000
records.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kinfold.errors import PolicyError, Problem
from kinfold.measures import formulas as measures
from kinfold.methods.blocks.cutting import (
    BORDER_SECONDS,
    choose_block_size,
    describe_seconds,
    estimate_repair_seconds,
    estimate_seconds,
)
from kinfold.methods.blocks.pool import limit_threads
from kinfold.methods.task import Chooser, Plan, Task
from kinfold.models import to_class_models
from kinfold.policy.binding import BoundColumn
from kinfold.policy.registry import (
    AUTO,
    METHOD_MODULES,
    Declaration,
    Family,
    Need,
    get_default_method,
    list_method_names,
    list_methods,
)
from kinfold.policy.table import Table
from kinfold.progress import nested_progress
from kinfold.tables.schema import Role

__all__ = ["Chooser", "Plan", "Task", "plan"]

MAX_SEPARATE_RECORDS = 100_000  # up to so many, methods at cell level may treat equal records differently
MIN_ANNOUNCED_SECONDS = 10.0  # a shorter run does not announce its duration
PROMISE_KERNELS = ("promises", "repair")  # for the promises of starter policies


def plan(task: Task) -> Plan:
    """Return what to do to each row and each column."""
    from kinfold.methods.blocks import regions
    from kinfold.methods.generalization import generalize
    from kinfold.methods.microaggregation import microaggregate

    if isinstance(task.table, Table) and task.method.people is not None:
        from kinfold.methods.people import plan_people

        if task.earlier is not None:
            what = "the classes of earlier releases are of rows, and method.people forms classes of people"
            raise PolicyError(what, fix="leave out the earlier releases, or method.people")
        return plan_people(task, task.table, plan)
    method, reason = choose_method(task)
    if task.earlier is not None:
        _require_classes_of_records(task, method)
    if method.family == "partition":
        task = replace(task, models=to_class_models(task.models, task.policy.rows))
    with limit_threads(task.policy.request.engine.threads):
        if method.family == "generalize":
            return generalize(task, method, reason)
        if isinstance(task.table, Table) and task.records > regions.count_records_together(task.table):
            return regions.microaggregate_large(task, task.table, method, reason)
        return microaggregate(task, method, reason)


def _require_classes_of_records(task: Task, method: Declaration) -> None:
    """Raise if a release cannot keep the classes of earlier releases."""
    from kinfold.methods.blocks import routing

    if method.family == "generalize":
        what = f"the method '{method.name}' recodes whole columns and cannot keep the classes of earlier releases"
        raise PolicyError(what, fix=_suggest_method())
    if task.records > routing.MAX_RECORDS_IN_MEMORY:
        what = (
            f"after earlier releases, a table may have {routing.MAX_RECORDS_IN_MEMORY:,} records, not {task.records:,}"
        )
        raise PolicyError(what, fix="release a part of the table")


def choose_method(task: Task) -> tuple[Declaration, str]:
    """Return the method for a task, and why it is that one."""
    if task.method.name != AUTO:
        return list_methods()[task.method.name], "named in the policy"
    must_stay_true = (
        task.method.refine != "exact"
        and task.earlier is None
        and all(  # which is only for partitions
            column.average == "generalize" and column.request.hierarchy for column in task.policy.with_role(Role.QUASI)
        )
    )
    candidates = _find_candidates(task, "generalize") if must_stay_true else []
    candidates = candidates or _find_candidates(task, "partition") or [get_default_method()]  # which is refused later
    best = max(candidates, key=lambda method: len(method.needs))
    return best, best.auto_reason


def _find_candidates(task: Task, family: Family) -> list[Declaration]:
    methods = [method for method in list_methods().values() if method.auto_reason and method.family == family]
    fast = [method for method in methods if method.auto_max_records is None or task.records <= method.auto_max_records]
    return [method for method in fast if not find_unmet_needs(method, task)]


def find_unmet_needs(method: Declaration, task: Task) -> list[Problem]:
    """Return the problems that keep a method from this task."""
    problems = [problem for need in method.needs for problem in _check_need(need, method, task)]
    if method.objectives and task.method.objective not in method.objectives:
        what = f"the method '{method.name}' cannot search by {task.method.objective} (method.objective)"
        problems.append(Problem(what, f"choose {' or '.join(method.objectives)}"))
    return [*problems, *_find_population_problems(method, task), *_find_household_problems(method, task)]


def _find_population_problems(method: Declaration, task: Task) -> Iterator[Problem]:
    """Yield promises about the population that a method cannot keep."""
    keys = task.policy.request.privacy.population
    if keys is None or keys.table is None:
        return
    known = [each.name for each in list_methods().values() if each.whole_table and "hierarchies" in each.needs]
    if method.family != "generalize" or any(column.suppressed for column in task.policy.with_role(Role.QUASI)):
        what = f"the method '{method.name}' releases values with which people of a population cannot be compared"
        yield Problem(what, f"choose {' or '.join(known)}")
    elif keys.presence is not None and method.name not in known:
        what = f"the method '{method.name}' keeps promises class by class, and no class size keeps a presence"
        yield Problem(what, f"choose {' or '.join(known)}")
    if task.starred and keys.presence is not None:
        what = 'privacy.population.presence with output.suppressed = "star": everyone fits the starred class'
        yield Problem(what, "leave it out: such records are dropped")


def _find_household_problems(method: Declaration, task: Task) -> Iterator[Problem]:
    """Yield what cannot be done if the members of a household must show the same."""
    request, quasi = task.policy.request, task.policy.with_role(Role.QUASI)
    if request.privacy.household is None:
        return
    where = "with privacy.household"
    suppressing = method.family == "generalize" and any(column.suppressed for column in quasi)
    if method.splits_households:
        what = f"the method '{method.name}' cannot be used {where}: {method.splits_households}"
        yield Problem(what, f'{_suggest_method()} with average = "generalize"')
    if suppressing and (task.has_promises or task.policy.request.privacy.individual_risk is not None):
        what = f"the method '{method.name}' keeps only k {where}, and the policy has other promises"
        yield Problem(what, f'{_suggest_method()} with average = "suppress"')
    if suppressing and task.records > MAX_SEPARATE_RECORDS:
        what = f"the method '{method.name}' takes at most {MAX_SEPARATE_RECORDS:,} records {where}"
        yield Problem(what, f'{_suggest_method()} with average = "suppress"')
    if method.family == "generalize" and task.starred:
        what = f'output.suppressed = "star" {where}: another member of the household shows what is starred'
        yield Problem(what, "leave it out: such records are dropped")
    if request.privacy.average_risk is not None or request.privacy.risk_share is not None:
        what = (
            f"privacy.average_risk and risk_share {where}: they count all classes, and classes are made separately "
            "for each group of households"
        )
        yield Problem(what, "leave them out, or raise k")
    if task.earlier is not None:
        what = f"earlier releases {where}: people keep their earlier classes one by one, not with their household"
        yield Problem(what, "leave out --after")
    if request.method.refine == "exact":
        what = f'method.refine = "exact" {where}: it needs one table, but households and members are partitioned apart'
        yield Problem(what, 'use refine = "auto"')
    for column in (each for each in quasi if each.request.missing in ("separate", "drop")):
        missing = f'columns.{column.name}.missing = "{column.request.missing}"'
        what = f"{missing} {where} could treat members of a household differently"
        yield Problem(what, 'choose missing = "mean", or leave out the records first')
    if any(rule.repair for rule in request.rules):
        yield Problem(
            f"[[rules]] with repair = true {where}: a repair could treat members of a household differently",
            "leave repair out",
        )


def _check_need(need: Need, method: Declaration, task: Task) -> Iterator[Problem]:
    """Yield what keeps a method from having what it needs."""
    what = f"the method '{method.name}'"
    quasi = task.policy.with_role(Role.QUASI)
    if need == "t" and not task.closeness_models:
        whose = "" if task.scope_models is None else " for an attribute of the person"
        yield Problem(f"{what} needs a level of t{whose}", "add t to [privacy], or choose another method")
    if need == "one number" and len(quasi) > 1:
        fix = f"choose {get_default_method().name}, or give the others another role"
        yield Problem(f"{what} takes one quasi-identifier, and the policy has {len(quasi)}", fix)
    if need in ("rows", "records"):
        yield from _check_people(need, method, task)
    for column in quasi:
        generalized = column.suppressed or (column.request.hierarchy and column.average == "generalize")
        if need == "hierarchies" and column.kind.is_numeric and not generalized:
            yield _describe_missing_hierarchy(column, method)
        if need == "suppression" and not column.suppressed:
            average = f"columns.{column.name}.average is {column.average}"
            yield Problem(
                f"{what} suppresses cells, and {average}", "leave out the average, or choose a method that has it"
            )


def _check_people(need: Need, method: Declaration, task: Task) -> Iterator[Problem]:
    """Yield why a method that generalizes cannot count households or people, and what can."""
    privacy, fix = task.policy.request.privacy, _suggest_method()
    if privacy.household_k is not None:
        what = f"the method '{method.name}' cannot count households (privacy.household_k)"
        yield Problem(f"{what}: it counts rows of distinct values", fix)
    weighted = privacy.weighted or privacy.individual_risk is not None
    if privacy.unit is None and not privacy.joint and not weighted and task.scope_models is None:
        return
    what = f"the method '{method.name}' cannot keep promises about people (privacy.unit) or weights, or joint ones"
    if need == "rows":
        why = "it searches by counts of rows, and cannot merge classes that miss a promise"
    elif task.policy.rows > MAX_SEPARATE_RECORDS:
        why = f"it treats up to {MAX_SEPARATE_RECORDS:,} records one by one, and here are {task.policy.rows:,}"
    elif privacy.household is not None:
        why = "with privacy.household, merging their classes would empty what other members show"
    else:
        return
    if privacy.unit is not None and privacy.household is None:  # without people together, which has no unit here
        fix += ', or set method.people = "together"'
    yield Problem(f"{what}: {why}", fix)


def _describe_missing_hierarchy(column: BoundColumn, method: Declaration) -> Problem:
    name, request = column.name, column.request
    if request.hierarchy is not None:  # not built, because the values are averaged
        what = f"the method '{method.name}' generalizes '{name}', and columns.{name}.average is {request.average}"
        return Problem(what, f"leave out the average, or {_suggest_method()}")
    return Problem(
        f"the method '{method.name}' needs a hierarchy for '{name}'",
        f"add hierarchy = {{ intervals = [5, 10, 20] }} or another to columns.{name}",
    )


def _suggest_method() -> str:
    return f"choose a partitioning method, for example {get_default_method().name}"


def announce_duration(task: Task, method: Declaration, seconds: float) -> Task:
    """Return the task with a stage that announces how long the method takes, if that is long."""
    if seconds < MIN_ANNOUNCED_SECONDS or task.stage_progress is None:
        return task
    progress = nested_progress(task.stage(f"plan by {method.name}, about {describe_seconds(seconds)}"))
    progress(0, 1)
    return replace(task, progress=progress)


def estimate_partition_seconds(method: Declaration, task: Task) -> float:
    """Estimate how many seconds a partition, its repair, the borders of blocks and refinement take."""
    refinement = task.method.refinement_limits[1] if task.method.refinement_limits else None
    size, records = choose_block_size(method, task).records, task.records
    block = size or records
    blocks = estimate_seconds(method.cost, task, block) + estimate_repair_seconds(task, block)
    borders = BORDER_SECONDS * records if size and task.requirements() else 0.0
    return blocks * records / max(block, 1) + borders + (refinement or 0.0)


def load_method(method: Declaration) -> Any:
    """Return the module of a method; its function `run` partitions or generalizes."""
    return importlib.import_module(METHOD_MODULES[method.name])


def list_kernels(name: str = AUTO) -> tuple[str, ...]:
    """Return the kernel modules that a release by a method needs; for "auto", those of a starter policy.

    Kernels of refinement are not included: most releases do not use it.
    """
    if name not in list_method_names():
        raise PolicyError(f"there is no method '{name}'", fix=f"choose one of {', '.join(list_method_names())}")
    if name == AUTO:
        return (*get_default_method().kernels, *PROMISE_KERNELS, *measures.KERNELS)
    return (*list_methods()[name].kernels, *measures.KERNELS)
