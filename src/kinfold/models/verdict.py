"""The verdict: what was found on the rows as released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kinfold.errors import DataError, Problem, VerifyError, plural
from kinfold.models.finding import Finding
from kinfold.rows.displayed import Displayed


@dataclass(frozen=True)
class Verdict(Displayed):
    """What was found on the rows as released: each promise, and k, l and t whether promised or not."""

    findings: tuple[Finding, ...]
    records: int
    classes: int
    k: int
    l: Mapping[str, int] = field(default_factory=dict)
    t: Mapping[str, float] = field(default_factory=dict)
    quasi: tuple[str, ...] = ()  # the columns that were grouped by
    confidential: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    people: tuple[Finding, ...] = ()  # the promises again, each person counted once in a class
    notes: tuple[str, ...] = ()  # promises that the table cannot show: the statement of whoever released it

    @property
    def holds(self) -> bool:
        """Whether every promise holds."""
        return not self.problems and all(finding.holds for finding in (*self.findings, *self.people))

    def require(self) -> Verdict:
        """Return the verdict if every promise holds, else raise with what is missed and by how much."""
        if self.holds:
            return self
        missed = [_missed(finding) for finding in (*self.findings, *self.people) if not finding.holds]
        raise VerifyError([*self.problems, *missed])

    def of_rows(self, unit: str | None, *, required: bool = False) -> Verdict:
        """Return the verdict with the note that promises about people cannot be checked; a problem if `required`."""
        if unit is None:
            return self
        what = f"the promise about people cannot be checked from the file: '{unit}', which names them, is not in it"
        if not required:
            return replace(self, notes=(*self.notes, f"{what}; it is the statement of whoever released the file"))
        fix = "leave out --require-people to check the rows alone"
        return replace(self, problems=(*self.problems, Problem(what, fix)))

    def require_columns(self) -> Verdict:
        """Return the verdict if the table has the columns it should have, else raise."""
        if self.problems:
            raise DataError(self.problems)
        return self

    def also(self, other: Verdict) -> Verdict:
        """Return what two checks of the same rows found, by other terms each: every promise, the worse figures."""
        new = tuple(finding for finding in other.findings if finding not in self.findings)
        return replace(
            self,
            findings=(*self.findings, *new),
            k=min(self.k, other.k),
            l={**self.l, **{name: min(found, self.l.get(name, found)) for name, found in other.l.items()}},
            t={**self.t, **{name: max(found, self.t.get(name, found)) for name, found in other.t.items()}},
            quasi=tuple(dict.fromkeys((*self.quasi, *other.quasi))),
            confidential=tuple(dict.fromkeys((*self.confidential, *other.confidential))),
            problems=tuple(dict.fromkeys((*self.problems, *other.problems))),
        )

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return what a notebook shows."""
        return "verdict", {"verdict": self}

    def __repr__(self) -> str:
        classes = f"{plural(self.records, 'record')} in {plural(self.classes, 'class', 'classes')}, k = {self.k}"
        return f"<Verdict: {'holds' if self.holds else 'does not hold'}; {classes}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values."""
        return {
            "holds": self.holds,
            "records": self.records,
            "classes": self.classes,
            "k": self.k,
            "l": dict(self.l),
            "t": dict(self.t),
            "quasi": list(self.quasi),
            "confidential": list(self.confidential),
            "promises": [asdict(finding) for finding in (*self.findings, *self.people)],
            "problems": [problem.what for problem in self.problems],
            "notes": list(self.notes),
        }


def _missed(finding: Finding) -> Problem:
    what = f"{finding.promise} does not hold: {finding.found:.4g} found, {finding.asked:.4g} asked"
    classes = "class misses" if finding.failing == 1 else "classes miss"
    return Problem(
        f"{what}; {finding.failing} {classes} it, the smallest with {plural(finding.smallest, 'record')}",
        "do not release this file",
    )
