"""The columns of a project as those of a policy: role, kind, hierarchy, weight and what is promised of each.

Hierarchies are taken for quasi-identifiers, and for confidential columns whose distance is by one. A hierarchy that is
no tree is left out; the column can then be kept or suppressed. Everything of this sort is noted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kinfold.errors import PolicyError
from kinfold.hierarchy import Hierarchy
from kinfold.interchange.kinds import judge
from kinfold.interchange.project import Attribute, Project
from kinfold.rows.schema import Kind, Role


class PolicyColumns:
    """The keys of each column in the policy, gathered with the files that they name and what there is to say."""

    def __init__(self, project: Project) -> None:
        quasi = project.of(Role.QUASI)
        self.averaged = bool(quasi) and all(attribute.averaged for attribute in quasi)
        self.keys: dict[str, dict[str, Any]] = {}
        self.files: dict[str, Hierarchy] = {}
        self.notes: list[str] = []
        self._values = project.values()
        self._weights = len({attribute.weight for attribute in quasi}) > 1  # equal ones say nothing

    def add(self, attribute: Attribute, asked: Mapping[str, Any]) -> None:
        """Add a column with what is promised of it."""
        keys: dict[str, Any] = {"role": str(attribute.role)}
        if attribute.role is Role.QUASI:
            keys |= self._quasi(attribute)
        elif attribute.role is Role.CONFIDENTIAL:
            keys |= self._confidential(attribute, asked)
        self.keys[attribute.name] = keys

    def _quasi(self, attribute: Attribute) -> dict[str, Any]:
        hierarchy = {} if self.averaged else self._hierarchy(attribute)
        keys = self._kind(attribute, looked_up=not self.averaged, known=self.averaged or bool(hierarchy))
        if keys["type"] in (Kind.CONTINUOUS, Kind.DATE) and "" in self._values[attribute.name]:
            keys["missing"] = "separate"
        if attribute.averaged:
            instead = "as its kind asks for" if self.averaged else "not: it is generalized like the others"
            self.notes.append(f"'{attribute.name}': ARX averages it ({attribute.averaged}); here {instead}")
        if self._weights and attribute.weight is not None:
            if attribute.weight > 0:
                return keys | hierarchy | {"weight": attribute.weight}
            self.notes.append(f"'{attribute.name}': its weight is {attribute.weight:g}; weights are above 0 here")
        return keys | hierarchy

    def _confidential(self, attribute: Attribute, asked: Mapping[str, Any]) -> dict[str, Any]:
        promised, hierarchy = dict(asked), {}
        if asked.get("distance") == "hierarchical":
            hierarchy = self._hierarchy(attribute)
            if not hierarchy:
                promised["distance"] = "equal"
                what = f"'{attribute.name}': its t-closeness is by a hierarchy that is not there"
                self.notes.append(f"{what}; distances are equal here, which is stricter")
        ordered = asked.get("distance") == "ordered"
        keys = self._kind(attribute, looked_up=bool(hierarchy), known=True, ordered=ordered)
        return (keys | {"type": Kind.NOMINAL} if hierarchy else keys) | hierarchy | promised

    def _kind(self, attribute: Attribute, *, looked_up: bool, known: bool, ordered: bool = False) -> dict[str, Any]:
        """Return type and order; without a hierarchy numbers cannot be generalized but as names (not `known`)."""
        judged = judge(attribute, self._values[attribute.name], looked_up=looked_up, ordered=ordered)
        if judged.note:
            self.notes.append(judged.note)
        if not known and judged.kind.measured:
            self.notes.append(f"'{attribute.name}' has no hierarchy: nominal here, kept as it is or suppressed")
            return {"type": Kind.NOMINAL}
        return {"type": judged.kind} | ({"order": list(judged.order)} if judged.order else {})

    def _hierarchy(self, attribute: Attribute) -> dict[str, Any]:
        if not attribute.hierarchy:
            return {}
        try:
            hierarchy = Hierarchy.of(attribute.hierarchy, f"the hierarchy of '{attribute.name}'")
        except PolicyError as error:
            self.notes += [f"left out: {problem.what}" for problem in error.problems]
            return {}
        held = self._values[attribute.name] - {""}
        if missing := len(held - set(hierarchy.values)):
            what = f"the hierarchy of '{attribute.name}' misses {missing} of its {len(held)} values"
            self.notes.append(f"{what}: add them before you run the policy")
        name = file_name(attribute.name, self.files)
        self.files[name] = hierarchy
        return {"hierarchy": {"file": f"hierarchies/{name}"}}


def file_name(column: str, taken: Mapping[str, object]) -> str:
    """Return a name for a column's file that is one on any system, and not taken.

    >>> file_name("marital status", {}), file_name("../../x", {}), file_name("A", {"a.csv": 0})
    ('marital_status.csv', 'x.csv', 'A_2.csv')
    """
    plain = re.sub(r"[^A-Za-z0-9-]+", "_", column).strip("_")[:60] or "column"
    used = {name.lower() for name in taken}
    names = (f"{plain}.csv" if number == 1 else f"{plain}_{number}.csv" for number in range(1, len(used) + 2))
    return next(name for name in names if name.lower() not in used)
