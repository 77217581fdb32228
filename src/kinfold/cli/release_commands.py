"""The commands that make and judge releases: `anonymize`, `verify`, `measure`, `compare` and `diff`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfold.cli import options, output
from kinfold.cli.terminal import ProgressBar, ask_for_attribute, print_json, report_errors
from kinfold.errors import DataError, PolicyError, Unreachable, VerifyError

if TYPE_CHECKING:
    from kinfold.policy.model import Policy


PRIVACY_OPTIONS = {  # keys that the measures depend on
    key: options.KEY_OPTIONS[key] for key in ("privacy.k", "privacy.t", "privacy.l", "output.others")
}


@options.add_options(roles=options.ROLE_OPTIONS, keys=options.KEY_OPTIONS)
def anonymize(
    data: options.Data,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Folder of the release; not needed with --dry-run.", show_default=False)
    ] = None,
    policy: options.PolicyFile = None,
    settings: options.Settings = None,
    answers: options.Answers = None,
    accept_proposal: options.AcceptProposal = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release.")] = False,
    into: options.IntoTable = None,
    ask: Annotated[bool, typer.Option("--ask", help="mu-argus: ask which attribute to generalize next.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a stopped run of a table that is cut into blocks.")
    ] = False,
    after: options.After = None,
    dry_run: options.DryRun = False,
    show_values: options.ShowValues = False,
    json: options.Json = False,
    *,
    roles: options.OptionValues,
    keys: options.OptionValues,
    source: options.OptionValues,
) -> None:
    """Make a verified release of a table. Nothing is written unless it passes verification.

    Examples:
    `kinfold anonymize patients.csv --policy policy.toml --out release`

    `kinfold anonymize patients.csv --quasi age,sex,zip --confidential disease -k 5 --others drop --out release`

    `kinfold anonymize 'sqlite:///clinic.db?table=patients' --policy policy.toml --out release
    --into 'sqlite:///research.db?table=patients'`

    `kinfold anonymize patients.csv --policy policy.toml --dry-run`
    """
    from kinfold.disk.checkpoints import CheckpointFolder
    from kinfold.pipeline import anonymize as run
    from kinfold.release.publication import check_target_folder
    from kinfold.tables.databases.address import parse_table_address
    from kinfold.tables.databases.transfer import check_target

    with report_errors(show_values=show_values), ProgressBar() as bar:
        order = {"output.order": "kept" if keys["output.order"] else None}
        request = options.build_policy(policy, roles, {**keys, **order, **source}, settings)
        request = request.answer(options.parse_answers(answers), accept_proposal=accept_proposal)
        request.review.require_answers()
        if out_ is not None:
            check_target_folder(out_, force=force)
        elif not dry_run:
            fix = "add --out DIR, or --dry-run to see what a release would cost"
            raise PolicyError("the release has no folder", fix=fix)
        table = parse_table_address(into) if into is not None else None
        if table is not None:
            check_target(table, force=force)
        if dry_run and after:
            what = "--dry-run cannot say what a release after earlier ones costs: their classes are not of the sample"
            raise PolicyError(what, fix="leave out --after, or --dry-run")
        if out_ is None or dry_run:
            _advise(data, request, bar, json=json)
            return
        final = (DataError, Unreachable, VerifyError)  # after these a run has nothing to resume
        with CheckpointFolder(out_, resume=resume, final=final) as saved:
            release = run(
                data, request, progress=bar, ask=ask_for_attribute if ask else None, saved=saved, after=after or ()
            )
            release.save(out_, force=force, into=table, progress=bar)
        bar.end()
        if json:
            summary = output.summarize(release, show_values=show_values)
            print_json({**summary, "folder": str(out_)} | ({"table": str(table)} if table else {}))
        else:
            output.print_release(release, out_, table, show_values=show_values)


def _advise(data: Any, request: Policy, bar: ProgressBar, *, json: bool) -> None:
    """Print what a release would cost."""
    from kinfold.comparison.advice import advise

    advice = advise(data, request, partial(bar, "trying"))
    bar.end()
    if json:
        print_json(advice.to_dict())
    else:
        output.print_advice(advice)


@options.add_options()
def verify(
    data: Annotated[options.TableSource, options.make_table_argument("Folder of a release, or a table with --policy.")],
    policy: options.PolicyFile = None,
    settings: options.Settings = None,
    twice: Annotated[bool, typer.Option("--twice", help="Also run the second checker, in plain Python.")] = False,
    rows_only: options.RowsOnly = False,
    require_people: options.RequirePeople = False,
    with_: options.With = None,
    json: options.Json = False,
    *,
    source: options.OptionValues,
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
    required = options.build_recipient_policy(data, policy, source, settings)
    verdict = check(
        data, required, rows_only=rows_only, require_people=require_people, twice=twice, together_with=with_ or ()
    )
    if json:
        print_json(verdict.to_dict())
    else:
        output.print_verdict(verdict)
    verdict.require()


@options.add_options(roles=options.ROLE_OPTIONS, keys=PRIVACY_OPTIONS, measure_options=options.MEASURE_OPTIONS)
def measure(
    original: Annotated[options.TableSource, options.make_table_argument("The original table.")],
    released: Annotated[options.TableSource, options.make_table_argument("The released table.")],
    policy: options.PolicyFile = None,
    settings: options.Settings = None,
    show_values: options.ShowValues = False,
    json: options.Json = False,
    *,
    roles: options.OptionValues,
    keys: options.OptionValues,
    measure_options: options.OptionValues,
    source: options.OptionValues,
) -> None:
    """Measure a release against its original: information lost, remaining risk, usefulness for analysis.

    Examples:
    `kinfold measure patients.csv release/public/release.csv --policy policy.toml`

    `kinfold measure patients.csv released.csv --quasi age,sex,zip --confidential disease -k 5 --others drop`

    `kinfold measure patients.csv released.csv --policy policy.toml --population city.csv --threshold 0.1`
    """
    from kinfold.pipeline import measure as run

    request = _build_policy_of_columns(policy, roles, {**keys, **source}, settings)
    given = {name: value for name, value in measure_options.items() if value is not None}
    measures = run(original, released, request, **given)
    if json:
        values = measures.to_dict(show_values=show_values)
        print_json({**values, "statistics": measures.statistics.to_dict()})
    else:
        output.print_measures(measures, show_values=show_values)


@options.add_options(roles=options.ROLE_OPTIONS, keys={"output.others": options.KEY_OPTIONS["output.others"]})
def compare(
    data: options.Data,
    out_: Annotated[Path, typer.Option("--out", help="Folder of the comparison.", show_default=False)],
    methods: Annotated[str, typer.Option(help="Methods, comma-separated.")] = "auto,mdav,v-mdav",
    k: Annotated[str, typer.Option("--k", help="Values of k, comma-separated.")] = "3,5,10",
    t: Annotated[str | None, typer.Option("--t", help="Values of t, comma-separated.", show_default=False)] = None,
    policy: options.PolicyFile = None,
    risk: options.RiskMeasure = None,
    loss: options.LossMeasure = None,
    weight: Annotated[
        float, typer.Option(help="Weight of the risk in the score, 0 to 1; the loss has the rest.")
    ] = 0.5,
    settings: options.Settings = None,
    json: options.Json = False,
    *,
    roles: options.OptionValues,
    keys: options.OptionValues,
    source: options.OptionValues,
) -> None:
    """Run several methods and settings and recommend one. A stopped comparison continues when it is run again.

    Example: `kinfold compare patients.csv --policy policy.toml --methods mdav,v-mdav --k 3,5,10 --out comparison`
    """
    from kinfold import comparison

    with ProgressBar() as bar:
        comparison.check_measures(risk, loss, weight)
        ks, ts = options.parse_numbers(k, int, "--k"), options.parse_numbers(t, float, "--t")
        grid = comparison.build_grid(methods.split(","), ks, ts)
        request = _build_policy_of_columns(policy, roles, {"privacy.k": grid[0].k, **keys, **source}, settings)
        outcomes = comparison.run_grid(data, request, grid, out_ / "runs", partial(bar, "comparing"))
        ranking = comparison.rank(outcomes, risk, loss, weight)
        comparison.save(ranking, out_)
        bar.end()
        if json:
            print_json(ranking.to_dict())
        else:
            output.print_comparison(ranking, out_)


def diff(
    a: Annotated[Path, typer.Argument(help="Folder of a release, or a policy file.", show_default=False)],
    b: Annotated[Path, typer.Argument(help="Another one of the same kind.", show_default=False)],
    every: Annotated[bool, typer.Option("--all", help="Also list what is the same.")] = False,
    json: options.Json = False,
) -> None:
    """Show two releases or two policies side by side: columns, promises, risk and loss.

    Examples:
    `kinfold diff release release/public`

    `kinfold diff policy.toml release/internal/policy.toml`
    """
    from kinfold.comparison.difference import diff as compare_two

    difference = compare_two(a, b)
    if json:
        print_json(difference.to_dict())
    else:
        output.print_difference(difference, every=every)


def _build_policy_of_columns(
    policy: Path | None, roles: options.OptionValues, keys: options.OptionValues, settings: list[str] | None
) -> Policy:
    """Return the policy of a file, of roles on the command line, or of both; refuse if neither is given."""
    if policy is None and not any(roles.values()):
        fix = "add --policy FILE, or name columns: --quasi a,b --confidential c"
        raise PolicyError("no columns are named as quasi-identifiers", fix=fix)
    return options.build_policy(policy, roles, keys, settings)
