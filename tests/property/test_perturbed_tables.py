"""Tables with perturbed columns: what they keep, on the file; the seed; and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from kinfold.measures.formulas.perturbation import measure_rank_gap

KINDS = {
    "pram": {"pram": 0.7},
    "noise": {"noise": 0.2},
    "rank": {"rank_swap": 10},
    "micro": {"micro": 3},
}


def table(seed: int = 0, n: int = 120) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": chance.integers(20, 80, n),
            "sex": chance.choice(["m", "f"], n),
            "wage": chance.lognormal(8, 1, n).round(2),
            "tax": chance.integers(0, 5_000, n),
            "ill": chance.choice(["flu", "hiv", "cold"], n, p=[0.6, 0.1, 0.3]),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(chance.integers(0, 900, n), "D"),
        }
    )
    frame.loc[3, ["wage", "ill"]] = None
    return frame


def policy(perturb: dict[str, dict[str, Any]], seed: int = 5, **more: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {"age": {"role": "quasi"}, "sex": {"role": "quasi"}}
    columns |= {"wage": {"role": "confidential"}, "tax": {"role": "other"}}
    columns |= {"ill": {"role": "confidential"}, "day": {"role": "other"}}
    for name, how in perturb.items():
        columns[name] = {**columns[name], "perturb": how}
    return {"privacy": {"k": 3}, "method": {"name": "mdav", "seed": seed}, "columns": columns} | more


ALL = {
    "wage": {"noise": 0.2},
    "tax": {"micro": 3},
    "ill": {"pram": 0.7},
    "day": {"rank_swap": 10},
}


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["noise", "rank", "micro"]), st.sampled_from(["wage", "tax", "day"]))
def test_numbers_and_dates_keep_their_type_and_their_invariants(seed: int, kind: str, name: str) -> None:
    before = table(seed)
    release = kinfold.anonymize(before, policy({name: KINDS[kind]}, seed))
    after = release.frame
    assert after.dtypes.equals(before.dtypes)
    for other in ("wage", "tax", "ill", "day"):
        assert after[other].isna().equals(before[other].isna())
        assert other == name or after[other].equals(before[other])
    x, y = (side[name].dropna().astype("int64" if name == "day" else float).to_numpy(float) for side in (before, after))
    found = release.measures["loss"]["perturbed"][name]
    if kind == "rank":
        assert np.array_equal(np.sort(x), np.sort(y))
        assert measure_rank_gap(x, y) < 0.1 * len(x)
        assert found["largest_gap"] == measure_rank_gap(x, y) / len(x)
    elif kind == "micro":
        assert np.unique(y, return_counts=True)[1].min() >= 3 == min(3, found["least_shared"])
    else:
        assert found["variance_ratio"] == pytest.approx(y.var() / x.var())
        assert found["outside_range"] == int(((y < x.min()) | (y > x.max())).sum())
    assert found["changed"] == pytest.approx((x != y).mean())
    assert release.verdict.holds


def test_categories_come_from_the_column_and_their_frequencies_stay() -> None:
    before = table(n=3_000)
    release = kinfold.anonymize(before, policy({"ill": {"pram": 0.5, "publish": True}}))
    after = release.frame
    assert {*after["ill"].dropna()} == {*before["ill"].dropna()}
    shares = [side["ill"].value_counts(normalize=True).sort_index() for side in (before, after)]
    assert shares[1].to_numpy() == pytest.approx(shares[0].to_numpy(), abs=0.03)
    found = release.measures["loss"]["perturbed"]["ill"]
    assert found["frequencies_moved"] < 4
    assert found["changed"] == pytest.approx(found["expected_changed"], abs=0.03)
    told = (before["ill"] != after["ill"])[before["ill"].notna()].mean()
    assert found["changed"] == pytest.approx(told)


def test_a_stated_matrix_is_made_invariant() -> None:
    stated = {"flu": {"flu": 0.9, "hiv": 0.1}, "hiv": {"hiv": 0.5, "flu": 0.5}, "cold": {"cold": 1}}
    release = kinfold.anonymize(table(n=2_000), policy({"ill": {"matrix": stated}}))
    matrix = release.policy["ill"].perturbed.matrix  # type: ignore[union-attr]
    counts = table(n=2_000)["ill"].value_counts().sort_index().to_numpy()
    assert counts @ matrix == pytest.approx(counts)
    assert release.frame["ill"].eq("cold").equals(table(n=2_000)["ill"].eq("cold"))


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    source = tmp_path / "table.csv"
    table().to_csv(source, index=False)
    runs = {
        "first": policy(ALL),
        "again": policy(ALL, engine={"threads": 1}),
        "other": policy(ALL, seed=6),
    }
    files = {}
    for name, asked in runs.items():
        folder = kinfold.anonymize(source, asked).save(tmp_path / name)
        files[name] = (folder / "public" / "release.csv").read_bytes()
        assert kinfold.verify(folder / "public", twice=True).holds
        for public in (folder / "public").iterdir():
            assert b"seed" not in public.read_bytes()
    assert files["first"] == files["again"] != files["other"]
    repeated = kinfold.anonymize(source, tmp_path / "first" / "internal" / "policy.toml").save(tmp_path / "repeated")
    assert (repeated / "public" / "release.csv").read_bytes() == files["first"]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_other_frames_hold_the_same_values(library: str) -> None:
    before = pl.from_pandas(table()) if library == "polars" else pl.from_pandas(table()).to_arrow()
    after = kinfold.anonymize(before, policy(ALL)).frame
    expected = kinfold.anonymize(table(), policy(ALL)).frame
    values = after.to_pandas()
    for name in ALL:
        assert values[name].astype(object).fillna(-1).tolist() == expected[name].astype(object).fillna(-1).tolist()


def test_the_certificate_names_the_kind_and_parameters_only_if_the_policy_says_so(tmp_path: Path) -> None:
    published = {
        "ill": {"pram": 0.5, "publish": True},
        "wage": {"noise": 0.2},
        "day": {"rank_swap": 7, "publish": True},
    }
    folder = kinfold.anonymize(table(), policy(published)).save(tmp_path / "out")
    content = json.loads((folder / "public" / "certificate.json").read_text())
    columns = {column["name"]: column.get("perturbed") for column in content["columns"]}
    assert columns["wage"] == {"kind": "noise"}
    assert columns["day"] == {"kind": "rank swapping", "percent": 7}
    assert columns["ill"]["categories"] == ["cold", "flu", "hiv"]
    assert np.array(columns["ill"]["matrix"]).sum(axis=1) == pytest.approx(1)
    assert columns["age"] is columns["tax"] is None
    text = (folder / "public" / "dictionary.md").read_text()
    assert "random noise is added" in text
    assert "released as it is" not in next(line for line in text.splitlines() if line.startswith("| wage"))
    assert kinfold.verify(folder).holds


def test_correlated_noise_keeps_correlations_and_limits_hold_after_noise() -> None:
    before = table(n=2_000).assign(tax=lambda t: (t["wage"].fillna(0) / 4 + 100).round())
    asked = policy({"wage": {"correlated_noise": 0.3}, "tax": {"correlated_noise": 0.3}})
    release = kinfold.anonymize(before, asked)
    assert release.measures["loss"]["perturbed"]["wage"]["correlations_moved"] < 0.02
    asked = policy({"wage": {"noise": 0.3}})
    asked["columns"]["wage"] |= {"bottom": 0, "top": 5_000, "round_to": 10}
    after = kinfold.anonymize(before, asked).frame["wage"].dropna()
    assert after.min() >= 0
    assert after.max() <= 5_000
    assert ((after / 10).round() * 10 == after).all()


def test_an_averaged_quasi_identifier_can_be_perturbed_and_its_classes_are_those_of_the_file() -> None:
    asked = policy({})
    asked["columns"]["age"]["perturb"] = {"rank_swap": 20}
    release = kinfold.anonymize(table(), asked)
    sizes = release.frame.groupby(["age", "sex"]).size()
    assert sizes.min() >= 3
    assert len(sizes) == release.verdict.classes
    assert release.measures["loss"]["perturbed"]["age"]["same_values"]


def test_a_promise_that_rests_on_the_perturbation_is_a_warning() -> None:
    asked = policy({"ill": {"pram": 0.1}}, privacy={"k": 3, "l": 2})
    release = kinfold.anonymize(table(), asked)
    assert release.verdict.holds
    assert any("before the perturbation" in warning for warning in release.measures.warnings)
    others = kinfold.anonymize(table(), policy({"tax": {"micro": 3}})).measures.warnings
    assert not any("before the perturbation" in warning or "'tax'" in warning for warning in others)


REFUSED = {
    "identifier": ({"tax": {"role": "identifier", "perturb": {"micro": 3}}}, "the role is identifier"),
    "weight": ({"tax": {"role": "weight", "round_to": 10, "perturb": {"micro": 3}}}, "the role is weight"),
    "generalized": ({"age": {"role": "quasi", "average": "generalize", "perturb": {"noise": 0.1}}}, "generalized"),
    "text noise": ({"ill": {"role": "other", "perturb": {"noise": 0.1}}}, "is for numbers and dates"),
    "text swap": ({"ill": {"role": "other", "perturb": {"rank_swap": 10}}}, "columns with an order"),
    "diversity": ({"wage": {"role": "confidential", "l": 2, "perturb": {"noise": 0.1}}}, "hold without meaning"),
    "one correlated": ({"wage": {"role": "other", "perturb": {"correlated_noise": 0.1}}}, "two or more columns"),
    "narrow": ({"tax": {"role": "other", "perturb": {"rank_swap": 0.5}}}, "less than two"),
    "constant": ({"one": {"role": "other", "perturb": {"noise": 0.1}}}, "changes nothing"),
    "constant text": ({"one": {"role": "other", "perturb": {"pram": 0.1}}}, "changes nothing"),
    "unknown row": ({"ill": {"role": "other", "perturb": {"matrix": {"flu": {"flu": 1}}}}}, "have no row"),
    "unknown value": (
        {"ill": {"role": "other", "perturb": {"matrix": {n: {"xx": 1} for n in ("flu", "hiv", "cold", "xx")}}}},
        "do not occur",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    columns, what = REFUSED[name]
    asked = policy({}, output={"others": "release"})
    asked["columns"] |= columns
    with pytest.raises(kinfold.PolicyError) as error:
        kinfold.anonymize(table().assign(one=1), asked)
    assert what in str(error.value)
    assert "hiv" not in str(error.value)


REGIONS = {"record_swap": 0.2, "similar": ["size"], "rare": ["ill"], "rare_below": 4}


def households(seed: int = 0, count: int = 60) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    sizes = chance.integers(1, 4, count)
    town = chance.integers(0, 6, count)
    each = pd.DataFrame({"hid": np.arange(count), "size": sizes, "land": town // 3, "town": [f"t{i}" for i in town]})
    return table(seed, int(sizes.sum())).assign(**each.loc[each.index.repeat(sizes)].reset_index(drop=True))


@pytest.mark.slow
@pytest.mark.parametrize("role", ["other", "quasi"])
def test_households_exchange_their_regions(role: str, tmp_path: Path) -> None:
    """Regions keep their households by size; who shares a value with fewer than four others of an area moved."""
    asked = policy({}, privacy={"k": 3, "household": "hid"})
    asked["columns"] |= {"hid": {"role": "identifier"}, "size": {"role": "other"}}
    asked["columns"] |= {"sex": {"role": "other"}, "age": {"role": "quasi", "household": False}}
    asked["columns"] |= {name: {"role": role, "type": "nominal", "perturb": REGIONS} for name in ("land", "town")}
    frame = households()
    release = kinfold.anonymize(frame, asked)
    kept = release.measures["loss"]["perturbed"]["town"]
    assert (kept["households"], kept["records_moved"]) == (60, 0)
    assert kept["swapped"] >= max(12, kept["at_risk"] - kept["unmatched"])
    release.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out", twice=True).holds
    assert '"kind": "record swapping"' in (tmp_path / "out/public/certificate.json").read_text("utf-8")
    assert kinfold.anonymize(frame, asked).frame.equals(release.frame)
    if role == "quasi":  # averaged after they were exchanged
        return
    both = (
        frame.assign(new=release.frame["town"].to_numpy(), far=release.frame["land"].to_numpy()).groupby("hid").first()
    )
    for before, after in ((["land", "size"], ["far", "size"]), (["town", "size"], ["new", "size"])):
        assert both[before].value_counts().tolist() == both[after].value_counts().tolist()
    assert int((both["town"] != both["new"]).sum()) == kept["swapped"]
    assert (both["new"].str[1:].astype(int) // 3 == both["far"].astype(int)).all()  # all levels move together


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"town": REGIONS, "land": {**REGIONS, "record_swap": 0.1}}, "different keys of record_swap"),
        ({"town": {"record_swap": 0.1, "similar": ["none"]}}, "names 'none' as similar or rare"),
        ({"town": {"record_swap": 0.1, "rare": ["ill"]}}, "rare and rare_below go together"),
        ({"town": {"pram": 0.8, "similar": ["size"]}}, "are for record_swap"),
        ({"size": {"record_swap": 0.1}}, "the region differs within a household"),
    ],
)
def test_exchanges_that_cannot_be_made_are_refused(columns: dict[str, Any], what: str) -> None:
    asked = policy({}, privacy={"k": 3, "unit": "hid"}, output={"others": "drop"})
    asked["columns"] |= {"hid": {"role": "identifier"}}
    asked["columns"] |= {name: {"role": "other", "type": "nominal", "perturb": how} for name, how in columns.items()}
    frame = households().assign(size=lambda t: range(len(t))) if "size" in columns else households()
    with pytest.raises(kinfold.KinfoldError, match=what):
        kinfold.anonymize(frame, asked)


def test_a_person_has_one_value_of_an_attribute() -> None:
    asked = policy({}, privacy={"k": 3, "unit": "pid"})
    asked["columns"] |= {"pid": {"role": "identifier"}, "age": {"role": "quasi", "perturb": {"noise": 0.1}}}
    asked["method"]["people"] = "together"
    with pytest.raises(kinfold.PolicyError, match="rows alike"):
        kinfold.anonymize(table().assign(pid=lambda t: t.index // 2), asked)


def test_rules_that_repair_and_values_that_cannot_be_perturbed_are_refused() -> None:
    rules = [{"check": "wage >= tax", "repair": True}]
    with pytest.raises(kinfold.PolicyError, match="which is perturbed"):
        kinfold.anonymize(table(), policy({"wage": {"noise": 0.1}}, rules=rules))
    with pytest.raises(kinfold.DataError, match="infinite"):
        kinfold.anonymize(table().assign(tax=np.inf), policy({"tax": {"noise": 0.1}}))
    with pytest.raises(kinfold.DataError, match="more digits"):
        kinfold.anonymize(table().assign(tax=lambda t: t["tax"] + 2**60), policy({"tax": {"noise": 0.1}}))
    small = table().assign(tax=lambda t: (t["tax"] % 128).astype("int8"))
    with pytest.raises(kinfold.DataError, match="does not fit the type"):
        kinfold.anonymize(small, policy({"tax": {"noise": 1.0}}))
    asked = policy({"tax": {"noise": 1.0}})
    asked["columns"]["tax"] |= {"top": 127, "bottom": 0}
    assert kinfold.anonymize(small, asked).frame["tax"].dtype == "int8"
    many = table().assign(ill=[f"v{i}" for i in range(120)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kinfold.methods.perturbed_table.MAX_CATEGORIES", 100)
        with pytest.raises(kinfold.PolicyError, match="at most 100"):
            kinfold.anonymize(many, policy({"ill": {"pram": 0.1}}))
        patch.setattr("kinfold.methods.perturbed_table.MAX_RECORDS", 100)
        with pytest.raises(kinfold.PolicyError, match="at most 100 records"):
            kinfold.anonymize(many, policy({"ill": {"pram": 0.1}}))


def test_a_perturbed_release_is_measured_against_its_original(tmp_path: Path) -> None:
    source = tmp_path / "table.csv"
    table().to_csv(source, index=False)
    asked = policy(ALL, output={"order": "kept"})
    folder = kinfold.anonymize(source, asked).save(tmp_path / "out")
    measures = kinfold.measure(source, folder / "public" / "release.csv", asked)
    assert measures["loss"]["overall"] == pytest.approx(
        json.loads((folder / "internal" / "audit.json").read_text())["measures"]["loss"]["overall"]
    )
