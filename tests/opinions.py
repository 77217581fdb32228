"""Random tables, and what each opinion says of their k, l, t and alpha; a figure is named by its model and its column.

pycanon is asked where it is right; where it is known not to be, what it says is left out and explained:

    null          it overlooks records with a null in a quasi-identifier, and cannot sort a null among values: not asked
    constant      its numeric t divides by zero where a column has one value: the truth is 0
    whole number  its entropy is cut to a whole number, also 2.9999999 to 2: compared as such
    recursive     its c is that of the rarest value, where the definition has the most frequent one: the same only where
                  all values of a class are equally frequent, else never above the truth
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pycanon import anonymity
from scipy.stats import wasserstein_distance

from kinfold import checker
from kinfold.hierarchies import build_from_rows
from kinfold.models import AlphaK, KAnonymity, LDiversity, PSensitive, TCloseness
from kinfold.models.terms import ConfidentialColumn, Terms
from kinfold.tables.duckdb.engine import DuckDB
from kinfold.verification import verify
from reference import definitions as plainly
from reference.emd import ancestors, emd, unequal

QUASI, CONFIDENTIAL = ("age", "zip"), ("wage", "disease", "grade")
GRADES = ("none", "some", "much")
TREE = (("flu", "lung", "*"), ("cold", "lung", "*"), ("ulcer", "gut", "*"), ("gout", "joint", "*"))
C = 2.5  # of the recursive diversity

Figure = tuple[str, str]  # a model and a column
Figures = dict[Figure, float]


@dataclass(frozen=True)
class Table:
    """A drawn table, and how its promises are meant."""

    frame: pd.DataFrame
    joint: bool
    distances: dict[str, str]

    @cached_property
    def rows(self) -> dict[str, list[Any]]:
        return {name: [None if pd.isna(v) else v for v in self.frame[name]] for name in self.frame.columns}

    def of(self, *names: str) -> pd.DataFrame:
        """Some columns as pycanon is quickest with: nothing else, and texts as objects."""
        return self._objects[[*names]]

    @cached_property
    def _objects(self) -> pd.DataFrame:
        texts = [name for name in self.frame.columns if name not in ("age", "wage")]
        return self.frame.astype(dict.fromkeys(texts, object))

    @property
    def nulls(self) -> bool:
        return bool(self.frame.isna().any(axis=None))

    def known(self, name: str) -> list[str]:
        """What somebody knows who asks for a confidential value."""
        return [*QUASI, *(other for other in CONFIDENTIAL if self.joint and other != name)]

    def held(self, name: str) -> list[plainly.Held]:
        rows = self.rows
        return plainly.classes([*zip(*(rows[by] for by in self.known(name)), strict=True)], rows[name])

    def values(self, name: str) -> list[Any]:
        """The different values of a column in their order, null first."""
        place = {text: at for at, text in enumerate((*GRADES, *(row[0] for row in TREE)))}
        found = {value for value in self.rows[name] if value is not None}
        return [None] * (None in self.rows[name]) + sorted(found, key=lambda v: place.get(v, v))


def drawn(seed: int) -> Table:
    """Draw a table; the same seed draws the same one."""
    chance = np.random.default_rng(seed)
    n = int(chance.integers(2, 60))
    columns: dict[str, list[Any]] = {
        "age": chance.integers(0, int(chance.integers(1, 5)), n).tolist(),
        "zip": chance.choice(["a", "b", "c"][: int(chance.integers(1, 4))], n).tolist(),
        "wage": chance.integers(0, int(chance.integers(1, 20)), n).tolist(),
        "disease": chance.choice([row[0] for row in TREE], n).tolist(),
        "grade": chance.choice(GRADES, n, p=chance.dirichlet([1, 1, 1])).tolist(),
    }
    if seed % 3 == 0:
        gone = {name: chance.random(n) < 0.15 for name in columns}
        columns = {
            name: [None if g else v for v, g in zip(vs, gone[name], strict=True)] for name, vs in columns.items()
        }
    types = {"age": "Int64", "wage": "Int64"} if seed % 3 == 0 else {}
    distances = {
        "wage": str(chance.choice(["ordered", "ordered", "equal"])),
        "disease": str(chance.choice(["equal", "hierarchical"])),
        "grade": "ordered",
    }
    return Table(pd.DataFrame(columns).astype(types), bool(seed % 5 == 0), distances)


# kinfold's two opinions


def engines(engine: DuckDB, table: Table) -> Figures:
    """What the engine's verification finds."""
    verdict = verify(engine, engine.read(pa.Table.from_pandas(table.frame, preserve_index=False)), _terms(table))
    assert not verdict.problems
    assert verdict.records == len(table.frame)
    promised = iter([finding.found for finding in verdict.findings])
    return _named({"k": verdict.k, "l": verdict.l, "t": verdict.t}, promised)


def checkers(table: Table) -> Figures:
    """What the plain checker finds."""
    terms = _terms(table)
    kinds = {c.name: {"type": c.kind, "distance": c.distance} for c in terms.confidential}
    kinds["grade"]["order"] = list(GRADES)  # type: ignore[assignment]
    if table.distances["disease"] == "hierarchical":
        kinds["disease"]["hierarchy"] = TREE  # type: ignore[assignment]
    columns = [{"name": name, "role": "quasi-identifier"} for name in QUASI]
    columns += [{"name": name, "role": "confidential", **kinds[name]} for name in CONFIDENTIAL]
    promises = [_written(model) for model in terms.models]
    texts = {name: [None if v is None else str(v) for v in values] for name, values in table.rows.items()}
    said = checker.judge(texts, {"columns": columns, "promises": promises, "joint": table.joint})
    return _named(said["found"], iter([promise["found"] for promise in said["promises"]]))


def _terms(table: Table) -> Terms:
    tree = build_from_rows(TREE) if table.distances["disease"] == "hierarchical" else None
    confidential = (
        ConfidentialColumn("wage", "continuous", table.distances["wage"]),
        ConfidentialColumn("disease", "nominal", table.distances["disease"], hierarchy=tree),
        ConfidentialColumn("grade", "ordinal", "ordered", order=GRADES),
    )
    models: list[Any] = [KAnonymity(2)]
    for column in confidential:
        models += [LDiversity(2, column.name, "entropy"), LDiversity(2, column.name, "recursive", C)]
        models += [AlphaK(0.5, column.name), PSensitive(2, column.name)]
        models += [TCloseness(0.5, column.name, column.distance, column.hierarchy)]  # type: ignore[arg-type]
    return Terms(QUASI, confidential, (), (), tuple(models), joint=table.joint)


def _written(model: Any) -> dict[str, Any]:
    asked = {
        key: getattr(model, key) for key in ("k", "t", "alpha", "p", "l", "kind", "c", "column") if hasattr(model, key)
    }
    return {"model": type(model).__name__, "parameters": asked, "promise": ""}


def _named(found: Any, promised: Iterator[float]) -> Figures:
    figures: Figures = {("k", ""): found["k"], ("k promised", ""): next(promised)}
    for name in CONFIDENTIAL:
        figures |= {("l", name): found["l"][name], ("t", name): found["t"][name]}
        figures |= {(model, name): next(promised) for model in ("entropy", "recursive", "alpha", "p", "t promised")}
    return figures


# Others


def definitions(table: Table) -> Iterator[tuple[Figure, float]]:
    """What the definitions say, in exact fractions."""
    rows = table.rows
    k = min(map(plainly.size, plainly.classes([*zip(*(rows[name] for name in QUASI), strict=True)], rows["wage"])))
    yield ("k", ""), k
    yield ("k promised", ""), k
    for name in CONFIDENTIAL:
        held, whole = table.held(name), plainly.Held(rows[name])
        yield ("l", name), min(map(len, held))
        yield ("p", name), min(map(len, held))
        yield ("entropy", name), min(map(plainly.entropy, held))
        yield ("recursive", name), min(plainly.recursive(of, C) for of in held)
        yield ("alpha", name), float(max(map(plainly.alpha, held)))
        if table.distances[name] != "hierarchical":
            order = table.values(name) if table.distances[name] == "ordered" else None
            t = float(
                max(plainly.ordered_emd(of, whole, order) if order else plainly.equal_emd(of, whole) for of in held)
            )
            yield ("t", name), t
            yield ("t promised", name), t


def scipys(table: Table) -> Iterator[tuple[Figure, float]]:
    """Wasserstein's distance over the places of ordered values; the others as a transport, by a linear program."""
    for name in CONFIDENTIAL:
        values, whole = table.values(name), plainly.Held(table.rows[name])
        if table.distances[name] == "ordered":
            yield ("t", name), max(_wasserstein(of, whole, values) for of in table.held(name))
        else:
            yield ("t", name), max(_transport(of, whole, values, table.distances[name]) for of in table.held(name))


def _wasserstein(held: plainly.Held, whole: plainly.Held, values: list[Any]) -> float:
    places = np.arange(len(values))
    shares = [np.array([of[value] for value in values], float) for of in (held, whole)]
    return float(wasserstein_distance(places, places, *shares)) / max(len(values) - 1, 1)


def _transport(held: plainly.Held, whole: plainly.Held, values: list[Any], distance: str) -> float:
    ground = unequal(len(values))
    if distance == "hierarchical":
        rows = {row[0]: row for row in TREE} | {None: ("null", "null", "*")}
        ground = ancestors([rows[value] for value in values])
    shares = [np.array([of[value] for value in values], float) / of.total() for of in (held, whole)]
    return emd(*shares, ground)


def pycanons(table: Table) -> Iterator[tuple[Figure, float]]:
    """What pycanon says where it is right."""
    yield ("k", ""), anonymity.k_anonymity(table.of(*QUASI), [*QUASI])
    for name in CONFIDENTIAL:
        known = table.known(name)
        asked = table.of(*known, name), known, [name]
        yield ("l", name), anonymity.l_diversity(*asked)
        yield ("alpha", name), anonymity.alpha_k_anonymity(*asked)[0]
        yield ("whole entropy", name), anonymity.entropy_l_diversity(*asked)
        equal = table.distances[name] == "equal"
        if (name == "disease" and equal) or (name == "wage" and not equal and len(table.values(name)) > 1):
            yield ("t", name), anonymity.t_closeness(*asked)


def pycanons_jointly(table: Table) -> Iterator[tuple[Figure, float]]:
    """The least over all columns, by pycanon's own way of asking for joint promises."""
    asked = table.of(*QUASI, *CONFIDENTIAL), [*QUASI], [*CONFIDENTIAL]
    yield ("l", "all"), anonymity.l_diversity(*asked, gen=not table.joint)
    yield ("alpha", "all"), anonymity.alpha_k_anonymity(*asked, gen=not table.joint)[0]


def over_all(figures: Figures) -> Figures:
    """The figures with those of all columns together, and entropies as whole numbers."""
    of = {model: [figures[model, name] for name in CONFIDENTIAL] for model in ("l", "alpha")}
    return figures | {("l", "all"): min(of["l"]), ("alpha", "all"): max(of["alpha"])}


def is_whole_entropy(whole: float, found: float) -> bool:
    """Whether pycanon's whole number is the found entropy, cut; it also cuts 2.9999999 to 2."""
    return whole in {math.floor(found - 1e-9), math.floor(found + 1e-9)}
