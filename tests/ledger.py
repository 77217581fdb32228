"""The ledger of a long run: tests write down what they tried, and `make trust` adds it up.

A line is a JSON object in the file that KINFOLD_LEDGER names; where it names none, nothing is written. Every process
appends whole lines, so that several can write to one ledger.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

SCALE = float(os.environ.get("KINFOLD_TRUST_SCALE", "1"))  # the long form has so many times the random cases


def tally_up(what: str, count: int = 1) -> None:
    """Write down that so many more of something were tried, found, survived."""
    if file := os.environ.get("KINFOLD_LEDGER"):
        with Path(file).open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps({"what": what, "count": count}) + "\n")


def cases(short: int, long: int) -> int:
    """Return a number of random cases: the short form, or `long` for each unit of the scale."""
    return short if SCALE <= 1 else round(long * SCALE)
