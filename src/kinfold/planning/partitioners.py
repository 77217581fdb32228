"""The partitioners by the names that a policy uses.

Those of paper 004 take the promises about confidential columns into account while they form classes; the others do
not know them. Either way, classes that miss a promise are repaired afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.encoding import points, records_of
from kinfold.errors import PolicyError
from kinfold.models import TCloseness
from kinfold.partition import approximate, mdav, t_first, univariate, vmdav
from kinfold.partition.geometry import centre, distances
from kinfold.partition.marginality import ranked
from kinfold.partition.points import Points
from kinfold.partition.requirement import Requirement
from kinfold.planning.needs import needs
from kinfold.planning.requirements import requirements
from kinfold.planning.task import Task
from kinfold.progress import Progress

Labels: TypeAlias = NDArray[np.int32]
Partitioner: TypeAlias = Callable[..., Labels]

PARTITIONERS: dict[str, Partitioner] = {
    "mdav": mdav,
    "v-mdav": vmdav,
    "univariate": univariate,
    "approximate": approximate,
}


def partition(method: str, records: Points, task: Task, progress: Progress) -> Labels:
    """Return the classes that a method makes of some records."""
    if method in CLOSE:
        return CLOSE[method](records, task, progress)
    return PARTITIONERS[method](records, task.k, progress=progress)


def _t_merge(records: Points, task: Task, progress: Progress) -> Labels:
    from kinfold.partition.t_merge import merged

    start = mdav(records, task.k, progress=progress)
    return merged(records, start, requirements(task), progress=progress)[0]


def _k_first(records: Points, task: Task, progress: Progress) -> Labels:
    from kinfold.partition.k_first import clustered

    return clustered(records, task.k, requirements(task), progress=progress)


def _t_first(records: Points, task: Task, progress: Progress) -> Labels:
    """Take the strata from the column with the smallest t; what the others ask is met by repair."""
    strictest = _strictest(task)
    rank = ranked(Requirement.of(strictest, task.confidential[strictest.column]))
    return t_first(records, task.k, confidential=rank, t=strictest.t, progress=progress)


def discarded(task: Task) -> NDArray[np.bool_]:
    """Mark the records to discard before `t-first` so that its cluster size divides the rest (paper 004, section 7).

    Only where `method.suppression` allows so many: those farthest from the centre of all, which cost most to keep.
    """
    from kinfold.partition.t_first import cluster_size

    records = records_of(task.attributes)
    method = task.policy.policy.method
    allowed = method.suppression if isinstance(method.suppression, int) else int(method.suppression * records)
    spare = np.zeros(records, np.bool_)
    extra = records % cluster_size(records, task.k, _strictest(task).t)
    if 0 < extra <= allowed:
        every = points(task.attributes, np.arange(records))
        spare[np.argsort(-distances(every, centre(every), 0), kind="stable")[:extra]] = True
    return spare


def _strictest(task: Task) -> TCloseness:
    return min((model for model in task.models if isinstance(model, TCloseness)), key=lambda model: model.t)


CLOSE: dict[str, Callable[[Points, Task, Progress], Labels]] = {
    "t-merge": _t_merge,
    "k-first": _k_first,
    "t-first": _t_first,
}


def check_method(method: str, task: Task) -> None:
    """Refuse a method that does not fit the request, before any work."""
    needed = needs(method)
    if needed.t and not any(isinstance(model, TCloseness) for model in task.models):
        raise PolicyError(
            f"the method '{method}' needs a t to keep", fix="add t to [privacy], or choose another method"
        )
    if needed.one_number and len(task.attributes) > 1:
        what = f"the method '{method}' is for one quasi-identifier, there are {len(task.attributes)}"
        raise PolicyError(what, fix="choose mdav, or give the others another role")
