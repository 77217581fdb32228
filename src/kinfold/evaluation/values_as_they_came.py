"""The original values of columns that were recoded beforehand, on a scale that has the released ones too.

Losses are measured against the table as it came. Of a number or date that is its number. Of a category that was
renamed it is the name that it had, among all names: what became another category is as far from it as any other, or,
of numbers in an order, as the places between them. Where values are generalized, what a category became is the first
step above it: a name that three values share covers three. A hierarchy of numbers that does not know the original
ones leaves them as they are after recoding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from kinfold.errors import DataError
from kinfold.hierarchy import TOP, Hierarchy
from kinfold.request.encoding import Attribute, Coded, Measured, encode, nested
from kinfold.rows.engines import Engine
from kinfold.rows.points import Nested, Ordered
from kinfold.rows.schema import Kind

OWN = "\0"  # after a value that is also the name of several: no text of a file ends so


def as_they_came(
    engine: Engine, original: Any, attributes: Sequence[Attribute], changed: Collection[str]
) -> tuple[Attribute, ...]:
    """Return attributes with the values of the original table."""
    return tuple(_came(engine, original, a) if a.bound.name in changed else a for a in attributes)


def _came(engine: Engine, original: Any, attribute: Attribute) -> Attribute:
    bound = replace(attribute.bound, column=engine.schema(original)[attribute.bound.name])
    if isinstance(attribute, Coded):
        truthful = attribute.hierarchy is not None or bound.average == "generalize"
        return (_generalizable if truthful else _coded)(engine, original, attribute)
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
    texts = sorted(names, key=Decimal) if in_order else sorted(names)
    place = {text: code for code, text in enumerate(texts)}
    codes = np.array([*(place[text] for text in held.dictionary.to_pylist()), len(texts)], np.int32)
    scale = Ordered(len(texts), bound.request.weight) if in_order else Nested.flat(len(texts) + 1, bound.request.weight)
    index = held.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Coded(bound, codes[index], np.array([*texts, None], object), scale)


def _generalizable(engine: Engine, original: Any, attribute: Coded) -> Coded:
    """Return the categories that were there, under those that they became, in a hierarchy one step higher."""
    bound = attribute.bound
    held = engine.collect(original, {bound.name: None}).column(0).combine_chunks().dictionary_encode()
    index = held.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    texts = held.dictionary.to_pylist()
    became = dict(zip(index.tolist(), attribute.codes.tolist(), strict=True))  # alike before, alike after
    paths = {text: _path(attribute, became[place]) for place, text in enumerate(texts) if place in became}
    if not paths:
        return attribute
    shared = Counter(path[0] for path in paths.values())
    labels = {label for path in paths.values() for label in path}
    rows = {
        text: (text if text not in labels or (text == path[0] and shared[text] == 1) else f"{text}{OWN}", *path)
        for text, path in paths.items()
    }
    hierarchy = Hierarchy.of([*rows.values()])
    leaf = hierarchy.index([rows[text][0] if text in rows else "" for text in texts])
    codes = np.append(leaf, len(hierarchy)).astype(np.int32)
    every = np.append(np.arange(len(hierarchy)), -1).astype(np.int32)
    names = np.array([*hierarchy.values, None], object)
    return Coded(bound, codes[index], names, nested(hierarchy, bound.request.weight), hierarchy, every)


def _path(attribute: Coded, code: int) -> tuple[str, ...]:
    """Return what a category became and all above it; one that became missing says nothing from there on."""
    if code == attribute.null_code:
        height = 1 if attribute.hierarchy is None else attribute.hierarchy.height
        return *(OWN,) * height, TOP
    if attribute.hierarchy is None or attribute.leaf is None:
        return str(attribute.texts[code]), TOP
    return tuple(str(label) for label in attribute.hierarchy.labels[attribute.leaf[code]])


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
