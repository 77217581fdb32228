"""What a generalizer found: the table it releases, and what there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass

from kinfold.methods.generalize.generalization import Generalization


@dataclass(frozen=True, eq=False)
class Found:
    """What a method releases, what there is to say about it, and the steps that its search took."""

    released: Generalization
    notes: tuple[str, ...] = ()
    steps: int | None = None


def levels_told(released: Generalization) -> str:
    """Say on which level each column is."""
    domain = released.domain
    levels = zip(domain.names, released.vector or (), domain.heights, strict=True)
    return "levels: " + ", ".join(f"{name} {level} of {height}" for name, level, height in levels)
