"""Advice before a run: what a policy would cost, from a sample of the table; nothing is written or released.

The policy is bound to the whole table, so that it is refused as `anonymize` refuses it. Then the sample is recoded
several times: as requested, with other k and t, and with the most expensive quasi-identifier removed or coarser. A
sample is thinner than its table, so the table usually loses less. Searches are short, and classes are not refined.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import KinfoldError, PolicyError, Unreachable
from kinfold.measures.formulas.numeric_loss import mean_loss
from kinfold.measures.loss import measure_column_loss, restore_original_values
from kinfold.measures.pairing import encode_quasi, pair_tables
from kinfold.methods.blocks.pool import limit_threads
from kinfold.methods.generalization import estimate_generalization_seconds, generalize
from kinfold.methods.microaggregation import microaggregate
from kinfold.methods.plan import Task, choose_method, estimate_partition_seconds, find_unmet_needs
from kinfold.pipeline import MISSING_TEXTS, bind_table, open_engine, resolve_source
from kinfold.policy.encoding import CategoricalAttribute
from kinfold.policy.model import Policy
from kinfold.policy.registry import Declaration
from kinfold.policy.table import Table
from kinfold.policy.toml_values import KeyPath, override_keys
from kinfold.progress import Progress, no_progress
from kinfold.tables.engine import Engine
from kinfold.tables.queries import sample_positions
from kinfold.tables.schema import Kind, Role

SAMPLE_RECORDS = 3_000  # a trial takes about a second
MAX_MAPPED_VALUES = 1_000  # a map of more values takes longer than the other trials
COMPARED_K = (3, 5, 10)
FIRST_T = 0.2  # tried if the policy has no t
INTERVALS = 10  # of a coarser column of numbers, about
SEARCH_STEPS = 2_000  # of a method that searches a level for each cell


ChangeKind: TypeAlias = Literal["k", "t", "coarsen", "remove"]
Change: TypeAlias = tuple[ChangeKind, str, Mapping[KeyPath, Any]]  # what changes, in words and as keys of the policy


@dataclass(frozen=True)
class PolicyTrial:
    """A changed policy, and what it loses on the sample, or why it is not possible."""

    kind: ChangeKind
    change: str
    overall: float | None  # loss of all quasi-identifiers
    others: float | None  # loss without the most expensive one
    failure: str = ""


@dataclass(frozen=True)
class Advice:
    """What a run would do and cost."""

    records: int
    sampled: int
    method: str
    reason: str
    seconds: float  # of the method on the whole table, an estimate
    refined: bool  # whether refinement without a limit of time comes on top
    read_seconds: float
    overall: float
    others: float | None
    by_column: Mapping[str, float]  # the most expensive quasi-identifier first
    trials: tuple[PolicyTrial, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {**asdict(self), "costliest": next(iter(self.by_column))}


def advise(source: Any, policy: Policy, progress: Progress = no_progress) -> Advice:
    """Return what a policy would cost; raise if `anonymize` would refuse it."""
    policy.review.require_answers()
    started, rows = time.perf_counter(), resolve_source(source)
    with open_engine(policy, rows) as engine:
        original = engine.read(rows, MISSING_TEXTS, policy.form)
        table = bind_table(engine, original, policy)[2]
        read_seconds = time.perf_counter() - started
        task = Task(table.policy, table.terms.models, table)
        method, reason = choose_method(task)
        if problems := find_unmet_needs(method, task):
            raise PolicyError(problems)
        estimate = estimate_generalization_seconds if method.family == "generalize" else estimate_partition_seconds
        seconds, places = estimate(method, task), _draw_places(table)
        sample = _Sample(engine, engine.take(original, places)[0], task.records)
        try:
            lost = sample.measure(policy)
        except Unreachable as error:
            if len(places) == task.records:
                raise
            what = f"on a sample of {len(places):,} records: {error.problems[0].what}"
            raise Unreachable(what, fix="run without --dry-run: the whole table may allow it") from None
        trials = tuple(_run_trials(sample, policy, lost, progress))
    ranked = dict(sorted(lost.items(), key=lambda each: -each[1]))
    overall, others = _average(lost, next(iter(ranked)))
    refined = method.family == "partition" and policy.method.refinement_limits == (None, None)
    cost = (round(seconds, 3), refined, round(read_seconds, 3), overall, others, ranked)
    return Advice(task.records, len(places), method.name, reason, *cost, trials)


def _draw_places(table: Table) -> NDArray[np.int64]:
    """Return the places of the sampled records; people with several rows are sampled with all of them."""
    if table.person is None:
        return sample_positions(table.policy.rows, SAMPLE_RECORDS)
    people = np.unique(table.person)
    chosen = sample_positions(len(people), SAMPLE_RECORDS * len(people) // table.policy.rows)
    return np.flatnonzero(np.isin(table.person, people[chosen]))


@dataclass(frozen=True)
class _Sample:
    """Some rows of a table of `records` rows."""

    engine: Engine
    frame: Any
    records: int

    def measure(self, policy: Policy) -> dict[str, float]:
        """Recode the sample by the method for the whole table; return the loss by column."""
        engine = self.engine
        prepared, schema, table = bind_table(engine, self.frame, policy)
        task = Task(table.policy, table.terms.models, table, run_jobs=engine.map_blocks)
        method, reason = choose_method(replace(task, policy=replace(table.policy, rows=self.records)))
        run = generalize if method.family == "generalize" else microaggregate
        with limit_threads(policy.engine.threads):
            planned = run(_shorten(task, method), method, reason)
        released = engine.apply(prepared.frame, planned.recoding, schema)
        tables = pair_tables(table, self.frame, released, planned.recoding)
        attributes = encode_quasi(table, tables)
        pair = tables.pair(restore_original_values(engine, self.frame, attributes, prepared.changed))
        return {column.name: measure_column_loss(column, pair.weight).lost for column in pair.columns}


def _shorten(task: Task, method: Declaration) -> Task:
    """Return the task without refinement and proofs, and with a short search."""
    steps = SEARCH_STEPS if method.family == "generalize" else None
    limits = {"refine": None if steps else 0.0, "refine_steps": steps, "prove": 0.0}
    request = task.policy.request.model_copy(update={"method": task.method.model_copy(update=limits)})
    return replace(task, policy=replace(task.policy, request=request))


def _run_trials(
    sample: _Sample, policy: Policy, lost: Mapping[str, float], progress: Progress
) -> Iterator[PolicyTrial]:
    """Yield what each change of the policy loses; one that cannot be met is a trial too."""
    costliest = max(lost, key=lost.__getitem__)
    changes = [*_change_levels(policy), *_change_column(sample, policy, costliest)]
    for done, (kind, change, keys) in enumerate(changes):
        progress(done, len(changes))
        values = policy.model_dump(exclude_unset=True, exclude={"review"})
        try:
            changed = Policy.parse(override_keys(values, keys)) if keys else policy
            loss = _average(sample.measure(changed) if keys else lost, costliest)
            yield PolicyTrial(kind, change, *loss)
        except KinfoldError as error:
            what = error.problems[0].what if kind != "coarsen" else "it does not fit the policy"  # may name a value
            yield PolicyTrial(kind, change, None, None, what)
    progress(len(changes), len(changes))


def _change_levels(policy: Policy) -> Iterator[Change]:
    """Yield other levels of k and t; the k of the policy is one of them, without a change."""
    for k in sorted({*COMPARED_K, policy.privacy.k}):
        keys: dict[KeyPath, Any] = {("privacy", "k"): k}
        yield "k", f"k = {k}", keys if k != policy.privacy.k else {}
    levels: dict[KeyPath, float] = {} if policy.privacy.t is None else {("privacy", "t"): policy.privacy.t}
    levels |= {("columns", name, "t"): column.t for name, column in policy.columns.items() if column.t is not None}
    if not levels and any(column.role is Role.CONFIDENTIAL for column in policy.columns.values()):
        yield "t", f"t = {FIRST_T:g}", {("privacy", "t"): FIRST_T}
    for factor in (0.5, 2) if levels else ():
        changed = {key: min(1.0, level * factor) for key, level in levels.items()}
        yield "t", ", ".join(_describe_levels(changed)), changed


def _describe_levels(levels: Mapping[KeyPath, float]) -> Iterator[str]:
    """Yield each level of t with the columns that have it as their own."""
    for t in dict.fromkeys(levels.values()):
        names = [key[1] for key, level in levels.items() if level == t and key[0] == "columns"]
        everywhere = levels.get(("privacy", "t")) == t
        yield f"t = {t:g}" + ("" if everywhere else f" for {', '.join(names)}")


def _change_column(sample: _Sample, policy: Policy, name: str) -> Iterator[Change]:
    """Yield a coarser form of a column, if it has an obvious one, and its removal."""
    table = bind_table(sample.engine, sample.frame, policy)[2]
    attribute = next(each for each in table.attributes if each.bound.name == name)
    request = attribute.bound.request
    if isinstance(attribute, CategoricalAttribute):
        masked = request.hierarchy is not None and request.hierarchy.mask is not None and request.map is None
        if masked and len(attribute.texts) <= MAX_MAPPED_VALUES:
            coarser = {text: text[:-1] + "*" for text in attribute.texts[:-1] if text}
            yield "coarsen", f"{name} without its last character", {("columns", name, "map"): coarser}
    elif attribute.bound.kind is Kind.CONTINUOUS and request.round_to is None:
        step = _choose_step(attribute.numbers[~attribute.null])
        yield "coarsen", f"{name} with round_to = {step:g}", {("columns", name, "round_to"): step}
    yield "remove", f"without {name}", {("columns", name): {"role": "remove"}}


def _choose_step(numbers: NDArray[np.float64]) -> float:
    """Return a power of ten that cuts the range of some numbers into a few intervals."""
    width = float(np.ptp(numbers)) if len(numbers) else 0.0
    return 10.0 ** round(math.log10(width / INTERVALS)) if width else 1.0


def _average(lost: Mapping[str, float], costliest: str) -> tuple[float, float | None]:
    """Return the loss of all quasi-identifiers, and that of all but the most expensive one."""
    others = [loss for name, loss in lost.items() if name != costliest]
    return mean_loss([*lost.values()]), mean_loss(others) if others else None
