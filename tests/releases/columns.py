"""Columns to draw: values of every kind, with ties, nulls and odd texts, and what a policy may say of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Chance = np.random.Generator

GRADES = ("none", "some", "much", 'all "of it"')
CODES = ("00501", "02138", "02139", "02141", "10001", "94016")
TEXTS = (
    *("flu", "cold", "Cold", 'a "quote"', '"', "it's", "line\nbreak", "return\r\nand feed", "tab\there", "naïve", "é"),
    *("e\u0301", "日本語", "☃", "\U0001f600", "007", "7", "1e5", "0x1F", "1_000", "=1+1", "+5", "-x", "@home", "%"),
    *("a,b", "a;b", "a|b", " before", "after ", "NULL", "null", "nan", "NaN", "inf", "true", "None", "*", "**", "#"),
    *("\\", "\\N", "--", "'; DROP TABLE t", "<b>", "{{ x }}", "\u200b", "\u202eright", "x" * 300, "2020-01-01"),
)


@dataclass(frozen=True)
class Column:
    """The values of a column, the keys of a policy that fit it, and whether its text tells its values apart."""

    values: list[Any]
    type: pa.DataType
    kind: str
    asked: dict[str, Any] = field(default_factory=dict)  # what must be said of it
    hierarchy: dict[str, Any] | None = None  # one that it could have
    as_text: bool = True

    def array(self) -> pa.Array:
        return pa.array(self.values, self.type)

    def texts(self) -> list[str]:
        return ["" if value is None else str(value) for value in self.values]

    def with_nulls(self, chance: Chance, share: float) -> Column:
        gone = chance.random(len(self.values)) < share
        held = [None if g else value for value, g in zip(self.values, gone, strict=True)]
        return Column(held, self.type, self.kind, self.asked, self.hierarchy, self.as_text)


def whole(n: int, chance: Chance) -> Column:
    low, wide = int(chance.integers(-50, 50)), int(chance.choice([1, 4, 40, 4000]))
    values = chance.integers(low, low + wide, n).tolist()
    return Column(values, pa.int64(), "continuous", hierarchy={"intervals": [10, 50, 1000]})


def decimals(n: int, chance: Chance) -> Column:
    places = int(chance.integers(1, 4))
    values = [round(float(value), places) + 0.0 for value in chance.normal(0, 3, n)]
    return Column(values, pa.float64(), "continuous", hierarchy={"intervals": [0.5, 2, 20]}, as_text=False)


def day(n: int, chance: Chance) -> Column:
    values = [date(2000, 1, 1) + timedelta(days=int(days)) for days in chance.integers(-9000, 9000, n)]
    return Column(values, pa.date32(), "date", hierarchy={"dates": ["month", "year", "decade"]}, as_text=False)


def rank(n: int, chance: Chance) -> Column:
    asked = {"type": "ordinal"}
    return Column(chance.integers(0, 5, n).tolist(), pa.int32(), "ordinal", asked, {"intervals": [2, 4]})


def grade(n: int, chance: Chance) -> Column:
    asked = {"type": "ordinal", "order": list(GRADES)}
    tree = {"tree": {"little": list(GRADES[:2]), "more": list(GRADES[2:])}}
    return Column([str(text) for text in chance.choice(GRADES, n)], pa.string(), "ordinal", asked, tree)


def code(n: int, chance: Chance) -> Column:
    values = [str(text) for text in chance.choice(CODES, n)]
    return Column(values, pa.string(), "nominal", {"type": "nominal"}, {"mask": int(chance.integers(1, 6))})


def word(n: int, chance: Chance) -> Column:
    known = [TEXTS[i] for i in chance.choice(len(TEXTS), int(chance.integers(2, 7)), replace=False)]
    values = [known[i] for i in chance.integers(0, len(known), n)]
    levels = [[text, f"group {i % 2}"] for i, text in enumerate(known)]
    return Column(values, pa.string(), "nominal", {"type": "nominal"}, {"levels": levels})


def truth(n: int, chance: Chance) -> Column:
    return Column((chance.random(n) < 0.5).tolist(), pa.bool_(), "nominal", as_text=False)


def account(n: int, chance: Chance) -> Column:
    """Numbers of eighteen digits: as doubles they would be a few."""
    values = (123456789012345678 + chance.integers(0, 9, n)).tolist()
    return Column(values, pa.int64(), "continuous", {"type": "continuous"})


def money(n: int, chance: Chance) -> Column:
    values = [Decimal(int(cents)).scaleb(-2) for cents in chance.integers(0, 900, n)]
    return Column(values, pa.decimal128(20, 2), "continuous", {"type": "continuous"}, as_text=False)


def few(n: int, chance: Chance) -> Column:
    return Column(chance.integers(0, 4, n).tolist(), pa.int16(), "continuous", {"type": "continuous"})


Draw = Callable[[int, Chance], Column]
QUASI: tuple[Draw, ...] = (whole, whole, decimals, day, rank, grade, code, word, truth)
NUMBERS: tuple[Draw, ...] = (whole, decimals, day)
CONFIDENTIAL: tuple[Draw, ...] = (word, word, code, grade, few, whole, account, money, decimals, day)
