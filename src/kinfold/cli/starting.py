"""The commands to start with: `demo`, and `profile`, which writes the first policy."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinfold.cli import output
from kinfold.cli.arguments import Data, Json, SourceOptions
from kinfold.cli.options import policy_from
from kinfold.cli.source_options import TableSource, keywords, reads
from kinfold.cli.terminal import Bar, errors, out, print_json
from kinfold.disk.exchange import naming
from kinfold.errors import PolicyError

if TYPE_CHECKING:
    from kinfold.profiling.profile import Profile


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
