"""What has to be compiled for a release: what its method declares, and what every release is measured by."""

from __future__ import annotations

from kinfold import measures
from kinfold.errors import PolicyError
from kinfold.request.methods import AUTO, everyday, names, registry

# what starter policies ask for about confidential columns
PROMISES = ("class_misses", "repair", "near_kinds", "settling")


def kernels_of(name: str = AUTO) -> tuple[str, ...]:
    """Return the kernel modules that a release by a method needs; for "auto", a release of the kind that is proposed.

    Refinement is not among them: most releases do without.
    """
    if name not in names():
        raise PolicyError(f"there is no method '{name}'", fix=f"name one of {', '.join(names())}")
    if name == AUTO:
        return (*everyday().kernels, *PROMISES, *measures.KERNELS)
    return (*registry()[name].kernels, *measures.KERNELS)
