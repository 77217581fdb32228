"""Workbooks: a sheet of an Excel file as text, cell by cell, and which of its columns hold numbers by their cells.

The first row that holds something is the header, unless another one is declared, or none. Rows without any value are
no records, and columns without a name or a value are none. Formulas are read as the values that were saved with them.
Texts are read as those of a CSV file are, so that a number stored as text is a number. A column is refused where some
of its cells have no exact reading; errors, hidden and merged cells are noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kinfold.errors import DataError, KinfoldError, PolicyError, Problem, plural
from kinfold.rows.engines.dialect import numbered
from kinfold.rows.engines.unpacking import check_workbook
from kinfold.rows.engines.workbook_archive import Workbook, open_workbook
from kinfold.rows.engines.workbook_cells import ColumnCells, SheetScan
from kinfold.rows.source_form import Form

OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # of Excel before 2007, and of what a password protects
MIDNIGHT = " 00:00:00"
RANGES = 5  # of rows that a note numbers


@dataclass(frozen=True)
class SheetCells:
    """The header and the cells of a sheet, as text; `numbers` are the columns with cells that are numbers."""

    title: str
    header: tuple[str, ...]
    cells: pa.Table
    numbers: tuple[int, ...]
    notes: tuple[str, ...] = ()


def read_sheet(path: Path, form: Form) -> SheetCells:
    """Read one sheet of a workbook: the one that is named or numbered, or the only one that holds something."""
    with _readable(path):
        book = _opened(path)
        title = _chosen(book, form.sheet, path.name)
        return _read(SheetScan(book, form.above).whole(title), title, form, path.name)


def _read(scan: SheetScan, title: str, form: Form, name: str) -> SheetCells:
    rows = np.unique(
        np.concatenate([np.array(column.rows, int) for column in scan.columns.values()] or [np.empty(0, int)])
    )
    if not len(rows) or (form.header and rows[0] != form.header):
        what = f"row {form.header} of" if form.header else f"below row {form.above}" if form.above else ""
        raise DataError(f"{what} the sheet '{title}' of '{name}' is empty".strip(), fix="name another sheet: --sheet")
    columns = dict(sorted(scan.columns.items()))
    texts = {place: _column(column, rows) for place, column in columns.items()}
    start = 0 if form.header == 0 else 1  # the first row of the records
    header = {place: (column[0].as_py() or "") if start else "" for place, column in texts.items()}
    kept = [place for place in columns if header[place].strip() or _holds_more(columns[place], texts[place], start)]
    names = tuple(header[place] for place in kept) if start else numbered(len(kept))
    about = {label: columns[place] for label, place in zip(names, kept, strict=True)}
    _refuse_inexact(about, name)
    cells = [_as_days(texts[place].slice(start), columns[place]) for place in kept]
    above = int(rows[0]) if start else 0  # the row of the header
    numbers = tuple(i for i, place in enumerate(kept) if columns[place].last_number > above)
    notes = (*_cell_notes(about), *_unseen(scan, above, about), *_hidden_sheets(scan.book, title))
    return SheetCells(title, names, pa.table(cells, names=list(map(str, kept))), numbers, notes)


def _column(column: ColumnCells, rows: np.ndarray) -> pa.Array:
    """Return a column as text, one for each row that holds something."""
    values = np.full(len(rows), None, object)
    values[np.searchsorted(rows, column.rows)] = column.texts
    return pa.array(values, pa.string())


def _holds_more(column: ColumnCells, texts: pa.Array, start: int) -> bool:
    """Whether there is more than a header, or was to be."""
    return bool(column.uncomputed or column.errors or texts.slice(start).null_count < len(texts) - start)


def _as_days(texts: pa.Array, column: ColumnCells) -> pa.Array:
    """Return days as days: a workbook knows moments only."""
    at_midnight = pc.ends_with(texts, MIDNIGHT)
    if not column.moments or pc.sum(at_midnight).as_py() != column.moments:
        return texts
    return pc.if_else(at_midnight, pc.utf8_slice_codeunits(texts, 0, -len(MIDNIGHT)), texts)


def _refuse_inexact(about: Mapping[str, ColumnCells], name: str) -> None:
    """Refuse columns some of whose cells have no value, or one that is not what a spreadsheet shows."""
    problems = []
    for column, cells in about.items():
        found = [
            (cells.uncomputed, "formula without a computed value", "compute and save them in a spreadsheet program"),
            (cells.durations, "duration", "turn them into a number of hours or days, or into text"),
            (cells.long, "number of more than 15 digits", "format the cells as text: their other digits are lost"),
            (cells.impossible, "number formatted as a date that is none", "correct or empty these cells"),
            (cells.times if cells.moments else 0, "time of a day beside dates", "make two columns of it"),
        ]
        problems += [
            Problem(f"column '{column}' of '{name}' holds {plural(*_counted(many, what))}", fix)
            for many, what, fix in found
            if many
        ]
    if problems:
        raise DataError(problems)


def _counted(many: int, what: str) -> tuple[int, str, str]:
    first, _, rest = what.partition(" ")
    return many, what, f"{first}s {rest}".strip()


def _cell_notes(about: Mapping[str, ColumnCells]) -> Iterator[str]:
    for column, cells in about.items():
        if cells.errors:
            held = plural(cells.errors, "cell holds", "cells hold")
            yield f"'{column}': {held} an error, such as #N/A or #DIV/0!; read as missing"
        if cells.rounded:
            held = plural(cells.rounded, "number has", "numbers have")
            yield f"'{column}': {held} more than 15 digits; a spreadsheet rounds such numbers when they are typed"


def _unseen(scan: SheetScan, header: int, about: Mapping[str, ColumnCells]) -> Iterator[str]:
    hidden = [column for column, cells in about.items() if cells.hidden]
    if hidden:
        listed = ", ".join(f"'{column}'" for column in hidden)
        yield f"hidden in the workbook, and read like the others: {plural(len(hidden), 'column')} ({listed})"
    if scan.hidden_rows:
        many = plural(len(scan.hidden_rows), "row")
        yield f"hidden in the workbook, and read like the others: {many} ({in_ranges(scan.hidden_rows)})"
    if merged := sum(last > header for last in scan.merged):
        cells = plural(merged, "range of merged cells", "ranges of merged cells")
        yield f"the sheet has {cells}: the first cell of each has its value, the others are read as missing"


def _hidden_sheets(book: Workbook, title: str) -> Iterator[str]:
    for hidden in book.hidden:
        read = "was read" if hidden == title else "was not read"
        yield f"the sheet '{hidden}' is hidden in the workbook, and {read}"


def in_ranges(rows: Sequence[int]) -> str:
    """Return the numbers of rows as ranges; the first of many.

    >>> in_ranges([3, 4, 5, 9])
    '3-5, 9'
    """
    ranges: list[list[int]] = []
    for row in rows:
        if ranges and ranges[-1][1] == row - 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    shown = [str(low) if low == high else f"{low}-{high}" for low, high in ranges[:RANGES]]
    return ", ".join([*shown, "..."] if len(ranges) > RANGES else shown)


def _opened(path: Path) -> Workbook:
    with path.open("rb") as file:
        if file.read(len(OLE)) == OLE:
            what = f"'{path.name}' is protected by a password, or an old Excel file under a new ending"
            raise DataError(what, fix="save it as .xlsx without a password")
    check_workbook(path)
    return open_workbook(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Report whatever is wrong inside a file as one thing: the words of an exception may quote a cell."""
    try:
        yield
    except (KinfoldError, MemoryError, OSError):
        raise
    except Exception:
        raise DataError(f"'{path.name}' cannot be read as an Excel file", fix="check that it is whole") from None


def _chosen(book: Workbook, sheet: str | int | None, name: str) -> str:
    titles = list(book.sheets)  # a number is a place, unless a sheet has it as its name
    listed = ", ".join(f"'{title}'{' (hidden)' if title in book.hidden else ''}" for title in titles)
    if isinstance(sheet, int) and str(sheet) not in titles:
        if sheet <= len(titles):
            return titles[sheet - 1]
        raise PolicyError(f"'{name}' has no sheet {sheet}: it has {len(titles)}", fix=f"its sheets are {listed}")
    if sheet is not None:
        if str(sheet) in titles:
            return str(sheet)
        raise PolicyError(f"'{name}' has no sheet '{sheet}'", fix=f"its sheets are {listed}")
    filled = [title for title in titles if len(titles) == 1 or not SheetScan(book).is_empty(title)]
    if len(filled) > 1:
        what = f"'{name}' has {len(filled)} sheets, and none is named"
        raise PolicyError(what, fix=f"say source.sheet (--sheet), one of {listed}")
    return filled[0] if filled else titles[0]
