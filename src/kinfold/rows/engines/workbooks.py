"""Workbooks: a sheet of an Excel file as text, cell by cell, and which of its columns hold numbers by their cells.

The first row that holds something is the header, unless another one is declared, or none. Rows without any value are no
records, and columns without a name or a value are none. Formulas are read as the values that were saved with them.
Texts are read as those of a CSV file are, so that a number stored as text is a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kinfold.errors import DataError, KinfoldError, PolicyError
from kinfold.rows.engines.dialect import numbered
from kinfold.rows.engines.unpacking import check_workbook
from kinfold.rows.source_form import Form

OLE = bytes.fromhex("d0cf11e0a1b11ae1")  # of Excel before 2007, and of what a password protects
MIDNIGHT = " 00:00:00"
INSTALL = "install what reads Excel files: pip install 'kinfold[excel]'"


@dataclass(frozen=True)
class SheetCells:
    """The header and the cells of a sheet, as text; `numbers` are the columns whose cells are numbers."""

    title: str
    header: tuple[str, ...]
    cells: pa.Table
    numbers: tuple[int, ...]


def read_sheet(path: Path, form: Form) -> SheetCells:
    """Read one sheet of a workbook: the one that is named or numbered, or the only one that holds something."""
    with _readable(path):
        book = _opened(path)
        return _read(book, _chosen(book, form.sheet, path.name), form, path.name)


def _read(book: Any, title: str, form: Form, name: str) -> SheetCells:
    cells = _cells(book.load_sheet(title, header_row=None, skip_rows=0, dtypes="string"))  # by the rows of the sheet
    filled = _any_value(cells)
    first = filled.slice(form.above).index(True).as_py() + form.above  # rows above it are empty, or left out
    if first < form.above or (form.header and first > form.above):
        what = f"row {form.header} of" if form.header else f"below row {form.above}" if form.above else ""
        raise DataError(f"{what} the sheet '{title}' of '{name}' is empty".strip(), fix="name another sheet: --sheet")
    header = [column[first].as_py() or "" for column in cells.columns]
    start = first if form.header == 0 else first + 1
    guessed = book.load_sheet(title, header_row=None, skip_rows=start, schema_sample_rows=None).available_columns()
    kinds = {each.index: each.dtype for each in guessed}
    below = cells.slice(start).filter(filled.slice(start))
    kept = [i for i, label in enumerate(header) if label.strip() or below.column(i).null_count < below.num_rows]
    columns = [_without_midnight(below.column(i)) if kinds.get(i) == "datetime" else below.column(i) for i in kept]
    table = pa.table(columns, names=[str(i) for i in range(len(kept))])
    numbers = tuple(place for place, i in enumerate(kept) if kinds.get(i) in ("float", "int"))
    names = numbered(len(kept)) if form.header == 0 else tuple(header[i] for i in kept)
    return SheetCells(title, names, table, numbers)


def _opened(path: Path) -> Any:
    try:
        import fastexcel
    except ImportError:
        raise PolicyError(f"'{path.name}' is an Excel file, and nothing here reads it", fix=INSTALL) from None
    with path.open("rb") as file:
        if file.read(len(OLE)) == OLE:
            what = f"'{path.name}' is protected by a password, or an old Excel file under a new ending"
            raise DataError(what, fix="save it as .xlsx without a password")
    check_workbook(path)
    return fastexcel.read_excel(str(path))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Tell whatever a reader stumbles over in a stranger's file as one thing: its words may quote a cell."""
    try:
        yield
    except (KinfoldError, MemoryError, OSError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of the reader's language
            raise
        raise DataError(f"'{path.name}' cannot be read as an Excel file", fix="check that it is whole") from None


def _chosen(book: Any, sheet: str | int | None, name: str) -> str:
    titles: Sequence[str] = book.sheet_names
    listed = ", ".join(f"'{title}'" for title in titles)  # a number is a place, unless a sheet has it as its name
    if isinstance(sheet, int) and str(sheet) not in titles:
        if sheet <= len(titles):
            return titles[sheet - 1]
        raise PolicyError(f"'{name}' has no sheet {sheet}: it has {len(titles)}", fix=f"its sheets are {listed}")
    if sheet is not None:
        if str(sheet) in titles:
            return str(sheet)
        raise PolicyError(f"'{name}' has no sheet '{sheet}'", fix=f"its sheets are {listed}")
    filled = [title for title in titles if book.load_sheet(title, header_row=None, n_rows=1, dtypes="string").width]
    if len(filled) > 1:
        what = f"'{name}' has {len(filled)} sheets, and none is named"
        raise PolicyError(what, fix=f"say source.sheet (--sheet), one of {listed}")
    return filled[0] if filled else titles[0]


def _cells(sheet: Any) -> pa.Table:
    table = pa.Table.from_batches([sheet.to_arrow()])
    columns = [pc.if_else(pc.equal(column, ""), None, column) for column in table.columns]
    return pa.table(columns, names=[str(i) for i in range(len(columns))])


def _any_value(cells: pa.Table) -> Any:
    found = pa.array([False] * cells.num_rows, pa.bool_())
    for column in cells.columns:
        found = pc.or_(found, pc.is_valid(column.combine_chunks()))
    return found


def _without_midnight(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return days as days: a workbook knows moments only."""
    if not pc.all(pc.ends_with(column, MIDNIGHT)).as_py():
        return column
    return pc.utf8_slice_codeunits(column, 0, -len(MIDNIGHT))
