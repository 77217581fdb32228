"""The commands that write policies, or about them: `template`, and `schema`, by which editors complete one."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinfold.cli.arguments import SourceOptions, table
from kinfold.cli.options import policy_from
from kinfold.cli.source_options import TableSource, keywords, reads
from kinfold.cli.terminal import Bar, errors, out
from kinfold.disk.exchange import naming
from kinfold.errors import PolicyError

if TYPE_CHECKING:
    from kinfold.profiling.profile import Profile
    from kinfold.profiling.starter_policy import TextOf

File = Annotated[Path | None, typer.Option("--out", help="File to write; else it is printed.", show_default=False)]
Force = Annotated[bool, typer.Option(help="Replace an existing file.")]
MaybeData = Annotated[TableSource | None, table("Table to fit it to.")]


@reads
def template(
    name: Annotated[str | None, typer.Argument(help="hipaa, gdpr …; without it they are listed.")] = None,
    data: MaybeData = None,
    out_: File = None,
    force: Force = False,
    *,
    source: SourceOptions,
) -> None:
    """Write the policy that a rule on anonymity asks for, fitted to a table; no legal advice.

    Example: `kinfold template hipaa patients.csv --out hipaa.toml`
    """
    from kinfold.profiling.frameworks import framework, frameworks
    from kinfold.profiling.frameworks.fitting import fitted
    from kinfold.profiling.frameworks.skeleton import skeleton

    with errors(), Bar() as bar:
        if name is None:
            bar.end()
            for each in frameworks().values():
                out.print(f"{each.name:14}{each.summary}", soft_wrap=True)
            return
        chosen = framework(name)
        if data is None:
            bar.end()
            _put(out_, skeleton(chosen), force)
            return
        from kinfold.flow import profile as look

        policy_from(None, {}, {"privacy.k": 2, **source}, ())
        found = look(data, progress=bar, **keywords(source))
        bar.end()
        if out_ is None:
            _put(None, fitted(chosen, found), force)
            return
        put_policy(out_, found, lambda folder: fitted(chosen, found, folder), force)
        tell_written(out_, data)


def schema(out_: File = None, force: Force = False) -> None:
    """Print the JSON schema of a policy, by which an editor completes and checks one.

    Example: `kinfold schema --out policy.schema.json`
    """
    from kinfold.request.policy_schema import schema_text

    with errors():
        _put(out_, schema_text(), force)
        if out_ is not None:
            out.print(f"name it in the first line of a policy: #:schema ./{out_.name}", soft_wrap=True)


def _put(path: Path | None, text: str, force: bool) -> None:
    """Print a text, or write it into a file and say so."""
    if path is None:
        sys.stdout.write(text)
        return
    _write(path, text, force)
    out.print(f"written: {path}", soft_wrap=True)


def put_policy(path: Path, found: Profile, text_of: TextOf, force: bool) -> None:
    """Write a policy for a profiled table, and beside it the hierarchies that are too long to stand in it."""
    from kinfold.hierarchy import by_rows, write_arx
    from kinfold.profiling.starter_policy import hierarchy_files

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
    _write(path, text_of(folder.name), force)


def tell_written(path: Path, data: TableSource) -> None:
    """Say where a policy is, and how to go on."""
    then = f"kinfold anonymize {_typed(data)} --policy {path} --out DIR"
    out.print(f"written: {path}; check it, then: {then}", soft_wrap=True)


def _typed(data: TableSource) -> str:
    """Return the name of a table as it is typed into a shell: an address has signs of the shell's."""
    return str(data) if isinstance(data, Path) else shlex.quote(str(data))


def refuse_existing(path: Path | None, force: bool) -> None:
    """Leave what is there already alone, unless it may be replaced."""
    if path and path.exists() and not force:
        raise PolicyError(f"'{path}' exists already", fix="replace it with --force, or name another file")


def _write(path: Path, text: str, force: bool) -> None:
    refuse_existing(path, force)
    try:
        with naming(path, f"'{path}' is written"):
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PolicyError(f"cannot write '{path}': {error.strerror}", fix="choose another place") from error
