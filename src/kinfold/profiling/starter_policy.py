"""A starter policy: what a profile proposes, as a TOML file with comments to correct it by."""

from __future__ import annotations

import tomlkit
from tomlkit.items import Table

from kinfold.profiling.profile import ColumnProfile, Profile
from kinfold.profiling.source_guess import worth_writing
from kinfold.rows.schema import Kind, Role, Storage

FEW_NUMBERS = 20  # different whole numbers, up to which they may be codes

HEAD = """\
A starter policy, proposed from the table. Check every role: identifier (removed), quasi-identifier (somebody
else may know it), confidential (to be protected from inference), other (released as it is)."""


def starter(profile: Profile, k: int = 5) -> str:
    """Return the text of a policy for the profiled table."""
    document = tomlkit.document()
    for line in HEAD.splitlines():
        document.add(tomlkit.comment(line))
    document.add(tomlkit.nl())
    if written := worth_writing(profile.source):
        document.add("source", tomlkit.item(written))
    privacy = tomlkit.table()
    privacy.add("k", k)
    privacy["k"].comment("at least so many records share each combination of quasi-identifiers")
    document.add("privacy", privacy)
    method = tomlkit.table()
    method.add("name", "auto")
    document.add("method", method)
    columns = tomlkit.table(is_super_table=True)
    for column in profile.columns:
        columns.add(column.name, _column(column, k))
    document.add("columns", columns)
    return tomlkit.dumps(document)


def _column(column: ColumnProfile, k: int) -> Table:
    table = tomlkit.table()
    table.add("role", column.role)
    table["role"].comment(f"{column.reason}; {column.distinct:,} values, {column.missing:,} missing")
    if column.role in (Role.QUASI, Role.CONFIDENTIAL):
        table.add("type", column.kind)
        if column.storage == Storage.INTEGER and column.kind == Kind.CONTINUOUS and column.distinct <= FEW_NUMBERS:
            table["type"].comment("few whole numbers: if they are codes, nominal or ordinal")
    if column.role == Role.QUASI and column.missing and column.kind in (Kind.CONTINUOUS, Kind.DATE):
        table.add("missing", "separate" if column.missing >= k else "mean")
        table["missing"].comment("separate (grouped apart), mean (imputed), drop (the record), refuse")
    return table
