"""What `kinfold reproduce` tells: each exhibit with its verdict, ours beside theirs, and why where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kinfold.cli.terminal import digits, out
from kinfold.errors import plural
from kinfold.reproduction.cell_verdicts import number, shown
from kinfold.reproduction.expectation import NO_NUMBERS

if TYPE_CHECKING:
    from kinfold.reproduction import Reproduced, Reproduction
    from kinfold.reproduction.cell_verdicts import Comparandum

MOST_CELLS = 16  # of an exhibit; of more only those that do not match are shown, and of these so many
STYLES = {"match": "green", "close": "cyan", "differs": "yellow", "not-computable": "dim"}


def tell(found: Reproduction) -> None:
    """Print every paper, and what came of it all."""
    for paper, exhibits in found.papers:
        out.print()
        out.print(Text(f"{paper.number}  {paper.reference}", style="bold"), soft_wrap=True)
        for exhibit in exhibits:
            _tell_exhibit(exhibit)
    out.print()
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in found.counts.items() if count)
    out.print(f"{counts}; {found.seconds:.1f} s")
    if found.failed:
        out.print(Text(f"{plural(found.failed, 'value')} should have come out and did not", style="bold red"))
    elif found.counts["match"]:
        out.print(Text("all that should match does", style="bold green"))


def _tell_exhibit(found: Reproduced) -> None:
    exhibit, verdict = found.exhibit, found.verdict
    out.print()
    counts = ", ".join(f"{count:,} {name}" for name, count in found.counts.items())
    head = Text.assemble((exhibit.place, "bold"), f"  {exhibit.title}: ", (counts, STYLES[verdict]))
    out.print(head, soft_wrap=True)
    if exhibit.source == NO_NUMBERS:
        out.print(Text(f"  {found.cells[0].reason}", style="dim"), soft_wrap=True)
        return
    out.print(Text(f"  data: {exhibit.source}", style="dim"), soft_wrap=True)
    if len(found.cells) > MOST_CELLS and (grid := _grid(found.cells)) is not None:
        out.print(Padding(grid, (0, 0, 0, 2), expand=False))
    else:
        _tell_cells(found.cells)
    for text in (*_reasons(found.cells), exhibit.reading, found.worked.note):
        if text:
            out.print(Text(f"  {text}", style="dim"), soft_wrap=True)


def _tell_cells(cells: Sequence[Comparandum]) -> None:
    """Print cells one below the other; of many only those that do not match."""
    shown_ = _worth_showing(cells)
    if shown_:
        out.print(Padding(_table(shown_), (0, 0, 0, 2), expand=False))
    told = len(cells) if len(cells) <= MOST_CELLS else sum(cell.verdict != "match" for cell in cells)
    if told > len(shown_):
        out.print(Text(f"  and {told - len(shown_):,} more: --json has all", style="dim"))


def _worth_showing(cells: Sequence[Comparandum]) -> list[Comparandum]:
    """Return all cells of a small exhibit, and of a large one those that do not match, failures first."""
    if len(cells) <= MOST_CELLS:
        return list(cells)
    apart = [cell for cell in cells if cell.verdict != "match"]
    return sorted(apart, key=lambda cell: not cell.failed)[:MOST_CELLS]


def _grid(cells: Sequence[Comparandum]) -> Table | None:
    """Return the cells as the paper sets them, ours with theirs behind where they differ, if there is room for it."""
    columns = list(dict.fromkeys(cell.column for cell in cells))
    places = {(cell.row, cell.column): cell for cell in cells}
    table = Table(box=None, padding=(0, 2, 0, 0), title="ours (theirs)", title_justify="left", title_style="dim")
    table.add_column("")
    for column in columns:
        table.add_column(Text(column), justify="right", no_wrap=True)
    for row in dict.fromkeys(cell.row for cell in cells):
        table.add_row(Text(row), *(_both(places.get((row, column))) for column in columns))
    wanted = out.measure(table).maximum + 2
    return table if len(columns) > 1 and wanted <= out.width else None


def _both(cell: Comparandum | None) -> Text:
    if cell is None:
        return Text("")
    apart = "" if cell.verdict == "match" else f" ({cell.theirs})"
    return Text(_ours(cell) + apart, style="bold red" if cell.failed else STYLES[cell.verdict])


def _table(cells: Sequence[Comparandum]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("", max_width=60)
    for name in ("theirs", "ours", "difference"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for cell in cells:
        what = cell.row if cell.column in ("value", "tuple") else f"{cell.row}: {cell.column}"
        mark = Text("FAILS", style="bold red") if cell.failed else Text(cell.verdict, style=STYLES[cell.verdict])
        table.add_row(Text(what), Text(cell.theirs), Text(_ours(cell)), _difference(cell), mark)
    return table


def _ours(cell: Comparandum) -> str:
    if cell.ours is None:
        return "-"
    if cell.verdict != "match" and number(cell.theirs) is not None and isinstance(cell.ours, int | float):
        return digits(cell.ours)
    return shown(cell.ours, cell.theirs)


def _difference(cell: Comparandum) -> str:
    return "" if cell.difference is None or cell.verdict == "match" else f"{cell.difference:+.4g}"


def _reasons(cells: Sequence[Comparandum]) -> list[str]:
    """Return why cells do not match, each reason once."""
    return list(dict.fromkeys(cell.reason for cell in cells if cell.verdict != "match" and cell.reason))
