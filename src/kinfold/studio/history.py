"""The history of a policy: its text after each decision, what was decided, and the way back and forth.

Every decision is in the policy's text: roles, hierarchies, promises, how the table is read. So a step back is the text
before. The log only grows: what was taken back is told as well.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kinfold.studio.error_answers import Refused

LOG = "#: "  # before a decision at the end of a project file: a comment to whoever reads it as a policy
HEAD = "# decisions, the first one first; the lines above are the policy"
MOST_LOGGED = 1000


@dataclass(frozen=True)
class Decision:
    """What was decided, when, and by which hand: form, text, source, undo, redo, run, project."""

    what: str
    by: str
    at: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))

    def to_dict(self) -> dict[str, str]:
        """Return plain values."""
        return {"at": self.at, "what": self.what, "by": self.by}


class History:
    """The policy of a session."""

    def __init__(self, most: int) -> None:
        self.text = ""
        self.log: list[Decision] = []
        self._most = most
        self._back: list[tuple[str, str]] = []  # texts before, and what led away from them
        self._forth: list[tuple[str, str]] = []

    def begin(self, text: str, what: str) -> None:
        """Start anew: another table."""
        self.text = text
        self._back, self._forth = [], []
        self._note(what, "source")

    def decide(self, text: str, what: str, by: str) -> bool:
        """Take a new text; nothing happens where it is the old one."""
        if text == self.text:
            return False
        self._back = [*self._back, (self.text, what)][-self._most :]
        self._forth = []
        self.text = text
        self._note(what, by)
        return True

    def amend(self, text: str) -> None:
        """Complete the last decision by what came of it."""
        self.text = text

    def undo(self) -> None:
        """Go back to the text before the last decision."""
        self._go(self._back, self._forth, "undo")

    def redo(self) -> None:
        """Take the decision again that was taken back last."""
        self._go(self._forth, self._back, "redo")

    def _go(self, here: list[tuple[str, str]], there: list[tuple[str, str]], by: str) -> None:
        if not here:
            raise Refused(409, f"there is nothing to {by}")
        text, what = here.pop()
        there.append((self.text, what))
        self.text = text
        self._note(what, by)

    def _note(self, what: str, by: str) -> None:
        self.log = [*self.log, Decision(what, by)][-MOST_LOGGED:]

    def to_dict(self) -> dict[str, Any]:
        """Return how many steps lead back and forth, and the log."""
        ways = {"undo": self._back, "redo": self._forth}
        told: dict[str, Any] = {
            name: {"steps": len(way), "next": way[-1][1] if way else None} for name, way in ways.items()
        }
        return told | {"log": [decision.to_dict() for decision in self.log[-200:]]}

    def project(self, text: str) -> str:
        """Return a policy with the log of decisions as comments at its end."""
        lines = [LOG + json.dumps(decision.to_dict(), ensure_ascii=False) for decision in self.log]
        return "\n".join([text.rstrip("\n"), "", HEAD, *lines, ""])

    def recall(self, text: str) -> str:
        """Take over the log of a project file, and return its policy without it."""
        lines = text.splitlines()
        logged = list(_decisions(lines))
        self.log = [*logged, *self.log][-MOST_LOGGED:]
        return "\n".join(line for line in lines if not line.startswith(LOG) and line != HEAD).rstrip("\n") + "\n"


def _decisions(lines: list[str]) -> Iterator[Decision]:
    for line in lines:
        if line.startswith(LOG):
            try:
                told = json.loads(line.removeprefix(LOG))
                yield Decision(str(told["what"])[:500], str(told["by"])[:20], str(told["at"])[:30])
            except (ValueError, KeyError, TypeError, RecursionError):
                continue  # a comment that somebody wrote


def in_words(changes: Mapping[tuple[str, ...], Any]) -> str:
    """Say in a line what a decision sets.

    >>> in_words({("privacy", "k"): 5, ("privacy", "t"): None})
    'privacy.k = 5, without privacy.t'
    """
    said = [
        f"without {'.'.join(key)}" if value is None else f"{'.'.join(key)} = {_short(value)}"
        for key, value in changes.items()
    ]
    return ", ".join(said)[:300]


def _short(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 80 else "…"
