"""Adult: the mixed release, the optimum of the lattice, cell level, and cells left empty."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pycanon import anonymity

from command import run, text
from kinfold.hierarchies import TOP, Hierarchy, read_arx
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.local_suppression import local_suppression
from kinfold.methods.generalize.mingen_cell import mingen_cell
from kinfold.models import KAnonymity, LDiversity, TCloseness
from kinfold.tables.tally import Tally, tally_labels
from reference.cell_level import lower_bound
from reference.public_data import adult, found

K = 5
EDUCATION = (
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college"),
    *("Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate"),
)
QUASI = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")


def policy(**more: str) -> str:
    lines = [f"[privacy]\nk = {K}\n[method]\nname = 'mdav'\n[columns.salary-class]\nrole = 'confidential'"]
    for name in QUASI:
        lines.append(f"[columns.{name}]\nrole = 'quasi-identifier'")
        lines.append(
            {"age": "type = 'continuous'", "education": f"order = {list(EDUCATION)}"}.get(name, "type = 'nominal'")
        )
        lines.append(more.get(name.replace("-", "_"), ""))
    return "\n".join(lines)


def released(folder: Path, rules: str, name: str) -> Path:
    rows = text(folder, "policy.toml", rules)
    ran = run("anonymize", found("adult/adult.csv"), "--policy", rows, "--out", folder / name)
    assert ran.code == 0, ran.err
    return folder / name / "public" / "release.csv"


@pytest.mark.slow
def test_every_class_of_the_mixed_release_has_five_records_and_its_bytes_repeat(tmp_path: Path) -> None:
    first, second = released(tmp_path, policy(), "one"), released(tmp_path, policy(), "two")
    assert first.read_bytes() == second.read_bytes()
    frame = pd.read_csv(first, sep=";", dtype=str, keep_default_na=False)
    assert list(frame.columns) == [*QUASI, "salary-class"]
    assert len(frame) == 30_162
    assert min(Counter(map(tuple, frame[list(QUASI)].to_numpy())).values()) >= K
    assert anonymity.k_anonymity(frame, list(QUASI)) >= K
    original = pd.read_csv(found("adult/adult.csv"), sep=";", dtype=str)
    assert Counter(frame["salary-class"]) == Counter(original["salary-class"])
    for name in QUASI:
        assert set(frame[name]) <= set(original[name]) | set(map(str, range(100)))
    assert run("verify", tmp_path / "one").code == 0


@pytest.mark.slow
def test_arx_hierarchies_steer_and_generalize(tmp_path: Path) -> None:
    country = found("adult/adult_hierarchy_native-country.csv")
    rules = policy(native_country=f"average = 'generalize'\nhierarchy = {{ file = '{country.resolve()}' }}")
    frame = pd.read_csv(released(tmp_path, rules, "out"), sep=";", dtype=str, keep_default_na=False)
    assert anonymity.k_anonymity(frame, list(QUASI)) >= K
    hierarchy = read_arx(country)
    assert set(frame["native-country"]) <= set(hierarchy.labels.ravel())


# Adult with ARX's hierarchies: the optimum of the lattice, and cell level, at k = 5.


@pytest.fixture(scope="module")
def table() -> Domain:
    """Adult with eight quasi-identifiers, one row a record."""
    names, rows = adult()
    cells = np.array(rows, object)
    trees = {name: read_arx(found(f"adult/adult_hierarchy_{name}.csv")) for name in names[:8]}
    columns = {name: cells[:, a] for a, name in enumerate(names[:8])}
    plain = tally_labels(np.arange(len(cells)), {"salary-class": cells[:, 8].astype(str)})
    return Domain.from_tally(Tally(columns, plain.sizes, plain.spreads), trees)


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
        pytest.param([TCloseness(0.2, "salary-class", "equal")], 0.78, marks=LONG),  # docs/guides/case-study.md runs it
    ],
    ids=["k", "l", "t"],
)
def test_cell_level_reaches_the_granularity_that_was_measured(table, others, least):
    models = [KAnonymity(5), *others]
    found = mingen_cell(table, models, steps=60_000 if not others else 5_000)
    assert found.generalization.holds(models)
    assert found.generalization.granularity() >= least
    if not others:
        assert found.loss >= lower_bound(table, models)


# Adult with eight quasi-identifiers: how few cells have to be left empty.


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(("k", "least", "most"), [(3, 22_245, 24_898), (5, 28_546, 31_919)])
def test_cells_left_empty(k, least, most):
    """Each record loses at least the cheapest pattern under which k - 1 others are like it: `mingen_cell.bound`."""
    cells = np.array(adult()[1], object)[:, :8]
    coded = [np.unique(column.astype(str), return_inverse=True) for column in cells.T]
    trees = tuple(Hierarchy.from_rows([(text, TOP) for text in texts]) for texts, _ in coded)
    codes = np.column_stack([code for _, code in coded]).astype(np.int32)
    table = Domain(tuple("abcdefgh"), trees, codes, tally_labels(np.arange(len(codes)), {}))
    release = local_suppression(table, [KAnonymity(k)])
    assert least <= release.cells_by_column.sum() <= most
    assert release.generalization.k >= k
