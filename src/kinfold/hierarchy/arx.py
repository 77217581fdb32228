"""ARX's hierarchy files: no header, `;` between labels, the value first, then ever coarser, `*` last."""

from __future__ import annotations

import csv
from pathlib import Path

from kinfold.errors import DataError, require_ordinary
from kinfold.hierarchy.hierarchy import Hierarchy


def read_arx(path: Path) -> Hierarchy:
    """Read a hierarchy; the separator is `;`, or `,` where the first line has none."""
    require_ordinary(path, DataError(f"hierarchy file '{path}' is no ordinary file", fix="name a CSV file"))
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            separator = ";" if ";" in first or "," not in first else ","
            rows = [row for row in csv.reader(file, delimiter=separator) if row]
    except OSError as error:
        raise DataError(f"hierarchy file '{path}': {error.strerror}", fix="check the path and its rights") from error
    except (ValueError, csv.Error) as error:
        raise DataError(f"hierarchy file '{path}' is not CSV text in UTF-8", fix="save it as UTF-8") from error
    return Hierarchy.of(rows, f"hierarchy file '{path.name}'")


def write_arx(hierarchy: Hierarchy, path: Path) -> None:
    """Write a hierarchy so that ARX reads it."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=";", lineterminator="\n").writerows(hierarchy.labels.tolist())
