"""MDAV: the tree of boxes against the plain kernel, growth with n, memory, and the first call."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measuring import Row, exponent, memory, seconds
from benchmarks.tables import adult, latent_classes, mixture, replicated_census, standardized
from kinfold import kernels
from kinfold.methods.partition.mdav import mdav_compiled
from kinfold.partition import mdav
from kinfold.progress import no_progress
from kinfold.tables.points import Points

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST = """
import time, numpy, kinfold.partition
x = numpy.random.default_rng(0).normal(size=(100000, 4))  # for which the compiler is worth its time
began = time.process_time()
kinfold.partition.mdav(x, 5)
print(time.process_time() - began)
"""
SDCMICRO = """
if (!requireNamespace("sdcMicro", quietly = TRUE)) quit(status = 3)
x <- read.csv(commandArgs(TRUE)[1], header = FALSE)
took <- system.time(sdcMicro::microaggregation(x, method = "mdav", aggr = 10))
cat(took[["user.self"]] + took[["sys.self"]])
"""
TABLES = {"mixture": mixture, "census": replicated_census}


def run(*, quick: bool) -> Iterator[Row]:
    kernels.warmup()
    yield from against_the_plain_kernel()
    yield from against_sdcmicro()
    yield from other_tables(quick=quick)
    yield from growth([10_000, 30_000, 100_000] if quick else [10_000, 31_623, 100_000, 316_228, 1_000_000])
    if not quick:
        yield {
            "table": "mixture",
            "records": 1_000_000,
            "attributes": 4,
            "k": 10,
            "seconds": seconds(lambda: mdav(mixture(1_000_000, 4), 10)),
        }
        yield {
            "table": "mixture",
            "records": 500_000,
            "attributes": 8,
            "k": 10,
            "seconds": seconds(lambda: mdav(mixture(500_000, 8), 10)),
        }
    yield room()
    yield from first_call()


def against_the_plain_kernel() -> Iterator[Row]:
    for width in (8, 13):
        for name, table in TABLES.items():
            x = Points.from_array(table(100_000, width))
            labels = []
            tree = seconds(lambda x=x, labels=labels: labels.append(mdav(x, 10)), times=2)
            plain = seconds(lambda x=x, labels=labels: labels.append(mdav_compiled(x, 10, no_progress, flat=True)))
            if not all((other == labels[0]).all() for other in labels):
                raise AssertionError("the kernels differ")
            yield {
                "table": name,
                "records": 100_000,
                "attributes": width,
                "k": 10,
                "tree": tree,
                "plain": plain,
                "times": plain / tree,
            }


def against_sdcmicro() -> Iterator[Row]:
    """The same table by sdcMicro's MDAV (32-bit distances), where R and sdcMicro are installed; else no row."""
    if shutil.which("Rscript") is None:
        return
    x = mixture(100_000, 8)
    with tempfile.TemporaryDirectory() as folder:
        table, script = Path(folder) / "x.csv", Path(folder) / "mdav.R"
        np.savetxt(table, x, delimiter=",")
        script.write_text(SDCMICRO)
        done = subprocess.run(["Rscript", str(script), str(table)], capture_output=True, text=True)
    if done.returncode == 3:
        return
    done.check_returncode()
    theirs, ours = float(done.stdout), seconds(lambda: mdav(x, 10), times=2)
    size = {"records": 100_000, "attributes": 8, "k": 10}
    yield {"table": "mixture", **size, "tree": ours, "sdcMicro": theirs, "times": theirs / ours}


def other_tables(*, quick: bool) -> Iterator[Row]:
    census = standardized(replicated_census(1080, 13))
    yield {
        "table": "Census size",
        "records": 1080,
        "attributes": 13,
        "k": 3,
        "seconds": seconds(lambda: mdav(census, 3), 3),
    }
    people = adult()
    yield {
        "table": "Adult, mixed",
        "records": len(people),
        "attributes": 8,
        "k": 5,
        "seconds": seconds(lambda: mdav(people, 5), 2),
    }
    same = np.ones((100_000, 8))
    yield {
        "table": "all equal",
        "records": 100_000,
        "attributes": 8,
        "k": 10,
        "seconds": seconds(lambda: mdav(same, 10)),
    }
    n = 100_000 if quick else 500_000
    codes = latent_classes(n)
    yield {"table": "discrete", "records": n, "attributes": 9, "k": 20, "seconds": seconds(lambda: mdav(codes, 20))}


def growth(sizes: list[int]) -> Iterator[Row]:
    for name, table in TABLES.items():
        times = []
        for n in sizes:
            x = table(n, 8)
            times.append(seconds(lambda x=x: mdav(x, 10), times=2 if n < 50_000 else 1))
            yield {"table": name, "records": n, "attributes": 8, "k": 10, "seconds": times[-1]}
        yield {"table": name, "from": sizes[0], "to": sizes[-1], "exponent": exponent(sizes, times)}


def room() -> Row:
    x = mixture(200_000, 8)
    return {"table": "mixture", "records": 200_000, "memory / input": memory(lambda: mdav(x, 10)) / x.nbytes}


def first_call() -> Iterator[Row]:
    """Processor seconds of a first call in a new process: with an empty cache, and with a full one."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONPATH": os.pathsep.join(sys.path)}
        for state in ("empty", "full"):
            done = subprocess.run(
                [sys.executable, "-c", FIRST], env=environment, check=True, capture_output=True, text=True
            )
            yield {"first call, cache": state, "seconds": float(done.stdout)}
