"""How records of a table stand out: SUDA2 scores, and the log-linear model of sample uniques.

    suda          {records, score_max, dis_max, contributions}: records with a score, the highest scores, and for each
                  quasi-identifier the percent of all scores that come from sets with it. Without two equal records
                  every DIS score would be 1, so `dis_max` is null
    tau1, tau2    expected population uniques and correct matches among the sample uniques; with sampling weights

SUDA2 is computed for tables of up to 100,000 records and 12 quasi-identifiers, with `measures = "all"` for any that the
formula takes. The scores of single records go to the internal report only: they show which records to protect first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from kinfold.measures.formulas.arrays import Floats, NotApplicable
from kinfold.measures.formulas.log_linear import LogLinearRisk, measure_log_linear
from kinfold.measures.formulas.special_uniques import MAX_COLUMNS, SpecialUniques, score_special_uniques
from kinfold.measures.measure_table import MeasureTable
from kinfold.measures.pairing import Sample, TablePair
from kinfold.tables.plain_columns import encode_columns

SCORED_RECORDS, SCORED_COLUMNS = 100_000, 12  # some seconds
SIZES_THAT_COUNT = 3  # the scores tell classes of one and of two records from all larger ones
LISTED_RECORDS = 10  # with the highest scores

Scores: TypeAlias = Callable[[], SpecialUniques]


def score_records(tables: TablePair, frame: Any, quasi: Sequence[str], *, every: bool = False) -> SpecialUniques:
    """Return the SUDA2 scores of all records of a table, in its order unless the engine counts tuples."""
    rows, columns = tables.engine.schema(frame).rows, len(quasi)
    if not quasi or not rows:
        raise NotApplicable("there is no record, or no quasi-identifier")
    if columns > MAX_COLUMNS:
        raise NotApplicable(f"more than {MAX_COLUMNS} quasi-identifiers have too many combinations")
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
