"""A tree of boxes over points, for a search that looks into few of them.

Each node is halved at the median of its widest attribute until at most `leaf` points are left. Nodes are numbered from
the root, 0; children after their parents. Ties: the first attribute, then the order of the points.
Cost: O(m log² m).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from kinfold.measures.arrays import Floats, Ints


def box_tree(points: Floats, leaf: int) -> tuple[Ints, Ints, Floats]:
    """Return the points in the order of the tree, its nodes and their boxes.

    A node is (first point, past the last point, left child, right child), children -1 at a leaf; a box is the lowest
    and the highest value of each attribute.

    >>> order, nodes, boxes = box_tree(np.array([[3.0], [1.0], [2.0]]), leaf=2)
    >>> nodes.tolist()
    [[0, 3, 1, 2], [0, 1, -1, -1], [1, 3, -1, -1]]
    """
    order = np.arange(len(points))
    nodes: list[list[int]] = [[0, len(points), -1, -1]]
    boxes: list[Floats] = []
    for node in nodes:  # grows while it is walked: children are appended
        first, last = node[0], node[1]
        members = points[order[first:last]]
        box = np.stack([members.min(axis=0), members.max(axis=0)])
        boxes.append(box)
        spread = box[1] - box[0]
        if last - first <= leaf or not spread.any():
            continue
        half = (last - first) // 2
        ranked = np.argsort(members[:, int(spread.argmax())], kind="stable")
        order[first:last] = order[first:last][ranked]
        node[2], node[3] = len(nodes), len(nodes) + 1
        nodes.append([first, first + half, -1, -1])
        nodes.append([first + half, last, -1, -1])
    return order, np.array(nodes, np.int64), np.ascontiguousarray(np.stack(boxes))
