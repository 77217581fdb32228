"""The command `kinfold reproduce`: the papers on the terminal, as JSON, and as a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfold.cli.terminal import Bar, errors, print_json


def reproduce(
    paper: Annotated[str | None, typer.Option(help="One of them: 000 to 004.", show_default=False)] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the public files: census.csv, tarragona.csv, eia.csv.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out what takes longer than a few seconds.")] = False,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Write a page with the figures drawn anew (HTML).", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Compute what the five papers print: ours beside theirs. Exit code 1 if what should match does not.

    Examples:
    `kinfold reproduce --paper 003`

    `kinfold reproduce --quick --out papers.html`
    """
    from kinfold import reproduction
    from kinfold.cli import reproduction_tables

    with errors(), Bar() as bar:
        papers = (paper,) if paper else reproduction.PAPERS
        found = reproduction.reproduce(papers, data, quick, lambda done, total: bar("reproducing", done, total))
        if out_:
            from kinfold.reproduction.figures_page import save

            save(found, out_)
        bar.end()
        if json:
            print_json(found.to_dict())
        else:
            reproduction_tables.tell(found)
    if found.failed:
        raise typer.Exit(1)
