"""What comes to the driver of Spark: every collect is counted and bounded, and what needs more is refused by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import kinfold
from kinfold.errors import PolicyError
from kinfold.measures import pairing
from kinfold.policy.model import Policy
from kinfold.policy.table import find_gathering_reasons
from kinfold.tables import spark as spark_package
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.resources import MAX_DRIVER_ROWS, Resources, refuse_to_collect
from kinfold.tables.spark import engine as spark_engine
from kinfold.tables.spark import figures
from large_tables import lower_memory_limits
from sparks import watch_driver

RECORDS, LIMIT = 1_500, 600
INTERVALS = {"intervals": [10, 40]}
LEVELS = {"levels": [["north", "ns"], ["south", "ns"], ["east", "ew"], ["west", "ew"]]}


def people(records: int = RECORDS) -> pa.Table:
    random = np.random.default_rng(3)
    return pa.table(
        {
            "age": random.integers(20, 60, records),
            "area": random.choice(["north", "south", "east", "west"], records),
            "ill": random.choice(["flu", "cold", "none"], records),
            "note": [f"n{i}" for i in range(records)],
        }
    )


def policy(method: str, privacy: dict[str, Any], *, limit: int = LIMIT, **more: Any) -> dict[str, Any]:
    generalizing = method in ("lattice", "datafly", "mu-argus", "mingen")
    columns: dict[str, Any] = {"age": {"role": "quasi"}, "area": {"role": "quasi", "type": "nominal"}}
    if generalizing:
        columns = {"age": {"role": "quasi", "hierarchy": INTERVALS}, "area": columns["area"] | {"hierarchy": LEVELS}}
    if method == "univariate":
        columns["area"] = {"role": "other"}
    columns |= {"ill": {"role": "confidential", "type": "nominal"}, "note": {"role": "other"}}
    engine = {"name": "spark", "driver_rows": limit}
    return {"privacy": {"k": 20} | privacy, "method": {"name": method}, "columns": columns, "engine": engine} | more


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the table be large for what reads a sample of it."""
    lower_memory_limits(monkeypatch, region=700, sample=250)
    monkeypatch.setattr(spark_engine, "MAX_ROWS_TALLIED_WHOLE", 0)


METHODS = ("mdav", "lattice", "t-first", "v-mdav", "datafly", "mu-argus", "mingen", "k-first", "t-merge", "approximate")
MODELS = (
    *({}, {"t": 0.45}, {"l": 2}, {"p": 2, "alpha": 0.9}, {"beta": 3.0}, {"delta": 1.5}),
    *(
        {"average_risk": 0.02, "risk_share": {"above": 0.04, "most": 0.1}},
        {"combinations": {"size": 1, "confidence": 0.9}},
    ),
    {"population": {"size": 50_000, "k": 40, "alpha": 0.05}},
)


EVERYDAY = [("mdav", {"t": 0.45}), ("lattice", {"l": 2})]  # each starts dozens of jobs: the rest is for the long form
LONG = [pytest.mark.long, pytest.mark.trust("products")]
REST = [(method, privacy) for method in METHODS for privacy in MODELS if (method, privacy) not in EVERYDAY]


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(("method", "privacy"), EVERYDAY + [pytest.param(*each, marks=LONG) for each in REST])
def test_every_collect_is_counted_and_bounded(
    spark: Any, method: str, privacy: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each method with each model: nothing comes to the driver but through its one door."""
    needs_t = method in ("t-first", "k-first", "t-merge")
    brought = watch_driver(monkeypatch)
    release = kinfold.anonymize(people(), policy(method, privacy | ({"t": 0.5} if needs_t else {})))
    collected = release.engine.driver.collected
    assert len(brought) == len(collected) > 0
    assert [each.found.nbytes for each in brought] == [each.bytes for each in collected]
    assert max(each.rows for each in brought) <= LIMIT
    assert max(each.rows for each in collected) <= LIMIT
    assert not any(each.holds("n7") for each in brought if each.rows > 1 and "k0" not in each.columns)
    assert release.verdict.holds
    assert release.verdict.k >= 20 or "combinations" in privacy


def test_only_the_driver_collects() -> None:
    folder = Path(spark_package.__file__).parent
    words = re.compile(r"\.(toArrow|toPandas|toLocalIterator|collect|take|head|first)\(\s*\)|\.toArrow\(")
    found = {path.name for path in folder.glob("*.py") if words.search(path.read_text())}
    assert found == {"driver.py"}


REFUSED = {
    "privacy.unit": {"privacy": {"k": 5, "unit": "id"}},
    "privacy.household": {"privacy": {"k": 5, "household": "id"}},
    "privacy.joint": {"privacy": {"k": 5, "joint": True}},
    "edit rules": {"rules": [{"check": "age >= 0"}]},
    "sampling weights": {"report": {"sampling_weights": "id"}},
    "report.measures": {"report": {"measures": "all"}},
    "perturb (columns.age)": {"columns": {"age": {"role": "other", "perturb": {"noise": 0.1}}}},
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_needs_every_record_is_refused_by_name(reason: str) -> None:
    asked = Policy.parse({"privacy": {"k": 5}, "columns": {"age": {"role": "quasi"}}} | REFUSED[reason])
    reasons = [*find_gathering_reasons(asked)]
    refuse_to_collect(None, 101, reasons)  # the embedded engine holds any number of rows
    refuse_to_collect(101, 101, reasons)
    with pytest.raises(PolicyError) as refused:
        refuse_to_collect(100, 101, reasons)
    (problem,) = refused.value.problems
    assert problem.what.startswith(reason)
    assert "101 records" in problem.what
    assert problem.fix == "use engine duckdb; or, if the driver has the memory, set engine.driver_rows = 101 or more"


def test_a_policy_without_reasons_is_not_refused() -> None:
    assert not [*find_gathering_reasons(Policy.parse({"privacy": {"k": 5}}))]


PEOPLE = {
    "privacy": {"k": 5, "unit": "id", "events_known": 1},
    "method": {"name": "mdav", "people": "together"},
    "output": {"surrogate": True},
    "columns": {
        "id": {"role": "identifier"},
        "age": {"role": "quasi"},
        "ward": {"role": "quasi"},
        "ill": {"role": "confidential"},
    },
}


def test_records_that_must_be_in_one_place_are_collected_once(spark: Any, tmp_path: Path) -> None:
    """The embedded engine makes the release, so the driver does not ask Spark for a column again and again."""
    random = np.random.default_rng(2)
    person = np.repeat(np.arange(60), 3)
    rows = pa.table(
        {
            "id": person,
            "age": random.integers(20, 60, 60)[person],
            "ward": random.choice(["A", "B"], 180),
            "ill": random.choice(["flu", "cold"], 180),
        }
    )
    parquet.write_table(rows, tmp_path / "visits.parquet")
    frame = spark.read.parquet(str(tmp_path / "visits.parquet"))
    sources = {"file": tmp_path / "visits.parquet", "frame": frame, "rows": rows}
    for kind, source in sources.items():
        engine = {"name": "spark", "driver_rows": 180}
        release = kinfold.anonymize(source, PEOPLE | {"engine": engine})
        records = [each for each in release.engine.driver.collected if each.rows == 180]
        assert len(records) == (kind != "rows")
        assert release.verdict.holds
        with pytest.raises(PolicyError, match=r"privacy\.unit counts people .* all 180 records.*may collect 179"):
            kinfold.anonymize(source, PEOPLE | {"engine": engine | {"driver_rows": 179}})
        if kind == "frame":
            assert release.frame.sparkSession is frame.sparkSession
            assert [row.ill for row in release.frame.collect()] == rows.column("ill").to_pylist()


@pytest.mark.usefixtures("large")
def test_records_that_would_be_gathered_are_refused(spark: Any) -> None:
    with pytest.raises(
        PolicyError, match=r"method\.block = 0 forbids blocks: the driver of Spark would hold all 1,500"
    ):
        kinfold.anonymize(people(), policy("mdav", {}) | {"method": {"name": "mdav", "block": 0}})
    columns = {"age": {"role": "quasi", "hierarchy": INTERVALS}, "note": {"role": "quasi", "hierarchy": {"mask": 1}}}
    asked = policy("lattice", {}) | {"columns": columns, "output": {"others": "drop"}}
    with pytest.raises(PolicyError, match=r"more than 600 rows \(the distinct combinations of age, note\)"):
        kinfold.anonymize(people(), asked)


@pytest.mark.usefixtures("large")
def test_a_recoded_table_is_measured_by_a_sample(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quasi-identifier whose single values are recoded, and a column with more values than the driver holds."""
    monkeypatch.setattr(pairing, "SAMPLE_RECORDS", 250)
    asked = policy("lattice", {})
    asked["columns"]["age"] |= {"top": 55}
    release = kinfold.anonymize(people(), asked)
    assert release.sample is not None
    assert release.verdict.k >= 20
    with pytest.raises(PolicyError, match="the class of every record"):
        _ = release.labels
    assert all(each.rows <= LIMIT for each in release.engine.driver.collected)


def test_the_limit_is_a_key_of_the_policy(spark: Any) -> None:
    with spark_engine.Spark(spark, Policy.parse({"privacy": {"k": 2}}).engine.resources) as engine:
        assert engine.max_collected_rows == engine.driver.limit == MAX_DRIVER_ROWS == 300_000
    with pytest.raises(PolicyError, match="driver_rows"):
        Policy.parse({"privacy": {"k": 2}, "engine": {"driver_rows": 3}})


def test_the_order_of_values_is_counted_where_the_rows_are(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of seven rows, some without any value: the same counts as over all rows at once."""
    monkeypatch.setattr(figures, "ROWS_PER_RUN", 7)
    random = np.random.default_rng(8)
    table = pa.table(
        {
            "counter": pa.array(range(100)),
            "number": pa.array([None if 20 <= i < 40 else float(random.integers(0, 3)) for i in range(100)]),
            "text": pa.array(random.choice(["a", "b", "\u00e4", None], 100).tolist()),
            "empty": pa.array([None] * 100, pa.string()),
        }
    )
    with DuckDB() as plain, spark_engine.Spark(spark, Resources()) as engine:
        ours, theirs = engine.read(table), plain.read(table)
        columns = [*plain.schema(theirs)]
        counted = {name: stats.order for name, stats in engine.profile(ours, columns, ordered=True).items()}
        assert counted == {name: stats.order for name, stats in plain.profile(theirs, columns, ordered=True).items()}
