"""The commands to start with: `demo`, and `profile`, which writes the first policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinfold.cli import output
from kinfold.cli.arguments import Data, Json, SourceOptions
from kinfold.cli.options import policy_from
from kinfold.cli.policies import put_policy, refuse_existing, tell_written
from kinfold.cli.source_options import keywords, reads
from kinfold.cli.terminal import Bar, errors, out, print_json

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
        refuse_existing(write_policy, force)
        policy_from(None, {}, {"privacy.k": 2, **source}, ())  # what is wrong with an option is told by its name
        found = look(data, progress=bar, **keywords(source))
        if write_policy:
            _starter(write_policy, found, force)
        bar.end()
        if json:
            print_json(found.to_dict())
            return
        output.tell_profile(found)
        if write_policy:
            out.print()
            tell_written(write_policy, data)


def _starter(path: Path, found: Profile, force: bool) -> None:
    from kinfold.profiling.starter_policy import starter

    put_policy(path, found, lambda folder: starter(found, folder=folder), force)
