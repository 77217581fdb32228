"""Partitioners: records in, a class label for each out. Every class has at least k records."""

from kinfold.partition.approximate import approximate
from kinfold.partition.k_first import k_first
from kinfold.partition.mdav import mdav
from kinfold.partition.refine import refine
from kinfold.partition.t_first import t_first
from kinfold.partition.t_merge import t_merge
from kinfold.partition.univariate import univariate
from kinfold.partition.vmdav import vmdav

__all__ = ["approximate", "k_first", "mdav", "refine", "t_first", "t_merge", "univariate", "vmdav"]
