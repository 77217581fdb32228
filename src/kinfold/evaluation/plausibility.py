"""Plausibility: what a release holds that the original never did, and what it holds no more.

    vanished        categories of a quasi-identifier that no released record has: the rare ones, as a rule
    outside         released numbers below the least or above the largest of the original
    combinations    released records whose two categories never meet in the original (a man who is pregnant). At least
                    one of the columns is a quasi-identifier that was released as categories; the other is one too, or
                    any column of at most `FEW` categories that was released as it is

Statements are left aside: a true one is plausible. Null is one more category.
Cost: one pass over the records for each pair of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.evaluation.pairing import ByTuple, Pair, PairedColumn, Tables
from kinfold.request.encoding import Coded, Measured

Ints: TypeAlias = NDArray[np.int64]

FAR = "it takes every record of the original beside all others, and these are in no place together"
FEW = 100  # categories of a column that was released as it is: of more, most combinations meet by chance alone
DENSE = 20_000_000  # combinations that are marked in one array (20 MB); columns with more are left aside


@dataclass(frozen=True, eq=False)
class Categories:
    """A column of both tables by codes from 0 up, in each table's order of rows."""

    name: str
    before: Ints
    after: Ints
    codes: int


@dataclass(frozen=True)
class Plausibility:
    """Counts by column, or by pair of columns, and what there is to say of them."""

    values: dict[str, dict[str, int]]
    notes: tuple[str, ...]


def plausibility(tables: Tables, pair: Pair, others: Sequence[str]) -> Plausibility:
    """Count what is not plausible; `others` name the categorical columns that were released as they are."""
    coded = [c for c in pair.columns if isinstance(c.attribute, Coded) and not c.generalized]
    own = [] if isinstance(tables.rows, ByTuple) else [_categories(c, _rows(tables, pair)) for c in coded]
    vanished = {each.name: _vanished(each) for each in own}
    outside = {c.name: _outside(c, pair.weight) for c in pair.columns if c.compares_numbers}
    strange = {(a.name, b.name): _strange(a, b) for a, b in combinations(own, 2)} | _strange_beside(tables, own, others)
    place = [*(each.name for each in own), *others].index
    ordered = sorted(strange, key=lambda pair: (place(pair[0]), place(pair[1])))
    met = {f"{one} + {other}": strange[one, other] for one, other in ordered if strange[one, other]}
    values = {"vanished": {name: n for name, (n, _) in vanished.items()}, "outside": outside, "combinations": met}
    return Plausibility(values, tuple(_told(vanished, outside, met)))


def far_plausibility(tables: Tables, pair: Pair) -> Plausibility:
    """Count the categories of a far table that are gone: its records are not there to be looked at in pairs."""
    vanished = {}
    for column in pair.columns:
        if isinstance(column.attribute, Coded) and not column.generalized:
            before, after = (_held(tables, frame, column.name) for frame in (tables.original, tables.released))
            gone = [records for category, records in before.items() if category is not None and category not in after]
            vanished[column.name] = len(gone), sum(gone)
    values: dict[str, dict[str, int]] = {"vanished": {name: n for name, (n, _) in vanished.items()}}
    return Plausibility(values, (*_told(vanished, {}, {}), f"plausibility.outside, plausibility.combinations: {FAR}"))


def _held(tables: Tables, frame: Any, name: str) -> dict[str | None, int]:
    tally = tables.engine.tally(frame, [name], {})
    return dict(zip(tally.keys[name].tolist(), tally.sizes.tolist(), strict=True))


def _rows(tables: Tables, pair: Pair) -> NDArray[np.intp]:
    return tables.rows if isinstance(tables.rows, np.ndarray) else np.arange(int(pair.kept.sum()))


def _categories(column: PairedColumn, rows: NDArray[np.intp]) -> Categories:
    assert isinstance(column.attribute, Coded)  # noqa: S101  told apart by the caller
    null = column.attribute.null_code
    before, after = column.before, column.after[rows]
    return Categories(column.name, np.where(before < 0, null, before), np.where(after < 0, null, after), null + 1)


def _strange_beside(tables: Tables, own: Sequence[Categories], others: Sequence[str]) -> dict[tuple[str, str], int]:
    """Count the same for pairs with a column that was released as it is, where its rows are: it is not read here."""
    schemas = [tables.engine.schema(frame) for frame in (tables.original, tables.released)]
    few = {
        name: max(schema[name].distinct for schema in schemas) + 1
        for name in others
        if all(name in schema and schema[name].distinct <= FEW for schema in schemas)
    }
    pairs = [(each.name, name) for each in own for name, codes in few.items() if each.codes * codes <= DENSE]
    found = tables.engine.unmet(tables.original, tables.released, pairs) if pairs else []
    return dict(zip(pairs, found, strict=True))


def _vanished(column: Categories) -> tuple[int, int]:
    """Return how many categories are gone, and how many original records held them."""
    before, after = (np.bincount(side, minlength=column.codes)[:-1] for side in (column.before, column.after))
    gone = (before > 0) & (after == 0)
    return int(gone.sum()), int(before[gone].sum())


def _outside(column: PairedColumn, weight: Ints | None) -> int:
    assert isinstance(column.attribute, Measured)  # noqa: S101  told apart by the caller
    assert column.numbers is not None  # noqa: S101  told apart by the caller
    known = column.attribute.numbers[~column.attribute.null]
    if not len(known):
        return 0
    beyond = (column.numbers < known.min()) | (column.numbers > known.max())
    return int(beyond.sum() if weight is None else weight[beyond].sum())


def _strange(one: Categories, other: Categories) -> int:
    """Count the released records whose two categories never meet in the original."""
    if one.codes * other.codes > DENSE:
        return 0
    met = np.zeros(one.codes * other.codes, np.bool_)
    met[one.before * other.codes + other.before] = True
    return int((~met[one.after * other.codes + other.after]).sum())


def _told(vanished: dict[str, tuple[int, int]], outside: dict[str, int], met: dict[str, int]) -> Iterator[str]:
    for name, (categories, records) in vanished.items():
        if categories:
            gone = f"{plural(categories, 'category', 'categories')} of the original ({plural(records, 'record')})"
            yield f"'{name}': no released record has {gone}"
    for name, cells in outside.items():
        if cells:
            yield f"'{name}': {plural(cells, 'released value')} outside the range of the original"
    for names, records in met.items():
        told = plural(records, "released record")
        yield f"{names}: {told} with a combination of values that the original does not have"
