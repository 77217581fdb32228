"""MDAV on the CASC Census file, through the command, measured on the file that leaves.

100 · SSE / SST as quoted by everybody who compared with MDAV since 2005, and as `kinfold reproduce` has it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from command import run
from kinfold.papers.exhibits import PrintedValues
from reference.public_data import census, found

QUOTED = [(int(row["k"]), float(row["census"])) for row in PrintedValues("000").read_table("literature")]


@pytest.mark.slow
@pytest.mark.parametrize(("k", "loss"), QUOTED)
def test_the_release_loses_what_the_literature_says(k: int, loss: float, tmp_path: Path) -> None:
    names = found("census.csv").read_text().splitlines()[0]
    options = ("--method", "mdav", "--set", "output.round=false", "--keep-order", "--json")
    ran = run("anonymize", found("census.csv"), "--quasi", names, "-k", k, *options, "--out", tmp_path / "out")
    assert ran.code == 0, ran.err
    file = tmp_path / "out" / "public" / "release.csv"
    original, released = census(), np.loadtxt(file, delimiter=",", skiprows=1)
    x, y = original / original.std(axis=0), released / original.std(axis=0)
    ratio = ((x - y) ** 2).sum() / ((x - x.mean(axis=0)) ** 2).sum()
    assert round(100 * ratio, 3) == loss
    assert ran.json["loss"]["sse_ratio"] == pytest.approx(ratio, rel=1e-9)
    assert released.mean(axis=0) == pytest.approx(original.mean(axis=0), rel=1e-9)
    lines = file.read_text().splitlines()[1:]
    assert min(Counter(lines).values()) >= k
    assert run("verify", tmp_path / "out" / "public").code == 0
