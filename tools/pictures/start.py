"""The pictures of the first pages: the flow, the decision tree, sixty patients before and after."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kinfold.demo import make_patients
from kinfold.partition import mdav
from tools.pictures.scales import Panel, around
from tools.pictures.sheet import ACCENT, ALARM, EDGE, PALE, SAND, SHADES, SOFT, Place, Sheet

STEPS = (
    ("read", "source", "files, frames, databases"),
    ("bind", "policy", "roles, types, promises"),
    ("plan", "recoding", "classes or levels"),
    ("apply", "released rows", "by the engine"),
    ("verify", "verdict", "k, l, t found anew"),
    ("measure", "risk and loss", "beside the original"),
    ("report", "release folder", "named only if it holds"),
)


def pictures() -> Iterator[tuple[str, Sheet]]:
    """Yield each picture with its name."""
    yield "flow", flow()
    yield "choose", choose()
    yield "before-after", before_after()


def flow() -> Sheet:
    """The way of the data, and what stands between the makers and the judges."""
    sheet = Sheet(880, 262, "The way of the data: read, bind, plan, apply, verify, measure, report")
    sheet.box((10, 14), (486, 156), PALE, "none", 8)
    sheet.box((506, 14), (366, 156), "#fbf4e4", "none", 8)
    sheet.words((22, 38), "makes", colour=ACCENT, size=12, bold=True)
    sheet.words((520, 38), "judges, and knows no maker", colour=EDGE, size=12, bold=True)
    for i, (verb, noun, more) in enumerate(STEPS):
        x = 20 + 120 * i + (16 if i > 3 else 0)
        sheet.box((x, 60), (104, 72), edge=ACCENT if i < 4 else EDGE)
        sheet.words((x + 52, 84), verb, anchor="middle", bold=True, size=14)
        sheet.words((x + 52, 103), noun, anchor="middle", size=12)
        sheet.words((x + 52, 120), more, anchor="middle", size=8.5, colour=SOFT)
        if i:
            sheet.arrow((x - (32 if i == 4 else 16), 96), (x - 1, 96))
    sheet.words(
        (440, 208), "the tally: class sizes, and how confidential values fall into them", anchor="middle", colour=SOFT
    )
    sheet.arrow((312, 192), (312, 136))
    sheet.arrow((552, 192), (552, 136))
    stop = "A promise that does not hold stops here, with code 5, and nothing gets its name."
    sheet.words((866, 244), stop, anchor="end", colour=ALARM)
    sheet.arrow((590, 230), (580, 136), ALARM)
    return sheet


def choose() -> Sheet:
    """From what you have to what to ask for."""
    sheet = Sheet(860, 470, "Which promise and which method: a decision tree")
    _question(sheet, (290, 20), "Is a column confidential?", 280)
    _branch(sheet, (340, 58), (150, 104), "no")
    _answer(sheet, (60, 108), ("k alone",))
    _branch(sheet, (520, 58), (600, 104), "yes")
    _question(sheet, (480, 108), "numbers, or categories?", 240)
    _branch(sheet, (520, 146), (470, 190), "categories")
    _answer(sheet, (380, 194), ("k and l", "l = 2 or 3; l_kind entropy if strict"))
    _branch(sheet, (690, 146), (740, 190), "numbers")
    _answer(sheet, (650, 194), ("k and t", "t = 0.2 to 0.3"))
    sheet.line((20, 252), (840, 252), "#d5dade")
    _question(sheet, (265, 270), "Must every value stay literally true?", 330)
    _branch(sheet, (340, 308), (160, 350), "no: near is enough")
    _branch(sheet, (520, 308), (600, 350), "yes")
    _answer(sheet, (50, 354), ("mdav, refined", "under a t: t-first", "one column: univariate"))
    _question(sheet, (480, 354), "May it become coarser?", 240)
    _branch(sheet, (510, 392), (430, 418), "no")
    _branch(sheet, (600, 392), (600, 418), "by cell")
    _branch(sheet, (680, 392), (760, 418), "by column")
    for x, text in ((340, "local-suppression"), (530, "mingen-cell"), (690, "lattice")):
        _answer(sheet, (x, 420), (text,), 150)
    return sheet


def _question(sheet: Sheet, at: Place, text: str, width: float) -> None:
    sheet.box(at, (width, 36), PALE, ACCENT, 18)
    sheet.words((at[0] + width / 2, at[1] + 23), text, anchor="middle", size=13, bold=True)


def _answer(sheet: Sheet, at: Place, texts: tuple[str, ...], width: float = 190) -> None:
    height = 16 + 17 * len(texts)
    sheet.box(at, (width, height), "#fbf4e4", EDGE)
    for row, text in enumerate(texts):
        place = (at[0] + width / 2, at[1] + 21 + 17 * row)
        sheet.words(place, text, anchor="middle", bold=not row, size=13 if not row else 11)


def _branch(sheet: Sheet, a: Place, b: Place, text: str) -> None:
    sheet.arrow(a, b)
    left = b[0] < a[0]
    sheet.words(
        ((a[0] + b[0]) / 2 + (-8 if left else 10), (a[1] + b[1]) / 2),
        text,
        colour=SOFT,
        size=11,
        anchor="end" if left else "start",
    )


def before_after() -> Sheet:
    """Sixty patients of the demo table, and the classes of five that MDAV makes of them."""
    table = make_patients().slice(0, 60)
    age = np.array(table["age"].to_pylist(), float)
    day = np.array([value.timetuple().tm_yday for value in table["admission"].to_pylist()], float)
    points = np.column_stack([age, day])
    labels = mdav((points - points.mean(axis=0)) / points.std(axis=0), 5)
    sheet = Sheet(860, 330, "Sixty patients before and after: twelve classes of five share one point each")
    left = Panel((50, 46), (350, 240), (0, 100), (0, 366))
    right = Panel((480, 46), (350, 240), (0, 100), (0, 366))
    left.frame(sheet, "age", "day of admission", "original: nobody alike")
    right.frame(sheet, "age", "day of admission", "released: five at each point")
    for label in range(labels.max() + 1):
        chosen = points[labels == label]
        colour = SHADES[label % len(SHADES)]
        sheet.outline(around([left(*row) for row in chosen.tolist()]), colour, "none")
        sheet.outline(around([right(*row) for row in chosen.tolist()]), colour, "none")
        for row in chosen.tolist():
            sheet.dot(left(*row), 3.5, SAND, EDGE)
        x, y = chosen.mean(axis=0).tolist()
        sheet.dot(right(x, y), 9, colour)
        sheet.words(
            (right(x, y)[0], right(x, y)[1] + 4),
            str(len(chosen)),
            anchor="middle",
            size=11,
            colour="#ffffff",
            bold=True,
        )
    return sheet
