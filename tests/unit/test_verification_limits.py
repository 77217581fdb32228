"""Verification where it is easily off by one: nothing at all, a missing column, null in an order, joint promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kinfold.errors import VerifyError
from kinfold.models import KAnonymity, LDiversity, Model
from kinfold.models.terms import ConfidentialColumn, Terms
from kinfold.models.verdict import Verdict
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.tables.tally import Spread, Tally
from kinfold.verification import judge, verify
from small_tables import SMALL

D, E = (ConfidentialColumn(name, "nominal", "equal") for name in "de")


def found(
    table: dict[str, Any], *models: Model, columns: tuple[ConfidentialColumn, ...] = (D,), **terms: Any
) -> Verdict:
    with DuckDB(SMALL) as engine:
        frame = engine.read(pa.table(table))
        return verify(engine, frame, Terms(("q",), columns, (), (), models, **terms))


def test_of_no_row_every_figure_is_nothing() -> None:
    none = np.zeros(0, np.int64)
    tally = Tally({"q": none}, none, {"d": Spread(none, none, none, none)})
    empty = judge(tally, {}, Terms(("q",), (D,), (), (), ()))
    assert (empty.records, empty.classes, empty.k, empty.l, empty.t) == (0, 0, 0, {"d": 0}, {"d": 0.0})


def test_where_a_column_is_missing_nothing_else_is_said() -> None:
    verdict = found({"q": ["a", "a", "b"]})
    assert (verdict.records, verdict.classes, verdict.k) == (3, 0, 0)
    assert [problem.what for problem in verdict.problems] == ["the column 'd' is not in the release"]


def test_a_joint_promise_is_about_whoever_knows_the_others_and_not_the_column_itself() -> None:
    table = {"q": ["a", "a", "b", "b"], "d": ["1", "2", "1", "2"], "e": ["x", "x", "y", "y"]}
    asked = LDiversity(2, "d", "distinct", 1.0), LDiversity(1, "e", "distinct", 1.0), KAnonymity(2)
    assert found(table, *asked, columns=(D, E), joint=True).l == {"d": 2, "e": 1}


def test_a_joint_promise_is_judged_by_the_finer_classes_and_k_by_the_classes() -> None:
    table = {"q": ["a"] * 4, "d": ["1", "1", "2", "2"], "e": ["x", "x", "y", "y"]}
    asked = KAnonymity(4), LDiversity(2, "d", "distinct", 1.0)
    apart = found(table, *asked, columns=(D, E))
    together = found(table, *asked, columns=(D, E), joint=True)
    assert [finding.found for finding in apart.findings] == [4, 2]
    assert [finding.found for finding in together.findings] == [4, 1]


def test_nothing_is_joint_unless_it_is_said() -> None:
    assert not Terms(("q",), (), (), (), ()).joint


@pytest.mark.parametrize("values", [["low", "high", None], [None, "high", "low"]])
def test_null_comes_first_in_a_declared_order(values: list[str | None]) -> None:
    column = ConfidentialColumn("d", "ordinal", "ordered", order=("low", "high", "top"))
    places = np.arange(3)
    arranged = column.sort_spread(Spread(places * 0, places, places + 1, np.array(values, object)))
    assert arranged.values.tolist() == [None, "low", "high"]
    assert dict(zip(arranged.values[arranged.code], arranged.count.tolist(), strict=True)) == dict(
        zip(values, [1, 2, 3], strict=True)
    )


@pytest.mark.parametrize(("rows", "told"), [(["a", "b", "b"], "1 class fails,"), (["a", "b"], "2 classes fail,")])
def test_the_classes_that_miss_a_promise_are_counted_in_words(rows: list[str], told: str) -> None:
    with pytest.raises(VerifyError, match=told):
        found({"q": rows, "d": ["x"] * len(rows)}, KAnonymity(2)).require()


@pytest.mark.parametrize(("k", "told"), [(2, "holds"), (3, "does not hold")])
def test_a_verdict_says_in_a_line_whether_it_holds(k: int, told: str) -> None:
    verdict = found({"q": ["a", "a", "b", "b"], "d": ["1", "2", "1", "2"]}, KAnonymity(k))
    assert repr(verdict) == f"<Verdict: {told}; 4 records in 2 classes, k = 2>"
