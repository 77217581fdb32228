"""The studio as a user starts it, and pages that note what goes wrong on them."""

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect

PATIENCE = 120_000  # milliseconds: the machine may be busy, and kernels may be compiled first
expect.set_options(timeout=PATIENCE)
ADDRESS = re.compile(rb"http://127\.0\.0\.1:\d+/\S*\n")


class Studio:
    """A server that runs; whenever one of its one-time addresses is used it tells another."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process, self.folder = process, folder
        self._told = b""
        self._first: str | None = self._next()
        self.root = self._first.split("/?")[0]

    @property
    def address(self) -> str:
        """An address that nobody has used: each lets one browser in, into a session of its own."""
        address, self._first = self._first or self._next(), None
        return address

    def _next(self) -> str:
        assert self.process.stdout is not None
        end = time.monotonic() + PATIENCE / 1000
        while time.monotonic() < end and self.process.poll() is None:
            if found := ADDRESS.search(self._told):
                self._told = self._told[found.end() :]
                return found.group().decode().strip()
            if select.select([self.process.stdout], [], [], 0.2)[0]:
                self._told += os.read(self.process.stdout.fileno(), 4096)
        raise AssertionError(f"the studio gave no address: {self._told.decode()!r}")


@contextmanager
def serving(*arguments: str, folder: Path) -> Iterator[Studio]:
    """Start the command as a user does, and stop it in the end."""
    start = "from kinfold.cli import main; main()"
    command = [sys.executable, "-c", start, "studio", *arguments, "--no-browser"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=folder, env=environment)
        try:
            yield Studio(process, folder)
        finally:
            process.terminate()
            process.communicate(timeout=60)


@dataclass
class Seen:
    """What a page said and asked for."""

    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def abroad(self, root: str) -> list[str]:
        """Requests that left the machine."""
        return [url for url in self.asked if not url.startswith((root, "data:", "blob:"))]


@contextmanager
def visiting(browser: Browser, address: str, **options: Any) -> Iterator[tuple[Page, Seen]]:
    """Open a page of its own, and note its errors, its dialogs and its requests."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "accept_downloads": True, **options})
    tab, seen = context.new_page(), Seen()
    tab.set_default_timeout(PATIENCE)
    tab.on("console", lambda message: seen.said.append(message.text) if message.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: seen.said.append(str(error)))
    tab.on("dialog", lambda dialog: (seen.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
    context.on("request", lambda request: seen.asked.append(request.url))
    try:
        tab.goto(address)
        yield tab, seen
    finally:
        context.close()
