"""Terms: the promises of a bound policy as models and confidential columns, by which a release is judged.

A promise that cannot be enforced is an error; it is never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, Problem, Unreachable, call_all, plural
from kinfold.hierarchies import Hierarchy
from kinfold.models import (
    AlphaK,
    AverageRisk,
    BetaLikeness,
    CombinationAnonymity,
    CombinationConfidence,
    DeltaDisclosure,
    DeltaPresence,
    EstimatedKMap,
    KAnonymity,
    KMap,
    LDiversity,
    Model,
    PSensitive,
    RiskShare,
    TCloseness,
)
from kinfold.models.known_events import KnownEvents
from kinfold.models.terms import ConfidentialColumn, HouseholdTerms, Terms
from kinfold.policy.binding import BoundColumn, BoundPolicy, bind
from kinfold.policy.encoding import build_hierarchy, encode, locate_values, require_known_categories
from kinfold.policy.events import mark_events
from kinfold.policy.model import Policy
from kinfold.tables.engine import Engine
from kinfold.tables.queries import number_texts
from kinfold.tables.schema import AS_TEXT, MAX_EXACT_INTEGER, Column, Kind, OrderedReading, Role, normalize_category
from kinfold.tables.tally import RecordWeights, Scopes, encode_values

MAX_WEIGHT_UNITS = 2**31  # of all weights in promises: squares of totals are whole numbers of 64 bits
MAX_WEIGHT_DECIMALS = 6  # of sampling weights: further ones change no average that is shown


def build_terms(policy: BoundPolicy, engine: Engine, frame: Any, *, released: bool = False) -> Terms:
    """Return the terms of a bound policy.

    For a source, problems of confidential columns are raised together with those of quasi-identifiers.
    """
    builders = [partial(_build_confidential, column, engine, frame) for column in policy.with_role(Role.CONFIDENTIAL)]
    try:
        confidential = tuple(call_all(builders))
    except (PolicyError, DataError):
        if released:
            raise
        columns = policy.with_role(Role.QUASI)
        tuples = engine.tally(frame, [column.name for column in columns], {}).tuples
        everything: list[Callable[[], Any]] = [*builders, partial(encode, engine, tuples, columns)]
        call_all(everything)  # adds the problems of quasi-identifiers
        raise
    privacy = policy.request.privacy
    joint = privacy.joint and len(confidential) > 1
    models = _build_models(policy, confidential)
    quasi = tuple(policy.quasi)
    other = tuple(column.name for column in policy.columns if column.unprotected)
    removed = tuple(column.name for column in policy.columns if column.removed)
    events = _build_known_events(policy)
    return Terms(
        quasi=quasi,
        confidential=confidential,
        other=other,
        removed=removed,
        models=models,
        statements=() if released else tuple(_build_statements(policy)),
        joint=joint,
        unit=privacy.unit,
        surrogates=policy.surrogates,
        events=events,
    )


def _build_statements(policy: BoundPolicy) -> Iterator[Model]:
    """Yield the promises that need a table of the population."""
    population = policy.request.privacy.population
    if population is None or population.table is None:
        return
    if population.k is not None:
        yield KMap(population.k)
    if population.presence is not None:
        yield DeltaPresence(*population.presence)


def _build_known_events(policy: BoundPolicy) -> KnownEvents | None:
    """Return what others know about events; None if no quasi-identifier is of events."""
    columns = [column for column in policy.columns if column.event and column.role is Role.QUASI]
    privacy = policy.request.privacy
    if not columns or privacy.events_known is None:
        return None
    codes = tuple(column.name for column in columns if column.kind is not Kind.DATE)
    dates = [column for column in columns if column.kind is Kind.DATE]
    formats = tuple(column.column.date_format for column in dates)
    names, shift = tuple(column.name for column in dates), policy.request.method.shift_days
    return KnownEvents(privacy.k, privacy.events_known, codes, names, formats, privacy.days_known, shift)


def build_release_terms(policy: Policy, engine: Engine, frame: Any) -> Terms:
    """Return the terms of a release: removed columns are absent, quasi-identifiers may be labels."""
    schema = engine.schema(frame)
    policy = policy.for_columns(schema.names)
    surrogates = policy.surrogates
    removed = tuple(name for name, column in policy.columns.items() if column.removed and name not in surrogates)
    kept = {name: column for name, column in policy.columns.items() if not column.removed}
    output = policy.output.model_copy(update={"others": "release", "surrogate": False, "surrogate_secret": None})
    hidden = {"unit": None, "household": None, "household_k": None}
    rows = policy.privacy.model_copy(update=hidden)  # a release cannot count people
    columns = {name: column for name, column in kept.items() if name in schema}
    request = policy.model_copy(update={"columns": columns, "output": output, "privacy": rows})
    bound = mark_events(engine, frame, bind(request, schema, released=True), policy.surrogates)
    terms = build_terms(bound, engine, frame, released=True)
    absent = tuple(name for name in kept if name not in schema)
    unnamed = tuple(name for name in terms.other if name not in {*policy.columns, *surrogates})
    named = tuple(name for name in terms.other if name in kept)
    dropped = unnamed if policy.output.others == "drop" else ()
    released = unnamed if policy.output.others == "release" else ()
    other, removed = (*named, *released, *absent), (*removed, *dropped)
    unit, household = policy.privacy.unit, _read_household(policy, terms.quasi)
    return replace(terms, other=other, removed=removed, unit=unit, household=household, surrogates=surrogates)


def _read_household(policy: Policy, quasi: Sequence[str]) -> HouseholdTerms | None:
    """Return what belongs to households by the policy alone: columns that say so."""
    if policy.privacy.household is None:
        return None
    attributes = tuple(name for name in quasi if name in policy.columns and policy.columns[name].household)
    return HouseholdTerms(policy.privacy.household, attributes, policy.privacy.household_k)


def _build_models(policy: BoundPolicy, confidential: Sequence[ConfidentialColumn]) -> tuple[Model, ...]:
    privacy = policy.request.privacy
    problems = [
        Problem(f"'privacy.{key}' is set, but no column is confidential", "give a column the role confidential")
        for key in ("t", "l", "p", "alpha", "beta", "delta")
        if getattr(privacy, key) is not None and not confidential
    ]
    few, people = privacy.combinations, privacy.population
    if few is not None and few.confidence is not None and not confidential:
        what = "'privacy.combinations' has a confidence, but no column is confidential"
        problems.append(Problem(what, "give a column the role confidential"))
    models: list[Model] = [KAnonymity(privacy.k) if few is None else CombinationAnonymity(privacy.k, few.size)]
    if few is not None and few.confidence is not None:
        models += [CombinationConfidence(few.confidence, few.size, column.name) for column in confidential]
    if people is not None and people.size is not None and people.k is not None and people.alpha is not None:
        models.append(EstimatedKMap(people.k, people.size, people.alpha))
    if privacy.average_risk is not None:
        models.append(AverageRisk(privacy.average_risk))
    if privacy.risk_share is not None:
        models.append(RiskShare(privacy.risk_share.above, privacy.risk_share.most))
    for column in confidential:
        try:
            models += _build_column_models(policy, column)
        except PolicyError as error:
            problems += error.problems
    if problems:
        raise PolicyError(problems)
    return tuple(models)


def _build_column_models(policy: BoundPolicy, column: ConfidentialColumn) -> Iterator[Model]:
    privacy, request = policy.request.privacy, policy[column.name].request
    t, l = request.t or privacy.t, request.l or privacy.l
    if t is not None:
        yield TCloseness(t, column.name, column.distance, column.hierarchy)  # type: ignore[arg-type]
    if l is not None:
        yield LDiversity(l, column.name, privacy.l_kind, privacy.c or 1.0)
    if privacy.p is not None:
        yield PSensitive(privacy.p, column.name)
    if privacy.alpha is not None:
        yield AlphaK(privacy.alpha, column.name)
    if privacy.beta is not None:
        yield BetaLikeness(privacy.beta, column.name, privacy.beta_kind)
    if privacy.delta is not None:
        yield DeltaDisclosure(privacy.delta, column.name)


def collect_confidential(engine: Engine, frame: Any, terms: Terms) -> dict[str, NDArray[Any]]:
    """Return the confidential columns as sortable values: positions in their order (NaN for null), or text."""
    values = {}
    for column in terms.confidential:
        array = engine.collect(frame, {column.name: column.reading}).column(0).to_numpy(zero_copy_only=False)
        if column.order is not None:
            order = column.positions
            array = np.array([np.nan if t is None else order.get(normalize_category(t), np.nan) for t in array])
        values[column.name] = array
    return values


def number_people(engine: Engine, frame: Any, policy: BoundPolicy) -> NDArray[np.int64] | None:
    """Return the number of the person of each row, if the policy counts people; rows without a unit are one person."""
    name = policy.request.privacy.unit
    if name is None:
        return None
    numbers = number_texts(engine, frame, name, AS_TEXT)
    people, k = len(np.unique(numbers)), policy.request.privacy.k
    if people < k:
        what = f"k is {k}, but '{name}' names only {plural(people, 'person', 'people')}"
        raise Unreachable(what, fix="lower k, or use a table with more people")
    return numbers


def collect_weights(
    engine: Engine, frame: Any, column: Column, most: int = MAX_EXACT_INTEGER
) -> tuple[NDArray[np.int64], int]:
    """Return sampling weights as whole numbers of their last decimal, and the number of decimals.

    They have fewer decimals if there would be more than `most` units in all. Raise unless every record has a weight
    above 0: without one it would count nothing, or unknown.
    """
    values = engine.collect(frame, {column.name: column}).column(0).to_numpy(zero_copy_only=False)
    numbers = np.asarray(values, np.float64)
    wrong = int((~(np.isfinite(numbers) & (numbers > 0))).sum())
    if wrong:
        what = f"columns.{column.name}: {plural(wrong, 'record has', 'records have')} no sampling weight above 0"
        raise DataError(what, fix="correct them, or leave out output.weighted, average and calibrate")
    decimals = MAX_WEIGHT_DECIMALS if column.decimals is None else min(column.decimals, MAX_WEIGHT_DECIMALS)
    total = float(numbers.sum()) + len(numbers)  # as rounded, at most
    decimals = next((each for each in range(decimals, -1, -1) if total * 10.0**each < most), -1)
    if decimals < 0:
        what = f"columns.{column.name}: the sampling weights add up to more than {most:,}"
        raise DataError(what, fix="give them in larger units")
    return np.maximum(np.round(numbers * 10.0**decimals).astype(np.int64), 1), decimals


def number_weights(engine: Engine, frame: Any, policy: BoundPolicy) -> RecordWeights | None:
    """Return the sampling weight of each record, if promises count it; raise if weights cannot be added exactly."""
    privacy, name = policy.request.privacy, policy.request.sampling_weights
    if name is None or not (privacy.weighted or privacy.individual_risk):
        return None
    weights, decimals = collect_weights(engine, frame, policy[name].column, MAX_WEIGHT_UNITS)
    if privacy.individual_risk and weights.min() < 10**decimals:
        what = f"columns.{name}: a sampling weight is below 1, and a record stands for itself at least"
        raise DataError(what, fix="correct them, or leave out privacy.individual_risk")
    return RecordWeights(weights, decimals, privacy.weighted)


def describe_weights(policy: BoundPolicy, weights: RecordWeights | None) -> tuple[str, ...]:
    """Return a note if promises count weights with fewer decimals than the table has."""
    name = policy.request.sampling_weights
    if weights is None or name is None or weights.decimals == policy[name].column.decimals:
        return ()
    return (f"'{name}': promises count weights rounded to {plural(weights.decimals, 'decimal')}",)


def build_scopes(
    engine: Engine, frame: Any, terms: Terms, person: NDArray[np.int64] | None, weights: RecordWeights | None = None
) -> Scopes | None:
    """Return the people, joint columns and weights that promises count in addition to rows; None if there are none."""
    if person is None and not terms.joint and weights is None:
        return None
    columns = {name: encode_values(values) for name, values in collect_confidential(engine, frame, terms).items()}
    return Scopes(columns, person, {name: code for name, (_, code) in columns.items() if terms.joint}, weights)


def list_texts(engine: Engine, frame: Any, name: str) -> NDArray[Any]:
    """Return the distinct texts of a column in order, without null."""
    texts = engine.tally(frame, [name], {}).keys[name]
    return np.array([text for text in texts if text is not None], object)


def _build_confidential(column: BoundColumn, engine: Engine, frame: Any) -> ConfidentialColumn:
    hierarchy, distance = None, _choose_distance(column)
    if column.request.hierarchy or column.request.order:
        texts = list_texts(engine, frame, column.name)
        require_known_categories(column, texts)
        texts = np.array(sorted({*map(normalize_category, texts)}), object)
    if distance == "hierarchical":
        hierarchy = build_hierarchy(column, texts)
        leaves = {*map(normalize_category, hierarchy.values)}
        locate_values(column, hierarchy, np.array([text for text in texts if text not in leaves], object))
    return _confidential_column(column, distance, hierarchy)


def _confidential_column(column: BoundColumn, distance: str, hierarchy: Hierarchy | None) -> ConfidentialColumn:
    order, date_format = column.request.order, column.column.date_format if column.kind is Kind.DATE else None
    return ConfidentialColumn(column.name, str(column.kind), distance, order, hierarchy, date_format)


def get_reading(column: BoundColumn) -> OrderedReading:
    """Return how the values of a confidential column are compared and ordered."""
    distance = _choose_distance(column)
    return AS_TEXT if distance == "hierarchical" else _confidential_column(column, distance, None).reading


def _choose_distance(column: BoundColumn) -> str:
    if column.request.distance:
        return column.request.distance
    if column.kind is not Kind.NOMINAL:
        return "ordered"
    return "hierarchical" if column.request.hierarchy else "equal"
