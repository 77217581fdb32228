"""On a k-anonymous release the linkage attack finds at most one in k: measured on Adult and Census by the command.

With columns that were released untouched it is no bound, and on Adult it does not hold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command import run, text
from reference.public_data import found

KINDS = {"age": "continuous", "sex": "nominal", "race": "nominal", "education": "nominal", "workclass": "nominal"}
K = 5


def attacked(folder: Path, records: int | None) -> Any:
    head, *rows = found("adult/adult.csv").read_text().splitlines()
    table = text(folder, "adult.csv", "\n".join([head, *rows[:records]]) + "\n")
    columns = [f"[columns.{name}]\nrole = 'quasi-identifier'\ntype = '{kind}'" for name, kind in KINDS.items()]
    rules = ["[privacy]", f"k = {K}", "[method]\nname = 'mdav'", "[output]\nothers = 'release'\norder = 'kept'"]
    policy = text(folder, "policy.toml", "\n".join([*rules, *columns]))
    ran = run("anonymize", table, "--policy", policy, "--out", folder / "out")
    assert ran.code == 0, ran.err
    released = folder / "out" / "public" / "release.csv"
    options = ("--linkage-subsets", "--linkage-untouched", "--json")
    ran = run("measure", table, released, "--policy", policy, *options)
    assert ran.code == 0, ran.err
    return ran.json["risk"]


def check(risk: Any) -> None:
    assert 0 < risk["linkage"] <= 1 / K
    assert risk["linkage_subsets"]
    for subset in risk["linkage_subsets"]:
        assert 0 <= subset["linkage"] <= subset["bound"] <= 1 / K
    assert set(risk["linkage_untouched"]["columns"]) > set(KINDS)
    assert risk["linkage_untouched"]["linkage"] > 1 / K


@pytest.mark.slow
def test_of_the_first_records_of_adult_at_most_one_in_five_is_linked(tmp_path: Path) -> None:
    check(attacked(tmp_path, 2000))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.trust("golden figures")
def test_of_all_of_adult_at_most_one_in_five_is_linked(tmp_path: Path) -> None:
    check(attacked(tmp_path, None))


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 10])
def test_of_census_at_most_one_in_k_is_linked(tmp_path: Path, k: int) -> None:
    source = found("census.csv")
    names = source.read_text().splitlines()[0].split(",")
    columns = [f"[columns.{name}]\nrole = 'quasi-identifier'\ntype = 'continuous'" for name in names]
    rules = [f"[privacy]\nk = {k}", "[method]\nname = 'mdav'", "[output]\norder = 'kept'"]
    policy = text(tmp_path, "policy.toml", "\n".join([*rules, *columns]))
    assert run("anonymize", source, "--policy", policy, "--out", tmp_path / "out").code == 0
    released = tmp_path / "out" / "public" / "release.csv"
    risk = run("measure", source, released, "--policy", policy, "--linkage-subsets", "--json").json["risk"]
    assert 0 < risk["linkage"] <= 1 / k
    for subset in risk["linkage_subsets"]:
        assert subset["linkage"] <= subset["bound"] == pytest.approx(1 / k)
