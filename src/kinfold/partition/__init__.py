"""Partitioners: records in, a class label for each out. Every class has at least k records."""

from kinfold.partition.approximate import approximate
from kinfold.partition.bounds import lower_bound
from kinfold.partition.exact import exact
from kinfold.partition.k_first import k_first
from kinfold.partition.mdav import mdav
from kinfold.partition.refine import refine
from kinfold.partition.refine_under import refine_under
from kinfold.partition.repair import Repair, repair
from kinfold.partition.requirement import Requirement
from kinfold.partition.t_first import t_first
from kinfold.partition.t_merge import t_merge
from kinfold.partition.univariate import univariate
from kinfold.partition.vmdav import vmdav

__all__ = [
    "Repair",
    "Requirement",
    "approximate",
    "exact",
    "k_first",
    "lower_bound",
    "mdav",
    "refine",
    "refine_under",
    "repair",
    "t_first",
    "t_merge",
    "univariate",
    "vmdav",
]
