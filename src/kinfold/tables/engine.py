"""The engine seam: what every engine can do with a table. Everything above it works with any engine.

Rows stay in the engine. `read` returns a frame. These attributes of it are public:

    names       the names of the columns, in order
    form        how the source is written, declared or detected
    checksum    the SHA-256 of the file, or a checksum of the rows of a database; None for a frame
    blanked     the columns in which a word for a missing value became null
    separator   the field separator of a CSV file of this table
    files       the part files of a folder, with their rows and checksums
    parts       which rows and columns are of which file, if several files were joined
    formulas    (column, number of formulas without quotes), if its form says that formulas are quoted

Questions that follow from these verbs are functions in `kinfold.tables.queries`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.tables.recoding import RecodedValues, Recoding, ValueRecoding
from kinfold.tables.regions import Regions, RequestedColumns, Route
from kinfold.tables.resources import Resources
from kinfold.tables.schema import Column, ExactColumn, OrderedReading, Schema, ValueStats
from kinfold.tables.source_form import DEFAULT_FORM, SourceForm
from kinfold.tables.tally import Tally

if TYPE_CHECKING:
    from kinfold.tables.databases.transfer import TargetTable


@dataclass(frozen=True)
class StoredValues:
    """A request for values as stored, or, given a column of the schema, in the type of its values."""

    column: Column | None = None


@dataclass(frozen=True, eq=False)
class ClassLabels:
    """A request for the class of each row under a recoding."""

    recoding: Recoding


# What `collect` returns: text for None, doubles for a Column (dates as days), ranks for an OrderedReading.
ColumnRequest: TypeAlias = Column | OrderedReading | ExactColumn | StoredValues | ClassLabels | None


class PartFolder(NamedTuple):
    """A folder of part files to write: so many of them, or files of about so many bytes."""

    folder: Path
    ending: str
    parts: int | None = None
    bytes: int | None = None


class NumericPair(NamedTuple):
    """A column of numbers before and after a recoding, and the mean before it."""

    before: Column
    after: Column
    mean: float


class ReleasedColumns(NamedTuple):
    """Columns of a released frame that was made by a recoding."""

    frame: Any
    columns: Sequence[NumericPair]
    recoding: Recoding


class Engine(Protocol):
    """The 14 verbs of an engine, and how many rows it collects at a time (None: any number)."""

    max_collected_rows: int | None

    def read(self, source: Any, missing: Sequence[str] = (), form: SourceForm = DEFAULT_FORM) -> Any:
        """Read a file, an Arrow table or rows of a database, in their order; the texts in `missing` become null."""

    def schema(self, frame: Any) -> Schema:
        """Return what every column is."""

    def profile(self, frame: Any, columns: Sequence[Column], *, ordered: bool = False) -> dict[str, ValueStats]:
        """Return statistics on the values of columns, by name; `ordered` adds how they follow from row to row."""

    def count_classes(self, frame: Any, by: Sequence[str], *, present: Sequence[str] = ()) -> list[tuple[int, int]]:
        """Return (rows, classes) ascending, of the rows that have a value in every column of `present`."""

    def tally(
        self, frame: Any, by: Sequence[str], of: Mapping[str, OrderedReading | Column], *, among: Any = None
    ) -> Tally:
        """Count classes by the text of their keys, and values in them; `among`: only the classes of that frame."""

    def collect(self, frame: Any, columns: Mapping[str, ColumnRequest], *, rows: tuple[int, int] | None = None) -> Any:
        """Return columns as an Arrow table, in the order of the rows; `rows` is a range (start, stop) of them."""

    def take(self, frame: Any, places: NDArray[np.int64], recoding: Recoding | None = None) -> tuple[Any, Any]:
        """Return the rows at some places as a frame, and the indexes of the places that have a row.

        Places in a recoded table are those in its source; dropped rows are not there.
        """

    def moments(
        self, frame: Any, columns: Mapping[str, Column], *, released: ReleasedColumns | None = None
    ) -> tuple[int, Any, Any]:
        """Return how many records have a number in every column, and their means and covariances (1/n).

        With `released`, deviations are from the released values, or from the mean if none is released.
        """

    def map_blocks(self, jobs: Any, pool: Any) -> Any:
        """Run jobs on blocks in memory, in threads or executors, and return their results."""

    def regions(self, frame: Any, columns: RequestedColumns, route: Route) -> Regions:
        """Route every row to its region by its values in some columns."""

    def recode(self, frame: Any, how: Mapping[str, ValueRecoding], schema: Schema) -> RecodedValues:
        """Recode single values of some columns, and count the changes."""

    def apply(self, frame: Any, recoding: Recoding, schema: Schema) -> Any:
        """Carry out a recoding, by row or by tuple."""

    def write(
        self,
        frame: Any,
        target: Path | PartFolder | TargetTable,
        schema: Schema,
        *,
        ordered: bool,
        quoted: bool = False,
    ) -> Any:
        """Write a file or part files, in the format of the ending, or a new table; `ordered` sorts by all values.

        In a `quoted` file an apostrophe stands before each text that looks like a formula.
        """

    def close(self, *, only_counts: bool = False) -> None:
        """Drop every row and remove every temporary file; or only cached counts, which can be counted again."""


def open_spark_engine(source: Any, master: str | None, resources: Resources) -> Any:
    """Return a Spark engine: in the session of a given Spark frame, else in the one that the policy names."""
    from kinfold.tables.frames import is_spark
    from kinfold.tables.spark import session

    spark = source.sparkSession if is_spark(source) else session.open_session(master, resources)
    from kinfold.tables.spark.engine import Spark

    return Spark(spark, resources)
