"""Undisturbed: no handler runs inside, the first signal's runs right after, and handlers are as they were."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from kinfold.disk.deferred_signals import undisturbed


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """The signals that a handler of the caller's own was called for."""
    heard: list[int] = []

    def handler(number: int, _: FrameType | None) -> None:
        heard.append(number)

    before = signal.signal(signal.SIGTERM, handler)
    yield heard
    signal.signal(signal.SIGTERM, before)


def test_a_signal_is_delivered_once_and_afterwards(heard: list[int]) -> None:
    handler = signal.getsignal(signal.SIGTERM)
    with undisturbed():
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        assert heard == []
    assert heard == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is handler


def test_what_is_to_be_ended_early_hears_of_it_at_once(heard: list[int]) -> None:
    ended: list[bool] = []
    with undisturbed(lambda: ended.append(True)):
        signal.raise_signal(signal.SIGTERM)
        assert ended == [True]
    assert heard == [signal.SIGTERM]


def test_an_interrupt_goes_before_what_it_caused() -> None:
    def interrupted() -> None:
        with undisturbed():
            signal.raise_signal(signal.SIGINT)
            raise RuntimeError("interrupted")

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_signals_that_nobody_handles_are_left_alone() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with undisturbed():
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_there_is_nothing_to_do() -> None:
    handlers = []

    def work() -> None:
        with undisturbed():
            handlers.append(signal.getsignal(signal.SIGINT))

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert handlers == [before]
