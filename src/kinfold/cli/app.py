"""The application: the list of commands, and the commands `studio`, `warmup` and `reproduce`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from kinfold.cli import output
from kinfold.cli.options import Json
from kinfold.cli.policy_commands import convert, demo, hierarchy, lattice, profile, schema, template
from kinfold.cli.release_commands import anonymize, compare, diff, measure, verify
from kinfold.cli.terminal import Command, CommandGroup, ProgressBar, out, print_json, report_errors
from kinfold.errors import PolicyError, explain_install
from kinfold.policy.registry import AUTO


def studio(
    data: Annotated[Path | None, typer.Argument(help="Table to open.", show_default=False)] = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port; default: any free one.", show_default=False)
    ] = None,
    workspace: Annotated[
        Path | None, typer.Option(help="Folder to save releases in; default: the current one.", show_default=False)
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Work in a browser, on this machine only: open, generalize, protect, explore, release.

    Example: `kinfold studio patients.csv`
    """
    try:
        from kinfold.studio.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn"):
            raise
        what = "the studio needs packages that are not installed"
        raise PolicyError(what, fix=explain_install("studio", "install them")) from None
    serve(data, port, lambda line: out.print(line), browser=browser, workspace=workspace)


def warmup(
    everyday: Annotated[bool, typer.Option("--everyday", help="Only the kernels of a simple release.")] = False,
    method: Annotated[str | None, typer.Option(help="Only the kernels of this method.", show_default=False)] = None,
) -> None:
    """Compile the kernels now, so that later runs do not wait for the compiler.

    Example: `kinfold warmup`
    """
    from kinfold.kernels import MODULES
    from kinfold.kernels import warmup as compile_kernels
    from kinfold.methods.plan import list_kernels

    with ProgressBar() as bar:
        modules = list_kernels(method or AUTO) if method or everyday else MODULES
        compile_kernels(partial(bar, "compiling"), modules)
        bar.end()
        out.print("the kernels are compiled")


def reproduce(
    paper: Annotated[str | None, typer.Option(help="One paper: 000 to 004.", show_default=False)] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the public data: census.csv, tarragona.csv, eia.csv.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Skip what takes more than a few seconds.")] = False,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Write an HTML page with the figures.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Compute the tables and figures of the five papers. Exit code 1 if a value that should match does not.

    Examples:
    `kinfold reproduce --paper 003`

    `kinfold reproduce --quick --out papers.html`
    """
    from kinfold import papers

    with ProgressBar() as bar:
        numbers = (paper,) if paper else papers.PAPERS
        result = papers.reproduce(numbers, data, quick, partial(bar, "reproducing"))
        if out_:
            papers.save_page(result, out_)
        bar.end()
        if json:
            print_json(result.to_dict())
        else:
            output.print_reproduction(result)
    if result.failed:
        raise typer.Exit(1)


COMMANDS = (  # in the order of `kinfold --help`
    *(demo, profile, anonymize, verify, measure, compare, diff),
    *(lattice, convert, hierarchy, template, schema, reproduce, studio, warmup),
)

app = typer.Typer(
    cls=CommandGroup,
    help="Anonymize data about people: k-anonymous releases, verified on the released file, with the loss measured.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in COMMANDS:
    app.command(cls=Command)(report_errors()(command))


def print_version(value: bool) -> None:
    """Print the version and stop."""
    if value:
        from kinfold import __version__

        out.print(f"kinfold {__version__}")
        raise typer.Exit


@app.callback()
def kinfold(
    _: Annotated[
        bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Add options that belong to no command."""
