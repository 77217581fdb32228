from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinfold.partition import mdav
from kinfold.partition.centre import Centre
from kinfold.partition.points import Points
from point_tables import any_points
from reference.mdav import mdav as twin


@pytest.mark.parametrize("block", range(10))
def test_mdav_gives_the_labels_of_its_twin(block):
    for seed in range(block * 60, block * 60 + 60):
        points, k = any_points(seed)
        np.testing.assert_array_equal(mdav(points, k), twin(points, k), err_msg=f"seed {seed}")


@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=30), st.data())
@settings(max_examples=200)
def test_the_centre_is_the_exact_mean_whatever_left_before(values, data):
    gone = data.draw(st.sets(st.integers(0, len(values) - 1), max_size=len(values) - 1))
    centre = Centre(Points.of(np.array(values)[:, None]))
    centre.leave(np.array(sorted(gone), np.intp))
    rest = [value for row, value in enumerate(values) if row not in gone]
    assert centre.numbers()[0] == math.fsum(rest) / len(rest)
