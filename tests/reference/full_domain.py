"""Full-domain generalization the slow way: labels in tuples, classes in dictionaries, every node of the lattice."""

from collections import Counter
from itertools import product

import numpy as np

from kinfold.hierarchies import Hierarchy, build_from_rows
from kinfold.methods.generalize.domain import Domain
from kinfold.tables.tally import Tally, tally_labels

VALUES = 6


def random_tree(random: np.random.Generator) -> Hierarchy:
    """A tree over six values, of height 1 to 3."""
    groups = [np.arange(VALUES)]
    for _ in range(random.integers(0, 3)):
        parents = random.integers(0, 3, size=groups[-1].max() + 1)
        groups.append(parents[groups[-1]])
    return build_from_rows(
        [[f"v{v}", *(f"g{level}.{g[v]}" for level, g in enumerate(groups[1:]))] for v in range(VALUES)]
    )


def random_domain(seed: int, rows: int = 12, columns: int = 3, diseases: int = 3) -> Domain:
    """A small random table with a confidential column, some nulls, rows in no order and some of them equal."""
    random = np.random.default_rng(seed)
    trees = {f"q{a}": random_tree(random) for a in range(columns)}
    keys = {}
    for name in trees:
        values = np.array([f"v{v}" for v in random.integers(0, VALUES, size=rows)], object)
        values[random.random(rows) < 0.05] = None
        keys[name] = values
    tally = tally_labels(np.arange(rows), {"disease": random.integers(0, diseases, size=rows)})
    return Domain.from_tally(Tally(keys, tally.sizes, tally.spreads), trees)


def label(domain: Domain, row: int, attribute: int, level: int):
    tree, code = domain.hierarchies[attribute], domain.codes[row, attribute]
    if level == tree.height:
        return "*"
    if code == len(tree):
        return None
    return (level, tree.labels[code, level])


def classes(domain: Domain, levels) -> list:
    return [tuple(label(domain, row, a, level) for a, level in enumerate(levels)) for row in range(len(domain))]


def diseases(domain: Domain) -> list[int]:
    return domain.tally.spreads["disease"].code.tolist()


def node(domain: Domain, levels, k: int, l: int = 1, starred: bool = False):
    """Records left over and granularity lost at a node, with k-anonymity and distinct l-diversity.

    Where they are `starred`, the smallest classes (the first of equals) fill the class of those left over.
    """
    keys, held = classes(domain, levels), diseases(domain)
    size = Counter(keys)  # in the order of the first rows
    values: dict = {}
    for key, value in zip(keys, held, strict=True):
        values.setdefault(key, set()).add(value)
    out = {key for key in size if size[key] < k or len(values[key]) < l}
    while starred and out and len(out) < len(size):
        if sum(size[key] for key in out) >= k and len(set().union(*(values[key] for key in out))) >= l:
            break
        out.add(min((key for key in size if key not in out), key=size.__getitem__))
    gone = [key in out for key in keys]
    lost = [
        1.0 if gone[row] else np.mean([cell_lost(domain, row, a, level) for a, level in enumerate(levels)])
        for row in range(len(domain))
    ]
    return sum(gone), float(np.mean(lost))


def cell_lost(domain: Domain, row: int, attribute: int, level: int) -> float:
    tree, code = domain.hierarchies[attribute], domain.codes[row, attribute]
    if level == tree.height:
        return 1.0
    if code == len(tree):
        return 0.0
    same = sum(tree.labels[other, level] == tree.labels[code, level] for other in range(len(tree)))
    return (same - 1) / (len(tree) - 1)


def prec(domain: Domain, levels) -> float:
    return 1 - float(np.mean([level / height for level, height in zip(levels, domain.heights, strict=True)]))


def all_levels(domain: Domain):
    return product(*(range(height + 1) for height in domain.heights))
