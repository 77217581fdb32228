"""The engine as runs of small tables have it: they share a database, for starting one takes longer than a test."""

from kinfold.tables.resources import Resources

SMALL = Resources(small=True)
