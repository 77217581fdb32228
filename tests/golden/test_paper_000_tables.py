"""Domingo-Ferrer & Torra 2005, Tables 2 and 3, through the command: released by MDAV, measured over all 13 columns.

Source of the numbers: the printed tables, read as in the docstrings of `measures.variation` and
`measures.probabilistic`; the release keeps the variances (section 5.2) and does not round.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from command import run
from everyday import first
from kinfold.reproduction.paper_000 import EXACT
from kinfold.reproduction.printed import table
from reference.public_data import found

TABLE_2 = {(int(row["length"]), int(row["k"])): row for row in table("000", "table_2")}
TABLE_3 = {(int(row["length"]), int(row["k"])): row for row in table("000", "table_3")}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def measure(quasi: int, k: int) -> Any:
        source, folder = found("census.csv"), tmp_path_factory.mktemp("census")
        policy = folder / "policy.toml"
        policy.write_text(_policy(source, quasi, k))
        ran = run("anonymize", source, "--policy", policy, "--keep-order", "--out", folder / "out")
        assert ran.code == 0, ran.err
        released = folder / "out" / "public" / "release.csv"
        ran = run("measure", source, released, "--policy", policy, "--columns", "all", "--json")
        assert ran.code == 0, ran.err
        return ran.json

    return measure


def _policy(source: Path, quasi: int, k: int) -> str:
    names = source.read_text().splitlines()[0].split(",")
    roles = ["quasi-identifier"] * quasi + ["other"] * (len(names) - quasi)
    columns = (
        f'[columns.{name}]\nrole = "{role}"\ntype = "continuous"' for name, role in zip(names, roles, strict=True)
    )
    head = (f"[privacy]\nk = {k}", '[method]\nname = "mdav"', '[output]\npreserve = "variance"\nround = false')
    return "\n".join([*head, *columns])


@pytest.mark.parametrize("row", first(EXACT, 2), ids=str)
def test_table_2_comes_out_of_the_command_to_every_printed_digit(measured: Any, row: tuple[int, int]) -> None:
    loss = measured(*row)["loss"]
    parts = tuple(round(loss[f"il{i}"], 3) for i in range(1, 6))
    assert parts == tuple(float(TABLE_2[row][f"IL{i}"]) for i in range(1, 6))
    assert round(20 * sum(parts), 2) == float(TABLE_2[row]["IL"])  # the paper adds up its rounded columns
    assert loss["il"] == pytest.approx(float(TABLE_2[row]["IL"]), abs=0.05)


@pytest.mark.parametrize("row", first(EXACT, 2), ids=str)
def test_table_3_comes_out_of_the_command_for_covariances_and_correlations(measured: Any, row: tuple[int, int]) -> None:
    found = measured(*row)["loss"]["pil"]
    assert found["covariances"] == pytest.approx(float(TABLE_3[row]["PIL(m11)"]), abs=0.001)
    assert found["correlations"] == pytest.approx(float(TABLE_3[row]["PIL(r)"]), abs=0.001)
    assert found["means"] < 1e-6
    assert found["variances"] < 1e-6


@pytest.mark.parametrize("row", first(EXACT, 2), ids=str)
def test_no_class_of_these_releases_is_smaller_than_k(measured: Any, row: tuple[int, int]) -> None:
    found = measured(*row)
    assert found["k"] == row[1]
    assert found["risk"]["linkage"] <= 1 / row[1]
    assert found["risk"]["prosecutor_max"] == pytest.approx(1 / row[1])
