"""Random mixed tables for the properties of partitioners: ties, duplicates, denormals, codes with and without order."""

import numpy as np
from hypothesis import strategies as st

from kinfold.tables.points import NominalScale, OrdinalScale, Points

TREE = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], np.int32)
NUMBERS = {
    "few levels": lambda rng, shape: rng.integers(0, 4, shape).astype(float),
    "one decimal": lambda rng, shape: np.round(rng.normal(size=shape), 1),
    "all distinct": lambda rng, shape: rng.normal(size=shape),
    "constant": lambda _, shape: np.full(shape, 0.1),
    "denormal": lambda rng, shape: rng.integers(0, 5, shape) * 5e-324,
    "collinear": lambda rng, shape: np.outer(rng.integers(-9, 9, shape[0]), np.arange(1, shape[1] + 1)) / 3.0,
    "far apart": lambda rng, shape: rng.choice([0.0, 1e-9, 1.0, 1e9, 1e150], shape),
}
SCALES = [
    (),
    (OrdinalScale(4, 0.7),),
    (NominalScale.flat(3),),
    (NominalScale(TREE, 2.0), OrdinalScale(3)),
]


@st.composite
def tables(draw, max_records=40):
    """Points with up to three numbers and two codes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    records = draw(st.integers(2, max_records))
    scales = draw(st.sampled_from(SCALES))
    width = draw(st.integers(0 if scales else 1, 3))
    numbers = NUMBERS[draw(st.sampled_from(sorted(NUMBERS)))](rng, (records, width))
    codes = np.empty((records, len(scales)), np.int32)
    for column, scale in enumerate(scales):
        codes[:, column] = rng.integers(0, scale.codes, records)
    return Points(numbers, codes, scales)
