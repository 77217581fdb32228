"""What a release promises, what was found on it, and the certificate that travels with it.

`Terms` are what a check needs to know and nothing more: which columns are what, and the models. They come from a policy
bound to a table, or from a certificate; either way the check is the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from kinfold.errors import DataError, Problem, VerifyError
from kinfold.hierarchy import Hierarchy
from kinfold.models import Finding, Model
from kinfold.schema import AS_TEXT, Kind, Reading

CERTIFICATE_FORMAT = 2


@dataclass(frozen=True, eq=False)
class Confidential:
    """A confidential column as a check sees it: how its values are told apart and how far apart they are."""

    name: str
    kind: str
    distance: str
    order: tuple[str, ...] | None = None
    hierarchy: Hierarchy | None = None
    date_format: str | None = None  # how dates are written, where they are text and not as ISO 8601 writes them

    @property
    def reading(self) -> Reading:
        """How its values are read: a declared order and a hierarchy are over texts."""
        if self.kind == Kind.NOMINAL or self.order is not None or self.hierarchy is not None:
            return AS_TEXT
        return Reading("moment", self.date_format) if self.kind == Kind.DATE else Reading("number")


@dataclass(frozen=True, eq=False)
class Terms:
    """The columns of a release and what is promised of them."""

    quasi: tuple[str, ...]
    confidential: tuple[Confidential, ...]
    other: tuple[str, ...]
    removed: tuple[str, ...]  # identifiers: must not be there
    models: tuple[Model, ...]
    joint: bool = False  # a promise about one confidential column holds for whoever knows the others
    unit: str | None = None  # whom k, l and t count, where that is not rows: only the column itself could show it


@dataclass(frozen=True)
class Verdict:
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

    def of_rows(self, unit: str | None) -> Verdict:
        """Return the verdict with the problem that nothing here shows what holds for people, where that is promised."""
        if unit is None:
            return self
        what = (
            f"whether the promises hold for people cannot be checked: '{unit}', which names them, is not in the release"
        )
        return replace(self, problems=(*self.problems, Problem(what, "check the rows alone with --rows-only")))

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
        }


def _missed(finding: Finding) -> Problem:
    what = f"{finding.promise} does not hold: {finding.found:.4g} found, {finding.asked:.4g} asked"
    classes = "class misses" if finding.failing == 1 else "classes miss"
    return Problem(
        f"{what}; {finding.failing} {classes} it, the smallest with {finding.smallest} records",
        "do not release this file",
    )


@dataclass(frozen=True)
class Certificate:
    """What a recipient needs to check the promises, and nothing about the original."""

    content: Mapping[str, Any]

    @classmethod
    def read(cls, text: str) -> Certificate:
        """Read a certificate and check it against its own checksum."""
        try:
            content = json.loads(text, parse_constant=_refused)
            checksum = content.pop("checksum")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise DataError("the certificate cannot be read", fix="ask for the release again") from None
        if checksum != _digest(content):
            raise VerifyError("the certificate was changed after it was made", fix="ask for the release again")
        if content.get("format") != CERTIFICATE_FORMAT:
            raise DataError("the certificate is of another version", fix="update kinfold")
        return cls(content)

    def text(self) -> str:
        """Return the certificate as JSON, with its checksum."""
        return json.dumps({**self.content, "checksum": _digest(self.content)}, indent=2, ensure_ascii=False) + "\n"


def _refused(constant: str) -> Any:
    raise ValueError(constant)  # NaN and Infinity are no JSON


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
