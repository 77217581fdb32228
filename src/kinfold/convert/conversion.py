"""Conversion: write a policy from another tool's settings; for ARX also the data and the hierarchies.

    promises    k, l and t as ARX words them; other models are omitted, with a note
    columns     role and type; hierarchies of quasi-identifiers, and of confidential columns whose distance needs one
    method      lattice, which does what ARX does; its measure, its suppression limit, and its levels if all are fixed
    write       everything into a temporary folder that then gets its name; it holds the original data

A generalizing method looks up values in their hierarchy as they are written. A column is therefore declared as numbers
or dates only if every value is written as kinfold writes it (`39`, `1.5`, `2024-12-31`); otherwise it is nominal.
Anything that does not fit becomes a note, at the top of the policy and in the output of the command.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

import tomlkit

from kinfold.convert.arx import ArxAttribute, ArxProject, convert_criteria, explain_omission
from kinfold.disk import folders
from kinfold.errors import PolicyError, report_failed_write
from kinfold.hierarchies import Hierarchy, write_arx
from kinfold.profiling.starter_policy import write_section
from kinfold.tables.schema import Kind, Role

MIN_K = 2  # of a policy
NO_QUASI = "no column is a quasi-identifier: give one that role before the run"


@dataclass(frozen=True)
class TableDescription:
    """Another tool's settings for a table: keys of a policy by section and by column, with comments and notes."""

    tool: str
    columns: Mapping[str, Mapping[str, Any]]
    sections: Mapping[str, Mapping[str, Any]]
    comments: Mapping[str, str] = field(default_factory=dict)  # by column, in the words of the tool
    notes: tuple[str, ...] = ()


def write_policy(
    head: str, sections: Mapping[str, Mapping[str, Any]], comments: Mapping[str, str], notes: Sequence[str]
) -> str:
    """Return a policy as TOML with notes at its top and a comment at each role."""
    document = tomlkit.document()
    document.add(tomlkit.comment(to_single_line(head)))
    for note in notes:
        document.add(tomlkit.comment(f"note: {to_single_line(note)}"))
    document.add(tomlkit.nl())
    for name, keys in sections.items():
        if name != "columns":
            document.add(name, write_section(keys))
    columns = tomlkit.table(is_super_table=True)
    for name, keys in sections["columns"].items():
        table = write_section(keys)
        table["role"].comment(to_single_line(comments[name]))
        columns.add(name, table)
    document.add("columns", columns)
    return tomlkit.dumps(document)


def to_single_line(text: str) -> str:
    """Return a text on one line, without characters that a comment must not have."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]


INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,14})")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
DATE_FORMATS = {"yyyy-MM-dd": "%Y-%m-%d", "yyyy/MM/dd": "%Y/%m/%d", "dd.MM.yyyy": "%d.%m.%Y"}  # unambiguous ones


def choose_kind(
    attribute: ArxAttribute, values: Collection[str], *, looked_up: bool, ordered: bool = False
) -> tuple[Kind, list[str], str]:
    """Return the type of a column, the order of an ordinal one, and a note if the type is not that of ARX.

    `looked_up`: the values are looked up in a hierarchy as text. `ordered`: a promise needs an order.
    """
    present = sorted({value for value in values if value})
    if attribute.datatype == "Ordinal" or (ordered and attribute.datatype == "String"):
        listed = [value for value in attribute.format.splitlines() if value in values]  # first in the order of ARX
        return Kind.ORDINAL if present else Kind.NOMINAL, list(dict.fromkeys([*filter(None, listed), *present])), ""
    if attribute.datatype == "String":
        return Kind.NOMINAL, [], ""
    if present and all(_check_values(attribute, present, looked_up)):
        return Kind.DATE if attribute.datatype == "Date" else Kind.CONTINUOUS, [], ""
    note = f"'{attribute.name}' is {attribute.datatype} in ARX, but not every value is written as one"
    if ordered:
        return Kind.ORDINAL, sorted(present, key=_sort_key), f"{note}: ordinal in kinfold, numbers first, then texts"
    return Kind.NOMINAL, [], f"{note}: nominal in kinfold"


def _sort_key(value: str) -> tuple[bool, float, str]:
    number = NUMBER.fullmatch(value) is not None
    return (not number, float(value) if number else 0.0, value)


def _check_values(attribute: ArxAttribute, present: list[str], looked_up: bool) -> list[bool]:
    if attribute.datatype == "Date":
        form = "%Y-%m-%d" if looked_up else DATE_FORMATS.get(attribute.format, "%Y-%m-%d")
        return [_is_day(value, form) for value in present]
    if not looked_up:
        return [NUMBER.fullmatch(value) is not None for value in present]
    if all(INTEGER.fullmatch(value) for value in present):
        return [value != "-0" for value in present]
    return [NUMBER.fullmatch(value) is not None and repr(float(value)) == value for value in present]


def _is_day(value: str, form: str) -> bool:
    try:
        day: date = datetime.strptime(value, form).date()
    except ValueError:
        return False
    return day.strftime(form) == value


class PolicyColumns:
    """The keys of each column in the policy, with hierarchy files and notes."""

    def __init__(self, project: ArxProject) -> None:
        quasi = project.select_role(Role.QUASI)
        self.averaged = bool(quasi) and all(attribute.averaged for attribute in quasi)
        self.keys: dict[str, dict[str, Any]] = {}
        self.files: dict[str, Hierarchy] = {}
        self.notes: list[str] = []
        self._values = project.values()
        self._weights = len({attribute.weight for attribute in quasi}) > 1  # equal weights have no effect

    def add(self, attribute: ArxAttribute, promises: Mapping[str, Any]) -> None:
        """Add a column with its promises."""
        keys: dict[str, Any] = {"role": str(attribute.role)}
        if attribute.role is Role.QUASI:
            keys |= self._quasi(attribute)
        elif attribute.role is Role.CONFIDENTIAL:
            keys |= self._confidential(attribute, promises)
        self.keys[attribute.name] = keys

    def _quasi(self, attribute: ArxAttribute) -> dict[str, Any]:
        hierarchy = {} if self.averaged else self._hierarchy(attribute)
        keys = self._kind(attribute, looked_up=not self.averaged, known=self.averaged or bool(hierarchy))
        if keys["type"] in (Kind.CONTINUOUS, Kind.DATE) and "" in self._values[attribute.name]:
            keys["missing"] = "separate"
        if attribute.averaged:
            instead = "averaged by its type" if self.averaged else "generalized like the others"
            self.notes.append(f"'{attribute.name}': ARX averages it ({attribute.averaged}); in kinfold it is {instead}")
        if self._weights and attribute.weight is not None:
            if attribute.weight > 0:
                return keys | hierarchy | {"weight": attribute.weight}
            self.notes.append(f"'{attribute.name}': its weight is {attribute.weight:g}; weights in kinfold are above 0")
        return keys | hierarchy

    def _confidential(self, attribute: ArxAttribute, promises: Mapping[str, Any]) -> dict[str, Any]:
        promised, hierarchy = dict(promises), {}
        if promises.get("distance") == "hierarchical":
            hierarchy = self._hierarchy(attribute)
            if not hierarchy:
                promised["distance"] = "equal"
                what = f"'{attribute.name}': its t-closeness needs a hierarchy that the project does not have"
                self.notes.append(f"{what}; kinfold uses equal distances, which is stricter")
        ordered = promises.get("distance") == "ordered"
        keys = self._kind(attribute, looked_up=bool(hierarchy), known=True, ordered=ordered)
        return (keys | {"type": Kind.NOMINAL} if hierarchy else keys) | hierarchy | promised

    def _kind(self, attribute: ArxAttribute, *, looked_up: bool, known: bool, ordered: bool = False) -> dict[str, Any]:
        """Return type and order; without a hierarchy (not `known`) numbers become nominal."""
        values = self._values[attribute.name]
        kind, order, note = choose_kind(attribute, values, looked_up=looked_up, ordered=ordered)
        if note:
            self.notes.append(note)
        if not known and kind.is_numeric:
            self.notes.append(
                f"'{attribute.name}' has no hierarchy: nominal in kinfold, released as it is or suppressed"
            )
            return {"type": Kind.NOMINAL}
        return {"type": kind} | ({"order": order} if order else {})

    def _hierarchy(self, attribute: ArxAttribute) -> dict[str, Any]:
        if not attribute.hierarchy:
            return {}
        try:
            hierarchy = Hierarchy.from_rows(attribute.hierarchy, f"the hierarchy of '{attribute.name}'")
        except PolicyError as error:
            self.notes += [f"left out: {problem.what}" for problem in error.problems]
            return {}
        values = self._values[attribute.name] - {""}
        if missing := len(values - set(hierarchy.values)):
            what = f"the hierarchy of '{attribute.name}' lacks {missing} of its {len(values)} values"
            self.notes.append(f"{what}: add them before the run")
        name = file_name(attribute.name, self.files)
        self.files[name] = hierarchy
        return {"hierarchy": {"file": f"hierarchies/{name}"}}


def file_name(column: str, existing: Mapping[str, object]) -> str:
    """Return an unused file name for a column that is valid on any system.

    >>> file_name("marital status", {}), file_name("../../x", {}), file_name("A", {"a.csv": 0})
    ('marital_status.csv', 'x.csv', 'A_2.csv')
    """
    plain = re.sub(r"[^A-Za-z0-9-]+", "_", column).strip("_")[:60] or "column"
    used = {name.lower() for name in existing}
    names = (f"{plain}.csv" if number == 1 else f"{plain}_{number}.csv" for number in range(1, len(used) + 2))
    return next(name for name in names if name.lower() not in used)


SEPARATORS = ",;\t|"  # that kinfold detects
ARX_METHOD = "lattice"  # the method of ARX
OBJECTIVES = {"precision": "prec", "discernab": "discernibility", "loss": "granularity"}  # by a part of the name in ARX


@dataclass(frozen=True, eq=False)
class Conversion:
    """The files of the new folder, and notes on what was not converted."""

    data: bytes | None  # None if the tool stores settings only
    policy: str  # TOML
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)  # by file name
    notes: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Write the folder, readable by its owner only, completely or not at all; raise if it holds anything."""
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise PolicyError(f"'{folder}' already exists", fix="name a new folder: --out DIR")
        with report_failed_write(folder, "choose another place"):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with folders.create_folder(folder, f"data and policy are in '{folder}'") as new:
                (new / "policy.toml").write_text(self.policy, encoding="utf-8")
                if self.data is not None:
                    (new / "data.csv").write_bytes(self.data)
                    (new / "hierarchies").mkdir()
                for name, hierarchy in self.hierarchies.items():
                    write_arx(hierarchy, new / "hierarchies" / name)


def convert_project(project: ArxProject) -> Conversion:
    """Return the files and notes for an ARX project."""
    columns = PolicyColumns(project)
    confidential = [each.name for each in project.select_role(Role.CONFIDENTIAL)]
    privacy, promises, privacy_notes = convert_criteria(project.criteria, confidential)
    for attribute in project.attributes:
        columns.add(attribute, promises.get(attribute.name, {}))
    method, notes = _convert_method(project, columns)
    omitted = [explain_omission(text) for text in project.others]
    notes = [*project.notes, *privacy_notes, *omitted, *notes, *columns.notes, *_list_problems(project)]
    name = f" '{to_single_line(project.name)}'" if project.name else ""
    head = f"From the project{name} of ARX {to_single_line(project.version)}. Check every role."
    sections = {"privacy": privacy, "method": method, "columns": columns.keys}
    comments = {attribute.name: f"ARX: {attribute.datatype}" for attribute in project.attributes}
    policy = write_policy(head, sections, comments, notes)
    return Conversion(_convert_data(project), policy, columns.files, tuple(notes))


def convert_description(description: TableDescription) -> Conversion:
    """Return the policy and notes for the settings of another tool."""
    has_quasi = any(keys["role"] == Role.QUASI for keys in description.columns.values())
    notes = (*description.notes, *([] if has_quasi else [NO_QUASI]))
    head = f"From settings of {description.tool}. Check every role."
    sections = {**description.sections, "columns": description.columns}
    return Conversion(None, write_policy(head, sections, description.comments, notes), notes=notes)


def _list_problems(project: ArxProject) -> list[str]:
    """Return notes on what kinfold refuses, so that they are known before a run."""
    notes = [] if project.select_role(Role.QUASI) else [NO_QUASI]
    names: dict[str, str] = {}
    for attribute in project.attributes:
        first = names.setdefault(attribute.name.casefold(), attribute.name)
        if first != attribute.name:
            notes.append(f"'{first}' and '{attribute.name}' differ only in case: rename one before the run")
    return notes


def _convert_method(project: ArxProject, columns: PolicyColumns) -> tuple[dict[str, Any], list[str]]:
    if columns.averaged:
        return {"name": "auto"}, []
    quasi = project.select_role(Role.QUASI)
    method: dict[str, Any] = {"name": ARX_METHOD, "suppression": project.suppression}
    notes = []
    objectives = [objective for part, objective in OBJECTIVES.items() if part in project.metric.lower()]
    if objectives:
        method["objective"] = objectives[0]
    elif project.metric:
        notes.append(f"ARX measures quality by {project.metric}, kinfold by granularity")
    bounded = [each.name for each in quasi if each.lowest is not None or each.highest is not None]
    if bounded and all(
        each.lowest is not None and each.lowest == each.highest and "hierarchy" in columns.keys[each.name]
        for each in quasi
    ):
        method["levels"] = {each.name: each.lowest for each in quasi}
    elif bounded:
        notes.append(f"the bounds on the levels of {', '.join(map(repr, bounded))} are left out: the search is free")
    return method, notes


def _convert_data(project: ArxProject) -> bytes:
    """Return the data unchanged, or with semicolons if kinfold does not detect its separator."""
    if project.separator in SEPARATORS:
        return project.data
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";", lineterminator="\n")
    writer.writerow([attribute.name for attribute in project.attributes])
    writer.writerows(project.rows())
    return text.getvalue().encode()
