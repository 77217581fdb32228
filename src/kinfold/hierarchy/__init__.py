"""Value generalization hierarchies, their builders and their ARX CSV form."""

from kinfold.hierarchy.arx import read_arx, write_arx
from kinfold.hierarchy.builders import by_dates, by_intervals, by_mask, by_rows, by_tree
from kinfold.hierarchy.hierarchy import TOP, Hierarchy

__all__ = ["TOP", "Hierarchy", "by_dates", "by_intervals", "by_mask", "by_rows", "by_tree", "read_arx", "write_arx"]
