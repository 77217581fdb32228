"""pycanon where it is known to be wrong; tests/property/test_outside_opinions.py compares it where it is right."""

from __future__ import annotations

import numpy as np
import pytest

from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.tables.tally import tally_labels

pd = pytest.importorskip("pandas")
anonymity = pytest.importorskip("pycanon.anonymity")

QUASI = ["age", "zip"]


def tally_of(frame: pd.DataFrame):
    labels = frame.groupby(QUASI, dropna=False, sort=True).ngroup().to_numpy()
    return tally_labels(labels, {"wage": frame["wage"].to_numpy(), "disease": frame["disease"].to_numpy(object)})


def test_pycanon_overlooks_records_with_a_null_in_one_quasi_identifier():
    frame = pd.DataFrame({"age": [1.0, 1.0, np.nan], "zip": ["a", "a", "b"], "wage": [1, 2, 3]})
    frame["disease"] = ["flu", "cold", "flu"]
    assert anonymity.k_anonymity(frame, QUASI) == 2  # one record stands alone
    tally = tally_of(frame)
    assert KAnonymity(2).check(tally).found == 1
    assert LDiversity(2, "disease").check(tally).found == 1 < anonymity.l_diversity(frame, QUASI, ["disease"])
    t = anonymity.t_closeness(frame, QUASI, ["wage"])
    assert TCloseness(0.2, "wage").check(tally).found > t


def test_pycanon_reads_index_labels_as_positions():
    frame = pd.DataFrame(
        {"age": [1, 1, 2, 2], "zip": ["a"] * 4, "wage": [1, 1, 2, 2], "disease": ["flu", "flu", "cold", "cold"]}
    )
    moved = frame.set_axis([0, 2, 1, 3], axis=0)
    truth = TCloseness(0.2, "wage").check(tally_of(moved)).found
    assert truth == TCloseness(0.2, "wage").check(tally_of(frame)).found == 0.5
    assert anonymity.t_closeness(moved, QUASI, ["wage"]) == 0.0
    assert anonymity.l_diversity(moved, QUASI, ["disease"]) == 2 > LDiversity(2, "disease").check(tally_of(moved)).found
