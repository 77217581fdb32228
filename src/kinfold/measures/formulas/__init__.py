"""Risk and information loss as formulas: arrays in, a number out, with no table, policy or engine in sight.

Numbers come as float arrays of records by attributes, NaN for a missing value; categories as int arrays of codes, -1
for a missing one; classes as one label per record. A measure that does not apply raises `NotApplicable` with the
reason, so that a caller can show null and say why; it never answers 0 or NaN instead.
"""

from kinfold.measures.formulas.arrays import NotApplicable

__all__ = ["KERNELS", "NotApplicable"]

KERNELS = ("box_tree", "linkage", "special_uniques")  # what measuring a release has to compile
