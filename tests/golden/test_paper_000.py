"""Domingo-Ferrer & Torra 2005, Tables 2 and 3: the formulas on a plain twin's release, and the command."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from command import run
from everyday import first
from kinfold.measures.formulas.numeric_loss import Moments, il, il1, il2, il3, il4, il5
from kinfold.measures.formulas.probabilistic_loss import pil
from kinfold.papers.exhibits import PrintedValues
from reference.mdav_plain import paper_release
from reference.public_data import census, found

TABLE_2 = {(int(row["length"]), int(row["k"])): row for row in PrintedValues("000").read_table("table_2")}
TABLE_3 = {(int(row["length"]), int(row["k"])): row for row in PrintedValues("000").read_table("table_3")}
EXACT_ROWS = ((6, 3), (13, 3), (13, 6), (13, 9))  # of Table 2, which match in every digit
PARTS = ("IL1", "IL2", "IL3", "IL4", "IL5")


@cache
def losses(quasi: int, k: int) -> tuple[float, float, float, float, float]:
    x = census()
    y = paper_release(x, quasi, k)
    before, after = Moments.from_table(x), Moments.from_table(y)
    return il1(x, y), il2(before, after), il3(before, after), il4(before, after), il5(before, after)


@pytest.mark.parametrize("row", EXACT_ROWS, ids=str)
def test_table_2_comes_out_to_every_printed_digit(row):
    parts = tuple(round(part, 3) for part in losses(*row))
    assert parts == tuple(float(TABLE_2[row][name]) for name in PARTS)
    assert round(il(parts), 2) == float(TABLE_2[row]["IL"])


@pytest.mark.parametrize("row", sorted(set(TABLE_2) - set(EXACT_ROWS)), ids=str)
def test_the_other_rows_of_table_2_are_within_3_percent(row):
    assert il(losses(*row)) == pytest.approx(float(TABLE_2[row]["IL"]), rel=0.03)


@pytest.mark.parametrize("row", EXACT_ROWS, ids=str)
def test_table_3_comes_out_for_covariances_and_correlations(row):
    x = census()
    found = pil(x, paper_release(x, *row))
    assert found.means == 0
    assert found.variances < 1e-9
    assert found.covariances == pytest.approx(float(TABLE_3[row]["PIL(m11)"]), abs=0.001)
    assert found.correlations == pytest.approx(float(TABLE_3[row]["PIL(r)"]), abs=0.001)


# Domingo-Ferrer & Torra 2005, Tables 2 and 3, through the command: released by MDAV, measured over all 13 columns.


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


@pytest.mark.slow
@pytest.mark.parametrize("row", first(EXACT_ROWS, 2), ids=str)
def test_table_2_comes_out_of_the_command_to_every_printed_digit(measured: Any, row: tuple[int, int]) -> None:
    loss = measured(*row)["loss"]
    parts = tuple(round(loss[f"il{i}"], 3) for i in range(1, 6))
    assert parts == tuple(float(TABLE_2[row][f"IL{i}"]) for i in range(1, 6))
    assert round(20 * sum(parts), 2) == float(TABLE_2[row]["IL"])  # the paper adds up its rounded columns
    assert loss["il"] == pytest.approx(float(TABLE_2[row]["IL"]), abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("row", first(EXACT_ROWS, 2), ids=str)
def test_table_3_comes_out_of_the_command_for_covariances_and_correlations(measured: Any, row: tuple[int, int]) -> None:
    found = measured(*row)["loss"]["pil"]
    assert found["covariances"] == pytest.approx(float(TABLE_3[row]["PIL(m11)"]), abs=0.001)
    assert found["correlations"] == pytest.approx(float(TABLE_3[row]["PIL(r)"]), abs=0.001)
    assert found["means"] < 1e-6
    assert found["variances"] < 1e-6


@pytest.mark.parametrize("row", first(EXACT_ROWS, 2), ids=str)
def test_no_class_of_these_releases_is_smaller_than_k(measured: Any, row: tuple[int, int]) -> None:
    measures = measured(*row)
    assert measures["k"] == row[1]
    assert measures["risk"]["linkage"] <= 1 / row[1]
    assert measures["risk"]["prosecutor_max"] == pytest.approx(1 / row[1])
