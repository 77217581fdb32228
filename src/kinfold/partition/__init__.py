"""Partitioners: records in, cluster labels out. Every cluster has at least k records."""

from kinfold.partition.mdav import mdav

__all__ = ["mdav"]
