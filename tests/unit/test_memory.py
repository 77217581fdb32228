"""Want of memory is told as such in every guise that it takes."""

import errno
import gc
import importlib
import sys

import pytest

from kinfold.cli import memory


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setattr(memory, "_missed", [])
    monkeypatch.setattr(sys, "unraisablehook", lambda met: pytest.fail(f"not heard: {met.exc_type}"))


def after(cause, error):
    """An exception that came of another."""
    try:
        try:
            raise cause
        except type(cause):
            raise error  # noqa: B904
    except type(error) as found:
        return found


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "no"),
        ImportError("libx.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        after(MemoryError(), SystemError("returned a result with an exception set")),
        after(OSError(errno.ENOMEM, "no"), ValueError("half read")),
    ],
)
def test_every_guise_is_told_as_what_it_is(error):
    told = memory.short_of_memory(error)
    assert told is not None
    assert "memory" in str(told)
    assert told.exit_code == 4


def test_a_bug_is_a_bug():
    assert memory.short_of_memory(after(KeyError("x"), ValueError("y"))) is None
    assert memory.short_of_memory(OSError(errno.EACCES, "no")) is None


def test_a_library_that_does_not_say_why_ran_out_of_memory_if_there_is_none(monkeypatch):
    assert memory.short_of_memory(SystemError("returned NULL without setting an exception")) is None
    monkeypatch.setattr(memory, "ROOM", 1 << 62)
    assert memory.short_of_memory(SystemError("returned NULL without setting an exception")) is not None
    assert memory.short_of_memory(ValueError("a bug")) is None


class Grudge:
    """Whose going cannot be told to anybody."""

    def __del__(self):
        raise MemoryError


@pytest.fixture
def listening(monkeypatch):
    """Listens as a run does, and tells with which code it was left."""
    codes = []
    for name in ("_ways_out", "_missed"):
        monkeypatch.setattr(memory, name, [])
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    memory.listen(codes.append)
    return codes


def test_a_run_in_a_process_of_its_own_is_left_at_once(listening):
    with pytest.raises(SystemExit):  # this way out does not end the process, so the exception comes after it
        memory.leave(4)
    assert listening == [4]


def test_linear_algebra_is_not_loaded_without_room(listening, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(memory, "ROOM", 1 << 60)  # more than any system gives
    with pytest.raises(MemoryError):
        importlib.import_module("scipy.linalg")


def test_memory_that_is_short_in_a_callback_is_remembered(listening):
    grudge = Grudge()
    del grudge
    gc.collect()
    assert memory.short_of_memory(SystemError("odd")) is not None
    assert memory.short_of_memory(SystemExit(0)) is None
