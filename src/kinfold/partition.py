"""The partitioners as array functions, under the names that are promised: `kinfold.partition.mdav(x, k)`."""

from kinfold.methods.partition.approximate import approximate
from kinfold.methods.partition.exact import exact, lower_bound
from kinfold.methods.partition.k_first import k_first
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.refine import refine, refine_under
from kinfold.methods.partition.repair import repair
from kinfold.methods.partition.t_first import t_first
from kinfold.methods.partition.t_merge import t_merge
from kinfold.methods.partition.univariate import univariate
from kinfold.methods.partition.vmdav import vmdav

__all__ = [
    "approximate", "exact", "k_first", "lower_bound", "mdav", "refine", "refine_under", "repair", "t_first",
    "t_merge", "univariate", "vmdav",
]  # fmt: skip
