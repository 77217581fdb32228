"""The command, run in this process, and folders compared byte for byte."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from typer import main, testing

from kinfold.cli.app import app

testing._get_command = cache(main.get_command)  # which reads the signatures of all commands, each time


@dataclass(frozen=True)
class Ran:
    """What a command left: its exit code and what it said on either stream."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def ok(self) -> Ran:
        """Check that the command succeeded."""
        assert self.code == 0, self.err
        return self

    def fails(self, code: int, *words: str) -> Ran:
        """Check that the command ended with this code and that its message has these words."""
        assert self.code == code, (self.code, self.err)
        for word in words:
            assert word in self.err, (word, self.err)
        return self


def run(*args: object) -> Ran:
    """Run `kinfold` with these arguments; an exception that is no error of kinfold goes through."""
    given, environment = [str(arg) for arg in args], {"KINFOLD_TRACEBACK": "1"}
    result = testing.CliRunner().invoke(app, given, catch_exceptions=False, env=environment)
    return Ran(result.exit_code, result.stdout, result.stderr)


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, hidden ones too, by its path in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def text(folder: Path, name: str, content: str | bytes) -> Path:
    """Write a file and say where it is."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
