"""What a paper prints, as values: each number once, with where it stands and what has to come out here.

An exhibit is a table, a figure or a worked example of a paper. Its expectations are a grid of cells by row and column;
`work` computes ours for the same cells. Whatever is said beside a cell is said by the expectation, so that the command
and the tests read the same table:

    printed     as it stands in the paper, digits and all
    reading     what it has to be where the print is wrong or where ours is known to differ; ours must equal it
    due         the least verdict that is no failure: match, close (within 3 %), differs; or guard, where the value was
                made to come out (a property of a stand-in, a hierarchy that was chosen for it) or is ours alone: no
                verdict on the paper, which is not-computable there, but ours must stay as it is
    why         the reason where it is not a match
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from kinfold.reproduction.bench import Bench

Due: TypeAlias = Literal["match", "close", "differs", "guard"]
Key: TypeAlias = tuple[str, str]  # row and column
Ours: TypeAlias = float | int | str | bool

PRINTED = "the paper's own table"
NO_NUMBERS = "nothing to compute"


@dataclass(frozen=True)
class Expectation:
    """What a paper prints in one cell, and what has to come out."""

    printed: str
    due: Due = "match"
    reading: str | None = None
    why: str = ""


@dataclass(frozen=True)
class Plot:
    """A figure to draw anew: points of several series, and the words of its axes."""

    title: str
    x: str
    y: str
    points: Sequence[Mapping[str, object]]  # x, y, series; panel where a figure has several
    log: bool = False
    chart: str = "reproduced_lines"


@dataclass(frozen=True)
class Worked:
    """What came out: our values by cell, and figures."""

    values: Mapping[Key, Ours]
    plots: tuple[Plot, ...] = ()
    note: str = ""  # what a reader must know of this run


@dataclass(frozen=True)
class Exhibit:
    """A table, a figure or a worked example: what is expected of it, and how it is computed."""

    place: str
    title: str
    expected: Mapping[Key, Expectation]
    work: Callable[[Bench], Worked]
    source: str = PRINTED
    needs: tuple[str, ...] = ()  # public files
    stand_in: bool = False  # values are of generated data: they stand beside the paper's and are not compared
    long: bool = False  # left out of a quick run
    reading: str = ""


@dataclass(frozen=True)
class Paper:
    """One of the papers, and everything of it that can be computed."""

    number: str
    reference: str
    exhibits: Sequence[Exhibit] = field(default_factory=tuple)


def expect(cells: Mapping[Key, str], due: Due = "match", why: str = "") -> dict[Key, Expectation]:
    """Return expectations of one kind for a grid of printed values."""
    return {key: Expectation(printed, due, why=why) for key, printed in cells.items()}


def mentioned(place: str, title: str, why: str) -> Exhibit:
    """Return an exhibit that has no values of its own, such as a drawing: listed, with the reason."""
    expected = {("", "value"): Expectation("no number", "differs", why=why)}
    return Exhibit(place, title, expected, lambda _: Worked({}), NO_NUMBERS)


def grid(rows: Mapping[str, Mapping[str, Any]]) -> dict[Key, Any]:
    """Return values by row and column as one mapping.

    >>> grid({"k = 2": {"MCD": 1, "HCD": 2}})
    {('k = 2', 'MCD'): 1, ('k = 2', 'HCD'): 2}
    """
    return {(row, column): value for row, cells in rows.items() for column, value in cells.items()}
