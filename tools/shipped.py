"""What a release of kinfold brings along: the installed distributions that it needs, directly or through others."""

from __future__ import annotations

from importlib.metadata import Distribution, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NOT_SHIPPED = {"dev", "docs", "spark"}  # extras for developers, and one with an environment of its own: docs/spark.md


def shipped() -> dict[str, Distribution]:
    """Return the run-time distributions by their canonical name, kinfold's own left out."""
    found: dict[str, Distribution] = {}
    waiting = needs(distribution("kinfold"), extras_shipped())
    while waiting:
        name, extras = waiting.pop()
        if name not in found:
            found[name] = distribution(name)
            waiting += needs(found[name], extras)
    return dict(sorted(found.items()))


def extras_shipped() -> tuple[str, ...]:
    """Return the extras that users install, and the lack of one."""
    every = distribution("kinfold").metadata.get_all("Provides-Extra") or ()
    return ("", *sorted(set(every) - NOT_SHIPPED))


def needs(package: Distribution, extras: tuple[str, ...] = ("",)) -> list[tuple[str, tuple[str, ...]]]:
    """Return what a distribution requires on this machine: names, and the extras that it asks of each."""
    wanted = [Requirement(text) for text in package.requires or ()]
    return [
        (canonicalize_name(need.name), ("", *need.extras))
        for need in wanted
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
    ]
