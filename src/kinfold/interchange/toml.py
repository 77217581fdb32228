"""A converted policy as a TOML file, with comments on where each part comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import tomlkit
from tomlkit.items import Table

INLINE = ("hierarchy", "levels")
Sections: TypeAlias = Mapping[str, Mapping[str, Any]]


def policy_text(head: str, sections: Sections, comments: Mapping[str, str], notes: Sequence[str]) -> str:
    """Return the text of a policy; what could not be carried over stands at its top, comments beside the roles."""
    document = tomlkit.document()
    document.add(tomlkit.comment(line_of(head)))
    for note in notes:
        document.add(tomlkit.comment(f"note: {line_of(note)}"))
    document.add(tomlkit.nl())
    for name, keys in sections.items():
        if name != "columns":
            document.add(name, _table(keys))
    columns = tomlkit.table(is_super_table=True)
    for name, keys in sections["columns"].items():
        table = _table(keys)
        table["role"].comment(line_of(comments[name]))
        columns.add(name, table)
    document.add("columns", columns)
    return tomlkit.dumps(document)


def _table(keys: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    for key, value in keys.items():
        if key in INLINE:
            inline = tomlkit.inline_table()
            inline.update(value)
            table.add(key, inline)
        else:
            table.add(key, str(value) if isinstance(value, str) else value)
    return table


def line_of(text: str) -> str:
    """Put a text on one line, without characters that a comment must not have."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]
