"""The examples of README, docs and --help, as they are written: commands with what they print, Python, policies.

A block stands in a fence that says what it is (```console, ```sh, ```python, ```toml). One that cannot be run has a
comment before it, which whoever reads the source sees: <!-- not run: why -->. A command that is to fail says so in its
comment: # exit code 5.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import typer.main

from kinfold.cli.app import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = ("console", "sh", "python", "toml")
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<why>[^\n]+?) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
EXIT = re.compile(r"exit code (\d+)")
SECONDS = re.compile(r"\d+(\.\d+)? (s\b|seconds?)")


@dataclass(frozen=True)
class Command:
    """A command, the exit code that it says, and the lines that stand below it."""

    words: list[str]
    code: int = 0
    shown: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and why it is not run, if it is not."""

    kind: str
    text: str
    line: int
    why: str | None = None


def blocks(page: Path) -> list[Block]:
    """Return every fenced block of a page."""
    text = page.read_text("utf-8")
    return [
        Block(found["kind"], found["text"], text[: found.start()].count("\n") + 1, found["why"])
        for found in FENCE.finditer(text)
    ]


def commands(text: str) -> list[Command]:
    """Read a console: lines after `$ ` are commands, others what the one before has printed."""
    found: list[Command] = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            said = EXIT.search(line.partition("#")[2])
            words = shlex.split(line[2:], comments=True)
            found.append(Command(words, int(said[1]) if said else 0))
        elif line.strip():
            found[-1].shown.append(line.rstrip())
    return found


def helped() -> Iterator[tuple[str, Command]]:
    """Yield every example of the help of a command, with the command's name."""
    for name, command in typer.main.get_group(app).commands.items():
        for line in re.findall(r"`(kinfold [^`]+)`", command.help or ""):
            yield name, Command(shlex.split(line))


def agree(told: list[str], shown: list[str]) -> bool:
    """Say whether what was told is what is shown, where a line of three dots stands for any number of lines."""
    parts: list[list[str]] = [[]]
    for line in shown:
        parts[-1].append(line) if line != "..." else parts.append([])
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        return told == shown
    place = len(first)
    if told[:place] != first or (last and told[-len(last) :] != last):
        return False
    for part in parts[1:-1]:
        while place <= len(told) and told[place : place + len(part)] != part:
            place += 1
        place += len(part)
    return place <= len(told) - len(last)


def without_seconds(lines: list[str]) -> list[str]:
    """Leave out how long something took."""
    return [SECONDS.sub("s", line.rstrip()) for line in lines if line.strip()]
