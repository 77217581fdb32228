"""The process of the command: signals, shortage of memory, and passwords in its arguments.

    the command    -- fork -->    the child: does all the work and blocks SIGINT, SIGTERM and SIGHUP
    waits, and reads the child's journal from a pipe (`disk.folders`): temporary folders, the exchange, finished files
    on a signal: freezes the child; lets it continue while folders are being exchanged; then kills it, removes its
        temporary folders, prints the state of the files, and exits with 128 + the number of the signal

A signal handler inside the child is not enough: Python runs handlers only between two bytecode instructions, and a
kernel, the database or a compiler can take minutes until the next one. Killing from outside always works. It is safe
because a run that is killed anywhere but in the exchange has changed nothing. The command also recognizes a crash and
the system's out-of-memory killer, and removes temporary files after them too.

If the command itself is killed, the child ends too: at once on Linux, elsewhere before it can publish anything.
Where processes cannot be forked (Windows), the work runs in the command itself, and Ctrl-C raises KeyboardInterrupt.

`ps` shows the arguments of a process to every user, so passwords in database addresses are overwritten at once.
PGPASSWORD and ~/.pgpass are better places for a password.

This module loads before everything else: it imports only the standard library and light modules of kinfold.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from kinfold.disk.folders import Journal, end_with_parent, record_to
from kinfold.errors import Unreachable

# Up to the last @, because a password can contain one.
PASSWORD_PATTERN = re.compile(rb"\b[A-Za-z][A-Za-z0-9+.-]+:/{1,3}[^\s:/@\0]*:([^\0]*)@|password=([^&\s\0]*)")
ARGUMENTS_START_FIELD = 48  # of /proc/self/stat: the address where the arguments begin
MASK_CHARACTER = b"*"

MEMORY_ERROR_TEXTS = ("failed to map segment", "cannot allocate memory", "can't start new thread")
MIN_FREE_MEMORY = 256 << 20  # more than a library allocates in one step, less than a run needs
PANDAS_USERS = {"pyspark", "pyreadstat"}
BLAS_MODULE = "scipy.linalg"  # loads OpenBLAS, which retries for ever if it gets no memory
BLAS_MEMORY_PER_CORE = 32 << 20  # what OpenBLAS allocates when it is loaded
MEMORY_FIX = "free some memory, or use fewer records at a time"

STOP_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
FREEZE_SECONDS = 1.0  # a child that does not freeze in this time is killed
EXCHANGE_SECONDS = 30.0  # an exchange of folders that takes longer is interrupted
END_OF_JOURNAL = b'["ended", ""]\n'  # missing if a library ended the process

_lost_memory_errors: list[str] = []  # memory errors in places that cannot raise
_exits: list[Callable[[int], NoReturn]] = []  # how the child process exits at once


def hide_passwords_in_arguments() -> None:
    """Overwrite passwords in the arguments of this process; Python has its own copy."""
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, ValueError, IndexError):  # /proc is missing: nothing to overwrite
        import ctypes

        arguments = Path("/proc/self/cmdline").read_bytes()
        state = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
        start = int(state[ARGUMENTS_START_FIELD - 3])
        for begin, end in _find_passwords(arguments):
            ctypes.memmove(start + begin, MASK_CHARACTER * (end - begin), end - begin)


def mask_passwords(text: str) -> str:
    """Replace passwords of database addresses by stars.

    >>> mask_passwords("no such file: 'postgresql:/ada:x@y@host/db'"), mask_passwords("see a:b")
    ("no such file: 'postgresql:/ada:***@host/db'", 'see a:b')
    """
    masked = text.encode("utf-8", "surrogateescape")
    for begin, end in reversed(_find_passwords(masked)):
        masked = masked[:begin] + MASK_CHARACTER * 3 + masked[end:]
    return masked.decode("utf-8", "surrogateescape")


def _find_passwords(text: bytes) -> list[tuple[int, int]]:
    return [match.span(1 if match[1] is not None else 2) for match in PASSWORD_PATTERN.finditer(text)]


def watch_memory_errors(exit_now: Callable[[int], NoReturn]) -> None:
    """Record memory errors in places that cannot raise, such as callbacks and destructors.

    `exit_now` ends the process at once: without memory the interpreter can lose the exception that should end it.
    """
    _exits.append(exit_now)
    sys.meta_path.insert(0, _ImportGuard())
    previous_hook = sys.unraisablehook

    def record_memory_error(unraisable: Any) -> None:
        if issubclass(unraisable.exc_type, MemoryError):
            _lost_memory_errors.append("a callback")
        else:
            previous_hook(unraisable)

    sys.unraisablehook = record_memory_error


def explain_memory_error(error: BaseException) -> Unreachable | None:
    """Return the error to report if an exception, or one of its causes, means that memory is short.

    Any unexpected exception means it after a memory error in a callback.
    """
    unexplained = isinstance(error, SystemError) and _cannot_allocate(MIN_FREE_MEMORY)  # of a library, without a reason
    lost = _lost_memory_errors and not isinstance(error, SystemExit | KeyboardInterrupt)
    if lost or unexplained or any(map(_means_no_memory, _iterate_causes(error))):
        return Unreachable("there is not enough memory for this table", fix=MEMORY_FIX)
    return None


def exit_without_memory(code: int) -> NoReturn:
    """End a run after a memory error was reported."""
    for exit_now in _exits:
        exit_now(code)
    raise SystemExit(code)


class _ImportGuard:
    """An import hook that raises instead of loading OpenBLAS without memory, which would hang, or pandas for nothing.

    pyarrow loads pandas with its first array, which takes a third of a second, and the command has no frames.
    """

    def find_spec(self, name: str, *_: object) -> None:
        """Find nothing, but check the free memory and who needs pandas."""
        if name == "pandas" and not PANDAS_USERS & sys.modules.keys():
            raise ModuleNotFoundError(f"the command does not need {name}", name=name)
        if name == BLAS_MODULE and _cannot_allocate(MIN_FREE_MEMORY + BLAS_MEMORY_PER_CORE * (os.cpu_count() or 1)):
            raise MemoryError


def _cannot_allocate(size: int) -> bool:
    try:
        mmap.mmap(-1, size).close()
    except OSError:
        return True
    return False


def _means_no_memory(error: BaseException) -> bool:
    text = str(error).lower() if isinstance(error, ImportError | RuntimeError | OSError) else ""
    refused = isinstance(error, OSError) and error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or refused or any(sign in text for sign in MEMORY_ERROR_TEXTS)


def _iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes."""
    visited: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in visited:
        visited.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


@contextlib.contextmanager
def run_in_child_process() -> Iterator[None]:
    """Run the `with` block in a child process; the parent waits and exits with its code, or as a signal asks."""
    if not hasattr(os, "fork"):
        yield
        return
    journal, writer = os.pipe()
    parent = os.getpid()
    signals = [
        number for number in STOP_SIGNALS if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN
    ]
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # signals wait until the supervisor handles them
    child = os.fork()
    if child != 0:
        os.close(writer)
        raise SystemExit(_Supervisor(child, journal, signals).wait())
    os.close(journal)
    _end_with_parent(parent, signals)
    watch_memory_errors(lambda code: _exit_now(writer, code))
    try:
        with record_to(lambda event, what: _send_event(writer, event, what)):
            yield
    except Exception as error:
        # Without memory the modules that report errors cannot be loaded, so report it here.
        if (shortage := explain_memory_error(error)) is None:
            raise
        _print_message(f"error: {shortage}")
        exit_without_memory(shortage.exit_code)
    finally:
        os.write(writer, END_OF_JOURNAL)


# In the child


def _end_with_parent(parent: int, signals: list[int]) -> None:
    """End when the parent ends, and forward the signals that the child receives to it."""
    end_with_parent()
    if os.getppid() != parent:  # it ended before the line above
        os._exit(1)
    # Python's resource tracker would print a warning for each worker that was killed.
    filters = [os.environ["PYTHONWARNINGS"]] if os.environ.get("PYTHONWARNINGS") else []
    os.environ["PYTHONWARNINGS"] = ",".join([*filters, "ignore:resource_tracker"])

    def forward_signals() -> None:
        while (number := signal.sigwait(signals)) and os.getppid() == parent:
            os.kill(parent, number)

    threading.Thread(target=forward_signals, daemon=True).start()


def _exit_now(writer: int, code: int) -> NoReturn:
    """Exit without cleaning up; the parent removes the temporary folders."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os.write(writer, END_OF_JOURNAL)
    os._exit(code)


def _send_event(writer: int, event: str, what: str) -> None:
    line = json.dumps([event, what]).encode() + b"\n"
    while line:
        line = line[os.write(writer, line) :]


# In the parent


class _Supervisor:
    """The parent's view: the child process, its journal, and the signals to wait for."""

    def __init__(self, child: int, journal: int, signals: list[int]) -> None:
        self.child, self.source, self.signals = child, journal, signals
        self.journal, self.rest = Journal(), b""
        self.status: int | None = None  # of the child when it has ended, as `waitpid` returns it
        self.wakeups, wakeup_writer = os.pipe()
        for pipe in (journal, self.wakeups, wakeup_writer):
            os.set_blocking(pipe, False)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        for number in (*signals, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)

    def wait(self) -> int:
        """Wait for the child or for a signal; return the exit code."""
        while not self._has_ended():
            select.select([self.source, self.wakeups], [], [], 1.0)
            self._read_journal()
            for number in self._read_signals():
                return self._stop(number)
        self._read_journal()
        return self._finish()

    def _read_signals(self) -> list[int]:
        with contextlib.suppress(BlockingIOError):
            return [number for number in os.read(self.wakeups, 4096) if number in self.signals]
        return []

    def _has_ended(self, options: int = 0) -> bool:
        """Whether the child has ended; with WUNTRACED also whether it is frozen."""
        if self.status is None:
            changed, status = os.waitpid(self.child, os.WNOHANG | options)
            if changed and os.WIFSTOPPED(status):
                return True
            self.status = status if changed else None
        return self.status is not None

    def _read_journal(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while more := os.read(self.source, 65536):
                self.rest += more
        *lines, self.rest = self.rest.split(b"\n")
        for line in lines:
            self.journal(*json.loads(line))

    def _stop(self, number: int) -> int:
        deadline = time.monotonic() + EXCHANGE_SECONDS
        self._freeze()
        while self.journal.moving and self.status is None and time.monotonic() < deadline:
            os.kill(self.child, signal.SIGCONT)
            select.select([self.source], [], [], 0.1)
            self._freeze()
        if self.status is None:
            os.kill(self.child, signal.SIGKILL)
            _, self.status = os.waitpid(self.child, 0)
        elif self.journal.ended:
            return self._finish()  # it was done before it could be stopped
        self._remove_temporary_folders()
        _print_message(f"stopped; {self.journal.state}")
        return 128 + number

    def _freeze(self) -> None:
        """Stop the child's execution, and read its journal."""
        deadline = time.monotonic() + FREEZE_SECONDS
        if self.status is None:
            os.kill(self.child, signal.SIGSTOP)
        while not self._has_ended(os.WUNTRACED) and time.monotonic() < deadline:
            time.sleep(0.002)
        self._read_journal()

    def _finish(self) -> int:
        """Return the exit code of a child that has ended, and explain a crash."""
        self._remove_temporary_folders()
        assert self.status is not None  # noqa: S101  the child has ended
        if os.WIFEXITED(self.status) and self.journal.ended:
            return os.WEXITSTATUS(self.status)
        code = os.waitstatus_to_exitcode(self.status)
        reason = f"with code {code}" if code >= 0 else signal.Signals(-code).name
        if reason == "SIGKILL":
            _print_message(f"error: the system killed the run, most likely for lack of memory; {self.journal.state}")
            _print_message(f"  fix: {MEMORY_FIX}")
            return 4
        _print_message(f"error: the run crashed ({reason}); {self.journal.state}")
        _print_message("  fix: free some memory if it is short; otherwise this is a bug in kinfold: please report it")
        return 1

    def _remove_temporary_folders(self) -> None:
        from kinfold.disk.folders import remove_scratch

        for path in self.journal.folders:
            remove_scratch(Path(path))
        for path in reversed(self.journal.opened):
            with contextlib.suppress(OSError):
                Path(path).rmdir()  # only if it is empty


def _print_message(text: str) -> None:
    """Print to standard error; after SIGHUP there may be no terminal."""
    printable = "".join(char if char.isprintable() or char == "\n" else "?" for char in text)
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K\x1b[?25h")  # remove a progress bar, and show the cursor again
        sys.stderr.write(printable + "\n")
        sys.stderr.flush()
