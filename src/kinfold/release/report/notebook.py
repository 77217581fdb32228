"""What a notebook shows of a release, a verdict, measures, a profile or a comparison: one element with its own style.

    what it is, in a sentence
    numbers and bars, and the charts of the report pages
    nothing that needs a script or another file

Everything that is not markup is escaped, as on the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias

from markupsafe import Markup

from kinfold.release.report import class_sizes, verdict_sentences
from kinfold.release.report.chart import Picture, draw
from kinfold.release.report.facts import Facts
from kinfold.release.report.page import environment
from kinfold.release.report.spreads import pictures
from kinfold.release.report.wording import share

Parts: TypeAlias = dict[str, Any]

MOST_COLUMNS = 12  # of which charts are drawn

_numbers = count(1)  # identifiers of one notebook must not meet


def drawn(kind: str, facts: Mapping[str, Any]) -> str:
    """Return an element for a notebook."""
    parts = KINDS[kind](facts)
    return environment().get_template("notebook.html.j2").render(kind=kind, **parts)


def _release(facts: Mapping[str, Any]) -> Parts:
    from kinfold.release.description import Contents, describe

    found = describe(Contents(facts["release"]), internal=True)
    shown = [column for column in found.columns if column.role == "quasi-identifier"][:MOST_COLUMNS]
    asked = max((int(finding.asked) for finding in found.findings if finding.model == "k"), default=0)
    sizes = class_sizes.picture(found.class_sizes, asked)
    columns = [(column.name, [_drawn(each) for each in pictures(column)]) for column in shown]
    return {
        "headline": verdict_sentences.headline(found),
        "holds": verdict_sentences.holds(found),
        "made_by": facts["release"].made_by,
        "sizes": _drawn(sizes) if sizes else "",
        "columns": columns,
        **_measures(facts["release"].measures.to_dict()),
    }


def _verdict(facts: Mapping[str, Any]) -> Parts:
    verdict = facts["verdict"]
    findings = (*verdict.findings, *verdict.people)
    shown = Facts("", findings, None, verdict.records, None, verdict.classes, (), "", "", (), "")
    return {
        "headline": verdict_sentences.headline(shown) if not verdict.problems else "These rows cannot be judged.",
        "holds": verdict.holds,
        "findings": findings,
        "verdict": verdict,
    }


def _measures(facts: Mapping[str, Any]) -> Parts:
    loss, before, after = facts["loss"], facts["risk_before"], facts["risk"]
    changed = loss["changed"] or {}
    return {
        "lost": None if loss["overall"] is None else share(loss["overall"]),
        "by_column": [(name, value, changed.get(name)) for name, value in (loss["by_column"] or {}).items()],
        "risks": [
            (title, before[key], after[key])
            for title, key in (("Highest risk of a record", "prosecutor_max"), ("Mean risk", "prosecutor_mean"))
            if before[key] is not None and after[key] is not None
        ],
        "notes": list(facts["notes"]),
    }


def _profile(facts: Mapping[str, Any]) -> Parts:
    return {"profile": facts["profile"]}


def _comparison(facts: Mapping[str, Any]) -> Parts:
    return {"comparison": facts["facts"], "map": _drawn(facts["map"])}


def _drawn(picture: Picture) -> Markup:
    return Markup(draw(picture, f"kinfold-{next(_numbers)}"))  # noqa: S704  written again element by element in svg.py


KINDS: Mapping[str, Callable[[Mapping[str, Any]], Parts]] = {
    "release": _release,
    "verdict": _verdict,
    "measures": _measures,
    "profile": _profile,
    "comparison": _comparison,
}
