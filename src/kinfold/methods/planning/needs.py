"""What a request lacks of what a method declares that it needs: told before any work, and what `auto` chooses by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kinfold.errors import Problem
from kinfold.methods.task import Task
from kinfold.request.binding import BoundColumn
from kinfold.request.methods import Declaration, Need, everyday
from kinfold.rows.schema import Role


def lacking(method: Declaration, task: Task) -> list[Problem]:
    """Return what keeps a method from this task."""
    found = [problem for need in method.needs for problem in _LACKS[need](method, task)]
    if method.objectives and task.method.objective not in method.objectives:
        what = f"the method '{method.name}' cannot search by {task.method.objective} (method.objective)"
        found.append(Problem(what, f"choose {' or '.join(method.objectives)}"))
    return found


def _t(method: Declaration, task: Task) -> Iterator[Problem]:
    if not task.close:
        yield Problem(f"the method '{method.name}' needs a t to keep", "add t to [privacy], or choose another method")


def _one_number(method: Declaration, task: Task) -> Iterator[Problem]:
    if (quasi := len(task.policy.of(Role.QUASI))) > 1:
        what = f"the method '{method.name}' is for one quasi-identifier, there are {quasi}"
        yield Problem(what, f"choose {everyday().name}, or give the others another role")


def _hierarchies(method: Declaration, task: Task) -> Iterator[Problem]:
    for column in task.policy.of(Role.QUASI):
        told = column.suppressed or (column.request.hierarchy and column.average == "generalize")
        if column.kind.measured and not told:
            yield _without_hierarchy(column, method)


def _without_hierarchy(column: BoundColumn, method: Declaration) -> Problem:
    name, asked = column.name, column.request
    if asked.hierarchy is not None:  # not built, for the values are to be averaged
        what = f"the method '{method.name}' generalizes '{name}', and columns.{name}.average is {asked.average}"
        return Problem(what, f"leave out the average, or {_another()}")
    return Problem(
        f"the method '{method.name}' needs a hierarchy for '{name}'",
        f"add hierarchy = {{ intervals = [5, 10, 20] }} or another to columns.{name}",
    )


def _suppression(method: Declaration, task: Task) -> Iterator[Problem]:
    for column in task.policy.of(Role.QUASI):
        if not column.suppressed:
            what = f"the method '{method.name}' suppresses cells, and columns.{column.name}.average is {column.average}"
            yield Problem(what, "leave out the average, or choose a method that has it")


def _rows(method: Declaration, task: Task) -> Iterator[Problem]:
    privacy = task.policy.request.privacy
    if privacy.unit is not None or privacy.joint:
        what = f"the method '{method.name}' cannot keep promises about people (privacy.unit) or joint ones"
        yield Problem(what, _another())


def _another() -> str:
    return f"choose a partitioning method, for example {everyday().name}"


_LACKS: Mapping[Need, Callable[[Declaration, Task], Iterator[Problem]]] = {
    "t": _t,
    "one number": _one_number,
    "hierarchies": _hierarchies,
    "rows": _rows,
    "suppression": _suppression,
}
