"""The pictures of the models: a table or a few bars each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kinfold.demo import make_patients
from tools.pictures.scales import Panel
from tools.pictures.sheet import ACCENT, ALARM, EDGE, PALE, SAND, SOFT, Sheet

CREAM = "#fbf4e4"


def pictures() -> Iterator[tuple[str, Sheet]]:
    """Yield each picture with its name."""
    yield "model-k", k_anonymity()
    yield "model-l", l_diversity()
    yield "model-t", t_closeness()
    yield "model-p", p_sensitive()
    yield "model-alpha", alpha_k()
    yield "model-beta", shares("Three values: a rare one triples its share", (0.6, 0.36, 0.04), (0.55, 0.33, 0.12), 1)
    yield "model-delta", shares("Three values: a class lacks one of them", (0.5, 0.3, 0.2), (0.6, 0.4, 0.0), 0)
    yield "model-average-risk", average_risk()
    yield "model-combinations", combinations()
    yield "model-population", population()


def k_anonymity() -> Sheet:
    """A table before and after, with its classes coloured."""
    sheet = Sheet(720, 200, "Six records before and after: two classes of three")
    before = [("age", "zip", "disease"), ("31", "02138", "flu"), ("33", "02139", "asthma"), ("35", "02138", "flu")]
    before += [("62", "02141", "angina"), ("64", "02141", "flu"), ("69", "02142", "cancer")]
    after = [
        before[0],
        *(("33", "0213*", row[2]) for row in before[1:4]),
        *(("65", "0214*", row[2]) for row in before[4:]),
    ]
    sheet.table((30, 30), before, (60, 80, 90))
    sheet.arrow((285, 100), (345, 100))
    sheet.table((380, 30), after, (60, 80, 90), fills=[PALE] * 3 + [CREAM] * 3)
    sheet.words((630, 80), "class of 3", colour=ACCENT, bold=True)
    sheet.words((630, 146), "class of 3", colour=EDGE, bold=True)
    return sheet


def l_diversity() -> Sheet:
    """Three classes by what they hold."""
    sheet = Sheet(720, 170, "Three classes of four: one value, two values of which one is frequent, three values")
    rows = (
        ("one disease: l = 1", ("flu",) * 4, "everybody in it has flu", ALARM),
        ("distinct l = 2, entropy l = 1.75", ("flu", "flu", "flu", "cold"), "most have flu", EDGE),
        ("distinct l = 3, entropy l = 2.83", ("flu", "flu", "cold", "asthma"), "hard to say", ACCENT),
    )
    for i, (name, held, said, colour) in enumerate(rows):
        y = 22 + 50 * i
        sheet.words((16, y + 20), name, size=12, bold=True)
        for j, value in enumerate(held):
            sheet.box((250 + 78 * j, y), (72, 30), PALE if value != "flu" else CREAM, colour)
            sheet.words((286 + 78 * j, y + 20), value, anchor="middle")
        sheet.words((576, y + 20), said, colour=colour)
    return sheet


def t_closeness() -> Sheet:
    """The distribution function of a charge: in the table, in a class that is close, in one that is not."""
    charge = np.sort(np.array(make_patients()["charge"].to_pylist(), float))
    ranks = np.linspace(0, 1, len(charge))
    classes = ([80, 330, 520, 700, 930], [560, 700, 820, 900, 980])
    sheet = Sheet(760, 280, "The share of charges up to a value, in the table and in two classes of five")
    for i, (held, said, colour) in enumerate(zip(classes, ("close", "not close"), (ACCENT, ALARM), strict=True)):
        panel = Panel((50 + 370 * i, 40), (310, 190), (0, 1), (0, 1))
        distance = float(np.abs(np.searchsorted(held, np.arange(len(charge)), "right") / 5 - ranks).mean())
        panel.frame(sheet, "charge, by rank in the table", "share up to it", f"{said}: {distance:.2f}")
        steps = [(0.0, 0.0)]
        for j, record in enumerate(held):
            steps += [(ranks[record], j / 5), (ranks[record], (j + 1) / 5)]
        steps.append((1.0, 1.0))
        area = [panel(x, y) for x, y in steps] + [panel(0, 0)]
        sheet.outline(area, colour, "none")
        sheet.curve([panel(0, 0), panel(1, 1)], SAND, 3)
        sheet.curve([panel(x, y) for x, y in steps], colour)
    sheet.words((50, 268), "The area between the two is the earth mover's distance of ordered values.", colour=SOFT)
    return sheet


def p_sensitive() -> Sheet:
    """Two classes of three records, one of which has a single value."""
    sheet = Sheet(620, 200, "Two classes of three: the second has a single disease")
    rows = [("age", "zip", "disease"), *(("33", "0213*", each) for each in ("flu", "asthma", "flu"))]
    rows += [("65", "0214*", "cancer")] * 3
    sheet.table((30, 30), rows, (60, 80, 90), fills=[PALE] * 3 + [CREAM] * 3, marks={(3, 2), (4, 2), (5, 2)})
    sheet.words((300, 80), "p = 2: two different values", colour=ACCENT, bold=True)
    sheet.words((300, 146), "p = 1: whoever is in it has cancer", colour=ALARM, bold=True)
    return sheet


def alpha_k() -> Sheet:
    """Shares of the most frequent value in three classes, against alpha."""
    sheet = Sheet(620, 210, "The share of the most frequent value in three classes; alpha is one half")
    bars: Sequence[tuple[str, float]] = (("class 1", 0.4), ("class 2", 0.5), ("class 3", 0.75))
    panel = Panel((120, 30), (420, 150), (0, 1), (0, 3))
    for i, (name, share) in enumerate(bars):
        x, y = panel(0, 3 - i)
        sheet.words((x - 12, y + 26), name, anchor="end")
        sheet.box((x, y + 6), (share * 420, 32), ACCENT if share <= 0.5 else ALARM, "none", 2)
        sheet.words((x + share * 420 + 8, y + 27), f"{share:.0%} flu", bold=True)
    sheet.line(panel(0.5, 3), panel(0.5, -0.1), SOFT, 1.5, dashed=True)
    sheet.words((panel(0.5, 0)[0] + 6, 200), "alpha = 0.5", colour=SOFT)
    return sheet


def shares(title: str, table: Sequence[float], held: Sequence[float], below: int) -> Sheet:
    """Shares of three values in the table and in a class, with the quotients; `below` is the limit on the gain."""
    sheet = Sheet(640, 60 + 60 * len(table), title)
    sheet.words((120, 22), "share in the table, and below it in the class", colour=SOFT)
    for i, (p, q, name) in enumerate(zip(table, held, ("flu", "cold", "hiv"), strict=True)):
        y = 36 + 60 * i
        wrong = q / p - 1 > below if below else q == 0
        sheet.words((108, y + 28), name, anchor="end", bold=True)
        for share, at, colour in ((p, y, SAND), (q, y + 21, ALARM if wrong else ACCENT)):
            sheet.box((120, at), (max(share, 0.004) * 420, 18), colour, "none", 2)
            sheet.words((128 + share * 420, at + 14), f"{share:.0%}", size=12)
        text = f"{q / p:.1f} times" if q else "lacking: can be ruled out"
        sheet.words((470, y + 35), text, colour=ALARM if wrong else SOFT, bold=wrong)
    return sheet


def average_risk() -> Sheet:
    """Five classes of 2 to 8 records, with the risk of each and the average."""
    sizes = (2, 3, 3, 4, 8)
    sheet = Sheet(
        640, 60 + 30 * len(sizes), "Five classes of 2, 3, 3, 4 and 8 records: the average risk is one quarter"
    )
    sheet.words(
        (120, 22), f"records of each class, and their risk; average {len(sizes)}/{sum(sizes)} = 25 %", colour=SOFT
    )
    for i, size in enumerate(sizes):
        y, high = 36 + 30 * i, size < 3
        for j in range(size):
            sheet.box((120 + 34 * j, y), (28, 20), ALARM if high else ACCENT, "none", 2)
        sheet.words((430, y + 15), f"{1 / size:.0%}", colour=ALARM if high else SOFT, bold=high)
    return sheet


def combinations() -> Sheet:
    """A table in which two people share every pair of values, and nobody shares all three."""
    sheet = Sheet(720, 250, "Eight records: every pair of values occurs twice, every triple once")
    rows = [("age", "sex", "town")]
    rows += [(age, sex, town) for age in ("30-39", "40-49") for sex in ("f", "m") for town in ("north", "south")]
    sheet.table((30, 20), rows, (70, 50, 70), fills=[PALE, PALE, CREAM, CREAM] * 2)
    notes = (("one value", "4 records", ACCENT), ("two values", "2 records", ACCENT), ("three values", "1", ALARM))
    for i, (known, left, colour) in enumerate(notes):
        sheet.words((290, 70 + 50 * i), f"others know {known}:", size=13)
        sheet.words((470, 70 + 50 * i), f"{left} left", colour=colour, bold=True)
    return sheet


def population() -> Sheet:
    """Three classes: the records of each among its people of the population."""
    classes = ((2, 9), (3, 4), (4, 8))
    sheet = Sheet(640, 60 + 36 * len(classes), "Three classes of 2, 3 and 4 records among 9, 4 and 8 people")
    sheet.words((120, 22), "people of each class; filled: in the table", colour=SOFT)
    for i, (records, people) in enumerate(classes):
        y = 36 + 36 * i
        for j in range(people):
            sheet.box((120 + 34 * j, y), (28, 22), ACCENT if j < records else PALE, EDGE, 2)
        high = people < 5
        text = f"{people} people, presence {records / people:.0%}"
        sheet.words((450, y + 16), text, colour=ALARM if high else SOFT, bold=high)
    return sheet
