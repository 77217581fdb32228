"""The commands about this machine: `studio` serves pages on it, `warmup` compiles for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfold.cli.terminal import Bar, errors, out
from kinfold.errors import PolicyError, install_extra
from kinfold.request.methods import AUTO


def studio(
    data: Annotated[Path | None, typer.Argument(help="A table to begin with.", show_default=False)] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port; any free one.", show_default=False)] = None,
    workspace: Annotated[
        Path | None, typer.Option(help="Folder to save releases in; this one.", show_default=False)
    ] = None,
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
            raise PolicyError(what, fix=install_extra("studio", "install them")) from None
        serve(data, port, lambda line: out.print(line, soft_wrap=True), browser=browser, workspace=workspace)


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
