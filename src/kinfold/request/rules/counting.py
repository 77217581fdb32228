"""Counting: how many records break each rule, in the table as it came and in its release.

A cell of the release that is generalized, starred or missing is not judged: records whose answer depends on it are
counted as such. Texts are known by the source: a label that never occurs there says something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kinfold.request.binding import BoundPolicy
from kinfold.request.rules.judging import Held, Values, judge, read
from kinfold.rows.engines import Engine


@dataclass(frozen=True)
class RuleCount:
    """A rule, how many records of the source and of the release break it, and of how many that is not known."""

    check: str
    before: int
    after: int
    not_judged: int

    @property
    def worse(self) -> bool:
        """Whether the release breaks the rule more often than its source."""
        return self.after > self.before


def count_rules(policy: BoundPolicy, engine: Engine, source: Any, released: Any) -> tuple[RuleCount, ...]:
    """Count what breaks the rules of a policy before and after."""
    if not policy.rules:
        return ()
    before, after = values_in(policy, engine, source), values_in(policy, engine, released, source)
    found = []
    for rule in policy.rules:
        was, now = judge(rule.tree, before), judge(rule.tree, after)
        unknown = int((~now.true & ~now.false).sum())
        found.append(RuleCount(rule.text, int(was.false.sum()), int(now.false.sum()), unknown))
    return tuple(found)


def values_in(policy: BoundPolicy, engine: Engine, frame: Any, source: Any = None) -> Values:
    """Return the columns of a table as rules read them; texts of a release that its `source` lacks are unknown."""
    wanted = dict.fromkeys(read for rule in policy.rules for read in rule.reads)
    texts = engine.collect(frame, dict.fromkeys(name for name, _ in wanted))
    known = {} if source is None else {name: _distinct(engine, source, name) for name, sort in wanted if sort == "text"}
    held: dict[tuple[str, str], Held] = {
        (name, sort): read(texts.column(name), sort, policy[name], known.get(name)) for name, sort in wanted
    }
    return lambda name, sort: held[name, sort]


def _distinct(engine: Engine, frame: Any, name: str) -> frozenset[str]:
    return frozenset(engine.collect(frame, {name: None}).column(0).drop_null().unique().to_pylist())


def in_words(counts: Sequence[RuleCount]) -> tuple[list[str], list[str]]:
    """Say what was counted: for the data holder, and, without the rules themselves, for a recipient."""
    notes = [
        f"edit rule {count.check}: broken by {count.before:,} records before and {count.after:,} after"
        + (f", {count.not_judged:,} cannot be judged" if count.not_judged else "")
        + (". MORE THAN BEFORE" if count.worse else "")
        for count in counts
    ]
    worse = [count for count in counts if count.worse]
    more = sum(count.after - count.before for count in worse)
    told = (
        f"{len(worse)} of {len(counts)} edit rules {'is' if len(worse) == 1 else 'are'} broken more often than before"
    )
    return notes, [f"{told}: by {more:,} records"] if worse else []
