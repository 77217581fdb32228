"""The long form of the tests, and what came of it, written to docs/trust.md.

    python -m tools.trust [--scale 10] [--workers 2] [--out docs/trust.md] [TESTS]

Runs every test that is marked `trust` with KINFOLD_TRUST_SCALE set, lets the tests write into a ledger
(tests/ledger.py) and adds that up: every number of the page was counted by the run that the page tells of.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]
FULL = 10.0  # the scale at which there are 10,000 releases
PARTS = ("kinfold", "duckdb", "numpy", "numba", "pyarrow", "hypothesis", "scipy", "pycanon", "microagg1d")
EXPECTED = (  # a run of all tests that counted none of these did not try what it should
    *("properties cases", "requests of the battery", "releases", "faults tried", "planted errors tried"),
    *("fuzz tests cases", "figures compared with pycanon", "figures compared with microagg1d"),
)
ENDED = (0, 1)  # codes of pytest for a run that came to its end, whatever failed
EXPLAINED = "explained: "
COMPARED = "figures compared with "


@dataclass(frozen=True)
class Run:
    """What a run counted, how its tests ended and how long it took."""

    counts: Counter[str]
    kinds: Counter[str]  # of how many different tests each count is
    tests: Counter[str]
    scale: float
    workers: int
    seconds: float
    cut: bool = False  # stopped before its end

    @property
    def failed(self) -> int:
        """Tests that did not pass."""
        return self.tests["failures"] + self.tests["errors"]


def main() -> int:
    """Run, add up, write the page of a run that was whole; the code is 0 only if everything passed."""
    parser = argparse.ArgumentParser(prog="tools.trust", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=FULL)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "trust.md")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or folders, where not all are wanted")
    asked = parser.parse_args()
    run = carried_out(asked.tests, asked.scale, asked.workers)
    print(f"{run.tests['tests']} tests, {run.failed} failed, {_time(run.seconds)}")
    untried = [what for what in EXPECTED if not run.counts[what]] if asked.tests == ["tests"] else []
    if untried:
        print(f"nothing was counted of: {', '.join(untried)}")
    if run.cut or untried or not run.tests["tests"]:  # what was written of a whole run stays
        print(f"{asked.out} is left as it was: the run was not whole")
        return 1
    asked.out.write_text(page(run), encoding="utf-8")
    print(f"written: {asked.out}")
    return 1 if run.failed else 0


def carried_out(tests: list[str], scale: float, workers: int) -> Run:
    """Run the tests of the long form and return what they counted."""
    with tempfile.TemporaryDirectory() as place:
        ledger, results = Path(place) / "ledger", Path(place) / "results.xml"
        ledger.touch()
        environment = {**os.environ, "KINFOLD_TRUST_SCALE": str(scale), "KINFOLD_LEDGER": str(ledger)}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "trust",
            "-n",
            str(workers),
            "--dist",
            "worksteal",
            "--durations=20",
        ]
        started = time.monotonic()
        ran = subprocess.run([*command, f"--junitxml={results}", *tests], cwd=ROOT, env=environment, check=False)  # noqa: S603
        seconds = time.monotonic() - started
        return Run(*added_up(ledger), ended(results), scale, workers, seconds, cut=ran.returncode not in ENDED)


def added_up(ledger: Path) -> tuple[Counter[str], Counter[str]]:
    """Add up the lines of a ledger: how many of each, and by how many different tests."""
    counts: Counter[str] = Counter()
    kinds: dict[str, set[str]] = {}
    for line in ledger.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        counts[entry["what"]] += entry["count"]
        kinds.setdefault(entry["what"], set()).add(entry["of"])
    return counts, Counter({what: len(names) for what, names in kinds.items()})


def ended(results: Path) -> Counter[str]:
    """Return how many tests there were, and how many failed or were skipped; none where nothing was written."""
    if not results.exists():
        return Counter()
    suites = ElementTree.parse(results).getroot().iter("testsuite")  # noqa: S314  written by pytest a moment ago
    found: Counter[str] = Counter()
    for suite in suites:
        found.update({key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")})
    return found


# The page


def page(run: Run) -> str:
    """Write down a run."""
    parts = [_heading(run), _table(_rows(run)), _opinions(run), _explanations(run), _made_with()]
    return "\n\n".join(part for part in parts if part) + "\n"


def _heading(run: Run) -> str:
    told = f"""# What was tried

Written by `make trust` on {datetime.now(UTC):%Y-%m-%d}; every number was counted by that run, which took
{_time(run.seconds)} with {run.workers} workers. What a release promises is in [promise.md](promise.md).
The two judges that were asked each time can be asked about any release:

```console
$ kinfold demo --out demo                # writes demo/patients.csv: 1,000 patients who do not exist
...
$ kinfold verify demo/release/public --twice
```"""
    if run.scale < FULL:
        told += f"\n\n**A run at scale {run.scale:g}.** The full one has {FULL:g}, and 10,000 releases."
    if run.failed:
        told += f"\n\n**{run.failed} tests failed: do not rely on this state.**"
    return told


def _rows(run: Run) -> list[tuple[str, str]]:
    count, kinds = run.counts, run.kinds
    drawn, released = count["requests of the battery"], count["releases of the battery"]
    return [
        ("tests run", f"{run.tests['tests']:,}; {run.failed:,} failed, {run.tests['skipped']:,} skipped"),
        ("properties, and cases generated for them", f"{kinds['properties cases']:,}, {count['properties cases']:,}"),
        ("requests of the battery", f"{drawn:,}: {released:,} released, the others refused with a reason"),
        ("generated releases, checked twice, then by the plain checker alone", f"{count['releases']:,}"),
        ("of these, false", f"{count['false releases']:,}"),
        ("more requests of that kind, refused with a reason", f"{count['requests refused']:,}"),
        ("disagreements with outside opinions", f"{count['disagreements']:,} of {_compared(run):,} figures"),
        ("faults survived of faults tried", f"{count['faults passed']:,} of {count['faults tried']:,}"),
        ("planted errors caught", f"{count['planted errors passed']:,} of {count['planted errors tried']:,}"),
        ("inputs fuzzed", f"{count['fuzz tests cases']:,} by {kinds['fuzz tests cases']:,} tests of readers"),
    ]


def _compared(run: Run) -> int:
    return sum(count for what, count in run.counts.items() if what.startswith(COMPARED))


def _table(rows: list[tuple[str, str]]) -> str:
    return "\n".join(["| what | how often |", "| --- | --- |", *(f"| {what} | {count} |" for what, count in rows)])


def _opinions(run: Run) -> str:
    found = {what.removeprefix(COMPARED): n for what, n in run.counts.items() if what.startswith(COMPARED)}
    lines = [f"- {who}: {count:,} figures" for who, count in sorted(found.items())]
    told = "Each figure (k, l, t, alpha, entropy) was asked of the engine's verification and of the plain checker:"
    return "\n".join(["## Outside opinions", "", told, "", *lines]) if lines else ""


def _explanations(run: Run) -> str:
    found = {what.removeprefix(EXPLAINED): n for what, n in run.counts.items() if what.startswith(EXPLAINED)}
    lines = [f"- {reason}: {count:,} times" for reason, count in sorted(found.items())]
    told = "Differences that are not kinfold's; `tests/property/test_outside_opinions.py` shows each:"
    return "\n".join([told, "", *lines]) if lines else ""


def _made_with() -> str:
    parts = ", ".join(f"{part} {version(part)}" for part in PARTS)
    return (
        f"## Made with\n\nPython {platform.python_version()} on {platform.system()}, {os.cpu_count()} cores; {parts}."
    )


def _time(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


if __name__ == "__main__":
    sys.exit(main())
