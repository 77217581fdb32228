"""Files of statistical packages: Stata, SPSS and SAS, with their value labels as categories and their missing values.

A column all of whose values have labels, no two alike, becomes these labels, in the order of the codes; the order
means something only where the file says so (SPSS's ordinal). Where some values have none they are numbers, as most
of them are. User-missing values are missing. Whole numbers held as doubles are whole numbers. Numbers that a format
makes dates, times or periods are read as these (see `statistics_clocks`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kinfold.errors import DataError, PolicyError, Problem, install_extra
from kinfold.rows.engines.statistics_clocks import Inexact, read_counts, reader_of

READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
PACKAGES = {".dta": "Stata", ".sas7bdat": "SAS", ".xpt": "SAS"}  # the others are of SPSS
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
        columns, about = read(str(path), output_format="dict", disable_datetime_conversion=True, **options)
        arrays = {name: _column(values) for name, values in columns.items()}
    except MemoryError:
        raise
    except Exception:  # whatever a stranger's file makes the reader stumble over: its words may quote a value
        raise DataError(
            f"'{path.name}' cannot be read", fix="check that it is whole and what its ending says"
        ) from None
    return _described(arrays, about, path)


def _described(arrays: Mapping[str, pa.Array], about: Any, path: Path) -> pa.Table:
    """Return columns with their labels, or as what their formats say."""
    package, problems, found = PACKAGES.get(path.suffix.lower(), "SPSS"), [], {}
    for name, column in arrays.items():
        labels, ordered = about.variable_value_labels.get(name, {}), about.variable_measure.get(name) == "ordinal"
        found[name] = _labelled(column, labels, ordered=ordered)
        reader = reader_of(package, about.original_variable_types.get(name) or "")
        if reader is None or not (pa.types.is_integer(found[name].type) or pa.types.is_floating(found[name].type)):
            continue
        try:
            found[name] = read_counts(column, reader)
        except Inexact as error:
            what, fix = error.args
            problems.append(Problem(f"column '{name}' of '{path.name}' {what}", fix))
    if problems:
        raise DataError(problems)
    return pa.table(found)


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
