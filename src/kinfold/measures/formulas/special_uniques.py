"""SUDA2: how special the unique records are, and the risk that a match with one of them is right.

A sample unique is a set of columns in which a record has values that no other record has; a minimal one (MSU) has no
smaller set as a part. With M columns, the MSUs of a record give it the score

    score_i = Σ (M - size)!      over its MSUs: the fewer columns single a record out, the higher

    DIS-SUDA    dis_i = 1 / (1 + P (1-d)/d / (score_i^Q A)),  Q = 1 + (8 - M)/20,  A = Σ score^-Q over positive scores

estimates the probability that a match with record i is right. P is the number of records in pairs (classes of size 2);
d is the share of a sample that would be taken away to see how many unique records have a twin (data intrusion
simulation). Over all uniques, U of them, a match is right with probability DIS = U d / (U d + P (1-d)). Without a pair
every dis_i is 1, because nothing is known of twins.

A missing value is no item: it makes no record unique, and a record with it equals no other in that column. In the
classes of U and P it is a value.

Cost: at most the records times 2^M, much less where records are unique in few columns. Sources: Elliot, Manning & Ford,
Int. J. Uncertain. Fuzz. 10(5), 2002 (scores); Manning, Haglin & Keane, Data Min. Knowl. Discov. 16, 2008 (SUDA2);
Skinner & Elliot, J. R. Stat. Soc. B 64(4), 2002 (DIS); Elliot, ISTAT/Eurostat 2000 and sdcMicro (DIS-SUDA by record).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.measures.formulas.arrays import Flags, Floats, Ints, NamedResult, NotApplicable, check_codes, group_rows

LOG_WORD = 6  # of the 64 bits of a word
MAX_WORDS = 2**25  # of marks at a time: 256 MB
MAX_CELLS_WITHOUT_KERNEL = 300_000  # records times sets of columns: sorting takes less time than loading the kernel
MAX_SCORED_COLUMNS = 20  # 20! is the largest factorial in 64 bits: the score of a record that is unique in every column
NO_PAIRS = "no class has two records, so nothing is known of twins, and every DIS score is 1"


@dataclass(frozen=True, eq=False, repr=False)
class SpecialUniques(NamedResult):
    """The scores of SUDA2 by record, and what makes them up."""

    score: Ints
    dis: Floats
    contributions: Mapping[str, float]  # of each column: percent of all scores that come from MSUs with it
    by_record: Floats  # the same of each record: records by columns
    msu_by_size: Mapping[int, int]  # the number of MSUs by their number of columns
    uniques: int  # records that no other equals
    records_in_pairs: int
    match_probability: float | None  # DIS; None without uniques and pairs
    note: str | None = None


def score_special_uniques(keys: ArrayLike, names: Sequence[str], dis: float = 0.1) -> SpecialUniques:
    """Return the SUDA2 and DIS scores of each record: less is better.

    >>> result = score_special_uniques([[2, 0, 0], [1, 3, 6], [1, 0, 0]], ["a", "b", "c"])
    >>> result.score.tolist(), dict(result.contributions)
    ([2, 4, 2], {'a': 50.0, 'b': 37.5, 'c': 37.5})
    """
    codes = check_codes(keys)
    if not isinstance(dis, int | float | np.number) or not 0 < dis < 1:
        raise PolicyError(
            "dis is not between 0 and 1", fix="give the share of a sample that is taken away, such as 0.1"
        )
    n, columns = codes.shape
    if columns > MAX_SCORED_COLUMNS:
        raise PolicyError(f"there are {columns} key columns", fix=f"choose at most {MAX_SCORED_COLUMNS}")
    if n == 0:
        raise NotApplicable("there is no record")
    group, first = group_rows(codes)
    sizes = np.bincount(group)
    parts, by_size = _score_sets(codes[first], sizes == 1)
    score = parts[:, columns]
    share = 100.0 * parts[:, :columns] / np.maximum(score, 1)[:, None]
    total = 100.0 * parts[:, :columns].sum(axis=0, dtype=np.float64) / max(score.sum(dtype=np.float64), 1.0)
    uniques, pairs = int((sizes == 1).sum()), 2 * int((sizes == 2).sum())
    return SpecialUniques(
        score=score[group],
        dis=_match_probability(score, pairs, columns, dis)[group],
        contributions=dict(zip(names, total.tolist(), strict=True)),
        by_record=share[group],
        msu_by_size=by_size,
        uniques=uniques,
        records_in_pairs=pairs,
        match_probability=uniques * dis / (uniques * dis + pairs * (1 - dis)) if uniques + pairs else None,
        note=None if pairs or not score.any() else NO_PAIRS,
    )


def _score_sets(codes: Ints, single: Flags) -> tuple[Ints, dict[int, int]]:
    """Return the weights of the MSUs of distinct rows by column, and their sum; and the number of MSUs by size.

    Only rows that stand for a `single` record have MSUs.
    """
    n, columns = codes.shape
    order = np.argsort(codes.max(axis=0), kind="stable")
    by_column = np.ascontiguousarray(codes[:, order].T, np.int32)
    weight = np.array([0, *(math.factorial(columns - size) for size in range(1, columns + 1))])
    parts, counts = np.zeros((n, columns + 1), np.int64), np.zeros(columns + 1, np.int64)
    if n << columns <= MAX_CELLS_WITHOUT_KERNEL:
        _score_every_set(codes, single, weight, counts, parts)
        return parts, {size: int(count) for size, count in enumerate(counts.tolist()) if count}
    rows, words = np.flatnonzero(single), 1 << max(0, columns - LOG_WORD)
    step = max(1, MAX_WORDS // words)
    for start in range(0, len(rows), step):
        chosen = rows[start : start + step]
        slot = np.full(n, -1, np.int32)
        slot[chosen] = np.arange(len(chosen))
        bits = np.zeros((len(chosen), words), np.int64)
        kernel = kernels.load("special_uniques")  # slow to load
        kernel.score(by_column, slot, int(codes.max()) + 1, bits, weight, counts, parts)
    place = np.argsort(order)
    parts[:, :columns] = parts[:, place]
    return parts, {size: int(count) for size, count in enumerate(counts.tolist()) if count}


def _score_every_set(codes: Ints, single: Flags, weight: Ints, counts: Ints, parts: Ints) -> None:
    """Add the weights and numbers of the MSUs, as the kernel does: group the rows by every set of columns."""
    n, columns = codes.shape
    width = int(codes.max(initial=0)) + 1
    group = np.zeros((1 << columns, n), np.int64)  # by set; -1 without a value
    unique = np.zeros((1 << columns, n), np.bool_)  # in the set
    for chosen in range(1, 1 << columns):
        inside = [j for j in range(columns) if chosen >> j & 1]
        rest, last = group[chosen & (chosen - 1)], codes[:, inside[0]]
        known = (rest >= 0) & (last >= 0)
        number, size = np.unique(rest[known] * width + last[known], return_inverse=True, return_counts=True)[1:]
        group[chosen] = -1
        group[chosen, known] = number
        unique[chosen, known] = size[number] == 1
        minimal = np.flatnonzero(unique[chosen] & single & ~unique[[chosen ^ 1 << j for j in inside]].any(axis=0))
        counts[len(inside)] += len(minimal)
        parts[minimal[:, None], [*inside, columns]] += weight[len(inside)]


def _match_probability(score: Ints, pairs: int, columns: int, dis: float) -> Floats:
    """Return the DIS score of each row; 0 for a score of 0."""
    positive, exponent = score > 0, 1.0 + (8 - columns) / 20.0
    power = score[positive].astype(np.float64) ** exponent
    result = np.zeros(len(score))
    result[positive] = 1.0 / (1.0 + pairs * (1.0 - dis) / dis / (power * (1.0 / power).sum()))
    return result
