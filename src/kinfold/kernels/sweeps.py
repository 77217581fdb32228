"""Sweeps: relocations and swaps from the means of the groups, where there are too many records for all distances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinfold.kernels import descent, groups, mixed
from kinfold.kernels.compiling import entry

if TYPE_CHECKING:
    from kinfold.kernels.groups import Groups
    from kinfold.kernels.mixed import Mixed


@entry(mixed.example(), groups.example(), 1)
def sweep(d: Mixed, s: Groups, looks: int) -> float:
    """Descend from every record by the means of the groups; return the change of cost."""
    return descent.descend_from_all(d, None, s, looks)
