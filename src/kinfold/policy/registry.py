"""The registry: every method that a policy can name, with its declaration.

A method is one file in `kinfold/methods/partition` or `kinfold/methods/generalize`, and one line in `METHOD_MODULES`.
The file declares itself at its top level:

    METHOD = Declaration(name="mdav", family="partition", summary="...", page="mdav", kernels=("mdav",))

and defines, by family:

    partition     run(records: Points, task: Task, progress: Progress) -> Labels
    generalize    run(task: Task, domain: Domain) -> SearchResult, estimate_seconds(domain: Domain) -> float

The names are known without importing any method, so `kinfold --help` stays instant. Declarations are imported on first
use.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias, get_args

Family: TypeAlias = Literal["partition", "generalize"]
Need: TypeAlias = Literal["t", "one number", "hierarchies", "rows", "records", "suppression"]

AUTO = "auto"  # `methods.plan` chooses
NEED_TEXTS: Mapping[Need, str] = {
    "t": "a `t`",
    "one number": "a single quasi-identifier, of numbers or dates",
    "hierarchies": "hierarchies of numbers and dates",
    "rows": "promises about rows: no `unit`, no `joint`",
    "records": "with `unit` or `joint` at most 100,000 records",
    "suppression": "no `average` but `suppress`",
}
METHOD_MODULES: Mapping[str, str] = {  # in the order of the documentation
    "mdav": "kinfold.methods.partition.mdav",
    "v-mdav": "kinfold.methods.partition.vmdav",
    "univariate": "kinfold.methods.partition.univariate",
    "approximate": "kinfold.methods.partition.approximate",
    "t-merge": "kinfold.methods.partition.t_merge",
    "k-first": "kinfold.methods.partition.k_first",
    "t-first": "kinfold.methods.partition.t_first",
    "datafly": "kinfold.methods.generalize.datafly",
    "mu-argus": "kinfold.methods.generalize.mu_argus",
    "mingen": "kinfold.methods.generalize.mingen",
    "mingen-cell": "kinfold.methods.generalize.mingen_cell",
    "lattice": "kinfold.methods.generalize.lattice",
    "local-suppression": "kinfold.methods.generalize.local_suppression",
}


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """The facts about a method that other code needs; no other file distinguishes methods by name."""

    name: str  # as in `method.name`
    family: Family
    summary: str  # one line for the table of methods
    page: str  # in docs/methods, without .md
    needs: tuple[Need, ...] = ()  # a policy that lacks one is refused
    kernels: tuple[str, ...] = ()  # compiled for a release
    objectives: tuple[str, ...] = ()  # values of `method.objective` that it supports; empty: it ignores the key
    keys: tuple[str, ...] = ()  # keys of [method] that only this method and others that declare them accept
    auto_reason: str = ""  # why `auto` chooses it; empty: never
    auto_max_records: int | None = None  # `auto` does not choose it for larger tables: it would take too long
    sets_aside: bool = False  # partition: the file defines set_aside(task), which marks records to leave out
    average: str = ""  # default average, if not that of the family
    cost: tuple[float, float] = (1.0, 1.5)  # partition: seconds for 100,000 x 8 at k = 10, and exponent
    whole_table: bool = False  # generalize: keeps promises about the table as a whole, not only about each class
    splits_households: str = ""  # why members of one household would show different values; empty: they do not
    by_record: bool = False  # generalize: the domain has a row for each record, not for each tuple

    def __post_init__(self) -> None:
        if self.family not in get_args(Family) or not set(self.needs) <= set(get_args(Need)):
            raise ValueError(f"the method '{self.name}' declares an unknown family or need")


def list_method_names() -> tuple[str, ...]:
    """Return the values that `method.name` accepts."""
    return (AUTO, *METHOD_MODULES)


@cache
def get_method(name: str) -> Declaration:
    """Return the declaration of a method; imports its module."""
    declaration: Declaration = importlib.import_module(METHOD_MODULES[name]).METHOD
    if declaration.name != name:
        raise ValueError(f"{METHOD_MODULES[name]} declares the method '{declaration.name}', not '{name}'")
    return declaration


@cache
def list_methods() -> Mapping[str, Declaration]:
    """Return all declarations by name, partitioners first; imports all methods."""
    return {name: get_method(name) for name in METHOD_MODULES}


def get_default_method() -> Declaration:
    """Return the method that `auto` chooses for k alone."""
    return next(each for each in list_methods().values() if each.auto_reason and not each.needs)


def generalizes(name: str) -> bool:
    """Return whether a method replaces values by coarser, true ones; False for `auto`, which chooses later."""
    return name != AUTO and ".generalize." in METHOD_MODULES[name]  # without importing the method


def get_default_average(name: str, *, quasi: bool = True) -> str:
    """Return the default average of a method; empty if the type of the column decides."""
    if not generalizes(name):
        return ""
    return (get_method(name).average if quasi else "") or "generalize"


def foreign_keys(name: str) -> dict[str, list[str]]:
    """Return the keys of [method] that a method does not accept, each with the methods that do."""
    owners: dict[str, list[str]] = {}
    for each in list_methods().values():
        for key in each.keys:
            owners.setdefault(key, []).append(each.name)
    return {key: names for key, names in owners.items() if name not in names}
