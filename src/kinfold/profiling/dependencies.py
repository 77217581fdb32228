"""Dependencies: a column that is released unchanged must not tell one that is protected or removed.

All tests use a sample of rows in a few blocks, so that the rows of a household stay together. Pairs of rows of one
person or household count for nothing: they agree in everything that is constant for the person.

    function    two rows with the same value of one column almost always have the same value of the other, far more
                often than two rows at random: a post code and its town, an age and its age group, a code and its label.
                If the sample has too few equal values, the engine counts all rows.
    ratio       a number is, in many records, the other one times a constant: earnings and wages
    steps       rows sorted by a number: the other column changes rarely: a number and its bins
    order       rows sorted by a number are sorted by the other: a number and its logarithm, age and year of birth
    two         a number is a sum, difference, product or ratio of two others, or bins of one
    near-key    most values occur in one household only, so that they link its members, or the rows of one person
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.profiling.correlations import Correlations, Numbers
from kinfold.tables.engine import Engine
from kinfold.tables.recoding import encode_dictionary
from kinfold.tables.schema import Column

Codes: TypeAlias = NDArray[np.int64]  # -1: missing

LINKS = "links the rows of"  # the phrase of a near-key of households
LINKS_EVENTS = "shows which rows have the same"  # and of people with several rows
SAMPLED_ROWS = 20_000  # compared first; the whole table only where they decide nothing
BLOCKS = 10  # of sampled rows, spread over the table
MAX_COMPARED_ROWS = 3_000_000  # of a table whose columns are compared if the sample has too few equal values
MAX_CODE = 2**62  # of a combination of values in 64 bits
MAX_DENSE_CODE = 4  # codes per row up to which counting by code is faster than by sorted code
COMPARED_ROWS = 2_000  # for tests that sort rows by many combinations of columns
MIN_EXPECTED = 20.0  # differences expected by chance; with fewer, a function is not evident
MAX_UNEXPLAINED = 0.03  # share of the expected differences that remain in a function
MAX_UNEXPLAINED_AGES = 0.9  # the same for ages: those of a person differ by a few years
MIN_CORRELATION = 0.995  # of ranks
RATIO_STEP = 0.002  # of the logarithm of ratios that count as equal
MIN_RATIO_SHARE = 0.3  # of rows with the same ratio of two numbers
MAX_BINS = 30  # different values of a column that may be bins of a number
MIN_NUMBERS = 10  # different values of a number that is tested for order
MAX_CHANGES = 0.15  # share of rows at which possible bins change along a combination of two numbers
MAX_PAIRS = 300  # of numbers whose combinations are tested
MIN_TIED_SHARE = 0.5  # of the members of households whose value occurs in their household only
MIN_TIED_SHARE_OF_OWN = 0.05  # the same, if almost all values that repeat do so in one household: benefits that few get
MIN_OWN_VALUES = 0.9  # of the values that repeat


@dataclass(frozen=True)
class RowSample:
    """Rows of a table as codes and numbers; `groups` are the people or households that rows belong to."""

    codes: Mapping[str, Codes]
    numbers: Mapping[str, Numbers]
    table_rows: int
    labels: Mapping[str, Sequence[str | None]] = field(default_factory=dict)  # by code, of columns that are not numbers
    groups: Codes | None = None

    @property
    def rows(self) -> int:
        """The number of sampled rows."""
        return len(next(iter(self.codes.values()), ()))

    @property
    def complete(self) -> bool:
        """Whether these are all rows."""
        return self.rows == self.table_rows

    @cached_property
    def compared(self) -> Codes:
        """Some rows, one of each group."""
        order = np.random.default_rng(0).permutation(self.rows)
        if self.groups is not None:
            order = order[np.unique(self.groups[order], return_index=True)[1]]
        return np.sort(order[:COMPARED_ROWS])


@dataclass(frozen=True)
class ColumnDependency:
    """A column that tells something about one or two others."""

    column: str
    sources: tuple[str, ...]
    phrase: str  # between the column and its sources
    adds_nothing: bool = False  # whether the sources determine the column

    def __str__(self) -> str:
        sources = [f"'{source}'" for source in self.sources]
        return f"{self.phrase} {' and '.join(sources)}"


def draw_sample(engine: Engine, frame: Any, columns: Sequence[Column]) -> RowSample:
    """Take some blocks of rows."""
    rows = columns[0].rows if columns else 0
    sampled = frame
    if rows > SAMPLED_ROWS:
        size = SAMPLED_ROWS // BLOCKS
        starts = np.linspace(0, rows - size, BLOCKS).astype(np.int64)
        sampled = engine.take(frame, np.unique(starts[:, None] + np.arange(size)))[0]
    texts = engine.collect(sampled, dict.fromkeys(column.name for column in columns))
    codes, labels = {}, {}
    for column in columns:
        coded, values = encode_dictionary(texts.column(column.name))
        codes[column.name], labels[column.name] = coded.astype(np.int64), values.to_pylist()
    numeric = {column.name: column for column in columns if column.storage.kind.is_numeric}
    numbers = {}
    for name, values in zip(numeric, engine.collect(sampled, numeric).columns if numeric else (), strict=True):
        array = values.to_numpy(zero_copy_only=False).astype(np.float64)
        numbers[name] = np.where(np.isfinite(array) & (codes[name] >= 0), array, np.nan)
        codes[name] = _encode_numbers(numbers[name])
    return RowSample(codes, numbers, rows, labels)


def _encode_numbers(numbers: Numbers) -> Codes:
    codes = np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return np.where(np.isnan(numbers), -1, codes)


class Agreement(NamedTuple):
    """How rows with the same keys differ in a column: the expected and the observed number of rows that differ."""

    expected: float
    observed: float

    @property
    def evident(self) -> bool:
        """Whether enough rows were compared."""
        return self.expected >= MIN_EXPECTED

    @property
    def unexplained(self) -> float:
        """The share of the expected differences that was observed."""
        return self.observed / self.expected if self.expected else 1.0


class RowEvidence:
    """Compares rows in a sample; if it has too few with equal values, in the whole table.

    With `group`, rows of the same person or household are not compared.
    """

    def __init__(self, engine: Engine, frame: Any, sample: RowSample, group: str | None = None) -> None:
        self._engine, self._frame, self.sample, self._group = engine, frame, sample, group
        self._table: dict[str, Codes] = {}
        self._agreements: dict[tuple[tuple[str, ...], str], Agreement] = {}

    def with_group(self, group: str) -> RowEvidence:
        """Return the evidence of rows of different people or households."""
        evidence = RowEvidence(self._engine, self._frame, replace(self.sample, groups=self.sample.codes[group]), group)
        evidence._table = self._table
        return evidence

    def get_codes(self, name: str) -> Codes:
        """Return a code for each value of a column, for all rows."""
        if self.sample.complete:
            return self.sample.codes[name]
        if name not in self._table:
            values = self._engine.collect(self._frame, {name: None}).column(0)
            self._table[name] = encode_dictionary(values)[0].astype(np.int64)
        return self._table[name]

    def get_texts(self, name: str) -> list[str | None]:
        """Return the values of a column as text, for all rows."""
        texts: list[str | None] = self._engine.collect(self._frame, {name: None}).column(0).to_pylist()
        return texts

    def compare(self, keys: Sequence[str], column: str) -> Agreement:
        """Compare the values of a column in pairs of rows that have the same keys."""
        request = (tuple(keys), column)
        if request not in self._agreements:
            sample = self.sample
            rows = compare_rows([sample.codes[key] for key in keys], sample.codes[column], sample.groups)
            if not rows.evident and self.sample.rows < self.sample.table_rows <= MAX_COMPARED_ROWS:
                groups = None if self._group is None else self.get_codes(self._group)
                rows = compare_rows([self.get_codes(key) for key in keys], self.get_codes(column), groups)
            self._agreements[request] = rows
        return self._agreements[request]

    def determines(self, one: str, other: str) -> bool:
        """Whether one column determines the other."""
        rows = self.compare((one,), other)
        return rows.evident and rows.unexplained <= MAX_UNEXPLAINED

    def measure_spread(self, keys: Sequence[str], column: str) -> float | None:
        """Return the share of the variance of a number within rows of equal keys; None if too few rows are equal."""
        if column not in self.sample.numbers:
            return None
        numbers = self.sample.numbers[column]
        kept = np.isfinite(numbers) & np.logical_and.reduce([self.sample.codes[key] >= 0 for key in keys])
        groups = _number_codes(combine_codes([self.sample.codes[key][kept] for key in keys], int(kept.sum())))
        sizes = np.bincount(groups)
        several = sizes[groups] > 1
        if several.sum() < MIN_EXPECTED:
            rows = self.compare(keys, column)
            return float(rows.unexplained > MAX_UNEXPLAINED_AGES) if rows.evident else None
        sums = np.bincount(groups, numbers[kept])
        deviations = (numbers[kept] - sums[groups] / sizes[groups])[several]
        total = numbers[kept].var()
        within = (deviations**2).sum() / (several.sum() - (sizes > 1).sum())
        return float(within / total) if total > 0 else None


def compare_rows(keys: Sequence[Codes], column: Codes, groups: Codes | None) -> Agreement:
    """Compare rows with equal keys. A row counts once, however many rows it is compared with."""
    kept = np.logical_and.reduce([codes >= 0 for codes in (*keys, column)])
    rows, values = int(kept.sum()), column[kept]
    if not rows:
        return Agreement(0.0, 0.0)
    key = _number_codes(combine_codes([codes[kept] for codes in keys], rows))
    owner = None if groups is None else groups[kept]
    pairs = _count_pairs(key, (), owner)
    equal = _count_pairs(key, (values,), owner)
    one = np.zeros(rows, np.int64)
    chance = 1 - float(_count_pairs(one, (values,), owner)[0] / max(_count_pairs(one, (), owner)[0], 1))
    compared = pairs > 0
    sizes = np.bincount(key)[compared]
    observed = float((sizes * (1 - equal[compared] / pairs[compared])).sum())
    return Agreement(float(sizes.sum()) * chance, observed)


def _count_pairs(key: Codes, columns: Sequence[Codes], owner: Codes | None) -> Numbers:
    """Return, by key, the pairs of rows that agree in the columns and have different owners."""
    if owner is not None:
        return _count_pairs(key, columns, None) - _count_pairs(key, (*columns, owner), None)
    finer = _number_codes(combine_codes([key, *columns], len(key))) if columns else key
    sizes = np.bincount(finer)
    first = np.zeros(len(sizes), np.int64)
    first[finer] = key
    pairs = np.bincount(first, sizes * (sizes - 1) / 2, minlength=int(key.max(initial=0)) + 1)
    return pairs.astype(np.float64)


def combine_codes(columns: Sequence[Codes], rows: int, factor: int = 1) -> Codes:
    """Return one number for each combination of codes; `factor` times the numbers does not overflow.

    >>> combine_codes([np.array([0, 0, 1, -1]), np.array([5, 5, 5, 5])], 4).tolist()
    [13, 13, 20, 6]
    """
    key, size = np.zeros(rows, np.int64), 1
    for codes in columns:
        values = int(codes.max(initial=0)) + 2
        if size * values * factor > MAX_CODE:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = int(key.max(initial=0)) + 1
        key, size = key * values + codes + 1, size * values
    return key


def _number_codes(codes: Codes) -> Codes:
    """Return codes from 0 on, without gaps if there are many."""
    if codes.max(initial=0) <= MAX_DENSE_CODE * len(codes):
        return codes
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class Treatment:
    """The columns of a table by what a release does to them."""

    unchanged: Sequence[str]
    protected: Sequence[str]
    removed: Sequence[str]
    repeated: Collection[str]  # columns whose values repeat in the table


def find_dependencies(evidence: RowEvidence, columns: Treatment) -> dict[str, ColumnDependency]:
    """Return, by column that is released unchanged, the first dependency on a protected or removed column."""
    tests = _Tests(evidence, columns)
    dependencies = {name: tests.find_first(name) for name in columns.unchanged}
    return {name: dependency for name, dependency in dependencies.items() if dependency}


class _Tests:
    """The tests of one sample; numbers and codes are those of the rows that are sorted."""

    def __init__(self, evidence: RowEvidence, columns: Treatment) -> None:
        self._evidence, self._columns = evidence, columns
        sample = evidence.sample
        self._numbers = {name: each[sample.compared] for name, each in sample.numbers.items()}
        self._codes = {name: each[sample.compared] for name, each in sample.codes.items()}
        self._bins = {name: len(np.unique(each)) for name, each in self._codes.items()}

    def find_first(self, name: str) -> ColumnDependency | None:
        """Return a dependency on one column, else on two."""
        return next(chain(self._find_one(name), self._find_two(name)), None)

    def _find_one(self, name: str) -> Iterator[ColumnDependency]:
        for source in self._columns.protected:
            finer, coarser = self._is_function(name, source), self._is_function(source, name)
            if finer and coarser:
                yield ColumnDependency(name, (source,), "says the same as", adds_nothing=True)
            elif finer or self._has_steps(source, name):
                yield ColumnDependency(name, (source,), "determines")
            elif coarser or self._has_steps(name, source):
                yield ColumnDependency(name, (source,), "is determined by", adds_nothing=True)
            elif self._has_order(name, source):
                yield ColumnDependency(name, (source,), "rises or falls with")
            elif self._has_ratio(name, source):
                yield ColumnDependency(name, (source,), "is in many records the same as, or a multiple of,")
        for source in self._columns.removed:
            if self._is_function(name, source):
                yield ColumnDependency(name, (source,), "determines")

    def _find_two(self, name: str) -> Iterator[ColumnDependency]:
        """Yield combinations of two numbers, one of them protected, that a column is computed from."""
        if name in self._numbers and self._bins[name] > MAX_BINS:
            for one, other in self._protected_pairs:
                if name not in (one, other) and self._is_combination(name, one, other):
                    yield ColumnDependency(name, (one, other), "can be computed from")
        pair = self._bins_of_two.get(name, ())
        if not {*pair}.isdisjoint(self._columns.protected):
            yield ColumnDependency(name, pair, "has bins of a combination of")
        for protected in self._columns.protected:
            if name in self._bins_of_two.get(protected, ()):
                yield ColumnDependency(name, (protected,), "helps to compute")

    @cached_property
    def _protected_pairs(self) -> list[tuple[str, str]]:
        """Pairs of numbers of which one is protected."""
        return self._list_pairs(self._columns.protected)

    def _list_pairs(self, among: Sequence[str]) -> list[tuple[str, str]]:
        several = {name: at for at, name in enumerate(self._numbers) if self._bins[name] >= MIN_NUMBERS}
        first = [name for name in among if name in several]
        done: set[str] = set()
        pairs: list[tuple[str, str]] = []
        for name in first:
            done.add(name)
            pairs += [(name, other) for other in several if other not in done]
            if len(pairs) >= MAX_PAIRS:
                break
        return [(one, other) if several[one] < several[other] else (other, one) for one, other in pairs[:MAX_PAIRS]]

    def _is_function(self, one: str, other: str) -> bool:
        """Whether one column determines the other."""
        return one in self._columns.repeated and self._evidence.determines(one, other)

    def _has_steps(self, name: str, source: str) -> bool:
        if source not in self._numbers or self._bins[source] < MIN_NUMBERS:
            return False
        return self._measure_steps(name, self._numbers[source]) <= MAX_UNEXPLAINED

    def _measure_steps(self, name: str, numbers: Numbers) -> float:
        """Return how often a column of few values changes along sorted numbers, relative to chance: 0 to about 1."""
        kept = np.isfinite(numbers) & (self._codes[name] >= 0)
        ordered = self._codes[name][kept][np.argsort(numbers[kept], kind="stable")]
        if self._bins[name] > MAX_BINS or len(ordered) < 2:
            return 1.0
        shares = np.bincount(ordered) / len(ordered)
        steps = np.count_nonzero(shares) - 1
        expected = (len(ordered) - 1) * (1 - float((shares**2).sum()))
        changes = int(np.count_nonzero(np.diff(ordered))) - steps
        return changes / expected if steps and expected >= max(MIN_EXPECTED, 3.0 * int(steps)) else 1.0

    def _has_order(self, name: str, source: str) -> bool:
        if name not in self._numbers or source not in self._numbers:
            return False
        one, other = self._numbers[name], self._numbers[source]
        kept = np.isfinite(one) & np.isfinite(other)
        if min(self._bins[name], self._bins[source]) < MIN_NUMBERS or kept.sum() < MIN_EXPECTED:
            return False
        ranks = np.array([_rank(values[kept]) for values in (one, other)])
        if ranks.std(axis=1).min() == 0:
            return False
        return bool(abs(np.corrcoef(ranks)[0, 1]) >= MIN_CORRELATION)

    def _has_ratio(self, name: str, source: str) -> bool:
        """Whether one number is, in many rows, the other times a constant."""
        if name not in self._numbers or source not in self._numbers:
            return False
        if min(self._bins[name], self._bins[source]) <= MAX_BINS:
            return False
        with np.errstate(all="ignore"):
            ratios = np.log(self._numbers[name] / self._numbers[source])
        ratios = ratios[np.isfinite(ratios)]
        if len(ratios) < MIN_EXPECTED:
            return False
        _, counts = np.unique(np.round(ratios / RATIO_STEP), return_counts=True)
        return bool(counts.max() >= MIN_RATIO_SHARE * len(self._numbers[name]))

    @cached_property
    def _bins_of_two(self) -> dict[str, tuple[str, str]]:
        """The columns of few values that change rarely along a combination of two numbers."""
        names = [name for name, bins in self._bins.items() if 2 < bins <= MAX_BINS]
        codes = np.array([self._codes[name] for name in names])
        pairs: dict[str, tuple[str, str]] = {}
        for one, other in self._list_pairs((*self._columns.protected, *self._columns.unchanged)) if names else ():
            x, y = self._numbers[one], self._numbers[other]
            with np.errstate(all="ignore"):
                combined = (x + y, x - y, x / y, x * y, x / y**2, y / x**2)
            for values in combined:
                ordered = codes[:, np.argsort(values)]
                changes = np.count_nonzero(ordered[:, 1:] != ordered[:, :-1], axis=1)
                rarely = [name for name, n in zip(names, changes, strict=True) if n < MAX_CHANGES * codes.shape[1]]
                for name in rarely:
                    if self._has_steps_of_two(name, values, (one, other)):
                        pairs.setdefault(name, (one, other))
        return pairs

    def _has_steps_of_two(self, name: str, combined: Numbers, pair: tuple[str, str]) -> bool:
        """Whether the combination of two numbers explains a column, and none of the two alone does."""
        if name in pair or self._measure_steps(name, combined) > MAX_UNEXPLAINED:
            return False
        return min(self._measure_steps(name, self._numbers[each]) for each in pair) > 3 * MAX_UNEXPLAINED

    def _is_combination(self, name: str, one: str, other: str) -> bool:
        """Whether a number, or its logarithm, is a linear combination of two others, and not of one of them alone."""
        return any(each.is_combination(name, one, other) for each in self._correlations)

    @cached_property
    def _correlations(self) -> tuple[Correlations, Correlations]:
        return Correlations(self._numbers, logs=False), Correlations(self._numbers, logs=True)


def _rank(values: Numbers) -> Numbers:
    """Return the ranks of values; equal values have the mean of their ranks."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse], np.float64)


def find_near_keys(
    sample: RowSample, names: Sequence[str], unit: str, *, people: bool = False
) -> dict[str, ColumnDependency]:
    """Return the columns that are the same for all members of a household, or rows of a person, and for few others."""
    groups = sample.codes[unit]
    sizes = np.bincount(groups[groups >= 0])
    tied = [name for name in names if _links_members(sample.codes[name], groups, sizes, few=not people)]
    return {name: ColumnDependency(name, (unit,), LINKS_EVENTS if people else LINKS) for name in tied}


def _links_members(codes: Codes, groups: Codes, sizes: Codes, *, few: bool) -> bool:
    """Whether many members of larger households have a value of their household only; with `few`, also if few do."""
    kept = (codes >= 0) & (groups >= 0)
    codes, groups = codes[kept], groups[kept]
    if not len(codes):
        return False
    counts = np.bincount(codes)
    first = np.full(len(counts), np.iinfo(np.int64).max)
    last = np.full(len(counts), -1)
    np.minimum.at(first, codes, groups)
    np.maximum.at(last, codes, groups)
    members = sizes[groups] > 1
    share = (members & (first == last)[codes] & (counts[codes] > 1)).sum() / max(int(members.sum()), 1)
    own = (first == last)[counts > 1].mean() if (counts > 1).any() else 0.0  # of the values that repeat
    return bool(share >= MIN_TIED_SHARE or (few and share >= MIN_TIED_SHARE_OF_OWN and own >= MIN_OWN_VALUES))
