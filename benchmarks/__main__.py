"""Run the subjects named (all of them without a name), print a table for each, write it to results/SUBJECT.json.

A subject is a file of this folder with `run(*, quick) -> Iterable[Row]`; a row says what was run and what it took.
Two files are programs of their own: `python -m benchmarks.adult_models` and `.perturbation` print the tables of a page.
`python -m benchmarks --quick` leaves out rows that take more than some seconds, where a subject has such.
"""

from __future__ import annotations

import argparse
import importlib
import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.measuring import Row

HERE = Path(__file__).parent
PARTS = {"__init__", "__main__", "curves", "measuring", "tables", "adult_models", "perturbation"}  # no subjects
SUBJECTS = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in PARTS)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("subjects", nargs="*", metavar="subject", help=f"any of {', '.join(SUBJECTS)}")
    parser.add_argument("--quick", action="store_true", help="leave out what takes long")
    arguments = parser.parse_args()
    for name in arguments.subjects or SUBJECTS:
        if name not in SUBJECTS:
            parser.error(f"no subject {name!r}; there are {', '.join(SUBJECTS)}")
        print(f"\n{name}")
        write(name, show(importlib.import_module(f"benchmarks.{name}").run(quick=arguments.quick)))


def show(rows: Iterable[Row]) -> list[Row]:
    """Print rows as they come, under a heading whenever the columns change."""
    kept, heading = [], ()
    for row in rows:
        if tuple(row) != heading:
            heading = tuple(row)
            print("\n" + "  ".join(f"{column:>14}" for column in heading))
        print("  ".join(f"{cell(value):>14}" for value in row.values()), flush=True)
        kept.append(row)
    return kept


def cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def write(name: str, rows: list[Row]) -> None:
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "processor": platform.machine(), "system": platform.system()}
    (folder / f"{name}.json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
