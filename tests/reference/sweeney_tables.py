"""The tables and hierarchies of Sweeney 2002 (Figures 2 to 7) as a domain each."""

import numpy as np

from kinfold.hierarchy import Hierarchy, by_mask, by_rows
from kinfold.methods.generalize.domain import Domain
from kinfold.rows.tally import Tally

RACE = by_rows([["asian", "person"], ["black", "person"], ["white", "person"]])
GENDER = by_rows([["male"], ["female"]])
ZIP = by_mask(["02138", "02139", "02141", "02142"], 2)

# Figure 7, PT; the year is the first level of BirthDate that merges anything
FIGURE_7 = [
    ("black", "9/20/1965", "male", "02141"),
    ("black", "2/14/1965", "male", "02141"),
    ("black", "10/23/1965", "female", "02138"),
    ("black", "8/24/1965", "female", "02138"),
    ("black", "11/7/1964", "female", "02138"),
    ("black", "12/1/1964", "female", "02138"),
    ("white", "10/23/1964", "male", "02138"),
    ("white", "3/15/1965", "female", "02139"),
    ("white", "8/13/1964", "male", "02139"),
    ("white", "5/5/1964", "male", "02139"),
    ("white", "2/13/1967", "male", "02138"),
    ("white", "3/21/1967", "male", "02138"),
]
NAMES = ("race", "birth", "gender", "zip")


def birth_dates(with_month: bool = False) -> Hierarchy:
    rows = []
    for _, day, _, _ in FIGURE_7:
        month, _, year = day.split("/")
        rows.append([day, *([f"{month}/{year}"] if with_month else []), year, "1960-69"])
    return by_rows(rows)


def domain(rows, names, hierarchies, confidential=None) -> Domain:
    """Each row a class of its own, in the order given."""
    columns = {name: np.array([row[a] for row in rows], object) for a, name in enumerate(names)}
    return Domain.of_tally(Tally(columns, np.ones(len(rows), np.int64)), hierarchies)


def figure_4() -> Domain:
    rows = [(race, zip_) for race in ("black", "white") for zip_ in ("02138", "02139", "02141", "02142")]
    return domain(rows, ("race", "zip"), {"race": RACE, "zip": ZIP})


def figure_7(with_month: bool = False) -> Domain:
    trees = {"race": RACE, "birth": birth_dates(with_month), "gender": GENDER, "zip": ZIP}
    return domain(FIGURE_7, NAMES, trees)
