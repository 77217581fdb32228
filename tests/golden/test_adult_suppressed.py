"""Adult with eight quasi-identifiers: how few cells have to be left empty."""

import numpy as np
import pytest

from kinfold.hierarchy import TOP, Hierarchy
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.local_suppression import local_suppression
from kinfold.models import KAnonymity
from kinfold.rows.tally import of_labels
from reference.public_data import adult

pytestmark = pytest.mark.compiled


@pytest.mark.parametrize(("k", "least", "found"), [(3, 22_245, 24_898), (5, 28_546, 31_919)])
def test_cells_left_empty(k, least, found):
    """Each record loses at least the cheapest pattern under which k - 1 others are like it: `mingen_cell.bound`."""
    cells = np.array(adult()[1], object)[:, :8]
    coded = [np.unique(column.astype(str), return_inverse=True) for column in cells.T]
    trees = tuple(Hierarchy.of([(text, TOP) for text in texts]) for texts, _ in coded)
    codes = np.column_stack([code for _, code in coded]).astype(np.int32)
    table = Domain(tuple("abcdefgh"), trees, codes, of_labels(np.arange(len(codes)), {}))
    release = local_suppression(table, [KAnonymity(k)])
    assert least <= release.cells.sum() <= found
    assert release.generalization.k >= k
