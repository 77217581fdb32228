"""Describing: what each column of a table is, found out by questions to the database (see `type_inference`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kinfold.rows.engines import seeming_types, type_inference
from kinfold.rows.engines.database import Database, pieces
from kinfold.rows.engines.expressions import Frame, Order
from kinfold.rows.engines.seeming_types import Look
from kinfold.rows.engines.type_inference import Stored
from kinfold.rows.engines.wide_tables import Strips
from kinfold.rows.schema import Column, Schema
from kinfold.rows.source_form import pattern

FIRST_ROWS = 2_000  # looked at before all are: numbers that were computed have many decimals from the first on


def schema_of(db: Database, frame: Frame, strips: Strips) -> Schema:
    """Ask every column what it is."""
    rows = int(db.row(f"SELECT {frame.many} FROM {frame.table}")[0])
    columns = [column for strip in strips.of(frame) for column in _described(db, strip, rows)]
    return Schema.of(columns, rows, frame.doubtful, frame.notes)


def _described(db: Database, frame: Frame, rows: int) -> list[Column]:
    found = _answered(db, frame)
    close = [i for i, answer in enumerate(found) if type_inference.may_be_whole(answer)]
    fractions = db.answers([type_inference.has_fractions(f"c{i}") for i in close], frame.table)
    for i in close:
        found[i]["decimals"] = found[i]["decimals"] if next(fractions) else 0
    looks = seeming_types.look(db, frame, found)
    columns = [
        type_inference.column(
            Stored(name, kind, frame.knows_type(name), frame.zone_of(name)), rows, answer, looks.get(i, Look())
        )
        for i, (name, kind, answer) in enumerate(zip(frame.names, frame.types, found, strict=True))
    ]
    return [_with_order(column, frame.order_of(i)) for i, column in enumerate(columns)]


def _answered(db: Database, frame: Frame) -> list[dict[str, int]]:
    asked = [
        type_inference.questions(kind, f"c{i}", _marks(frame, name, kind), frame.rows_where)
        for i, (name, kind) in enumerate(zip(frame.names, frame.types, strict=True))
    ]
    typed = [i for i, kind in enumerate(frame.types) if kind != "VARCHAR"]
    found = _of_rows(db, frame, {i: asked[i] for i in typed})
    texts = [i for i, kind in enumerate(frame.types) if kind == "VARCHAR"]
    unmarked = [i for i in texts if _marks(frame, frame.names[i], "VARCHAR") is None]
    if len(unmarked) > 1 and frame.weight is None and db.is_short(frame.table):
        found |= _of_short_texts(db, frame, unmarked)
    found |= {i: _of_texts(db, frame, i, asked[i]) for i in texts if i not in found}
    return [found[i] for i in range(len(asked))]


def _of_texts(db: Database, frame: Frame, i: int, questions: dict[str, str]) -> dict[str, int]:
    """Ask the distinct texts of a column, each of which stands for many rows: patterns are what takes time."""
    distinct = f"(SELECT c{i}, {frame.many} AS n FROM {frame.table} WHERE c{i} IS NOT NULL GROUP BY c{i})"
    answers = db.row(f"SELECT {', '.join(questions.values())}, count(*) FROM {distinct}")
    return {key: int(answer or 0) for key, answer in zip((*questions, "distinct"), answers, strict=True)}


def _of_short_texts(db: Database, frame: Frame, places: Sequence[int]) -> dict[int, dict[str, int]]:
    """Ask the same of many columns of a short table at once: with a question each, planning them would take longest."""
    questions = type_inference.questions("VARCHAR", "v")
    columns = ", ".join(f"c{i}" for i in places)
    long = f"(UNPIVOT (SELECT {columns} FROM {frame.table}) ON {columns} INTO NAME c VALUE v)"
    distinct = f"(SELECT c, v, count(*) AS n FROM {long} GROUP BY c, v)"
    answers = db.connection.execute(f"SELECT c, {', '.join(questions.values())}, count(*) FROM {distinct} GROUP BY c")
    keys = (*questions, "distinct")
    of_none = dict.fromkeys(keys, 0)  # of a column of nothing but nulls
    found = {c: [int(answer or 0) for answer in each] for c, *each in answers.fetchall()}
    return {i: dict(zip(keys, found[f"c{i}"], strict=True)) if f"c{i}" in found else dict(of_none) for i in places}


def _of_rows(db: Database, frame: Frame, asked: dict[int, dict[str, str]]) -> dict[int, dict[str, int]]:
    """Ask the rows of columns that know their type."""
    distinct = dict(zip(asked, _distinct(db, frame, list(asked)), strict=True))
    for i in _long(db, frame, [i for i in asked if distinct[i]]):
        asked[i]["decimals"] = str(type_inference.MOST_DECIMALS + 1)
    # A column of nothing but nulls is not asked: the database stumbles over some questions about none.
    select = [sql for i, questions in asked.items() if distinct[i] for sql in questions.values()]
    answers = db.answers(select, frame.table)
    return {
        i: {key: (next(answers) or 0) if distinct[i] else 0 for key in questions} | {"distinct": distinct[i]}
        for i, questions in asked.items()
    }


def _long(db: Database, frame: Frame, asked: Sequence[int]) -> list[int]:
    """Return the places of floating columns some of whose first values have too many decimals to count them all."""
    places = [i for i in asked if frame.types[i] in ("FLOAT", "DOUBLE")]
    first = f"(SELECT * FROM {frame.table} LIMIT {FIRST_ROWS})"
    found = db.answers([type_inference.long_decimals(f"c{i}", frame.types[i]) for i in places], first)
    return [i for i, long in zip(places, found, strict=True) if long]


def _with_order(column: Column, order: Order | None) -> Column:
    return column if order is None else replace(column, order=order.categories, ordered=order.means_something)


def _marks(frame: Frame, name: str, kind: str) -> str | None:
    """Return the pattern of the source's numbers for a column of text of which not all values are such."""
    if kind != "VARCHAR" or not frame.form.marked or name in frame.numeric:
        return None
    return pattern(frame.form.decimal, frame.form.thousands)


def _distinct(db: Database, frame: Frame, places: Sequence[int]) -> list[int]:
    # Far cheaper than as many count(DISTINCT ...) in one query.
    counts = [
        f"SELECT {i} AS i, count(*) AS n FROM (SELECT DISTINCT c{i} FROM {frame.table} WHERE c{i} IS NOT NULL)"
        for i in places
    ]
    found = [db.connection.execute(" UNION ALL ".join(piece)).fetchall() for piece in pieces(counts)]
    return [n for _, n in sorted(pair for pairs in found for pair in pairs)]
