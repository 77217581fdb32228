"""Excel workbooks: one sheet as a table of text, with notes on errors, hidden and merged cells.

The header is the first row that is not empty, unless another row or none is declared. Empty rows are not records, and
columns without a name and values are left out. A formula is read as the value that was saved with it. Texts are treated
like those of a CSV file: a number stored as text is a number. A column is refused if a cell has no exact value.
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
from kinfold.tables.readers.csv_files import number_columns
from kinfold.tables.readers.files import check_workbook_size
from kinfold.tables.readers.layout import SAMPLED_LINES, Line, check_layout, name_first_column
from kinfold.tables.readers.workbook_xml import ColumnCells, SheetScan, Workbook, open_workbook
from kinfold.tables.source_form import SourceForm

OLE_SIGNATURE = bytes.fromhex("d0cf11e0a1b11ae1")  # of Excel before 2007, and of files with a password
MIDNIGHT = " 00:00:00"
MAX_RANGES_NAMED = 5  # of rows, in a note


@dataclass(frozen=True)
class SheetCells:
    """The header and the cells of a sheet as text; `numbers` are the columns with numeric cells, but no codes."""

    title: str
    header: tuple[str, ...]
    cells: pa.Table
    numbers: tuple[int, ...]
    notes: tuple[str, ...] = ()


def read_sheet(path: Path, form: SourceForm) -> SheetCells:
    """Read one sheet of a workbook: the named or numbered one, or the only one that is not empty."""
    with _report_unreadable(path):
        with path.open("rb") as file:
            if file.read(len(OLE_SIGNATURE)) == OLE_SIGNATURE:
                what = f"'{path.name}' has a password, or is an old Excel file with a new ending"
                raise DataError(what, fix="save it as .xlsx without a password")
        check_workbook_size(path)
        book = open_workbook(path)
        title = _choose_sheet(book, form.sheet, path.name)
        return _make_cells(SheetScan(book, form.lines_above).scan(title), title, form, path.name)


def _make_cells(scan: SheetScan, title: str, form: SourceForm, name: str) -> SheetCells:
    rows = np.unique(np.concatenate([np.empty(0, int), *(column.rows for column in scan.columns.values())])).astype(int)
    if not len(rows) or (form.header and rows[0] != form.header):
        part = f"row {form.header} of " if form.header else f"below row {form.lines_above} " if form.lines_above else ""
        raise DataError(f"{part}the sheet '{title}' of '{name}' is empty", fix="name another sheet: --sheet")
    columns = dict(sorted(scan.columns.items()))
    texts = {}
    for i, column in columns.items():  # a text, or null, for each row that is not empty
        values = np.full(len(rows), None, object)
        values[np.searchsorted(rows, column.rows)] = column.texts
        texts[i] = pa.array(values, pa.string())
    start = 0 if form.header == 0 else 1  # the first record
    if form.header is None and not form.skip:
        check_layout(
            [
                Line(int(row), [c[i].as_py() or "" for c in texts.values()])
                for i, row in enumerate(rows[:SAMPLED_LINES])
            ],
            name,
            "row",
        )
    if form.has_lines_below:
        start = int(np.searchsorted(rows, form.skip, side="right"))
    header = {i: (column[0].as_py() or "") if start else "" for i, column in texts.items()}
    kept = [
        i
        for i, column in columns.items()
        if header[i].strip()
        or column.uncomputed
        or column.errors
        or texts[i].slice(start).null_count < len(rows) - start
    ]
    names = tuple(name_first_column([header[i] for i in kept])) if start else number_columns(len(kept))
    by_name = {label: columns[i] for label, i in zip(names, kept, strict=True)}
    _refuse_inexact(by_name, name)
    cells = [_trim_midnight(texts[i].slice(start), columns[i]) for i in kept]
    header_row = int(rows[0]) if start else 0
    numbers = tuple(p for p, i in enumerate(kept) if columns[i].last_number > header_row and not columns[i].codes)
    notes = tuple(_list_notes(scan, title, header_row, by_name))
    return SheetCells(title, names, pa.table(cells, names=list(map(str, kept))), numbers, notes)


def _trim_midnight(texts: pa.Array, column: ColumnCells) -> pa.Array:
    """Drop the time of a column of whole days: a workbook stores timestamps only."""
    at_midnight = pc.ends_with(texts, MIDNIGHT)
    if not column.moments or pc.sum(at_midnight).as_py() != column.moments:
        return texts
    return pc.if_else(at_midnight, pc.utf8_slice_codeunits(texts, 0, -len(MIDNIGHT)), texts)


def _refuse_inexact(columns: Mapping[str, ColumnCells], name: str) -> None:
    """Refuse columns with cells that have no value, or not the value that the spreadsheet shows."""
    problems, compute = [], "compute and save them in a spreadsheet program"
    for column, cells in columns.items():
        counts = [
            (cells.uncomputed, "formula", " without a computed value", compute),
            (cells.durations, "duration", "", "convert them to a number of hours or days, or to text"),
            (cells.long, "number", " of more than 15 digits", "format the cells as text: further digits are lost"),
            (cells.impossible, "number", " with a date format that is not a date", "correct or clear these cells"),
            (cells.times if cells.moments else 0, "time", " of day among dates", "split the column into two"),
        ]
        problems += [
            Problem(f"column '{column}' of '{name}' holds {plural(count, noun)}{detail}", fix)
            for count, noun, detail, fix in counts
            if count
        ]
    if problems:
        raise DataError(problems)


def _list_notes(scan: SheetScan, title: str, header_row: int, columns: Mapping[str, ColumnCells]) -> Iterator[str]:
    for column, cells in columns.items():
        if cells.errors:
            hold = plural(cells.errors, "cell holds", "cells hold")
            yield f"'{column}': {hold} an error, such as #N/A or #DIV/0!; read as missing"
        if cells.rounded:
            have = plural(cells.rounded, "number has", "numbers have")
            yield f"'{column}': {have} more than 15 digits; a spreadsheet rounds such numbers on entry"
    if hidden := [f"'{column}'" for column, cells in columns.items() if cells.hidden]:
        listed = f"{plural(len(hidden), 'column')} ({', '.join(hidden)})"
        yield f"hidden in the workbook, and read like the others: {listed}"
    if scan.hidden_rows:
        rows = plural(len(scan.hidden_rows), "row")
        yield f"hidden in the workbook, and read like the others: {rows} ({format_ranges(scan.hidden_rows)})"
    if merged := sum(last > header_row for last in scan.merged):
        ranges = plural(merged, "range of merged cells", "ranges of merged cells")
        yield f"the sheet has {ranges}: the first cell of each has its value, the others are read as missing"
    for sheet in scan.book.hidden:
        read = "was read" if sheet == title else "was not read"
        yield f"the sheet '{sheet}' is hidden in the workbook, and {read}"


def format_ranges(rows: Sequence[int]) -> str:
    """Return row numbers as ranges; only the first ones of many.

    >>> format_ranges([3, 4, 5, 9])
    '3-5, 9'
    """
    ranges: list[list[int]] = []
    for row in rows:
        if ranges and ranges[-1][1] == row - 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    texts = [str(low) if low == high else f"{low}-{high}" for low, high in ranges[:MAX_RANGES_NAMED]]
    return ", ".join([*texts, "..."] if len(ranges) > MAX_RANGES_NAMED else texts)


@contextmanager
def _report_unreadable(path: Path) -> Iterator[None]:
    """Raise the same error for all damage of a file: the message of an exception may quote a cell."""
    try:
        yield
    except (KinfoldError, MemoryError, OSError):
        raise
    except Exception:
        what = f"'{path.name}' cannot be read as an Excel file"
        raise DataError(what, fix="check that the file is complete") from None


def _choose_sheet(book: Workbook, sheet: str | int | None, name: str) -> str:
    titles = list(book.sheets)  # a number is a position, unless it is the name of a sheet
    listed = ", ".join(f"'{title}'{' (hidden)' if title in book.hidden else ''}" for title in titles)
    if isinstance(sheet, int) and str(sheet) not in titles:
        if sheet <= len(titles):
            return titles[sheet - 1]
        raise PolicyError(f"'{name}' has no sheet {sheet}: it has {len(titles)} sheets", fix=f"its sheets are {listed}")
    if sheet is not None:
        if str(sheet) in titles:
            return str(sheet)
        raise PolicyError(f"'{name}' has no sheet '{sheet}'", fix=f"its sheets are {listed}")
    filled = [title for title in titles if len(titles) == 1 or not SheetScan(book).is_empty(title)]
    if len(filled) > 1:
        what = f"'{name}' has {len(filled)} sheets with values"
        fix = f"name one with source.sheet (--sheet): {listed}"
        raise PolicyError(Problem(what, fix, tuple(filled), ("source", "sheet")))
    return filled[0] if filled else titles[0]
