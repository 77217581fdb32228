"""Report pages: self-contained HTML files.

    facts (for the public page: without the original)
      -> charts drawn as SVG, findings as sentences, measures as rows of tables
      -> one template; everything that is not markup is escaped

A page has no script and loads nothing. Its content security policy allows only the style sheet inside it, by hash.
The same facts give the same bytes. The catalogue of measures is passed in; a measure that it does not have is shown by
its key.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kinfold.errors import plural
from kinfold.measures.measure_table import MeasureEntry
from kinfold.release.report import sentences
from kinfold.release.report.chart import draw
from kinfold.release.report.distribution_charts import chart_class_sizes, chart_column
from kinfold.release.report.facts import ColumnFacts, Facts
from kinfold.release.report.sentences import LIMITS
from kinfold.release.report.wording import (
    NO_VALUE,
    format_count,
    format_distinct,
    format_number,
    format_percent,
    format_share,
    format_signed,
    format_value,
    keep_equations_whole,
    make_visible,
)

GROUP_TEXTS = {
    "risk": ("Risk that remains", "What an attacker can do who knows the original quasi-identifiers, or some of them."),
    "loss": ("Information lost", "The difference between the released and the original quasi-identifiers."),
    "plausibility": ("Plausibility", "Combinations that only the release has, and combinations that it lost."),
}
BEFORE_SUFFIX = "_before"  # of the group that is measured on the original alone
SHOWN_ELSEWHERE = frozenset(
    {"columns", "records", "released", "suppressed", "classes", "k", "l", "t", "p", "alpha"}
    | {"measures", "asked", "method", "start", "steps", "seconds", "notes", "shift", "structure"}
)


Catalogue: TypeAlias = Mapping[str, MeasureEntry]  # by key of the JSON contract: "risk.linkage"


@dataclass(frozen=True)
class MeasureRow:
    """One row: a title, its meaning, and a value, or one value per column."""

    title: str
    meaning: str
    value: str
    parts: tuple[tuple[str, str], ...] = ()
    scale: str = ""  # "0 to 1; less is better."
    before: str = ""  # value of the original


@dataclass(frozen=True)
class MeasureGroup:
    """Related measures, and the titles of those that do not apply to this table."""

    title: str
    text: str
    rows: tuple[MeasureRow, ...]
    absent: tuple[str, ...]


def group_measures(measures: Mapping[str, Any], catalogue: Catalogue) -> list[MeasureGroup]:
    """Return the measures by group: risk, loss, plausibility, then all others."""
    nested = {key: value for key, value in measures.items() if isinstance(value, Mapping)}
    before = {key.removesuffix(BEFORE_SUFFIX): nested.pop(key) for key in tuple(nested) if key.endswith(BEFORE_SUFFIX)}
    rest = {key: value for key, value in measures.items() if not isinstance(value, Mapping)}
    named = [key for key in dict.fromkeys((*GROUP_TEXTS, *nested)) if key in nested and key not in SHOWN_ELSEWHERE]
    groups = []
    for key in (*named, ""):
        group = nested[key] if key else {name: value for name, value in rest.items() if name not in SHOWN_ELSEWHERE}
        texts = GROUP_TEXTS.get(key, (make_visible(key).capitalize() if key else "Other measures", ""))
        prefix = f"{key}." if key else ""
        rows = tuple(_list_rows(group, before.get(key, {}), prefix, catalogue))
        absent = tuple(_get_title(prefix, name, catalogue) for name, value in group.items() if _is_empty(value))
        groups.append(MeasureGroup(*texts, rows, absent))
    return [each for each in groups if each.rows or each.absent]


def _list_rows(
    measures: Mapping[str, Any], before: Mapping[str, Any], prefix: str, catalogue: Catalogue
) -> Iterator[MeasureRow]:
    for key, value in measures.items():
        if _is_empty(value) or key in SHOWN_ELSEWHERE:
            continue
        entry = catalogue.get(prefix + key)
        title, meaning = _get_title(prefix, key, catalogue), entry.meaning if entry else ""
        scale = f"{entry.range[:1].upper()}{entry.range[1:]}; {entry.better} is better." if entry else ""
        original = _describe_original(before.get(key))
        if isinstance(value, Mapping) and value:
            parts = tuple((make_visible(str(part)), _format_measure(number)) for part, number in value.items())
            yield MeasureRow(title, meaning, "", parts, scale, original)
        else:
            yield MeasureRow(title, meaning, _format_measure("none" if value == {} else value), (), scale, original)


def _describe_original(value: object) -> str:
    if _is_empty(value):
        return ""
    if isinstance(value, Mapping):
        return ", ".join(f"{make_visible(str(part))} {_format_measure(number)}" for part, number in value.items())
    return _format_measure(value)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, Mapping) and bool(value) and all(v is None for v in value.values()))


def _format_measure(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        return make_visible(str(value))
    return format_number(value)


def _get_title(prefix: str, key: str, catalogue: Catalogue) -> str:
    entry = catalogue.get(prefix + key)
    return entry.title if entry else make_visible(key).replace("_", " ")


ROLE_TEXTS = {
    "quasi-identifier": (
        "Quasi-identifiers",
        "What others may know about a person already. They were changed until no record is unique.",
    ),
    "confidential": ("Confidential columns", "What must not be learnt about a person."),
    "other": ("Other columns", "Released as they are; nothing is promised about them."),
    "weight": ("Sampling weights", "How many people each record stands for. Rounded, or removed."),
    "remove": ("Removed columns", "Not released."),
    "identifier": ("Identifiers", "What identifies a person. Removed."),
}


@dataclass(frozen=True)
class Card:
    """One column on the page."""

    facts: ColumnFacts
    charts: tuple[Markup, ...]
    remarks: tuple[str, ...]  # not in the charts


@dataclass(frozen=True)
class RoleSection:
    """The columns of one role."""

    title: str
    text: str
    cards: tuple[Card, ...]

    @property
    def compares(self) -> bool:
        """Whether a chart shows original values."""
        return any(card.facts.original is not None for card in self.cards)


def write_page(facts: Facts, catalogue: Catalogue | None = None) -> str:
    """Return the page as HTML; a public page is built without anything about the original.

    The catalogue gives titles and meanings of measures; without it they are shown by their keys.
    """
    visible = facts if facts.internal else facts.public()
    return render_page(
        "page.html.j2",
        facts=visible,
        title=make_visible(visible.title) if visible.title.strip() else "Untitled table",
        holds=sentences.holds(visible),
        parts=list(_list_sections(visible)),
        sizes=_draw_class_sizes(visible),
        key_numbers=_list_key_numbers(visible),
        costs=_list_costs(visible),
        shift=visible.measures.get("loss", {}).get("shift", {}),
        structure=visible.measures.get("structure", {}),
        measures=group_measures(visible.measures, catalogue or {}),
        singled=_find_unique_columns(visible),
        limits=LIMITS,
    )


def render_page(template: str, **values: object) -> str:
    """Fill in a template, with the style sheet inside it and its hash for the content security policy."""
    text = files("kinfold.release.report").joinpath("templates", "page.css").read_text("utf-8")
    style = Markup(text)  # noqa: S704  a file of this package
    style_hash = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    html = get_environment().get_template(template).render(**values, style=style, style_hash=style_hash)
    return html.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be encoded


def _list_sections(facts: Facts) -> Iterator[RoleSection]:
    columns_by_role = {role: [column for column in facts.columns if column.role == role] for role in ROLE_TEXTS}
    columns_by_role["other"] += [column for column in facts.columns if column.role not in ROLE_TEXTS]
    number = 0
    for role, columns in columns_by_role.items():
        cards = []
        for column in columns:
            number += 1
            drawn = (draw(chart, f"column-{number}-{i}") for i, chart in enumerate(chart_column(column), start=1))
            charts = tuple(Markup(svg) for svg in drawn)  # noqa: S704  cleaned in chart.py
            cards.append(Card(column, charts, tuple(_list_remarks(column))))
        if cards:
            yield RoleSection(*ROLE_TEXTS[role], tuple(cards))


def _list_remarks(column: ColumnFacts) -> Iterator[str]:
    sides = {"before": column.original, "after": column.released}
    missing = {when: side.missing for when, side in sides.items() if side is not None}
    if any(missing.values()):
        counts = [f"{format_count(number)}{f' {when}' if len(missing) > 1 else ''}" for when, number in missing.items()]
        yield f"Missing values: {', '.join(counts)}."
    if column.lost is not None and column.changed is not None:
        lost, changed = format_share(column.lost), format_share(column.changed)
        yield f"Lost {lost} of its information; {changed} of its cells changed."
    if column.singles_out > 0:
        yield f"Singles out {format_share(column.singles_out)} of the records."


def _draw_class_sizes(facts: Facts) -> Markup:
    k = max((int(finding.asked) for finding in facts.findings if finding.model == "k"), default=0)
    chart = chart_class_sizes(facts.class_sizes, k)
    return Markup(draw(chart, "class-sizes")) if chart else Markup("")  # noqa: S704  cleaned in chart.py


def _list_key_numbers(facts: Facts) -> list[tuple[str, str]]:
    """Return titles and numbers; a number that this page does not have is omitted."""
    smallest = min((size for size, _ in facts.class_sizes), default=None)
    largest = max((size for size, _ in facts.class_sizes), default=None)
    average = format_number(facts.released / facts.classes, 3) if facts.classes else NO_VALUE
    numbers = [
        ("Original records", format_count(facts.records) if facts.records is not None else ""),
        ("Released records", format_count(facts.released)),
        ("Suppressed", format_count(facts.suppressed) if facts.suppressed is not None else ""),
        ("Starred", format_count(facts.starred) if facts.starred else ""),
        ("Classes", format_count(facts.classes)),
        ("Smallest class", format_count(smallest)),
        ("Average class", average),
        ("Largest class", format_count(largest)),
    ]
    return [(title, number) for title, number in numbers if number]


def _list_costs(facts: Facts) -> list[tuple[str, str, str]]:
    """Return loss and risk: titles, numbers, and the numbers of the original."""
    smallest = min((size for size, _ in facts.class_sizes), default=0)
    if not facts.released or not smallest:
        return []
    original = facts.measures.get("risk_before") or {}
    risks = [
        ("Highest risk of a record", 1 / smallest, original.get("prosecutor_max")),
        ("Mean risk of a record", facts.classes / facts.released, original.get("prosecutor_mean")),
    ]
    lost = [("Information lost", format_share(facts.lost), "")] if facts.lost is not None else []
    return lost + [
        (title, format_share(after), "" if before is None else f"before {format_share(before)}")
        for title, after, before in risks
    ]


def _find_unique_columns(facts: Facts) -> list[ColumnFacts]:
    """Return the columns that make records unique, the worst first."""
    columns = [column for column in facts.columns if column.singles_out > 0]
    return sorted(columns, key=lambda column: -column.singles_out)


def describe_unique_columns(facts: Facts) -> list[str]:
    """Return a warning for each column that makes records unique."""
    return [
        f"'{column.name}' is released as it is. {format_share(column.singles_out)} of the records have a value that no "
        "other record has."
        for column in _find_unique_columns(facts)
    ]


@cache
def get_environment() -> Environment:
    """Return the Jinja environment; everything that is not markup is escaped."""
    environment = Environment(
        loader=PackageLoader("kinfold.release.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "visible": make_visible,
        "share": format_share,
        "percent": format_percent,
        "unbroken": keep_equations_whole,
        "value": format_value,
        "signed": format_signed,
        "size": format_number,
    }
    environment.globals |= {"verdict": sentences, "apart": format_distinct, "plural": plural}
    return environment


def write_comparison_page(facts: Mapping[str, Any], svg: str) -> str:
    """Return the page of a comparison: the advice, the R-U map, and every setting."""
    return render_page("comparison.html.j2", facts=facts, chart=Markup(svg))  # noqa: S704  cleaned in chart.py


def write_reproduction_page(facts: Mapping[str, Any], charts: Mapping[str, Sequence[str]]) -> str:
    """Return the page of a reproduction; `charts` are SVG by exhibit."""
    drawn = {name: [Markup(svg) for svg in svgs] for name, svgs in charts.items()}  # noqa: S704  cleaned in chart.py
    return render_page("reproduction.html.j2", facts=facts, charts=drawn)
