"""Stopping: whatever the run is doing, a signal ends the command at once, tidily, and with a true word.

    the command    ── fork ──▶    the run: all the work, deaf to SIGINT, SIGTERM and SIGHUP
    waits; reads the run's journal through a pipe (`disk.journal`): temporary folders, the exchange, what has its name
    on a signal: freezes the run; lets it go on for as long as folders change places; then ends it for good,
        removes its temporary folders, says how things stand, and exits with 128 + the signal's number

A handler inside the run could not do this: Python runs it only between two steps of the interpreter, and a kernel, the
database or a compiler may be minutes away from the next one. Ending a process works from outside it, anywhere; it is
safe because a run that is cut anywhere else than in the exchange has changed nothing. The same watch tells a crash, or
the system's killer of processes that take too much memory, from a result, and tidies up after them too.

If the command itself is killed, the run goes with it: at once on Linux, elsewhere before it can publish anything.
Where processes cannot be forked (Windows) the run is the command, and Ctrl-C is an exception as in any program.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from kinfold.cli.memory import leave, listen, short_of_memory
from kinfold.disk.journal import Journal, heard

STOPS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
FREEZING = 1.0  # seconds until a run that cannot be frozen is ended all the same
MOVING = 30.0  # seconds that an exchange may take at most
PR_SET_PDEATHSIG = 1
ENDED = b'["ended", ""]\n'  # the journal's last line, which a library that ends the process by itself does not say


def kept(work: Callable[[], None]) -> None:
    """Do the work in a process of its own and end as it does, or as a signal asks."""
    if not hasattr(os, "fork"):
        work()
        return
    journal, into = os.pipe()
    command = os.getpid()
    heeded = [number for number in STOPS if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN]
    signal.pthread_sigmask(signal.SIG_BLOCK, heeded)  # from here on no signal is lost, and none ends this by itself
    run = os.fork()
    if run == 0:
        os.close(journal)
        _tied_to(command, heeded)
        listen(lambda code: _leave(into, code))
        try:
            with heard(lambda event, what: _send(into, event, what)):
                _done(work)
        finally:
            os.write(into, ENDED)
        return
    os.close(into)
    raise SystemExit(_Watch(run, journal, heeded).until_the_end())


# In the run


def _tied_to(command: int, heeded: list[int]) -> None:
    """End with the command; hand it the signals that were meant for both."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != command:  # it ended before that
        os._exit(1)
    # Python's own helper, which tidies up after workers, would complain to the terminal of having to do so.
    asked = [os.environ["PYTHONWARNINGS"]] if os.environ.get("PYTHONWARNINGS") else []
    os.environ["PYTHONWARNINGS"] = ",".join([*asked, "ignore:resource_tracker"])

    def hand_over() -> None:
        while (number := signal.sigwait(heeded)) and os.getppid() == command:
            os.kill(command, number)

    threading.Thread(target=hand_over, daemon=True).start()


def _done(work: Callable[[], None]) -> None:
    """Do the work; memory can be too short to load even what tells of that."""
    try:
        work()
    except Exception as error:
        if (told := short_of_memory(error)) is None:
            raise
        _say(f"error: {told}")
        leave(told.exit_code)


def _leave(into: int, code: int) -> NoReturn:
    """End here and now: the command tidies up."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os.write(into, ENDED)
    os._exit(code)


def _send(into: int, event: str, what: str) -> None:
    line = json.dumps([event, what]).encode() + b"\n"
    while line:
        line = line[os.write(into, line) :]


# In the command


class _Watch:
    """The command's side: the run's process, its journal, and the signals to wait for."""

    def __init__(self, run: int, journal: int, heeded: list[int]) -> None:
        self.run, self.source = run, journal
        self.journal, self.rest = Journal(), b""
        self.ended: int | None = None  # how, as `waitpid` tells it
        os.set_blocking(journal, False)
        self.signals, woken = os.pipe()
        os.set_blocking(self.signals, False)
        os.set_blocking(woken, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        for number in (*heeded, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, heeded)
        self.heeded = heeded

    def until_the_end(self) -> int:
        """Wait for the run or for a signal; return the exit code."""
        while not self._over():
            select.select([self.source, self.signals], [], [], 1.0)
            self._read()
            for number in self._came():
                return self._stopped(number)
        self._read()
        return self._finished()

    def _came(self) -> list[int]:
        with contextlib.suppress(BlockingIOError):
            return [number for number in os.read(self.signals, 4096) if number in self.heeded]
        return []

    def _over(self, options: int = 0) -> bool:
        """Whether the run is over, or frozen if that is asked for."""
        if self.ended is None:
            found, status = os.waitpid(self.run, os.WNOHANG | options)
            if found and os.WIFSTOPPED(status):
                return True
            self.ended = status if found else None
        return self.ended is not None

    def _read(self) -> None:
        """Take in what the run has told so far."""
        with contextlib.suppress(BlockingIOError):
            while more := os.read(self.source, 65536):
                self.rest += more
        *lines, self.rest = self.rest.split(b"\n")
        for line in lines:
            self.journal(*json.loads(line))

    def _stopped(self, number: int) -> int:
        until = time.monotonic() + MOVING
        self._freeze()
        while self.journal.moving and self.ended is None and time.monotonic() < until:
            os.kill(self.run, signal.SIGCONT)
            select.select([self.source], [], [], 0.1)
            self._freeze()
        if self.ended is None:
            os.kill(self.run, signal.SIGKILL)
            _, self.ended = os.waitpid(self.run, 0)
        elif self.journal.ended:
            return self._finished()  # it was done before it could be stopped
        self._tidy_up()
        _say(f"stopped; {self.journal.state}")
        return 128 + number

    def _freeze(self) -> None:
        """Let the run take no further step, and read what it told until then."""
        until = time.monotonic() + FREEZING
        if self.ended is None:
            os.kill(self.run, signal.SIGSTOP)
        while not self._over(os.WUNTRACED) and time.monotonic() < until:
            time.sleep(0.002)
        self._read()

    def _finished(self) -> int:
        """Return the code of a run that is over, and explain one that did not end by itself."""
        self._tidy_up()
        assert self.ended is not None  # noqa: S101  nobody calls this before
        if os.WIFEXITED(self.ended) and self.journal.ended:
            return os.WEXITSTATUS(self.ended)
        how = _how(self.ended)
        if how == "SIGKILL":
            _say(f"error: the run was ended from outside, most likely for want of memory; {self.journal.state}")
            _say("  fix: give it more memory, or fewer records at a time")
            return 4
        _say(f"error: the run broke off ({how}); {self.journal.state}")
        _say("  fix: if memory is short, give it more; if not, this is a bug in kinfold: please report it")
        return 1

    def _tidy_up(self) -> None:
        from kinfold.disk import scratch

        for path in self.journal.made:
            scratch.remove(Path(path))
        for path in reversed(self.journal.opened):
            with contextlib.suppress(OSError):
                Path(path).rmdir()  # only if it is empty


def _how(ended: int) -> str:
    if os.WIFEXITED(ended):
        return f"with code {os.WEXITSTATUS(ended)}"
    return signal.Signals(os.WTERMSIG(ended)).name


def _say(text: str) -> None:
    """Tell it to whoever still listens: after SIGHUP that may be nobody."""
    shown = "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K\x1b[?25h")  # a progress bar may have been there, and have hidden the cursor
        sys.stderr.write(shown + "\n")
        sys.stderr.flush()
