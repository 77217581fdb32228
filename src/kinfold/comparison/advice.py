"""Advice before a run: what a policy would cost, from a sample of the table; nothing is written or released.

The policy is bound to the whole table, so that it is refused as `anonymize` refuses it. Then the sample is recoded
several times: as requested, with other k and t, and with the most expensive quasi-identifier removed or coarser.

A sample is thinner than its table and loses more. A third of the sample is recoded too: the loss of a column is taken
to fall from the sample to the table by the same power of the number of records. Searches are short, and classes are not
refined, so that the table can lose still less.

The coarser form of a column that is tried, by its kind:

number              multiples of a power of ten
date                one date for each month, quarter, year or decade
with a hierarchy    one value for each group of its first level that merges any; codes with a mask: the last character
ordinal             neighbours merged in pairs
nominal             the rarest categories merged

But for numbers and masks, a value of the column stands for those that are merged, so that its order and its hierarchy
stay as they are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import log10
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import KinfoldError, PolicyError, Unreachable
from kinfold.measures.formulas.numeric_loss import mean_loss
from kinfold.measures.loss import measure_column_loss, restore_original_values
from kinfold.measures.pairing import encode_quasi, pair_tables
from kinfold.methods.blocks.cutting import choose_block_size
from kinfold.methods.generalization import estimate_generalization_seconds
from kinfold.methods.people import reduce_to_people
from kinfold.methods.plan import Task, choose_method, estimate_partition_seconds, find_unmet_needs, plan
from kinfold.pipeline import MISSING_TEXTS, bind_table, open_engine, resolve_source
from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import Attribute, CategoricalAttribute
from kinfold.policy.events import link_tables
from kinfold.policy.model import Policy
from kinfold.policy.registry import Declaration
from kinfold.policy.table import Table
from kinfold.policy.toml_values import KeyPath, override_keys
from kinfold.progress import Progress, no_progress
from kinfold.tables.engine import Engine
from kinfold.tables.queries import sample_positions
from kinfold.tables.schema import Kind, Role

INTERVALS = 10  # of a coarser column of numbers, about
MAX_PERIODS = 12  # of a coarser column of dates
MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
RARE_SHARE = 0.05  # of the records with a value: rarer categories are merged


@dataclass(frozen=True)
class Coarsening:
    """A coarser form of a column: in words, and as keys of its section in the policy."""

    words: str
    keys: Mapping[str, Any]


def coarsen(engine: Engine, frame: Any, attribute: Attribute) -> Coarsening | None:
    """Return a coarser form of a column of a frame, or None if it has too few values."""
    bound = attribute.bound
    if bound.kind is Kind.CONTINUOUS:
        return _round_numbers(engine, frame, bound)
    if bound.kind is Kind.DATE:
        return _merge_dates(engine, frame, bound)
    assert isinstance(attribute, CategoricalAttribute)  # noqa: S101  of any other kind
    return _merge_categories(attribute)


def _round_numbers(engine: Engine, frame: Any, bound: BoundColumn) -> Coarsening | None:
    """Round to a power of ten that cuts the range into a few intervals; to ten times what the policy rounds to."""
    numbers = engine.collect(frame, {bound.name: bound.column}).column(0).to_numpy(zero_copy_only=False)
    width = float(np.ptp(numbers[np.isfinite(numbers)])) if np.isfinite(numbers).any() else 0.0
    if not width:
        return None
    step = 10.0 ** round(log10(width / INTERVALS))
    if bound.column.decimals == 0:
        step = max(step, 1.0)
    if bound.request.round_to is not None:
        step = max(step, 10 * bound.request.round_to)
    return Coarsening(f"with round_to = {step:g}", {"round_to": step})


def _merge_dates(engine: Engine, frame: Any, bound: BoundColumn) -> Coarsening | None:
    """Merge the dates of each period, the shortest of which there are few."""
    texts = engine.collect(frame, {bound.name: None}).column(0).to_pylist()
    days = engine.collect(frame, {bound.name: bound.column}).column(0).to_numpy(zero_copy_only=False)
    by_text = {text: day for text, day in zip(texts, days.tolist(), strict=True) if text and np.isfinite(day)}
    months = np.floor([*by_text.values()]).astype("M8[D]").astype("M8[M]").astype(np.int64)
    for period, width in MONTHS_OF.items():
        groups = months // width
        if len(np.unique(groups)) <= MAX_PERIODS or period == "decade":
            return _merge(f"by {period}", np.array([*by_text], object), groups, bound)
    return None


def _merge_categories(attribute: CategoricalAttribute) -> Coarsening | None:
    bound, texts = attribute.bound, attribute.texts[:-1]
    hierarchy, leaves, spec = attribute.hierarchy, attribute.leaf_of_code, bound.request.hierarchy
    if spec is not None and spec.mask is not None and all(texts):
        shorter = {text: f"{text[:-1]}*" for text in texts}
        return Coarsening("without its last character", {"map": _compose(bound, shorter)})
    if hierarchy is not None and leaves is not None:
        for level in range(1, hierarchy.height):
            groups = hierarchy.paths[leaves[:-1], level]
            if coarser := _merge("one level coarser", texts, groups, bound):
                return coarser
    if bound.kind is Kind.ORDINAL:
        return _merge("with its neighbours merged in pairs", texts, np.arange(len(texts)) // 2, bound, least=2)
    counts = np.bincount(attribute.codes, minlength=len(texts) + 1)[:-1]
    number = int((counts < RARE_SHARE * counts.sum()).sum())
    rare = np.argsort(counts, kind="stable")[: max(2, number if number < len(texts) else number // 2)]
    groups = np.arange(len(texts))
    groups[rare] = -1
    return _merge(f"with its {len(rare)} rarest categories merged", texts, groups, bound, least=2)


def _merge(
    words: str, texts: NDArray[Any], groups: NDArray[np.int64], bound: BoundColumn, least: int = 1
) -> Coarsening | None:
    """Show the values of each group as the first of them; None if that merges nothing, or leaves too few values."""
    firsts: dict[int, str] = {}
    merged = {text: firsts.setdefault(group, text) for text, group in zip(texts, groups.tolist(), strict=True)}
    if not least <= len(firsts) < len(merged):
        return None
    order, kept = bound.request.order, {*firsts.values()}
    shorter = None if order is None else [text for text in order if text in kept]
    return Coarsening(words, {"map": _compose(bound, merged), "order": shorter})


def _compose(bound: BoundColumn, merged: Mapping[str, str]) -> dict[str, str]:
    """Return a map that does what the map of the column does, and then shows values as others."""
    first = bound.request.map or {}
    return {**merged, **{old: merged.get(new, new) for old, new in first.items()}}


TRIAL_RECORDS = 3_000  # a trial takes about a second
SAMPLE_PART = 3  # of the sample, to see how the loss falls with more records
MAX_LOST = 0.5  # of the information in a column; a larger loss is a warning
SOURCE_READINGS = 2  # the source, and the release for the checks
CHECKING_FACTOR = (
    1.5  # seconds of a run without reading and method, for each second of a trial: also checks, charts and writing
)
COMPARED_K = (3, 5, 10)
FIRST_T = 0.2  # tried if the policy has no t
# On Spark: processor seconds and bytes for each record, measured on local[2] up to a million records (docs/spark.md).
# The bytes of a generalization are assumed, as in benchmarks/cluster.py: a key of six columns with its count, twice.
GENERALIZATION_COST, PARTITION_COST = (29e-6, 152.0), (76e-6, 700.0)
SPARK_START = 30.0  # seconds, for any table
EXECUTORS, EXECUTOR_CORES = (2, 8, 32), 4
EXECUTOR_BYTES = 1e9  # of Java, before any record
RECORDS_PER_TASK = 1_000_000  # of a region, or a part
SEARCH_STEPS = 2_000  # of a method that searches a level for each cell


ChangeKind: TypeAlias = Literal["k", "t", "coarsen", "remove"]
Change: TypeAlias = tuple[ChangeKind, str, Mapping[KeyPath, Any]]  # what changes, in words and as keys of the policy


@dataclass(frozen=True)
class PolicyTrial:
    """A changed policy, and what the table is expected to lose by it, or why it is not possible."""

    kind: ChangeKind
    change: str
    overall: float | None  # loss of all quasi-identifiers
    others: float | None  # loss without the most expensive one
    failure: str = ""


@dataclass(frozen=True)
class ClusterCost:
    """What a run is expected to take on Spark."""

    executors: int
    cores: int  # of an executor
    seconds: float
    executor_bytes: float  # of Python and Java
    driver_rows: int  # collected at a time


@dataclass(frozen=True)
class Advice:
    """What a run would do and cost."""

    records: int
    sampled: int
    method: str
    reason: str
    seconds: float  # of the method on the whole table, an estimate
    total_seconds: float  # of the whole run, an estimate
    refined: bool  # whether refinement without a limit of time comes on top
    overall: float  # expected for the whole table, as are the next two
    others: float | None
    by_column: Mapping[str, float]  # the most expensive quasi-identifier first
    in_sample: float  # loss of all quasi-identifiers of the sample
    trials: tuple[PolicyTrial, ...]
    clusters: tuple[ClusterCost, ...] = ()  # if the engine is Spark

    @property
    def hardly_kept(self) -> tuple[str, ...]:
        """The columns that lose most of their information."""
        return tuple(name for name, lost in self.by_column.items() if lost > MAX_LOST)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {**asdict(self), "costliest": next(iter(self.by_column)), "hardly_kept": [*self.hardly_kept]}


def advise(source: Any, policy: Policy, progress: Progress = no_progress) -> Advice:
    """Return what a policy would cost; raise if `anonymize` would refuse it."""
    policy.review.require_answers()
    started, rows = time.perf_counter(), link_tables(policy, resolve_source(source, policy))
    with open_engine(policy, rows, gathering=True) as engine:
        original = engine.read(rows, MISSING_TEXTS, policy.form)
        table = bind_table(engine, original, policy)[2]
        read_seconds = time.perf_counter() - started
        task, records = _reduce(Task(table.policy, table.terms.models, table), table), table.policy.rows
        method, reason = choose_method(task)
        if problems := find_unmet_needs(method, task):
            raise PolicyError(problems)
        estimate = estimate_generalization_seconds if method.family == "generalize" else estimate_partition_seconds
        seconds = estimate(method, task)
        sample = _Sample(engine, original, table, TRIAL_RECORDS)
        began = time.perf_counter()
        try:
            in_sample = sample.measure(policy)
        except Unreachable as error:
            if sample.rows == records:
                raise
            what = f"on a sample of {sample.rows:,} records: {error.problems[0].what}"
            raise Unreachable(what, fix="run without --dry-run: the whole table may allow it") from None
        trial_seconds = time.perf_counter() - began
        block = choose_block_size(method, task).records or records
        trend = _find_trend(sample, policy, in_sample, min(block, records))
        trials = tuple(_run_trials(sample, policy, in_sample, trend, progress))
    expected = {name: in_sample[name] * trend[name] for name in in_sample}
    lost = dict(sorted(expected.items(), key=lambda each: -each[1]))
    overall, others = _average(expected, next(iter(lost)))
    total = seconds + SOURCE_READINGS * read_seconds + CHECKING_FACTOR * trial_seconds * records / sample.rows
    refined = method.family == "partition" and policy.method.refinement_limits == (None, None)
    cost = (round(seconds, 3), round(total, 3), refined, overall, others, lost, mean_loss([*in_sample.values()]))
    on_spark = policy.engine.name == "spark"
    clusters = tuple(estimate_clusters(method.family, records, policy.engine.driver_rows)) if on_spark else ()
    return Advice(records, sample.rows, method.name, reason, *cost, trials, clusters)


def estimate_clusters(family: str, records: int, driver_rows: int) -> Iterator[ClusterCost]:
    """Yield what a run is expected to take on executors of four cores; the release itself is written on top.

    >>> [round(cost.seconds) for cost in estimate_clusters("partition", 10**9, 300_000)][-1] < 10**9 / 10**4
    True
    """
    record_seconds, record_bytes = PARTITION_COST if family == "partition" else GENERALIZATION_COST
    for executors in EXECUTORS:
        cores = executors * EXECUTOR_CORES
        tasks = min(cores, max(1, -(-records // RECORDS_PER_TASK)))
        seconds = SPARK_START + records * record_seconds / tasks
        task_bytes = min(EXECUTOR_CORES, tasks) * record_bytes * min(records, RECORDS_PER_TASK)
        yield ClusterCost(executors, EXECUTOR_CORES, seconds, EXECUTOR_BYTES + task_bytes, min(records, driver_rows))


def _find_trend(sample: _Sample, policy: Policy, lost: Mapping[str, float], records: int) -> dict[str, float]:
    """Return, by column, the expected loss of so many records relative to that of the sample."""
    if sample.rows >= records:
        return dict.fromkeys(lost, 1.0)
    part = _Sample(sample.engine, sample.original, sample.table, TRIAL_RECORDS // SAMPLE_PART)
    try:
        before = part.measure(policy)
    except KinfoldError:
        return dict.fromkeys(lost, 1.0)
    growth = math.log(records / sample.rows) / math.log(sample.rows / part.rows)
    ratios = {name: lost[name] / before[name] if before[name] else 1.0 for name in lost}
    return {name: min(1.0, max(ratio, 1 / SAMPLE_PART)) ** growth for name, ratio in ratios.items()}


def _draw_places(table: Table, size: int) -> NDArray[np.int64]:
    """Return the places of about so many records; people with several rows are sampled with all of them."""
    if table.person is None:
        return sample_positions(table.policy.rows, size)
    people = np.unique(table.person)
    chosen = sample_positions(len(people), size * len(people) // table.policy.rows)
    return np.flatnonzero(np.isin(table.person, people[chosen]))


class _Sample:
    """About `size` rows of a table, or all of them."""

    def __init__(self, engine: Engine, original: Any, table: Table, size: int) -> None:
        places = _draw_places(table, size)
        self.engine, self.original, self.table, self.rows = engine, original, table, len(places)
        self.frame = engine.take(original, places)[0]

    def measure(self, policy: Policy) -> dict[str, float]:
        """Recode the sample by the method for the whole table; return the loss by column."""
        engine = self.engine
        prepared, schema, table = bind_table(engine, self.frame, policy)
        task = Task(table.policy, table.terms.models, table, run_jobs=engine.map_blocks)
        reduced = _reduce(task, table)
        if reduced is task:  # of rows, as many as the whole table has
            reduced = replace(task, policy=replace(table.policy, rows=self.table.policy.rows))
        planned = plan(_shorten(task, choose_method(reduced)[0]))
        released = engine.apply(prepared.frame, planned.recoding, schema)
        tables = pair_tables(table, self.frame, released, planned.recoding)
        attributes = encode_quasi(table, tables)
        pair = tables.pair(restore_original_values(engine, self.frame, attributes, prepared.changed))
        return {column.name: measure_column_loss(column, pair.weight).lost for column in pair.columns}


def _reduce(task: Task, table: Table) -> Task:
    """Return the task whose records form classes: people, if the rows of a person are recoded together."""
    return task if task.method.people is None else reduce_to_people(task, table)


def _shorten(task: Task, method: Declaration) -> Task:
    """Return the task by a method, without refinement and proofs, and with a short search."""
    steps = SEARCH_STEPS if method.family == "generalize" else None
    limits = {"refine": None if steps else 0.0, "refine_steps": steps, "prove": 0.0}
    chosen = {"name": method.name, "several_starts": task.method.uses_several_starts}
    request = task.policy.request.model_copy(update={"method": task.method.model_copy(update=chosen | limits)})
    return replace(task, policy=replace(task.policy, request=request))


def _run_trials(
    sample: _Sample, policy: Policy, in_sample: Mapping[str, float], trend: Mapping[str, float], progress: Progress
) -> Iterator[PolicyTrial]:
    """Yield what each change of the policy loses; one that cannot be met is a trial too."""
    costliest = max(in_sample, key=lambda name: in_sample[name] * trend[name])
    changes = [*_change_levels(policy), *_change_column(sample, policy, costliest)]
    for done, (kind, change, keys) in enumerate(changes):
        progress(done, len(changes))
        values = policy.model_dump(exclude_unset=True, exclude={"review"})
        try:
            changed = Policy.parse(override_keys(values, keys)) if keys else policy
            lost = sample.measure(changed) if keys else in_sample
            yield PolicyTrial(kind, change, *_average({name: lost[name] * trend[name] for name in lost}, costliest))
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
    confidential = {name: column.t for name, column in policy.columns.items() if column.role is Role.CONFIDENTIAL}
    levels |= {("columns", name, "t"): t for name, t in confidential.items() if t is not None}
    if not levels and confidential:
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
    """Yield a coarser form of a column, if it has one, and its removal."""
    prepared, _, table = bind_table(sample.engine, sample.frame, policy)
    attribute = next(each for each in table.attributes if each.bound.name == name)
    if coarser := coarsen(sample.engine, prepared.mapped, attribute):
        keys: dict[KeyPath, Any] = {
            ("columns", name, key): value for key, value in coarser.keys.items() if value is not None
        }
        yield "coarsen", f"{name} {coarser.words}", keys
    yield "remove", f"without {name}", {("columns", name): {"role": "remove"}}


def _average(lost: Mapping[str, float], costliest: str) -> tuple[float, float | None]:
    """Return the loss of all quasi-identifiers, and that of all but the most expensive one."""
    others = [loss for name, loss in lost.items() if name != costliest]
    return mean_loss([*lost.values()]), mean_loss(others) if others else None
