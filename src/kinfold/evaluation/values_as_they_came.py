"""The original values of columns that were recoded beforehand, on a scale that has the released ones too.

Losses are measured against the table as it came. Of a number or date that is its number. Of a category that was
renamed it is the name that it had, among all names: what became another category is as far from it as any other, or,
of numbers in an order, as the places between them. A hierarchy or an order of names knows the recoded values alone;
where it does not know the original ones, they stand for themselves after recoding.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kinfold.errors import DataError
from kinfold.request.encoding import Attribute, Coded, Measured, encode
from kinfold.rows.engines import Engine
from kinfold.rows.points import Nested, Ordered
from kinfold.rows.schema import Kind


def as_they_came(
    engine: Engine, original: Any, attributes: Sequence[Attribute], changed: Collection[str]
) -> tuple[Attribute, ...]:
    """Return attributes with the values of the original table."""
    return tuple(_came(engine, original, a) if a.bound.name in changed else a for a in attributes)


def _came(engine: Engine, original: Any, attribute: Attribute) -> Attribute:
    bound = replace(attribute.bound, column=engine.schema(original)[attribute.bound.name])
    if isinstance(attribute, Coded):
        return attribute if attribute.hierarchy is not None else _coded(engine, original, attribute)
    if not (bound.column.storage.kind.measured or bound.column.date_format):
        return attribute  # a map made numbers of it
    try:
        found = encode(engine, original, [bound])[0]
    except DataError:
        return attribute
    return replace(found, bound=attribute.bound) if isinstance(found, Measured) else attribute


def _coded(engine: Engine, original: Any, attribute: Coded) -> Coded:
    """Return the categories that were there, on a scale of these and those that they became."""
    bound = attribute.bound
    held = engine.collect(original, {bound.name: None}).column(0).combine_chunks().dictionary_encode()
    names = {*held.dictionary.to_pylist(), *attribute.texts[:-1]}
    in_order = bound.kind is Kind.ORDINAL and not bound.request.order and all(map(_is_number, names))
    texts = sorted(names, key=float) if in_order else sorted(names)
    place = {text: code for code, text in enumerate(texts)}
    codes = np.array([*(place[text] for text in held.dictionary.to_pylist()), len(texts)], np.int32)
    scale = Ordered(len(texts), bound.request.weight) if in_order else Nested.flat(len(texts) + 1, bound.request.weight)
    index = held.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(bound, codes[index], np.array([*texts, None], object), scale)


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
