"""What `kinfold reproduce` prints: each exhibit of a paper with our values, the paper's values and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kinfold.cli.output import make_table
from kinfold.cli.terminal import format_number, out
from kinfold.errors import plural
from kinfold.papers.exhibits import NO_VALUES_SOURCE, format_as_printed, parse_number

if TYPE_CHECKING:
    from kinfold.papers import ExhibitOutcome, Reproduction
    from kinfold.papers.exhibits import CellVerdict

MAX_CELLS_SHOWN = 16  # a larger exhibit shows at most so many cells, those that do not match
VERDICT_STYLES = {"match": "green", "close": "cyan", "differs": "yellow", "not-computable": "dim"}


def print_reproduction(result: Reproduction) -> None:
    """Print the exhibits of every paper, and the totals."""
    for paper, exhibits in result.papers:
        out.print()
        out.print(Text(f"{paper.number}  {paper.reference}", style="bold"))
        for exhibit in exhibits:
            _print_exhibit(exhibit)
    out.print()
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in result.counts.items() if count)
    out.print(f"{counts}; {result.seconds:.1f} s")
    if result.failed:
        out.print(Text(f"{plural(result.failed, 'value')} should match and did not", style="bold red"))
    elif result.counts["match"]:
        out.print(Text("every value that should match does", style="bold green"))


def _print_exhibit(outcome: ExhibitOutcome) -> None:
    exhibit, verdict = outcome.exhibit, outcome.verdict
    out.print()
    counts = ", ".join(f"{count:,} {name}" for name, count in outcome.counts.items())
    head = Text.assemble((exhibit.place, "bold"), f"  {exhibit.title}: ", (counts, VERDICT_STYLES[verdict]))
    out.print(head)
    if exhibit.source == NO_VALUES_SOURCE:
        out.print(Text(f"  {outcome.cells[0].reason}", style="dim"))
        return
    out.print(Text(f"  data: {exhibit.source}", style="dim"))
    if len(outcome.cells) > MAX_CELLS_SHOWN and (grid := _build_grid(outcome.cells)) is not None:
        out.print(Padding(grid, (0, 0, 0, 2), expand=False))
    else:
        _print_cells(outcome.cells)
    reasons = dict.fromkeys(cell.reason for cell in outcome.cells if cell.verdict != "match")
    for text in (*reasons, exhibit.reading, outcome.result.note):
        if text:
            out.print(Text(f"  {text}", style="dim"))


def _print_cells(cells: Sequence[CellVerdict]) -> None:
    """Print all cells of a small exhibit, and those of a large one that do not match, failures first."""
    if len(cells) > MAX_CELLS_SHOWN:
        cells = sorted((cell for cell in cells if cell.verdict != "match"), key=lambda cell: not cell.failed)
    if cells:
        out.print(Padding(_build_table(cells[:MAX_CELLS_SHOWN]), (0, 0, 0, 2), expand=False))
    if len(cells) > MAX_CELLS_SHOWN:
        out.print(Text(f"  and {len(cells) - MAX_CELLS_SHOWN:,} more: --json has all", style="dim"))


def _build_grid(cells: Sequence[CellVerdict]) -> Table | None:
    """Return the cells in the layout of the paper, with the paper's value in brackets where it differs.

    Return None if the table is too wide for the terminal.
    """
    columns = list(dict.fromkeys(cell.column for cell in cells))
    by_place = {(cell.row, cell.column): cell for cell in cells}
    table = make_table("", right=columns, no_wrap=True)
    table.title, table.title_justify, table.title_style = "ours (theirs)", "left", "dim"
    for row in dict.fromkeys(cell.row for cell in cells):
        table.add_row(Text(row), *(_format_both(by_place.get((row, column))) for column in columns))
    return table if len(columns) > 1 and out.measure(table).maximum + 2 <= out.width else None


def _format_both(cell: CellVerdict | None) -> Text:
    if cell is None:
        return Text("")
    printed = "" if cell.verdict == "match" else f" ({cell.theirs})"
    return Text(_format_ours(cell) + printed, style="bold red" if cell.failed else VERDICT_STYLES[cell.verdict])


def _build_table(cells: Sequence[CellVerdict]) -> Table:
    table = make_table("", right=["theirs", "ours", "difference"])
    table.columns[0].max_width = 60
    table.add_column("verdict")
    for cell in cells:
        what = cell.row if cell.column in ("value", "tuple") else f"{cell.row}: {cell.column}"
        difference = "" if cell.difference is None or cell.verdict == "match" else f"{cell.difference:+.4g}"
        mark = ("FAILS", "bold red") if cell.failed else (cell.verdict, VERDICT_STYLES[cell.verdict])
        table.add_row(Text(what), Text(cell.theirs), Text(_format_ours(cell)), difference, Text(*mark))
    return table


def _format_ours(cell: CellVerdict) -> str:
    if cell.ours is None:
        return "-"
    if cell.verdict != "match" and parse_number(cell.theirs) is not None and isinstance(cell.ours, int | float):
        return format_number(cell.ours)
    return format_as_printed(cell.ours, cell.theirs)
