"""The commands that make and judge releases: `anonymize`, `verify`, `measure` and `compare`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinfold.cli import output
from kinfold.cli.options import (
    KEY_OPTIONS,
    MEASURE_DEFAULTS,
    MEASURE_OPTIONS,
    ROLE_OPTIONS,
    AcceptProposal,
    Answers,
    Data,
    IntoTable,
    Json,
    LossMeasure,
    OptionGroup,
    OptionValues,
    PolicyFile,
    RequirePeople,
    RiskMeasure,
    RowsOnly,
    Settings,
    ShowValues,
    TableSource,
    add_options,
    build_policy,
    build_recipient_policy,
    make_table_argument,
    map_to_keys,
    map_to_roles,
    parse_answers,
    parse_numbers,
)
from kinfold.cli.terminal import ProgressBar, ask_for_attribute, print_json, report_errors
from kinfold.errors import DataError, PolicyError, Unreachable, VerifyError

if TYPE_CHECKING:
    from kinfold.policy.model import Policy


@dataclass(frozen=True)
class AnonymizeArguments:
    """Options of `anonymize` that are not keys of the policy."""

    policy: PolicyFile = None
    settings: Settings = None
    answers: Answers = None
    accept_proposal: AcceptProposal = False
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release.")] = False
    into: IntoTable = None
    ask: Annotated[bool, typer.Option("--ask", help="mu-argus: ask for the data holder's choices.")] = False
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run in blocks that was stopped.")] = False
    show_values: ShowValues = False
    json: Json = False


@add_options(
    how=OptionGroup.from_dataclass(AnonymizeArguments),
    roles=OptionGroup(ROLE_OPTIONS),
    keys=OptionGroup(KEY_OPTIONS, {"keep_order": False}),
)
def anonymize(
    data: Data,
    out_: Annotated[Path, typer.Option("--out", help="Folder of the release.", show_default=False)],
    *,
    how: AnonymizeArguments,
    roles: OptionValues,
    keys: OptionValues,
    source: OptionValues,
) -> None:
    """Make a verified release of a table. Nothing is written unless it passes verification.

    Examples:
    `kinfold anonymize patients.csv --policy policy.toml --out release`

    `kinfold anonymize patients.csv --quasi age,sex,zip --confidential disease -k 5 --others drop --out release`

    `kinfold anonymize 'sqlite:///clinic.db?table=patients' --policy policy.toml --out release
    --into 'sqlite:///research.db?table=patients'`
    """
    from kinfold.disk.checkpoints import CheckpointFolder
    from kinfold.pipeline import anonymize as run
    from kinfold.release.publication import check_target_folder
    from kinfold.tables.databases.address import parse_table_address
    from kinfold.tables.databases.transfer import check_target

    with report_errors(show_values=how.show_values), ProgressBar() as bar:
        request = build_policy(how.policy, map_to_roles(roles), {**map_to_keys(keys), **source}, how.settings)
        request = request.answer(parse_answers(how.answers), accept_proposal=how.accept_proposal)
        request.review.require_answers()
        check_target_folder(out_, force=how.force)
        table = parse_table_address(how.into) if how.into is not None else None
        if table is not None:
            check_target(table, force=how.force)
        final = (DataError, Unreachable, VerifyError)  # after these a run has nothing to resume
        with CheckpointFolder(out_, resume=how.resume, final=final) as saved:
            ask = ask_for_attribute if how.ask else None
            release = run(data, request, progress=bar, ask=ask, saved=saved)
            release.save(out_, force=how.force, into=table, progress=bar)
        bar.end()
        if how.json:
            summary = output.summarize(release, show_values=how.show_values)
            print_json({**summary, "folder": str(out_)} | ({"table": str(table)} if table else {}))
        else:
            output.print_release(release, out_, table, show_values=how.show_values)


@dataclass(frozen=True)
class VerifyArguments:
    """Options of `verify`."""

    twice: Annotated[bool, typer.Option("--twice", help="Also run the second checker, in plain Python.")] = False
    rows_only: RowsOnly = False
    require_people: RequirePeople = False
    json: Json = False


@add_options(how=OptionGroup.from_dataclass(VerifyArguments))
def verify(
    data: Annotated[TableSource, make_table_argument("Folder of a release, or a table with --policy.")],
    policy: PolicyFile = None,
    settings: Settings = None,
    *,
    how: VerifyArguments,
    source: OptionValues,
) -> None:
    """Check a release from its public folder, or any table against a policy. Exit code 0 only if every promise holds.

    A folder is checked against its certificate, and also against --policy or --set if a recipient requires more.

    Examples:
    `kinfold verify release/public`

    `kinfold verify release/public --set privacy.l=2`
    """
    from kinfold.pipeline import verify as check

    if isinstance(data, Path) and not data.exists():
        raise DataError(f"no such file or folder: '{data}'", fix="check the path")
    if not (isinstance(data, Path) and data.is_dir()) and policy is None:
        raise PolicyError("a table needs a policy to be verified", fix="add --policy FILE, or name a release folder")
    required = build_recipient_policy(data, policy, source, settings)
    people = {"rows_only": how.rows_only, "require_people": how.require_people}
    verdict = check(data, required, **people, twice=how.twice)
    if how.json:
        print_json(verdict.to_dict())
    else:
        output.print_verdict(verdict)
    verdict.require()


PRIVACY_OPTIONS = {name: KEY_OPTIONS[name] for name in ("k", "t", "l", "others")}  # keys that the measures depend on


@dataclass(frozen=True)
class MeasureArguments:
    """Options of `measure` that are neither keys of the policy nor arguments of `measure()`."""

    policy: PolicyFile = None
    settings: Settings = None
    show_values: ShowValues = False
    json: Json = False


@add_options(
    how=OptionGroup.from_dataclass(MeasureArguments),
    roles=OptionGroup(ROLE_OPTIONS),
    keys=OptionGroup(PRIVACY_OPTIONS),
    measure_options=OptionGroup(MEASURE_OPTIONS, MEASURE_DEFAULTS),
)
def measure(
    original: Annotated[TableSource, make_table_argument("The original table.")],
    released: Annotated[TableSource, make_table_argument("The released table.")],
    *,
    how: MeasureArguments,
    roles: OptionValues,
    keys: OptionValues,
    measure_options: OptionValues,
    source: OptionValues,
) -> None:
    """Measure a release against its original: information lost, remaining risk, usefulness for analysis.

    Examples:
    `kinfold measure patients.csv release/public/release.csv --policy policy.toml`

    `kinfold measure patients.csv released.csv --quasi age,sex,zip --confidential disease -k 5 --others drop`

    `kinfold measure patients.csv released.csv --policy policy.toml --population city.csv --threshold 0.1`
    """
    from kinfold.pipeline import measure as run

    request = _require_policy(how, roles, {**map_to_keys(keys), **source})
    measures = run(original, released, request, **measure_options)
    if how.json:
        values = measures.to_dict(show_values=how.show_values)
        print_json({**values, "statistics": measures.statistics.to_dict()})
    else:
        output.print_measures(measures, show_values=how.show_values)


@dataclass(frozen=True)
class CompareArguments:
    """Options of `compare` that are not keys of the policy."""

    methods: Annotated[str, typer.Option(help="Methods, comma-separated.")] = "auto,mdav,v-mdav"
    k: Annotated[str, typer.Option("--k", help="Values of k, comma-separated.")] = "3,5,10"
    t: Annotated[str | None, typer.Option("--t", help="Values of t, comma-separated.", show_default=False)] = None
    policy: PolicyFile = None
    risk: RiskMeasure = None
    loss: LossMeasure = None
    weight: Annotated[float, typer.Option(help="Weight of the risk in the score, 0 to 1; the loss has the rest.")] = 0.5
    settings: Settings = None
    json: Json = False


@add_options(
    how=OptionGroup.from_dataclass(CompareArguments),
    roles=OptionGroup(ROLE_OPTIONS),
    keys=OptionGroup({"others": KEY_OPTIONS["others"]}),
)
def compare(
    data: Data,
    out_: Annotated[Path, typer.Option("--out", help="Folder of the comparison.", show_default=False)],
    *,
    how: CompareArguments,
    roles: OptionValues,
    keys: OptionValues,
    source: OptionValues,
) -> None:
    """Run several methods and settings and recommend one. A stopped comparison continues when it is run again.

    Example: `kinfold compare patients.csv --policy policy.toml --methods mdav,v-mdav --k 3,5,10 --out comparison`
    """
    from kinfold import comparison

    with ProgressBar() as bar:
        comparison.check_measures(how.risk, how.loss, how.weight)
        grid = comparison.build_grid(
            how.methods.split(","), parse_numbers(how.k, int, "--k"), parse_numbers(how.t, float, "--t")
        )
        request = _require_policy(how, roles, {"privacy.k": grid[0].k, **map_to_keys(keys), **source})
        outcomes = comparison.run_grid(data, request, grid, out_ / "runs", partial(bar, "comparing"))
        ranking = comparison.rank(outcomes, how.risk, how.loss, how.weight)
        comparison.save(ranking, out_)
        bar.end()
        if how.json:
            print_json(ranking.to_dict())
        else:
            output.print_comparison(ranking, out_)


def _require_policy(how: MeasureArguments | CompareArguments, roles: OptionValues, keys: OptionValues) -> Policy:
    """Return the policy of a file, of roles on the command line, or of both."""
    if how.policy is None and not any(roles.values()):
        fix = "add --policy FILE, or name columns: --quasi a,b --confidential c"
        raise PolicyError("no columns are named as quasi-identifiers", fix=fix)
    return build_policy(how.policy, map_to_roles(roles), keys, how.settings)
