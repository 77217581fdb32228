"""What a command tells when it is done: the promises, what they cost, and where the files are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from kinfold.cli.terminal import digits, out
from kinfold.cli.terminal_escapes import plain
from kinfold.release.report.wording import percent, plural, share

if TYPE_CHECKING:
    from kinfold.comparison import Comparison
    from kinfold.evaluation import Measures
    from kinfold.interchange import Conversion
    from kinfold.methods.generalize.lattice import Lattice
    from kinfold.models import Finding
    from kinfold.models.verdict import Verdict
    from kinfold.profiling.profile import Profile
    from kinfold.release.release import Release
    from kinfold.rows.databases.address import DatabaseAddress

MOST_COLUMNS = 12  # that one line tells apart


def summary(release: Release) -> dict[str, Any]:
    """Return a release in the keys of the contract."""
    asked = release.policy.request.privacy.model_dump(exclude_none=True)
    return {
        **release.measures.to_dict(),
        "asked": asked,
        "method": release.plan.method,
        "start": release.plan.start,
        "steps": release.plan.steps,
        "blocks": release.plan.blocks,
        "refined": round(release.plan.refined, 3),
        "seconds": round(release.seconds, 3),
        **({"rules": [asdict(rule) for rule in release.rules]} if release.rules else {}),
        "notes": [*release.plan.notes, *release.measures["notes"]],
    }


def tell_release(release: Release, folder: Path, table: DatabaseAddress | None = None) -> None:
    """Print what was guaranteed, what it cost and where the files are."""
    verdict, facts = release.verdict, summary(release)
    tell_findings((*verdict.findings, *verdict.people))
    left = f", {digits(facts['suppressed'])} left out" if facts["suppressed"] else ""
    classes = f"{plural(facts['released'], 'record')} in {plural(facts['classes'], 'class', 'classes')}"
    out.print(f"  {classes}{left}, by {release.made_by}", soft_wrap=True)
    _tell_loss_and_risk(facts)
    for name, found in verdict.t.items():
        values = f"at least {plural(verdict.l[name], 'different value')} a class"
        out.print(f"  {name}: {values}, distance to the whole table at most {digits(found)}")
    for note in (*release.plan.notes, *release.measures.warnings):
        out.print(Text(f"  note: {note}", style="yellow"))
    out.print(f"  may leave      {folder / 'public'}", soft_wrap=True)
    if table is not None:
        out.print(f"                 {table.described} of {table.place}", soft_wrap=True)
    out.print(f"  must not leave {folder / 'internal'}", soft_wrap=True)


def _tell_loss_and_risk(facts: Mapping[str, Any]) -> None:
    """Print the headline: what was lost on every column, and the risk of a record before and after."""
    loss, before, after = facts["loss"], facts["risk_before"], facts["risk"]
    if loss["overall"] is not None:
        parts = [f"{plain(name)} {share(value)}" for name, value in loss["by_column"].items()]
        more = [f"{len(parts) - MOST_COLUMNS + 1} more"] if len(parts) > MOST_COLUMNS else []
        shown = parts[: MOST_COLUMNS - 1] + more if more else parts
        out.print(Text(f"  information lost: {share(loss['overall'])} ({', '.join(shown)})"), soft_wrap=True)
    if loss["sse_ratio"] is not None:
        out.print(f"  variation of the numbers lost (SSE/SST): {percent(loss['sse_ratio'])}")
    risks = [(side["prosecutor_max"], side["prosecutor_mean"]) for side in (before, after)]
    if all(value is not None for side in risks for value in side):
        told = [f"{share(most)} at most, {share(mean)} on average" for most, mean in risks]
        out.print(f"  risk of a record: {told[1]}; in the original {told[0]}", soft_wrap=True)


def tell_findings(findings: Sequence[Finding]) -> None:
    """Print each promise with the value found."""
    for finding in findings:
        mark, style = ("holds", "bold green") if finding.holds else ("FAILS", "bold red")
        found = f"{digits(finding.found)} found, {digits(finding.asked)} asked"
        out.print(Text.assemble((mark, style), f"  {finding.promise}: {found}"), soft_wrap=True)


def tell_verdict(verdict: Verdict) -> None:
    """Print what was found on a table."""
    tell_findings(verdict.findings)
    classes = f"{plural(verdict.classes, 'class', 'classes')}, the smallest has {digits(verdict.k)}"
    out.print(f"  {plural(verdict.records, 'record')} in {classes}")
    out.print(Text(f"  quasi-identifiers: {', '.join(verdict.quasi)}"))
    out.print(Text(f"  confidential: {', '.join(verdict.confidential) or 'none'}"))
    for name, found in verdict.t.items():
        out.print(f"  {name}: l = {verdict.l[name]}, t = {digits(found)}")
    for note in verdict.notes:
        out.print(Text(f"  note: {note}"), soft_wrap=True)


def tell_measures(measures: Measures) -> None:
    """Print every measure that has a value, why others have none, and what an analyst still sees."""
    values = measures.to_dict()
    _tell_loss_and_risk(values)
    if "pairing" in values:
        out.print(Text(f"  rows: {values['pairing']}"), soft_wrap=True)
    table = Table(box=None, padding=(0, 2))
    table.add_column("measure")
    table.add_column("value", justify="right")
    for name, value in _flat(values):
        table.add_row(Text(plain(name)), digits(value))
    out.print(table)
    _tell_numbers(measures.statistics.numbers)
    for note in values.get("notes", ()):
        out.print(Text(f"  {note}", style="dim"), soft_wrap=True)


def _tell_numbers(columns: Mapping[str, Any]) -> None:
    """Print mean and standard deviation of each column that is numbers before and after."""
    table = Table(box=None, padding=(0, 2))
    for name in ("column", "mean", "after", "deviation", "after"):
        table.add_column(name, justify="left" if name == "column" else "right", no_wrap=True)
    for name, sides in columns.items():
        if sides["before"] and sides["after"]:
            means = [side["mean"] for side in sides.values()]
            deviations = [digits(side["variance"] ** 0.5) for side in sides.values()]
            table.add_row(Text(plain(name)), *(m if isinstance(m, str) else digits(m) for m in means), *deviations)
    if table.row_count:
        out.print()
        out.print(table)


def _flat(values: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{above}{key}.")
        elif isinstance(value, list):
            rows += [row for part in value if isinstance(part, Mapping) for row in _flat_subset(part, above + key)]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            rows.append((above + key, value))
    return rows


def _flat_subset(part: Mapping[str, Any], name: str) -> list[tuple[str, Any]]:
    columns = " + ".join(part.get("columns", ()))
    return [(f"{name} on {columns}", part.get("linkage"))]


def tell_conversion(made: Conversion, folder: Path) -> None:
    """Print what could not be carried over, where the files are, and how to go on."""
    for note in made.notes:
        out.print(Text(f"  note: {note}", style="yellow"), soft_wrap=True)
    data = "DATA" if made.data is None else str(folder / "data.csv")
    if made.data is not None:
        out.print(f"  the data       {data}, as it was: it must not leave", soft_wrap=True)
    held = f", with {plural(len(made.hierarchies), 'hierarchy', 'hierarchies')}" if made.data is not None else ""
    out.print(f"  the policy     {folder / 'policy.toml'}{held}", soft_wrap=True)
    run = f"kinfold anonymize {data} --policy {folder / 'policy.toml'} --out release"
    out.print()
    out.print(f"check the policy, then: {run}", soft_wrap=True)


def tell_profile(profile: Profile) -> None:
    """Print the columns, the combinations that single people out, and what to mind."""
    table = Table(box=None, padding=(0, 2, 0, 0), title=plural(profile.rows, "record"), title_justify="left")
    for name in ("column", "kind"):
        table.add_column(name)
    for name in ("values", "missing", "unique"):
        table.add_column(name, justify="right")
    table.add_column("role to start from")
    for column in profile.columns:
        cells = (digits(column.distinct), digits(column.missing), f"{column.unique:.1%}")
        table.add_row(Text(plain(column.name)), column.kind, *cells, column.role)
    out.print(table)
    _tell_source(profile)
    _tell_reasons(profile)
    if profile.combinations:
        out.print()
        out.print("combinations that single people out")
    for combination in profile.combinations:
        out.print(Text(f"  {combination.unique:6.1%}  {' + '.join(combination.columns)}"))
    for warning in profile.warnings:
        out.print()
        out.print(Text(f"warning: {warning}", style="yellow"), soft_wrap=True)


def _tell_source(profile: Profile) -> None:
    """Print how the table is written: what was found out or guessed, as the keys of [source]."""
    if profile.source or profile.readings:
        keys = ", ".join(f"{key} = {value!r}" for key, value in profile.source.items())
        out.print()
        out.print(Text(f"read with: {keys or 'nothing special'}"))
    for reading in profile.readings:
        out.print(Text(f"  {reading}"), soft_wrap=True)


def _tell_reasons(profile: Profile) -> None:
    """Print why each role is proposed, columns of the same reason together."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for column in profile.columns:
        reasons.setdefault((column.role, column.reason), []).append(plain(column.name))
    if reasons:
        out.print()
        out.print("why these roles")
    for (role, reason), names in reasons.items():
        out.print(Text.assemble(f"  {', '.join(names)}: ", (f"{role}; {reason}", "dim")), soft_wrap=True)
    if profile.unit is not None:
        whose = "a person" if profile.unit.people else "a household, perhaps"
        out.print(Text(f"  rows of {whose}: {plain(profile.unit.column)} (privacy.unit)"), soft_wrap=True)
    if profile.sampling_weights is not None:
        out.print(Text(f"  weights: {plain(profile.sampling_weights)} (report.sampling_weights)"), soft_wrap=True)


def tell_comparison(comparison: Comparison, folder: Path) -> None:
    """Print the settings from the best score to the worst, the advice, and where the map is."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("method")
    for name in ("k", "t", "risk", "loss", "score", "front"):
        table.add_column(name, justify="right")
    for each in comparison.ranked:
        t = "" if each.setting.t is None else digits(each.setting.t)
        numbers = (percent(each.risk), percent(each.loss), f"{each.score:.2f}", "*" if each.best else "")
        table.add_row(each.setting.method, str(each.setting.k), t, *numbers)
    out.print(table)
    for setting, reason in comparison.failed:
        out.print(Text(f"not possible: {setting}: {reason}", style="yellow"), soft_wrap=True)
    out.print()
    out.print(comparison.advice(), soft_wrap=True)
    out.print(f"  {folder / 'comparison.html'}", soft_wrap=True)


def tell_lattice(lattice: Lattice) -> None:
    """Print the optimum and the minimal generalizations."""
    names = lattice.nodes.domain.names
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in (*names, "outliers", "classes", "loss", "Prec"):
        table.add_column(Text(plain(name)), justify="right")
    minimal = lattice.minimal()
    for node in sorted(minimal, key=lambda each: each.rank):
        mark = "bold green" if lattice.best and node.levels == lattice.best.levels else ""
        cells = (
            *map(str, node.levels),
            digits(node.outliers),
            digits(node.classes),
            digits(node.loss),
            digits(node.prec),
        )
        table.add_row(*cells, style=mark)
    out.print(f"{lattice.size:,} generalizations, {len(minimal):,} of them minimal")
    out.print(table)
    if lattice.best:
        proved = "the optimum" if lattice.proved else "the best found"
        out.print(f"{proved}: {', '.join(f'{n} {level}' for n, level in zip(names, lattice.best.levels, strict=True))}")
