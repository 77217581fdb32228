"""pycanon as an outside opinion: the same numbers where it is right, and the known cases where it is not."""

from __future__ import annotations

import numpy as np
import pytest

from kinfold.models import AlphaK, KAnonymity, LDiversity, TCloseness
from kinfold.rows.tally import of_labels

pd = pytest.importorskip("pandas")
anonymity = pytest.importorskip("pycanon.anonymity")

QUASI = ["age", "zip"]
LONG = (pytest.mark.long, pytest.mark.trust("figures compared"))


def random_table(seed: int) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    n = int(chance.integers(2, 60))
    return pd.DataFrame(
        {
            "age": chance.integers(0, 3, n),
            "zip": chance.choice(["a", "b"], n),
            "wage": chance.integers(0, int(chance.integers(2, 20)), n),
            "disease": chance.choice(["flu", "cold", "ulcer"], n),
        }
    )


def tally_of(frame: pd.DataFrame):
    labels = frame.groupby(QUASI, dropna=False, sort=True).ngroup().to_numpy()
    return of_labels(labels, {"wage": frame["wage"].to_numpy(), "disease": frame["disease"].to_numpy(object)})


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(40), pytest.param(range(40, 100), marks=LONG)], ids=str)
def test_the_models_agree_with_pycanon_on_random_tables(seeds):
    for seed in seeds:
        frame = random_table(seed)
        tally = tally_of(frame)
        assert KAnonymity(2).check(tally).found == anonymity.k_anonymity(frame, QUASI)
        assert LDiversity(2, "disease").check(tally).found == anonymity.l_diversity(frame, QUASI, ["disease"])
        entropy = LDiversity(2, "disease", "entropy").check(tally).found
        # pycanon cuts to a whole number, also 2.9999999 to 2
        assert anonymity.entropy_l_diversity(frame, QUASI, ["disease"]) in {int(entropy - 1e-9), int(entropy + 1e-9)}
        alpha, _ = anonymity.alpha_k_anonymity(frame, QUASI, ["disease"])
        assert AlphaK(0.5, "disease").check(tally).found == alpha
        if frame["wage"].nunique() > 1:
            t = anonymity.t_closeness(frame, QUASI, ["wage"])
            assert TCloseness(0.5, "wage").check(tally).found == pytest.approx(t, abs=1e-12)
        t = anonymity.t_closeness(frame, QUASI, ["disease"])
        assert TCloseness(0.5, "disease", "equal").check(tally).found == pytest.approx(t, abs=1e-12)


def test_pycanon_overlooks_records_with_a_null_in_one_quasi_identifier():
    frame = pd.DataFrame(
        {
            "age": [1.0, 1.0, np.nan],
            "zip": ["a", "a", "b"],
            "wage": [1, 2, 3],
            "disease": ["flu", "cold", "flu"],
        }
    )
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
