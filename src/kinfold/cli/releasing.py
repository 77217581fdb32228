"""The commands that make a release and that check one: `anonymize` and `verify`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinfold.cli import output
from kinfold.cli.arguments import (
    KEYS,
    ROLES,
    Data,
    Json,
    PolicyFile,
    Settings,
    SourceOptions,
    Values,
    by_key,
    by_role,
    table,
)
from kinfold.cli.gathered_options import Gathered, gathers, offers
from kinfold.cli.options import policy_from, verifying
from kinfold.cli.source_options import TableSource, reads
from kinfold.cli.terminal import Bar, asking, errors, print_json
from kinfold.errors import DataError, PolicyError, Unreachable, VerifyError

if TYPE_CHECKING:
    from kinfold.rows.databases.address import DatabaseAddress


@dataclass(frozen=True)
class ReleaseOptions:
    """What is asked for, and how the release is made and told."""

    policy: PolicyFile = None
    settings: Settings = None
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release.")] = False
    into: Annotated[
        str | None, typer.Option(help="Table of a database to write the release to as well.", show_default=False)
    ] = None
    ask: Annotated[bool, typer.Option("--ask", help="mu-argus: ask for the data holder's choices.")] = False
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a run in blocks was stopped.")] = False
    show_values: Values = False
    json: Json = False


@reads
@gathers("keys", KEYS, {"keep_order": False})
@gathers("roles", ROLES)
@offers("how", ReleaseOptions)
def anonymize(
    data: Data,
    out_: Annotated[Path, typer.Option("--out", help="Folder of the release.", show_default=False)],
    *,
    how: ReleaseOptions,
    roles: Gathered,
    keys: Gathered,
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

    with errors(show_values=how.show_values), Bar() as bar:
        asked = policy_from(how.policy, by_role(roles), {**by_key(keys), **source}, how.settings or ())
        check_place(out_, force=how.force)
        table = _free_table(how.into, how.force)
        with SavedWork(out_, resume=how.resume, final=(DataError, Unreachable, VerifyError)) as saved:
            release = run(data, asked, progress=bar, ask=asking if how.ask else None, saved=saved)
            release.save(out_, force=how.force, into=table, progress=bar)
        bar.end()
        if how.json:
            print_json({**output.summary(release), "folder": str(out_)} | ({"table": str(table)} if table else {}))
        else:
            output.tell_release(release, out_, table)


@dataclass(frozen=True)
class CheckOptions:
    """How a release is checked, and how the verdict is told."""

    twice: Annotated[bool, typer.Option("--twice", help="Ask the second checker, in plain Python, too.")] = False
    rows_only: Annotated[
        bool, typer.Option("--rows-only", help="Say nothing of what is promised of people with several rows.")
    ] = False
    require_people: Annotated[
        bool,
        typer.Option("--require-people", help="Fail where a promise about people cannot be checked from the file."),
    ] = False
    json: Json = False


@reads
@offers("how", CheckOptions)
def verify(
    data: Annotated[TableSource, table("Folder of a release, or a table with --policy.")],
    policy: PolicyFile = None,
    settings: Settings = None,
    *,
    how: CheckOptions,
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
        people = {"rows_only": how.rows_only, "require_people": how.require_people}
        verdict = check(data, asked, **people, twice=how.twice)
        if how.json:
            print_json(verdict.to_dict())
        else:
            output.tell_verdict(verdict)
        verdict.require()


def _free_table(into: str | None, force: bool) -> DatabaseAddress | None:
    """Return the address of the table to write, after making sure that it can be."""
    from kinfold.rows.databases.address import table_at
    from kinfold.rows.databases.target import check_target

    if into is None:
        return None
    address = table_at(into)
    check_target(address, force=force)
    return address
