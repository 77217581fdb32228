"""The partitioners as array functions, under the names that are promised: `kinfold.partition.mdav(x, k)`."""

from kinfold.methods.partition import (
    approximate,
    exact,
    k_first,
    lower_bound,
    mdav,
    refine,
    refine_under,
    repair,
    t_first,
    t_merge,
    univariate,
    vmdav,
)

__all__ = [
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
