"""A table that stands elsewhere, as another tool's settings describe it: what each column is, and what is promised.

Of ARX a project has the data too (`project`); µ-ANT and sdcMicro have settings only. They become a policy for the same
table, and what could not be carried over is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kinfold.rows.schema import Role

LEAST = 2  # the smallest k of a policy


@dataclass(frozen=True)
class Described:
    """The keys of a policy by section, those of each column with where they come from, and what there is to say."""

    tool: str
    columns: Mapping[str, Mapping[str, Any]]
    sections: Mapping[str, Mapping[str, Any]]
    comments: Mapping[str, str] = field(default_factory=dict)  # by column, in the tool's words
    notes: tuple[str, ...] = ()

    @property
    def head(self) -> str:
        """What stands at the top of the policy."""
        return f"From settings of {self.tool}. Check every role."

    def to_mend(self) -> list[str]:
        """What kinfold will refuse, so that it is known before a run."""
        roles = {keys["role"] for keys in self.columns.values()}
        lacks = "no column is a quasi-identifier: give one that role before you run it"
        return [] if str(Role.QUASI) in roles else [lacks]
