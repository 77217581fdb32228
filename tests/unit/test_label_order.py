"""Labels in a chart stand in their own order: bands by where they begin, labels of a hierarchy as they stand in it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd
import pytest

import kinfold
from kinfold.release.report.description import ReleaseContents, describe, get_band_start
from kinfold.release.report.distribution_charts import chart_column
from kinfold.release.report.facts import choose_labels


def shown(frame: pd.DataFrame, column: dict[str, Any], method: str = "datafly", *, internal: bool = False) -> list[str]:
    """Return the rows of the chart of the one quasi-identifier, from top to bottom."""
    policy = {"privacy": {"k": 2}, "method": {"name": method}, "columns": {"x": {"role": "quasi", **column}}}
    release = kinfold.anonymize(frame, policy)
    facts = describe(ReleaseContents(release), internal=internal).columns[0]
    return [str(row["label"]) for picture in chart_column(facts) for row in picture.values if row["when"] == "label"]


def test_bands_stand_by_where_they_begin_whatever_their_frequency() -> None:
    ages = [105, 104, *([55, 56] * 3), 12, 13, 7, 8, *([23, 25] * 9)]
    bands = {"type": "continuous", "hierarchy": {"intervals": [10]}}
    assert shown(pd.DataFrame({"x": ages}), bands) == ["0-9", "10-19", "20-29", "50-59", "100-109"]


def test_ranges_without_a_hierarchy_too() -> None:
    frame = pd.DataFrame({"x": [100.5, 101.0, 9.0, 9.5, -5.0, -4.0]})
    found = shown(frame, {"type": "continuous", "average": "generalize"}, "mdav")
    assert found == ["[-5.0, -4.0]", "[9.0, 9.5]", "[100.5, 101.0]"]


def test_levels_stand_as_in_the_hierarchy_and_dates_by_the_calendar() -> None:
    levels = [["young", "before"], ["grown", "before"], ["old", "after"], ["ancient", "after"]]
    frame = pd.DataFrame({"x": ["old", "ancient", "old", "grown", "young", "ancient"]})
    assert shown(frame, {"hierarchy": {"levels": levels}}, "lattice") == ["before", "after"]
    days = pd.DataFrame({"x": pd.to_datetime(["2024-11-02", "2024-11-20", "2023-02-01", "2023-02-03", "2024-11-05"])})
    assert shown(days, {"type": "date", "hierarchy": {"dates": ["month"]}}) == ["2023-02", "2024-11"]


def test_a_hierarchy_that_is_wrong_and_that_nothing_is_released_by_gives_no_order() -> None:
    frame = pd.DataFrame({"x": ["a", "a", "a", "b", "b", "*", "*"]})
    wrong = {"type": "nominal", "hierarchy": {"levels": [["a", "one"], ["b", "two"], ["*", "one"]]}}
    assert shown(frame, wrong, "local-suppression") == ["a", "b", "*"]


def test_both_sides_share_one_order_and_the_top_comes_last() -> None:
    frame = pd.DataFrame({"x": [*(["02138"] * 3), *(["02139"] * 5), "10001", "94040"]})
    column = {"type": "nominal", "hierarchy": {"mask": 5}, "average": "generalize"}
    found = shown(frame, column, "mdav", internal=True)
    assert found[-1] == "*"
    assert found[:-1] == sorted(found[:-1])


@pytest.mark.parametrize(
    "bands",
    [
        ["<18", "18-24", "25-64", "65-84", "85+"],
        ["-20--11", "-10--1", "0-9", "10-19", "100-109"],
        ["[0, 2.5)", "[2.5, 5)", "[10, 12.5)", "other", "*"],
        ["1990s", "2000s", "2010s"],
        ["2023-Q4", "2024-Q1", "2024-Q3"],
        ["under 5", "5 to 9", "10 to 14", "over 14"],
    ],
)
def test_the_beginning_of_a_band(bands: list[str]) -> None:
    shuffled = [*bands[1::2], *bands[::2]]
    assert sorted(shuffled, key=get_band_start) == bands


def test_of_many_labels_the_most_frequent_are_shown_still_in_their_order() -> None:
    order = [f"step {i}" for i in range(40)]
    column = Counter({label: 1 + (i * 7) % 40 for i, label in enumerate(order)})
    found = choose_labels([column], order)
    assert len(found) == 12
    assert list(found) == sorted(found, key=order.index)
