"""Large tables on Spark: the classes are those of the embedded engine, and no record comes to the driver."""

from __future__ import annotations

from typing import Any

import pytest

import kinfold
from kinfold.measures import pairing
from kinfold.tables.spark import engine as spark_engine
from large_tables import lower_memory_limits, people, policy
from sparks import watch_driver

SAMPLE = 250


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    lower_memory_limits(monkeypatch, region=700, sample=SAMPLE)
    monkeypatch.setattr(spark_engine, "MAX_ROWS_TALLIED_WHOLE", 0)  # of a short table all columns are tallied at once
    monkeypatch.setattr(spark_engine, "MAX_VALUES_DESCRIBED", SAMPLE)
    monkeypatch.setattr(pairing, "MAX_DISTINCT_COUNTED", SAMPLE)


def test_no_record_comes_to_the_driver(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are missing, categories are too, one column has a text for each record, and another is skewed."""
    table, asked = people("mean, drop and skewed", 1_600), policy("mean")
    asked["privacy"]["k"] = 20
    asked["columns"]["pay"]["missing"] = "drop"
    brought = watch_driver(monkeypatch)
    one, other = kinfold.anonymize(table, asked), kinfold.anonymize(spark.createDataFrame(table), asked)
    most = 1.3 * SAMPLE + other.verdict.classes
    spreads = [each for each in brought if each.rows > most]  # how values of a confidential column fall into classes
    assert {each.columns for each in spreads} <= {("k0", "k1", "k2", "k3", "count")}
    assert len(spreads) <= 2
    _same(one, other)


def _same(one: Any, other: Any) -> None:
    assert one.plan.regions == other.plan.regions > 1
    assert one.labels.tolist() == other.labels.tolist()
    assert one.plan.notes == other.plan.notes
    assert one.verdict.to_dict() == other.verdict.to_dict()
    ours, theirs = one.measures.to_dict(), other.measures.to_dict()
    assert ours == theirs
    names = one.frame.column_names
    assert one.frame.to_pydict() == other.frame.toArrow().select(names).to_pydict()


def test_the_classes_are_those_of_the_other_engine(spark: Any) -> None:
    """t-first with its strata, values that tie and are missing, over rows in partitions of which some are empty."""
    table, asked = people("separate and ties", 1_500), policy("separate", "t-first")
    asked["privacy"]["t"] = 0.35
    frame = spark.createDataFrame(table).repartition(5, "area").sortWithinPartitions("note")
    _same(kinfold.anonymize(frame.toArrow(), asked), kinfold.anonymize(frame, asked))


@pytest.mark.long
@pytest.mark.trust("faults")
def test_all_records_are_equal(spark: Any, tmp_path: Any) -> None:
    table, asked = people("equal", 1_500), policy()
    one, other = kinfold.anonymize(table, asked), kinfold.anonymize(spark.createDataFrame(table), asked)
    _same(one, other)
    other.save(tmp_path / "out")
    assert kinfold.verify(tmp_path / "out").holds
