"""The commands that lead to a policy: `demo`, `profile`, `template`, `schema`, `lattice`, `hierarchy` and `convert`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinfold.cli import output
from kinfold.cli.options import (
    Data,
    Json,
    OptionValues,
    RequiredPolicyFile,
    Settings,
    TableSource,
    add_options,
    build_policy,
    make_table_argument,
)
from kinfold.cli.terminal import ProgressBar, out, print_json
from kinfold.disk.folders import protect_rename
from kinfold.errors import PolicyError, plural, report_failed_write

if TYPE_CHECKING:
    from kinfold.profiling.profile import Profile
    from kinfold.profiling.starter_policy import PolicyWriter

OutputFile = Annotated[Path | None, typer.Option("--out", help="File to write; default: print it.", show_default=False)]
Force = Annotated[bool, typer.Option(help="Replace an existing file.")]
OptionalData = Annotated[TableSource | None, make_table_argument("Table to fit the policy to.")]


def demo(
    out_: Annotated[Path, typer.Option("--out", help="Folder to write; an older demo in it is replaced.")] = Path(
        "demo"
    ),
) -> None:
    """Make a small table and a release of it.

    Example: `kinfold demo --out demo`
    """
    from kinfold.demo import run_demo

    with ProgressBar() as bar:
        release = run_demo(out_, bar)
        bar.end()
        output.print_release(release, out_ / "release")
        out.print(f"  table: {out_ / 'patients.csv'}, policy: {out_ / 'policy.toml'}")


@add_options()
def profile(
    data: Data,
    write_policy: Annotated[Path | None, typer.Option(help="Write a starter policy.", show_default=False)] = None,
    force: Annotated[bool, typer.Option(help="Replace an existing policy file.")] = False,
    json: Json = False,
    *,
    source: OptionValues,
) -> None:
    """Describe each column, and list the combinations of columns that single people out.

    Example: `kinfold profile patients.csv --write-policy policy.toml`
    """
    from kinfold.profiling.starter_policy import write_starter_policy

    with ProgressBar() as bar:
        _refuse_existing(write_policy, force)
        result = _profile_table(data, source, bar)
        if write_policy:
            _save_policy(write_policy, result, lambda folder: write_starter_policy(result, folder=folder), force)
        bar.end()
        if json:
            print_json(result.to_dict())
            return
        output.print_profile(result)
        if write_policy:
            out.print()
            _print_next_step(write_policy, data)


@add_options()
def template(
    name: Annotated[str | None, typer.Argument(help="hipaa, gdpr, ...; lists all if left out.")] = None,
    data: OptionalData = None,
    out_: OutputFile = None,
    force: Force = False,
    *,
    source: OptionValues,
) -> None:
    """Write a policy that follows a regulation or guideline, fitted to a table. This is not legal advice.

    Example: `kinfold template hipaa patients.csv --out hipaa.toml`
    """
    from kinfold.profiling.frameworks import fit_framework, get_framework, load_frameworks, write_skeleton

    with ProgressBar() as bar:
        if name is None:
            for each in load_frameworks().values():
                out.print(f"{each.name:14}{each.summary}")
            return
        framework = get_framework(name)
        if data is None:
            _print_or_write(out_, write_skeleton(framework), force)
            return
        result = _profile_table(data, source, bar)
        bar.end()
        if out_ is None:
            sys.stdout.write(fit_framework(framework, result))
            return
        _save_policy(out_, result, lambda folder: fit_framework(framework, result, folder), force)
        _print_next_step(out_, data)


def schema(out_: OutputFile = None, force: Force = False) -> None:
    """Print the JSON schema of a policy, for completion and checks in an editor.

    Example: `kinfold schema --out policy.schema.json`
    """
    from kinfold.policy.schema import format_schema

    _print_or_write(out_, format_schema(), force)
    if out_ is not None:
        out.print(f"write this as the first line of a policy: #:schema ./{out_.name}")


@add_options()
def lattice(
    data: Data, policy: RequiredPolicyFile, settings: Settings = None, json: Json = False, *, source: OptionValues
) -> None:
    """Show the generalization lattice: the optimum and the minimal generalizations; with --json every node.

    Example: `kinfold lattice patients.csv --policy policy.toml`
    """
    from kinfold.pipeline import build_lattice

    result = build_lattice(data, build_policy(policy, {}, source, settings))
    if json:
        print_json(result.to_dict())
    else:
        output.print_lattice(result)


@add_options()
def hierarchy(
    data: Data,
    column: Annotated[str, typer.Option(help="Column of the table.", show_default=False)],
    out_: Annotated[Path, typer.Option("--out", help="CSV file to write.", show_default=False)],
    policy: RequiredPolicyFile,
    settings: Settings = None,
    *,
    source: OptionValues,
) -> None:
    """Write the hierarchy of a column, as the policy defines it, to a CSV file that ARX reads.

    Example: `kinfold hierarchy patients.csv --policy policy.toml --column zip --out zip.csv`
    """
    from kinfold.hierarchies import write_arx
    from kinfold.pipeline import build_hierarchy

    if out_.exists():
        raise PolicyError(f"'{out_}' exists already", fix="name another file")
    result = build_hierarchy(data, build_policy(policy, {}, source, settings), column)
    with _protect_write(out_):
        write_arx(result, out_)
    levels = plural(result.height, "level")
    out.print(f"{plural(len(result), 'value')}, {levels} above: {out_}")


def convert(
    project: Annotated[
        Path,
        typer.Argument(
            help="Project of ARX (.deid), settings of µ-ANT (.xml), report or script of sdcMicro.", show_default=False
        ),
    ],
    out_: Annotated[Path, typer.Option("--out", help="New folder for policy and data.", show_default=False)],
    json: Json = False,
) -> None:
    """Convert a project of ARX, µ-ANT or sdcMicro to a policy, and list what could not be converted.

    Example: `kinfold convert study.deid --out study`
    """
    from kinfold.convert import convert_file

    conversion = convert_file(project)
    conversion.write(out_)
    if json:
        names, notes = list(conversion.hierarchies), list(conversion.notes)
        print_json({"folder": str(out_), "hierarchies": names, "notes": notes})
    else:
        output.print_conversion(conversion, out_)


def _profile_table(data: TableSource, source: OptionValues, bar: ProgressBar) -> Profile:
    from kinfold.pipeline import profile as run

    build_policy(None, {}, {"privacy.k": 2, **source}, None)  # checks the options: a problem names its option
    given = {key.removeprefix("source."): value for key, value in source.items() if value is not None}
    return run(data, progress=bar, **given)


def _print_or_write(path: Path | None, text: str, force: bool) -> None:
    """Print a text, or write it to a file and say so."""
    if path is None:
        sys.stdout.write(text)
        return
    _write_file(path, text, force)
    out.print(f"written: {path}")


def _save_policy(path: Path, profile: Profile, write_text: PolicyWriter, force: bool) -> None:
    """Write a policy for a profiled table, and the hierarchies that are too long for it to a folder next to it."""
    from kinfold.hierarchies import build_from_rows, write_arx
    from kinfold.profiling.starter_policy import list_hierarchy_files

    folder = path.with_name(f"{path.stem}-hierarchies")
    files = {folder / file: rows for _, file, rows in list_hierarchy_files(profile)}
    if not force and (existing := [file for file in files if file.exists()]):
        raise PolicyError(f"'{existing[0]}' exists already", fix="replace it with --force, or name another policy file")
    for file, rows in files.items():
        with _protect_write(file):
            folder.mkdir(parents=True, exist_ok=True)
            write_arx(build_from_rows(rows), file)
    _write_file(path, write_text(folder.name), force)


def _print_next_step(path: Path, data: TableSource) -> None:
    table = str(data) if isinstance(data, Path) else shlex.quote(str(data))  # an address has characters of the shell
    command = f"kinfold anonymize {table} --policy {path} --out DIR"
    out.print(f"written: {path}; check it, then: {command}")


def _refuse_existing(path: Path | None, force: bool) -> None:
    if path and path.exists() and not force:
        raise PolicyError(f"'{path}' exists already", fix="replace it with --force, or name another file")


def _write_file(path: Path, text: str, force: bool) -> None:
    _refuse_existing(path, force)
    with _protect_write(path):
        path.write_text(text, encoding="utf-8")


@contextmanager
def _protect_write(path: Path) -> Iterator[None]:
    """Report a failed write as an error of the request; a stopped command says that the file is written."""
    with report_failed_write(path, "choose another place"), protect_rename(path, f"'{path}' is written"):
        yield
