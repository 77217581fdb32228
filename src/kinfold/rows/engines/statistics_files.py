"""Files of statistical packages: Stata, SPSS and SAS, with their value labels as categories and their missing values.

A column all of whose values have labels, no two alike, becomes these labels, in the order of the codes; the order
means something only where the file says so (SPSS's ordinal). Where some values have none they are numbers, as most
of them are. User-missing values are missing. Whole numbers held as doubles are whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kinfold.errors import DataError, PolicyError, install_extra

READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
EXACT = 2.0**53  # doubles hold every whole number up to this
INSTALL = install_extra("stats", "install what reads them")


def read_statistics(path: Path, encoding: str | None) -> pa.Table:
    """Read a file of a statistical package; labelled columns are dictionaries."""
    try:
        import pyreadstat
    except ImportError:
        what = f"'{path.name}' is a file of a statistical package, and nothing here reads it"
        raise PolicyError(what, fix=INSTALL) from None
    read = getattr(pyreadstat, READERS[path.suffix.lower()])
    options = {"encoding": encoding} if encoding else {}
    try:
        columns, about = read(str(path), output_format="dict", **options)
        return _labelled_table(columns, about)
    except MemoryError:
        raise
    except Exception:  # whatever a stranger's file makes the reader stumble over: its words may quote a value
        raise DataError(
            f"'{path.name}' cannot be read", fix="check that it is whole and what its ending says"
        ) from None


def _labelled_table(columns: Mapping[str, Sequence[Any]], about: Any) -> pa.Table:
    labels, measures = about.variable_value_labels, about.variable_measure
    arrays = [
        _labelled(_column(values), labels.get(name, {}), ordered=measures.get(name) == "ordinal")
        for name, values in columns.items()
    ]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _column(values: Sequence[Any]) -> pa.Array:
    try:
        array = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # whose message quotes a value
        array = pa.array([None if value is None else str(value) for value in values])
    if not pa.types.is_floating(array.type):
        return array
    array = pc.if_else(pc.is_nan(array), None, array)
    whole = pc.and_(pc.equal(array, pc.round(array)), pc.less(pc.abs(array), EXACT))
    return array.cast(pa.int64()) if array.null_count < len(array) and pc.all(whole).as_py() else array


def _labelled(column: pa.Array, labels: Mapping[Any, str], *, ordered: bool) -> pa.Array:
    held = {value: labels.get(value) for value in column.unique().drop_null().to_pylist()}
    names = [held[value] for value in sorted(held, key=_by_code)]
    if not names or None in names or len({*names}) < len(names):
        return column
    place = {value: at for at, value in enumerate(sorted(held, key=_by_code))}
    codes = pa.array([None if value is None else place[value] for value in column.to_pylist()], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()), ordered=ordered)


def _by_code(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value
