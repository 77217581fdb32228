"""The command `kinfold studio`: its address, its port, what it says where something is missing, and its end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import run
from kinfold.studio.server import LOOPBACK
from studio.visitor import Visitor, token_in, wait_for

pytestmark = pytest.mark.slow

PATHS = os.pathsep.join(filter(None, sys.path))


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the command with a temporary folder of its own; return it and the address that it tells."""
    code = "from kinfold.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": PATHS, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    told = [sys.executable, "-c", code, "studio", "--no-browser", *arguments]
    process = subprocess.Popen(told, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_the_studio_opens_the_table_that_the_command_names_and_forgets_all_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n3,4\n")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with started(scratch, str(tmp_path / "mine.csv")) as (process, line):
        port = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert port
        visitor = Visitor(int(port[1]))
        assert visitor.ask("GET", f"/?token={token_in(line)}").status == 303
        assert visitor.ready()["source"]["name"] == "mine.csv"
        assert [*scratch.glob("kinfold-studio-*")]
        assert process.stdout is not None
        rest = process.stdout.readline() + process.stdout.readline()
        assert "for another browser" in rest
        assert token_in(line) not in rest
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    wait_for(lambda: not [*scratch.iterdir()], "an empty temporary folder")
    assert (tmp_path / "mine.csv").read_text() == "a,b\n1,2\n3,4\n"


def test_only_the_loopback_interface_listens(tmp_path: Path) -> None:
    with started(tmp_path) as (_, line):
        found = re.search(r":(\d+)/", line)
        assert found
        elsewhere = [each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
        for address in {each for each in elsewhere if not str(each).startswith("127.")}:
            with (
                pytest.raises((ConnectionError, TimeoutError)),
                socket.create_connection((address, int(found[1])), timeout=2),
            ):
                pass


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as busy:
        busy.bind((LOOPBACK, 0))
        busy.listen()
        port = busy.getsockname()[1]
        ran = run("studio", "--no-browser", "--port", port)
    assert ran.code == 2
    assert f"port {port} cannot be used" in ran.err
    assert "--port N" in ran.err


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    ran = run("studio", tmp_path / "nothing.csv", "--no-browser")
    assert ran.code == 3
    assert "no such file" in ran.err


def test_without_its_extra_the_studio_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("kinfold.studio", "starlette", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    ran = run("studio", "--no-browser")
    assert ran.code == 2
    assert "'.[studio]' in a checkout" in ran.err
