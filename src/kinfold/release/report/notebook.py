"""Notebook display of a release, a verdict, measures, a profile or a comparison: one element with its own style.

It has a headline, numbers, bars and the charts of the report pages. It needs no script and no other file, and
everything that is not markup is escaped, as on the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, TypeAlias

from markupsafe import Markup

from kinfold.release.report.chart import Chart, draw
from kinfold.release.report.distribution_charts import chart_class_sizes, chart_column
from kinfold.release.report.facts import Facts
from kinfold.release.report.page import get_environment
from kinfold.release.report.sentences import holds, write_headline
from kinfold.release.report.wording import format_share

TemplateValues: TypeAlias = dict[str, Any]

MAX_CHARTED_COLUMNS = 12  # columns with charts

_numbers = count(1)  # element ids must be unique in a notebook


def draw_value(kind: str, values: Mapping[str, Any]) -> str:
    """Return an HTML element for a notebook."""
    return get_environment().get_template("notebook.html.j2").render(kind=kind, **RENDERERS[kind](values))


def _show_release(values: Mapping[str, Any]) -> TemplateValues:
    from kinfold.release.report.description import ReleaseContents, describe

    facts = describe(ReleaseContents(values["release"]), internal=True)
    quasi = [column for column in facts.columns if column.role == "quasi-identifier"][:MAX_CHARTED_COLUMNS]
    k = max((int(finding.asked) for finding in facts.findings if finding.model == "k"), default=0)
    sizes = chart_class_sizes(facts.class_sizes, k)
    columns = [(column.name, [_draw_chart(each) for each in chart_column(column)]) for column in quasi]
    return {
        "headline": write_headline(facts),
        "holds": holds(facts),
        "made_by": values["release"].method_summary,
        "sizes": _draw_chart(sizes) if sizes else "",
        "columns": columns,
        **_show_measures(values["release"].measures.to_dict()),
    }


def _show_verdict(values: Mapping[str, Any]) -> TemplateValues:
    verdict = values["verdict"]
    findings = (*verdict.findings, *verdict.people)
    facts = Facts("", findings, None, verdict.records, None, verdict.classes, (), "", "", (), "")
    return {
        "headline": write_headline(facts) if not verdict.problems else "These rows cannot be checked.",
        "holds": verdict.holds,
        "findings": findings,
        "verdict": verdict,
    }


def _show_measures(values: Mapping[str, Any]) -> TemplateValues:
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


def _draw_chart(chart: Chart) -> Markup:
    return Markup(draw(chart, f"kinfold-{next(_numbers)}"))  # noqa: S704  cleaned in chart.py


RENDERERS: Mapping[str, Callable[[Mapping[str, Any]], TemplateValues]] = {
    "release": _show_release,
    "verdict": _show_verdict,
    "measures": _show_measures,
    "profile": dict,
    "comparison": lambda values: {"comparison": values["facts"], "map": _draw_chart(values["map"])},
}
