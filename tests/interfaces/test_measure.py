"""`kinfold measure` and the measures of a release: every key, its reason where it is null, and numbers by hand."""

import csv
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kinfold
from command import run, text

RISK = {
    *("dr_min", "dr_max", "dr_weighted", "unique_from_larger"),
    *("prosecutor_max", "prosecutor_mean", "linkage", "interval", "interval_records", "inference"),
}
LOSS = {
    *(
        "overall",
        "by_column",
        "changed",
        "sse_by_column",
        "granularity_by_column",
        "sse",
        "sst",
        "sse_ratio",
        "normalized_sse",
        "il1",
        "il2",
        "il3",
        "il4",
        "il5",
        "il",
        "pil",
    ),
    *("prec", "granularity", "dist", "ctbil", "actbil", "ebil", "discernibility", "average_class_size"),
}
TOP = {
    *("records", "released", "suppressed", "classes", "k", "l", "t", "risk", "risk_before", "loss"),
    *("asked", "method", "start", "steps", "seconds", "notes"),
}
HEAD = "age,zip,level,disease\n"
ROWS = [
    (
        20 + i % 7 * 5 + i // 20,
        f"02{1 + i % 3}3{i % 4}",
        ("low", "mid", "high")[i % 3],
        ("flu", "cold", "gout")[i % 5 % 3],
    )
    for i in range(60)
]
POLICY = """\
[privacy]
k = {k}
[method]
name = "{method}"
suppression = {suppression}
[output]
order = "kept"
suppressed = "{suppressed}"
[columns.age]
role = "quasi-identifier"
type = "continuous"
{age}
[columns.zip]
role = "quasi-identifier"
type = "nominal"
hierarchy = {{ mask = 4 }}
{zip}
[columns.level]
role = "quasi-identifier"
type = "ordinal"
order = ["low", "mid", "high"]
{level}
[columns.disease]
role = "confidential"
"""
INTERVALS = "hierarchy = { intervals = [10, 20] }"
LEVELS = 'hierarchy = { levels = [["low", "low"], ["mid", "up"], ["high", "up"]] }'


def policy(method: str = "mdav", **more: Any) -> str:
    return POLICY.format(
        **({"k": 3, "method": method, "suppression": 0, "suppressed": "drop", "age": "", "zip": "", "level": ""} | more)
    )


def anonymized(folder: Path, rules: str, rows: list[tuple[Any, ...]] = ROWS) -> tuple[Any, list[list[str]]]:
    """Release the table by the command; return its JSON and the released rows."""
    table = text(folder, "table.csv", HEAD + "".join(",".join(map(str, row)) + "\n" for row in rows))
    asked = text(folder, "policy.toml", rules)
    ran = run("anonymize", table, "--policy", asked, "--json", "--force", "--out", folder / "out").ok()
    with (folder / "out" / "public" / "release.csv").open(newline="") as lines:
        return ran.json, list(csv.reader(lines))[1:]


def measured(folder: Path, *options: object) -> Any:
    released = folder / "out" / "public" / "release.csv"
    ran = run("measure", folder / "table.csv", released, "--policy", folder / "policy.toml", "--json", *options).ok()
    return ran.json


def flat(values: dict[str, Any]) -> dict[str, Any]:
    parts = {key: flat(value) for key, value in values.items() if isinstance(value, dict)}
    inner = {f"{key}.{part}": value for key, held in parts.items() for part, value in held.items()}
    plain = {key: value for key, value in values.items() if key not in parts}
    return {key: "null" if value is None else value for key, value in (plain | inner).items()}


def test_a_release_has_every_key_of_the_contract(tmp_path: Path) -> None:
    found, rows = anonymized(tmp_path, policy())
    assert set(found) >= TOP
    assert set(found["risk"]) >= RISK
    assert set(found["loss"]) >= LOSS
    assert found["released"] == len(rows) == 60
    assert found["classes"] == len({tuple(row[:3]) for row in rows})
    assert set(found["l"]) == set(found["t"]) == {"disease"}


def test_what_the_command_measures_is_what_the_release_recorded(tmp_path: Path) -> None:
    found, _ = anonymized(tmp_path, policy())
    again = measured(tmp_path)
    for section in ("risk", "loss"):
        one, other = flat(again[section]), flat(found[section])
        assert one.keys() == other.keys()
        assert [key for key in one if one[key] == "null"] == [key for key in other if other[key] == "null"]
        numbers = [key for key in one if one[key] != "null"]
        assert [one[key] for key in numbers] == pytest.approx([other[key] for key in numbers], rel=1e-9)


def test_a_release_says_in_its_audit_and_on_its_page_which_measures_were_computed(tmp_path: Path) -> None:
    for which, remark in (("standard", "These are the standard measures"), ("all", "These are all measures")):
        found, _ = anonymized(tmp_path, policy() + f'[report]\nmeasures = "{which}"\n')
        internal = tmp_path / "out" / "internal"
        audit = json.loads((internal / "audit.json").read_text("utf-8"))
        assert found["measures"] == audit["measures"]["measures"] == audit["policy"]["report"]["measures"] == which
        assert ("propensity_mse" in found["loss"]) == (which == "all")
        assert remark in (internal / "report.html").read_text("utf-8")
        assert remark not in (tmp_path / "out" / "public" / "report.html").read_text("utf-8")
    assert set(measured(tmp_path, "--measures", "standard")["loss"]) == set(found["loss"]) - {"propensity_mse"}


def test_every_null_has_its_reason_in_the_notes(tmp_path: Path) -> None:
    found, _ = anonymized(tmp_path, policy())
    for section in ("risk", "loss"):
        for key, value in found[section].items():
            told = any(f"{section}.{key}" in note.split(": ")[0].split(", ") for note in found["notes"])
            assert (value is None) <= told, key
    assert found["loss"]["prec"] is None
    assert found["loss"]["sse_ratio"] is not None


SORTED = ('order = "kept"', 'order = "sorted"')


def test_rows_that_cannot_be_paired_leave_what_needs_pairs_null(tmp_path: Path) -> None:
    anonymized(tmp_path, policy().replace(*SORTED))
    (tmp_path / "out" / "internal" / "audit.json").unlink()
    found = measured(tmp_path, "--task", "classification:disease")
    assert found["loss"]["overall"] is None
    assert found["risk_before"]["prosecutor_mean"] is not None
    assert found["risk"]["linkage"] is None
    assert found["loss"]["sse"] is None
    assert any("reordered" in note and "risk.linkage" in note for note in found["notes"])
    assert found["loss"]["average_class_size"] >= 3
    assert found["risk"]["inference"]["disease"] is not None
    assert 0 <= found["loss"]["task"]["released"] <= 1


def test_a_sorted_release_is_measured_by_the_audit_beside_it(tmp_path: Path) -> None:
    made, _ = anonymized(tmp_path, policy().replace(*SORTED))
    found = measured(tmp_path)
    for section in ("risk", "risk_before", "loss"):
        one, other = (list(flat(side[section]).items()) for side in (found, made))
        assert [(key, pytest.approx(value, rel=1e-9) if value != "null" else value) for key, value in other] == one
    assert any("from the audit next to it" in note and "loss.overall" in note for note in found["notes"])
    assert measured(tmp_path, "--columns", "all")["loss"]["overall"] is None  # the audit has the quasi-identifiers
    assert measured(tmp_path, "--set", "privacy.k=4")["loss"]["overall"] is None  # or another question
    release = tmp_path / "out" / "public" / "release.csv"
    release.write_text(release.read_text("utf-8").replace("flu", "cold", 1), "utf-8")
    assert measured(tmp_path)["loss"]["overall"] is None  # another file


@pytest.mark.slow
@pytest.mark.parametrize("suppressed", ["drop", "star"])
@pytest.mark.parametrize("method", ["lattice", "datafly"])
def test_a_sorted_release_of_statements_is_matched_by_its_classes(tmp_path: Path, method: str, suppressed: str) -> None:
    hierarchies = {"age": INTERVALS, "level": LEVELS, "suppression": 9, "suppressed": suppressed}
    made, _ = anonymized(tmp_path, policy(method, **hierarchies).replace(*SORTED))
    (tmp_path / "out" / "internal" / "audit.json").unlink()
    found = measured(tmp_path, "--linkage-untouched")
    assert made["loss"]["overall"] > 0
    for section, keys in (("loss", ("overall", "granularity", "prec")), ("risk", ("dr_max", "linkage", "uncounted"))):
        assert [found[section][key] for key in keys] == pytest.approx([made[section][key] for key in keys])
    assert found["loss"]["by_column"] == pytest.approx(made["loss"]["by_column"])
    assert found["risk"]["linkage_untouched"]["columns"] == ["age", "zip", "level", "disease"]
    everything = measured(tmp_path, "--columns", "all")["loss"]["by_column"]
    assert everything == pytest.approx({**made["loss"]["by_column"], "disease": made["suppressed"] / 60})


def test_a_table_against_itself_is_a_baseline(tmp_path: Path) -> None:
    rules = policy() + '[columns.name]\nrole = "identifier"\n'
    names = (f"name{i}," + ",".join(map(str, row)) + "\n" for i, row in enumerate(ROWS))
    table = text(tmp_path, "table.csv", "name," + HEAD + "".join(names))
    ran = run("measure", table, table, "--policy", text(tmp_path, "policy.toml", rules), "--json").ok()
    found = ran.json
    assert found["loss"]["overall"] == 0
    assert found["loss"]["by_column"] == found["loss"]["changed"] == {"age": 0, "zip": 0, "level": 0}
    assert {key: found["risk"][key] for key in found["risk_before"]} == found["risk_before"]
    assert found["risk_before"]["prosecutor_max"] == 1 / min(Counter(row[:3] for row in ROWS).values())
    assert any("'name'" in note and "must not hold" in note for note in found["notes"])


def test_the_risk_of_each_record_is_there_before_and_after_and_in_no_file(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 1.0, 11.0, 13.0, None], "c": ["x", "x", "y", "y", "z"]})
    columns = {"a": {"role": "quasi", "missing": "drop"}, "c": {"role": "quasi"}}
    release = kinfold.anonymize(frame, {"privacy": {"k": 2}, "method": {"name": "mdav"}, "columns": columns})
    found = release.measures.risk_by_record
    assert found.before.tolist() == [0.5, 0.5, 1, 1, 1]
    assert found.after.tolist()[:4] == [0.5] * 4
    assert math.isnan(found.after[4])
    release.save(tmp_path / "out")
    assert not [
        path for path in (tmp_path / "out").rglob("*") if path.is_file() and "risk_by_record" in path.read_text()
    ]


def by_hand(rows: list[list[str]]) -> tuple[float, float]:
    """Prec and granularity of age (intervals of 10 and 20), zip (mask) and level (low; mid or high), cell by cell."""
    ages, zips = {row[0] for row in ROWS}, {row[1] for row in ROWS}
    lost_prec, lost_grain = [], []
    for age, zip_, level in (row[:3] for row in rows):
        low, _, high = age.partition("-")
        inside = [value for value in ages if age == "*" or int(low) <= value <= int(high or low)]
        step = 3 if age == "*" else 0 if not high else 1 if int(high) - int(low) == 9 else 2
        hidden = 5 if zip_ == "*" else zip_.count("*")
        under = [value for value in zips if value.startswith(zip_.rstrip("*"))]
        up, many = {"low": (0, 1), "mid": (0, 1), "high": (0, 1), "up": (1, 2), "*": (2, 3)}[level]
        lost_prec += [step / 3, hidden / 5, up / 2]
        lost_grain += [(len(inside) - 1) / (len(ages) - 1), (len(under) - 1) / (len(zips) - 1), (many - 1) / 2]
    return 1 - float(np.mean(lost_prec)), 1 - float(np.mean(lost_grain))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lattice", "datafly", "mdav"])
def test_prec_and_granularity_of_a_generalized_release_are_those_of_a_count_by_hand(
    tmp_path: Path, method: str
) -> None:
    average = 'average = "generalize"\n' if method == "mdav" else ""
    hierarchies = {"age": average + INTERVALS, "zip": average, "level": average + LEVELS}
    found, rows = anonymized(tmp_path, policy(method, suppression=9, suppressed="star", **hierarchies))
    prec, granularity = by_hand(rows)
    assert 0 < prec < 1
    assert found["loss"]["prec"] == pytest.approx(prec, abs=1e-12)
    assert found["loss"]["granularity"] == pytest.approx(granularity, abs=1e-12)
    assert measured(tmp_path)["loss"]["granularity"] == pytest.approx(granularity, abs=1e-12)
    assert found["loss"]["sse_ratio"] is None


@pytest.mark.parametrize("suppressed", ["star", "drop"])
def test_a_record_that_is_starred_or_dropped_loses_everything(tmp_path: Path, suppressed: str) -> None:
    hierarchies = {"age": INTERVALS, "level": LEVELS}
    found, rows = anonymized(tmp_path, policy("datafly", suppression=30, suppressed=suppressed, **hierarchies))
    gone = 60 - len(rows) if suppressed == "drop" else sum(row[0] == "*" for row in rows)
    assert gone >= 3
    prec, granularity = by_hand([*rows, *([["*"] * 3] * (60 - len(rows)))])
    assert found["loss"]["prec"] == pytest.approx(prec, abs=1e-12)
    assert found["loss"]["granularity"] == pytest.approx(granularity, abs=1e-12)
    assert found["suppressed"] == 60 - len(rows)


def test_a_dropped_record_loses_its_numbers_and_its_categories() -> None:
    frame = pd.DataFrame({"a": [1.0, 3.0, 11.0, 13.0, None], "c": ["x", "x", "y", "y", "z"]})
    columns = {"a": {"role": "quasi", "missing": "drop"}, "c": {"role": "quasi"}}
    release = kinfold.anonymize(frame, {"privacy": {"k": 2}, "method": {"name": "mdav"}, "columns": columns})
    assert release.measures["released"] == 4
    assert release.measures["loss"]["dist"] == 1.0  # the one category that went with its record
    columns = {"a": {"role": "quasi"}, "c": {"role": "quasi", "type": "nominal"}}
    whole = pd.DataFrame({"a": [1.0, 3.0, 11.0, 13.0], "c": ["x", "x", "y", "y"]})
    kept = kinfold.measure(whole, whole.assign(a=[2.0, 2.0, 12.0, 12.0]), {"privacy": {"k": 2}, "columns": columns})
    assert kept["loss"]["dist"] == 0.0
    assert kept["loss"]["sse_ratio"] == pytest.approx(1 / 26)


@pytest.mark.slow
def test_roles_on_the_command_line_measure_like_a_policy_file(tmp_path: Path) -> None:
    anonymized(tmp_path, policy())
    both = (tmp_path / "table.csv", tmp_path / "out" / "public" / "release.csv")
    roles = ("--quasi", "age,zip,level", "--confidential", "disease")
    ran = run("measure", *both, *roles, "-k", 3, "--json", "--show-values")
    same = kinfold.measure(*both, quasi=["age", "zip", "level"], confidential=["disease"], k=3).to_dict()
    assert ran.code == 0, ran.err
    assert {key: ran.json[key] for key in ("k", "risk", "loss")} == {key: same[key] for key in ("k", "risk", "loss")}
    (tmp_path / "short.toml").write_text("[privacy]\nk = 3\n", "utf-8")
    assert (
        run("measure", *both, "--policy", tmp_path / "short.toml", *roles, "--json", "--show-values").json["loss"]
        == same["loss"]
    )
    unnamed = run("measure", *both)
    assert (unnamed.code, "--quasi" in unnamed.err, "--policy" in unnamed.err) == (2, True, True)
    assert run("compare", both[0], "--methods", "mdav", "--k", 3, *roles, "--out", tmp_path / "compared").code == 0


def test_an_attack_is_not_measured_with_labels_that_the_policy_does_not_explain() -> None:
    table = pd.DataFrame({"age": [20 + i % 40 for i in range(200)], "sex": ["f", "m"] * 100})
    ages = {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}}, "sex": {"role": "quasi"}}
    asked = {"privacy": {"k": 10}, "method": {"name": "lattice"}, "columns": ages}
    released = kinfold.anonymize(table, asked).frame
    complete = kinfold.measure(table, released, asked, population=table)["risk"]
    assert complete["journalist_max"] == complete["prosecutor_max"]
    partial = kinfold.measure(table, released, quasi=["age", "sex"], k=10, population=table)
    assert (partial["risk"]["journalist_max"], partial["risk"]["linkage"]) == (None, None)
    assert any("does not explain the released labels of 'age'" in note for note in partial.to_dict()["notes"])
