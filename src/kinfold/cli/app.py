"""The commands, one after the other as `kinfold --help` lists them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfold.cli import output
from kinfold.cli.escapes import Commands
from kinfold.cli.options import numbers, policy_from, verifying
from kinfold.cli.reproducing import reproduce
from kinfold.cli.source_options import TableSource, as_named, keywords, reads
from kinfold.cli.terminal import Bar, asking, errors, out, print_json
from kinfold.disk.exchange import naming
from kinfold.errors import DataError, PolicyError, Unreachable, VerifyError, plural
from kinfold.request.methods import AUTO, names

if TYPE_CHECKING:
    from kinfold.profiling.profile import Profile
    from kinfold.rows.databases.address import DatabaseAddress

app = typer.Typer(
    cls=Commands,
    help="Release data about people: k-anonymous, verified on the file that leaves, with the least information lost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

METHODS = ", ".join(names()) + "."


def _table(help_: str) -> Any:
    return typer.Argument(parser=as_named, help=help_, show_default=False)


Data = Annotated[TableSource, _table("CSV, Parquet, JSON, Excel, Stata, SPSS or SAS; or postgresql://… or sqlite:///…")]
SourceOptions = Mapping[str, Any]  # by `reads`
PolicyFile = Annotated[Path | None, typer.Option("--policy", help="Policy file (TOML).", show_default=False)]
Quasi = Annotated[str | None, typer.Option(help="Columns that somebody else may know: a,b,c", show_default=False)]
Confidential = Annotated[str | None, typer.Option(help="Columns to protect from inference.", show_default=False)]
Identifier = Annotated[str | None, typer.Option(help="Columns to remove.", show_default=False)]
K = Annotated[int | None, typer.Option("-k", help="Records that share each combination, at least.", show_default=False)]
T = Annotated[float | None, typer.Option("-t", help="Closeness of each confidential column.", show_default=False)]
L = Annotated[float | None, typer.Option("-l", help="Diversity of each confidential column.", show_default=False)]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Any key of the policy: method.refine=5", show_default=False)
]
Others = Annotated[str | None, typer.Option(help="Columns nobody named: refuse, release or drop.", show_default=False)]
Values = Annotated[bool, typer.Option("--show-values", help="Show the offending categories in error messages.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        from kinfold import __version__

        out.print(f"kinfold {__version__}")
        raise typer.Exit


@app.callback()
def kinfold(
    _: Annotated[bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Hold the commands together."""


@app.command()
def demo(out_: Annotated[Path, typer.Option("--out", help="Folder; made again each time.")] = Path("demo")) -> None:
    """Make a small table and take it the whole way.

    Example: `kinfold demo --out demo`
    """
    from kinfold.demo import show

    with errors(), Bar() as bar:
        release = show(out_, bar)
        bar.end()
        output.tell_release(release, out_ / "release")
        out.print(f"  the table was  {out_ / 'patients.csv'}, the policy {out_ / 'policy.toml'}", soft_wrap=True)


@app.command()
@reads
def profile(
    data: Data,
    write_policy: Annotated[Path | None, typer.Option(help="Write a starter policy.", show_default=False)] = None,
    force: Annotated[bool, typer.Option(help="Replace an existing policy file.")] = False,
    json: Json = False,
    *,
    source: SourceOptions,
) -> None:
    """Say what each column is and which combinations single people out.

    Example: `kinfold profile patients.csv --write-policy policy.toml`
    """
    from kinfold.flow import profile as look

    with errors(), Bar() as bar:
        if write_policy and write_policy.exists() and not force:
            raise PolicyError(f"'{write_policy}' exists already", fix="replace it with --force, or name another file")
        policy_from(None, {}, {"privacy.k": 2, **source}, ())  # what is wrong with an option is told by its name
        found = look(data, progress=bar, **keywords(source))
        if write_policy:
            _write_policy(write_policy, found, force)
        bar.end()
        if json:
            print_json(found.to_dict())
            return
        output.tell_profile(found)
        if write_policy:
            then = f"kinfold anonymize {_typed(data)} --policy {write_policy} --out DIR"
            out.print()
            out.print(f"written: {write_policy}; check it, then: {then}", soft_wrap=True)


@app.command()
@reads
def anonymize(
    data: Data,
    out_: Annotated[Path, typer.Option("--out", help="Folder of the release.", show_default=False)],
    policy: PolicyFile = None,
    quasi: Quasi = None,
    confidential: Confidential = None,
    identifier: Identifier = None,
    k: K = None,
    t: T = None,
    l: L = None,
    method: Annotated[str | None, typer.Option(help=METHODS, show_default=False)] = None,
    settings: Settings = None,
    others: Others = None,
    keep_order: Annotated[bool, typer.Option("--keep-order", help="Do not sort the released rows.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release.")] = False,
    format_: Annotated[str | None, typer.Option("--format", help="csv or parquet.", show_default=False)] = None,
    engine: Annotated[str | None, typer.Option(help="Where rows live: duckdb.", show_default=False)] = None,
    memory: Annotated[str | None, typer.Option(help="Memory for the run: 4GB.", show_default=False)] = None,
    spill: Annotated[Path | None, typer.Option(help="Folder for what memory cannot hold.", show_default=False)] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of the engine.", show_default=False)] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the search.", show_default=False)] = None,
    into: Annotated[
        str | None, typer.Option(help="Table of a database to write the release to as well.", show_default=False)
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="mu-argus: ask for the data holder's choices.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a run in blocks was stopped.")] = False,
    show_values: Values = False,
    json: Json = False,
    *,
    source: SourceOptions,
) -> None:
    """Turn a table into a verified release. Nothing is written unless it passes verification.

    Examples:
    `kinfold anonymize patients.csv --policy policy.toml --out release`

    `kinfold anonymize patients.csv --quasi age,sex,zip --confidential disease -k 5 --others drop --out release`

    `kinfold anonymize 'sqlite:///clinic.db?table=patients' --policy policy.toml --out release
    --into 'sqlite:///research.db?table=patients'`
    """
    from kinfold.disk.saved_work import SavedWork
    from kinfold.flow import anonymize as run
    from kinfold.release.publication import check_place

    keys = {
        "privacy.k": k,
        "privacy.t": t,
        "privacy.l": l,
        "method.name": method,
        "method.seed": seed,
        "output.others": others,
        "output.order": "kept" if keep_order else None,
        "output.format": format_,
        "engine.name": engine,
        "engine.memory": memory,
        "engine.spill": spill,
        "engine.threads": threads,
    }
    with errors(show_values=show_values), Bar() as bar:
        roles = {"quasi-identifier": quasi, "confidential": confidential, "identifier": identifier}
        asked = policy_from(policy, roles, {**keys, **source}, settings or ())
        check_place(out_, force=force)
        table = _free_table(into, force)
        with SavedWork(out_, resume=resume, final=(DataError, Unreachable, VerifyError)) as saved:
            release = run(data, asked, progress=bar, ask=asking if ask else None, saved=saved)
            release.save(out_, force=force, into=table, progress=bar)
        bar.end()
        if json:
            print_json({**output.summary(release), "folder": str(out_)} | ({"table": str(table)} if table else {}))
        else:
            output.tell_release(release, out_, table)


@app.command()
@reads
def verify(
    data: Annotated[TableSource, _table("Folder of a release, or a table with --policy.")],
    policy: PolicyFile = None,
    settings: Settings = None,
    twice: Annotated[bool, typer.Option("--twice", help="Ask the second checker, in plain Python, too.")] = False,
    rows_only: Annotated[
        bool, typer.Option("--rows-only", help="Leave aside what is promised of people with several rows.")
    ] = False,
    json: Json = False,
    *,
    source: SourceOptions,
) -> None:
    """Check a release from its public folder alone, or any table against a policy. Exit code 0 only if all holds.

    A folder is judged by its certificate, and by --policy or --set as well, where a recipient asks for more.

    Examples:
    `kinfold verify release/public`

    `kinfold verify release/public --set privacy.l=2`
    """
    from kinfold.flow import verify as check

    with errors():
        if isinstance(data, Path) and not data.exists():
            raise DataError(f"no such file or folder: '{data}'", fix="check the path")
        if not (isinstance(data, Path) and data.is_dir()) and policy is None:
            raise PolicyError("a table is verified against a policy", fix="add --policy FILE, or name a release folder")
        asked = verifying(data, policy, source, settings or ())
        verdict = check(data, asked, rows_only=rows_only, twice=twice)
        if json:
            print_json(verdict.to_dict())
        else:
            output.tell_verdict(verdict)
        verdict.require()


@app.command()
@reads
def measure(
    original: Annotated[TableSource, _table("The table as it was.")],
    released: Annotated[TableSource, _table("The table as released.")],
    policy: PolicyFile = None,
    measures: Annotated[
        str | None, typer.Option(help="standard, or all of them; as the policy says.", show_default=False)
    ] = None,
    columns: Annotated[str, typer.Option(help="Measure loss over: quasi or all.")] = "quasi",
    weights: Annotated[str, typer.Option(help="Weights of the weighted risk: k, or a CSV matrix.")] = "k",
    population: Annotated[
        TableSource | None,
        typer.Option(parser=as_named, help="Table of the people the records were drawn from.", show_default=False),
    ] = None,
    sampling_weights: Annotated[
        str | None, typer.Option(help="Column: how many people a record stands for.", show_default=False)
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Give the share of records with a risk above this.", show_default=False)
    ] = None,
    linkage_subsets: Annotated[
        bool, typer.Option("--linkage-subsets", help="Attack the most telling quasi-identifiers too.")
    ] = False,
    linkage_untouched: Annotated[
        bool, typer.Option("--linkage-untouched", help="Attack with the columns released untouched too.")
    ] = False,
    task: Annotated[
        str | None, typer.Option(help="regression:COLUMN or classification:COLUMN.", show_default=False)
    ] = None,
    settings: Settings = None,
    json: Json = False,
    *,
    source: SourceOptions,
) -> None:
    """Compare a release with its original: what was lost, what is still at risk, what the data is still good for.

    Examples:
    `kinfold measure patients.csv release/public/release.csv --policy policy.toml`

    `kinfold measure patients.csv released.csv --policy policy.toml --population city.csv --threshold 0.1`
    """
    from kinfold.flow import measure as compare

    questions = {
        "measures": measures,
        "columns": columns,
        "weights": weights,
        "population": population,
        "sampling_weights": sampling_weights,
        "threshold": threshold,
        "linkage_subsets": linkage_subsets,
        "linkage_untouched": linkage_untouched,
        "task": task,
    }
    with errors():
        if policy is None:
            raise PolicyError("what to measure is in the policy", fix="add --policy FILE")
        asked = policy_from(policy, {}, source, settings or ())
        found = compare(original, released, asked, **questions)
        if json:
            print_json({**found.to_dict(), "statistics": found.statistics.to_dict()})
        else:
            output.tell_measures(found)


@app.command()
@reads
def compare(
    data: Data,
    out_: Annotated[Path, typer.Option("--out", help="Folder of the comparison.", show_default=False)],
    methods: Annotated[str, typer.Option(help="Methods, comma-separated.")] = "mdav,v-mdav",
    k: Annotated[str, typer.Option("--k", help="Values of k, comma-separated.")] = "3,5,10",
    t: Annotated[str | None, typer.Option("--t", help="Values of t, comma-separated.", show_default=False)] = None,
    policy: PolicyFile = None,
    risk: Annotated[
        str | None, typer.Option(help="The risk to compare by; the first that applies.", show_default=False)
    ] = None,
    loss: Annotated[
        str | None, typer.Option(help="The loss to compare by; the first that applies.", show_default=False)
    ] = None,
    weight: Annotated[float, typer.Option(help="Weight of the risk in the score; the loss has the rest.")] = 0.5,
    settings: Settings = None,
    json: Json = False,
    *,
    source: SourceOptions,
) -> None:
    """Run methods side by side and say which setting to take. A comparison that was stopped goes on where it was.

    Example: `kinfold compare patients.csv --policy policy.toml --methods mdav,v-mdav --k 3,5,10 --out comparison`
    """
    from kinfold import comparison

    with errors(), Bar() as bar:
        if policy is None:
            raise PolicyError("what to compare is in the policy", fix="add --policy FILE")
        comparison.check_measures(risk, loss, weight)
        grid = comparison.settings(methods.split(","), numbers(k, int, "--k"), numbers(t, float, "--t"))
        asked = policy_from(policy, {}, {"privacy.k": grid[0].k, **source}, settings or ())
        outcomes = comparison.run(data, asked, grid, out_ / "runs", lambda done, total: bar("comparing", done, total))
        found = comparison.rank(outcomes, risk, loss, weight)
        comparison.save(found, out_)
        bar.end()
        if json:
            print_json(found.to_dict())
        else:
            output.tell_comparison(found, out_)


@app.command()
@reads
def lattice(
    data: Data, policy: PolicyFile = None, settings: Settings = None, json: Json = False, *, source: SourceOptions
) -> None:
    """Look at the generalization lattice: the optimum and the minimal generalizations; with --json every node.

    Example: `kinfold lattice patients.csv --policy policy.toml`
    """
    from kinfold.flow import lattice as look

    with errors():
        if policy is None:
            raise PolicyError("what to generalize is in the policy", fix="add --policy FILE")
        found = look(data, policy_from(policy, {}, source, settings or ()))
        if json:
            print_json(found.to_dict())
        else:
            output.tell_lattice(found)


@app.command()
def convert(
    project: Annotated[Path, typer.Argument(help="Project of ARX (.deid).", show_default=False)],
    out_: Annotated[Path, typer.Option("--out", help="New folder for data and policy.", show_default=False)],
    json: Json = False,
) -> None:
    """Turn a project of ARX into data, a policy and hierarchies, and say what could not be carried over.

    Example: `kinfold convert study.deid --out study`
    """
    from kinfold.interchange import convert as carry_over
    from kinfold.interchange import read_deid

    with errors():
        made = carry_over(read_deid(project))
        made.write(out_)
        if json:
            print_json({"folder": str(out_), "hierarchies": list(made.hierarchies), "notes": list(made.notes)})
        else:
            output.tell_conversion(made, out_)


@app.command()
@reads
def hierarchy(
    data: Data,
    column: Annotated[str, typer.Option(help="Column of the table.", show_default=False)],
    out_: Annotated[Path, typer.Option("--out", help="CSV file to write.", show_default=False)],
    policy: PolicyFile = None,
    settings: Settings = None,
    *,
    source: SourceOptions,
) -> None:
    """Write the hierarchy of a column as the policy builds it, in the CSV form that ARX reads.

    Example: `kinfold hierarchy patients.csv --policy policy.toml --column zip --out zip.csv`
    """
    from kinfold.flow import hierarchy as build
    from kinfold.hierarchy import write_arx

    with errors():
        if policy is None:
            raise PolicyError("how values are generalized is in the policy", fix="add --policy FILE")
        if out_.exists():
            raise PolicyError(f"'{out_}' exists already", fix="name another file")
        found = build(data, policy_from(policy, {}, source, settings or ()), column)
        try:
            with naming(out_, f"'{out_}' is written"):
                write_arx(found, out_)
        except OSError as error:
            raise PolicyError(f"cannot write '{out_}': {error.strerror}", fix="choose another place") from error
        levels = plural(found.height, "level")
        out.print(f"{plural(len(found), 'value')}, {levels} above: {out_}", soft_wrap=True)


app.command()(reproduce)


@app.command()
def studio(
    data: Annotated[Path | None, typer.Argument(help="A table to begin with.", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port; any free one.", show_default=False)] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Do the whole job in a browser, on this machine alone: look, generalize, protect, explore, release.

    Example: `kinfold studio patients.csv`
    """
    with errors():
        try:
            from kinfold.studio.serving import serve
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
                raise
            what = "the studio needs packages that are not installed"
            raise PolicyError(what, fix="pip install 'kinfold[studio]'") from None
        serve(data, port, lambda line: out.print(line, soft_wrap=True), browser=browser)


@app.command()
def warmup(
    everyday: Annotated[bool, typer.Option("--everyday", help="Only what a plain release needs.")] = False,
    method: Annotated[
        str | None, typer.Option(help="Only what a release by this method needs.", show_default=False)
    ] = None,
) -> None:
    """Compile the kernels now, so that no later run has to wait for it.

    Example: `kinfold warmup`
    """
    from kinfold.kernels import MODULES
    from kinfold.kernels import warmup as compiled
    from kinfold.methods.planning.warming import kernels_of

    with errors(), Bar() as bar:
        modules = kernels_of(method or AUTO) if method or everyday else MODULES
        compiled(lambda done, total: bar("compiling", done, total), modules)
        bar.end()
        out.print("the kernels are compiled")


def _free_table(into: str | None, force: bool) -> DatabaseAddress | None:
    """Return the address of the table to write, after making sure that it can be."""
    from kinfold.rows.databases.address import table_at
    from kinfold.rows.databases.target import check_target

    if into is None:
        return None
    address = table_at(into)
    check_target(address, force=force)
    return address


def _typed(data: TableSource) -> str:
    """Return the name of a table as it is typed into a shell: an address has signs of the shell's."""
    return str(data) if isinstance(data, Path) else shlex.quote(str(data))


def _write_policy(path: Path, found: Profile, force: bool) -> None:
    """Write a starter policy, and beside it the hierarchies that are too long to stand in it."""
    from kinfold.hierarchy import by_rows, write_arx
    from kinfold.profiling.starter_policy import hierarchy_files, starter

    folder = path.with_name(f"{path.stem}-hierarchies")
    files = {folder / file: rows for _, file, rows in hierarchy_files(found)}
    if not force and (there := [file for file in files if file.exists()]):
        raise PolicyError(f"'{there[0]}' exists already", fix="replace it with --force, or name another policy file")
    try:
        for file, rows in files.items():
            folder.mkdir(parents=True, exist_ok=True)
            with naming(file, f"'{file}' is written"):
                write_arx(by_rows(rows), file)
    except OSError as error:
        raise PolicyError(f"cannot write into '{folder}': {error.strerror}", fix="choose another place") from error
    _write(path, starter(found, folder=folder.name))


def _write(path: Path, text: str) -> None:
    try:
        with naming(path, f"'{path}' is written"):
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PolicyError(f"cannot write '{path}': {error.strerror}", fix="choose another place") from error
