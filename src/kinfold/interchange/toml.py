"""The policy of a converted project as a TOML file, with comments on where each part comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.items import Table

from kinfold.interchange.project import Project

INLINE = ("hierarchy", "levels")


def policy_text(project: Project, sections: Mapping[str, Mapping[str, Any]], notes: Sequence[str]) -> str:
    """Return the text of the policy; what could not be carried over stands at its top."""
    document = tomlkit.document()
    named = f" '{_line(project.name)}'" if project.name else ""
    document.add(tomlkit.comment(f"From the project{named} of ARX {_line(project.version)}. Check every role."))
    for note in notes:
        document.add(tomlkit.comment(f"note: {_line(note)}"))
    document.add(tomlkit.nl())
    for name in ("privacy", "method"):
        document.add(name, _table(sections[name]))
    columns = tomlkit.table(is_super_table=True)
    for attribute in project.attributes:
        table = _table(sections["columns"][attribute.name])
        table["role"].comment(f"ARX: {attribute.datatype}")
        columns.add(attribute.name, table)
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


def _line(text: str) -> str:
    """Put a text on one line, without characters that a comment must not have."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]
