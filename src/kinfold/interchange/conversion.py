"""From the files of another tool to a folder that kinfold runs on: a policy, and of ARX data and hierarchies too.

    promises    k, l and t as ARX words them; other models are left out, and said
    columns     role and kind; hierarchies of quasi-identifiers, and of confidential columns whose distance needs one
    method      lattice, which is what ARX does; its measure, its suppression limit, and its levels where all are fixed
    write       everything into a folder beside, which then takes its name; it holds the original data

Whatever does not fit is a note: at the top of the policy, and told by the command.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kinfold.disk import exchange, scratch
from kinfold.errors import PolicyError
from kinfold.hierarchy import Hierarchy, write_arx
from kinfold.interchange.criteria import privacy_keys
from kinfold.interchange.described import Described
from kinfold.interchange.policy_columns import PolicyColumns
from kinfold.interchange.project import Project
from kinfold.interchange.toml import line_of, policy_text
from kinfold.rows.schema import Role

SEPARATORS = ",;\t|"  # that kinfold tells apart by itself
AS_ARX = "lattice"  # the method that does what ARX does
OBJECTIVES = {"precision": "prec", "discernab": "discernibility", "loss": "granularity"}  # by a part of ARX's name


@dataclass(frozen=True, eq=False)
class Conversion:
    """What goes into the folder, and what could not be carried over."""

    data: bytes | None  # None: the table stands elsewhere
    policy: str  # TOML
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict)  # by the name of the file
    notes: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Write the folder, for its owner's eyes, whole or not at all; one that holds something is left alone."""
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise PolicyError(f"'{folder}' exists already", fix="name a new folder: --out DIR")
        beside: Path | None = None
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            scratch.sweep(f".{folder.name}-", folder.parent, folder.name)
            beside = scratch.make(f".{folder.name}-", folder.parent, folder.name)
            (beside / "new").mkdir(mode=0o700)
            self._fill(beside / "new")
            exchange.flush(beside / "new")
            with exchange.naming(folder, f"data and policy are in '{folder}'"):
                if not exchange.place(beside / "new", folder):
                    raise PolicyError(f"'{folder}' exists already", fix="name a new folder: --out DIR")
            exchange.flush_names([folder.parent])
        except OSError as error:
            raise PolicyError(f"cannot write '{folder}': {error.strerror}", fix="choose another place") from error
        finally:
            if beside is not None:
                scratch.remove(beside)

    def _fill(self, folder: Path) -> None:
        (folder / "policy.toml").write_text(self.policy, encoding="utf-8")
        if self.data is None:
            return
        (folder / "data.csv").write_bytes(self.data)
        (folder / "hierarchies").mkdir()
        for name, hierarchy in self.hierarchies.items():
            write_arx(hierarchy, folder / "hierarchies" / name)


def convert(project: Project) -> Conversion:
    """Return the files for a project, and what there is to say of them."""
    columns = PolicyColumns(project)
    asked = privacy_keys(project.criteria, [each.name for each in project.of(Role.CONFIDENTIAL)])
    for attribute in project.attributes:
        columns.add(attribute, asked.columns.get(attribute.name, {}))
    method, notes = _method(project, columns)
    left = [f"left out, for kinfold has no such model: {text}" for text in project.others]
    notes = [*project.notes, *asked.notes, *left, *notes, *columns.notes]
    notes += _to_mend(project)
    named = f" '{line_of(project.name)}'" if project.name else ""
    head = f"From the project{named} of ARX {line_of(project.version)}. Check every role."
    sections = {"privacy": asked.privacy, "method": method, "columns": columns.keys}
    comments = {attribute.name: f"ARX: {attribute.datatype}" for attribute in project.attributes}
    return Conversion(_data(project), policy_text(head, sections, comments, notes), columns.files, tuple(notes))


def of_description(described: Described) -> Conversion:
    """Return the policy for a table that stands elsewhere, and what there is to say of it."""
    notes = (*described.notes, *described.to_mend())
    sections = {**described.sections, "columns": described.columns}
    return Conversion(None, policy_text(described.head, sections, described.comments, notes), notes=notes)


def _to_mend(project: Project) -> list[str]:
    """What kinfold will refuse, so that it is known before a run."""
    notes = [] if project.of(Role.QUASI) else ["no column is a quasi-identifier: give one that role before you run it"]
    seen: dict[str, str] = {}
    for attribute in project.attributes:
        first = seen.setdefault(attribute.name.casefold(), attribute.name)
        if first != attribute.name:
            notes.append(f"'{first}' and '{attribute.name}' differ only in case: rename one before you run the policy")
    return notes


def _method(project: Project, columns: PolicyColumns) -> tuple[dict[str, Any], list[str]]:
    if columns.averaged:
        return {"name": "auto"}, []
    quasi = project.of(Role.QUASI)
    method: dict[str, Any] = {"name": AS_ARX, "suppression": project.suppression}
    notes = []
    known = [here for part, here in OBJECTIVES.items() if part in project.metric.lower()]
    if known:
        method["objective"] = known[0]
    elif project.metric:
        notes.append(f"ARX measures quality by {project.metric}; here by granularity")
    bounded = [each.name for each in quasi if each.lowest is not None or each.highest is not None]
    if bounded and all(
        each.lowest is not None and each.lowest == each.highest and "hierarchy" in columns.keys[each.name]
        for each in quasi
    ):
        method["levels"] = {each.name: each.lowest for each in quasi}
    elif bounded:
        notes.append(f"the bounds on the levels of {', '.join(map(repr, bounded))} are left out: the search is free")
    return method, notes


def _data(project: Project) -> bytes:
    """Return the data as it is, or with semicolons where its separator would not be recognised."""
    if project.separator in SEPARATORS:
        return project.data
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=";", lineterminator="\n")
    writer.writerow([attribute.name for attribute in project.attributes])
    writer.writerows(project.rows())
    return text.getvalue().encode()
