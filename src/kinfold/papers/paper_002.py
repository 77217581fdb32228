"""Sweeney 2002: generalization and suppression, Prec, MinGen, Datafly and mu-Argus, figure by figure.

The hierarchy of BirthDate (Figure 6) is lost in the scan. The figures of Datafly and mu-Argus come out with every
hierarchy whose first merging level is the year. Prec depends on its height, and no hierarchy gives both printed values
of Prec for tables with birth dates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np

from kinfold.hierarchies import Hierarchy, build_from_mask, build_from_rows
from kinfold.measures.formulas.categorical_loss import prec
from kinfold.methods.generalize.datafly import DataflyResult, FrequencyList, datafly
from kinfold.methods.generalize.domain import Domain
from kinfold.methods.generalize.lattice import Lattice
from kinfold.methods.generalize.levels import Generalization, count_generalizations
from kinfold.methods.generalize.mingen import mingen
from kinfold.methods.generalize.mingen_cell import mingen_cell
from kinfold.methods.generalize.mu_argus import Ranks, find_outliers, list_combinations, mu_argus
from kinfold.models import KAnonymity
from kinfold.papers.data import PaperData, smallest_class
from kinfold.papers.exhibits import CellKey, CellValue, ExhibitResult, PrintedValues, Values, plot_lattice
from kinfold.tables.tally import Tally

PRINTED = PrintedValues("002")
NAMES = ("race", "birth", "gender", "zip")
PRINTED_NAMES = tuple(PRINTED.read_columns("figure_7_pt")[1:])
RANKS = Ranks(identifying=("race",), more=("gender", "zip"), most=("birth",))
TWO = [KAnonymity(2)]
RACE = build_from_rows([["asian", "person"], ["black", "person"], ["white", "person"]])
GENDER = build_from_rows([["male"], ["female"]])
ZIP = build_from_mask(["02138", "02139", "02141", "02142"], 2)
FIGURE_4 = {"GT[1,0]": (1, 0), "GT[1,1]": (1, 1), "GT[0,2]": (0, 2), "GT[0,1]": (0, 1)}
FIGURE_7 = [row[1:] for row in PRINTED.read_rows("figure_7_pt")]


def make_domain(records: Sequence[Sequence[str]], names: Sequence[str], hierarchies: Mapping[str, Hierarchy]) -> Domain:
    """Return a domain with one row per record, in the given order."""
    parts = {name: np.array([record[a] for record in records], object) for a, name in enumerate(names)}
    return Domain.from_tally(Tally(parts, np.ones(len(records), np.int64)), hierarchies)


def birth_dates(with_month: bool = False) -> Hierarchy:
    """Return a hierarchy of the birth dates of Figure 7: year and decade, optionally with the month below."""
    rows = []
    for _, day, _, _ in FIGURE_7:
        month, _, year = day.split("/")
        rows.append([day, *([f"{month}/{year}"] if with_month else []), year, f"{year[:3]}0-{year[2]}9"])
    return build_from_rows(rows)


def figure_4() -> Domain:
    """Return PT of Figure 4 with the hierarchies of Figures 2 and 3."""
    pairs = [tuple(row["PT"].lower().split()) for row in PRINTED.read_table("figure_4")]
    return make_domain(pairs, ("race", "zip"), {"race": RACE, "zip": ZIP})


def figure_7(with_month: bool = False) -> Domain:
    """Return PT of Figure 7."""
    trees = {"race": RACE, "birth": birth_dates(with_month), "gender": GENDER, "zip": ZIP}
    return make_domain(FIGURE_7, NAMES, trees)


def list_rows(generalization: Generalization) -> list[tuple[str, ...]]:
    """Return the rows of a generalization."""
    return list(zip(*generalization.columns().values(), strict=True))


def format_combination(names: Sequence[str]) -> str:
    """Return a combination of attributes in the order of the table.

    >>> format_combination(("zip", "birth"))
    'birth, zip'
    """
    return ", ".join(sorted(names, key=NAMES.index))


def read_tuples(name: str) -> dict[CellKey, str]:
    """Return the tuples of a printed table, each as one text."""
    return {(row[0], "tuple"): ", ".join(row[1:]) for row in PRINTED.read_rows(name)}


def gt_levels(domain: Domain) -> list[list[int]]:
    """Return the level of each cell of GT in Figure 7: the lowest level with the printed label."""
    printed = [texts[1:] for texts in PRINTED.read_rows("figure_7_gt")]
    return [
        [_list_labels(domain, row, attribute).index(text) for attribute, text in enumerate(texts)]
        for row, texts in enumerate(printed)
    ]


def _figure_1(_: PaperData) -> Values:
    return {("T", "k"): smallest_class(np.array(PRINTED.read_rows("figure_1"))[:, 1:])}


def _example_2(_: PaperData) -> Values:
    values = {}
    for row, column in PRINTED.read_examples("Example 2"):
        name, __, wanted = row.partition(" = ")
        values[row, column] = sum(record[name] == wanted for record in PRINTED.read_table("figure_1"))
    return values


def _generalize_figure_4() -> dict[str, Generalization]:
    return {name: Generalization.full_domain(figure_4(), levels) for name, levels in FIGURE_4.items()}


def _figure_4(_: PaperData) -> Values:
    return {
        (f"t{number}", name): " ".join(row).capitalize()
        for name, generalization in _generalize_figure_4().items()
        for number, row in enumerate(list_rows(generalization), start=1)
    }


def _format_levels(nodes: Sequence[Sequence[int]]) -> str:
    return " ".join(f"[{','.join(map(str, levels))}]" for levels in nodes)


def _example_4(_: PaperData) -> ExhibitResult:
    minimal = [node.levels for node in Lattice(figure_4(), TWO).minimal()]
    texts = {}
    for node in Lattice(figure_4(), TWO):
        table = Generalization.full_domain(figure_4(), node.levels)
        below = f"Prec {table.prec():.2f}" + (", minimal" if node.levels in minimal else "")
        texts[node.levels] = (f"{_format_levels([node.levels])} k {table.k}", below)
    plot = plot_lattice("Generalizations of PT: levels of Race and ZIP", texts, (1.6, 1))
    return ExhibitResult({("k = 2", "minimal generalizations"): _format_levels(minimal)}, (plot,))


def _example_5(_: PaperData) -> Values:
    domain = figure_4()
    tables = {"RT = PT": [[0, 0]] * len(domain), "every value at the top": [list(domain.heights)] * len(domain)}
    return {(name, "Prec"): prec(levels, domain.heights) for name, levels in tables.items()}


def _definition_6(_: PaperData) -> Values:
    return {("k = 2", "minimal distortions"): _format_levels([node.levels for node in mingen(figure_4(), TWO)])}


def _theorem_2(_: PaperData) -> Values:
    """Return whether the optima of MinGen are minimal generalizations, for every k below the number of tuples."""

    def are_minimal(domain: Domain, k: int) -> bool:
        minimal = {node.levels for node in Lattice(domain, [KAnonymity(k)]).minimal()}
        return {node.levels for node in mingen(domain, [KAnonymity(k)])} <= minimal

    claims = (all(are_minimal(domain, k) for k in range(2, len(domain))) for domain in (figure_4(), figure_7()))
    return PRINTED.name_examples("Theorem 2", claims)


def _equation_2(_: PaperData) -> Values:
    """Return the number of tables at cell level, by enumeration; the paper prints the value of the formula."""
    domain, values = figure_4(), {}
    attributes = range(len(domain.heights))
    for count, key in enumerate(PRINTED.read_examples("Equation 2"), start=1):
        values[key] = len(set(product(*(_list_labels(domain, row, a) for row in range(count) for a in attributes))))
    return values


def _list_labels(domain: Domain, row: int, attribute: int) -> list[str]:
    """Return the labels of one cell, from its own value up to the top."""
    levels = range(domain.heights[attribute] + 1)
    return [str(domain.labels_at(attribute, np.full(len(domain), level))[row]) for level in levels]


def _figure_7(_: PaperData) -> ExhibitResult:
    printed = np.array([row[1:] for row in PRINTED.read_rows("figure_7_gt")])
    domains = [figure_7(), figure_7(with_month=True)]
    best = [mingen_cell(domain, TWO, "prec").generalization.prec() for domain in domains]
    theirs = [prec(gt_levels(domain), domain.heights) for domain in domains]
    note = (
        "The hierarchy of BirthDate (Figure 6) is lost in the scan: GT has 0.90 if the year is the first of six "
        f"steps. If it is the first of three, GT has {theirs[0]:.3f} and the exact optimum at cell level "
        f"{best[0]:.3f}; with the month below it {theirs[1]:.3f} and {best[1]:.3f}."
    )
    values = {
        ("GT", "k"): smallest_class(printed),
        ("PT", "Prec"): prec([[0] * 4] * len(printed), domains[0].heights),
        ("GT", "Prec"): gt_prec(1, 2, 6),
        ("GT", "is a minimal distortion"): all(b <= t + 1e-12 for b, t in zip(best, theirs, strict=True)),
        ("Prec of Figures 7 and 10", "one hierarchy gives both"): _some_hierarchy_gives_both(),
    }
    return ExhibitResult(values, note=note)


def gt_prec(year: int, decade: int, height: int) -> float:
    """Return Prec of GT in Figure 7 if BirthDate has this height, with the year and the decade at these levels."""
    levels, tops = _gt()
    steps_up = {0: 0, 1: year, 2: decade, 3: height}
    moved = [[race, steps_up[birth], gender, zip_] for race, birth, gender, zip_ in levels]
    return prec(moved, [tops[0], height, *tops[2:]])


@cache
def _gt() -> tuple[list[list[int]], tuple[int, ...]]:
    return gt_levels(figure_7()), figure_7().heights


def mgt_prec(year: int, height: int) -> float:
    """Return Prec of MGT in Figure 10 if BirthDate has this height, with the year at this level."""
    released = _run_datafly().generalization
    tops = [released.domain.heights[0], height, *released.domain.heights[2:]]
    return prec([tops if out else [0, year, 0, 0] for out in released.suppressed], tops)


@cache
def _run_datafly() -> DataflyResult:
    return datafly(figure_7(), TWO)


def _some_hierarchy_gives_both() -> bool:
    """Return whether a hierarchy of BirthDate with a height up to 12 gives Prec of GT and of MGT."""
    first, second = PRINTED.read_value("Figure 7", "GT", "Prec"), PRINTED.read_value("Figure 10", "MGT", "Prec")
    return any(
        round(gt_prec(year, decade, height), 2) == first and round(mgt_prec(year, height), 2) == second
        for height in range(2, 13)
        for decade in range(2, height + 1)
        for year in range(1, decade)
    )


def _count_distinct(frequencies: FrequencyList) -> dict[CellKey, CellValue]:
    named = zip(PRINTED_NAMES, NAMES, strict=True)
    return {(name, "distinct values"): frequencies.distinct[own] for name, own in named}


def _figure_9_a(_: PaperData) -> Values:
    frequencies = _run_datafly().steps[0]
    return _count_distinct(frequencies) | {("sequences", "that occur once"): int((frequencies.counts == 1).sum())}


def _figure_9_b(_: PaperData) -> Values:
    frequencies = _run_datafly().steps[-1]
    values = _count_distinct(frequencies)
    columns = [frequencies.columns[name] for name in NAMES]
    for *row, members in zip(*columns, frequencies.counts.tolist(), frequencies.rows, strict=True):
        tuples = ", ".join(f"t{member + 1}" for member in members)
        values |= {(tuples, name): cell for name, cell in zip((*PRINTED_NAMES, "#occurs"), row, strict=True)}
    return values


def _figure_10(_: PaperData) -> ExhibitResult:
    released = _run_datafly().generalization
    rows = {f"t{i}": row for i, row in enumerate(list_rows(released), start=1)}
    suppressed = [name for name, out in zip(rows, released.suppressed, strict=True) if out]
    values: dict[CellKey, CellValue] = {
        (name, "tuple"): ", ".join(row) for name, row in rows.items() if name not in suppressed
    }
    values["MGT", "k"] = released.k
    values["MGT", "suppressed"] = ", ".join(suppressed)
    values["MGT", "Prec"] = mgt_prec(2, 5)
    third = f"{released.prec():.3f} where it is the first of three"
    return ExhibitResult(values, note=f"Prec is 0.75 where the year is the second of five steps of BirthDate, {third}.")


def _figure_12(_: PaperData) -> Values:
    names = {letter: tuple(f"{letter}{i}" for i in range(3)) for letter in "imt"}  # identifying, more, most
    ranks = Ranks(names["i"], names["m"], names["t"])
    every, some = (
        {
            tuple(sorted(name[0] for name in combination))
            for combination in list_combinations([*names["i"], *names["m"], *names["t"]], ranks, rule)
        }
        for rule in ("all", "figure-12")
    )
    return {("2- and 3-combinations", "kinds not tested at all"): len(every - some)}


def _figure_13(_: PaperData) -> Values:
    most_more = [("birth", "zip"), ("birth", "gender")]
    outliers = find_outliers(figure_7(), mu_argus(figure_7(), 2, RANKS).levels, 2, most_more)
    rare = [row for row, combos in enumerate(outliers) if combos]
    row = "outliers of Most x More"
    return {
        (row, "tuples"): ", ".join(f"t{i + 1}" for i in rare),
        (row, "combination of t8"): "; ".join(format_combination(combo) for i in rare for combo in outliers[i]),
    }


def _figure_14(_: PaperData) -> Values:
    outliers = {
        (f"t{i}", format_combination(combination))
        for i, combinations in enumerate(mu_argus(figure_7(), 2, RANKS).outliers, start=1)
        for combination in combinations
    }
    omitted = sorted(text for name, text in outliers - set(read_outliers()) if name == "t8")
    return {**dict.fromkeys(outliers, True), ("t8", "left out"): "; ".join(omitted)}


def read_outliers() -> dict[CellKey, str]:
    """Return the outliers that Figure 14 lists."""
    return {(row["tuple"], row["combination"]): "yes" for row in PRINTED.read_table("figure_14")}


def _figure_15(_: PaperData) -> Values:
    released = mu_argus(figure_7(), 2, RANKS).generalization
    actual = mu_argus(figure_7(), 2, RANKS, tested="figure-12").generalization
    values: dict[CellKey, CellValue] = {
        (f"t{i}", "tuple"): ", ".join(row) for i, row in enumerate(list_rows(released), start=1)
    }
    values["MT", "is 2-anonymous"] = released.k >= 2
    column = next(name for row, name in PRINTED.read_examples("Figure 15") if name.startswith("t7"))
    values["MTactual", column] = column == "t7 is " + ", ".join(list_rows(actual)[6])
    values["MTactual", "is 2-anonymous"] = actual.k >= 2
    return values


PAPER = PRINTED.make_paper(
    {
        "Figure 1": _figure_1,
        "Example 2": _example_2,
        "Figures 2 and 3": lambda _: {("ZIP", "height"): ZIP.height, ("Race", "height"): RACE.height},
        "Figure 4": _figure_4,
        "Example 3": lambda _: {(name, "k"): table.k for name, table in _generalize_figure_4().items()},
        "Equation 1": lambda _: {("Race, ZIP", "generalizations"): count_generalizations(figure_4().heights)},
        "Example 4": _example_4,
        "Example 5": _example_5,
        "Example 6": lambda _: {(name, "Prec"): table.prec() for name, table in _generalize_figure_4().items()},
        "Definition 6": _definition_6,
        "Theorem 2": _theorem_2,
        "Equation 2": _equation_2,
        "Figure 7": _figure_7,
        "Figure 9A": _figure_9_a,
        "Figure 9B": _figure_9_b,
        "Figure 10": _figure_10,
        "Figure 12": _figure_12,
        "Figure 13": _figure_13,
        "Figure 14": _figure_14,
        "Figure 15": _figure_15,
    },
    {
        "Figure 10": read_tuples("figure_10"),
        "Figure 14": read_outliers(),
        "Figure 15": read_tuples("figure_15_mt"),
    },
)
