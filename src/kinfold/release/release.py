"""A verified release, not yet on disk: its rows, what was found on them, and what it cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import PolicyError, plural, require_callable
from kinfold.evaluation import Measures
from kinfold.evaluation.drawn_records import Drawn
from kinfold.methods.planning import Plan
from kinfold.models.terms import Terms
from kinfold.models.verdict import Verdict
from kinfold.progress import Stage
from kinfold.request.binding import BoundPolicy
from kinfold.request.methods import AUTO
from kinfold.request.preparation import Prepared
from kinfold.request.rules.counting import RuleCount
from kinfold.rows import frames
from kinfold.rows.databases.address import DatabaseAddress, table_at
from kinfold.rows.displayed import Displayed
from kinfold.rows.engines import Engine
from kinfold.rows.recoding import Recoding
from kinfold.rows.schema import AS_TEXT, Schema

Save: TypeAlias = Callable[["Release", Path, bool, DatabaseAddress | None, Stage | None], Path]


@dataclass(frozen=True, eq=False)
class Release(Displayed):
    """A verified release, not yet on disk: its rows, what was found on them, and what it cost."""

    verdict: Verdict
    measures: Measures
    policy: BoundPolicy
    terms: Terms
    plan: Plan
    schema: Schema
    seconds: float
    source: Any = field(repr=False)  # a path, an address, a frame of Spark, or a snapshot of another frame
    engine: Engine = field(repr=False)
    original: Any = field(repr=False)  # the engine's frames
    prepared: Prepared = field(repr=False)  # the original after its values were recoded: what the plan is about
    released: Any = field(repr=False)
    keep: Save = field(repr=False)  # how it gets to disk: only verified
    rules: tuple[RuleCount, ...] = ()  # what breaks the edit rules, before and after
    drawn: Drawn | None = field(default=None, repr=False)  # the records that stand for all of a far table
    lock: Any = field(default_factory=RLock, repr=False)  # the engine answers one thread at a time

    @property
    def frame(self) -> Any:
        """The released rows: the same kind of frame as the source, in its order; Arrow where it is a file.

        Each access returns a new copy of what was verified, whatever has become of the source or of earlier copies.
        """
        with self.lock:
            return self._frame()

    def _frame(self) -> Any:
        if frames.is_spark(self.source):
            return self.engine.native(self.released)
        if isinstance(self.source, Path | DatabaseAddress):
            return self.engine.rows(self.released, self.written)
        rows = self.engine.rows(self.released)
        unnamed = [name for name in self.source.index if not self.policy[name].named]
        protected = {column.name for column in self.terms.confidential}  # what they hold was counted, nulls and all
        blanked = dict.fromkeys(protected & self.engine.blanked(self.original), True)
        return self.source.recoded(rows, self.recoding, unnamed, {**blanked, **self.prepared.changed})

    @property
    def written(self) -> Schema:
        """What the columns are to whoever writes them: categories keep their text, whatever it looks like."""
        protected = {column.name for column in self.terms.confidential if column.reading == AS_TEXT}
        categories = {column.name for column in self.policy.columns if not column.kind.measured}
        return self.schema.literally(protected | categories)

    @property
    def labels(self) -> NDArray[np.int64]:
        """The equivalence class of each row of `frame`."""
        return frames.classes(self.recoding)

    @property
    def recoding(self) -> Recoding:
        """What became of each row of the source."""
        with self.lock:  # before that of the cached property, which some threads hold while they wait for this one
            return self._recoding

    @cached_property
    def _recoding(self) -> Recoding:
        return self.engine.by_row(self.prepared.frame, self.plan.recoding)

    @property
    def made_by(self) -> str:
        """The method, in how many blocks, how long its classes were refined, and whether `auto` took it."""
        spent = self.plan.refined
        refined = f", refined {spent:.0f} s" if spent >= 1 else f", refined {spent:.1f} s" if spent else ""
        taken = f" (auto: {self.plan.reason})" if self.policy.request.method.name == AUTO else ""
        blocks = f" in {self.plan.blocks:,} blocks" if self.plan.blocks else ""
        return f"{self.plan.method}{blocks}{refined}{taken}"

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return what a notebook shows."""
        return "release", {"release": self}

    def __repr__(self) -> str:
        verdict = self.verdict
        classes = f"{plural(verdict.records, 'record')} in {plural(verdict.classes, 'class', 'classes')}"
        lost = self.measures["loss"]["overall"]
        cost = "" if lost is None else f", {lost:.1%} lost"
        return f"<Release: {classes}, k = {verdict.k}{cost}, by {self.plan.method}>"

    def save(
        self,
        folder: str | Path,
        *,
        force: bool = False,
        into: str | DatabaseAddress | None = None,
        progress: Stage | None = None,
    ) -> Path:
        """Write the release folder; it gets its name only after the file in it has been verified.

        `into` is the address of a table in a database that is written, and verified, too.
        """
        if not isinstance(folder, str | Path):
            raise PolicyError(f"the folder is given as {type(folder).__name__}", fix="give a path")
        require_callable("progress", progress)
        return self.keep(self, Path(folder), force, table_at(into) if isinstance(into, str) else into, progress)
