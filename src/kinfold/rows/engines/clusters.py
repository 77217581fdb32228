"""The door to Spark, for what is found out before it is imported: whether it is there, and which session is meant."""

from __future__ import annotations

from typing import Any

from kinfold.rows.frames import is_spark
from kinfold.rows.resources import Resources


def opened(source: Any, master: str | None, resources: Resources) -> Any:
    """Return an engine on Spark: in the session of a frame that is given, or in the one that a policy names."""
    from kinfold.rows.engines.spark import running_spark

    spark = source.sparkSession if is_spark(source) else running_spark.opened(master, resources)
    from kinfold.rows.engines.spark.engine import Spark

    return Spark(spark, resources)
