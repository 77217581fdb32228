"""The search under promises, from a table of the distances of all pairs (see `groups`, `moves`, `descent`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kinfold.kernels import descent, promises
from kinfold.kernels.compiling import entry
from kinfold.kernels.draws import stream_of
from kinfold.kernels.groups import Groups, example

if TYPE_CHECKING:
    from kinfold.kernels.draws import Stream
    from kinfold.kernels.groups import Floats, Rows
    from kinfold.kernels.promises import Promises


@entry(promises.example(), example(), stream_of(0), np.zeros(1), np.zeros(1, np.int32))
def search(p: Promises, s: Groups, stream: Stream, heats: Floats, best: Rows) -> float:
    """Take one step for each heat; leave in `best` the labels of the lowest cost met, and return that cost."""
    return descent.search(None, p, s, stream, heats, best)
