"""The verdict: the findings on the released rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kinfold.errors import DataError, Problem, VerifyError, plural
from kinfold.models.model import Finding
from kinfold.tables.display import Displayable


@dataclass(frozen=True)
class JointDisclosure:
    """What a release discloses about people together with other releases of the same people."""

    releases: tuple[str, ...]  # the names of the others
    people: int  # in several of the releases
    k: int  # the least k of the releases
    candidates: int | None  # the fewest people that a person can be confused with, and that person
    small: Mapping[int, int]  # number of people by number of candidates, where it is below k
    values: Mapping[str, Mapping[str, Any]]  # by column: fewest values that remain, people with one, with the same set
    estimated: bool = False  # from the nearest classes, because nothing says who is in which class
    linked: bool = False  # keys show which rows are of one person: values are those of the candidates

    @property
    def sentences(self) -> list[str]:
        """The result in words."""
        names = ", ".join(f"'{name}'" for name in self.releases)
        if not self.people:
            return [f"no person is in several of these releases: this one and {names}"]
        people = plural(self.people, "person is", "people are") + " in several releases"
        if self.estimated:
            people = f"estimated from the nearest classes, for {plural(self.people, 'record')} of that release"
        least = f"anyone who combines them finds at least {plural(self.candidates or 0, 'candidate')} for each"
        lines = [f"together with {names}: {people}; {least}"]
        lines += [
            f"{plural(count, 'person has', 'people have')} only {plural(size, 'candidate')}"
            for size, count in self.small.items()
        ]
        if self.linked:
            lines.append(
                "the keys of the releases show which rows are of one person: only candidates' values are possible"
            )
        for name, figures in self.values.items():
            lines.append(
                f"{name}: at least {plural(figures['smallest'], 'value')} possible for each person, one for "
                f"{figures['one_left']:,}; {figures['same_set'] / self.people:.0%} have the same possible values "
                "in every release"
            )
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"releases": list(self.releases)}


@dataclass(frozen=True)
class Verdict(Displayable):
    """The findings on the released rows: each promise, and k, l and t even if they are not promised."""

    findings: tuple[Finding, ...]
    records: int
    classes: int
    k: int
    l: Mapping[str, int] = field(default_factory=dict)
    t: Mapping[str, float] = field(default_factory=dict)
    quasi: tuple[str, ...] = ()  # the columns that define the classes
    confidential: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    people: tuple[Finding, ...] = ()  # the promises with each person counted once per class
    statements: tuple[Finding, ...] = ()  # promises about the population, which only the data holder can check
    notes: tuple[str, ...] = ()  # promises that cannot be checked on the table: statements of the holder
    disclosure: JointDisclosure | None = None  # with other releases of the same people

    @property
    def holds(self) -> bool:
        """Whether every promise holds."""
        return not self.problems and all(finding.holds for finding in self.all_findings)

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        """The findings on rows, on people and on the population."""
        return (*self.findings, *self.people, *self.statements)

    def require(self) -> Verdict:
        """Return the verdict if every promise holds, else raise an error that lists the failures."""
        if self.holds:
            return self
        problems = [*self.problems]
        for finding in (each for each in self.all_findings if not each.holds):
            what = f"{finding.promise} does not hold: {finding.found:.4g} found, {finding.asked:.4g} required"
            classes = "class fails" if finding.failing == 1 else "classes fail"
            what += f"; {finding.failing} {classes}, the smallest with {plural(finding.smallest, 'record')}"
            problems.append(Problem(what, "do not release this file"))
        raise VerifyError(problems)

    def add_people_note(self, unit: str | None, *, required: bool = False) -> Verdict:
        """Add the note that promises about people cannot be checked, or a problem if `required`."""
        if unit is None:
            return self
        what = f"the promise about people cannot be checked from the file, because it has no column '{unit}'"
        if not required:
            return replace(self, notes=(*self.notes, f"{what}; it is a statement of the data holder"))
        fix = "leave out --require-people to check the rows only"
        return replace(self, problems=(*self.problems, Problem(what, fix)))

    def add_statement_notes(self, promises: Iterable[str]) -> Verdict:
        """Add a note for each promise about the population, which cannot be checked from the file."""
        why = "it has no people or weights of the population; it is a statement of the data holder"
        notes = (f"'{each}' cannot be checked from the file, because {why}" for each in promises)
        return replace(self, notes=(*self.notes, *notes))

    def require_columns(self) -> Verdict:
        """Return the verdict if the table has the expected columns, else raise an error."""
        if self.problems:
            raise DataError(self.problems)
        return self

    def merge(self, other: Verdict) -> Verdict:
        """Merge two verdicts on the same rows under different terms: all findings, and the worse of k, l and t."""
        new = tuple(finding for finding in other.findings if finding not in self.findings)
        return replace(
            self,
            findings=(*self.findings, *new),
            people=(*self.people, *(finding for finding in other.people if finding not in self.people)),
            k=min(self.k, other.k),
            l={**self.l, **{name: min(value, self.l.get(name, value)) for name, value in other.l.items()}},
            t={**self.t, **{name: max(value, self.t.get(name, value)) for name, value in other.t.items()}},
            quasi=tuple(dict.fromkeys((*self.quasi, *other.quasi))),
            confidential=tuple(dict.fromkeys((*self.confidential, *other.confidential))),
            problems=tuple(dict.fromkeys((*self.problems, *other.problems))),
        )

    def display(self) -> tuple[str, dict[str, Any]]:
        """Return the template and the values for a notebook."""
        return "verdict", {"verdict": self}

    def __repr__(self) -> str:
        classes = f"{plural(self.records, 'record')} in {plural(self.classes, 'class', 'classes')}, k = {self.k}"
        return f"<Verdict: {'holds' if self.holds else 'does not hold'}; {classes}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a dictionary for JSON."""
        return {
            "holds": self.holds,
            "records": self.records,
            "classes": self.classes,
            "k": self.k,
            "l": dict(self.l),
            "t": dict(self.t),
            "quasi": list(self.quasi),
            "confidential": list(self.confidential),
            "promises": [finding.to_dict() for finding in self.all_findings],
            "problems": [problem.what for problem in self.problems],
            "notes": list(self.notes),
            **({"disclosure": self.disclosure.to_dict()} if self.disclosure else {}),
        }
