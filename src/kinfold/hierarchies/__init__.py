"""Value generalization hierarchies, their builders and ARX's CSV form."""

from kinfold.hierarchies.hierarchy import (
    TOP,
    Hierarchy,
    build_from_dates,
    build_from_intervals,
    build_from_mask,
    build_from_rows,
    build_from_tree,
    read_arx,
    write_arx,
)

__all__ = [
    "TOP", "Hierarchy", "build_from_dates", "build_from_intervals", "build_from_mask", "build_from_rows",
    "build_from_tree", "read_arx", "write_arx",
]  # fmt: skip
