"""Hierarchies changed step by step: whatever is merged, renamed or taken apart stays a hierarchy of the same values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfold.errors import PolicyError
from kinfold.hierarchy import by_rows
from kinfold.hierarchy.regrouping import Rows, merged, parted, renamed, rows_of_labels, tree_of

VALUES = [f"v{i}" for i in range(8)]


@given(st.data())
def test_merging_keeps_a_hierarchy_and_its_values(data: st.DataObject) -> None:
    rows: Rows = [(value,) for value in VALUES]
    for step in range(data.draw(st.integers(1, 5))):
        level = data.draw(st.integers(1, len(rows[0])))
        labels = sorted({row[level - 1] for row in rows})
        chosen = data.draw(st.lists(st.sampled_from(labels), min_size=1, unique=True))
        try:
            rows = merged(rows, chosen, f"g{step}", level)
            found = by_rows(rows)
        except PolicyError:
            return  # a label below two groups, which the next check tells
        assert sorted(found.values) == VALUES
        assert rows_of_labels(found) == [tuple(row) for row in found.labels[:, :-1].tolist()]
        tree = tree_of(found.labels.tolist(), dict.fromkeys(VALUES, 2))
        assert tree.count == 16
        assert sum(child.count for child in tree.children.values()) == 16


def test_a_group_is_named_anew_and_taken_apart() -> None:
    rows = merged([("a",), ("b",), ("c",)], ["a", "b"], "ab", 1)
    assert renamed(rows, "ab", "both", 1) == [("a", "both"), ("b", "both"), ("c", "c")]
    assert parted(rows, "ab", 1) == [("a",), ("b",), ("c",)]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda rows: merged(rows, ["z"], "x", 1),
        lambda rows: merged(rows, [], "x", 1),
        lambda rows: merged(rows, ["a"], "*", 1),
        lambda rows: merged(rows, ["a"], " ", 1),
        lambda rows: merged(rows, ["a"], "x", 3),
        lambda rows: merged(rows, ["a"], "x", 0),
        lambda rows: renamed(rows, "z", "x", 1),
        lambda rows: parted(rows, "a", 0),
    ],
)
def test_what_cannot_be_is_told(wrong: object) -> None:
    with pytest.raises(PolicyError):
        wrong([("a",), ("b",)])  # type: ignore[operator]
