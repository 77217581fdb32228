"""What is known of a far table without its records: distinct values, a sample, and the way to regions by its cuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kinfold.methods.blocks.marginality import ranks
from kinfold.methods.planning import region_routes
from kinfold.methods.planning.region_routes import RegionRoute, RowReader, layer_count, layers_of, routed
from kinfold.methods.task import Task
from kinfold.models import Model
from kinfold.request.encoding import Attribute, Measured
from kinfold.request.table import Table
from kinfold.request.terms import confidential_values
from kinfold.rows.drawing import drawn
from kinfold.rows.engines.regions import Asked, ValueCodes
from kinfold.rows.schema import Column, Role
from kinfold.rows.steady import steady
from kinfold.rows.tally import coded

Ints: TypeAlias = NDArray[np.int64]
Values: TypeAlias = NDArray[Any]


@dataclass(frozen=True, eq=False)
class ConfidentialColumn:
    """A column that something is promised about: its distinct values, and how many records of the table have each."""

    name: str
    values: Values
    totals: Ints


@dataclass(frozen=True, eq=False)
class FarColumns:
    """What is known of a far table without its records."""

    quasi: tuple[Attribute, ...]  # without records
    promised: tuple[ConfidentialColumn, ...]
    asked: Asked  # columns that regions are handed: quasi-identifiers, then those that are promised about
    models: tuple[Model, ...]
    imputed: tuple[float | None, ...]


def far_columns(task: Task, table: Table) -> FarColumns:
    """Ask for the distinct values of every column but numbers and dates."""
    quasi: list[Attribute] = []
    asked: list[Column | ValueCodes] = []
    imputed: list[float | None] = []
    for bound in task.policy.of(Role.QUASI):
        mean: float | None = None
        if bound.kind.measured:
            attribute: Attribute = Measured(bound, np.empty(0))
            asked.append(bound.column)
            mean = _figure(table, bound.column, 1) if bound.request.missing == "mean" and bound.column.nulls else None
        else:
            attribute, codes = table.scale(bound)
            asked.append(codes)
        quasi.append(attribute.take(np.arange(0)))
        imputed.append(mean)
    names = dict.fromkeys(model.column for model in task.models if model.column is not None)
    promised = [_confidential(table, name) for name in names]
    asked += [codes for _, codes in promised]
    return FarColumns(tuple(quasi), tuple(column for column, _ in promised), asked, tuple(task.models), tuple(imputed))


def _figure(table: Table, column: Column, which: int) -> float:
    """Return the mean (1) or deviation (2) of a column, the same on any engine."""
    found = float(np.ravel(table.engine.moments(table.frame, {column.name: column})[which])[0])
    return steady(found if which == 1 else float(np.sqrt(found)))


def _confidential(table: Table, name: str) -> tuple[ConfidentialColumn, ValueCodes]:
    """Return a confidential column by its distinct values, and the code of each."""
    engine, frame = table.engine, table.frame
    held = engine.distinct(frame, [name])
    only = replace(table.terms, confidential=tuple(c for c in table.terms.confidential if c.name == name))
    values, codes = coded(np.asarray(confidential_values(engine, held, only)[name]))
    totals = np.bincount(codes, engine.tally(frame, [name], {}).sizes).astype(np.int64)
    return ConfidentialColumn(name, values, totals), ValueCodes(name, held, codes)


def route_of(table: Table, known: FarColumns) -> RegionRoute:
    """Return the way to the regions, by the cuts of a sample."""
    regions = region_routes.regions_of(table.policy.rows)
    places = drawn(table.policy.rows, max(region_routes.DRAWN, region_routes.EACH * regions))
    sample = _sample(table, known.asked, places)
    reader = _measuring(table, RowReader(known.quasi, known.imputed).standardized(sample))
    many = layer_count(len(places), regions)
    order = [ranks(_first(known.models, each.name).criterion(each.values), each.totals) for each in known.promised]
    layers = layers_of(order, [each.totals for each in known.promised], many)
    return routed(reader, layers, sample, table.policy.rows)


def _measuring(table: Table, reader: RowReader) -> RowReader:
    """Return the reader with a deviation for each column that varies, if not in the sample."""
    found: list[Attribute] = []
    for known in reader.attributes:
        here = known
        if isinstance(here, Measured) and here.standard is not None and not here.standard[1]:
            column = here.bound.column
            deviation = _figure(table, column, 2) if column.distinct > 1 else 0.0
            here = replace(here, standard=(here.standard[0], deviation))
        found.append(here)
    return replace(reader, attributes=tuple(found))


def _first(models: Sequence[Model], name: str) -> Any:
    return next(model for model in models if model.column == name)


def _sample(table: Table, asked: Asked, places: Ints) -> pa.Table:
    """Return what regions would be handed, of the records at these places."""
    some = table.engine.picked(table.frame, places)[0]
    return pa.table({"place": places} | {f"v{at}": table.column(some, how) for at, how in enumerate(asked)})
