"""Describing: what each column of a table is, found out by questions to the database (see `type_inference`)."""

from __future__ import annotations

from collections.abc import Sequence

from kinfold.rows.engines import type_inference
from kinfold.rows.engines.database import Database, pieces
from kinfold.rows.engines.expressions import Frame
from kinfold.rows.engines.strips import Strips
from kinfold.rows.engines.type_inference import Stored
from kinfold.rows.schema import Column, Schema

FIRST_ROWS = 1000  # looked at before all are


def schema_of(db: Database, frame: Frame, strips: Strips) -> Schema:
    """Ask every column what it is."""
    rows = db.count(frame.table)
    columns = [column for strip in strips.of(frame) for column in _described(db, strip, rows)]
    return Schema.of(columns, rows, frame.doubtful)


def _described(db: Database, frame: Frame, rows: int) -> list[Column]:
    distinct = _distinct(db, frame)
    asked = [type_inference.questions(kind, f"c{i}") for i, kind in enumerate(frame.types)]
    # A column of nothing but nulls is not asked: the database stumbles over some questions about none.
    select = [sql for questions, values in zip(asked, distinct, strict=True) if values for sql in questions.values()]
    answers = db.answers(select, frame.table)
    found = [
        {key: (next(answers) or 0) if values else 0 for key in questions} | {"distinct": values}
        for questions, values in zip(asked, distinct, strict=True)
    ]
    formats = _date_formats(db, frame, rows, [type_inference.may_be_dates(answer) for answer in found])
    return [
        type_inference.column(Stored(name, kind, frame.typed), rows, answer, form)
        for name, kind, answer, form in zip(frame.names, frame.types, found, formats, strict=True)
    ]


def _distinct(db: Database, frame: Frame) -> list[int]:
    # Far cheaper than as many count(DISTINCT ...) in one query.
    counts = [
        f"SELECT {i} AS i, count(*) AS n FROM (SELECT DISTINCT c{i} FROM {frame.table} WHERE c{i} IS NOT NULL)"
        for i in range(len(frame.names))
    ]
    found = [db.connection.execute(" UNION ALL ".join(piece)).fetchall() for piece in pieces(counts)]
    return [n for _, n in sorted(pair for pairs in found for pair in pairs)]


def _date_formats(db: Database, frame: Frame, rows: int, wanted: Sequence[bool]) -> list[str | None]:
    """The one format that all texts of a column are dates in; the first rows rule most of them out."""
    every = [type_inference.FORMATS if asked else () for asked in wanted]
    left = _fitting(db, f"(SELECT * FROM {frame.table} LIMIT {FIRST_ROWS})", every)
    if rows > FIRST_ROWS:
        left = _fitting(db, frame.table, left)
    return [forms[0] if len(forms) == 1 else None for forms in left]


def _fitting(db: Database, rows: str, formats: Sequence[Sequence[str]]) -> list[list[str]]:
    asked = [(i, form) for i, forms in enumerate(formats) for form in forms]
    if not asked:
        return [[] for _ in formats]
    fits = [f"count(c{i}) = count(try_strptime(trim(c{i}), '{form}'))" for i, form in asked]
    left: list[list[str]] = [[] for _ in formats]
    for (i, form), answer in zip(asked, db.answers(fits, rows), strict=True):
        left[i] += [form] if answer else []
    return left
