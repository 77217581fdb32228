"""The pictures of the methods: small tables and points, divided by the methods themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

import kinfold
from kinfold.methods.generalize.datafly import datafly as datafly_of
from kinfold.methods.generalize.levels import Generalization
from kinfold.methods.generalize.mingen import mingen as mingen_of
from kinfold.methods.generalize.mingen import preferred
from kinfold.methods.generalize.mingen_cell import mingen_cell
from kinfold.methods.generalize.mu_argus import mu_argus as mu_argus_of
from kinfold.methods.partition.approximate import dependency
from kinfold.papers.paper_002 import NAMES, RANKS, TWO, figure_7
from kinfold.partition import mdav, t_first, univariate, vmdav
from tools.pictures.scales import Panel, around
from tools.pictures.sheet import ACCENT, ALARM, EDGE, LINE, PALE, SAND, SHADES, SOFT, Place, Sheet

CREAM = "#fbf4e4"
CLASS_SHADES = (PALE, CREAM, "#f0f2f3", "#efe3ec", "#e4efe0", "#f6e4df")
Points = NDArray[np.float64]


def pictures() -> Iterator[tuple[str, Sheet]]:
    """Yield each picture with its name."""
    yield (
        "method-mdav",
        two_ways(scattered(), "mdav at k = 3", mdav(scattered(), 3), "mdav at k = 6", mdav(scattered(), 6)),
    )
    clusters = clustered()
    yield (
        "method-vmdav",
        two_ways(
            clusters, "mdav: always k", mdav(clusters, 4), "v-mdav: as clusters are", vmdav(clusters, 4, gamma=1.1)
        ),
    )
    yield "method-univariate", one_column()
    yield "method-approximate", tree()
    yield "method-t-closeness", strata()
    yield "method-blocks", blocks()
    yield "method-datafly", datafly()
    yield "method-mu-argus", mu_argus()
    yield "method-mingen", mingen()
    yield "method-lattice", lattice()
    yield "method-local-suppression", suppression()


def scattered() -> Points:
    """Thirty points without a pattern, and one far away."""
    points = np.random.default_rng(5).normal(size=(36, 2))
    points[0] = [3.1, 2.6]
    return points


def clustered() -> Points:
    """Clusters of five, six and seven points."""
    random = np.random.default_rng(2)
    centres = np.repeat([[-1.6, -1.2], [1.5, -0.9], [0.1, 1.7]], [5, 6, 7], axis=0)
    return np.asarray(centres + random.normal(scale=0.28, size=centres.shape))


def two_ways(points: Points, left: str, ours: Any, right: str, theirs: Any) -> Sheet:
    """The same points under two partitions."""
    sheet = Sheet(760, 320, f"{left}; {right}")
    low, high = points.min() - 0.3, points.max() + 0.3
    for i, (name, labels) in enumerate(((left, ours), (right, theirs))):
        panel = Panel((40 + 370 * i, 40), (320, 240), (low, high), (low, high))
        lost = sum(
            float(((points[labels == c] - points[labels == c].mean(axis=0)) ** 2).sum()) for c in range(max(labels) + 1)
        )
        total = float(((points - points.mean(axis=0)) ** 2).sum())
        panel.frame(sheet, head=name)
        _classes(sheet, panel, points, labels)
        sheet.words(
            (40 + 370 * i, 302), f"{max(labels) + 1} classes, {lost / total:.1%} of the variation lost", colour=SOFT
        )
    return sheet


def _classes(sheet: Sheet, panel: Panel, points: Points, labels: Any) -> None:
    for label in range(max(labels) + 1):
        colour = SHADES[label % len(SHADES)]
        chosen = [panel(x, y) for x, y in points[labels == label].tolist()]
        sheet.outline(around(chosen), colour, "none")
        middle = (float(np.mean([x for x, _ in chosen])), float(np.mean([y for _, y in chosen])))
        for place in chosen:
            sheet.line(place, middle, colour, 0.8)
            sheet.dot(place, 3.2, SAND, EDGE)
        sheet.dot(middle, 4.5, colour)


def one_column() -> Sheet:
    """Incomes on a line, cut by the optimum at two k."""
    incomes = np.array([21.0, 22, 23, 24, 33, 35, 36, 60, 61, 62, 66, 90])
    sheet = Sheet(760, 190, "Twelve incomes, divided into groups of at least three and of at least four")
    for row, k in enumerate((3, 4)):
        labels = univariate(incomes[:, None], k)
        y = 60 + 80 * row
        sheet.words((16, y + 4), f"k = {k}", bold=True)
        for label in range(labels.max() + 1):
            chosen = incomes[labels == label]
            left, right = (80 + (value - 18) * 8.6 for value in (chosen.min(), chosen.max()))
            sheet.box((left - 8, y - 14), (right - left + 16, 28), PALE if label % 2 else CREAM, SHADES[label], 14)
            sheet.words(
                ((left + right) / 2, y + 30), f"{chosen.mean():.1f}", anchor="middle", colour=SHADES[label], bold=True
            )
        for value in incomes.tolist():
            sheet.dot((80 + (value - 18) * 8.6, y), 4, SAND, EDGE)
    return sheet


def tree() -> Sheet:
    """The dependency tree of the paper's Table 1."""
    rows = "000111 011010 110100 001111 011100 001001 111001 011000 111011 011101 011100 111111"
    found = dependency(np.array([[int(cell) for cell in row] for row in rows.split()]))
    places: dict[int, Place] = {1: (270, 120), 2: (450, 120), 0: (130, 50), 5: (130, 190), 3: (590, 50), 4: (590, 190)}
    sheet = Sheet(720, 240, "The dependency tree of Table 1: A2 and A3 have most edges and are the keys")
    for a, b in found.edges:
        sheet.line(places[a], places[b], SOFT, 2)
        middle = ((places[a][0] + places[b][0]) / 2, (places[a][1] + places[b][1]) / 2 - 6)
        sheet.words(middle, f"{found.matrix[a][b]:.2f}", anchor="middle", colour=SOFT, size=11)
    for attribute, place in places.items():
        key = attribute in found.keys
        sheet.dot(place, 22, ACCENT if key else CREAM, EDGE if not key else ACCENT)
        sheet.words(
            (place[0], place[1] + 5),
            f"A{attribute + 1}",
            anchor="middle",
            bold=True,
            colour="#ffffff" if key else "#1d2830",
        )
    sheet.words(
        (360, 226),
        "edges: bits that two attributes do not tell about each other; keys in blue",
        anchor="middle",
        colour=SOFT,
        size=11,
    )
    return sheet


def strata() -> Sheet:
    """t-first: strata of the confidential column, a record of each in every class."""
    random = np.random.default_rng(8)
    x = random.uniform(0, 10, 24)
    charge = np.argsort(np.argsort(random.normal(size=24) + 0.1 * x)).astype(float)
    labels = t_first(((x - x.mean()) / x.std())[:, None], 4, confidential=charge, t=0.2)
    sheet = Sheet(760, 320, "Twenty-four records: every class takes a near record from each stratum of the charge")
    panel = Panel((60, 40), (640, 230), (-0.3, 10.3), (-0.8, 24))
    panel.frame(sheet, "quasi-identifier", "charge, in strata")
    size = int(np.bincount(labels).max())
    for cut in range(1, size):
        y = panel(0, 24 * cut / size - 0.5)[1]
        sheet.line((60, y), (700, y), LINE, 1, dashed=True)
    for label in range(labels.max() + 1):
        order = np.flatnonzero(labels == label)[np.argsort(charge[labels == label])]
        places = [panel(x[i], charge[i]) for i in order]
        sheet.curve(places, SHADES[label % len(SHADES)], 1.2)
        for place in places:
            sheet.dot(place, 5, SHADES[label % len(SHADES)])
    sheet.words((60, 304), f"{labels.max() + 1} classes, one colour each; dashed: the strata", colour=SOFT)
    return sheet


def blocks() -> Sheet:
    """Points cut into four blocks, and the classes that touch a border."""
    points = np.random.default_rng(4).normal(size=(120, 2))
    sheet = Sheet(560, 330, "Points in four blocks of one size; classes at the borders are looked at once more")
    panel = Panel((40, 30), (480, 260), (-2.9, 2.9), (-2.9, 2.9))
    panel.frame(sheet)
    half = float(np.median(points[:, 0]))
    sides = [points[points[:, 0] <= half], points[points[:, 0] > half]]
    cuts = [float(np.median(side[:, 1])) for side in sides]
    for i, side in enumerate(sides):
        for upper in (False, True):
            part = side[(side[:, 1] > cuts[i]) == upper]
            _classes(sheet, panel, part, mdav(part, 5))
    sheet.line(panel(half, -2.9), panel(half, 2.9), ALARM, 2)
    sheet.line(panel(-2.9, cuts[0]), panel(half, cuts[0]), ALARM, 2)
    sheet.line(panel(half, cuts[1]), panel(2.9, cuts[1]), ALARM, 2)
    sheet.words((40, 316), "red: the cuts, at the median of the attribute that spreads most", colour=SOFT)
    return sheet


def datafly() -> Sheet:
    """Figures 9 and 10 of the paper: the column with the most values goes up, and two tuples are suppressed."""
    found = datafly_of(figure_7(), TWO)
    steps = [(step.distinct, f"{step.outliers} tuples in classes below 2") for step in found.steps]
    steps.append(
        (steps[-1][0], f"{found.generalization.records_suppressed} are suppressed: k = {found.generalization.k}")
    )
    names = ("as it came", "birth dates become years", "what is left over goes")
    sheet = Sheet(
        790,
        190,
        "Datafly on the paper's table: birth has the most values and becomes the year; two tuples are suppressed",
    )
    for i, ((counts, left), name) in enumerate(zip(steps, names, strict=True)):
        x = 20 + 262 * i
        sheet.words((x, 26), name, bold=True, colour=ACCENT if i < 2 else EDGE)
        for j, (column, values) in enumerate(counts.items()):
            sheet.words((x, 54 + 26 * j), column)
            sheet.box((x + 52, 42 + 26 * j), (values * 10, 16), ALARM if values == 12 else PALE, "none", 2)
            sheet.words((x + 58 + values * 10, 54 + 26 * j), f"{values} values", size=11, colour=SOFT)
        sheet.words((x, 172), left, colour=SOFT)
        if i:
            sheet.arrow((x - 36, 90), (x - 8, 90))
    return sheet


def mu_argus() -> Sheet:
    """Figure 15 of the paper: no rare pair or triple is left, and two rows are alone all the same."""
    found = mu_argus_of(figure_7(), 2, RANKS)
    rows = list(zip(*found.generalization.columns().values(), strict=True))
    alone = [row for row in rows if rows.count(row) == 1]
    stars = {(r, c) for r, row in enumerate(rows) for c, cell in enumerate(row) if cell == "*"}
    sheet = Sheet(
        700, 330, "mu-Argus on the paper's table: cells of rare pairs and triples are starred, and two rows are alone"
    )
    sheet.table(
        (30, 30), [NAMES, *rows], (80, 70, 80, 80), fills=[CREAM if row in alone else "" for row in rows], marks=stars
    )
    sheet.lines(
        (380, 60), ("Rare pairs and triples are starred.", "Combinations of four are not looked at."), colour=SOFT
    )
    sheet.lines(
        (380, 120),
        (f"{len(alone)} rows are alone (shaded):", f"k = {found.k}, although 2 was asked."),
        colour=ALARM,
        bold=True,
    )
    sheet.lines((380, 180), ("A release suppresses them as well,", "so that what was asked holds."), colour=SOFT)
    return sheet


def mingen() -> Sheet:
    """The paper's table by one level a column and by one level a cell, with Prec of each."""
    table = figure_7()
    column = Generalization.full_domain(table, preferred(mingen_of(table, TWO)).levels)
    cell = mingen_cell(table, TWO, objective="prec").generalization
    sheet = Sheet(860, 340, "The paper's table by one level for each column, and by one for each cell")
    for i, (name, made) in enumerate((("mingen: by column", column), ("mingen-cell: by cell", cell))):
        rows = list(zip(*made.columns().values(), strict=True))
        kinds = {row: CLASS_SHADES[j % len(CLASS_SHADES)] for j, row in enumerate(dict.fromkeys(rows))}
        x = 30 + 430 * i
        sheet.words((x, 22), f"{name}, Prec {made.prec():.2f}", bold=True)
        sheet.table((x, 48), [NAMES, *rows], (80, 110, 80, 80), fills=[kinds[row] for row in rows])
    return sheet


def lattice() -> Sheet:
    """The lattice of Truta et al.: sex up to 1, zip up to 2, with what each node must suppress at k = 3."""
    counts = {(0, 0): 10, (1, 0): 7, (0, 1): 4, (1, 1): 4, (0, 2): 3, (1, 2): 0}
    places: dict[tuple[int, int], Place] = {
        (0, 0): (300, 280),
        (1, 0): (200, 205),
        (0, 1): (400, 205),
        (1, 1): (300, 130),
        (0, 2): (500, 130),
        (1, 2): (400, 55),
    }
    sheet = Sheet(
        700, 320, "A lattice of two columns: what each node must suppress, and which are within a threshold of four"
    )
    for (a, b), place in places.items():
        for up in ((a + 1, b), (a, b + 1)):
            if up in places:
                sheet.line(place, places[up], LINE, 1.5)
    for node, place in places.items():
        held = counts[node] <= 4
        least = node in {(0, 1)}
        sheet.dot(place, 22, ACCENT if least else PALE if held else "#ffffff", ACCENT if held else ALARM)
        sheet.words(
            (place[0], place[1] + 5),
            str(counts[node]),
            anchor="middle",
            bold=True,
            colour="#ffffff" if least else "#1d2830",
        )
        sheet.words((place[0] + 30, place[1] + 4), f"sex {node[0]}, zip {node[1]}", colour=SOFT, size=11)
    sheet.lines(
        (20, 40),
        ("number: records that must go", "outline blue: at most 4 go", "filled: the minimal one"),
        colour=SOFT,
        size=11,
    )
    return sheet


def suppression() -> Sheet:
    """A table before and after the fewest cells were left empty, by the method itself."""
    names = ("age", "sex", "zip")
    was = [
        ("31", "f", "02138"),
        ("31", "f", "02138"),
        ("33", "f", "02138"),
        ("35", "f", "02138"),
        ("64", "m", "02141"),
        ("64", "m", "02144"),
    ]
    frame = pandas.DataFrame(was, columns=list(names))
    made = kinfold.anonymize(frame, quasi=list(names), k=2, method="local-suppression").frame
    now = [
        tuple("" if cell is None or cell != cell else str(cell) for cell in row) for row in made.itertuples(index=False)
    ]
    empty = [(r, c) for r, row in enumerate(now) for c, cell in enumerate(row) if not cell]
    sheet = Sheet(740, 200, f"Six records before and after: {len(empty)} cells of eighteen are left empty")
    sheet.table((30, 30), [names, *was], (60, 50, 80))
    sheet.arrow((255, 100), (315, 100))
    for r, c in empty:
        sheet.box((346 + (0, 60, 110)[c], 30 + 22 * (r + 1) - 15), (52, 20), "#f6ddd7", ALARM, 2)
    sheet.table((350, 30), [names, *now], (60, 50, 80))
    sheet.lines((580, 74), (f"{len(empty)} of 18 cells go,", "everything else", "is as it was"), colour=SOFT)
    return sheet
