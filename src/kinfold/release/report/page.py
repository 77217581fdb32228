"""Report pages and notebook displays: self-contained HTML.

    facts (for the public page: without the original)
      -> charts drawn as SVG, findings as sentences, measures as rows of tables
      -> one template; everything that is not markup is escaped

A page has no script and loads nothing. Its content security policy allows only the style sheet inside it, by hash.
The same facts give the same bytes. A notebook shows a release, a verdict, measures, a profile or a comparison as one
element with its own style.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations, count
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kinfold.errors import plural
from kinfold.measures.measure_table import CATALOGUE
from kinfold.release.report import sentences
from kinfold.release.report.chart import Chart, draw
from kinfold.release.report.distribution_charts import chart_class_sizes, chart_column, chart_estimates, chart_search
from kinfold.release.report.facts import ColumnFacts, Facts
from kinfold.release.report.sentences import LIMITS, mark_name
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

if TYPE_CHECKING:
    from kinfold.models.verdict import Verdict
    from kinfold.release.release import Release

GROUP_TEXTS = {
    "risk": ("Risk that remains", "What an attacker can do who knows the original quasi-identifiers, or some of them."),
    "loss": ("Information lost", "The difference between the released and the original quasi-identifiers."),
    "plausibility": ("Plausibility", "Values and combinations that only the release has."),
}
BEFORE_SUFFIX = "_before"  # of the group that is measured on the original alone
SHOWN_ELSEWHERE = frozenset(
    {"columns", "records", "released", "suppressed", "classes", "k", "l", "t", "p", "alpha"}
    | {"measures", "asked", "method", "start", "steps", "seconds", "notes", "shift", "structure", "perturbed"}
)
MAX_CORRELATIONS = 8  # rows of the table on the page; the audit has all
MAX_CHARTED_COLUMNS = 12  # columns with charts in a notebook


def group_measures(measures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the measures by group: risk, loss, plausibility, then all others.

    A group has a title, a text, rows, and the titles of measures that do not apply to this table.
    """
    nested = {key: value for key, value in measures.items() if isinstance(value, Mapping)}
    before = {key.removesuffix(BEFORE_SUFFIX): nested.pop(key) for key in tuple(nested) if key.endswith(BEFORE_SUFFIX)}
    rest = {key: value for key, value in measures.items() if not isinstance(value, Mapping)}
    groups = []
    for key in dict.fromkeys((*GROUP_TEXTS, *nested, "")):
        group = nested.get(key, {}) if key else rest
        values = {name: value for name, value in group.items() if name not in SHOWN_ELSEWHERE}
        title, text = GROUP_TEXTS.get(key, (make_visible(key).capitalize() if key else "Other measures", ""))
        path = f"{key}." if key else ""
        rows = [
            _describe_measure(path, name, value, before.get(key, {}).get(name))
            for name, value in values.items()
            if not _is_empty(value)
        ]
        absent = [_get_title(path, name) for name, value in values.items() if _is_empty(value)]
        if (rows or absent) and key not in SHOWN_ELSEWHERE:
            groups.append({"title": title, "text": text, "rows": rows, "absent": absent})
    return groups


def _describe_measure(path: str, name: str, value: Any, before: Any) -> dict[str, Any]:
    """Return a row: a title, its meaning and scale, a value or one value per column, and the value of the original.

    A measure that the catalogue does not have is shown by its key.
    """
    entry = CATALOGUE.get(path + name)
    by_column = isinstance(value, Mapping) and bool(value)
    return {
        "title": _get_title(path, name),
        "meaning": entry.meaning if entry else "",
        "scale": f"{entry.range[:1].upper()}{entry.range[1:]}; {entry.better} is better." if entry else "",
        "value": "" if by_column else _format_measure("none" if value == {} else value),
        "parts": [(make_visible(str(part)), _format_original(v)) for part, v in value.items()] if by_column else [],
        "before": "" if _is_empty(before) else _format_original(before),
    }


def _format_original(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{make_visible(str(part))} {_format_measure(number)}" for part, number in value.items())
    return _format_measure(value)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, Mapping) and bool(value) and all(v is None for v in value.values()))


def _format_measure(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        return make_visible(str(value))
    return format_number(value)


def _get_title(path: str, name: str) -> str:
    entry = CATALOGUE.get(path + name)
    return entry.title if entry else make_visible(name).replace("_", " ")


ROLE_TEXTS = {
    "quasi-identifier": (
        "Quasi-identifiers",
        "What others may know about a person already. They were changed until no record is unique.",
    ),
    "confidential": ("Confidential columns", "What must not be learnt about a person."),
    "other": ("Other columns", "Released as they are; nothing is promised about them."),
    "weight": (
        "Sampling weights",
        "How many people each record stands for. Rounded, the mean of the class, or removed.",
    ),
    "remove": ("Removed columns", "Not released."),
    "surrogate": ("Surrogates", "Keys in the place of numbers of people: rows with one key are of one person."),
    "identifier": ("Identifiers", "What identifies a person. Removed."),
}


def write_page(facts: Facts) -> str:
    """Return the page as HTML; a public page is built without anything about the original."""
    visible = facts if facts.internal else facts.public()
    return render_page(
        "page.html.j2",
        facts=visible,
        title=make_visible(visible.title) if visible.title.strip() else "Untitled table",
        holds=sentences.holds(visible),
        sections=list(_list_sections(visible)),
        sizes=_draw_class_sizes(visible, "class-sizes"),
        search=_draw_chart(curve, "search") if (curve := chart_search(visible.curve)) else "",
        key_numbers=_list_key_numbers(visible),
        costs=_list_costs(visible),
        shift=visible.measures.get("loss", {}).get("shift", {}),
        structure=visible.measures.get("structure", {}),
        estimates=_draw_estimates(visible),
        column_changes=[
            (name, summarize_numbers(sides["before"]), summarize_numbers(sides["after"]))
            for name, sides in visible.numbers.items()
            if sides["before"] is not None
        ],
        correlation_changes=list_correlation_changes(visible.correlations),
        measures=group_measures(visible.measures),
        unique_columns=describe_unique_columns(visible),
        limits=LIMITS,
    )


def render_page(template: str, **values: object) -> str:
    """Fill in a template, with the style sheet inside it and its hash for the content security policy."""
    text = files("kinfold.release.report").joinpath("templates", "page.css").read_text("utf-8")
    style = Markup(text)  # noqa: S704  a file of this package
    style_hash = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    html = get_environment().get_template(template).render(**values, style=style, style_hash=style_hash)
    return html.encode("utf-8", "replace").decode("utf-8")  # lone surrogates cannot be encoded


MAX_CHARTED_COLUMNS = 100  # a page of more charts takes seconds to draw and is not read to its end
REMOVED = "removed"  # the treatment of a column that is not released; a reason may follow


def _list_sections(facts: Facts) -> Iterator[dict[str, Any]]:
    """Yield the columns of each role: title, text, whether a chart shows original values, and a card per column."""
    number = count(1)
    for role, (title, text) in ROLE_TEXTS.items():
        columns = [
            column for column in facts.columns if role == (column.role if column.role in ROLE_TEXTS else "other")
        ]
        removed = [c for c in columns if c.treatment.startswith(REMOVED) and c.original is None and c.released is None]
        cards = [_build_card(column, next(number)) for column in columns if column not in removed]
        if columns:
            compares = any(column.original is not None for column in columns)
            section = {"title": title, "text": text, "compares": compares, "cards": cards}
            yield {**section, "removed": _group_removed(removed)}


def _build_card(column: ColumnFacts, number: int) -> dict[str, Any]:
    """Return the card of a column: its facts, charts and remarks."""
    charted = number <= MAX_CHARTED_COLUMNS
    charts = _draw_column(column, number) if charted else []
    remarks = list(_list_remarks(column))
    if not charted:
        remarks.append(f"Only the first {MAX_CHARTED_COLUMNS} columns have charts.")
    return {"facts": column, "charts": charts, "remarks": remarks, "empty": charted and not charts}


def _group_removed(columns: Sequence[ColumnFacts]) -> list[tuple[str, str]]:
    """Return the reasons why columns were removed, each with the names of its columns."""
    reasons: dict[str, list[str]] = {}
    for column in columns:
        reason = column.treatment.removeprefix(REMOVED).removeprefix(": ")
        reasons.setdefault(reason, []).append(make_visible(column.name))
    return [(reason, ", ".join(names)) for reason, names in reasons.items()]


def _draw_column(column: ColumnFacts, number: int) -> list[Markup]:
    return [_draw_chart(chart, f"column-{number}-{i}") for i, chart in enumerate(chart_column(column), start=1)]


def _draw_chart(chart: Chart, ident: str) -> Markup:
    return Markup(draw(chart, ident))  # noqa: S704  cleaned in chart.py


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


def _draw_class_sizes(facts: Facts, ident: str) -> Markup:
    k = max((int(finding.asked) for finding in facts.findings if finding.model == "k"), default=0)
    chart = chart_class_sizes(facts.class_sizes, k)
    return _draw_chart(chart, ident) if chart else Markup("")


def _draw_estimates(facts: Facts) -> Markup:
    """Return the chart of the estimates of `report.task`, if it is a formula."""
    task = facts.measures.get("loss", {}).get("task") or {}
    chart = chart_estimates(task["task"], task["estimates"]) if task.get("estimates") else None
    return Markup(draw(chart, "estimates")) if chart else Markup("")  # noqa: S704  cleaned in chart.py


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
    measured = facts.measures.get("risk") or {}
    for title, key in (("Highest risk from outside", "journalist_max"), ("Mean risk from outside", "marketer")):
        if measured.get(key) is not None:
            risks.append((title, measured[key], None))
    lost = [("Information lost", format_share(facts.lost), "")] if facts.lost is not None else []
    return lost + [
        (title, format_share(after), "" if before is None else f"before {format_share(before)}")
        for title, after, before in risks
    ]


def summarize_numbers(side: Mapping[str, Any] | None) -> dict[str, float | str] | None:
    """Return the figures of a column of numbers by title; None if the release has no numbers."""
    if side is None:
        return None
    low, middle, high = (side["quantiles"][share] for share in ("0.05", "0.5", "0.95"))
    deviation = math.sqrt(side["variance"])  # in days for dates
    return {"Mean": side["mean"], "Deviation": deviation, "5%": low, "Median": middle, "95%": high}


def list_correlation_changes(correlations: Mapping[str, Any]) -> list[tuple[str, str, float, float]]:
    """Return the pairs of columns whose correlation changed most: both names, the correlation before and after.

    >>> grid = {"columns": ["a", "b"], "before": [[1.0, 0.5], [0.5, 1.0]], "after": [[1.0, 0.25], [0.25, 1.0]]}
    >>> list_correlation_changes(grid)
    [('a', 'b', 0.5, 0.25)]
    """
    if not correlations:
        return []
    names, before, after = correlations["columns"], correlations["before"], correlations["after"]
    pairs = [
        (names[i], names[j], before[i][j], after[i][j])
        for i, j in combinations(range(len(names)), 2)
        if before[i][j] is not None and after[i][j] is not None
    ]
    return sorted(pairs, key=lambda pair: -abs(pair[3] - pair[2]))[:MAX_CORRELATIONS]


def describe_unique_columns(facts: Facts) -> list[Markup]:
    """Return a warning for each column that makes records unique, the worst first."""
    text = Markup("{} is released as it is. {} of the records have a value that no other record has.")
    columns = sorted(facts.columns, key=lambda column: -column.singles_out)
    return [text.format(mark_name(c.name), format_share(c.singles_out)) for c in columns if c.singles_out > 0]


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


_element_numbers = count(1)  # element ids must be unique in a notebook


def draw_value(kind: str, values: Mapping[str, Any]) -> str:
    """Return an HTML element for a notebook: a release, a verdict, measures, a profile or a comparison."""
    if kind == "release":
        context = _show_release(values["release"])
    elif kind == "verdict":
        context = _show_verdict(values["verdict"])
    elif kind == "measures":
        context = _show_measures(values)
    elif kind == "comparison":
        context = {"comparison": values["facts"], "map": _draw_chart(values["map"], _make_ident())}
    else:
        context = dict(values)
    return get_environment().get_template("notebook.html.j2").render(kind=kind, **context)


def _make_ident() -> str:
    return f"kinfold-{next(_element_numbers)}"


def _show_release(release: Release) -> dict[str, Any]:
    from kinfold.release.report.description import ReleaseContents, describe

    facts = describe(ReleaseContents(release), internal=True)
    quasi = [column for column in facts.columns if column.role == "quasi-identifier"][:MAX_CHARTED_COLUMNS]
    return {
        "headline": sentences.write_headline(facts),
        "holds": sentences.holds(facts),
        "made_by": release.method_summary,
        "sizes": _draw_class_sizes(facts, _make_ident()),
        "columns": [(each.name, [_draw_chart(c, _make_ident()) for c in chart_column(each)]) for each in quasi],
        **_show_measures(release.measures.to_dict()),
    }


def _show_verdict(verdict: Verdict) -> dict[str, Any]:
    findings = verdict.all_findings
    facts = Facts("", findings, None, verdict.records, None, verdict.classes, (), "", "", (), "")
    headline = "These rows cannot be checked." if verdict.problems else sentences.write_headline(facts)
    return {"headline": headline, "holds": verdict.holds, "findings": findings, "verdict": verdict}


def _show_measures(values: Mapping[str, Any]) -> dict[str, Any]:
    loss, before, after = values["loss"], values["risk_before"], values["risk"]
    changed = loss["changed"] or {}
    return {
        "lost": None if loss["overall"] is None else format_share(loss["overall"]),
        "by_column": [(name, lost, changed.get(name)) for name, lost in (loss["by_column"] or {}).items()],
        "risks": [
            (title, before[key], after[key])
            for title, key in (("Highest risk of a record", "prosecutor_max"), ("Mean risk", "prosecutor_mean"))
            if before[key] is not None and after[key] is not None
        ],
        "notes": list(values["notes"]),
    }
