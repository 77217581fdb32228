"""The journal: what a run has on disk at this moment, told at once, so that whoever ends the run can tidy up after it.

    made PATH     a temporary folder is about to be there, to be removed with all it holds
    gone PATH     it is removed
    opened PATH   a folder for the release to stand in is about to be there, to be removed if it stays empty
    moving PATH   folders change places: not the moment to end the run
    moved PATH    that is over
    kept TEXT     something has its final name, and TEXT says so
    ended         the run ends by itself, well or not

Nobody listens unless he asks to: the command does, from a process of its own; a library user need not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

Listener: TypeAlias = Callable[[str, str], None]

_listeners: list[Listener] = []


def tell(event: str, what: object) -> None:
    """Tell everybody who listens."""
    for listener in tuple(_listeners):
        listener(event, str(what))


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Let somebody listen for as long as the `with` block lasts."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@dataclass(eq=False)  # of two that know the same each is itself
class Journal:
    """A listener that knows how things stand."""

    made: list[str] = field(default_factory=list)
    opened: list[str] = field(default_factory=list)
    moving: str = ""
    kept: str = ""
    ended: bool = False

    def __call__(self, event: str, what: str) -> None:
        """Note what was told."""
        if event in ("made", "opened"):
            getattr(self, event).append(what)
        elif event == "gone":
            self.made = [path for path in self.made if path != what]
        elif event in ("moving", "moved"):
            self.moving = what if event == "moving" else ""
        elif event == "kept":
            self.kept = what
        elif event == "ended":
            self.ended = True

    @property
    def state(self) -> str:
        """What is true of the disk if the run ends here."""
        if self.moving:  # only where something else than the command ended it
            return f"the release at '{self.moving}' is the old one or the new one: ask kinfold verify which"
        return self.kept or "nothing was changed"
