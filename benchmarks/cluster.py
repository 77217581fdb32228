"""What a billion records and ten take on a cluster, reckoned from what was measured on one machine.

    python -m benchmarks cluster                  the tables of docs/scale.md

Measured: `WHOLE` and `CLASSES` by `python -m benchmarks whole` and `blocks`, `ON_SPARK` by `spark`. Put figures of your
own machines there, and the tables are those of your machines. Assumed, for no cluster was there: that executors do not
hinder each other, how wide rows are as they are sent, and that Spark takes as many times longer for what is around a
partition as it takes for a generalization. The model says how each figure grows, and where it ends:

    hours     processor seconds of a record over all cores, and what the driver does alone: write one file, verify it
    executor  a task on each core with the rows it groups, or a region; and the map that is sent to all
    shuffle   what tasks hold after they have counted their own rows: at most their rows, at most all tuples there are
    driver    cells, of a tuple and a confidential value; for microaggregation what each class releases
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.measuring import Row, exponent

# Measured, by the number of records, on two cores of a machine with seven to seventeen other programs at work
WHOLE = {100_000: 3.6, 1_000_000: 12.1, 10_000_000: 72.4, 30_000_000: 167.3}  # lattice, file to folder: seconds
SAVED = {10_000_000: 18.4, 30_000_000: 55.7}  # of these: writing the file, and verifying it
CLASSES = {100_000: 4.5, 1_000_000: 23.0, 10_000_000: 236.0}  # mdav in blocks, refined: making the classes
ON_SPARK, BESIDE = {100_000: 42.0, 1_000_000: 68.0}, {100_000: 3.0, 1_000_000: 10.0}  # lattice, and without Spark
AROUND = {100_000: 6.5, 1_000_000: 13.3}  # mdav, file to folder, what is not the partition
HELD = {100_000: 0.67e9, 1_000_000: 1.28e9}  # bytes at the peak of mdav
CELLS, BY_CELLS = 27_000_000, 2.2e9  # at most so many cells, and bytes at the peak of a lattice beside the engine's

# Assumed
KEY, NUMBER = 60, 8  # bytes of a tuple of six columns, and of a number, as they are sent
PART, REGION = 2_000_000, 1_000_000  # rows that a task reads, and of a region
K, COPIES = 10, 8  # records of a class, and how often its values are held at once: as released, counted, looked among
TUPLES, VALUES, COLUMNS = 4_500_000, 6, 9  # of the tables measured: tuples, diseases; columns of the table of numbers


@dataclass(frozen=True)
class Cluster:
    """Executors of some cores and gigabytes, and a driver."""

    executors: int
    cores: int
    memory: float
    driver: float

    @property
    def words(self) -> str:
        """What it is called in the table."""
        return f"{self.executors} x {self.cores} cores, {self.memory:g} GB; driver {self.driver:g} GB"


CLUSTERS = (Cluster(16, 8, 32, 64), Cluster(100, 16, 64, 128))


def run(*, quick: bool) -> Iterator[Row]:
    for work, found in (("lattice", WHOLE), ("classes in blocks", CLASSES)):
        sizes = [*found]
        yield {"work": work, "from": sizes[0], "to": sizes[-1], "exponent": exponent(sizes, [*found.values()])}
    for cluster in CLUSTERS[: 1 if quick else None]:
        for records in (10**9, 10**10):
            yield generalization(cluster, records)
            yield microaggregation(cluster, records)


def each(found: Mapping[int, float]) -> float:
    """What a record more costs, from the two largest tables: what a run takes whatever the table is in neither."""
    (n, less), (m, more) = sorted(found.items())[-2:]
    return (more - less) / (m - n)


def slower() -> float:
    """How many times as many processor seconds a record takes on Spark."""
    return each(ON_SPARK) / each(BESIDE)


def generalization(cluster: Cluster, records: int) -> Row:
    """`lattice` over six quasi-identifiers: two groupings of the source, a join with a map, two of the release."""
    spread = records * (each(WHOLE) - each(SAVED)) * slower() / (cluster.executors * cluster.cores)
    counted = min(PART, TUPLES) * (KEY + 2 * NUMBER)
    executor = TUPLES * (KEY + NUMBER) + cluster.cores * 2 * counted
    driver = TUPLES * VALUES * BY_CELLS / CELLS
    seconds = spread + records * each(SAVED)
    return _row("lattice", cluster, records, (seconds, executor, 4 * records / PART * counted, driver))


def microaggregation(cluster: Cluster, records: int) -> Row:
    """`mdav` in regions: each record to its region, and to a seam at most; labels and the values of classes joined."""
    around = (each(AROUND) - each(SAVED)) * slower()
    spread = records * (each(CLASSES) + around) / (cluster.executors * cluster.cores)
    sent = records * NUMBER * (2 * (COLUMNS + 2) + 2 * 2 + COLUMNS)
    seconds = spread + records * each(SAVED)
    driver = records / K * COLUMNS * NUMBER * COPIES
    return _row("mdav", cluster, records, (seconds, cluster.cores * REGION * each(HELD), sent, driver))


def _row(work: str, cluster: Cluster, records: int, found: tuple[float, float, float, float]) -> Row:
    seconds, executor, sent, driver = found
    held = {"the driver's memory": driver / cluster.driver, "an executor's memory": executor / cluster.memory}
    ends = [what for what, share in held.items() if share > 1e9]
    return {
        "work": work, "records": records, "cluster": cluster.words, "hours": seconds / 3600,
        "executor GB": executor / 1e9, "shuffle GB": sent / 1e9, "driver GB": driver / 1e9,
        "breaks at": " and ".join(ends) or "nothing",
    }  # fmt: skip
