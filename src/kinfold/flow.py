"""The whole way, one line a stage. A newcomer reads this first.

source ─read─▶ frame ─bind─▶ policy ─plan─▶ recoding ─apply─▶ released ─verify─▶ verdict ─measure─▶ report
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from kinfold.errors import PolicyError, require_callable
from kinfold.evaluation import Measures, Questions, Tables, measure_release
from kinfold.evaluation.answers import answer
from kinfold.evaluation.sheet import Sheet, notes_of
from kinfold.evaluation.tuples import described, side_by_side
from kinfold.evaluation.values_as_they_came import as_they_came
from kinfold.methods.planning import Ask, Plan, Task, plan
from kinfold.models.terms import Terms
from kinfold.models.verdict import Verdict
from kinfold.progress import Progress, Stage, attended, onward
from kinfold.release.certificate import Certificate
from kinfold.release.certification import policy_in
from kinfold.release.folder import save
from kinfold.release.inspection import check_folder, check_table, spreadsheet_safe
from kinfold.release.recoded_values import with_recoded_values
from kinfold.release.release import Release
from kinfold.release.resuming import shelf_for
from kinfold.release.row_pairs import Sides, paired_rows, without_identifiers
from kinfold.request.binding import bind
from kinfold.request.encoding import encode
from kinfold.request.exact_values import zones_told
from kinfold.request.keywords import listing, policy_values, requested
from kinfold.request.policy import Policy
from kinfold.request.preparation import Prepared, prepare
from kinfold.request.quoted_terms import as_written
from kinfold.request.rules.counting import count_rules, in_words
from kinfold.request.table import Table
from kinfold.request.terms import scopes_of, terms_of
from kinfold.rows import frames
from kinfold.rows.databases.address import DatabaseAddress, located
from kinfold.rows.engines import Engine
from kinfold.rows.header import require_header
from kinfold.rows.recoding import Recoding, unquoting
from kinfold.rows.schema import Role, Schema
from kinfold.rows.source_form import Form
from kinfold.verification import judge_people
from kinfold.verification import verify as check

if TYPE_CHECKING:
    from kinfold.disk.saved_work import SavedWork
    from kinfold.hierarchy import Hierarchy
    from kinfold.methods.blocks.saved_stages import Shelf
    from kinfold.methods.generalize.lattice import Lattice
    from kinfold.methods.generalize.mu_argus import Standing
    from kinfold.profiling.profile import Profile

Asked = ParamSpec("Asked")

MISSING = ("",)  # an empty text is a missing value, whatever the source: a CSV file cannot tell them apart


def heeding(way: Callable[Asked, Release]) -> Callable[Asked, Release]:
    """Do the whole way in a thread of its own where somebody listens, so that what the listener raises ends it at once.

    Not where somebody is asked questions: the answers come from the calling thread. A way that fails leaves no rows
    behind, in memory or on disk, however long its exception is held.
    """

    @wraps(way)
    def heeded(*args: Asked.args, **given: Asked.kwargs) -> Release:
        from kinfold.rows.engines.connection import watched

        with watched() as watch:

            def tidy(**more: Any) -> Release:
                with watch.closing_on_error():
                    return way(*args, **{**given, **more})

            listener: Any = given.get("progress")
            require_callable("progress", listener)
            if listener is None or given.get("ask") is not None:
                return tidy()
            return attended(lambda tell: tidy(progress=tell), listener, watch)

    return heeded


@listing()
@heeding
def anonymize(
    source: Any,
    policy: Any = None,
    *,
    progress: Stage | None = None,
    ask: Ask | None = None,
    saved: SavedWork | None = None,
    **request: Any,
) -> Release:
    """Read, bind, plan, apply, verify, measure. Raises before anything unverified can leave.

    `policy` is a `Policy`, a mapping or a TOML file; or say `quasi=[...], confidential=[...], k=5, method="mdav"`.
    `progress` hears the stage, how much is done and of how much; what it raises ends the run.
    `ask` is asked for the data holder's choices of mu-argus. `saved` keeps the work of blocks for a run that resumes.
    """
    tell = progress or _unheard
    started = time.perf_counter()
    asked = requested(policy, request)
    source = snapshot_of(source)  # nothing that happens to a frame from here on changes the release
    rows = rows_of(source)
    engine = open_engine(asked, rows)
    tell("read", 0, 1)
    original = engine.read(rows, MISSING, asked.source.form)  # rows as they came
    prepared, schema, table = fit(engine, original, asked, frames.index_names(source))  # bound: roles, kinds, checked
    del rows
    bound, terms = table.policy, table.terms  # terms: what will be promised
    task = _task(table, tell, ask, shelf_for(saved, asked, engine.checksum(original)))  # with what is done already
    zones = zones_told(bound.of(Role.QUASI))  # by which clock generalized moments are dated
    planned = plan(task).after(
        (*prepared.notes, *zones), (*prepared.told, *zones)
    )  # what to do to each row and each column
    tell("apply", 0, 1)
    recoded = engine.apply(prepared.frame, planned.recoding, schema)  # rows as they are measured
    planned, written = _quoted(planned, terms) if asked.output.spreadsheet_safe else (planned, terms)
    released = recoded if written is terms else engine.apply(prepared.frame, planned.recoding, schema)  # as they leave
    tell("verify", 0, 1)
    verdict = check(engine, released, written)  # save() does it again on the file as written
    verdict = _with_people(verdict, table, released, planned, written).require()  # or raise
    tell("measure", 0, 1)
    tables = side_by_side(table, original, recoded, planned.recoding, far=planned.dominant)  # as measures take them
    measures = _with_belief(_measured(tables, table, prepared, verdict), planned)  # risk and loss
    rules = count_rules(bound, engine, prepared.mapped, recoded)  # what breaks the edit rules, before and after
    tell("done", 1, 1)
    source = source.only(planned.recoding) if isinstance(source, frames.Snapshot) else source
    how = (planned.after(*in_words(rules)), schema, time.perf_counter() - started, source, engine)
    return Release(verdict, measures, bound, written, *how, original, prepared, released, save, rules, tables.drawn)


def _task(table: Table, tell: Stage, ask: Ask | None, shelf: Shelf) -> Task:
    """Return what a method is given: the table, whom to tell how far it is, whom to ask, and who works on blocks."""
    planning, stages = onward(partial(tell, "plan")), partial(partial, tell)
    return Task(table.policy, table.terms.models, table, planning, ask, shelf, stages, table.engine.split)


def _measured(tables: Tables, table: Table, prepared: Prepared, verdict: Verdict) -> Measures:
    """Measure a release against the values as they came, before any of them was recoded."""
    attributes = as_they_came(table.engine, tables.looked_at, described(table, tables), prepared.changed)
    return measure_release(tables, table.policy, verdict, attributes)


def _with_belief(measures: Measures, planned: Plan) -> Measures:
    """Add what someone who knows the method can conclude from minimal levels, where that was measured."""
    belief = planned.belief
    if belief is None:
        return measures
    note = (
        f"risk.minimality: someone who knows the method and all quasi-identifiers can believe a value of "
        f"'{belief.column}' with a probability of {belief.known:.0%}; its class alone shows {belief.shown:.0%}"
    )
    return measures.with_risk("minimality", {"belief": belief.known, "by_class": belief.shown}, note)


def _quoted(planned: Plan, terms: Terms) -> tuple[Plan, Terms]:
    """Return a plan that quotes formulas, which are measured as they were, and the promises about what is written."""
    return replace(planned, recoding=planned.recoding.quoted()), as_written(terms)


def _with_people(verdict: Verdict, table: Table, released: Any, planned: Plan, terms: Terms) -> Verdict:
    """Add what holds for people to what holds for rows, counted on the released rows beside whose they were."""
    if table.person is None or verdict.problems:
        return verdict
    engine, person = table.engine, table.person[planned.recoding.kept]
    tuples = engine.distinct(released, terms.quasi)
    classes = engine.by_row(released, Recoding(np.arange(verdict.classes, dtype=np.int32), {}, tuples)).labels
    scopes = scopes_of(engine, released, terms, person)
    assert scopes is not None  # noqa: S101  people are counted
    return replace(verdict, people=judge_people(classes, scopes, terms))


@listing()
def verify(
    source: Any,
    policy: Any = None,
    *,
    rows_only: bool = False,
    require_people: bool = False,
    twice: bool = False,
    **request: Any,
) -> Verdict:
    """Say what k, l and t a table has and whether a policy's promises hold on it, whoever made it.

    The folder of a release is judged by its certificate, and by the policy too where one is given; keywords without a
    policy are asked for on top of what the certificate says. Promises about people (`privacy.unit`) cannot be checked
    from a release: the verdict's notes say so, `require_people` makes that a problem, and `rows_only` leaves it out.
    `twice` asks the plain checker as well.
    """
    if isinstance(source, str | Path) and isinstance(place := located(source), Path) and place.is_dir():
        more = None if policy is None and not request else partial(_asked_of, policy, request)
        how = {"rows_only": rows_only, "require_people": require_people, "twice": twice}
        return check_folder(Path(source), more, **how).verdict
    asked = requested(policy, request)
    rows = rows_of(source)
    with open_engine(asked, rows) as engine:
        frame = engine.read(
            rows, form=replace(asked.source.form, encoding=None, header=None, skip=0)
        )  # as a release is
        terms = released_terms(asked, engine, frame)
        verdict = check(engine, frame, terms)
        if twice:
            check_table(rows, engine, frame, verdict, terms)
        verdict = with_recoded_values(verdict, engine, frame, asked)
        verdict = spreadsheet_safe(verdict, engine, frame) if asked.output.spreadsheet_safe else verdict
    return verdict if rows_only else verdict.of_rows(terms.unit, required=require_people)


def _asked_of(policy: Any, request: Mapping[str, Any], certificate: Certificate) -> Policy:
    """Return a recipient's policy: the one given, or what the certificate says of columns with some keys set anew."""
    if policy is not None:
        return requested(policy, request)
    values = policy_in(certificate)
    for section, keys in policy_values(request).items():
        values[section] = {**values.get(section, {}), **keys}
    return Policy.parse(values)


@listing(Questions)
def measure(original: Any, released: Any, policy: Any = None, **request: Any) -> Measures:
    """Compare a release with its original, row by row where they can be paired.

    Loss is measured over the quasi-identifiers, or over `columns="all"` that are in both tables. What else can be asked
    for is in `evaluation.questions`: measures="all", weights=, population=, sampling_weights=, threshold=,
    linkage_subsets=, linkage_untouched= and task=; the rest of the keywords are a policy, as for `anonymize`.
    """
    questions, request = Questions.taken(request)
    asked = requested(policy, request)
    sources = [rows_of(original), rows_of(released)]
    if questions.population is not None:
        questions = replace(questions, population=rows_of(questions.population))
        sources.append(questions.population)
    with open_engine(asked, *sources) as engine:
        before = engine.read(sources[0], MISSING, asked.source.form)
        after = engine.read(sources[1], MISSING, asked.source.form.of_another())
        prepared = prepare(engine, before, asked, frames.index_names(original))
        bound = bind(asked, engine.schema(prepared.frame), index=frames.index_names(original))
        require_header(engine.schema(after), asked.columns)
        if asked.output.spreadsheet_safe:
            schema = engine.schema(after)
            after = engine.apply(after, unquoting(schema.names, schema.rows), schema)
        after, warnings = without_identifiers(engine, after, bound)
        verdict = check(engine, after, terms_of(bound, engine, prepared.frame))
        verdict.require_columns()
        kept = [column for column in bound.columns if column.role is not Role.IDENTIFIER]
        attributes = encode(engine, prepared.frame, kept if questions.columns == "all" else bound.of(Role.QUASI))
        attributes = as_they_came(engine, before, attributes, prepared.changed)
        sides = Sides(_named(original), _named(released), prepared.frame)
        unpaired = Tables(engine, before, after, "rows are not paired yet")
        tables, how, doubts = paired_rows(unpaired, sides, bound, attributes, questions)
        found = measure_release(tables, bound, verdict, attributes, questions).paired_by(how)
        return found.warned(*warnings, *doubts)


def attack(release: Release) -> dict[str, Any]:
    """Say what a linkage attacker gets by the most telling columns alone, and with those released untouched."""
    with release.lock:
        return _attacked(release)


def _attacked(release: Release) -> dict[str, Any]:
    engine, bound, prepared = release.engine, release.policy, release.prepared
    released = engine.apply(prepared.frame, release.plan.recoding.quoted(0), release.schema)
    tables = Tables(engine, release.original, released, np.flatnonzero(release.recoding.kept))
    quasi = encode(engine, prepared.frame, bound.of(Role.QUASI))
    pair = tables.paired(as_they_came(engine, release.original, quasi, prepared.changed))
    found = Sheet("risk")
    asked = Questions(linkage_subsets=True, linkage_untouched=True)
    answer(asked, tables, bound, lambda: pair, (found, Sheet("loss")))
    return {**found.values, "notes": notes_of(found)}


def lattice(source: Any, policy: Any = None, **request: Any) -> Lattice:
    """Return the generalization lattice of a table, to be looked at node by node; its optimum is found."""
    from kinfold.methods.generalize.lattice import METHOD
    from kinfold.methods.planning.generalizing import lattice_of

    with _task_of(source, requested(policy, request), METHOD.name) as task:
        return lattice_of(task)


def outliers(source: Any, policy: Any = None, **request: Any) -> Standing:
    """Say where mu-Argus stands after the choices of the policy, and where one choice more would lead."""
    from kinfold.methods.generalize.mu_argus import METHOD
    from kinfold.methods.planning.generalizing import standing_of

    with _task_of(source, requested(policy, request), METHOD.name) as task:
        return standing_of(task)


@contextmanager
def _task_of(source: Any, asked: Policy, method: str) -> Iterator[Task]:
    """Hand out what a method would be given, whatever method the policy names."""
    asked = asked.model_copy(update={"method": asked.method.model_copy(update={"name": method})})
    rows = rows_of(source)
    with open_engine(asked, rows) as engine:
        table = fit(engine, engine.read(rows, MISSING, asked.source.form), asked)[2]
        yield Task(table.policy, table.terms.models, table)


def fit(engine: Engine, original: Any, asked: Policy, index: Collection[str] = ()) -> tuple[Prepared, Schema, Table]:
    """Bind a policy to a table that is read already, or raise with everything that does not fit."""
    prepared = prepare(engine, original, asked, index)  # single values recoded, as the policy asks
    schema = engine.schema(prepared.frame)  # what each column is
    bound = bind(asked, schema, index=index)  # roles and kinds
    terms = terms_of(bound, engine, prepared.frame)  # what is promised
    return prepared, schema, Table(engine, prepared.frame, bound, terms, prepared.mapped)


def hierarchy(source: Any, policy: Any, column: str) -> Hierarchy:
    """Return the hierarchy of a column as a policy builds it over the values that the column holds."""
    asked = Policy.of(policy)
    with open_engine(asked, rows_of(source)) as engine:
        original = prepare(engine, engine.read(rows_of(source), MISSING, asked.source.form), asked).frame
        bound = bind(asked, engine.schema(original))
        if column not in asked.columns or asked.columns[column].hierarchy is None:
            raise PolicyError(f"the policy has no hierarchy for a column '{column}'", fix="add one to [columns]")
        wanted = replace(bound[column], average="generalize")  # also where the method would average it
        found = encode(engine, original, [wanted])[0].hierarchy
    assert found is not None  # noqa: S101  the policy has one
    return found


@listing(sections=("source",))
def profile(source: Any, *, progress: Stage | None = None, **written: Any) -> Profile:
    """Say what each column of a table is and which combinations single people out: a `Profile`.

    How the table is written is found out; `na`, `decimal`, `thousands`, `dates`, `encoding`, `separator`, `sheet`,
    `header` and `skip` say it instead, as the keys of `[source]` do.
    """
    from kinfold.profiling.profile import profile as look

    require_callable("progress", progress)
    tell = progress or _unheard
    said = {f"source.{key}": f"{key}=" for key in written}
    declared = Policy.parse({"privacy": {"k": 2}, "source": written}, options=said).source.form
    with looked_at(source, declared) as (engine, frame, told):
        found = look(engine, frame, lambda done, total: tell("combinations", done, total))
        return replace(found, source=engine.form(frame).to_dict(), readings=told)


@contextmanager
def looked_at(source: Any, declared: Form, *, guessing: bool = True) -> Iterator[tuple[Engine, Any, tuple[str, ...]]]:
    """Read a table as it is declared or seems to be written; hand out the engine, its frame, and what was guessed."""
    from kinfold.profiling.source_guess import guess, readings

    rows = rows_of(source)
    with open_engine(None, rows) as engine:
        first = frame = engine.read(rows, MISSING, declared)
        guessed = guess(engine.schema(first), declared) if guessing else declared
        if guessed != declared:
            frame = engine.read(rows, MISSING, guessed)
        yield engine, frame, readings(engine.schema(first), engine.schema(frame), declared, guessed)


def released_terms(policy: Policy, engine: Engine, frame: Any) -> Terms:
    """Return the terms of a table that is already released: identifiers are gone, quasi-identifiers may be labels."""
    from kinfold.request.terms import terms_of_release

    return terms_of_release(policy, engine, frame)


def open_engine(policy: Policy | None = None, *sources: Any) -> Any:
    """Start the engine that a policy names, with room for the rows of sources; a table of Spark comes first."""
    from kinfold.rows.engines import clusters
    from kinfold.rows.engines.duckdb import DuckDB
    from kinfold.rows.resources import Resources

    limits = Resources() if policy is None else policy.engine.resources
    first = sources[0] if sources else None
    if frames.is_spark(first) or (policy is not None and policy.engine.name == "spark"):
        return clusters.opened(first, None if policy is None else policy.engine.master, limits)
    return DuckDB(limits.of(*sources))


def load_kernels() -> list[str]:
    """Load the kernels that most releases need, where they are compiled for this machine; return those that are not."""
    from kinfold import kernels
    from kinfold.methods.planning.warming import kernels_of

    needed = [*dict.fromkeys(kernels_of())]
    for name in filter(kernels.ready, needed):
        kernels.load(name)
    return [name for name in needed if not kernels.ready(name)]


def compile_kernels(progress: Progress) -> None:
    """Compile the kernels that most releases need, so that no run has to."""
    from kinfold import kernels
    from kinfold.methods.planning.warming import kernels_of

    kernels.warmup(progress, kernels_of())


def is_compiling() -> bool:
    """Whether a run waits for the compiler now."""
    from kinfold import kernels

    return kernels.is_compiling()


def snapshot_of(source: Any) -> Any:
    """Return a frame in memory as a private copy; a path or an address, and a frame of Spark, which cannot change."""
    source = _named(source)
    if isinstance(source, Path | DatabaseAddress) or frames.is_spark(source) or not frames.is_frame(source):
        return source
    return frames.Snapshot.of(source)


def rows_of(source: Any) -> Any:
    """Return what an engine reads: a path, the address of rows in a database, or a frame's rows as Arrow."""
    if isinstance(source, str | Path):
        return located(source)
    if isinstance(source, DatabaseAddress) or frames.is_spark(source):
        return source
    if isinstance(source, frames.Snapshot):
        return source.to_arrow()
    if not frames.is_frame(source):
        if frames.is_lazy(source):
            what = f"the {type(source).__name__} is lazy: its rows are not there yet"
            raise PolicyError(what, fix="collect it first: frame.collect()")
        raise PolicyError(
            f"{type(source).__name__} is not a table",
            fix="give a path, or a pandas, polars, pyarrow or Spark table",
        )
    return frames.to_arrow(source)


def _named(source: Any) -> Any:
    return located(source) if isinstance(source, str) else source


def _unheard(stage: str, done: int, total: int) -> None:
    """Listen to nothing."""
