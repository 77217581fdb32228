"""The Adult file, mixed types: k on the file by pycanon's count, and the same bytes twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from pycanon import anonymity

from command import run, text
from kinfold.hierarchy import read_arx
from reference.public_data import found

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
