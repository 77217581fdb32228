"""A case of the battery: a table, a policy for it, and the promises that a release of it must keep."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from battery.covering import Choice
from battery.plain import WEIGHT, Population, Promise
from battery.tables import KINDS, SHAPES, Made, column
from kinfold.policy.binding import AVERAGES
from kinfold.policy.registry import AUTO, Need, get_method
from kinfold.tables.schema import Kind

ORDERED = ("whole", "decimal", "grade", "rank", "day")  # kinds of a confidential column with an order
GENERALIZING = ("hierarchies", "suppression")  # what methods need whose values stay true
LITTLE = {"t": 0.5, "l": 2, "entropy": 1.3, "c": 4.0, "p": 2, "alpha": 0.9, "beta": 4.0, "delta": 3.0, "risk": 0.4}
MUCH = {"t": 0.15, "l": 3, "entropy": 2.5, "c": 1.0, "p": 3, "alpha": 0.5, "beta": 0.7, "delta": 1.0, "risk": 0.15}


def get_needs(name: str) -> tuple[Need, ...]:
    """Return the needs of a method; `auto` has none."""
    return get_method(name).needs if name != AUTO else ()


@dataclass(frozen=True)
class Case:
    """What is asked of kinfold, and by what the answer is judged."""

    choice: Choice
    table: pa.Table
    policy: dict[str, Any]
    quasi: list[str]
    confidential: list[str]
    promises: list[Promise]
    unit: str | None
    joint: bool
    population: pa.Table | None

    def ask(self, folder: Path) -> dict[str, Any]:
        """The policy; a table of the population is written to a file like the source."""
        if self.population is None:
            return self.policy
        form = "csv" if self.choice["source"] == "csv" else "parquet"
        path = folder / f"people.{form}"
        _write(self.population, path)
        privacy = self.policy["privacy"]
        return {**self.policy, "privacy": {**privacy, "population": {**privacy["population"], "table": str(path)}}}

    @property
    def k(self) -> int:
        return int(self.choice["k"])

    def source(self, folder: Path) -> Any:
        """The table in the form that was chosen."""
        form = self.choice["source"]
        if form == "pandas":
            return self.table.to_pandas()
        if form == "polars":
            return pl.from_arrow(self.table)
        if form == "pyarrow":
            return self.table
        path = folder / f"table.{form}"
        _write(self.table, path)
        return path

    def as_one(self) -> list[dict[str, Any]]:
        """The rows that may leave as if all were one class: values that some lack can be blanked for the others."""
        asked = self.policy["columns"]
        gone = [name for name in self.quasi if asked[name].get("missing") == "drop"]
        kept = [row for row in self.table.to_pylist() if all(row[name] is not None for name in gone)]
        return [{**row, **dict.fromkeys(self.quasi, "*")} for row in kept]

    def values(self) -> set[str]:
        """The values of the table that nothing else could be."""
        held = {str(value) for name in self.table.column_names for value in self.table.column(name).to_pylist()}
        return {text for text in held if len(text) > 4 and text != "False"}


def _write(table: pa.Table, path: Path) -> None:
    write = pyarrow.csv.write_csv if path.suffix == ".csv" else pyarrow.parquet.write_table
    write(table, path)


@dataclass
class Draft:
    """A case while it is put together."""

    choice: Choice
    chance: np.random.Generator
    n: int
    columns: dict[str, pa.Array] = field(default_factory=dict)
    asked: dict[str, dict[str, Any]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    made: dict[str, Made] = field(default_factory=dict)

    @property
    def needed(self) -> tuple[Need, ...]:
        return get_needs(self.choice["method"])

    @property
    def levels(self) -> dict[str, Any]:
        return LITTLE if self.choice["asked"] == "little" else MUCH

    @property
    def models(self) -> set[str]:
        """The models asked for: those that the method cannot keep only where nothing else is asked for."""
        asked = {self.choice["first"], self.choice["second"]}
        return asked - {"unit", "joint"} or asked if "rows" in self.needed else asked

    @property
    def further(self) -> str:
        """The promise about combinations or the population: people, joint columns and some methods refuse it."""
        if {"unit", "joint"} & self.models:
            return "nothing"
        kept = {"individual risk": "population table"} if "rows" in self.needed else {"presence": "individual risk"}
        return kept.get(self.choice["further"], self.choice["further"])

    def add(self, name: str, kind: str, how: str, **asked: Any) -> Made:
        made = column(kind, how, self.n, self.chance)
        shown = made.asked if self.choice["declared"] else {k: v for k, v in made.asked.items() if k == "order"}
        self.columns[name], self.kinds[name], self.made[name] = made.array, kind, made
        self.asked[name] = {**shown, **asked}
        return made


def case(choice: Choice) -> Case:
    """Make the case of a choice; the same choice makes the same one."""
    chance = np.random.default_rng(choice["number"])
    n = choice["k"] * choice["records"] + int(chance.integers(0, choice["k"]))
    draft = Draft(choice, chance, n)
    _quasi(draft)
    promises = _confidential(draft)
    quasi = [name for name, asked in draft.asked.items() if asked["role"] == "quasi-identifier"]
    confidential = [name for name, asked in draft.asked.items() if asked["role"] == "confidential"]
    unit = "who" if "unit" in draft.models else None
    if unit:
        draft.columns["who"] = pa.array([f"who{i:03}w" for i in chance.integers(0, max(2, n), n)])
        draft.asked["who"] = {"role": "identifier"}
    population = _population(draft, quasi)
    if population is not None:
        kinds = {name: draft.kinds[name] for name in quasi}
        ladder = {row[0]: row for row in KINDS["rank"](n, False)[3]["levels"]}
        known = Population(population.to_pylist(), kinds, ladder)
        promises = [replace(each, known=known if each.model in ("people", "presence") else None) for each in promises]
    if draft.further == "individual risk":
        draft.columns[WEIGHT] = pa.array(chance.integers(1, 7, n))
        draft.asked[WEIGHT] = {"role": "weight"}
    policy = {"privacy": _privacy(draft), "method": _method(draft), "columns": draft.asked, "output": _output(choice)}
    joint = "joint" in draft.models
    return Case(choice, pa.table(draft.columns), policy, quasi, confidential, promises, unit, joint, population)


def _population(draft: Draft, quasi: list[str]) -> pa.Table | None:
    """The people of the table, and as many whose values are drawn from theirs column by column."""
    if draft.further not in ("population table", "presence"):
        return None
    columns = {name: draft.columns[name] for name in quasi}
    mixed = [each.take(pa.array(draft.chance.integers(0, draft.n, draft.n))) for each in columns.values()]
    return pa.concat_tables([pa.table(columns), pa.table(mixed, names=quasi)])


def _quasi(draft: Draft) -> None:
    kinds = SHAPES[draft.choice["columns"]]
    if "one number" in draft.needed:  # one of text is refused
        kinds = ("whole",) if draft.choice["columns"] in ("all nominal", "all ordinal", "one ordinal") else kinds[:1]
    odd = int(draft.chance.integers(len(kinds)))
    for number, kind in enumerate(kinds):
        how = draft.choice["values"]
        if how.startswith("one "):
            how = {"one constant": "constant", "one null": "all null"}[how] if number == odd else "as they come"
        _add_quasi(draft, f"q{number}", kind, how)


def _add_quasi(draft: Draft, name: str, kind: str, how: str) -> None:
    made = draft.add(name, kind, how, role="quasi-identifier", weight=float(draft.chance.choice([0.5, 1.0, 3.0])))
    asked, meaning = draft.asked[name], Kind(made.asked["type"])
    if kind in ("truth", "grade"):
        asked["type"] = made.asked["type"]
    average = draft.choice["average"]
    of_generalizers = ("suppress",) if "suppression" in draft.needed else ("generalize", "suppress")
    if average in AVERAGES[meaning] and (average in of_generalizers or not {*GENERALIZING} & {*draft.needed}):
        asked["average"] = average
    inferred = not draft.choice["declared"]
    if meaning.is_numeric and not (
        inferred and made.array.null_count == draft.n
    ):  # then it is nominal, as far as anybody knows
        asked["missing"] = draft.choice["missing"]
        truthful = {*GENERALIZING} & {*draft.needed} or asked.get("average") in ("generalize", "suppress")
        if truthful and asked["missing"] == "mean":
            asked["missing"] = "separate"
    wanted = draft.choice["hierarchies"]
    if wanted == "everywhere" or (wanted == "as needed" and "hierarchies" in draft.needed and meaning.is_numeric):
        asked["hierarchy"] = made.hierarchy


def _confidential(draft: Draft) -> list[Promise]:
    """Add the columns that the models speak of, each with its own t."""
    models, how, t = draft.models, draft.choice["confidential"], draft.levels["t"]
    ordered = str(draft.chance.choice(ORDERED))
    wanted = [model for model in ("t ordered", "t equal", "t hierarchical") if model in models]
    if not wanted and "t" in draft.needed:
        wanted = ["t ordered"]
    promises: list[Promise] = []
    for number, model in enumerate(wanted or ["t ordered"]):
        name, kind = f"c{number}", "word" if model == "t hierarchical" else ordered
        if model == "t equal" and draft.chance.random() < 0.5:
            kind = "word"
        made = draft.add(name, kind, how, role="confidential", type=KINDS[kind](1, False)[2]["type"])
        distance = model.removeprefix("t ")
        if distance == "equal" and kind != "word":
            draft.asked[name]["distance"] = "equal"
        if distance == "hierarchical":
            draft.asked[name]["hierarchy"] = {"levels": _ladder(draft.n)}
        if wanted:
            draft.asked[name]["t"] = t
            tree = {row[0]: row for row in _ladder(draft.n)} if distance == "hierarchical" else {}
            promises.append(Promise("t", name, t, distance, kind, order=made.asked.get("order", []), tree=tree))
    if "joint" in models and len(wanted) < 2:
        draft.add("other", "truth", "ties", role="confidential", type="nominal")
    return promises + _counted(draft)


def _ladder(n: int) -> list[list[str]]:
    return [[f"nq{i:03}x", f"some {i // 3:03}", f"many {i // 9:03}"] for i in range(n)]


def _counted(draft: Draft) -> list[Promise]:
    """The promises that every confidential column makes."""
    names = [name for name, asked in draft.asked.items() if asked["role"] == "confidential"]
    asked = _privacy(draft)
    found = [Promise("average risk", "", asked["average_risk"])] if "average_risk" in asked else []
    if "combinations" in asked:
        size, most = asked["combinations"]["size"], asked["combinations"]["confidence"]
        found.append(Promise("combinations", "", draft.choice["k"], c=size))
        found += [Promise("confidence", name, most, c=size) for name in names]
    if "population" in asked:
        people = asked["population"]
        if "presence" in people:
            found.append(Promise("presence", "", people["presence"][0], c=people["presence"][1]))
        elif "uniques" in people:
            found.append(Promise("uniques", "", people["uniques"], people=people["size"]))
        elif "alpha" in people:
            found.append(Promise("population", "", people["k"], c=people["alpha"], people=people["size"]))
        else:
            found.append(Promise("people", "", people["k"]))
    if "individual_risk" in asked:
        found.append(Promise("individual risk", "", asked["individual_risk"]))
    if "risk_share" in asked:
        found.append(Promise("risk share", "", asked["risk_share"]["most"], c=asked["risk_share"]["above"]))
    for name in names:
        if "l" in asked:
            found.append(Promise("l", name, asked["l"], asked["l_kind"], c=asked.get("c", 1.0)))
        if "p" in asked:
            found.append(Promise("p", name, asked["p"]))
        if "alpha" in asked:
            found.append(Promise("alpha", name, asked["alpha"]))
        if "beta" in asked:
            found.append(Promise("beta", name, asked["beta"], asked["beta_kind"]))
        if "delta" in asked:
            found.append(Promise("delta", name, asked["delta"]))
    return found


def _privacy(draft: Draft) -> dict[str, Any]:
    levels, models = draft.levels, draft.models
    privacy: dict[str, Any] = {"k": draft.choice["k"]}
    kinds = sorted(model.removeprefix("l ") for model in models if model.startswith("l "))
    if kinds:  # a policy has one kind of l: of two, the first
        privacy |= {"l": levels["entropy"] if kinds[0] == "entropy" else levels["l"], "l_kind": kinds[0]}
        privacy |= {"c": levels["c"]} if kinds[0] == "recursive" else {}
    privacy |= {key: levels[key] for key in ("p", "alpha", "delta") if key in models}
    privacy |= {"average_risk": levels["risk"]} if "average risk" in models else {}
    privacy |= {"risk_share": {"above": levels["risk"], "most": 0.3}} if "risk share" in models else {}
    kinds = sorted(model.removeprefix("beta ") for model in models if model.startswith("beta "))
    privacy |= {"beta": levels["beta"], "beta_kind": kinds[0]} if kinds else {}
    further, little = draft.further, draft.choice["asked"] == "little"
    if further in ("combinations", "population uniques"):
        privacy |= {"combinations": {"size": 2, "confidence": 0.9 if little else 0.6}}
    if further == "population":
        privacy |= {"population": {"size": 20 * max(draft.n, 1), "k": 40, "alpha": 0.05}}
    if further == "population uniques":
        limit = 0.2 if little else 0.01
        privacy |= {"population": {"size": 20 * max(draft.n, 1), "uniques": limit, "estimator": "zayatz"}}
    if further == "population table":
        privacy |= {"population": {"k": 3 * draft.choice["k"]}}
    if further == "presence":
        privacy |= {"population": {"presence": [0.0, 0.9] if little else [0.2, 0.7]}}
    privacy |= {"individual_risk": levels["risk"]} if further == "individual risk" else {}
    privacy |= {"unit": "who"} if "unit" in models else {}
    return privacy | ({"joint": True} if "joint" in models else {})


def _method(draft: Draft) -> dict[str, Any]:
    choice = draft.choice
    method = {"name": choice["method"]} | {key: choice[key] for key in ("suppression", "prove", "objective")}
    if choice["refine_steps"] is not None:
        method["refine_steps"] = choice["refine_steps"]
    if choice["number"] % 3 == 0:  # not a factor: every third case, in blocks of twice k
        method["block"] = 1
    return method


def _output(choice: Choice) -> dict[str, Any]:
    output = {key: choice[key] for key in ("suppressed", "preserve", "round", "order")}
    return output | {"format": choice["saved"] or "csv"}
