"""The commands, one after the other as `kinfold --help` lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from kinfold.cli.hierarchies import convert, hierarchy, lattice
from kinfold.cli.measuring import compare, measure
from kinfold.cli.on_this_machine import studio, warmup
from kinfold.cli.policies import schema, template
from kinfold.cli.releasing import anonymize, verify
from kinfold.cli.reproducing import reproduce
from kinfold.cli.starting import demo, profile
from kinfold.cli.terminal import out
from kinfold.cli.terminal_escapes import Commands

COMMANDS = (
    *(demo, profile, anonymize, verify, measure, compare),
    *(lattice, convert, hierarchy, template, schema, reproduce, studio, warmup),
)

app = typer.Typer(
    cls=Commands,
    help="Release data about people: k-anonymous, verified on the file that leaves, with what was lost measured.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in COMMANDS:
    app.command()(command)


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
