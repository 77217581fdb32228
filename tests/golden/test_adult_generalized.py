"""Adult with ARX's hierarchies: the optimum of the lattice, and cell level, at k = 5."""

import numpy as np
import pytest

from kinfold.hierarchy import read_arx
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.mingen_cell import bound, mingen_cell
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.rows.tally import Tally, of_labels
from reference.public_data import adult, found


@pytest.fixture(scope="module")
def table() -> Domain:
    """Adult with eight quasi-identifiers, one row a record."""
    names, rows = adult()
    cells = np.array(rows, object)
    trees = {name: read_arx(found(f"adult/adult_hierarchy_{name}.csv")) for name in names[:8]}
    columns = {name: cells[:, a] for a, name in enumerate(names[:8])}
    plain = of_labels(np.arange(len(cells)), {"salary-class": cells[:, 8].astype(str)})
    return Domain.of_tally(Tally(columns, plain.sizes, plain.spreads), trees)


@pytest.fixture(scope="module")
def every(table):
    """Every node of the lattice, evaluated; k = 5 and anything may be suppressed."""
    return list(Lattice(table, [KAnonymity(5)], 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("share", [0, 0.02, 0.05, 1.0])
def test_the_optimum_of_adult_is_the_best_of_all_6480_nodes(table, every, share):
    assert len(every) == 6480
    allowed = int(share * table.records)
    best = min(
        (node for node in every if node.outliers <= allowed), key=lambda node: (round(node.loss, 12), -node.prec)
    )
    search = Lattice(table, [KAnonymity(5)], share)
    assert search.search().levels == best.levels
    assert search.proved


LONG = (pytest.mark.long, pytest.mark.trust("golden figures"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("others", "least"),
    [
        pytest.param([], 0.946, marks=LONG),
        pytest.param([LDiversity(2, "salary-class")], 0.88, marks=LONG),
        ([TCloseness(0.2, "salary-class", "equal")], 0.78),
    ],
    ids=["k", "l", "t"],
)
def test_cell_level_reaches_the_granularity_that_was_measured(table, others, least):
    models = [KAnonymity(5), *others]
    found = mingen_cell(table, models, steps=60_000 if not others else 5_000)
    assert found.generalization.holds(models)
    assert found.generalization.granularity() >= least
    if not others:
        assert found.loss >= bound(table, models)
