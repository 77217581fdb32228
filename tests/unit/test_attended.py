"""Work that somebody listens to: every word is passed on, and what the listener raises ends it at once."""

from __future__ import annotations

import threading
import time

import pytest

from kinfold import progress
from kinfold.errors import Cancelled
from kinfold.progress import Stage, attended

LONG = 60.0  # seconds that nobody waits


def test_every_word_is_heard_in_order_and_by_the_caller() -> None:
    heard, callers = [], set()

    def listen(stage: str, done: int, total: int) -> None:
        heard.append((stage, done, total))
        callers.add(threading.get_ident())

    def work(tell: Stage) -> str:
        for done in range(50):
            tell("one", done, 50)
        tell("two", 1, 1)
        return "made"

    assert attended(work, listen) == "made"
    assert list(dict.fromkeys(heard)) == [*(("one", done, 50) for done in range(50)), ("two", 1, 1)]
    assert callers == {threading.get_ident()}


def test_what_the_work_raises_is_raised() -> None:
    def work(tell: Stage) -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        attended(work, lambda *_: None)


def test_a_listener_is_heard_while_the_work_says_nothing() -> None:
    free = threading.Event()

    def work(tell: Stage) -> None:
        tell("sorting", 0, 1)
        assert free.wait(LONG)

    times = []

    def listen(stage: str, done: int, total: int) -> None:
        times.append((stage, done, total))
        if len(times) == 3:
            free.set()

    attended(work, listen)
    assert times[:3] == [("sorting", 0, 1)] * 3


def test_a_listener_ends_work_that_never_says_another_word() -> None:
    ended = threading.Event()

    def work(tell: Stage) -> None:
        tell("sorting", 0, 1)
        ended.wait(LONG)

    def stop(stage: str, done: int, total: int) -> None:
        raise Cancelled("enough")

    began = time.monotonic()

    class Query:
        def interrupt(self) -> None:
            ended.set()

        def share(self) -> float:
            return 0.0

    with pytest.raises(Cancelled):
        attended(work, stop, Query())
    assert ended.is_set()
    assert time.monotonic() - began < LONG / 2


def test_work_whose_listener_left_ends_at_its_next_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "GRACE", LONG)
    words = []

    def work(tell: Stage) -> None:
        for done in range(10**9):
            words.append(done)
            tell("counting", done, 10**9)
            time.sleep(0.01)

    def stop(stage: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attended(work, stop)
    count = len(words)
    time.sleep(0.05)
    assert len(words) == count  # nobody goes on


def test_how_far_a_query_is_stands_for_a_stage_that_does_not_say_it() -> None:
    free, heard = threading.Event(), []

    class Query:
        def interrupt(self) -> None:
            """Is never asked to."""

        def share(self) -> float:
            return 0.25 * len(heard)

    def work(tell: Stage) -> None:
        tell("reading", 0, 1)
        assert free.wait(LONG)

    def listen(stage: str, done: int, total: int) -> None:
        heard.append((stage, done / total))
        if len(heard) == 4:
            free.set()

    attended(work, listen, Query())
    assert heard[:4] == [("reading", 0.0), ("reading", 0.125), ("reading", 0.25), ("reading", 0.375)]
