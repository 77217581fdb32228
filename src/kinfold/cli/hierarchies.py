"""The commands about generalization: `lattice`, `hierarchy`, and `convert` for what other tools know."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kinfold.cli import output
from kinfold.cli.arguments import Data, Json, PolicyFile, Settings, SourceOptions
from kinfold.cli.options import policy_from
from kinfold.cli.source_options import reads
from kinfold.cli.terminal import errors, out, print_json
from kinfold.disk.exchange import naming
from kinfold.errors import PolicyError, plural


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


def convert(
    project: Annotated[
        Path, typer.Argument(help="Of ARX (.deid), µ-ANT (.xml) or sdcMicro (report or script).", show_default=False)
    ],
    out_: Annotated[Path, typer.Option("--out", help="New folder for policy and data.", show_default=False)],
    json: Json = False,
) -> None:
    """Turn what ARX, µ-ANT or sdcMicro know of a table into a policy, and say what could not be carried over.

    Example: `kinfold convert study.deid --out study`
    """
    from kinfold.interchange import converted

    with errors():
        made = converted(project)
        made.write(out_)
        if json:
            print_json({"folder": str(out_), "hierarchies": list(made.hierarchies), "notes": list(made.notes)})
        else:
            output.tell_conversion(made, out_)


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
