"""The command as a process of its own, with a temporary folder of its own, brought to a point and stopped there."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 60.0  # seconds, on a busy machine; what is waited for here comes at once or never

# What a run may be doing when the signal comes; each of these goes on for hours. `busy()` says that it has begun.
BUSY = """
import sys
def busy(how):
    from kinfold.tables.duckdb.engine import DuckDB
    if how == "kernel":  # holds the interpreter's lock, as most kernels do
        import numba
        @numba.njit("float64(float64)")
        def kernel(x):
            while x > 0.0:
                x += 1e-300
            return x
    engine = DuckDB()
    engine._db.execute("CREATE TABLE t AS SELECT 1 AS secret")
    print("busy", file=sys.stderr, flush=True)
    if how == "kernel":
        kernel(1.0)
    elif how == "database":
        engine._db.execute("SELECT sum(a.range * b.range % 7) FROM range(10000000) a, range(10000000) b")
    elif how == "arrow":
        engine._db.arrow("SELECT sum(a.range * b.range % 7) FROM range(10000000) a, range(10000000) b")
    elif how == "c":
        sum(range(10**13))
    elif how == "threads":
        import time
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(time.sleep, (10000, 10000)))
    else:
        while True:
            pass
"""


@dataclass
class Command:
    """A started `kinfold`; its temporary folder; all that it said."""

    process: subprocess.Popen[str]
    temporary: Path
    said: str = ""
    out: str = ""
    left: list[Path] = field(default_factory=list)

    def until(self, word: str) -> None:
        """Wait until it says a word on standard error."""
        assert self.process.stderr is not None
        while word not in self.said:
            line = self.process.stderr.readline()
            assert line, f"it ended without the word: {self.said}"
            self.said += line

    def run(self) -> int:
        """The process that does the work."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        (child,) = map(int, children)
        return child

    def ended(self) -> int:
        """Wait for the end; return the code."""
        out, err = self.process.communicate(timeout=PATIENCE)
        self.out, self.said = out, self.said + err
        self.left = sorted(self.temporary.iterdir())
        return self.process.returncode


def start(desk: Path, *args: object, before: str = "", **options: object) -> Command:
    """Start `kinfold` with these arguments, after some code if there is any."""
    temporary = desk / "tmp"
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(temporary)}
    words = [sys.executable, "-c", f"{before}\nfrom kinfold.cli import main; main()", *map(str, args)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, env=environment, stdout=pipe, stderr=pipe, text=True, **options)  # type: ignore[call-overload]
    return Command(process, temporary)


def gone(pid: int) -> bool:
    """Whether a process is over, or is within a while."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.01)
    return False


@contextlib.contextmanager
def ending(command: Command) -> Iterator[Command]:
    """Leave no process behind, whatever a test finds."""
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.send_signal(signal.SIGKILL)
            command.process.communicate()
