"""The report page: one HTML file that needs nothing but itself.

    facts (of the public page: without the original)
      -> charts drawn to SVG, sentences made of findings, measures put in words
      -> one template, in which everything that is not markup is escaped

The page has no script, loads nothing, and says so to the browser: its content security policy allows the one style
sheet inside it, by hash, and nothing else. The same facts give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kinfold.release.report import class_sizes, verdict_sentences, wording
from kinfold.release.report.chart import draw
from kinfold.release.report.facts import ColumnFacts, Facts
from kinfold.release.report.limits import LIMITS
from kinfold.release.report.measure_rows import Catalogue, groups
from kinfold.release.report.spreads import pictures

ROLES = {
    "quasi-identifier": (
        "Quasi-identifiers",
        "What others may know about a person already. These were changed until no record stands alone.",
    ),
    "confidential": ("Confidential columns", "What must not be learnt about a person."),
    "other": ("Other columns", "Released as they are; nothing is promised about them."),
    "identifier": ("Identifiers", "What names a person. Removed."),
}


@dataclass(frozen=True)
class Card:
    """One column as the page shows it."""

    facts: ColumnFacts
    charts: tuple[Markup, ...]
    remarks: tuple[str, ...]  # what the charts do not show


@dataclass(frozen=True)
class Part:
    """The columns of one role."""

    title: str
    text: str
    cards: tuple[Card, ...]

    @property
    def compares(self) -> bool:
        """Whether a chart shows what was there before."""
        return any(card.facts.original is not None for card in self.cards)


def page(facts: Facts, catalogue: Catalogue | None = None) -> str:
    """Return the page as HTML; a page that is not internal is made without anything about the original.

    The catalogue puts the measures in words; without it they are shown by their keys.
    """
    shown = facts if facts.internal else facts.public()
    return rendered(
        "page.html.j2",
        facts=shown,
        title=wording.visible(shown.title) if shown.title.strip() else "Untitled table",
        holds=verdict_sentences.holds(shown),
        parts=list(_parts(shown)),
        sizes=_sizes(shown),
        key_numbers=_key_numbers(shown),
        costs=_costs(shown),
        measures=groups(shown.measures, catalogue or {}),
        singled=_singled(shown),
        limits=LIMITS,
    )


def rendered(template: str, **values: object) -> str:
    """Return a template filled in, with the one style sheet inside it and its hash for the browser."""
    style = _style()
    html = (
        environment()
        .get_template(template)
        .render(
            **values,
            style=Markup(style),  # noqa: S704  a file of this package
            style_hash=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        )
    )
    return html.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be written to a file


def _parts(facts: Facts) -> Iterator[Part]:
    known = {role: [column for column in facts.columns if column.role == role] for role in ROLES}
    known["other"] += [column for column in facts.columns if column.role not in ROLES]
    number = 0
    for role, columns in known.items():
        cards = []
        for column in columns:
            number += 1
            cards.append(_card(column, f"column-{number}"))
        if cards:
            yield Part(*ROLES[role], tuple(cards))


def _card(column: ColumnFacts, ident: str) -> Card:
    made = pictures(column)
    charts = tuple(_markup(draw(picture, f"{ident}-{i}")) for i, picture in enumerate(made, start=1))
    return Card(column, charts, tuple(_remarks(column)))


def _remarks(column: ColumnFacts) -> Iterator[str]:
    sides = {"before": column.original, "after": column.released}
    missing = {when: side.missing for when, side in sides.items() if side is not None}
    if any(missing.values()):
        told = [
            f"{wording.count(number)} {when}" if len(missing) > 1 else wording.count(number)
            for when, number in missing.items()
        ]
        yield f"Missing values: {', '.join(told)}."
    if column.lost is not None and column.changed is not None:
        lost, changed = wording.share(column.lost), wording.share(column.changed)
        yield f"Lost {lost} of its information; {changed} of its cells changed."
    if column.singles_out > 0:
        yield f"Singles out {wording.share(column.singles_out)} of the records."


def _sizes(facts: Facts) -> Markup:
    asked = max((int(finding.asked) for finding in facts.findings if finding.model == "k"), default=0)
    picture = class_sizes.picture(facts.class_sizes, asked)
    return _markup(draw(picture, "class-sizes")) if picture else Markup("")


def _key_numbers(facts: Facts) -> list[tuple[str, str]]:
    """Return titles and numbers; what is not known on this page is left out."""
    smallest = min((size for size, _ in facts.class_sizes), default=None)
    largest = max((size for size, _ in facts.class_sizes), default=None)
    average = wording.quantity(facts.released / facts.classes, 3) if facts.classes else wording.NOTHING
    numbers = [
        ("Original records", wording.count(facts.records) if facts.records is not None else ""),
        ("Released records", wording.count(facts.released)),
        ("Suppressed", wording.count(facts.suppressed) if facts.suppressed is not None else ""),
        ("Starred", wording.count(facts.starred) if facts.starred else ""),
        ("Classes", wording.count(facts.classes)),
        ("Smallest class", wording.count(smallest)),
        ("Average class", average),
        ("Largest class", wording.count(largest)),
    ]
    return [(title, number) for title, number in numbers if number]


def _costs(facts: Facts) -> list[tuple[str, str, str]]:
    """Return what was lost and what is still at risk: titles, numbers, and what they were in the original."""
    smallest = min((size for size, _ in facts.class_sizes), default=0)
    if not facts.released or not smallest:
        return []
    before = facts.measures.get("risk_before") or {}
    risks = [
        ("Highest risk of a record", 1 / smallest, before.get("prosecutor_max")),
        ("Mean risk of a record", facts.classes / facts.released, before.get("prosecutor_mean")),
    ]
    lost = [("Information lost", wording.share(facts.lost), "")] if facts.lost is not None else []
    told = [(title, wording.share(now), was) for title, now, was in risks]
    return lost + [(title, now, "" if was is None else f"before {wording.share(was)}") for title, now, was in told]


def _singled(facts: Facts) -> list[ColumnFacts]:
    """Return the columns that single people out, the worst first."""
    found = [column for column in facts.columns if column.singles_out > 0]
    return sorted(found, key=lambda column: -column.singles_out)


def singled_told(facts: Facts) -> list[str]:
    """Say in plain text which columns single people out."""
    return [
        f"'{column.name}' is released as it is, and singles out {wording.share(column.singles_out)} of the records: "
        "no other record holds the same value."
        for column in _singled(facts)
    ]


def _markup(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704  written again element by element in svg.py


@cache
def _style() -> str:
    return files("kinfold.release.report").joinpath("templates", "page.css").read_text("utf-8")


@cache
def environment() -> Environment:
    """Return what fills in templates: everything is escaped that is not markup."""
    made = Environment(
        loader=PackageLoader("kinfold.release.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        name: getattr(wording, name) for name in ("visible", "share", "percent", "unbroken", "told", "signed")
    }
    made.globals |= {"verdict": verdict_sentences, "apart": wording.apart, "plural": wording.plural}
    return made
