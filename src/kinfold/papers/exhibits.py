"""Exhibits: the tables, figures and worked examples of a paper, their printed values, and the verdict on each cell.

The expectations of an exhibit are a grid of cells by row and column; `compute` returns our values for the same cells.
The command and the tests read the same expectations:

    printed     the value as printed in the paper, with all its digits
    reading     the correct value where the print is wrong or our value is known to differ; our value must equal it
    due         the least verdict that is not a failure: match, close (within 3 %), differs; or guard, for a value that
                was chosen to come out (a property of a stand-in, a hierarchy) or that only we have: the verdict is
                not-computable, but our value must not change
    why         the reason where the cell is not a match

The verdict on a cell:

    match           equal in every printed digit; texts: equal
    close           within 3 % of the printed value, or one unit of its last decimal
    differs         neither
    not-computable  our value is missing, or comes from a stand-in for data that is not available

A cell fails if its verdict is worse than what is due, or if a reading is known and our value does not equal it. A guard
fails if our value changes.

The folder `printed` has one folder per paper: one CSV file per table, `examples.csv` with single values by place, and
`exhibits.toml` with the exhibits in the order of the paper:

    place, title, source, needs, stand_in, long, reading    the fields of `Exhibit`
    table, row, columns    a printed table, how a row is named, and the columns that are compared (default: all)
    due, why               of the cells of the table; of an exhibit without a function: why it has no values
    exceptions             other values of due and why for some rows and columns of the table
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from kinfold.papers.data import PaperData


Due: TypeAlias = Literal["match", "close", "differs", "guard"]
CellKey: TypeAlias = tuple[str, str]  # row and column
CellValue: TypeAlias = float | int | str | bool
Values: TypeAlias = Mapping[CellKey, CellValue]
Compute: TypeAlias = "Callable[[PaperData], ExhibitResult | Values]"

EXHIBIT_OPTIONS = ("place", "title", "source", "needs", "stand_in", "long", "reading")
PRINTED_SOURCE = "the paper's own table"
NO_VALUES_SOURCE = "nothing to compute"


@dataclass(frozen=True)
class Expectation:
    """The printed value of one cell, and the expected verdict."""

    printed: str
    due: Due = "match"
    reading: str | None = None
    why: str = ""


@dataclass(frozen=True)
class Plot:
    """A figure: points of several series, and the titles of its axes."""

    title: str
    x: str
    y: str
    points: Sequence[Mapping[str, object]]  # x, y, series; panel if a figure has several
    log: bool = False
    chart: str = "reproduced_lines"


@dataclass(frozen=True)
class ExhibitResult:
    """Our values by cell, and figures."""

    values: Values
    plots: tuple[Plot, ...] = ()
    note: str = ""  # about this run


@dataclass(frozen=True)
class Exhibit:
    """A table, a figure or a worked example: its expectations, and the function that computes our values."""

    place: str
    title: str
    expected: Mapping[CellKey, Expectation]
    compute: Compute
    source: str = PRINTED_SOURCE
    needs: tuple[str, ...] = ()  # public files
    stand_in: bool = False  # our values are of generated data, and are not compared
    long: bool = False  # skipped in a quick run
    reading: str = ""

    @property
    def has_values(self) -> bool:
        """Whether there is anything to compute: a drawing or an algorithm has no values."""
        return self.source != NO_VALUES_SOURCE


@dataclass(frozen=True)
class Paper:
    """A paper and its exhibits."""

    number: str
    reference: str
    exhibits: Sequence[Exhibit]


@cache
def _read_file(paper: str, name: str) -> str:
    return files("kinfold.papers").joinpath("printed", paper, name).read_text("utf-8")


@dataclass(frozen=True)
class PrintedValues:
    """The printed values of one paper."""

    paper: str

    def read_table(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a printed table as text."""
        return list(csv.DictReader(_read_file(self.paper, f"{name}.csv").splitlines()))

    def read_columns(self, name: str) -> list[str]:
        """Return the column names of a printed table."""
        return list(self.read_table(name)[0])

    def read_rows(self, name: str) -> list[tuple[str, ...]]:
        """Return the cells of a printed table by row."""
        return [tuple(row.values()) for row in self.read_table(name)]

    def read_cells(self, name: str, label: str) -> dict[CellKey, str]:
        """Return a printed table as cells; `label` formats the name of a row from columns that are not cells.

        >>> PrintedValues("003").read_cells("table_3", "{file}")[("MM1", "W2")]
        '0.5'
        """
        cells: dict[CellKey, str] = {}
        for row in self.read_table(name):
            head = [column for column in row if f"{{{column}}}" in label]
            cells |= {(label.format(**row), column): cell for column, cell in row.items() if column not in head}
        return cells

    def read_examples(self, place: str) -> dict[CellKey, Expectation]:
        """Return the single values that the paper states at one place."""
        return {
            (row["row"], row["column"]): Expectation(
                row["printed"], cast("Due", row["due"] or "match"), row["reading"] or None, row["why"]
            )
            for row in self.read_table("examples")
            if row["place"] == place
        }

    def read_value(self, place: str, row: str, column: str = "value") -> float:
        """Return one printed number."""
        return float(self.read_examples(place)[(row, column)].printed)

    def name_examples(self, place: str, values: Iterable[CellValue]) -> Values:
        """Return values in the order of the examples at one place as cells."""
        return dict(zip(self.read_examples(place), values, strict=True))

    def make_paper(
        self, functions: Mapping[str, Compute], texts: Mapping[str, Mapping[CellKey, str]] | None = None
    ) -> Paper:
        """Return the paper with the functions that compute its exhibits, by place.

        `texts` holds printed values that are not simply the cells of a table.
        """
        listed = tomllib.loads(_read_file(self.paper, "exhibits.toml"))
        exhibits = []
        for options in listed["exhibits"]:
            place = options["place"]
            fields = {name: value for name, value in options.items() if name in EXHIBIT_OPTIONS}
            fields["needs"] = tuple(options.get("needs", ()))
            if place in functions:
                expected = {key: Expectation(text) for key, text in (texts or {}).get(place, {}).items()}
                expected |= self._expect_table(options) | self.read_examples(place)
                exhibits.append(Exhibit(expected=expected, compute=functions[place], **fields))
            else:  # a drawing, or an algorithm as steps
                expected = {("", "value"): Expectation("no number", "differs", why=options["why"])}
                exhibits.append(Exhibit(expected=expected, compute=lambda _: {}, source=NO_VALUES_SOURCE, **fields))
        return Paper(self.paper, listed["reference"], tuple(exhibits))

    def _expect_table(self, options: Mapping[str, Any]) -> dict[CellKey, Expectation]:
        cells = self.read_cells(options["table"], options["row"]) if "table" in options else {}
        rules = [options, *options.get("exceptions", ())]  # the last rule that fits a cell is valid
        expected = {}
        for (row, column), printed in cells.items():
            if column in options.get("columns", (column,)):
                fits = [r for r in rules if row in r.get("rows", (row,)) and column in r.get("columns", (column,))]
                expected[row, column] = Expectation(printed, fits[-1].get("due", "match"), why=fits[-1].get("why", ""))
        return expected


def count_true(flags: Iterable[bool]) -> str:
    """Return how many are true.

    >>> count_true([True, False])
    '1 of 2'
    """
    known = list(flags)
    return f"{sum(known)} of {len(known)}"


def plot_trials(
    title: str, panels: Mapping[str, Iterable[Mapping[str, Any]]], value: str, axes: tuple[str, str], x: str = "x"
) -> Plot:
    """Return a figure of one value of trials, with one panel per group of trials."""
    points = [
        {"x": trial[x], "y": trial[value], "series": trial["series"], "panel": panel}
        for panel, trials in panels.items()
        for trial in trials
    ]
    return Plot(title, *axes, points)


def plot_lattice(title: str, texts: Mapping[tuple[int, ...], tuple[str, str]], steps: tuple[float, float]) -> Plot:
    """Return a lattice of two attributes with a text in each node and one below it.

    The height of a node is the sum of its levels; `steps` says how wide a level of each attribute is: to the left for
    the first, to the right for the second.
    """

    def place(levels: tuple[int, ...]) -> list[float]:
        return [steps[1] * levels[1] - steps[0] * levels[0], sum(levels)]

    points = []
    for levels, (label, below) in texts.items():
        x, y = place(levels)
        above = [node for node in texts if (node[0] - levels[0], node[1] - levels[1]) in ((0, 1), (1, 0))]
        points.append({"x": x, "y": y, "label": label, "below": below, "lines": [place(node) for node in above]})
    return Plot(title, "", "", points, chart="reproduced_lattice")


CLOSE_TOLERANCE = 0.03  # of the printed value
VERDICT_ORDER = ("match", "close", "differs")
EXACT_REASON, CLOSE_REASON = "equal to every printed digit", "within 3 % or one unit of the last decimal"


@dataclass(frozen=True)
class CellVerdict:
    """One cell: their value, our value, the difference, and the verdict with its reason."""

    row: str
    column: str
    theirs: str
    ours: CellValue | None
    difference: float | None
    verdict: str
    reason: str
    failed: bool = False
    guard: bool = False  # not a verdict on the paper: the value was chosen to come out, or only we have it

    @property
    def label(self) -> str:
        """The name of the cell in a list."""
        return self.row if self.column in ("value", "tuple") else f"{self.row}: {self.column}"

    @property
    def ours_text(self) -> str:
        """Our value as the paper prints it, or with four digits if it is another number."""
        if self.ours is None:
            return ""
        if self.verdict == "match" or parse_number(self.theirs) is None or isinstance(self.ours, str | bool):
            return format_as_printed(self.ours, self.theirs)
        return f"{self.ours:,.4g}" if abs(self.ours) < 1e4 else f"{self.ours:,.0f}"


def judge_cell(key: CellKey, expected: Expectation, ours: CellValue) -> CellVerdict:
    """Return the verdict on one cell."""
    if expected.due == "guard":
        changed = compare_cell(expected.reading or expected.printed, ours) != "match"
        return replace(mark_not_computable(key, expected, expected.why, ours), guard=True, failed=changed)
    verdict = compare_cell(expected.printed, ours)
    as_read = expected.reading is None or compare_cell(expected.reading, ours) == "match"
    failed = VERDICT_ORDER.index(verdict) > VERDICT_ORDER.index(expected.due) or not as_read
    if verdict == "match":
        reason = EXACT_REASON if parse_number(expected.printed) is not None else "equal"
    else:
        reason = expected.why or (CLOSE_REASON if verdict == "close" else "")
    difference = compute_difference(expected.printed, ours)
    return CellVerdict(*key, expected.printed, ours, difference, verdict, reason, failed)


def mark_not_computable(key: CellKey, expected: Expectation, reason: str, ours: CellValue | None = None) -> CellVerdict:
    """Return a cell that cannot be compared, with our value of a stand-in if there is one."""
    return CellVerdict(*key, expected.printed, ours, None, "not-computable", reason)


def compare_cell(printed: str, ours: CellValue) -> str:
    """Return match, close or differs.

    >>> [compare_cell("0.131", ours) for ours in (0.13149, 0.1332, 0.2)]
    ['match', 'close', 'differs']
    """
    theirs = parse_number(printed)
    if theirs is None or isinstance(ours, str | bool):
        return "match" if printed == format_as_printed(ours, printed) else "differs"
    if format_as_printed(ours, printed) == format_as_printed(theirs, printed):
        return "match"
    decimals = count_decimals(printed)
    unit = 10.0**-decimals if decimals else 0.0  # a count that is off by one is not close
    return "close" if abs(ours - theirs) <= max(CLOSE_TOLERANCE * abs(theirs), 1.0001 * unit) else "differs"


def compute_difference(printed: str, ours: CellValue) -> float | None:
    """Return our value minus theirs, if both are numbers."""
    theirs = parse_number(printed)
    if theirs is None or isinstance(ours, str | bool):
        return None
    return round(float(ours) - theirs, count_decimals(printed) + 3)


def parse_number(printed: str) -> float | None:
    """Return a printed number, or None for a text.

    >>> [parse_number(text) for text in ("31.10", "1080", "2/7", "{t8}")]
    [31.1, 1080.0, None, None]
    """
    try:
        return float(printed)
    except ValueError:
        return None


def count_decimals(printed: str) -> int:
    """Return the number of printed decimals.

    >>> count_decimals("31.10"), count_decimals("1080")
    (2, 0)
    """
    return len(printed.partition(".")[2])


def format_as_printed(ours: CellValue, printed: str) -> str:
    """Format our value as the paper prints it: yes or no, and the same number of decimals."""
    if isinstance(ours, bool):
        return "yes" if ours else "no"
    if isinstance(ours, str) or parse_number(printed) is None:
        return str(ours)
    return f"{round(float(ours), count_decimals(printed)) + 0.0:.{count_decimals(printed)}f}"
