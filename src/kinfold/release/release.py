"""A verified release in memory: its rows, its verdict and its measures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import check_arguments, plural
from kinfold.measures.measurement import Measures
from kinfold.measures.pairing import Sample
from kinfold.methods.plan import Plan
from kinfold.models.terms import Terms
from kinfold.models.verdict import Verdict
from kinfold.policy.binding import BoundPolicy
from kinfold.policy.preparation import PreparedTable
from kinfold.policy.registry import AUTO
from kinfold.policy.rule_checks import RuleCount
from kinfold.progress import StageProgress
from kinfold.tables import frames
from kinfold.tables.databases.address import DatabaseAddress, parse_table_address
from kinfold.tables.display import Displayable
from kinfold.tables.engine import Engine
from kinfold.tables.queries import collect_rows, label_rows
from kinfold.tables.recoding import Recoding
from kinfold.tables.schema import AS_TEXT, Schema
from kinfold.tables.text_values import quote_columns

if TYPE_CHECKING:
    from kinfold.release.several_releases import ReleasedPeople


@dataclass(frozen=True, eq=False)
class Release(Displayable):
    """A verified release in memory: its rows, its verdict and its measures. `save` writes it."""

    verdict: Verdict
    measures: Measures
    policy: BoundPolicy
    terms: Terms
    plan: Plan
    schema: Schema
    seconds: float
    source: Any = field(repr=False)  # a path, a database address, a Spark frame, or a snapshot of another frame
    engine: Engine = field(repr=False)
    original: Any = field(repr=False)  # frame of the engine
    prepared: PreparedTable = field(repr=False)  # the original with single values recoded; the plan recodes this
    released: Any = field(repr=False)
    rules: tuple[RuleCount, ...] = ()  # violations of the edit rules, before and after
    sample: Sample | None = field(default=None, repr=False)  # records that represent a large table
    earlier: tuple[ReleasedPeople, ...] = field(default=(), repr=False)  # releases of the same people
    lock: Any = field(default_factory=RLock, repr=False)  # the engine serves one thread at a time

    @property
    def frame(self) -> Any:
        """The released rows as the same kind of frame as the source, in its order; Arrow if the source is a file.

        Each access returns a new copy of the verified rows. Changes to the source or to earlier copies have no effect.
        """
        quoted = self.policy.request.output.spreadsheet_safe
        quote = quote_columns if quoted else lambda rows: rows
        with self.lock:
            if frames.is_spark(self.source):
                cluster: Any = self.engine
                return cluster.to_spark(self.released, quoted=quoted)
            if isinstance(self.source, Path | DatabaseAddress):
                return quote(collect_rows(self.engine, self.released, self.output_schema))
            rows = quote(collect_rows(self.engine, self.released))
            unnamed = [name for name in self.source.index if not self.policy[name].in_policy]
            # the check counted the values of confidential columns, nulls included
            blanked = {c.name: True for c in self.terms.confidential if c.name in self.original.blanked}
            forms = dict.fromkeys(self.policy.request.form.get_columns(self.schema.names), True)  # codes and units
            changed = {**forms, **blanked, **self.prepared.changed}
            return self.source.recode(rows, self.recoding, unnamed, changed, quoted=quoted)

    @property
    def output_schema(self) -> Schema:
        """The schema for writing: categories and confidential texts keep their exact text."""
        literal = {column.name for column in self.terms.confidential if column.reading == AS_TEXT}
        literal |= {column.name for column in self.policy.columns if not column.kind.is_numeric}
        columns = (replace(column, literal=column.literal or column.name in literal) for column in self.schema)
        return replace(self.schema, columns=tuple(columns))

    @property
    def labels(self) -> NDArray[np.int64]:
        """The equivalence class of each row of `frame`."""
        return frames.number_classes(self.recoding, self.policy.quasi)

    @property
    def recoding(self) -> Recoding:
        """The recoding of each row of the source."""
        with self.lock:  # first, because a thread inside the cached property may wait for this lock
            return self._recoding

    @cached_property
    def _recoding(self) -> Recoding:
        return label_rows(self.engine, self.prepared.frame, self.plan.recoding)

    @property
    def method_summary(self) -> str:
        """The method, its number of blocks, its seconds of refinement, and the reason of `auto`."""
        seconds = self.plan.refine_seconds
        refined = f", refined {seconds:.{0 if seconds >= 1 else 1}f} s" if seconds else ""
        reason = f" (auto: {self.plan.reason})" if self.policy.request.method.name == AUTO else ""
        blocks = f" in {self.plan.blocks:,} blocks" if self.plan.blocks else ""
        return f"{self.plan.method}{blocks}{refined}{reason}"

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return the kind of display and its values for a notebook."""
        return "release", {"release": self}

    def __repr__(self) -> str:
        verdict = self.verdict
        classes = f"{plural(verdict.records, 'record')} in {plural(verdict.classes, 'class', 'classes')}"
        overall = self.measures["loss"]["overall"]
        loss = "" if overall is None else f", {overall:.1%} lost"
        return f"<Release: {classes}, k = {verdict.k}{loss}, by {self.plan.method}>"

    @check_arguments
    def save(
        self,
        folder: str | Path,
        *,
        force: bool = False,
        into: str | DatabaseAddress | None = None,
        progress: StageProgress | None = None,
    ) -> Path:
        """Write the release folder and return its path. The folder gets its name only after its file is verified.

        `into` is the address of a database table that is written and verified as well.
        """
        from kinfold.release.folder import save

        address = parse_table_address(into) if isinstance(into, str) else into
        return save(self, Path(folder), force=force, into=address, progress=progress)
