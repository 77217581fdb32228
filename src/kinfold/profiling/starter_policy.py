"""A starter policy: what a profile proposes, as a TOML file with the reasons as comments, to correct and to run.

Tables of labels that are long stand in files of their own, in a folder beside the policy, where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import tomlkit
from tomlkit.items import Table

from kinfold.hierarchy.grouped_values import Rows
from kinfold.profiling.profile import ColumnProfile, Profile
from kinfold.profiling.proposed_hierarchies import ProposedHierarchy
from kinfold.profiling.source_guess import worth_writing
from kinfold.rows.schema import Kind, Role

HEAD = """\
A starter policy, proposed from the table. Check every role: identifier (removed), quasi-identifier (somebody
else may know it), confidential (to be protected from inference), other (released as it is). A hierarchy says how
a column would be generalized: by method = "lattice" and its like, or with average = "generalize" in the column."""
PEOPLE = "a person has several rows: k counts people, not rows"
HOUSEHOLDS = "several rows share each of its values, as people of a household do: with this line k counts those"
TextOf: TypeAlias = Callable[[str], str]  # a policy, given the folder of its hierarchies

LONGEST = 60  # characters of a file's name


@dataclass(frozen=True)
class PolicyForm:
    """What a policy says beside what is found in the table: its head, its sections, and further keys of columns."""

    head: str = HEAD
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"method": {"name": "auto"}})
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def starter(profile: Profile, k: int | None = None, folder: str | None = None, form: PolicyForm | None = None) -> str:
    """Return the text of a policy for the profiled table; long tables of labels are in a folder, if it has a name."""
    form = form or PolicyForm()
    document = tomlkit.document()
    for line in form.head.splitlines():
        document.add(tomlkit.comment(line) if line else tomlkit.nl())
    document.add(tomlkit.nl())
    if written := worth_writing(profile.source):
        document.add("source", tomlkit.item(written))
    document.add("privacy", _privacy(profile, {"k": k or profile.k, **form.sections.get("privacy", {})}))
    for name, keys in form.sections.items():
        if name != "privacy":
            document.add(name, _section(keys))
    if profile.sampling_weights is not None:
        report = tomlkit.table()
        report.add("sampling_weights", profile.sampling_weights)
        report["sampling_weights"].comment("how many people a record stands for: the risk in the population")
        document.add("report", report)
    columns = tomlkit.table(is_super_table=True)
    files = {} if folder is None else {name: f"{folder}/{file}" for name, file, _ in hierarchy_files(profile)}
    for column in profile.columns:
        columns.add(column.name, _column(column, files.get(column.name), form.columns.get(column.name, {})))
    document.add("columns", columns)
    return tomlkit.dumps(document)


def _section(keys: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    for key, value in keys.items():
        table.add(key, _inline(value) if isinstance(value, Mapping) else value)
    return table


def _inline(keys: Mapping[str, Any]) -> Any:
    inline = tomlkit.inline_table()
    inline.update(keys)
    return inline


def hierarchy_files(profile: Profile) -> Iterator[tuple[str, str, Rows]]:
    """Yield the columns whose table of labels is long, with the name of a file for each and its rows."""
    taken: set[str] = set()
    for column in profile.columns:
        if column.hierarchy and column.hierarchy.long:
            file = re.sub(r"[^\w-]+", "_", column.name)[:LONGEST]
            while file.casefold() in taken:
                file += "_"
            taken.add(file.casefold())
            yield column.name, f"{file}.csv", column.hierarchy.rows


def _privacy(profile: Profile, said: Mapping[str, Any]) -> Table:
    table = _section(said)
    table["k"].comment("at least so many records share each combination of quasi-identifiers")
    if profile.unit is not None and profile.unit.people:
        table.add("unit", profile.unit.column)
        table["unit"].comment(PEOPLE)
    elif profile.unit is not None:
        table.add(tomlkit.comment(f"unit = {tomlkit.item(profile.unit.column).as_string()}  # {HOUSEHOLDS}"))
    return table


def _column(column: ColumnProfile, file: str | None, further: Mapping[str, Any]) -> Table:
    table = tomlkit.table()
    table.add(tomlkit.comment(f"{column.reason}; {column.distinct:,} values, {column.missing:,} missing"))
    table.add("role", column.role)
    if column.role == Role.IDENTIFIER:
        return table
    table.add("type", column.kind)
    for key, value in further.items():
        table.add(key, value)
    if column.order:
        table.add("order", _listed(column.order))
        table["order"].comment("from the lowest to the highest")
    if column.role == Role.QUASI and column.missing and column.kind in (Kind.CONTINUOUS, Kind.DATE):
        table.add("missing", "separate")
        table["missing"].comment("separate (grouped apart), mean (imputed), drop (the record), refuse")
    _protect(table, column)
    if column.hierarchy:
        table.add("hierarchy", _hierarchy(column.hierarchy, file))
    return table


def _protect(table: Table, column: ColumnProfile) -> None:
    """Write down what is promised about a confidential column."""
    if column.t is not None:
        table.add("t", column.t)
        table["t"].comment("a number: in each class it is spread as in the whole table, to within this; 0 is alike")
    if column.l is not None:
        table.add("l", column.l)
        table["l"].comment("a category: so many different values in each class, at least")


def _hierarchy(hierarchy: ProposedHierarchy, file: str | None) -> Any:
    if file is None and hierarchy.rows:
        levels = tomlkit.table()
        levels.add(tomlkit.comment(f"{hierarchy.told}: a row a value, ever coarser"))
        rows = tomlkit.array().multiline(multiline=True)
        for row in hierarchy.rows:
            rows.append(_listed(row))
        levels.add("levels", rows)
        return levels
    keys = _inline({"file": file} if file is not None else hierarchy.keys)
    keys.comment(hierarchy.told)
    return keys


def _listed(texts: tuple[str, ...]) -> Any:
    array = tomlkit.array()
    array.extend(texts)
    return array
