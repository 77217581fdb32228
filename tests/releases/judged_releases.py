"""Releases made from requests, each judged by a process that imports nothing of kinfold."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

import kinfold
from kinfold import checker
from releases import judge
from releases.expected import expected
from releases.requests import Request

REFUSALS = (kinfold.PolicyError, kinfold.DataError, kinfold.Unreachable)


class Judge:
    """A judge in a process of its own; close it, or use it in a `with` block."""

    def __init__(self) -> None:
        packages = Path(pa.__file__).parents[1]
        command = [sys.executable, "-I", "-S", str(judge.__file__), str(checker.__file__), str(packages)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def falsehoods(self, public: Path, asked: Mapping[str, Any]) -> list[str]:
        """Return every way in which a release is not what was asked for."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({**asked, "folder": str(public)}) + "\n")
        self._process.stdin.flush()
        said: list[str] = json.loads(self._process.stdout.readline())
        return said

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate(timeout=60)
        assert kind or self._process.returncode == 0


def tried(requests: Iterable[Request], folder: Path, judge_: Judge) -> tuple[Counter[str], dict[int, list[str]]]:
    """Make every release that can be made; return how requests ended, and the false releases by their number."""
    ends: Counter[str] = Counter()
    false: dict[int, list[str]] = {}
    for drawn in requests:
        place = folder / str(drawn.number)
        place.mkdir()
        end = released(drawn, place)
        ends[end] += 1
        if end == "released" and (said := judge_.falsehoods(place / "out" / "public", expected(drawn))):
            false[drawn.number] = said
        shutil.rmtree(place)
    return ends, false


def released(drawn: Request, folder: Path) -> str:
    """Make one release and save it; return how that ended."""
    try:
        release = kinfold.anonymize(drawn.source(folder), drawn.policy)
    except REFUSALS as error:
        return type(error).__name__
    release.save(folder / "out")
    release.engine.close()
    return "released"
