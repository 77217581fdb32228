"""The search without promises, from a table of the distances of all pairs (see `groups`, `moves`, `descent`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels import descent
from kinfold.kernels.compiling import entry
from kinfold.kernels.draws import stream_of
from kinfold.kernels.groups import Groups, example

if TYPE_CHECKING:
    from kinfold.kernels.draws import Stream
    from kinfold.kernels.groups import Floats, Rows


@entry(example(), 1)
def descend(s: Groups, looks: int) -> float:
    """Descend from every record, at most so many looks for each; return the change of cost."""
    return descent.descend_from_all(None, None, s, looks)


@entry(example(), stream_of(0), np.zeros(1), np.zeros(1, np.int32))
def search(s: Groups, stream: Stream, heats: Floats, best: Rows) -> float:
    """Take one step for each heat; leave in `best` the labels of the lowest cost met, and return that cost."""
    return descent.search(None, None, s, stream, heats, best)
