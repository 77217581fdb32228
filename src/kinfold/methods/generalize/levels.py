"""Levels as a vector: the node of the lattice that the policy names, instead of a search for one.

    check      a level for each quasi-identifier, none above its hierarchy's top
    evaluate   the node: its classes that miss a promise are its outliers
    release    the node without its outliers, if they are no more than the suppression allows; else it is unreachable

Cost: one roll-up from the bottom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kinfold.errors import PolicyError, Problem, Unreachable
from kinfold.methods.generalize.domain import Domain, Levels
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.nodes import Nodes


def levels_of(asked: Mapping[str, int], domain: Domain) -> Levels:
    """Return the level of each column of a domain, in its order; raise with every problem of what was asked."""
    problems = list(_problems(asked, domain))
    if problems:
        raise PolicyError(problems)
    return tuple(asked[name] for name in domain.names)


def released_at(nodes: Nodes, levels: Levels) -> Generalization:
    """Return what a node releases, completed by suppression as far as that is allowed."""
    node = nodes[levels]
    if not node.holds:
        records = nodes.domain.records
        raise Unreachable(
            f"at the levels of the policy {node.outliers} of {records} records have to be suppressed, "
            f"and at most {nodes.allowed} may be",
            fix="raise a level in method.levels, allow more method.suppression, or leave the levels to the search",
        )
    return Generalization.full(nodes.domain, levels, nodes.suppressed(levels))


def _problems(asked: Mapping[str, int], domain: Domain) -> Iterator[Problem]:
    for name in asked:
        if name not in domain.names:
            yield Problem(f"method.levels: '{name}' is no quasi-identifier", "leave it out, or correct the name")
    for name, height in zip(domain.names, domain.heights, strict=True):
        if name not in asked:
            yield Problem(f"method.levels: '{name}' has no level", f"give it one from 0 to {height}")
        elif asked[name] > height:
            what = f"method.levels: '{name}' is to be on level {asked[name]}, and its hierarchy ends at {height}"
            yield Problem(what, f"give it a level from 0 to {height}")
