"""Whether enough of the package is run by its tests: lines and branches, the kernels with the compiler off.

    python -m tools.coverage FILE       FILE is what `coverage json` wrote; code 1 where something is below its mark

What judges a release is run whole; all together by 93 percent.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ALL = 93.0
WHOLE = (
    *("models/", "tables/tally.py", "release/release.py", "release/publication.py"),
    *("release/certificate.py", "verification.py", "checker.py"),
)
SHOWN = 20


def judged(report: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the lines to print, and what is below its mark."""
    files = {path.partition("kinfold/")[2]: file for path, file in report["files"].items()}
    total = report["totals"]["percent_covered"]
    summary_lines = [f"all: {total:.2f} % of {report['totals']['num_statements']:,} lines and their branches"]
    worst = sorted(files, key=lambda path: -_missing(files[path]))[:SHOWN]
    summary_lines += [
        f"  {path}: {_missing(files[path])} missing, {_places(files[path])}" for path in worst if _missing(files[path])
    ]
    wrong = [f"all: {total:.2f} % is below {ALL:.0f} %"] if total < ALL else []
    for name in WHOLE:
        own = [path for path in files if path.startswith(name)]
        wrong += [] if own else [f"{name} was not measured"]
        wrong += [f"{path} is not whole: {_places(files[path])}" for path in own if _missing(files[path])]
    return summary_lines, wrong


def _missing(file: dict[str, Any]) -> int:
    summary = file["summary"]
    return int(summary["missing_lines"] + summary["missing_branches"])


def _places(file: dict[str, Any]) -> str:
    lines = ", ".join(map(str, file["missing_lines"]))
    branches = ", ".join(f"{start}->{end}" for start, end in file["missing_branches"])
    return "; ".join(part for part in (lines and f"lines {lines}", branches and f"branches {branches}") if part)


def main() -> int:
    """Print the summary; fail if something is below its mark."""
    summary_lines, wrong = judged(json.loads(Path(sys.argv[1]).read_text("utf-8")))
    print(*summary_lines, sep="\n")
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
