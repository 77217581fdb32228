"""A real PostgreSQL that the tests start on loopback, from Debian's packages or wherever it is found.

Where there is none its tests are skipped, but in CI they fail: a skip shows nothing. PostgreSQL does not run as root:
there the server belongs to the user `postgres` or, where there is none, `nobody`.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin", "/opt/homebrew/opt/postgresql*/bin")
USER, PASSWORD = "ada", "Geheim-7%3F"  # as an address writes it: its last sign is a question mark
PATIENCE = 120.0  # seconds for a server to start on a loaded machine
ATTEMPTS = 5  # another process may take the port first


def programs() -> Path:
    """The folder of PostgreSQL's programs; else skip, or fail where CI promised one."""
    folders = [folder for place in PLACES for folder in sorted(Path("/").glob(place[1:]), reverse=True)]
    folders += [Path(found).parent for found in [shutil.which("initdb")] if found]
    for folder in folders:
        if all((folder / name).exists() for name in ("initdb", "postgres")):
            return folder
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail("no PostgreSQL in CI: install it, for the tests of databases must run there", pytrace=False)
    pytest.skip("no PostgreSQL on this machine (Debian: apt-get install postgresql)")


def _require_driver() -> None:
    if find_spec("adbc_driver_postgresql") is None:
        pytest.fail('no driver of PostgreSQL: pip install -e ".[databases,dev]", or make setup', pytrace=False)


class Server:
    """A server of its own, in a temporary folder."""

    def __init__(self, folder: Path, owner: dict[str, Any]) -> None:
        self.folder, self.owner, self.port = folder, owner, 0
        self.programs = programs()
        self._process: subprocess.Popen[bytes] | None = None

    def address(self, name: str = "postgres", password: str | None = PASSWORD, **rows: str) -> str:
        login = USER if password is None else f"{USER}:{password}"
        more = "&".join(f"{key}={value}" for key, value in rows.items())
        return f"postgresql://{login}@127.0.0.1:{self.port}/{name}" + (f"?{more}" if more else "")

    def make(self) -> None:
        secret = self.folder / "password"
        secret.write_text(unquote(PASSWORD))
        secret.chmod(0o644)  # the server's owner has to read it
        options = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--username", USER)
        command = [self.programs / "initdb", "-D", self.folder / "data", *options, "--pwfile", secret]
        made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, **self.owner)
        assert made.returncode == 0, made.stderr

    def start(self) -> None:
        for _ in range(ATTEMPTS):
            self.port = self.port or _free_port()
            settings = ("-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", "-k", str(self.folder))
            command = [self.programs / "postgres", "-D", self.folder / "data", "-p", str(self.port), *settings]
            with (self.folder / "log").open("ab") as log:
                self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **self.owner)
            if self._answers():
                return
            self.port = 0
        pytest.fail(f"PostgreSQL does not start: {(self.folder / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        """End the server at once, without a word to those who are connected."""
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait(PATIENCE)
            self._process = None

    def run(self, *statements: str, name: str = "postgres") -> list[tuple[Any, ...]]:
        """Run statements, and return the rows of the last one."""
        import adbc_driver_postgresql.dbapi

        connect = adbc_driver_postgresql.dbapi.connect
        with connect(self.address(name), autocommit=True) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall() if cursor.description else [])

    def put(self, table: str, rows: Any, name: str = "postgres") -> None:
        """Make a table of an Arrow table."""
        import adbc_driver_postgresql.dbapi

        connect = adbc_driver_postgresql.dbapi.connect
        with connect(self.address(name), autocommit=True) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(table, rows, mode="create")

    def _answers(self) -> bool:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self._process is not None and self._process.poll() is None:
            with contextlib.suppress(Exception):
                self.run("SELECT 1")
                return True
            time.sleep(0.05)
        self.kill()
        return False


@contextmanager
def running() -> Iterator[Server]:
    """A server for as long as the `with` block lasts."""
    programs()
    _require_driver()
    folder = Path(tempfile.mkdtemp(prefix="kinfold-postgres-"))
    server = Server(folder, _owner(folder))
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _owner(folder: Path) -> dict[str, Any]:
    """Where the server runs, and whom it belongs to: whoever runs the tests, unless that is root."""
    if os.geteuid() != 0:
        return {"cwd": folder}
    known = {entry.pw_name for entry in pwd.getpwall()}
    user = pwd.getpwnam("postgres" if "postgres" in known else "nobody")
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"cwd": folder, "user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
