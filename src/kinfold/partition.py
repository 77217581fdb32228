"""The partitioners as array functions, under the names that are promised: `kinfold.partition.mdav(x, k)`.

The types of their arguments are checked here, for users; methods that call each other do not check again.
"""

from kinfold.errors import check_arguments
from kinfold.methods.partition.approximate import approximate as _approximate
from kinfold.methods.partition.exact import exact as _exact
from kinfold.methods.partition.exact import lower_bound as _lower_bound
from kinfold.methods.partition.k_first import k_first as _k_first
from kinfold.methods.partition.mdav import mdav as _mdav
from kinfold.methods.partition.refine import refine as _refine
from kinfold.methods.partition.refine import refine_under as _refine_under
from kinfold.methods.partition.repair import repair as _repair
from kinfold.methods.partition.t_first import t_first as _t_first
from kinfold.methods.partition.t_merge import t_merge as _t_merge
from kinfold.methods.partition.univariate import univariate as _univariate
from kinfold.methods.partition.vmdav import vmdav as _vmdav

__all__ = [
    "approximate", "exact", "k_first", "lower_bound", "mdav", "refine", "refine_under", "repair", "t_first",
    "t_merge", "univariate", "vmdav",
]  # fmt: skip

approximate = check_arguments(_approximate)
exact = check_arguments(_exact)
lower_bound = check_arguments(_lower_bound)
k_first = check_arguments(_k_first)
mdav = check_arguments(_mdav)
refine = check_arguments(_refine)
refine_under = check_arguments(_refine_under)
repair = check_arguments(_repair)
t_first = check_arguments(_t_first)
t_merge = check_arguments(_t_merge)
univariate = check_arguments(_univariate)
vmdav = check_arguments(_vmdav)
