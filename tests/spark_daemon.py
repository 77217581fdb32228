"""The process that forks the Python workers of Spark: it imports once what each of them would import for itself."""

import gc

import duckdb
import numba
import pandas
import pyspark.worker
from pyspark.daemon import manager

from kinfold.methods.partition import mdav
from kinfold.tables.spark import engine

__all__ = ["duckdb", "engine", "mdav", "numba", "pandas", "pyspark"]

gc.freeze()  # a worker collects garbage after each task
manager()
