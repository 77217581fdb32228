"""How records of a table stand out: SUDA2 scores, the log-linear model of sample uniques, and population uniques.

    suda          {records, score_max, dis_max, contributions}: records with a score, the highest scores, and for each
                  quasi-identifier the percent of all scores that come from sets with it. Without two equal records
                  every DIS score would be 1, so `dis_max` is null
    tau1, tau2    expected population uniques and correct matches among the sample uniques; with sampling weights

SUDA2 is computed for tables of up to 100,000 records and 12 quasi-identifiers, with `measures = "all"` for any that the
formula takes. The scores of single records go to the internal report only: they show which records to protect first.

The promise about the people who are unique in the population (`PopulationUniques`) is judged by an estimate from class
sizes: the estimated number of population uniques over the size of the population. If an estimate does not exist for
these classes, the promise fails, and its text has the reason.

Dropping or merging classes changes the estimate in no fixed direction, so a search evaluates every candidate. Classes
of at least two records have no sample uniques, and every estimator then finds no population unique.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kinfold.measures.formulas.arrays import Floats, Ints, NotApplicable
from kinfold.measures.formulas.special_uniques import MAX_SCORED_COLUMNS, SpecialUniques, score_special_uniques
from kinfold.measures.formulas.uniques import (
    LogLinearRisk,
    dankar_uniques,
    measure_log_linear,
    pitman_uniques,
    snb_uniques,
    zayatz_uniques,
)
from kinfold.measures.measure_table import MeasureTable
from kinfold.measures.pairing import Sample, TablePair
from kinfold.models import Finding, KAnonymity, Mask, Model, Promise, TableModel
from kinfold.policy.model import Policy
from kinfold.tables.plain_columns import encode_columns
from kinfold.tables.tally import Tally

SCORED_RECORDS, SCORED_COLUMNS = 100_000, 12  # some seconds
SIZES_THAT_COUNT = 3  # the scores tell classes of one and of two records from all larger ones
LISTED_RECORDS = 10  # with the highest scores


def score_records(tables: TablePair, frame: Any, quasi: Sequence[str], *, every: bool = False) -> SpecialUniques:
    """Return the SUDA2 scores of all records of a table, in its order unless the engine counts tuples."""
    rows, columns = tables.engine.schema(frame).rows, len(quasi)
    if not quasi or not rows:
        raise NotApplicable("there is no record, or no quasi-identifier")
    if columns > MAX_SCORED_COLUMNS:
        raise NotApplicable(f"more than {MAX_SCORED_COLUMNS} quasi-identifiers have too many combinations")
    large = isinstance(tables.rows, Sample)  # its records are in no single place
    if large or (not every and (rows > SCORED_RECORDS or columns > SCORED_COLUMNS)):
        what = f"computed up to {SCORED_RECORDS:,} records and {SCORED_COLUMNS} quasi-identifiers"
        raise NotApplicable(f'{what}; set report.measures = "all" for larger tables')
    names = list(quasi)
    if not tables.uses_counts:
        return score_special_uniques(encode_columns(tables.engine.collect(frame, dict.fromkeys(names)), names), names)
    tally = tables.engine.tally(frame, names, {})
    repeated = np.repeat(encode_columns(tally.keys, names), np.minimum(tally.sizes, SIZES_THAT_COUNT), axis=0)
    return score_special_uniques(repeated, names)


def summarize_scores(scores: SpecialUniques) -> dict[str, Any]:
    """Return the summary of the scores of a table."""
    return {
        "records": int((scores.score > 0).sum()),
        "score_max": int(scores.score.max()),
        "dis_max": None if scores.note else float(scores.dis.max()),
        "contributions": dict(scores.contributions),
    }


def list_worst_records(scores: SpecialUniques) -> list[dict[str, Any]]:
    """Return the records with the highest scores, by their place in the table from 1, and what contributes."""
    order = np.argsort(-scores.score, kind="stable")[:LISTED_RECORDS]
    names = list(scores.contributions)
    return [
        {
            "record": int(row) + 1,
            "score": int(scores.score[row]),
            "dis": None if scores.note else float(scores.dis[row]),
            "contributions": dict(zip(names, scores.by_record[row].tolist(), strict=True)),
        }
        for row in order
        if scores.score[row] > 0
    ]


def write_log_linear(table: MeasureTable, keys: Callable[[], Any], weights: Callable[[], Floats]) -> None:
    """Write tau1 and tau2 of records with these codes of quasi-identifiers and sampling weights."""
    results: list[LogLinearRisk] = []

    def measure() -> float:
        results.append(measure_log_linear(keys(), weights()))
        return results[0].tau1

    table.write("tau1", measure)
    table.write("tau2", lambda: results[0].tau2 if results else measure())


ESTIMATORS: Mapping[str, Callable[[Ints, int], float]] = {
    "dankar": dankar_uniques,
    "zayatz": zayatz_uniques,
    "pitman": pitman_uniques,
    "snb": snb_uniques,
}


@dataclass(frozen=True)
class PopulationUniques(TableModel):
    """At most this share of the people is unique in the population.

    >>> model = PopulationUniques(0.1, population=80, estimator="zayatz")
    >>> round(model.check(Tally({}, np.array([1, 1, 1, 2, 3]))).found, 4)
    0.1539
    """

    share: float
    population: int
    estimator: str = "dankar"
    column: ClassVar[None] = None
    monotone: ClassVar[bool] = False
    absorbing: ClassVar[bool] = False

    def imply(self, records: int) -> tuple[Model, ...]:  # noqa: ARG002  the same for any table
        """Return a promise about each class that implies this one: without sample uniques every estimate is 0."""
        return (KAnonymity(2),)

    def failing(self, tally: Tally) -> Mask:
        """Mark the classes of one record if the promise fails: without them it holds."""
        return np.asarray((tally.sizes == 1) & (self._estimate(tally)[0] > self.share), np.bool_)

    def check(self, tally: Tally) -> Finding:
        """Compare the estimate with the largest share."""
        share, reason = self._estimate(tally)
        text = f"at most {self.share:g} of {self.population:,} people unique (estimated by {self.estimator}{reason})"
        return Promise(text, "uniques", None, self.share).compare(share, self.failing(tally), tally)

    def _estimate(self, tally: Tally) -> tuple[float, str]:
        """Return the share of unique people, or infinity and the reason."""
        if not (tally.sizes == 1).any():
            return 0.0, ""
        try:
            return ESTIMATORS[self.estimator](tally.sizes, self.population) / self.population, ""
        except NotApplicable as error:
            return math.inf, f"; {error.reason}"


def build_unique_promises(policy: Policy) -> tuple[Model, ...]:
    """Return the promise about population uniques, if the policy has one."""
    keys = policy.privacy.population
    if keys is None or keys.uniques is None or keys.size is None:
        return ()
    return (PopulationUniques(keys.uniques, keys.size, keys.estimator),)
