"""Terms of a release as written: where formulas are quoted, orders and hierarchies name the quoted values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kinfold.hierarchy import Hierarchy
from kinfold.models import Model, TCloseness
from kinfold.models.terms import Confidential, Terms
from kinfold.rows.formulas import quoted


def as_written(terms: Terms) -> Terms:
    """Return the terms by which a release with quoted cells is judged."""
    confidential = tuple(map(_column, terms.confidential))
    return replace(terms, confidential=confidential, models=tuple(map(_model, terms.models)))


def _column(column: Confidential) -> Confidential:
    order = None if column.order is None else tuple(map(quoted, column.order))
    return replace(column, order=order, hierarchy=None if column.hierarchy is None else _labels(column.hierarchy))


def _model(model: Model) -> Model:
    if not isinstance(model, TCloseness) or model.hierarchy is None:
        return model
    return replace(model, hierarchy=_labels(model.hierarchy))


def _labels(hierarchy: Hierarchy) -> Hierarchy:
    """Quote every label, not the values alone: what was one label at two levels still is."""
    return Hierarchy(np.array([[quoted(label) for label in row] for row in hierarchy.labels.tolist()], object))
