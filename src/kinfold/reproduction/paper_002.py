"""Sweeney 2002: generalization and suppression, Prec, MinGen, Datafly and mu-Argus, figure by figure.

The hierarchy of BirthDate (Figure 6) is lost in the scan. Datafly's and mu-Argus's figures come out with any hierarchy
whose first level that merges anything is the year; Prec depends on its height, and the two printed values of Prec for
tables with birth dates cannot both come out under any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np

from kinfold.hierarchy import Hierarchy, by_mask, by_rows
from kinfold.measures.generalized import prec
from kinfold.measures.grouping import group_rows
from kinfold.methods.generalize.datafly import FrequencyList, datafly
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.generalization import Generalization
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.loss import generalizations
from kinfold.methods.generalize.mingen import mingen
from kinfold.methods.generalize.mingen_cell import mingen_cell
from kinfold.methods.generalize.mu_argus import MuArgus, Ranks, combinations_tested, find_outliers, mu_argus
from kinfold.models import KAnonymity
from kinfold.reproduction.bench import Bench
from kinfold.reproduction.expectation import Exhibit, Expectation, Key, Ours, Paper, Plot, Worked, expect, mentioned
from kinfold.reproduction.printed import cells, columns, examples, rows, table, value
from kinfold.rows.tally import Tally

NAMES = ("race", "birth", "gender", "zip")
PRINTED_NAMES = tuple(columns("002", "figure_7_pt")[1:])
RANKS = Ranks(identifying=("race",), more=("gender", "zip"), most=("birth",))
TWO = [KAnonymity(2)]
RACE = by_rows([["asian", "person"], ["black", "person"], ["white", "person"]])
GENDER = by_rows([["male"], ["female"]])
ZIP = by_mask(["02138", "02139", "02141", "02142"], 2)
FIGURE_4 = {"GT[1,0]": (1, 0), "GT[1,1]": (1, 1), "GT[0,2]": (0, 2), "GT[0,1]": (0, 1)}
FIGURE_7 = [row[1:] for row in rows("002", "figure_7_pt")]
KINDS = {"identifying": "i", "more": "m", "most": "t"}


def domain(records: Sequence[Sequence[str]], names: Sequence[str], hierarchies: Mapping[str, Hierarchy]) -> Domain:
    """Return a table of which each row is a class of its own, in the order given."""
    parts = {name: np.array([record[a] for record in records], object) for a, name in enumerate(names)}
    return Domain.of_tally(Tally(parts, np.ones(len(records), np.int64)), hierarchies)


def birth_dates(with_month: bool = False) -> Hierarchy:
    """Return a hierarchy of Figure 7's birth dates: the year, the decade, and the month below where wanted."""
    found = []
    for _, day, _, _ in FIGURE_7:
        month, _, year = day.split("/")
        found.append([day, *([f"{month}/{year}"] if with_month else []), year, f"{year[:3]}0-{year[2]}9"])
    return by_rows(found)


def figure_4() -> Domain:
    """Return PT of Figure 4 with the hierarchies of Figures 2 and 3."""
    pairs = [tuple(row["PT"].lower().split()) for row in table("002", "figure_4")]
    return domain(pairs, ("race", "zip"), {"race": RACE, "zip": ZIP})


def figure_7(with_month: bool = False) -> Domain:
    """Return PT of Figure 7."""
    trees = {"race": RACE, "birth": birth_dates(with_month), "gender": GENDER, "zip": ZIP}
    return domain(FIGURE_7, NAMES, trees)


def released(made: Generalization) -> list[tuple[str, ...]]:
    """Return the rows of a generalization."""
    return list(zip(*made.columns().values(), strict=True))


def combination(names: Sequence[str]) -> str:
    """Return a combination of attributes in the order of the table.

    >>> combination(("zip", "birth"))
    'birth, zip'
    """
    return ", ".join(sorted(names, key=NAMES.index))


def tuples(name: str) -> dict[Key, str]:
    """Return the tuples of a printed table, each as one text."""
    return {(row[0], "tuple"): ", ".join(row[1:]) for row in rows("002", name)}


def prec_of(levels: Sequence[Sequence[int]], over: Domain) -> float:
    """Return Prec of a table by the level of each of its cells."""
    return prec(levels, over.heights)


def gt_levels(over: Domain) -> list[list[int]]:
    """Return the level of each cell of Figure 7's GT: the lowest at which the hierarchy has what is printed."""
    printed = [row[1:] for row in rows("002", "figure_7_gt")]
    found = []
    for place, row in enumerate(printed):
        found.append([_level(over, place, a, text) for a, text in enumerate(row)])
    return found


def _level(over: Domain, place: int, attribute: int, text: str) -> int:
    return _labels(over, place, attribute).index(text)


def _figure_1(_: Bench) -> Worked:
    found = group_rows(np.array(rows("002", "figure_1"))[:, 1:])[0]
    return Worked({("T", "k"): int(np.bincount(found).min())})


def _example_2(_: Bench) -> Worked:
    values: dict[Key, Ours] = {}
    for row, column in examples("002", "Example 2"):
        name, __, wanted = row.partition(" = ")
        values[row, column] = sum(record[name] == wanted for record in table("002", "figure_1"))
    return Worked(values)


def _hierarchies(_: Bench) -> Worked:
    return Worked({("ZIP", "height"): ZIP.height, ("Race", "height"): RACE.height})


def _figure_4(_: Bench) -> Worked:
    values: dict[Key, Ours] = {}
    for name, levels in FIGURE_4.items():
        for place, row in enumerate(released(Generalization.full(figure_4(), levels)), start=1):
            values[f"t{place}", name] = " ".join(row).capitalize()
    return Worked(values)


def _example_3(_: Bench) -> Worked:
    return Worked({(name, "k"): Generalization.full(figure_4(), levels).k for name, levels in FIGURE_4.items()})


def _equation_1(_: Bench) -> Worked:
    return Worked({("Race, ZIP", "generalizations"): generalizations(figure_4().heights)})


def _levels(nodes: Sequence[Sequence[int]]) -> str:
    return " ".join(f"[{','.join(map(str, levels))}]" for levels in nodes)


def _example_4(_: Bench) -> Worked:
    minimal = [node.levels for node in Lattice(figure_4(), TWO).minimal()]
    return Worked({("k = 2", "minimal generalizations"): _levels(minimal)}, (_lattice(minimal),))


def _lattice(minimal: Sequence[Sequence[int]]) -> Plot:
    """Return the twelve generalizations of Figure 4's PT as a lattice, each with its k and its Prec."""
    nodes = [node.levels for node in Lattice(figure_4(), TWO)]
    points = []
    for levels in nodes:
        made = Generalization.full(figure_4(), levels)
        above = [(a, b) for a, b in nodes if (a - levels[0], b - levels[1]) in ((0, 1), (1, 0))]
        points.append(
            {
                "x": levels[1] - 1.6 * levels[0],
                "y": sum(levels),
                "label": f"[{levels[0]},{levels[1]}] k {made.k}",
                "below": f"Prec {made.prec():.2f}" + (", minimal" if levels in minimal else ""),
                "lines": [[b - 1.6 * a, a + b] for a, b in above],
            }
        )
    return Plot("Generalizations of PT: levels of Race and ZIP", "", "", points, chart="reproduced_lattice")


def _example_5(_: Bench) -> Worked:
    over = figure_4()
    found = {"RT = PT": [[0, 0]] * len(over), "every value at the top": [list(over.heights)] * len(over)}
    return Worked({(name, "Prec"): prec_of(levels, over) for name, levels in found.items()})


def _example_6(_: Bench) -> Worked:
    return Worked({(name, "Prec"): Generalization.full(figure_4(), levels).prec() for name, levels in FIGURE_4.items()})


def _definition_6(_: Bench) -> Worked:
    return Worked({("k = 2", "minimal distortions"): _levels([node.levels for node in mingen(figure_4(), TWO)])})


def _theorem_2(_: Bench) -> Worked:
    """Return whether MinGen's optima are minimal generalizations, for every k below the number of tuples."""
    found = (
        all({n.levels for n in mingen(over, [KAnonymity(k)])} <= _minimal(over, k) for k in range(2, len(over)))
        for over in (figure_4(), figure_7())
    )
    return Worked(dict(zip(examples("002", "Theorem 2"), found, strict=True)))


def _minimal(over: Domain, k: int) -> set[tuple[int, ...]]:
    return {node.levels for node in Lattice(over, [KAnonymity(k)]).minimal()}


def _equation_2(_: Bench) -> Worked:
    """Return how many tables there are at cell level, every one made: the formula's value is what is printed."""
    over, values = figure_4(), {}
    for count, key in enumerate(examples("002", "Equation 2"), start=1):
        cells_ = [_labels(over, place, attribute) for place in range(count) for attribute in range(len(over.heights))]
        values[key] = len(set(product(*cells_)))
    return Worked(values)


def _labels(over: Domain, place: int, attribute: int) -> list[str]:
    """Return what may become of one cell, from its own value up to the top."""
    levels = range(over.heights[attribute] + 1)
    return [str(over.released(attribute, np.full(len(over), level))[place]) for level in levels]


def _figure_7(_: Bench) -> Worked:
    printed = np.array([row[1:] for row in rows("002", "figure_7_gt")])
    best = {month: mingen_cell(figure_7(month), TWO, "prec").generalization.prec() for month in (False, True)}
    theirs = {month: prec_of(gt_levels(figure_7(month)), figure_7(month)) for month in (False, True)}
    note = (
        "The hierarchy of BirthDate (Figure 6) is lost in the scan: GT has 0.90 where the year is the first of six "
        f"steps. Where it is the first of three, GT has {theirs[False]:.3f} and the exact optimum at cell level "
        f"{best[False]:.3f}; with the month below it {theirs[True]:.3f} and {best[True]:.3f}."
    )
    return Worked(
        {
            ("GT", "k"): int(np.bincount(group_rows(printed)[0]).min()),
            ("PT", "Prec"): prec_of([[0] * 4] * len(printed), figure_7()),
            ("GT", "Prec"): gt_prec(1, 2, 6),
            ("GT", "is a minimal distortion"): all(best[month] <= theirs[month] + 1e-12 for month in best),
            ("Prec of Figures 7 and 10", "one hierarchy gives both"): any(
                _both(*each) for each in _birth_hierarchies()
            ),
        },
        note=note,
    )


def gt_prec(year: int, decade: int, height: int) -> float:
    """Return Prec of Figure 7's GT where BirthDate has so many steps, the year and the decade after so many."""
    levels, tops = _gt()
    steps_up = {0: 0, 1: year, 2: decade, 3: height}
    moved = [[race, steps_up[birth], gender, zip_] for race, birth, gender, zip_ in levels]
    return prec(moved, [tops[0], height, *tops[2:]])


@cache
def _gt() -> tuple[list[list[int]], tuple[int, ...]]:
    return gt_levels(figure_7()), figure_7().heights


def mgt_prec(year: int, height: int) -> float:
    """Return Prec of Figure 10's MGT where BirthDate has so many steps, the year after so many."""
    made = _mgt()
    tops = [made.domain.heights[0], height, *made.domain.heights[2:]]
    return prec([tops if out else [0, year, 0, 0] for out in made.suppressed], tops)


@cache
def _mgt() -> Generalization:
    return datafly(figure_7(), TWO).generalization


def _birth_hierarchies() -> list[tuple[int, int, int]]:
    """Return year, decade and height of every hierarchy of BirthDate up to 12 steps."""
    return [(y, d, h) for h in range(2, 13) for d in range(2, h + 1) for y in range(1, d)]


def _both(year: int, decade: int, height: int) -> bool:
    first, second = value("002", "Figure 7", "GT", "Prec"), value("002", "Figure 10", "MGT", "Prec")
    return round(gt_prec(year, decade, height), 2) == first and round(mgt_prec(year, height), 2) == second


def steps(place: int) -> FrequencyList:
    """Return a frequency list of Datafly on Figure 7: 0 before the first step, -1 after the last."""
    return datafly(figure_7(), TWO).steps[place][0]


def _distinct(found: FrequencyList) -> dict[Key, Ours]:
    named = zip(PRINTED_NAMES, NAMES, strict=True)
    return {(name, "distinct values"): found.distinct[own] for name, own in named}


def _figure_9_a(_: Bench) -> Worked:
    found = steps(0)
    return Worked({**_distinct(found), ("sequences", "that occur once"): int((found.occurs == 1).sum())})


def _figure_9_b(_: Bench) -> Worked:
    found = steps(-1)
    values = _distinct(found)
    listed = zip(*(found.columns[name] for name in NAMES), found.occurs.tolist(), found.rows, strict=True)
    for *cells_, count, places in listed:
        row = ", ".join(f"t{place + 1}" for place in places)
        values |= {(row, name): cell for name, cell in zip((*PRINTED_NAMES, "#occurs"), (*cells_, count), strict=True)}
    return Worked(values)


def _figure_10(_: Bench) -> Worked:
    made = _mgt()
    gone = [bool(each) for each in made.suppressed]
    kept = {f"t{i}": row for i, (row, out) in enumerate(zip(released(made), gone, strict=True), start=1) if not out}
    values: dict[Key, Ours] = {(name, "tuple"): ", ".join(row) for name, row in kept.items()}
    values["MGT", "k"] = made.k
    values["MGT", "suppressed"] = ", ".join(f"t{i}" for i, out in enumerate(gone, start=1) if out)
    values["MGT", "Prec"] = mgt_prec(2, 5)
    own = f"{made.prec():.3f} where it is the first of three"
    return Worked(values, note=f"Prec is 0.75 where the year is the second of five steps of BirthDate, {own}.")


def _figure_12(_: Bench) -> Worked:
    names = [f"{letter}{i}" for letter in KINDS.values() for i in range(3)]
    groups = {kind: tuple(name for name in names if name[0] == letter) for kind, letter in KINDS.items()}
    ranks = Ranks(groups["identifying"], groups["more"], groups["most"])
    every, some = (_kinds(combinations_tested(names, ranks, way)) for way in ("all", "figure-12"))
    return Worked({("2- and 3-combinations", "kinds not tested at all"): len(every - some)})


def _kinds(combos: Sequence[Sequence[str]]) -> set[tuple[str, ...]]:
    return {tuple(sorted(name[0] for name in combo)) for combo in combos}


def argus(tested: str = "all") -> MuArgus:
    """Return what mu-Argus makes of Figure 7, all combinations tested or those of Figure 12."""
    return mu_argus(figure_7(), 2, RANKS, tested="figure-12" if tested == "figure-12" else "all")


def _figure_13(_: Bench) -> Worked:
    most_more = [("birth", "zip"), ("birth", "gender")]
    found = find_outliers(figure_7(), argus().levels, 2, most_more)
    rare = [place for place, combos in enumerate(found) if combos]
    told = "; ".join(combination(combo) for place in rare for combo in found[place])
    row = "outliers of Most x More"
    return Worked({(row, "tuples"): ", ".join(f"t{i + 1}" for i in rare), (row, "combination of t8"): told})


def _figure_14(_: Bench) -> Worked:
    found = {f"t{i}": set(map(combination, combos)) for i, combos in enumerate(argus().outliers, start=1) if combos}
    values: dict[Key, Ours] = {(name, combo): True for name, combos in found.items() for combo in combos}
    printed = {row["combination"] for row in table("002", "figure_14") if row["tuple"] == "t8"}
    values["t8", "left out"] = "; ".join(sorted(found["t8"] - printed))
    return Worked(values)


def figure_14() -> dict[Key, Expectation]:
    """Return the outliers of Figure 14, one by one, and what it leaves out."""
    listed = {(row["tuple"], row["combination"]): "yes" for row in table("002", "figure_14")}
    return expect(listed) | examples("002", "Figure 14")


def _figure_15(_: Bench) -> Worked:
    made, actual = argus().generalization, argus("figure-12").generalization
    values: dict[Key, Ours] = {(f"t{i}", "tuple"): ", ".join(row) for i, row in enumerate(released(made), start=1)}
    values["MT", "is 2-anonymous"] = made.k >= 2
    column = next(name for row, name in examples("002", "Figure 15") if name.startswith("t7"))
    values["MTactual", column] = column == "t7 is " + ", ".join(released(actual)[6])
    values["MTactual", "is 2-anonymous"] = actual.k >= 2
    return Worked(values)


STEPS = "an algorithm, printed as steps; what it makes of the printed table is compared in"

PAPER = Paper(
    "002",
    "Sweeney 2002: Achieving k-anonymity privacy protection using generalization and suppression",
    (
        Exhibit("Figure 1", "Example 1, a 2-anonymous table", examples("002", "Figure 1"), _figure_1),
        Exhibit(
            "Example 2", "Theorem 1: every value occurs at least k times", examples("002", "Example 2"), _example_2
        ),
        Exhibit("Figures 2 and 3", "Hierarchies, suppression on top", examples("002", "Figures 2 and 3"), _hierarchies),
        Exhibit(
            "Figure 4",
            "Generalizations of PT",
            expect({key: text for key, text in cells("002", "figure_4", "{tuple}").items() if key[1] != "PT"}),
            _figure_4,
        ),
        Exhibit("Example 3", "k of the tables of Figure 4", examples("002", "Example 3"), _example_3),
        Exhibit("Equation 1", "How many generalizations there are", examples("002", "Equation 1"), _equation_1),
        Exhibit("Example 4", "k-minimal generalizations", examples("002", "Example 4"), _example_4),
        Exhibit("Example 5", "Prec at its ends", examples("002", "Example 5"), _example_5),
        Exhibit("Example 6", "Prec of the tables of Figure 4", examples("002", "Example 6"), _example_6),
        Exhibit("Definition 6", "k-minimal distortion", examples("002", "Definition 6"), _definition_6),
        Exhibit("Theorem 2", "Minimal distortions", examples("002", "Theorem 2"), _theorem_2),
        Exhibit("Equation 2", "Tables at cell level, every one made", examples("002", "Equation 2"), _equation_2),
        mentioned("Figure 5", "MinGen", f"{STEPS} Figure 7"),
        mentioned(
            "Figure 6",
            "Hierarchies of BirthDate and Gender",
            "lost in the scan; what follows from them is in Figures 7 and 10",
        ),
        Exhibit("Figure 7", "Example 7, MinGen at cell level", examples("002", "Figure 7"), _figure_7),
        mentioned("Figure 8", "Datafly", f"{STEPS} Figures 9 and 10"),
        Exhibit("Figure 9A", "Datafly before the first step", examples("002", "Figure 9A"), _figure_9_a),
        Exhibit(
            "Figure 9B",
            "Datafly after the last step",
            expect(cells("002", "figure_9_b", "{tuples}")) | examples("002", "Figure 9B"),
            _figure_9_b,
        ),
        Exhibit(
            "Figure 10", "Datafly's release", expect(tuples("figure_10")) | examples("002", "Figure 10"), _figure_10
        ),
        mentioned("Figure 11", "mu-Argus", f"{STEPS} Figures 13 to 15"),
        Exhibit("Figure 12", "Combinations that the program tests", examples("002", "Figure 12"), _figure_12),
        Exhibit("Figure 13", "mu-Argus: Most x More", examples("002", "Figure 13"), _figure_13),
        Exhibit("Figure 14", "mu-Argus: combinations that are too rare", figure_14(), _figure_14),
        Exhibit(
            "Figure 15",
            "mu-Argus's releases",
            expect(tuples("figure_15_mt")) | examples("002", "Figure 15"),
            _figure_15,
            reading="MTactual is cut off in the scan: what the text says of it is compared.",
        ),
    ),
)
