"""Rules between columns that held in the original and break in the release: found, counted, and said."""

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kinfold
from command import run
from kinfold.measures import release_warnings
from kinfold.tables.relations import SampledColumn, find_relations

TOWNS = {"Bern": "b3", "Chur": "c7", "Genf": "g1", "Thun": "t3"}
QUASI = ("age", "admission", "discharge", "stay", "town", "area", "alive", "cause")
RULES = {
    "admission <= discharge": lambda t: t.admission <= t.discharge,
    "stay = discharge - admission": lambda t: (t.discharge - t.admission).dt.days == t.stay,
    "area <-> town": lambda t: t.town.map(TOWNS) == t.area,
    'alive = "yes" implies cause is missing': lambda t: (t.alive != "yes") | t.cause.isna(),
}


def stays(records: int = 400) -> pd.DataFrame:
    """Return hospital stays that never were, with four rules between their columns."""
    draw = random.Random(5)
    admission = pd.Series(
        pd.to_datetime("2024-01-01") + pd.to_timedelta([draw.randrange(90) for _ in range(records)], "D")
    )
    stay = [draw.randrange(1, 60) for _ in range(records)]
    town, alive = draw.choices([*TOWNS], k=records), draw.choices(["yes", "no"], [4, 1], k=records)
    return pd.DataFrame(
        {
            "age": [draw.randrange(20, 90) for _ in range(records)],
            "admission": admission,
            "discharge": admission + pd.to_timedelta(stay, "D"),
            "stay": stay,
            "town": town,
            "area": [TOWNS[each] for each in town],
            "alive": alive,
            "cause": [None if each == "yes" else draw.choice(["heart", "lung", "fall"]) for each in alive],
            "ward": draw.choices("abc", k=records),
        }
    )


def policy(*quasi: str) -> dict[str, Any]:
    columns = {name: {"role": "quasi"} for name in quasi} | {"ward": {"role": "confidential"}}
    return {"privacy": {"k": 8}, "method": {"name": "mdav"}, "columns": columns, "output": {"others": "release"}}


@pytest.mark.parametrize("quasi", [QUASI, ("age", "discharge", "town", "alive"), ("stay", "area", "cause")])
def test_every_rule_is_found_and_counted_as_a_plain_reading_of_the_release_counts_it(quasi: tuple[str, ...]) -> None:
    release = kinfold.anonymize(stays(), policy(*quasi))
    found = release.measures["structure"]
    expected = {check: int((~holds(release.frame)).sum()) for check, holds in RULES.items()}
    assert {each["check"]: each["after"] for each in found["broken"] if each["check"] in RULES} == {
        check: broken for check, broken in expected.items() if broken
    }
    assert any(expected.values())
    assert all(each["before"] == 0 for each in found["broken"])
    assert found["found"] >= len(RULES)


@pytest.mark.parametrize("method", ["mdav", "lattice"])
def test_a_large_table_is_counted_on_a_sample_and_says_so(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_warnings, "MAX_RELATED_ROWS", 150)
    request = {**policy("stay", "alive"), "method": {"name": method}}
    request["columns"]["stay"]["hierarchy"] = {"intervals": [10, 30]}
    found = kinfold.anonymize(stays(), request).measures["structure"]
    assert found["found"] >= 2
    assert 0 < found["records"] <= 200
    assert found["estimated"] == "estimated from 150 of 400 records"
    assert all(0 < each["after"] <= found["records"] for each in found["broken"])


def test_a_table_released_as_it_is_breaks_no_rule() -> None:
    found = kinfold.measure(stays(), stays(), policy(*QUASI))["structure"]
    assert (found["found"] >= len(RULES), found["broken"]) == (True, [])


def test_columns_that_stay_as_they_are_are_not_compared() -> None:
    found = kinfold.anonymize(stays(), policy("age")).measures["structure"]
    assert found == {"found": 0, "broken": [], "records": 400}


def test_independent_columns_have_no_relations() -> None:
    draw = np.random.default_rng(3)
    columns = [
        *(SampledColumn.from_numbers(f"n{i}", draw.normal(size=500), dates=False) for i in range(5)),
        *(SampledColumn(f"c{i}", None, draw.integers(0, 4, 500), ["a", "b", "c", "d", None]) for i in range(5)),
        SampledColumn("key", None, np.arange(500), [*map(str, range(500)), None]),
        SampledColumn.from_numbers(
            "far", draw.normal(1e6, 1, 500), dates=False
        ),  # above all others, which says nothing
    ]
    assert find_relations(columns, {column.name for column in columns}) == []


def test_a_code_of_numbers_is_told_by_its_town() -> None:
    table = stays().assign(area=lambda rows: rows.area.map({"b3": 3000, "c7": 7000, "g1": 1200, "t3": 3600}))
    request = {**policy("age", "town"), "columns": {**policy("age", "town")["columns"], "area": {"role": "other"}}}
    broken = kinfold.anonymize(table, request).measures["structure"]["broken"]
    assert [each["check"] for each in broken] == ["area <-> town"]


def test_sums_of_numbers_and_equal_columns_are_found() -> None:
    draw = np.random.default_rng(4)
    a, b = draw.integers(0, 50, 200).astype(float), draw.integers(0, 50, 200).astype(float)
    a[3] = np.nan
    named = {"a": a, "b of c": b, "total": a + b, "again": a}
    columns = [SampledColumn.from_numbers(name, numbers, dates=False) for name, numbers in named.items()]
    found = find_relations(columns, ["total", "again"])
    assert ("sum", ("total", "a", "b of c"), "total = a + `b of c`", 199) in [
        (each.kind, each.columns, each.check, each.rows) for each in found
    ]
    assert ("order", ("a", "again"), "a = again") in [(each.kind, each.columns, each.check) for each in found]


@pytest.mark.parametrize("mistakes", [0, 3, 30])
def test_a_rule_with_few_mistakes_is_found_with_its_support_and_one_with_many_is_not(mistakes: int) -> None:
    rows = stays(1000).astype({"alive": object})
    rows.loc[: mistakes - 1, "area"] = ["b3" if each != "Bern" else "c7" for each in rows.town[:mistakes]]
    rows.loc[rows.index[rows.alive == "yes"][:mistakes], "cause"] = "fall"
    columns = [SampledColumn.from_texts(name, pa.array(rows[name])) for name in ("town", "area", "alive", "cause")]
    found = {each.check: each for each in find_relations(columns, ["town", "alive"])}
    checks = ["area <-> town", 'alive = "yes" implies cause is missing']
    assert [check in found for check in checks] == [mistakes < 30] * 2
    if mistakes < 30:
        alive = int((rows.alive == "yes").sum())
        assert [found[check].rows for check in checks] == [1000, alive]
        assert [round((1 - found[each].share) * found[each].rows) for each in checks] == [mistakes, mistakes]


@pytest.mark.slow
def test_the_command_and_the_internal_page_say_what_breaks_and_only_the_page_names_values(tmp_path: Path) -> None:
    stays().to_csv(tmp_path / "stays.csv", index=False)
    options = (
        "--quasi",
        "age,stay,cause",
        "--confidential",
        "ward",
        "-k",
        8,
        "--others",
        "release",
        "--method",
        "mdav",
    )
    command = ("anonymize", tmp_path / "stays.csv", *options, "--out", tmp_path / "out", "--force")
    said = run(*command).ok().out
    assert re.search(r"broken: stay = discharge - admission, in \d+ of 400 records", said)
    assert re.search(r"broken: a rule of alive and cause, in \d+ of 400 records", said)
    assert "yes" not in said
    assert 'alive = "yes" implies cause is missing' in run(*command, "--show-values").ok().out
    assert '"yes"' not in run(*command, "--json").ok().out.replace("\\", "")
    internal, public = ((tmp_path / "out" / part / "report.html").read_text("utf-8") for part in ("internal", "public"))
    assert "Structure between columns" in internal
    assert "alive = &#34;yes&#34; implies cause is missing" in internal
    assert "Structure between columns" not in public
