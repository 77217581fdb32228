"""The totals of `kinfold reproduce` by cause, at the top of docs/reproduce.md.

python -m tools.papers    computes everything (some minutes; KINFOLD_DATA names the folder of the public files)
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from kinfold.papers import PAPERS, reproduce

PAGE = Path(__file__).parents[1] / "docs" / "reproduce.md"
TABLE = re.compile(r"(?<=<!-- totals: make papers -->\n).*?(?=<!-- end of totals -->)", re.DOTALL)


def totals(causes: Mapping[str, Mapping[str, int]]) -> str:
    """Return the counts by cause and paper as a table, with a line and a column of sums."""
    sums = {number: sum(counts[number] for counts in causes.values()) for number in PAPERS}
    rows: list[tuple[str, ...]] = [("", *PAPERS, "all")]
    rows += [(name, *map(str, (*counts.values(), sum(counts.values())))) for name, counts in causes.items()]
    rows += [("all values", *map(str, (*sums.values(), sum(sums.values()))))]
    rows.insert(1, ("---", *["---:"] * (len(PAPERS) + 1)))
    return "\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n"


def read(page: Path = PAGE) -> dict[str, dict[str, int]]:
    """Return the counts that the page has."""
    table = TABLE.search(page.read_text("utf-8"))
    if table is None:
        raise ValueError(f"{page.name} has no table of totals")
    rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table[0].strip().splitlines()]
    return {name: dict(zip((*PAPERS, "all"), map(int, cells), strict=True)) for name, *cells in rows[2:]}


def main() -> None:
    """Write the table."""
    result = reproduce(data=Path(os.environ["KINFOLD_DATA"]))
    text = PAGE.read_text("utf-8")
    PAGE.write_text(TABLE.sub(lambda _: totals(result.causes), text), "utf-8")


if __name__ == "__main__":
    main()
