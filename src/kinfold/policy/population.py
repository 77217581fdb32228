"""The population that a table is a sample of: read from its own table, and counted for each released class.

A person of the population fits a class if each of their values, or a label above it in the hierarchy of the column, is
the value of the class. Missing values fit missing values, and an empty cell of a column that is suppressed fits all.

    for each column: list the released values that each value of the population fits
    extend the classes column by column, and keep what some released class begins with

Cost: O(tuples of people x columns), times the released values that one value fits: more than one only at cell level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, KinfoldError, PolicyError, Problem
from kinfold.hierarchies import TOP
from kinfold.models.terms import Terms
from kinfold.policy.binding import BoundPolicy, bind
from kinfold.policy.encoding import Attribute, CategoricalAttribute, NumericAttribute, get_leaves
from kinfold.policy.model import Policy
from kinfold.policy.preparation import prepare
from kinfold.policy.privacy import Privacy
from kinfold.policy.table import Table, Tuples
from kinfold.tables.engine import Engine
from kinfold.tables.schema import Role, normalize_category
from kinfold.tables.source_form import SourceForm
from kinfold.tables.tally import Tally

Codes: TypeAlias = NDArray[np.int64]


def read_population(
    engine: Engine, policy: BoundPolicy, form: SourceForm, missing_texts: Sequence[str]
) -> Tuples | None:
    """Return the people of `privacy.population.table` by distinct quasi-identifiers; None if there is no such table."""
    population = policy.request.privacy.population
    if population is None or population.table is None:
        return None
    try:
        frame = engine.read(population.table, missing_texts, form.for_other_file(released=False))
        request = _reduce_policy(policy)
        absent = [name for name in request.columns if name not in frame.names]
        if absent:
            what = f"no column {', '.join(map(repr, absent))}"
            raise DataError(what, fix="give a table with all quasi-identifiers of the policy")
        prepared = prepare(engine, frame, request)
        bound = bind(request, engine.schema(prepared.frame))
        names = tuple(bound.quasi)
        tuples = Table(engine, prepared.frame, bound, Terms(names, (), (), (), ())).tuples
        order = [names.index(column.name) for column in policy.with_role(Role.QUASI)]
        return Tuples(tuple(tuples.attributes[a] for a in order), tuples.tally, tuples.frame)
    except KinfoldError as error:
        where = "privacy.population.table"
        problems = [Problem(f"{where}: {each.what}", each.fix, each.values) for each in error.problems]
        raise (PolicyError if isinstance(error, PolicyError) else DataError)(problems) from None


def _reduce_policy(policy: BoundPolicy) -> Policy:
    """Return a policy with the quasi-identifiers only, which have the types that they have in the source."""
    columns = {}
    for column in policy.with_role(Role.QUASI):
        keys: dict[str, Any] = {"type": column.kind, "average": column.average}
        keys |= {"missing": "separate"} if column.kind.is_numeric else {}
        columns[column.name] = column.request.model_copy(update=keys)
    request = policy.request
    return Policy(
        source=request.source,
        privacy=Privacy(k=request.privacy.k),
        method=request.method,
        columns=columns,
        output=request.output.model_copy(update={"others": "drop", "spreadsheet_safe": False}),
    )


def count_people(released: Tally, population: Tuples, source: Tuples, names: Sequence[str]) -> Codes:
    """Return the number of people who fit each class of a release of the source."""
    classes = np.zeros(len(released), np.int64)
    people, place = np.zeros(len(population.tally), np.int64), np.arange(len(population.tally))
    for name, attribute, own in zip(names, population.attributes, source.attributes, strict=True):
        labels = _map_written(own, source.tally.keys[name])
        texts = [_name_value(each) for each in released.keys[name].tolist()]
        values, code = np.unique([labels.get(text, text) for text in texts], return_inverse=True)
        known = {value: number for number, value in enumerate(values.tolist())}
        fits = [[known[label] for label in labels if label in known] for labels in _list_labels(attribute)]
        start = np.concatenate([[0], np.cumsum([len(each) for each in fits])])
        flat = np.array([label for each in fits for label in each], np.int64)
        row = _number_rows(attribute)[place]
        count = start[row + 1] - start[row]
        first = np.repeat(np.cumsum(count) - count, count)
        chosen = flat[np.arange(len(first)) - first + np.repeat(start[row], count)]
        prefix, place = np.repeat(people, count) * len(values) + chosen, np.repeat(place, count)
        begun, classes = np.unique(classes * len(values) + code, return_inverse=True)
        at = np.minimum(np.searchsorted(begun, prefix), len(begun) - 1)
        matches = begun[at] == prefix
        people, place = at[matches], place[matches]
    totals = np.bincount(people, population.tally.sizes[place], int(classes.max(initial=-1)) + 1).astype(np.int64)
    return np.asarray(totals[classes])


def _map_written(attribute: Attribute, texts: Iterable[str | None]) -> dict[str, str]:
    """Return the lowest label of each number or date as the source writes it: a release may keep that notation."""
    if not isinstance(attribute, NumericAttribute) or attribute.hierarchy is None:
        return {}
    labels = attribute.hierarchy.labels
    coarser = {_name_value(label) for label in labels[:, 1:].ravel().tolist()}
    leaf_of_text = {
        _name_value(text): leaf for text, leaf in zip(texts, get_leaves(attribute), strict=True) if leaf >= 0
    }
    return {text: _name_value(labels[leaf, 0]) for text, leaf in leaf_of_text.items() if text not in coarser}


def _list_labels(attribute: Attribute) -> list[list[str]]:
    """Return the distinct released values that each row of the attribute's hierarchy fits; the last row is null."""
    hidden = [_name_value(None)] if attribute.bound.suppressed else []
    if attribute.hierarchy is not None:
        rows = [[*dict.fromkeys([*map(_name_value, row), *hidden])] for row in attribute.hierarchy.labels.tolist()]
    else:
        assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  numbers without a hierarchy are refused
        rows = [[_name_value(text), _name_value(TOP), *hidden] for text in attribute.texts[:-1].tolist()]
    return [*rows, [_name_value(None), _name_value(TOP)]]


def _number_rows(attribute: Attribute) -> Codes:
    """Return the row of each tuple in the list of labels."""
    if attribute.hierarchy is not None:
        leaves = get_leaves(attribute)
        return np.where(leaves < 0, len(attribute.hierarchy), leaves).astype(np.int64)
    assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  numbers without a hierarchy are refused
    return attribute.codes.astype(np.int64)


def _name_value(value: str | None) -> str:
    """Return a value as a text in which 1 and 1.0 are equal, and null differs from every text."""
    return "" if value is None else f"={normalize_category(str(value))}"
