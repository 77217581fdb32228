"""Shapes: what the values of a column look like, judged by how they repeat, are written and are spread.

    nothing, constant     no value, or one
    moment                dates and times
    text                  sentences
    number of its own     a value a record, as numbers are given out: in order, without gaps, or of one length
    shared number         such numbers with several rows each: a household's, a person's
    code                  few values, whether written 3 or 3.0
    many codes            many values that are names of something all the same: regions, occupations
    post code, diagnosis  codes that say where they belong by the way they are written
    scale                 words or bands that have an order
    age, year             small whole numbers, years
    amount                numbers with many values

Whole numbers are names and not quantities where neighbours are not held about as often: ages rise and fall smoothly, a
region has as many people as it has, whatever its neighbour in the list. In doubt they are names: of a mode nothing
comes that was not there, of an average there may.
"""

from __future__ import annotations

import re
from enum import StrEnum

import numpy as np

from kinfold.profiling.ordered_texts import scale_of
from kinfold.rows.appearance import Appearance, Succession
from kinfold.rows.name_hints import Hint
from kinfold.rows.schema import Column, Kind, Storage

FEW = 20  # different values up to which a column is a code
ALMOST_ALL = 0.95  # share of different values from which a record has one of its own
SMOOTH = 0.4  # correlation of a value's frequency with its neighbours', from which numbers are quantities
OLDEST = 120
YEARS = (1850, 2100)
SENTENCE = 4  # words
LONG = 40  # letters
ROWS_OF_ONE = 30  # rows of a household or a person, on average, at most

ICD10 = re.compile(r"[A-TV-Z][0-9][0-9AB](\.?[0-9A-KXZ]{1,4})?[-+*]?")
NUMBERED = re.compile(r"[^\W\d_]{0,4}[-_ ]?[0-9]{3,}[-_ ]?[^\W\d_]?")  # P00123, 4711-B
POST_CODE = re.compile(r"[0-9]{4,6}|[0-9]{3}-[0-9]{4}|[0-9]{5}-[0-9]{3,4}|[0-9]{4} ?[A-Z]{2}|[0-9]{2}-[0-9]{3}"
                       r"|[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}|[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]")  # fmt: skip


class Shape(StrEnum):
    """What the values of a column look like."""

    NOTHING = "nothing"
    CONSTANT = "constant"
    MOMENT = "moment"
    TEXT = "text"
    OWN_NUMBER = "number of its own"
    SHARED_NUMBER = "shared number"
    CODE = "code"
    MANY_CODES = "many codes"
    POST_CODE = "post code"
    DIAGNOSIS = "diagnosis"
    SCALE = "scale"
    AGE = "age"
    YEAR = "year"
    AMOUNT = "amount"

    @property
    def kind(self) -> Kind:
        """How such values are compared and averaged."""
        if self in (Shape.AGE, Shape.YEAR, Shape.AMOUNT):
            return Kind.CONTINUOUS
        return {Shape.MOMENT: Kind.DATE, Shape.SCALE: Kind.ORDINAL}.get(self, Kind.NOMINAL)


def shape_of(column: Column, look: Appearance, order: Succession | None, hints: frozenset[Hint]) -> Shape:
    """Say what the values of a column look like; the order of the rows is known where it was asked for."""
    if look.distinct <= 1:
        return Shape.CONSTANT if look.distinct else Shape.NOTHING
    if column.storage.kind is Kind.DATE:
        return Shape.MOMENT
    if column.storage is Storage.BOOLEAN:
        return Shape.CODE
    if column.storage is Storage.TEXT:
        return _text(look, order, hints)
    if look.whole < look.filled:
        return Shape.AMOUNT
    return _whole(look, order, hints)


def worth_ordering(column: Column, look: Appearance) -> bool:
    """Whether the order of a column's values can tell anything: of numbers and texts that could be given out."""
    return column.storage.kind is not Kind.DATE and look.distinct > FEW and look.rows_each <= ROWS_OF_ONE


def nearly_unique(look: Appearance) -> bool:
    """Whether almost every record has a value of its own."""
    return look.filled > 1 and look.distinct >= ALMOST_ALL * look.filled


def _text(look: Appearance, order: Succession | None, hints: frozenset[Hint]) -> Shape:
    if look.distinct > FEW and look.rows_each < 10 and (look.words >= SENTENCE or look.letters >= LONG):
        return Shape.TEXT
    if look.distinct > 2 and _match(look, ICD10) and (Hint.HEALTH in hints or any(len(v) > 3 for v in look.values)):
        return Shape.DIAGNOSIS
    if nearly_unique(look):
        return Shape.OWN_NUMBER
    if scale_of(look.values):
        return Shape.SCALE
    if _match(look, POST_CODE) and (Hint.PLACE in hints or look.distinct > FEW) and not _in_stretches(look, order):
        return Shape.POST_CODE
    if look.distinct <= FEW:
        return Shape.CODE
    if look.rows_each <= ROWS_OF_ONE and (_match(look, NUMBERED) or _in_stretches(look, order)):
        return Shape.SHARED_NUMBER
    return Shape.MANY_CODES if look.words < SENTENCE else Shape.TEXT


def _whole(look: Appearance, order: Succession | None, hints: frozenset[Hint]) -> Shape:
    if nearly_unique(look) and _given_out(look, order):
        return Shape.OWN_NUMBER
    if Hint.AGE in hints and look.low >= 0 and look.high <= OLDEST and look.distinct > 2:
        return Shape.AGE
    if look.distinct <= FEW and look.rows_each >= 2:
        return Shape.CODE
    if Hint.PLACE in hints or Hint.WORK in hints:
        return Shape.POST_CODE if _match(look, POST_CODE) else Shape.MANY_CODES
    if YEARS[0] <= look.low and look.high <= YEARS[1]:
        return Shape.YEAR
    if look.low >= 0 and look.high <= OLDEST:
        return Shape.AGE if look.rows_each < 4 or _is_quantity(look) else Shape.MANY_CODES
    if _in_stretches(look, order) and _even(look):
        return Shape.SHARED_NUMBER
    if look.rows_each < 5 or _rounded(look) or _is_quantity(look):
        return Shape.AMOUNT
    return Shape.MANY_CODES


def _given_out(look: Appearance, order: Succession | None) -> bool:
    """Whether whole numbers look as if they were given out: spread evenly, and in order, dense or of one length."""
    if look.filled < 3 or not _even(look):
        return False
    rising = order is not None and order.rises >= look.filled - 1
    dense = look.distinct >= 0.5 * (look.high - look.low + 1) and look.high > OLDEST
    return rising or dense or (_digits(look.low) == _digits(look.high) >= 5 and not _rounded(look))


def _in_stretches(look: Appearance, order: Succession | None) -> bool:
    """Whether the rows of a value follow one another, a few rows each, as those of a household do."""
    if order is None or not 1.05 <= look.rows_each <= ROWS_OF_ONE:
        return False
    return order.runs <= 1.05 * look.distinct and look.distinct > OLDEST


def _even(look: Appearance) -> bool:
    """Whether numbers are spread evenly, as numbers that are given out are and sums of money are not."""
    return abs(look.mean - (look.low + look.high) / 2) <= 0.1 * (look.high - look.low)


def _digits(number: float) -> int:
    return len(str(int(abs(number)))) if number > 0 else 0


def _rounded(look: Appearance) -> bool:
    """Whether most values are multiples of ten."""
    return sum(float(value) % 10 == 0 for value in look.values) > 0.5 * len(look.values)


def _match(look: Appearance, pattern: re.Pattern[str]) -> bool:
    """Whether almost all rows that were looked at hold a value of a pattern."""
    held = sum(n for value, n in zip(look.values, look.counts, strict=True) if pattern.fullmatch(_written(value)))
    return held >= ALMOST_ALL * sum(look.counts)


def _written(value: str) -> str:
    """Return a value as a code is written: 4711.0 is 4711."""
    return value.strip().removesuffix(".0")


def _is_quantity(look: Appearance) -> bool:
    """Whether a value is held about as often as its neighbours."""
    if not look.complete:
        return False
    values = np.array([float(value) for value in look.values])
    counts = np.array(look.counts, np.float64)[np.argsort(values)]
    if look.high - look.low + 1 <= 1.5 * look.distinct:  # what is not held counts where little is left out
        there = np.zeros(int(look.high - look.low) + 1)
        there[(np.sort(values) - look.low).astype(np.intp)] = counts
        counts = there
    return smoothness(counts) > SMOOTH or (_range_of_ages(look) and counts.var() < 2 * counts.mean())


def smoothness(counts: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the correlation of each frequency with the mean of the three before and the three after it, -1 to 1.

    >>> round(smoothness(np.array([1.0, 2, 3, 4, 5, 6, 7, 6, 5, 4, 3, 2, 1])), 2)
    0.95
    """
    root = np.sqrt(counts)
    near = [np.concatenate([root[max(i - 3, 0) : i], root[i + 1 : i + 4]]).mean() for i in range(len(root))]
    if len(root) < 3 or root.std() == 0 or np.std(near) == 0:
        return 0.0
    return float(np.corrcoef(root, near)[0, 1])


def _range_of_ages(look: Appearance) -> bool:
    return look.low != 1 and look.low <= 25 and 60 <= look.high <= OLDEST  # codes are counted from 1
