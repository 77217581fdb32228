"""The pictures of the measures: the question of each, drawn."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from math import erf, sqrt

import numpy as np

import kinfold
from kinfold.demo import make_patients, read_demo_policy
from kinfold.measures.formulas import utility as logistic
from kinfold.measures.formulas.attackers import individual_risk
from kinfold.measures.formulas.global_risk import ClassificationMatrix
from kinfold.measures.formulas.utility import propensity_mse
from kinfold.partition import mdav
from kinfold.policy.model import Policy
from tools.pictures.scales import Panel
from tools.pictures.sheet import ACCENT, ALARM, EDGE, LINE, PALE, SAND, SHADES, SOFT, Place, Sheet

CREAM = "#fbf4e4"
VALUES = np.array([1.0, 2.2, 3.1, 6.4, 7.0, 8.3, 11.2, 12.6, 13.4])
CLASSES = np.repeat([0, 1, 2], 3)


def pictures() -> Iterator[tuple[str, Sheet]]:
    """Yield each picture with its name."""
    drawn: dict[str, Callable[[], Sheet]] = {
        "disclosure": disclosure,
        "attackers": attackers,
        "linkage": linkage,
        "interval": interval,
        "inference": inference,
        "squared-error": squared_error,
        "statistics": statistics,
        "probabilistic": probabilistic,
        "propensity": propensity,
        "categories": categories,
        "generalization": generalization,
        "plausibility": plausibility,
        "tasks": tasks,
    }
    for name, draw in drawn.items():
        yield f"measure-{name}", draw()


def disclosure() -> Sheet:
    """The classification matrix of a small table."""
    original = [0, 1, 2, 2, 3, 3, 3, 4]
    released = [0, 0, 1, 1, 2, 2, 2, 2]
    matrix = ClassificationMatrix.from_classes(original, released)
    sheet = Sheet(640, 260, "Eight records by the size of their released and of their original class")
    for i in range(4):
        sheet.words((150, 78 + 44 * i), f"{i + 1}", anchor="end", colour=SOFT)
        sheet.words((190 + 60 * i, 44), f"{i + 1}", anchor="middle", colour=SOFT)
        for j in range(4):
            here = (matrix.masked == i + 1) & (matrix.initial == j + 1)
            held = int(matrix.count[here].sum())
            fill = ALARM if held and i == 0 else ACCENT if held else "#f4f6f7" if j <= i else "#ffffff"
            sheet.box((164 + 60 * j, 54 + 44 * i), (52, 36), fill, LINE)
            if held:
                sheet.words((190 + 60 * j, 77 + 44 * i), str(held), anchor="middle", bold=True, colour="#ffffff")
    sheet.words((164, 22), "size of the class in the original →", colour=SOFT, size=11)
    sheet.lines((14, 120), ("size of the class", "in the release ↓"), colour=SOFT, size=11)
    sheet.lines((430, 80), ("The first row is 0: nobody is", "unique in the release, DRmin = 0."), size=12)
    sheet.lines(
        (430, 140),
        ("Below the diagonal: classes", "grew or stayed; DRmax counts", "each record as 1 / its row."),
        size=12,
    )
    return sheet


def attackers() -> Sheet:
    """1/f for the prosecutor, and the individual risk where each record stands for twenty people."""
    sizes = np.arange(1, 21)
    sheet = Sheet(640, 280, "The risk of a record by the size of its class")
    panel = Panel((60, 40), (520, 190), (0, 20), (0, 1))
    panel.frame(sheet, "records in the class", "chance to be found")
    sheet.curve([panel(f, 1 / f) for f in sizes.tolist()], ALARM)
    risks = [float(individual_risk(np.zeros(f, int), np.full(f, 20.0))[0]) for f in sizes.tolist()]
    sheet.curve([panel(f, risk) for f, risk in zip(sizes.tolist(), risks, strict=True)], ACCENT)
    for f in (2, 5, 10):
        sheet.dot(panel(f, 1 / f), 4, ALARM)
        sheet.words((panel(f, 1 / f)[0] + 8, panel(f, 1 / f)[1] - 6), f"k = {f}: {1 / f:.0%}", size=11)
    sheet.words((330, 70), "prosecutor: knows who is in the file", colour=ALARM, bold=True)
    sheet.words((330, 92), "who is in is not known, 1 of 20 sampled", colour=ACCENT, bold=True)
    return sheet


def _pairs() -> tuple[np.ndarray, np.ndarray]:
    """Points and the means of their classes of three."""
    points = np.random.default_rng(11).normal(size=(21, 2))
    labels = mdav(points, 3)
    means = np.array([points[labels == c].mean(axis=0) for c in range(labels.max() + 1)])
    return points, means


def linkage() -> Sheet:
    """Each original record and the released point nearest to it."""
    points, means = _pairs()
    labels = mdav(points, 3)
    sheet = Sheet(640, 320, "Each original record is linked to the released value nearest to it")
    panel = Panel((40, 20), (440, 270), (-2.6, 2.6), (-2.6, 2.6))
    panel.frame(sheet)
    linked = 0
    for point, label in zip(points, labels, strict=True):
        near = int(((means - point) ** 2).sum(axis=1).argmin())
        linked += near == label
        sheet.line(panel(*point), panel(*means[near]), ACCENT if near == label else ALARM, 1.4)
        sheet.dot(panel(*point), 4, SAND, EDGE)
    for mean in means:
        sheet.dot(panel(*mean), 8, ACCENT)
        sheet.words((panel(*mean)[0], panel(*mean)[1] + 4), "3", anchor="middle", size=11, bold=True, colour="#ffffff")
    sheet.lines((494, 70), ("blue: the right class,", "one chance in three"), colour=ACCENT)
    sheet.lines((494, 120), ("red: a wrong one",), colour=ALARM)
    sheet.lines((494, 160), (f"{linked} of {len(points)} right:", f"linkage {linked / 3 / len(points):.3f}"), bold=True)
    sheet.lines((494, 210), ("never more", "than 1/k = 0.333"), colour=SOFT)
    return sheet


def interval() -> Sheet:
    """The interval of ranks around a released value."""
    ranks = np.arange(20)
    sheet = Sheet(700, 150, "Values in their order; those within some ranks of the released one")

    def place(rank: float) -> Place:
        return 40 + 32 * rank, 70

    sheet.box((place(8)[0] - 14, 46), (4 * 32 + 28, 48), PALE, ACCENT, 24)
    for rank in ranks.tolist():
        sheet.dot(place(rank), 5, SAND, EDGE)
    sheet.dot(place(10), 8, ACCENT)
    sheet.words((place(10)[0], 34), "released value x'", anchor="middle", colour=ACCENT, bold=True)
    sheet.dot(place(11), 7, ALARM)
    sheet.words(
        (place(11)[0] + 4, 118), "its original x is inside: disclosed", anchor="middle", colour=ALARM, bold=True
    )
    sheet.words((660, 140), "released values in their order →", anchor="end", colour=SOFT, size=11)
    return sheet


def inference() -> Sheet:
    """Guessing a disease without and with the class."""
    held = {"class 1": (4, 1), "class 2": (1, 4), "class 3": (3, 2)}
    sheet = Sheet(700, 210, "Guessing flu or cold: without the class 8 of 15 are right, with it 11")
    x = 40.0
    for name, (flu, cold) in held.items():
        sheet.words((x, 32), name, bold=True)
        for i in range(flu + cold):
            sick = i < flu
            sheet.box((x + 34 * i, 42), (30, 30), CREAM if sick else PALE, EDGE if sick else ACCENT)
            sheet.words((x + 34 * i + 15, 62), "flu" if sick else "cold", anchor="middle", size=11)
        sheet.words((x, 96), f"best guess: {max(flu, cold)} of {flu + cold}", colour=SOFT)
        x += 220
    sheet.words((40, 140), "blind: 8 of 15 have flu, 7 guesses are wrong", size=13)
    sheet.words((40, 164), "by class: 4 + 4 + 3 = 11 are right, 4 are wrong", size=13)
    sheet.words((40, 192), "inference = (7 - 4) / 7 = 0.43", size=13, bold=True, colour=ALARM)
    return sheet


def squared_error() -> Sheet:
    """Gaps to the class means and to the mean of all."""
    sheet = Sheet(760, 210, "Nine values: gaps to their class means and to the mean of all")
    for row, (name, grouped) in enumerate((("SSE", True), ("SST", False))):
        y = 60 + 90 * row
        sheet.words((20, y + 4), name, bold=True)
        total = 0.0
        for value, label in zip(VALUES.tolist(), CLASSES.tolist(), strict=True):
            mean = float(VALUES[label == CLASSES].mean()) if grouped else float(VALUES.mean())
            total += (value - mean) ** 2
            sheet.line(((90 + value * 46), y), ((90 + mean * 46), y), SHADES[label] if grouped else ALARM, 4)
            sheet.dot(((90 + mean * 46), y), 7, SHADES[label] if grouped else ALARM)
        for value in VALUES.tolist():
            sheet.dot(((90 + value * 46), y), 4, SAND, EDGE)
        sheet.words((90, y + 34), f"sum of the squared gaps: {total:.1f}", colour=SOFT)
    return sheet


def statistics() -> Sheet:
    """Correlation before and after, on points of the demo."""
    table = make_patients().slice(0, 240)
    age, charge = (np.array(table[name].to_pylist(), float) for name in ("age", "charge"))
    points = np.column_stack([age, np.log(charge)])
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    labels = mdav(points, 8)
    means = np.array([points[labels == c].mean(axis=0) for c in labels])
    sheet = Sheet(
        760, 290, "Age and the logarithm of the charge, before and after: variance shrinks, correlation grows"
    )
    for i, (name, shown) in enumerate((("original", points), ("classes of 8", means))):
        panel = Panel((40 + 370 * i, 40), (320, 200), (-3.6, 3.6), (-3.6, 3.9))
        panel.frame(sheet, head=name)
        for x, y in {(float(x), float(y)) for x, y in shown}:
            sheet.dot(panel(x, y), 3 if not i else 5, SAND if not i else ACCENT, EDGE if not i else "none")
        r, v = float(np.corrcoef(shown.T)[0, 1]), float(shown.var(axis=0).mean())
        sheet.words((40 + 370 * i, 270), f"correlation {r:.3f}, mean variance {v:.3f}", colour=SOFT)
    return sheet


def probabilistic() -> Sheet:
    """Erf of a shift in standard errors."""
    sheet = Sheet(640, 260, "The loss of a statistic by its shift in standard errors")
    panel = Panel((60, 40), (520, 170), (0, 4), (0, 1))
    panel.frame(sheet, "shift, in standard errors", "loss")
    shifts = np.linspace(0, 4, 81)
    sheet.curve([panel(s, erf(s / sqrt(2))) for s in shifts.tolist()])
    for s in (1, 2, 3):
        place = panel(s, erf(s / sqrt(2)))
        sheet.dot(place, 5, ALARM)
        sheet.words((place[0] + 8, place[1] + 18), f"{erf(s / sqrt(2)):.2f}", bold=True)
    return sheet


def propensity() -> Sheet:
    """Chances that a fitted model gives to records of either table, for a fine and a coarse release."""
    table = make_patients().slice(0, 300)
    points = np.column_stack([np.array(table[name].to_pylist(), float) for name in ("age", "charge")])
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    sheet = Sheet(
        700, 230, "Chances of being a released record, by a model fitted to both tables, for k = 5 and k = 100"
    )
    for row, k in enumerate((5, 100)):
        labels = mdav(points, k)
        means = np.array([points[labels == c].mean(axis=0) for c in labels])
        both, chosen = np.vstack([points, means]), np.arange(600) >= 300
        design = logistic.Features.from_table(both, 2)(both)
        chances = logistic.predict_probability(design, logistic.fit_logistic(design, chosen))
        y = 70 + 88 * row
        sheet.words((40, y - 30), f"k = {k}: propensity error {propensity_mse(points, means):.4f}", bold=True)
        sheet.line((40, y), (640, y), LINE)
        for i in range(0, 600, 3):
            side = 1 if chosen[i] else -1
            sheet.dot(
                (40 + 600 * float(chances[i]), y - side * 8),
                3.4,
                ACCENT if chosen[i] else SAND,
                "none" if chosen[i] else EDGE,
            )
        sheet.line((340, y - 20), (340, y + 20), SOFT, 1, dashed=True)
    sheet.words(
        (640, 216),
        "fitted chance →   sand: original, blue: released; dashed: one half",
        anchor="end",
        colour=SOFT,
        size=11,
    )
    return sheet


def categories() -> Sheet:
    """A cross table before and after."""
    sheet = Sheet(640, 190, "A cross table of sex and smoking before and after; two cells of four moved")
    for i, (name, cells) in enumerate((("original", ((30, 10), (24, 6))), ("released", ((30, 10), (27, 3))))):
        x = 40 + 320 * i
        sheet.words((x, 28), name, bold=True)
        for r, row in enumerate(cells):
            sheet.words((x, 82 + 44 * r), ("f", "m")[r], colour=SOFT)
            for c, value in enumerate(row):
                moved = i and value != ((30, 10), (24, 6))[r][c]
                sheet.box(
                    (x + 24 + 84 * c, 56 + 44 * r), (76, 38), "#f6ddd7" if moved else PALE, ALARM if moved else LINE
                )
                sheet.words((x + 62 + 84 * c, 81 + 44 * r), str(value), anchor="middle", bold=True)
        for c in range(2):
            sheet.words((x + 62 + 84 * c, 48), ("no", "smokes")[c], anchor="middle", colour=SOFT, size=11)
    sheet.words((40, 172), "CTBIL of this table: 3/24 + 3/6 = 0.625", colour=SOFT)
    return sheet


def generalization() -> Sheet:
    """A hierarchy of postal codes with a level, its height, and the leaves it covers."""
    sheet = Sheet(720, 250, "A hierarchy of postal codes: 0213* is at level 1 of 3 and covers two of five leaves")
    places: dict[str, Place] = {
        "*": (340, 36),
        "02***": (340, 92),
        "0213*": (200, 148),
        "0214*": (480, 148),
        "02138": (140, 204),
        "02139": (260, 204),
        "02141": (400, 204),
        "02142": (480, 204),
        "02144": (560, 204),
    }
    up = {"02***": "*", "0213*": "02***", "0214*": "02***", "02138": "0213*", "02139": "0213*"}
    up |= dict.fromkeys(("02141", "02142", "02144"), "0214*")
    for child, parent in up.items():
        sheet.line(places[child], places[parent], LINE, 1.5)
    for name, (x, y) in places.items():
        marked = name in ("0213*", "02138", "02139")
        sheet.box(
            (x - 32, y - 15),
            (64, 28),
            ACCENT if name == "0213*" else PALE if marked else "#ffffff",
            ACCENT if marked else LINE,
        )
        sheet.words((x, y + 4), name, anchor="middle", bold=True, colour="#ffffff" if name == "0213*" else "#1d2830")
    sheet.lines((600, 100), ("level 1 of 3", "Prec 1 - 1/3"), colour=SOFT)
    sheet.lines((600, 148), ("2 of 5 leaves", "1 - 1/4"), colour=SOFT)
    for level in range(4):
        sheet.words((20, 208 - 56 * level), f"level {level}", colour=SOFT, size=11)
    return sheet


def plausibility() -> Sheet:
    """Counts of the sexes of the demo before and after."""
    frame = make_patients().to_pandas()
    after = kinfold.anonymize(frame, Policy.parse(tomllib.loads(read_demo_policy()))).frame
    sheet = Sheet(640, 180, "Records of each sex before and after: the rarest category is gone")
    for i, value in enumerate(("female", "male", "other")):
        y = 36 + 48 * i
        old, new = int((frame["sex"] == value).sum()), int((after["sex"] == value).sum())
        sheet.words((20, y + 14), value)
        sheet.box((90, y - 8), (max(old * 0.8, 1), 15), SAND, EDGE, 1)
        sheet.box((90, y + 11), (max(new * 0.8, 0.5), 15), ACCENT, "none", 1)
        sheet.words((100 + old * 0.8, y + 4), f"{old}", size=11, colour=SOFT)
        sheet.words(
            (100 + new * 0.8, y + 23),
            f"{new}" if new else "0: vanished",
            size=11,
            colour=ACCENT if new else ALARM,
            bold=not new,
        )
    return sheet


def tasks() -> Sheet:
    """Two lines: fitted to the original and to class means."""
    random = np.random.default_rng(9)
    x = random.uniform(0, 10, 40)
    y = 0.7 * x + random.normal(scale=1.6, size=40) + 1
    labels = mdav(np.column_stack([x, y]) / 3, 10)
    means = np.array([[x[labels == c].mean(), y[labels == c].mean()] for c in labels])
    sheet = Sheet(640, 300, "A line fitted to the original and one fitted to class means, both judged on the original")
    panel = Panel((50, 30), (420, 220), (0, 10), (-1, 11))
    panel.frame(sheet, "x", "y")
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        sheet.dot(panel(a, b), 3.5, SAND, EDGE)
    for a, b in {(float(a), float(b)) for a, b in means}:
        sheet.dot(panel(a, b), 5, ACCENT)
    scores = []
    for points, colour in ((np.column_stack([x, y]), EDGE), (means, ACCENT)):
        slope, start = np.polyfit(points[:, 0], points[:, 1], 1)
        sheet.curve([panel(0, float(start)), panel(10, float(start + 10 * slope))], colour, 2.5)
        scores.append(1 - float(((y - start - slope * x) ** 2).sum() / ((y - y.mean()) ** 2).sum()))
    sheet.lines((490, 80), ("fitted to the original", f"R² = {scores[0]:.4f}"), colour=EDGE, bold=True)
    sheet.lines((490, 140), ("fitted to class means", f"R² = {scores[1]:.4f}"), colour=ACCENT, bold=True)
    return sheet
