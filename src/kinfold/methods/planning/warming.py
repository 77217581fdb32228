"""What has to be compiled for a release: what its method declares, and what every release is measured by."""

from __future__ import annotations

from kinfold import measures
from kinfold.errors import PolicyError
from kinfold.request.methods import AUTO, everyday, names, registry


def kernels_of(name: str = AUTO) -> tuple[str, ...]:
    """Return the kernel modules that a release by a method needs, "auto" being that for k and nothing else.

    Refinement is not among them: most releases do without.
    """
    if name not in names():
        raise PolicyError(f"there is no method '{name}'", fix=f"name one of {', '.join(names())}")
    method = everyday() if name == AUTO else registry()[name]
    return (*method.kernels, *measures.KERNELS)
