"""The history of a policy: its text after each decision, a log of the decisions, undo and redo.

Every decision is in the text of the policy: roles, hierarchies, promises, reading options. Undo restores the text
before a decision. The log only grows: it also lists undone decisions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from kinfold.studio.refusals import Refusal

LOG_PREFIX = "#: "  # of a decision at the end of a project file, which is a comment in TOML
LOG_HEADING = "# log of decisions, the oldest first; the lines above are the policy"
MAX_LOG_ENTRIES = 1000  # the oldest go first


@dataclass(frozen=True)
class Decision:
    """What was decided, when, and how: form, text, source, undo, redo, run, project."""

    what: str
    by: str
    at: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


class History:
    """The text of a session's policy, and its decisions."""

    def __init__(self, max_undo: int) -> None:
        self.text = ""
        self.log: list[Decision] = []
        self._max_undo = max_undo
        self._undo: list[tuple[str, str]] = []  # text, and the decision that replaced it
        self._redo: list[tuple[str, str]] = []

    def start(self, text: str, what: str) -> None:
        """Start with the policy of another table."""
        self.text = text
        self._undo, self._redo = [], []
        self._note(what, "source")

    def decide(self, text: str, what: str, by: str) -> bool:
        """Set a new text; return False if it is the old one."""
        if text == self.text:
            return False
        self._undo = [*self._undo, (self.text, what)][-self._max_undo :]
        self._redo = []
        self.text = text
        self._note(what, by)
        return True

    def undo_or_redo(self, by: str) -> None:
        """Restore the text before the last decision, or repeat the decision that was undone last."""
        source, target = (self._undo, self._redo) if by == "undo" else (self._redo, self._undo)
        if not source:
            raise Refusal(409, f"there is nothing to {by}")
        text, what = source.pop()
        target.append((self.text, what))
        self.text = text
        self._note(what, by)

    def _note(self, what: str, by: str) -> None:
        self.log = [*self.log, Decision(what, by)][-MAX_LOG_ENTRIES:]

    def to_dict(self) -> dict[str, Any]:
        """Return the number of possible undo and redo steps, the next of each, and the log."""
        stacks = {"undo": self._undo, "redo": self._redo}
        return {
            **{name: {"steps": len(stack), "next": stack[-1][1] if stack else None} for name, stack in stacks.items()},
            "log": [asdict(decision) for decision in self.log[-200:]],
        }

    def write_project(self, text: str) -> str:
        """Return a policy with the log as comments at its end."""
        lines = [LOG_PREFIX + json.dumps(asdict(decision), ensure_ascii=False) for decision in self.log]
        return "\n".join([text.rstrip("\n"), "", LOG_HEADING, *lines, ""])

    def read_project(self, text: str) -> str:
        """Add the log of a project file to this one, and return the policy of the file."""
        lines = text.splitlines()
        self.log = [*_parse_decisions(lines), *self.log][-MAX_LOG_ENTRIES:]
        policy = [line for line in lines if not line.startswith(LOG_PREFIX) and line != LOG_HEADING]
        return "\n".join(policy).rstrip("\n") + "\n"


def _parse_decisions(lines: list[str]) -> Iterator[Decision]:
    for line in lines:
        if line.startswith(LOG_PREFIX):
            try:
                entry = json.loads(line.removeprefix(LOG_PREFIX))
                yield Decision(str(entry["what"])[:500], str(entry["by"])[:20], str(entry["at"])[:30])
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # another comment


def describe_changes(changes: Mapping[tuple[str, ...], Any], values: Mapping[str, Any]) -> str:
    """Describe a decision in one line: what it changes, from what to what. `values` are the keys before it.

    >>> describe_changes({("columns", "PLZ", "role"): "other"}, {"columns": {"PLZ": {"role": "quasi-identifier"}}})
    'PLZ: quasi-identifier → other'
    >>> describe_changes({("privacy", "k"): 5, ("privacy", "t"): None}, {"privacy": {"k": 3, "t": 0.2}})
    'k: 3 → 5; t: 0.2 → none'
    >>> describe_changes({("columns", name, "role"): "other" for name in "abcd"}, {})
    'a, b, c and 1 more: role → other'
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    for key, value in changes.items():
        before: Any = values
        for part in key:
            before = before.get(part) if isinstance(before, Mapping) else None
        column = key[1] if key[0] == "columns" and len(key) > 1 else ""
        name = " ".join(key[2 if column else 1 :]).replace("_", " ")
        groups.setdefault((name, _format_value(before), _format_value(value)), []).append(column)
    return "; ".join(_describe_group(*change, columns) for change, columns in groups.items())[:300]


def _describe_group(name: str, before: str, value: str, columns: list[str]) -> str:
    if not columns[0]:
        return f"{name}: {before} → {value}"
    if len(columns) == 1:
        what = columns[0] if name == "role" else f"{columns[0]}, {name}"
        return f"{what}: {before} → {value}"
    more = f" and {len(columns) - 3} more" if len(columns) > 3 else ""
    return f"{', '.join(columns[:3])}{more}: {name} → {value}"


def _format_value(value: Any) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else "…"
