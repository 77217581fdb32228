"""The studio as a user starts it, and pages that note what goes wrong on them."""

from __future__ import annotations

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
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/\S*")


@dataclass
class Studio:
    """A server that runs, and the one-time address it gave."""

    address: str

    @property
    def root(self) -> str:
        return self.address.split("/?")[0]


@contextmanager
def serving(*arguments: str, folder: Path) -> Iterator[Studio]:
    """Start the command as a user does, and stop it in the end."""
    start = "from kinfold.cli import main; main()"
    command = [sys.executable, "-c", start, "studio", *arguments, "--no-browser"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (folder / "errors.txt").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=folder, env=environment)
        try:
            yield Studio(_address(process))
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _address(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    told, end = b"", time.monotonic() + PATIENCE / 1000
    while time.monotonic() < end and process.poll() is None:
        if select.select([process.stdout], [], [], 0.2)[0]:
            told += os.read(process.stdout.fileno(), 4096)
        if found := ADDRESS.search(told.decode()):
            return found.group()
    raise AssertionError(f"the studio gave no address: {told.decode()!r}")


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
    tab.on("console", lambda message: seen.said.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: seen.said.append(str(error)))
    tab.on("dialog", lambda dialog: (seen.said.append(f"dialog {dialog.message}"), dialog.dismiss()))
    context.on("request", lambda request: seen.asked.append(request.url))
    try:
        tab.goto(address)
        yield tab, seen
    finally:
        context.close()
