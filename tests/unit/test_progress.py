"""Work in a thread: every event reaches the callback, and an exception of the callback ends the work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from kinfold import progress
from kinfold.errors import Cancelled
from kinfold.progress import (
    StageProgress,
    add_to_watches,
    closing_on_error,
    report_bound,
    report_cost,
    run_in_thread,
    watch_search,
)

LONG = 60.0  # seconds; no test waits so long


class Connection:
    """A connection that sets an event when it is interrupted, and reports a share."""

    def __init__(self, interrupted: threading.Event, get_share: Callable[[], float] = lambda: 0.0) -> None:
        self.interrupt, self.share = interrupted.set, get_share

    def close_after_error(self) -> None:
        """Hold nothing."""


def test_every_event_reaches_the_calling_thread_in_order() -> None:
    events, callers = [], set()

    def callback(stage: str, done: int, total: int) -> None:
        events.append((stage, done, total))
        callers.add(threading.get_ident())

    def work(report: StageProgress) -> str:
        for done in range(50):
            report("one", done, 50)
        report("two", 1, 1)
        return "result"

    assert run_in_thread(work, callback) == "result"
    assert list(dict.fromkeys(events)) == [*(("one", done, 50) for done in range(50)), ("two", 1, 1)]
    assert callers == {threading.get_ident()}


def test_an_exception_of_the_work_is_raised_to_the_caller() -> None:
    def work(report: StageProgress) -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        run_in_thread(work, lambda *_: None)


def test_the_last_event_repeats_while_the_work_reports_nothing() -> None:
    free = threading.Event()

    def work(report: StageProgress) -> None:
        report("sorting", 0, 1)
        assert free.wait(LONG)

    times = []

    def callback(stage: str, done: int, total: int) -> None:
        times.append((stage, done, total))
        if len(times) == 3:
            free.set()

    run_in_thread(work, callback)
    assert times[:3] == [("sorting", 0, 1)] * 3


def test_the_callback_ends_work_that_reports_nothing_more() -> None:
    ended = threading.Event()

    def work(report: StageProgress) -> None:
        connection = Connection(ended)
        add_to_watches(connection)
        report("sorting", 0, 1)
        ended.wait(LONG)

    def stop(stage: str, done: int, total: int) -> None:
        raise Cancelled("enough")

    start = time.monotonic()
    with pytest.raises(Cancelled):
        run_in_thread(work, stop)
    assert ended.is_set()
    assert time.monotonic() - start < LONG / 2


def test_cancelled_work_ends_at_its_next_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "STOP_GRACE_SECONDS", LONG)
    reports = []

    def work(report: StageProgress) -> None:
        for done in range(10**9):
            reports.append(done)
            report("counting", done, 10**9)
            time.sleep(0.01)

    def stop(stage: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_in_thread(work, stop)
    count = len(reports)
    time.sleep(0.05)
    assert len(reports) == count  # the work has ended


def test_the_share_of_a_query_is_the_progress_of_a_stage_that_reports_none() -> None:
    free, events = threading.Event(), []

    def work(report: StageProgress) -> None:
        connection = Connection(threading.Event(), lambda: 0.25 * len(events))
        add_to_watches(connection)
        report("reading", 0, 1)
        assert free.wait(LONG)

    def callback(stage: str, done: int, total: int) -> None:
        events.append((stage, done / total))
        if len(events) == 4:
            free.set()

    run_in_thread(work, callback)
    assert events[:4] == [("reading", 0.0), ("reading", 0.125), ("reading", 0.25), ("reading", 0.375)]


def test_a_curve_has_the_costs_and_bounds_of_its_block_as_shares_of_the_first_cost() -> None:
    steps: list[float] = []
    with watch_search(lambda curve: steps.append(curve.share)) as curve, watch_search() as other:
        report_bound(1.0)  # of nothing yet
        report_cost(20.0)
        report_cost(19.99)  # a step too small to be kept
        report_cost(10.0)
        report_cost(40.0)  # another search: its cost is half of the first loss
        report_cost(20.0)
        report_bound(16.0)
        report_bound(12.0)
    report_cost(0.5)
    assert steps == [1.0, 0.5, 0.25, 0.25]
    assert (curve.share, curve.bound, curve.gap) == (0.25, 0.2, pytest.approx(0.2))
    assert [mark[1:] for mark in other.marks] == [(1.0, None), (0.5, None), (0.25, None), (0.25, 0.2), (0.25, 0.2)]


def test_what_a_thread_of_a_pool_searches_is_a_part_that_has_no_curve() -> None:
    with watch_search() as curve, ThreadPoolExecutor(1) as pool:
        pool.submit(report_cost, 5.0).result()
    assert curve.marks == []


def test_a_block_that_fails_closes_the_connections_that_it_opened() -> None:
    closed: list[str] = []
    connections = {
        name: Connection(threading.Event()) for name in ("before", "of the block", "of a block that succeeds")
    }

    def open_connection(name: str) -> None:
        connections[name].close_after_error = lambda: closed.append(name)  # type: ignore[method-assign]
        add_to_watches(connections[name])

    def fail() -> None:
        with closing_on_error():
            open_connection("of the block")
            raise ValueError("wrong")

    with closing_on_error():
        open_connection("before")
        with closing_on_error():
            open_connection("of a block that succeeds")
        with pytest.raises(ValueError, match="wrong"):
            fail()
    assert closed == ["of the block"]
