"""Restoring cells: show values again that only k on all quasi-identifiers together needed to be empty.

Every combination of `size` columns is k-anonymous if all columns together are, so a release by local suppression keeps
the promises about combinations with cells to spare. Column by column, values return:

    propose every empty cell of the column
    repeat: take the proposals back whose records would be in a failing combination
            take the proposals back whose absence would leave too few records with an empty cell
    until no combination fails

The rest is released. A second search starts from a table without any value; the better result is taken.
Empty cells are values: a combination with an empty cell needs k records too.

Cost: one grouping of the records for each set of columns with that column, a few times.   Ties: the column with the
largest weight first, then the one with the fewest values, then the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kinfold.methods.generalize.domain import Domain, Floats, Mask
from kinfold.methods.generalize.levels import Generalization, Models
from kinfold.models import CombinationAnonymity, CombinationConfidence
from kinfold.models.combinations import list_column_sets, number_tuples
from kinfold.progress import Progress, no_progress
from kinfold.tables.tally import Ints

MAX_PASSES = 4  # over all columns; a pass without gain ends earlier


def restore_cells(
    released: Generalization, models: Models, weights: Floats, progress: Progress = no_progress
) -> Generalization:
    """Return a release by local suppression with more values, if all promises are about combinations.

    >>> from kinfold.hierarchies import TOP, Hierarchy
    >>> from kinfold.tables.tally import Tally
    >>> flat = Hierarchy.from_rows([("a", TOP), ("b", TOP)])
    >>> codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.int32)
    >>> table = Domain(("x", "y"), (flat, flat), codes, Tally({}, np.ones(4, np.int64)))
    >>> empty = Generalization(table, np.ones((4, 2), np.int16), np.zeros(4, np.bool_))
    >>> restore_cells(empty, [CombinationAnonymity(2, size=1)], np.ones(2)).levels.tolist()
    [[0, 0], [0, 0], [0, 0], [0, 0]]
    """
    if not all(isinstance(model, CombinationAnonymity | CombinationConfidence) for model in models):
        return released
    domain, missing = released.domain, np.array([len(tree) for tree in released.domain.hierarchies])
    values = np.array([len(np.unique(column)) for column in domain.codes.T])
    order = np.lexsort((values, -weights)).tolist()
    search = _Restoration(domain, models, order, missing)
    starts = [released.levels > 0, np.ones(domain.codes.shape, np.bool_)]
    has_value = domain.codes != missing
    results = [search.run(empty | ~has_value, progress) & has_value for empty in starts]
    losses = [float(domain.tally.sizes @ empty @ weights) for empty in results]
    return replace(released, levels=results[int(np.argmin(losses))].astype(released.levels.dtype))


@dataclass(frozen=True, eq=False)
class _Restoration:
    """The table, its promises, the order of the columns, and the code of an empty cell in each column."""

    domain: Domain
    models: Models
    order: Sequence[int]
    missing: Ints

    def run(self, empty: Mask, progress: Progress) -> Mask:
        """Return fewer empty cells."""
        empty, total = empty.copy(), MAX_PASSES * len(self.order)
        for each in range(MAX_PASSES):
            before = int(empty.sum())
            for step, column in enumerate(self.order):
                progress(each * len(self.order) + step, total)
                self._restore(empty, column)
            if int(empty.sum()) == before:
                break
        return empty

    def _restore(self, empty: Mask, column: int) -> None:
        """Show the values of a column that can be visible."""
        visible = np.where(empty, self.missing, self.domain.codes).astype(np.int64)
        own, blank = self.domain.codes[:, column], self.missing[column]
        proposed = empty[:, column] & (own != blank)
        while proposed.any():
            visible[:, column] = np.where(empty[:, column] & ~proposed, blank, own)
            back = self._find_failing(visible, column, proposed)
            if not back.any():
                break
            proposed &= ~back
        empty[proposed, column] = False

    def _find_failing(self, visible: Ints, column: int, proposed: Mask) -> Mask:
        """Mark the proposals that make a combination fail: their own, or the one that they would leave."""
        back, hidden = np.zeros(len(visible), np.bool_), visible.copy()
        hidden[proposed, column] = self.missing[column]
        for model in self.models:
            for columns in list_column_sets(visible, model.size, within=column):  # type: ignore[attr-defined]
                group = number_tuples(visible, columns)
                failing = self._mark_failing(model, group)
                back |= failing & proposed
                if (failing & ~proposed).any():
                    back |= self._find_company(model, group, number_tuples(hidden, columns), failing, proposed)
        return back

    def _mark_failing(self, model: object, group: Ints) -> Mask:
        """Mark the rows whose group has too few records, or too large a share of a confidential value."""
        tally = self.domain.tally
        if isinstance(model, CombinationAnonymity):
            return np.asarray(np.bincount(group, tally.sizes)[group] < model.k)
        assert isinstance(model, CombinationConfidence)  # noqa: S101  there is no other
        return model.mark_groups(group, tally.spreads[model.column])[1]

    def _find_company(self, model: object, group: Ints, left: Ints, failing: Mask, proposed: Mask) -> Mask:
        """Mark proposals of the groups that failing rows would be left in: for k as many as they lack, else all.

        `group` has the numbers of the combinations with the proposals, `left` without them. Those of the largest
        groups go back: most others can stay.
        """
        stranded, sizes = failing & ~proposed, self.domain.tally.sizes
        candidates = proposed & np.isin(left, left[stranded])
        if not isinstance(model, CombinationAnonymity):
            return candidates
        missing_records = np.zeros(int(left.max()) + 1, np.int64)
        missing_records[left[stranded]] = model.k - np.bincount(group, sizes)[group[stranded]]
        rows = np.flatnonzero(candidates)
        rows = rows[np.lexsort((rows, -np.bincount(group, sizes)[group[rows]], left[rows]))]
        before = np.cumsum(sizes[rows]) - sizes[rows]
        first = np.concatenate([[True], left[rows][1:] != left[rows][:-1]])
        before -= np.maximum.accumulate(np.where(first, before, 0))  # within the group
        back = np.zeros(len(left), np.bool_)
        back[rows[before < missing_records[left[rows]]]] = True
        return back
