"""MDAV through the kernels: clusters from a box tree, a moment at a time.

In many attributes boxes may bound nothing. What they are worth on this table shows in the share of the tree that a
cluster looks at: from `_WORTH` on, the kernel that looks at every point is faster, and takes over. The labels are
the same. (Measured on 10,000 to 30,000 records, k = 5: gaussian in 16 to 64 attributes, the tree has 0.3 to 0.5 times
the speed of the other kernel; in up to 8 attributes, or clustered data up to 64, 0.9 to 10 times.)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kinfold import kernels
from kinfold.methods.partition.index import folded_run, grown, moments

if TYPE_CHECKING:
    from kinfold.kernels.box_tree import Tree
    from kinfold.kernels.clustering import Run
    from kinfold.progress import Progress
    from kinfold.rows.points import Labels, Points

_WORTH = 0.5  # share of the tree's leaves, in nodes looked at for a cluster
_TRIAL = 32  # clusters before a tree is judged
_LARGE = 64  # leaves of a tree that is judged: with fewer it does not matter
_MANY = 20_000  # points left for which it pays to compile the other kernel first; the labels are the same


def mdav_compiled(points: Points, k: int, progress: Progress, kernel: str = "mdav_tree") -> Labels:
    """Return the labels of MDAV; `kernel` is the module to begin with, `mdav_tree` or `mdav_flat`."""
    run = folded_run(points, k)
    form_pairs(run, points, progress, kernel)
    labels: Labels = run.labels
    labels[labels < 0] = run.state[0].label
    progress(len(points), len(points))
    return labels


def form_pairs(run: Run, points: Points, progress: Progress, kernel: str = "mdav_tree") -> None:
    """Form clusters in pairs while at least 2k records are left."""
    state, module = run.state[0], kernels.load(kernel)
    while state.records >= 2 * state.k:
        tree = grown(run, points, module.cap)
        worth, first = True, int(state.label)
        run.query.asked[0].looked = 0
        for _ in moments(run, partial(module.advance, run, tree), progress):
            worth = _worth(run, tree, int(state.label) - first)
            if not worth:
                break
        if not worth and (kernels.ready("mdav_flat") or state.points >= _MANY):
            module = kernels.load("mdav_flat")


def _worth(run: Run, tree: Tree, formed: int) -> bool:
    """Whether the boxes are worth looking at, so far as is known after so many clusters, or between two of a pair."""
    leaves = len(tree.size)
    judged = leaves >= _LARGE and formed >= _TRIAL and not run.state[0].second
    return not judged or run.query.asked[0].looked <= _WORTH * formed * leaves
