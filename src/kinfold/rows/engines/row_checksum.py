"""A checksum of rows, whatever their order: the sum of what MD5 makes of the text of each. It tells accidents."""

from __future__ import annotations

from collections.abc import Sequence

from kinfold.rows.engines.database import Database


def row_checksum(db: Database, values: Sequence[str], rows: str) -> str:
    """Return the checksum of some values of all rows: their number, and a sum."""
    fields = " || ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in map(_text, values))
    count, total = db.row(f"SELECT count(*), sum(CAST(md5_number_lower({fields}) AS HUGEINT)) FROM {rows}")
    return f"{count}-{int(total or 0):x}"


def _text(value: str) -> str:
    return f"CAST({value} AS VARCHAR)"
