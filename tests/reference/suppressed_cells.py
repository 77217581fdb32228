"""Local suppression by exhaustion: every division of a few records into classes, an empty cell being a value."""

from collections import Counter
from collections.abc import Sequence

from reference.cell_level import divisions

Row = tuple[int | None, ...]


def shown(part: Sequence[Row]) -> Row:
    """What all records of a class share, nothing where they differ."""
    return tuple(column[0] if len({*column}) == 1 else None for column in zip(*part, strict=True))


def fewest(rows: Sequence[Row], k: int, weights: Sequence[float]) -> float:
    """The least weight of cells that have to go so that every tuple as written stands k times."""
    found = float("inf")
    for division in divisions(list(range(len(rows)))):
        classes = [[rows[i] for i in part] for part in division]
        written = Counter(row for part in classes for row in [shown(part)] * len(part))
        if min(written.values()) >= k:
            found = min(found, sum(lost(row, shown(part), weights) for part in classes for row in part))
    return found


def lost(before: Row, after: Row, weights: Sequence[float]) -> float:
    """The weight of the cells that a record has lost."""
    return sum(w for old, new, w in zip(before, after, weights, strict=True) if old is not None and new is None)
