"""The ledger of a long run: tests write down what they tried, and `make trust` adds it up.

A line is a JSON object in the file that KINFOLD_LEDGER names; where it names none, nothing is written. Every process
appends whole lines, so that several can write to one ledger.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

SCALE = float(os.environ.get("KINFOLD_TRUST_SCALE", "1"))  # the long form has so many times the random cases
PASSING = re.compile(r"(\d+) passing examples")


def tally_up(what: str, count: int = 1, of: str = "") -> None:
    """Write down that so many more of something were tried, found, survived; `of` says by what."""
    if file := os.environ.get("KINFOLD_LEDGER"):
        with Path(file).open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps({"what": what, "count": count, "of": of}) + "\n")


def cases(short: int, long: int) -> int:
    """Return a number of random cases: the short form, or `long` for each unit of the scale."""
    return short if SCALE <= 1 else round(long * SCALE)


def tally_test(item: pytest.Item, report: pytest.TestReport) -> None:
    """Write down a test of the long form, and the cases that hypothesis drew for it."""
    mark = item.get_closest_marker("trust")
    if mark is None or report.when != "call" or report.skipped:
        return
    kind, name = mark.args[0], item.nodeid.split("[")[0]
    tally_up(f"{kind} tried", of=name)
    tally_up(f"{kind} passed", int(report.passed), of=name)
    if drawn := PASSING.findall(getattr(item, "hypothesis_statistics", "")):
        tally_up(f"{kind} cases", sum(map(int, drawn)), of=name)
