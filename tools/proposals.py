"""Score the proposals of a profile on tables with a known truth: the table of docs/profile.md.

python -m tools.proposals            profiles every table of tests/proposals and writes the scores into the page
python -m tools.proposals --print    prints them, and writes nothing
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "profile.md"
BEGIN, END = "<!-- measured by make proposals -->\n\n", "\n\n<!-- end of what was measured -->"


def measure() -> str:
    """Return the scores as Markdown."""
    sys.path[:0] = [str(ROOT / "tests")]
    import kinfold
    from proposals.scores import format_scores, score_tables
    from proposals.tables import make_tables

    pairs = [(table, kinfold.profile(table.frame)) for table in make_tables()]
    questions = sum(len(profile.questions) for _, profile in pairs)
    return "\n".join(format_scores(score_tables(pairs), len(pairs), questions))


def main() -> None:
    """Write the scores into the page, or print them."""
    table = measure()
    if sys.argv[1:] == ["--print"]:
        print(table)
        return
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{table}{end}{after}", "utf-8")


if __name__ == "__main__":
    main()
