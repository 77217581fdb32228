"""The pictures that are kinfold's own charts: class sizes, the R-U map, what each column lost."""

from __future__ import annotations

import re
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from pyarrow import csv

import kinfold
from kinfold.demo import read_demo_policy, write_demo_table
from kinfold.policy.model import Policy
from kinfold.release.report import chart
from kinfold.release.report.distribution_charts import chart_class_sizes as class_sizes
from tools.pictures.sheet import ACCENT, EDGE, FONT, SOFT, Sheet

METHODS, KS = ("mdav", "lattice"), (3, 5, 10)


def pictures() -> Iterator[tuple[str, Sheet | str]]:
    """Yield each picture with its name; charts are SVG already."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "patients.csv"
        write_demo_table(table)
        policy = Policy.parse(tomllib.loads(read_demo_policy()))
        release = kinfold.anonymize(table, policy)
        yield "class-sizes-before-after", before_after(release)
        yield "loss-by-column", loss_by_column(release)
        yield "risk-utility", risk_utility(table, policy)


def standing(svg: str, width: int) -> str:
    """Make an element of a page a picture of its own: a width, and white behind it."""
    _, _, wide, high = map(float, re.findall(r'viewBox="([\d. -]+)"', svg)[0].split())
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{width * high / wide:.0f}"'
    white = f'<rect width="{wide:g}" height="{high:g}" fill="#ffffff"/>'
    made = svg.replace('<svg xmlns="http://www.w3.org/2000/svg"', head, 1)
    return re.sub(r"(</title>(?:<desc.*?</desc>)?)", rf"\1{white}", made, count=1) + "\n"


def before_after(release: kinfold.Release) -> str:
    """The class sizes of the original and of the release, by kinfold's own chart, beside each other."""
    quasi = [column.name for column in release.policy.columns if column.role == "quasi-identifier"]
    table = csv.read_csv(release.source).to_pandas()
    sizes = (table.groupby(quasi, dropna=False).size(), np.bincount(release.labels))
    drawn = []
    for i, each in enumerate(sizes):
        found, number = np.unique(np.asarray(each), return_counts=True)
        if picture := class_sizes(list(zip(found.tolist(), number.tolist(), strict=True)), 5):
            drawn.append(chart.draw(picture, f"sizes{i}"))
    return beside(drawn, ("original", "release"))


def beside(parts: list[str], names: tuple[str, ...]) -> str:
    """Put charts beside each other on one white sheet, each under its name."""
    body = []
    for i, (part, name) in enumerate(zip(parts, names, strict=True)):
        inner = part.replace("<svg ", f'<svg x="{20 + 400 * i}" y="34" width="380" height="220" ', 1)
        body.append(f'<text x="{24 + 400 * i}" y="26" font-size="14" font-weight="700">{name}</text>{inner}')
    head = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 820 262" width="820" height="262" role="img"'
    white = '<rect width="820" height="262" fill="#ffffff"/>'
    return f'{head} font-family="{FONT}">{white}{"".join(body)}</svg>\n'


def loss_by_column(release: kinfold.Release) -> Sheet:
    """What each column of the demo lost, largest first."""
    lost = sorted(release.measures["loss"]["by_column"].items(), key=lambda item: -item[1])
    sheet = Sheet(640, 40 + 28 * len(lost), "What each quasi-identifier of the demo lost")
    for i, (name, share) in enumerate(lost):
        y = 20 + 28 * i
        sheet.words((130, y + 14), name, anchor="end")
        sheet.box((140, y), (420, 20), "#f4f6f7", "none", 1)
        sheet.box((140, y), (420 * share, 20), ACCENT, "none", 1)
        sheet.words((570, y + 14), f"{share:.1%}", bold=True)
    overall = release.measures["loss"]["overall"]
    x, bottom = 140 + 420 * overall, 20 + 28 * len(lost)
    sheet.line((x, 12), (x, bottom), EDGE, 1.5, dashed=True)
    sheet.words((x + 6, bottom + 12), f"mean of all: {overall:.1%}", colour=SOFT, size=11)
    return sheet


def risk_utility(table: Path, policy: Policy) -> str:
    """The R-U map of two methods at three k."""
    return standing(chart.draw(kinfold.compare(table, policy, methods=METHODS, k=KS).map(), "map"), 620)
