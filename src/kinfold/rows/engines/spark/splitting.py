"""Splitting: bundles of blocks go to the executors, each as one group, and what is made of them comes back.

They go in waves, so that what is done is kept for a later run, told, and can be stopped between two waves as well as
within one. What is made of a bundle depends on nothing but the bundle: not on the executor, nor on their number.
"""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa

from kinfold.rows.engines.spark.running_spark import RunningSpark

WAVES = 2  # bundles for each core of the cluster that are under way at a time


def split(session: RunningSpark, orders: Any, hall: Any) -> list[Any]:
    """Return what is made of every bundle."""
    found = {at: made for at in range(orders.many) if (made := orders.known(at)) is not None}
    todo = [at for at in range(orders.many) if at not in found]
    for at in found:
        hall.done[at] = hall.sizes[at]
    width = max(1, WAVES * _cores(session))
    for start in range(0, len(todo), width):
        hall.progress(int(hall.done.sum()), hall.total)
        wave = todo[start : start + width]
        for at, made in zip(wave, _wave(session, [orders.bundle(at) for at in wave]), strict=True):
            found[at] = orders.keep(at, made)
            hall.done[at] = hall.sizes[at]
    hall.progress(int(hall.done.sum()), hall.total)
    return [found[at] for at in range(orders.many)]


def _cores(session: RunningSpark) -> int:
    try:
        return int(session.spark.sparkContext.defaultParallelism)
    except Exception:  # a session that only connects to a cluster does not know
        return 8


def _wave(session: RunningSpark, bundles: list[Any]) -> list[Any]:
    from pyspark.cloudpickle import dumps

    packed = pa.table({"at": pa.array(range(len(bundles)), pa.int32()), "held": [dumps(each) for each in bundles]})
    with session.job():
        rows = session.spark.createDataFrame(packed, "at int, held binary").repartition(len(bundles), "at")
        arrow = rows.groupBy("at").applyInArrow(work_on, "at int, made binary").toArrow()
    made = dict(zip(arrow.column("at").to_pylist(), arrow.column("made").to_pylist(), strict=True))
    found = [pickle.loads(made[at]) for at in range(len(bundles))]  # noqa: S301  of our own executors
    for each in found:
        if isinstance(each, Exception):
            raise each
    return found


def work_on(group: pa.Table) -> pa.Table:
    """Work on the bundles of a group, in an executor; an error comes back as what it is."""
    made = []
    for held in group.column("held").to_pylist():
        try:
            found = pickle.loads(held)(_nobody)  # noqa: S301  of our own driver
        except Exception as error:
            found = error
        made.append(pickle.dumps(found))
    return pa.table({"at": group.column("at"), "made": pa.array(made, pa.binary())})


def _nobody(*_: int) -> Any:
    return _unheard


def _unheard(*_: int) -> None:
    """Listen to nothing."""
