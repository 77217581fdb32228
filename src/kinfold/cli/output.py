"""What the commands print: promises, loss and risk, and where the files are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kinfold.cli.terminal import escape_unprintable, format_number, out
from kinfold.errors import plural
from kinfold.release.report.wording import NO_VALUE, describe_shift, format_percent, format_share, summarize_loss

if TYPE_CHECKING:
    from kinfold.comparison import Comparison
    from kinfold.comparison.advice import Advice
    from kinfold.comparison.difference import Difference
    from kinfold.convert import Conversion
    from kinfold.measures.measurement import Measures
    from kinfold.methods.generalize.lattice import Lattice
    from kinfold.models import Finding
    from kinfold.models.verdict import Verdict
    from kinfold.papers import ExhibitOutcome, Reproduction
    from kinfold.papers.exhibits import CellVerdict
    from kinfold.profiling.profile import Profile
    from kinfold.release.release import Release
    from kinfold.tables.databases.address import DatabaseAddress

MAX_SHIFTS = 4  # columns that moved and rules that broke; the internal report has all
MAX_COLUMNS_IN_LINE = 12  # more columns are summed up as "n more"
MAX_EXHIBIT_CELLS = 16  # a larger exhibit shows at most so many cells, those that do not match
VERDICT_STYLES = {"match": "green", "close": "cyan", "differs": "yellow", "not-computable": "dim"}


def make_table(*left: str, right: Sequence[str], no_wrap: bool = False) -> Table:
    """Return a table without lines: columns of texts on the left, then columns of numbers."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in left:
        table.add_column(Text(name), no_wrap=no_wrap)
    for name in right:
        table.add_column(Text(name), justify="right", no_wrap=no_wrap)
    return table


def summarize(release: Release, *, show_values: bool = False) -> dict[str, Any]:
    """Return a release in the JSON keys of the contract; categories that moved are named with `show_values` only."""
    return {
        **release.measures.to_dict(show_values=show_values),
        "asked": release.policy.request.privacy.model_dump(exclude_none=True),
        "method": release.plan.method,
        "start": release.plan.start,
        "steps": release.plan.steps,
        "blocks": release.plan.blocks,
        "refined": round(release.plan.refine_seconds, 3),
        "seconds": round(release.seconds, 3),
        **({"rules": [asdict(rule) for rule in release.rules]} if release.rules else {}),
        "notes": [*release.plan.notes, *release.measures["notes"]],
    }


def print_release(
    release: Release, folder: Path, table: DatabaseAddress | None = None, *, show_values: bool = False
) -> None:
    """Print the promises, the loss and the risk, and where the files are."""
    verdict, facts = release.verdict, summarize(release)
    print_findings(verdict.all_findings)
    suppressed = f", {format_number(facts['suppressed'])} suppressed" if facts["suppressed"] else ""
    classes = f"{plural(facts['released'], 'record')} in {plural(facts['classes'], 'class', 'classes')}"
    out.print(f"  {classes}{suppressed}, by {release.method_summary}")
    _print_loss_and_risk(facts)
    _print_shift(release.measures["loss"]["shift"], show_values=show_values)
    _print_structure(release.measures["structure"], show_values=show_values)
    for name, distance in verdict.t.items():
        values = f"at least {plural(verdict.l[name], 'different value')} in each class"
        out.print(f"  {name}: {values}, distance to the whole table at most {format_number(distance)}")
    for note in (*release.plan.notes, *release.measures.warnings):
        out.print(Text(f"  note: {note}", style="yellow"))
    if table is not None:
        out.print(f"  also written: {table.description} of {table.place}")
    out.print(f"  share: {folder / 'public'}, keep private: {folder / 'internal'}")


def _print_loss_and_risk(facts: Mapping[str, Any]) -> None:
    """Print the loss of each column, and the risk of a record before and after."""
    loss, before, after = facts["loss"], facts["risk_before"], facts["risk"]
    if loss["overall"] is not None:
        parts = [f"{escape_unprintable(name)} {format_share(value)}" for name, value in loss["by_column"].items()]
        more = [f"{len(parts) - MAX_COLUMNS_IN_LINE + 1} more"] if len(parts) > MAX_COLUMNS_IN_LINE else []
        parts_in_line = parts[: MAX_COLUMNS_IN_LINE - 1] + more if more else parts
        out.print(Text(f"  information lost: {format_share(loss['overall'])} ({', '.join(parts_in_line)})"))
    if summary := summarize_loss(facts):
        out.print(f"  {summary}")
    if "estimates" in (task := loss.get("task") or {}):
        inside, every = sum(each["inside"] for each in task["estimates"]), len(task["estimates"])
        estimates = f"{inside} of {plural(every, 'estimate')} inside the confidence intervals of the original"
        out.print(Text(f"  {escape_unprintable(task['task'])}: {estimates}"))
    if loss["sse_ratio"] is not None:
        out.print(f"  variation of the numbers lost (SSE/SST): {format_percent(loss['sse_ratio'])}")
    risks = [(side["prosecutor_max"], side["prosecutor_mean"]) for side in (before, after)]
    if all(value is not None for side in risks for value in side):
        original, released = (f"{format_share(most)} at most, {format_share(mean)} on average" for most, mean in risks)
        out.print(f"  risk of a record: {released}; in the original {original}")


def _print_shift(shift: Mapping[str, Any], *, show_values: bool) -> None:
    """Print what moved in the distributions of the columns, the largest move first."""
    for name in [*shift][:MAX_SHIFTS]:
        out.print(Text(f"  moved: {escape_unprintable(describe_shift(name, shift[name], show_values=show_values))}"))
    if len(shift) > MAX_SHIFTS:
        out.print(f"  moved: {plural(len(shift) - MAX_SHIFTS, 'more column')}, see the internal report")


def _print_structure(structure: Mapping[str, Any], *, show_values: bool) -> None:
    """Print the rules between columns that the release breaks, the worst first."""
    for each in structure["broken"][:MAX_SHIFTS]:
        hidden = each["kind"] == "implication" and not show_values  # its text has values
        rule = f"a rule of {' and '.join(each['columns'])}" if hidden else each["check"]
        records = f"{format_number(each['after'])} of {plural(structure['records'], 'record')}"
        out.print(Text(f"  broken: {escape_unprintable(rule)}, in {records}"))
    if len(structure["broken"]) > MAX_SHIFTS:
        out.print(f"  broken: {plural(len(structure['broken']) - MAX_SHIFTS, 'more rule')}, see the internal report")


def print_findings(findings: Sequence[Finding]) -> None:
    """Print each promise with the value found, the value required, and whether it holds."""
    for finding in findings:
        values = f"{format_number(finding.found)} found, {format_number(finding.asked)} required"
        result = ("holds", "bold green") if finding.holds else ("FAILS", "bold red")
        out.print(Text.assemble(f"{finding.promise}: {values}, ", result))


def print_verdict(verdict: Verdict) -> None:
    """Print the verdict on a table."""
    print_findings(verdict.all_findings)
    classes = f"{plural(verdict.classes, 'class', 'classes')}, the smallest has {format_number(verdict.k)}"
    out.print(f"  {plural(verdict.records, 'record')} in {classes}")
    out.print(Text(f"  quasi-identifiers: {', '.join(verdict.quasi)}"))
    out.print(Text(f"  confidential: {', '.join(verdict.confidential) or 'none'}"))
    for name, distance in verdict.t.items():
        out.print(f"  {name}: l = {verdict.l[name]}, t = {format_number(distance)}")
    for note in (*verdict.notes, *(verdict.disclosure.sentences if verdict.disclosure else ())):
        out.print(Text(f"  note: {note}"))


def print_measures(measures: Measures, *, show_values: bool) -> None:
    """Print every measure that has a value, the reasons for missing ones, and statistics before and after."""
    values = {**measures.to_dict(), "loss": dict(measures["loss"])}
    _print_loss_and_risk(values)
    _print_shift(values["loss"].pop("shift"), show_values=show_values)
    _print_structure(values.pop("structure"), show_values=show_values)
    if "pairing" in values:
        out.print(Text(f"  rows: {values['pairing']}"))
    table = make_table("measure", right=["value"])
    table.padding = (0, 2)
    for name, value in _flatten(values):
        table.add_row(Text(escape_unprintable(name)), format_number(value))
    out.print(table)
    _print_numbers(measures.statistics.numbers)
    for note in values.get("notes", ()):
        out.print(Text(f"  {note}", style="dim"))


def _print_numbers(columns: Mapping[str, Any]) -> None:
    """Print mean and standard deviation of each numeric column, before and after."""
    table = make_table("column", right=["mean", "after", "deviation", "after"], no_wrap=True)
    table.padding = (0, 2)
    for name, sides in columns.items():
        if sides["before"] and sides["after"]:
            means = [side["mean"] for side in sides.values()]
            cells = [mean if isinstance(mean, str) else format_number(mean) for mean in means]
            cells += [format_number(side["variance"] ** 0.5) for side in sides.values()]
            table.add_row(Text(escape_unprintable(name)), *cells)
    if table.row_count:
        out.print()
        out.print(table)


def _flatten(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            rows += _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            subsets = [subset for subset in value if isinstance(subset, Mapping) and "linkage" in subset]
            rows += [(f"{prefix}{key} on {' + '.join(s.get('columns', ()))}", s.get("linkage")) for s in subsets]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            rows.append((prefix + key, value))
    return rows


def print_conversion(conversion: Conversion, folder: Path) -> None:
    """Print what could not be converted, where the files are, and the next command."""
    for note in conversion.notes:
        out.print(Text(f"  note: {note}", style="yellow"))
    data, hierarchies = "DATA", ""
    if conversion.data is not None:
        data = str(folder / "data.csv")
        hierarchies = f", with {plural(len(conversion.hierarchies), 'hierarchy', 'hierarchies')}"
        out.print(f"  data: {data}, the original records: keep them private")
    out.print(f"  policy: {folder / 'policy.toml'}{hierarchies}")
    out.print()
    command = f"kinfold anonymize {data} --policy {folder / 'policy.toml'} --out release"
    out.print(f"check the policy, then: {command}")


def print_profile(profile: Profile) -> None:
    """Print the columns, the combinations that single people out, and warnings."""
    table = make_table("column", "kind", right=["values", "missing", "unique"])
    table.title, table.title_justify = plural(profile.rows, "record"), "left"
    table.add_column("proposed role")
    for column in profile.columns:
        cells = (format_number(column.distinct), format_number(column.missing), f"{column.unique:.1%}")
        role = "undecided" if column.undecided else column.role
        table.add_row(Text(escape_unprintable(column.name)), column.kind, *cells, role)
    out.print(table)
    _print_source(profile)
    _print_reasons(profile)
    if profile.combinations:
        out.print()
        out.print("combinations that single people out")
    for combination in profile.combinations:
        out.print(Text(f"  {combination.unique:6.1%}  {' + '.join(combination.columns)}"))
    for warning in profile.warnings:
        out.print()
        out.print(Text(f"warning: {warning}", style="yellow"))
    _print_questions(profile)


def _print_questions(profile: Profile) -> None:
    """Print what the steward has to answer before a release."""
    if profile.questions:
        out.print()
        out.print("questions to answer before a release")
    for each in profile.questions:
        out.print(Text(f"  {each.name}: {escape_unprintable(each.question)}"), soft_wrap=True)
        proposal = f"proposed: {each.proposed}; answers: {', '.join(each.answers)}"
        out.print(Text(escape_unprintable(f"    seen: {each.seen}"), style="dim"), soft_wrap=True)
        out.print(Text(escape_unprintable(f"    {proposal}"), style="dim"), soft_wrap=True)


def _print_source(profile: Profile) -> None:
    """Print how the table is written, as the keys of [source]."""
    if profile.source or profile.readings:
        keys = ", ".join(f"{key} = {value!r}" for key, value in profile.source.items())
        out.print()
        out.print(Text(f"read with: {keys or 'the defaults'}"))
    for reading in profile.readings:
        out.print(Text(f"  {reading}"))


def _print_reasons(profile: Profile) -> None:
    """Print the reasons for the proposed roles; columns with the same reason share a line."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for column in profile.columns:
        role = "undecided" if column.undecided else column.role
        reasons.setdefault((role, column.reason), []).append(escape_unprintable(column.name))
    if reasons:
        out.print()
        out.print("reasons for the roles")
    for (role, reason), names in reasons.items():
        out.print(Text.assemble(f"  {', '.join(names)}: ", (f"{role}; {reason}", "dim")))
    if profile.unit is not None:
        each = "a person (privacy.unit)" if profile.unit.people else "a household (privacy.household)"
        out.print(Text(f"  each value of {escape_unprintable(profile.unit.column)}: {each}"))
    for of in ("person", "event"):
        if names := [escape_unprintable(column.name) for column in profile.columns if column.of == of]:
            out.print(Text(f"  attributes of the {of}: {', '.join(names)}"), soft_wrap=True)
    if profile.sampling_weights is not None:
        out.print(
            Text(f"  weights: {escape_unprintable(profile.sampling_weights)} (report.sampling_weights)"), soft_wrap=True
        )


def print_comparison(comparison: Comparison, folder: Path) -> None:
    """Print the settings from the best score to the worst, the advice, and where the map is."""
    table = make_table("method", right=["k", "t", "risk", "loss", "score", "front"])
    for each in comparison.ranked:
        t = "" if each.setting.t is None else format_number(each.setting.t)
        numbers = (format_percent(each.risk), format_percent(each.loss), f"{each.score:.2f}", "*" if each.best else "")
        table.add_row(each.method, str(each.setting.k), t, *numbers)
    out.print(table)
    for setting, reason in comparison.failed:
        out.print(Text(f"not possible: {setting}: {reason}", style="yellow"))
    out.print()
    out.print(comparison.advice())
    out.print(f"  {folder / 'comparison.html'}")


def print_advice(advice: Advice) -> None:
    """Print the method and its time, the most expensive column, and what other settings would lose."""
    out.print(f"  method: {advice.method} ({advice.reason})", soft_wrap=True)
    more = ", and refinement" if advice.refined else ""
    out.print(f"  expected time: about {max(advice.total_seconds, 1):,.0f} s{more}")
    for cost in advice.clusters:
        memory, rows = f"{cost.executor_bytes / 1e9:.1f} GB each", f"at most {cost.driver_rows:,} rows at a time"
        each = f"{cost.executors} executors of {cost.cores} cores, {memory}"
        out.print(f"  on Spark: {each}: about {cost.seconds:,.0f} s; the driver collects {rows}")
    records, whole = plural(advice.records, "record"), advice.sampled == advice.records
    sample = f"a sample of {advice.sampled:,} of {records}, and expected for all"
    out.print(f"  measured on {f'all {records}' if whole else sample}")
    parts = [f"{escape_unprintable(name)} {format_share(value)}" for name, value in advice.by_column.items()]
    out.print(Text(f"  information lost: {format_share(advice.overall)} ({', '.join(parts[:MAX_COLUMNS_IN_LINE])})"))
    costliest, share = next(iter(advice.by_column.items()))
    others = "" if advice.others is None else f"; the other columns will lose {format_share(advice.others)}"
    out.print(Text(f"  {escape_unprintable(costliest)} costs most: it will lose {format_share(share)}{others}"))
    for name in advice.hardly_kept:
        lost = format_share(advice.by_column[name])
        warning = f"  warning: {escape_unprintable(name)} will lose {lost}; make it coarser, or leave it out"
        out.print(Text(warning, style="yellow"))
    out.print()
    table = make_table("change", right=["lost", "lost by the others"])
    for trial in advice.trials:
        shares = (NO_VALUE if value is None else format_share(value) for value in (trial.overall, trial.others))
        table.add_row(Text(escape_unprintable(trial.change)), *shares)
    out.print(table)
    for trial in advice.trials:
        if trial.failure:
            failure = escape_unprintable(f"not possible: {trial.change}: {trial.failure}")
            out.print(Text(failure, style="yellow"))
    out.print("nothing was written")


def print_difference(difference: Difference, *, every: bool) -> None:
    """Print both sides by section; rows that are the same only with `every`."""
    sections = difference.to_dict()
    for section in difference.sections:
        rows = {name: row for name, row in sections[section].items() if every or not row["same"]}
        if rows:
            table = make_table(section, right=["a", "b"])
            for name, row in rows.items():
                cells = (NO_VALUE if row[side] is None else _format_cell(row[side]) for side in ("a", "b"))
                table.add_row(Text(escape_unprintable(name)), *(Text(escape_unprintable(cell)) for cell in cells))
            out.print(table)
    if not every and all(row["same"] for section in difference.sections for row in sections[section].values()):
        out.print(f"the {difference.kind} do not differ")
    for note in difference.notes:
        out.print(Text(f"  note: {note}", style="yellow"))


def _format_cell(value: Any) -> str:
    return format_number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def print_lattice(lattice: Lattice) -> None:
    """Print the optimum and the minimal generalizations."""
    names = lattice.nodes.domain.names
    table = make_table(right=[*map(escape_unprintable, names), "outliers", "classes", "loss", "Prec"])
    minimal = lattice.minimal()
    for node in sorted(minimal, key=lambda each: each.rank):
        mark = "bold green" if lattice.best and node.levels == lattice.best.levels else ""
        numbers = map(format_number, (node.outliers, node.classes, node.loss, node.prec))
        table.add_row(*map(str, node.levels), *numbers, style=mark)
    out.print(f"{lattice.size:,} generalizations, {len(minimal):,} of them minimal")
    out.print(table)
    if lattice.best:
        proved = "the optimum" if lattice.proved else "the best found"
        out.print(f"{proved}: {', '.join(f'{n} {level}' for n, level in zip(names, lattice.best.levels, strict=True))}")


def print_reproduction(result: Reproduction) -> None:
    """Print the exhibits of every paper, and the totals."""
    for paper, exhibits in result.papers:
        out.print()
        out.print(Text(f"{paper.number}  {paper.reference}", style="bold"))
        for exhibit in exhibits:
            _print_exhibit(exhibit)
    out.print()
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in result.counts.items() if count)
    out.print(f"{counts}; {result.seconds:.1f} s")
    if result.failed:
        out.print(Text(f"{plural(result.failed, 'value')} should match and did not", style="bold red"))
    elif result.counts["match"]:
        out.print(Text("every value that should match does", style="bold green"))


def _print_exhibit(outcome: ExhibitOutcome) -> None:
    exhibit, verdict = outcome.exhibit, outcome.verdict
    out.print()
    counts = ", ".join(f"{count:,} {name}" for name, count in outcome.counts.items())
    head = Text.assemble((exhibit.place, "bold"), f"  {exhibit.title}: ", (counts, VERDICT_STYLES[verdict]))
    out.print(head)
    if not exhibit.has_values:
        out.print(Text(f"  {outcome.cells[0].reason}", style="dim"))
        return
    out.print(Text(f"  data: {exhibit.source}", style="dim"))
    if len(outcome.cells) > MAX_EXHIBIT_CELLS and (grid := _build_grid(outcome.cells)) is not None:
        out.print(Padding(grid, (0, 0, 0, 2), expand=False))
    else:
        _print_cells(outcome.cells)
    for remark in outcome.remarks:
        out.print(Text(f"  {remark}", style="dim"))


def _print_cells(cells: Sequence[CellVerdict]) -> None:
    """Print all cells of a small exhibit, and those of a large one that do not match, failures first."""
    if len(cells) > MAX_EXHIBIT_CELLS:
        cells = sorted((cell for cell in cells if cell.verdict != "match"), key=lambda cell: not cell.failed)
    if cells:
        out.print(Padding(_build_table(cells[:MAX_EXHIBIT_CELLS]), (0, 0, 0, 2), expand=False))
    if len(cells) > MAX_EXHIBIT_CELLS:
        out.print(Text(f"  and {len(cells) - MAX_EXHIBIT_CELLS:,} more: --json has all", style="dim"))


def _build_grid(cells: Sequence[CellVerdict]) -> Table | None:
    """Return the cells in the layout of the paper, with the paper's value in brackets where it differs.

    Return None if the table is too wide for the terminal.
    """
    columns = list(dict.fromkeys(cell.column for cell in cells))
    by_place = {(cell.row, cell.column): cell for cell in cells}
    table = make_table("", right=columns, no_wrap=True)
    table.title, table.title_justify, table.title_style = "ours (theirs)", "left", "dim"
    for row in dict.fromkeys(cell.row for cell in cells):
        table.add_row(Text(row), *(_format_both(by_place.get((row, column))) for column in columns))
    return table if len(columns) > 1 and out.measure(table).maximum + 2 <= out.width else None


def _format_both(cell: CellVerdict | None) -> Text:
    if cell is None:
        return Text("")
    printed = "" if cell.verdict == "match" else f" ({cell.theirs})"
    return Text((cell.ours_text or "-") + printed, style="bold red" if cell.failed else VERDICT_STYLES[cell.verdict])


def _build_table(cells: Sequence[CellVerdict]) -> Table:
    table = make_table("", right=["theirs", "ours", "difference"])
    table.columns[0].max_width = 60
    table.add_column("verdict")
    for cell in cells:
        difference = "" if cell.difference is None or cell.verdict == "match" else f"{cell.difference:+.4g}"
        mark = ("FAILS", "bold red") if cell.failed else (cell.verdict, VERDICT_STYLES[cell.verdict])
        table.add_row(Text(cell.label), Text(cell.theirs), Text(cell.ours_text or "-"), difference, Text(*mark))
    return table
