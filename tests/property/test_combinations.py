"""Promises about combinations of few quasi-identifiers: definition, both checkers, searches, certificate."""

from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinfold
from kinfold import checker
from kinfold.hierarchies import TOP, Hierarchy
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.levels import mark_outliers
from kinfold.methods.generalize.local_suppression import local_suppression, make_cell_loss
from kinfold.methods.generalize.restoring import restore_cells
from kinfold.models import CombinationAnonymity, CombinationConfidence, KAnonymity, to_class_models
from kinfold.tables.tally import Tally, tally_labels
from reference import promises
from reference.full_domain import classes, random_domain

seeds = st.integers(0, 10**6)
sizes = st.integers(1, 4)


def few(n: int, seed: int, width: int = 4) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    columns = {f"q{a}": chance.choice(list("abcd"), n, p=[0.5, 0.3, 0.15, 0.05]) for a in range(width)}
    return pd.DataFrame(columns | {"ill": chance.choice(["flu", "hiv", "cold"], n)})


def tally_of(table: pd.DataFrame, quasi: list[str]) -> Tally:
    group = table.groupby(quasi, sort=False).ngroup().to_numpy()
    first = np.unique(group, return_index=True)[1]
    tally = tally_labels(group, {"ill": table.ill.to_numpy()})
    return Tally({name: table[name].to_numpy(object)[first] for name in quasi}, tally.sizes, tally.spreads)


@given(seeds, sizes)
def test_both_checkers_find_what_the_definition_says(seed: int, size: int) -> None:
    table, quasi = few(40, seed), ["q0", "q1", "q2", "q3"]
    expected = dict(promises.few(table.to_dict("records"), quasi, ["ill"], {"size": size, "confidence": 0.7}))
    tally, text = tally_of(table, quasi), {name: [*table[name]] for name in table}
    for model in (CombinationAnonymity(3, size), CombinationConfidence(0.7, size, "ill")):
        finding = model.check(tally)
        limit = model.k if isinstance(model, CombinationAnonymity) else model.confidence
        promise = {"model": type(model).__name__, "parameters": vars(model), "promise": finding.promise}
        plain = checker.check_combinations(promise, text, quasi)
        key = (finding.model, finding.column, "")
        assert finding.found == pytest.approx(expected[key], abs=1e-12)
        assert plain["found"] == pytest.approx(expected[key], abs=1e-12)
        holds = expected[key] >= limit if isinstance(model, CombinationAnonymity) else expected[key] <= limit
        assert finding.holds is plain["holds"] is holds


@pytest.mark.slow
@given(seeds, sizes, st.integers(2, 4))
def test_the_largest_part_that_keeps_it_remains(seed: int, size: int, k: int) -> None:
    """No set of classes that keeps the promise has a class that is marked."""
    table = few(9, seed, width=3)
    tally, quasi = tally_of(table, ["q0", "q1", "q2"]), ["q0", "q1", "q2"]
    marked, model = CombinationAnonymity(k, size).failing(tally), CombinationAnonymity(k, size)
    rest = tally.drop(marked)
    assert not len(rest) or model.check(rest).holds
    holding = [
        kept
        for count in range(1, len(tally) + 1)
        for kept in map(list, combinations(range(len(tally)), count))
        if model.check(tally.drop(~np.isin(np.arange(len(tally)), kept))).found >= k
    ]
    assert {i for kept in holding for i in kept} == {*np.flatnonzero(~marked).tolist()}, quasi


@given(seeds, st.integers(1, 3), st.sampled_from([0, 3]))
def test_the_lattice_finds_the_best_node(seed: int, size: int, suppressed: int) -> None:
    domain = random_domain(seed, rows=14)
    domain = type(domain)(domain.names, domain.hierarchies, domain.codes, domain.tally, keyed=True)
    model = CombinationAnonymity(2, size)
    lattice, sets = Lattice(domain, [model], suppressed), [*combinations("abc", size)]

    def is_rare(row: dict, names: tuple[str, ...], rows: list[dict]) -> bool:
        return sum(all(row[name] == other[name] for name in names) for other in rows) < model.k

    best = None
    for levels in product(*(range(height + 1) for height in domain.heights)):
        rows = [dict(zip("abc", labels, strict=True)) for labels in classes(domain, levels)]
        kept = rows
        while len(less := [row for row in kept if not any(is_rare(row, names, kept) for names in sets)]) < len(kept):
            kept = less
        node = lattice.nodes[levels]
        assert node.outliers == len(rows) - len(kept)
        if kept and len(rows) - len(kept) <= suppressed:
            assert node.holds
            best = node.loss if best is None else min(best, node.loss)
    if best is not None:
        assert lattice.search().loss == pytest.approx(best)


@given(seeds, st.integers(1, 3), st.sampled_from([None, 0.8]))
def test_restored_cells_keep_the_promise_and_more_values(seed: int, size: int, confidence: float | None) -> None:
    made = random_domain(seed, rows=30, columns=4)
    flat = Hierarchy.from_rows([(f"v{i}", TOP) for i in range(6)])
    domain = Domain(made.names, (flat,) * 4, made.codes, made.tally)
    models = [CombinationAnonymity(3, size)]
    models += [] if confidence is None else [CombinationConfidence(confidence, size, "disease")]  # type: ignore[list-item]
    try:
        whole = local_suppression(domain, to_class_models(models, 30)).generalization
    except kinfold.Unreachable:
        return
    restored = restore_cells(whole, models, make_cell_loss(domain).weights)
    missing = np.array([len(tree) for tree in domain.hierarchies])
    assert (restored.levels > 0).sum() <= ((whole.levels > 0) & (domain.codes != missing)).sum()
    cells = np.where(restored.levels > 0, missing, domain.codes)
    held = domain.tally.spreads["disease"]
    disease = np.zeros(len(cells), np.int64)
    disease[held.group] = held.code
    rows = [{**dict(zip("abcd", row, strict=True)), "ill": d} for row, d in zip(cells.tolist(), disease, strict=True)]
    found = dict(promises.few(rows, "abcd", ["ill"], {"size": size, "confidence": 1}))
    assert found["combinations", None, ""] >= 3
    assert confidence is None or found["confidence", "ill", ""] <= confidence


def test_classes_that_are_k_anonymous_imply_it() -> None:
    models = [CombinationAnonymity(3, 2), CombinationConfidence(0.9, 2, "ill")]
    implied = to_class_models(models, 100)
    assert KAnonymity(3) in implied
    tally = tally_of(few(400, 0), ["q0", "q1", "q2", "q3"])
    kept = tally.drop(mark_outliers(implied, tally))
    assert all(model.check(kept).holds for model in models)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["local-suppression", "lattice", "mdav", "datafly", "mingen-cell"])
def test_a_release_says_on_which_combinations_k_holds(method: str, tmp_path: Path) -> None:
    quasi = {f"q{a}": {"role": "quasi", "type": "nominal"} for a in range(4)}
    columns = quasi | {"ill": {"role": "confidential", "type": "nominal"}}
    privacy = {"k": 3, "combinations": {"size": 2, "confidence": 0.9}}
    release = kinfold.anonymize(few(200, 1), {"privacy": privacy, "method": {"name": method}, "columns": columns})
    release.save(tmp_path / "out")
    verdict = kinfold.verify(tmp_path / "out", twice=True)
    assert verdict.holds
    assert [each.promise for each in verdict.findings] == [
        "3-anonymity of every combination of at most 2 quasi-identifiers",
        "confidence of at most 0.9 in ill by 2 quasi-identifiers",
    ]
    assert kinfold.verify(tmp_path / "out", combinations={"size": 1}).holds  # the recipient asks for less
    page = (tmp_path / "out/public/report.html").read_text("utf-8")
    assert "3-anonymity of every combination of at most 2 quasi-identifiers holds" in page
    assert (release.verdict.k < 3) is (method in ("local-suppression", "lattice")) or release.verdict.k >= 3


def test_both_checkers_find_the_confidence_of_columns_of_every_type(tmp_path: Path) -> None:
    chance, more = np.random.default_rng(4), {"role": "confidential"}
    table = few(80, 4).assign(pay=chance.integers(1, 4, 80), rank=chance.choice(["low", "high"], 80))
    table["day"] = chance.choice(["2024-01-01", "2024-02-01", None], 80)
    columns = {f"q{a}": {"role": "quasi", "type": "nominal"} for a in range(4)} | {
        "ill": more,
        "day": {"role": "sensitive"},
    }
    columns |= {"pay": {**more, "type": "continuous"}, "rank": {**more, "type": "ordinal", "order": ["low", "high"]}}
    privacy = {"k": 3, "combinations": {"size": 2, "confidence": 0.9}}
    release = kinfold.anonymize(table, {"privacy": privacy, "method": {"name": "lattice"}, "columns": columns})
    release.save(tmp_path / "out")
    verdict = kinfold.verify(tmp_path / "out", twice=True)
    rows = release.frame.astype(object).where(release.frame.notna(), None).to_dict("records")
    expected = dict(
        promises.few(rows, ["q0", "q1", "q2", "q3"], ["ill", "pay", "rank", "day"], privacy["combinations"])
    )
    assert verdict.holds
    assert {each.column: each.found for each in verdict.findings if each.column} == pytest.approx(
        {column: found for (_, column, _), found in expected.items() if column}, abs=1e-12
    )


@pytest.mark.slow
def test_a_wide_table_loses_less_than_for_k_on_all_columns() -> None:
    table, quasi = few(300, 2, width=10), [f"q{a}" for a in range(10)]
    loss = {}
    for size in (1, 2, None):
        privacy = {"k": 3} | ({"combinations": {"size": size}} if size else {})
        policy = {"privacy": privacy, "method": {"name": "local-suppression"}, "output": {"others": "drop"}}
        policy["columns"] = {name: {"role": "quasi", "type": "nominal"} for name in quasi}
        loss[size] = kinfold.anonymize(table, policy).measures["loss"]["overall"]
    assert loss[1] == 0.0
    assert loss[2] < 0.5 * loss[None]


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"size": 0}, "combinations.size"),
        ({"size": 2, "confidence": 0}, "confidence"),
        ({"size": 2, "sizes": 3}, "unknown key"),
        ({"confidence": 0.5}, "size"),
    ],
)
def test_wrong_keys_are_named(asked: dict, text: str) -> None:
    with pytest.raises(kinfold.PolicyError, match=text):
        kinfold.anonymize(few(20, 0), quasi=["q0"], others="drop", k=2, combinations=asked)
