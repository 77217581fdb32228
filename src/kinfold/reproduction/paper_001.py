"""Sun, Wang, Li & Zhang 2012: entropy distance, dependency tree, key attributes, approximate microaggregation.

The paper's data, an extract of 500,000 records and nine attributes from a census, was never published as a file: a
seeded census with the same cardinalities stands in (`stand_ins.census_extract`). Its Figures 4 to 6 have no printed
numbers, so that what the text says of them is compared.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np

from kinfold.measures.grouping import group_rows
from kinfold.methods.partition.dependency import Dependency, dependency, entropy, joint_entropy, key_attributes
from kinfold.reproduction.desk import Desk
from kinfold.reproduction.expectation import Exhibit, Key, Ours, Paper, Worked, expect
from kinfold.reproduction.printed import cells, examples, rows

TABLE_1 = np.array([[int(cell) for cell in row[1:]] for row in rows("001", "table_1")])
NAMES = tuple(f"A{i}" for i in range(1, 7))
MATRIX = expect(cells("001", "matrix", "{attribute}")) | examples("001", "Definition 3")


@cache
def example() -> Dependency:
    """Return the dependency of the attributes of Table 1."""
    return dependency(TABLE_1)


def _section_1(_: Desk) -> Worked:
    one, three = TABLE_1[:, 0], TABLE_1[:, 2]
    events = {"P(A1 = 1)": one == 1, "P(A3 = 0)": three == 0, "P(A1 = 1, A3 = 0)": (one == 1) & (three == 0)}
    return Worked({(name, "value"): str(Fraction(int(event.sum()), len(event))) for name, event in events.items()})


def _table_3(_: Desk) -> Worked:
    values: dict[Key, Ours] = {}
    for name in ("table_2", "table_3"):
        quasi = np.array(rows("001", name))[:, :3]
        values[name.replace("_", " ").capitalize(), "k"] = int(np.bincount(group_rows(quasi)[0]).min())
    return Worked(values)


def _section_3_1(_: Desk) -> Worked:
    one, two = TABLE_1[:, 0], TABLE_1[:, 1]
    both = joint_entropy(one, two)
    found = {
        "H(A1)": entropy(one),
        "H(A2)": entropy(two),
        "H(A1, A2)": both,
        "H(A1|A2)": both - entropy(two),
        "H(A2|A1)": both - entropy(one),
    }
    return Worked({(name, "value"): value for name, value in found.items()})


def _definition_3(_: Desk) -> Worked:
    pairs = product(enumerate(NAMES), enumerate(NAMES))
    return Worked({(one, other): float(example().matrix[i, j]) for (i, one), (j, other) in pairs})


def _figure_2(_: Desk) -> Worked:
    found = example()
    keys = ", ".join(sorted(NAMES[key] for key in found.keys))
    return Worked(
        {
            ("deg(A2)", "value"): found.degrees[1],
            ("deg(A3)", "value"): found.degrees[2],
            ("key attributes", "value"): f"{{{keys}}}",
        },
        note="The minimum spanning tree: " + ", ".join(f"{NAMES[a]}-{NAMES[b]}" for a, b in found.edges) + ".",
    )


def _theorem_2(_: Desk) -> Worked:
    """Return the most key attributes that any tree of m vertices gives, over all sequences of degrees."""
    most = {m: max(len(key_attributes(degrees)) for degrees in _degrees(m)) for m in range(2, 8)}
    return Worked({(f"m = {m}", "most key attributes"): number for m, number in most.items()})


def _degrees(m: int) -> list[list[int]]:
    """Return the degrees of the trees of m vertices: whole numbers from 1 up that sum to 2(m - 1)."""
    return [list(found[::-1]) for found in combinations_with_replacement(range(1, m), m) if sum(found) == 2 * (m - 1)]


PAPER = Paper(
    "001",
    "Sun, Wang, Li & Zhang 2012: An approximate microaggregation approach for microdata protection",
    (
        Exhibit("Section 1", "Probabilities of Table 1", examples("001", "Section 1"), _section_1),
        Exhibit("Table 3", "A 2-anonymous version of Table 2", examples("001", "Table 3"), _table_3),
        Exhibit("Section 3.1", "Entropies of Table 1", examples("001", "Section 3.1"), _section_3_1),
        Exhibit("Definition 3", "Dependency matrix of Table 1", MATRIX, _definition_3),
        Exhibit("Figure 2", "Dependency tree of Table 1", examples("001", "Figure 2"), _figure_2),
        Exhibit("Theorem 2", "How many key attributes there can be", examples("001", "Theorem 2"), _theorem_2),
    ),
)
