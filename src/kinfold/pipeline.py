"""The pipeline: read, bind, plan, apply, verify, measure. Start reading here.

source ─read─▶ frame ─bind─▶ policy ─plan─▶ recoding ─apply─▶ released ─verify─▶ verdict ─measure─▶ report
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold import __version__
from kinfold.errors import LayoutError, PolicyError, Problem, require_path
from kinfold.measures.loss import restore_original_values
from kinfold.measures.measure_table import MeasureTable, collect_notes
from kinfold.measures.measurement import Measures, measure_release
from kinfold.measures.optional import add_optional_measures
from kinfold.measures.options import MeasureOptions
from kinfold.measures.pairing import TablePair, encode_quasi, pair_tables
from kinfold.measures.singling_out import build_unique_promises
from kinfold.methods.blocks.pool import NO_CHECKPOINTS
from kinfold.methods.perturbed_table import perturb_table
from kinfold.methods.plan import Chooser, Plan, Task, plan
from kinfold.methods.task import EarlierClasses
from kinfold.methods.weights import release_weights
from kinfold.models.verdict import Verdict
from kinfold.policy.binding import bind
from kinfold.policy.encoding import encode
from kinfold.policy.events import assign_attributes, link_tables, refuse_tables, separate_events
from kinfold.policy.exact_values import describe_time_zones
from kinfold.policy.model import Policy
from kinfold.policy.people import add_surrogates, fill_households, find_household_terms, unify_households
from kinfold.policy.population import read_population
from kinfold.policy.preparation import PreparedTable, prepare
from kinfold.policy.rule_checks import count_violations, describe_rule_counts
from kinfold.policy.schema import add_policy_keywords, build_policy, collect_policy_values
from kinfold.policy.table import Table, find_gathering_reasons
from kinfold.policy.terms import build_release_terms, build_terms, describe_weights
from kinfold.progress import Progress, StageProgress, cancellable, nested_progress, no_stage_progress
from kinfold.release.certificate import Certificate, read_policy_values
from kinfold.release.findings import add_perturbation, add_population_risks, add_removed_findings
from kinfold.release.inspection import check_folder, check_output_keys, check_table
from kinfold.release.release import Release
from kinfold.release.row_pairs import PairSources, drop_removed, pair_rows
from kinfold.release.several_releases import (
    check_after,
    compare_releases,
    find_earlier_classes,
    read_earlier_people,
)
from kinfold.tables import frames
from kinfold.tables.column_names import require_header
from kinfold.tables.databases.address import DatabaseAddress, SparkPlace, locate, parse_source
from kinfold.tables.engine import Engine
from kinfold.tables.regions import CheckpointStore
from kinfold.tables.schema import Role, Schema
from kinfold.tables.source_form import SourceForm
from kinfold.verification import verify as check

if TYPE_CHECKING:
    from kinfold.disk.checkpoints import CheckpointFolder
    from kinfold.hierarchies import Hierarchy
    from kinfold.methods.generalize.lattice import Lattice
    from kinfold.methods.generalize.mu_argus import MuArgusState
    from kinfold.profiling.profile import Profile
    from kinfold.profiling.source_detection import Readings

MISSING_TEXTS = ("",)  # an empty text is a missing value in every source, because CSV cannot distinguish the two

MISMATCHES = {
    "source": "the stopped run read another input",
    "policy": "the stopped run had another policy",
    "kinfold": "the stopped run used another version of kinfold",
}
RESTART_HINT = "leave out --resume to start again"


@add_policy_keywords()
@cancellable
def anonymize(
    source: Any,
    policy: Any = None,
    *,
    answers: Mapping[str, Any] | None = None,
    accept_proposal: bool = False,
    progress: StageProgress | None = None,
    ask: Chooser | None = None,
    saved: CheckpointFolder | None = None,
    after: Sequence[str | Path] = (),
    **request: Any,
) -> Release:
    """Anonymize a table and return the verified `Release`. Raise if the result breaks a promise.

    `policy` is a `Policy`, a mapping or a TOML file; or give keywords: `quasi=[...], confidential=[...], k=5`.
    `answers={"unit": "none"}` answers questions of the policy; `accept_proposal=True` takes the proposal of every other
    one. A policy with an open question is refused.
    `progress(stage, done, total)` is called during the run; an exception that it raises stops the run.
    `ask` chooses for the data holder in mu-argus. `saved` is a folder of checkpoints, so that a run can be resumed.
    `after` names the folders of earlier releases of the same people, which stay protected (`privacy.unit` is needed).
    """
    started, report = time.perf_counter(), progress or no_stage_progress
    request_policy = build_policy(policy, request).answer(
        {} if answers is None else answers, accept_proposal=accept_proposal
    )
    request_policy.review.require_answers()
    earlier = read_earlier_people(after, request_policy, source)
    source = _parse_text(source)
    if not isinstance(source, Path | DatabaseAddress) and not frames.is_spark(source) and frames.is_frame(source):
        source = frames.Snapshot.from_frame(source)  # later changes to the caller's frame do not reach the release
    rows = link_tables(request_policy, resolve_source(source, request_policy))
    engine = open_engine(request_policy, rows, gathering=True)
    report("read", 0, 1)
    original = engine.read(rows, MISSING_TEXTS, request_policy.form)  # frame: the rows of the source
    del rows
    prepared, schema, table = bind_table(engine, original, request_policy, frames.get_index_names(source))
    checkpoints = open_checkpoints(saved, request_policy, original.checksum)
    known = find_earlier_classes(table, original, earlier) if earlier else None
    task = _build_task(table, report, ask, checkpoints, known)
    planned = _plan(task, table, prepared)  # how to recode each row and column
    report("apply", 0, 1)
    released = engine.apply(prepared.frame, planned.recoding, schema)  # frame: the rows of the release
    report("verify", 0, 1)
    verdict = check(engine, released, table.terms)  # save() checks again, on the written file
    verdict = add_removed_findings(verdict, table, released, planned.recoding).require()
    report("measure", 0, 1)
    tables = pair_tables(table, original, released, planned.recoding, large=planned.large, dominated=planned.dominated)
    measures = _measure(tables, table, prepared, verdict, planned)  # risk and loss
    rules = count_violations(table.policy, engine, prepared.mapped, released)  # edit rules, before and after
    accepted = tuple(filter(None, [request_policy.review.statement]))
    report("done", 1, 1)
    release = Release(
        verdict=verdict,
        measures=measures,
        policy=table.policy,
        terms=table.terms,
        plan=planned.prepend_notes(*describe_rule_counts(rules)).prepend_notes(accepted, accepted),
        schema=schema,
        seconds=time.perf_counter() - started,
        source=source.reduce_to(planned.recoding) if isinstance(source, frames.Snapshot) else source,
        engine=engine,
        original=original,
        prepared=prepared,
        released=released,
        rules=rules,
        sample=tables.sample,
    )
    return check_after(release, earlier) if earlier else release


def open_checkpoints(saved: CheckpointFolder | None, policy: Policy, checksum: str | None) -> CheckpointStore:
    """Return the checkpoints of a run; raise if a run is resumed with another input, policy or version."""
    if saved is None:
        return NO_CHECKPOINTS
    if checksum is None:
        if saved.resume:
            what = "cannot resume: only a run on a file can be resumed, because other inputs have no checksum"
            raise PolicyError(what, fix=RESTART_HINT)
        return NO_CHECKPOINTS
    policy_hash = hashlib.sha256(policy.toml().encode())
    for _, column in sorted(policy.columns.items()):
        if column.hierarchy is not None and column.hierarchy.file is not None and column.hierarchy.file.is_file():
            policy_hash.update(column.hierarchy.file.read_bytes())
    differences = saved.begin({"source": checksum, "policy": policy_hash.hexdigest(), "kinfold": __version__})
    if differences:
        raise PolicyError(Problem(f"cannot resume: {MISMATCHES[part]}", RESTART_HINT) for part in differences)
    return saved


def _build_task(
    table: Table,
    progress: StageProgress,
    ask: Chooser | None,
    checkpoints: CheckpointStore,
    earlier: EarlierClasses | None,
) -> Task:
    """Return what the method gets."""
    return Task(
        table.policy,
        (*table.terms.models, *table.terms.statements),
        table,
        progress=nested_progress(partial(progress, "plan")),
        choose=ask,
        checkpoints=checkpoints,
        stage_progress=partial(partial, progress),
        run_jobs=table.engine.map_blocks,
        earlier=earlier,
    )


def _plan(task: Task, table: Table, prepared: PreparedTable) -> Plan:
    """Run the method and return its plan, with the notes on prepared values, time zones and weights first."""
    zones = describe_time_zones(table.policy.with_role(Role.QUASI))
    notes = (*zones, *describe_weights(table.policy, table.weights))
    return release_weights(table, plan(task)).prepend_notes((*prepared.notes, *notes), (*prepared.public_notes, *notes))


def _measure(tables: TablePair, table: Table, prepared: PreparedTable, verdict: Verdict, planned: Plan) -> Measures:
    """Measure a release against the original values, before any of them was recoded."""
    quasi, original = encode_quasi(table, tables), tables.inspected[0]
    attributes = restore_original_values(table.engine, original, quasi, prepared.changed)
    measures = measure_release(tables, table.policy, verdict, attributes)
    measures = add_population_risks(measures, table, tables.released)
    if prepared.unperturbed is not None:
        measures = add_perturbation(measures, table, prepared, tables.released, planned)
    belief = planned.belief
    if belief is None:
        return measures
    note = (
        f"risk.minimality: someone who knows the method and all quasi-identifiers can infer a value of "
        f"'{belief.column}' with a probability of {belief.posterior:.0%}; its class alone shows {belief.prior:.0%}"
    )
    return measures.with_measure("risk", "minimality", {"belief": belief.posterior, "by_class": belief.prior}, note)


@add_policy_keywords()
def verify(
    source: Any,
    policy: Any = None,
    *,
    rows_only: bool = False,
    require_people: bool = False,
    twice: bool = False,
    together_with: Sequence[str | Path] = (),
    **request: Any,
) -> Verdict:
    """Return the k, l and t of a table, and whether it keeps the promises of a policy, as a `Verdict`.

    A release folder is checked by its certificate, and by the policy too if one is given. Keywords without a policy are
    checked in addition to the certificate. Promises about people (`privacy.unit`) cannot be checked from a release: a
    note of the verdict says so, `require_people` makes it a problem, and `rows_only` leaves it out.
    `twice` runs the second, plain checker as well. `together_with` names folders of other releases of the same people:
    the verdict then says what all of them disclose together.
    """
    if isinstance(source, str | Path) and isinstance(path := parse_source(source), Path) and path.is_dir():
        recipient = None if policy is None and not request else partial(_build_recipient_policy, policy, request)
        options = {"rows_only": rows_only, "require_people": require_people, "twice": twice}
        verdict = check_folder(Path(source), recipient, **options)
        joint = compare_releases(Path(source), [*map(require_path, together_with)]) if together_with else None
        return replace(verdict, disclosure=joint)
    if together_with:
        raise PolicyError("only a release folder can be compared with other releases", fix="name the folder: DIR")
    request_policy = build_policy(policy, request)
    refuse_tables(request_policy, "a single file is not the whole release", "verify the folder of the release")
    rows = resolve_source(source, request_policy)
    quoted = _is_quoted(request_policy, rows)
    form = replace(request_policy.source.form, encoding=None, header=None, skip=0, skip_totals=False, quoted=quoted)
    with open_engine(request_policy, rows) as engine:
        frame = engine.read(rows, form=form)
        terms = build_release_terms(request_policy, engine, frame)
        verdict = check(engine, frame, terms)
        if twice:
            check_table(rows, frame, verdict, terms)
        verdict = check_output_keys(verdict, engine, frame, request_policy)
    verdict = replace(verdict, people=()) if rows_only else verdict
    return verdict.add_people_note(None if rows_only else terms.unchecked_unit, required=require_people)


def _build_recipient_policy(policy: Any, request: Mapping[str, Any], certificate: Certificate) -> Policy:
    """Return the recipient's policy: the one given, or the columns of the certificate with the keywords set."""
    if policy is not None:
        return build_policy(policy, request)
    return Policy.parse(collect_policy_values(request, read_policy_values(certificate)))


@add_policy_keywords(MeasureOptions)
def measure(original: Any, released: Any, policy: Any = None, **request: Any) -> Measures:
    """Compare a release with its original, row by row if the rows can be paired, and return `Measures`.

    Loss is measured over the quasi-identifiers, or over all columns of both tables with `columns="all"`. The further
    options are those of `MeasureOptions`: measures="all", weights=, population=, sampling_weights=, threshold=,
    linkage_subsets=, linkage_untouched= and task=. The other keywords are a policy, as for `anonymize`.
    """
    options, request = MeasureOptions.split_keywords(request)
    request_policy = build_policy(policy, request)
    refuse_tables(request_policy, "rows of several tables are not paired", "read the measures of the release")
    index = frames.get_index_names(original)
    sources = [resolve_source(each, request_policy) for each in (original, released)]
    if options.population is not None:
        options = replace(options, population=resolve_source(options.population, request_policy))
        sources.append(options.population)
    with open_engine(request_policy, *sources) as engine:
        before = engine.read(sources[0], MISSING_TEXTS, request_policy.form)
        form = replace(request_policy.form.for_other_file(sources[1]), quoted=_is_quoted(request_policy, sources[1]))
        after = engine.read(sources[1], MISSING_TEXTS, form)
        prepared = prepare(engine, before, request_policy, index)
        bound = bind(request_policy, engine.schema(prepared.frame), index=index)
        require_header(engine.schema(after), bound.request.columns)
        after, warnings = drop_removed(engine, after, bound)
        verdict = check(engine, after, build_terms(bound, engine, prepared.frame))
        verdict.require_columns()
        measured = bound.released if options.columns == "all" else bound.with_role(Role.QUASI)
        attributes = encode(engine, prepared.frame, measured)
        attributes = restore_original_values(engine, before, attributes, prepared.changed)
        origins = PairSources(_parse_text(original), _parse_text(released), prepared.frame)
        unpaired = TablePair(engine, before, after, "rows are not paired yet")
        tables, pairing, doubts = pair_rows(unpaired, origins, bound, attributes, options)
        measures = measure_release(tables, bound, verdict, attributes, options)
        return measures.with_pairing(pairing, [*warnings, *doubts])


def attack(release: Release) -> dict[str, Any]:
    """Return the success of a linkage attack with the most telling columns alone, and with the unchanged columns."""
    with release.lock:
        engine, bound, prepared = release.engine, release.policy, release.prepared
        tables = TablePair(engine, release.original, release.released, np.flatnonzero(release.recoding.kept))
        quasi = encode(engine, prepared.frame, bound.with_role(Role.QUASI))
        pair = tables.pair(restore_original_values(engine, release.original, quasi, prepared.changed))
        risk = MeasureTable("risk")
        options = MeasureOptions(linkage_subsets=True, linkage_untouched=True)
        add_optional_measures(options, tables, bound, lambda: pair, (risk, MeasureTable("loss")))
        return {**risk.values, "notes": collect_notes(risk)}


def build_lattice(source: Any, policy: Any = None, **request: Any) -> Lattice:
    """Return the generalization lattice of a table, with its optimal node."""
    from kinfold.methods.generalization import search_lattice
    from kinfold.methods.generalize.lattice import METHOD

    with _open_task(source, build_policy(policy, request), METHOD.name) as task:
        return search_lattice(task)


def find_outliers(source: Any, policy: Any = None, **request: Any) -> MuArgusState:
    """Return the state of mu-Argus after the choices of the policy, with the effect of each further choice."""
    from kinfold.methods.generalization import inspect_mu_argus
    from kinfold.methods.generalize.mu_argus import METHOD

    with _open_task(source, build_policy(policy, request), METHOD.name) as task:
        return inspect_mu_argus(task)


@contextmanager
def _open_task(source: Any, policy: Policy, method: str) -> Iterator[Task]:
    """Yield the task of a method, whatever method the policy names."""
    policy = policy.model_copy(update={"method": policy.method.model_copy(update={"name": method})})
    rows = link_tables(policy, resolve_source(source, policy))
    with open_engine(policy, rows, gathering=True) as engine:
        table = bind_table(engine, engine.read(rows, MISSING_TEXTS, policy.form), policy)[2]
        yield Task(table.policy, (*table.terms.models, *table.terms.statements), table)


def bind_table(
    engine: Engine, original: Any, policy: Policy, index: Collection[str] = ()
) -> tuple[PreparedTable, Schema, Table]:
    """Bind a policy to a frame; raise with every problem if it does not fit."""
    policy = assign_attributes(policy, original.parts, original.names)  # of people or events, if tables were joined
    prepared = prepare(engine, original, policy, index)  # single values recoded: top, bottom, round_to, map
    prepared = unify_households(engine, prepared, policy)
    household = find_household_terms(engine, prepared.frame, policy)
    prepared = fill_households(engine, prepared, household)  # missing cells that other members show
    prepared = add_surrogates(engine, prepared, policy)  # other keys for people and households, if they are released
    schema = engine.schema(prepared.frame)
    bound = bind(policy, schema, index=index)  # role and type of each column
    bound = separate_events(engine, prepared.frame, bound)  # whose attribute it is, if people stay together
    prepared, bound = perturb_table(engine, prepared, bound)  # random changes of columns: perturb
    terms = replace(build_terms(bound, engine, prepared.frame), household=household)  # the promises
    terms = replace(terms, statements=(*terms.statements, *build_unique_promises(bound.request)))
    people = read_population(engine, bound, policy.form, MISSING_TEXTS)  # the population, if a promise needs it
    table = Table(engine, prepared.frame, bound, terms, prepared.mapped, people)
    return prepared, engine.schema(prepared.frame), table


def build_hierarchy(source: Any, policy: Any, column: str) -> Hierarchy:
    """Return the hierarchy of a column as a policy builds it from the values of the column."""
    policy = Policy.of(policy)
    rows = link_tables(policy, resolve_source(source, policy))
    with open_engine(policy, rows) as engine:
        frame = prepare(engine, engine.read(rows, MISSING_TEXTS, policy.form), policy).frame
        bound = bind(policy, engine.schema(frame))
        if column not in policy.columns or policy.columns[column].hierarchy is None:
            raise PolicyError(f"the policy has no hierarchy for a column '{column}'", fix="add one to [columns]")
        generalized = replace(bound[column], average="generalize")  # even if the method averages the column
        hierarchy = encode(engine, frame, [generalized])[0].hierarchy
    assert hierarchy is not None  # noqa: S101  the policy has one
    return hierarchy


@add_policy_keywords(sections=("source",))
def profile(source: Any, *, progress: StageProgress | None = None, **written: Any) -> Profile:
    """Return the type and a possible role of each column, and the combinations that single people out: a `Profile`.

    The format of the table is detected. `na`, `decimal`, `thousands`, `dates`, `encoding`, `separator`, `sheet`,
    `header` and `skip` declare it instead, like the keys of `[source]`.
    """
    from kinfold.profiling.profile import profile as profile_frame

    keywords = {f"source.{key}": f"{key}=" for key in written}
    policy = Policy.parse({"privacy": {"k": 2}, "source": written}, options=keywords)
    with open_detected(resolve_source(source, policy), policy.source.form) as (engine, frame, readings):
        result = profile_frame(engine, frame, partial(progress or no_stage_progress, "combinations"))
        return readings.complete(result, frame.form)


@contextmanager
def open_detected(
    source: Any, declared: SourceForm, *, guessing: bool = True
) -> Iterator[tuple[Engine, Any, Readings]]:
    """Read a table in its declared or detected format; yield the engine, its frame, and what was guessed."""
    from kinfold.profiling.source_detection import Detection, describe_readings, detect_form

    rows = resolve_source(source)
    with open_engine(None, rows) as engine:
        first, form = _read_layout(engine, rows, declared, guessing=guessing)
        frame, schema, detection = first, engine.schema(first), Detection(form)
        if guessing:
            detection = detect_form(schema, engine.profile(first, list(schema)), form)
        if detection.form != form:
            frame = engine.read(rows, MISSING_TEXTS, detection.form)
            used = {column.date_format for column in engine.schema(frame)}
            dates = tuple(each for each in detection.form.dates if each in used or each in form.dates)
            if dates != detection.form.dates:  # digits like dates are numbers in a frame
                detection = detection._replace(form=replace(detection.form, dates=dates))
                frame = engine.read(rows, MISSING_TEXTS, detection.form)
        yield engine, frame, describe_readings(schema, engine.schema(frame), declared, detection)


def _read_layout(engine: Engine, rows: Any, declared: SourceForm, *, guessing: bool) -> tuple[Any, SourceForm]:
    """Read a table, with the header that its reader suggests if it is not the first line; return the form too."""
    form = declared
    while True:
        try:
            return engine.read(rows, MISSING_TEXTS, form), form
        except LayoutError as error:
            if not guessing or any(getattr(form, key) for key in error.keys):
                raise
            form = replace(form, **error.keys)


def open_engine(policy: Policy | None = None, *sources: Any, gathering: bool = False) -> Any:
    """Start the engine that the policy or the first source needs; for a release Spark may gather all records."""
    from kinfold.tables.duckdb.engine import DuckDB
    from kinfold.tables.engine import open_spark_engine
    from kinfold.tables.resources import Resources

    limits = Resources() if policy is None else policy.engine.resources
    first = sources[0] if sources else None
    if frames.is_spark(first) or (policy is not None and policy.engine.name == "spark"):
        reasons = () if policy is None or not gathering else tuple(find_gathering_reasons(policy))
        return open_spark_engine(first, policy.engine.master if policy else None, replace(limits, gathering=reasons))
    return DuckDB(limits.for_sources(*sources))


def load_kernels() -> list[str]:
    """Load the compiled kernels that most releases need; return the names of those that are not compiled yet."""
    from kinfold import kernels
    from kinfold.methods.plan import list_kernels

    needed = [*dict.fromkeys(list_kernels())]
    missing = [name for name in needed if not kernels.is_ready(name)]
    for name in set(needed) - {*missing}:
        kernels.prepare(name)
    return missing


def compile_kernels(progress: Progress) -> None:
    """Compile the kernels that most releases need, so that no run has to."""
    from kinfold import kernels
    from kinfold.methods.plan import list_kernels

    kernels.warmup(progress, list_kernels())


def is_compiling() -> bool:
    """Whether a run waits for the compiler now."""
    from kinfold import kernels

    return kernels.is_compiling()


def resolve_source(source: Any, policy: Policy | None = None) -> Any:
    """Return what an engine reads: a path, the address of rows in a database, a Spark frame, or rows as Arrow."""
    if isinstance(source, str | Path | SparkPlace):
        return locate(source, policy.source.format if policy else None, policy.engine.name if policy else "")
    if isinstance(source, DatabaseAddress) or frames.is_spark(source):
        return source
    if isinstance(source, frames.Snapshot):
        return source.to_arrow()
    if frames.is_frame(source):
        return frames.to_arrow(source)
    kind = type(source).__name__
    if frames.is_lazy(source):
        raise PolicyError(f"the {kind} is lazy: its rows are not computed yet", fix="collect it first: frame.collect()")
    raise PolicyError(f"{kind} is not a table", fix="give a path, or a pandas, polars, pyarrow or Spark table")


def _is_quoted(policy: Policy, released: Any) -> bool:
    """Whether formulas are quoted in a release: not in a table of a database, which no spreadsheet opens."""
    return policy.output.spreadsheet_safe and not isinstance(released, DatabaseAddress)


def _parse_text(source: Any) -> Any:
    return parse_source(source) if isinstance(source, str) else source
