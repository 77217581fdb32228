"""The registry: every method that a policy can name, as its own file declares it.

A file in a folder of `methods/` that holds a method says so at its top level, in literals:

    METHOD = Declaration(name="mdav", family="partition", summary="...", page="mdav", kernels=("mdav_tree",))

and defines what is run, by family:

    partition     run(records: Points, task: Task, progress: Progress) -> Labels
    generalize    run(task: Task, domain: Domain) -> Found, expected(domain: Domain) -> float (seconds)

The declarations are read from the text of the files, and nothing is loaded: a policy, `--help` and the documentation
know every method while numpy is not even imported. What others have to know of a method it declares; no other file
tells methods apart by their names.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, get_args

Family: TypeAlias = Literal["partition", "generalize"]
Need: TypeAlias = Literal["t", "one number", "hierarchies", "rows", "suppression"]

AUTO = "auto"  # the name that leaves the choice to `methods.planning`
IN_WORDS: Mapping[Need, str] = {
    "t": "a `t`",
    "one number": "a single quasi-identifier, of numbers or dates",
    "hierarchies": "hierarchies of numbers and dates",
    "rows": "promises about rows: no `unit`, no `joint`",
    "suppression": "no `average` but `suppress`",
}

_ROOM = Path(__file__).parents[1] / "methods"
_MARK = "\nMETHOD = "


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What a method says of itself: literals only, for they are read without running the file."""

    name: str  # in a policy
    family: Family
    summary: str  # one line for the table of methods
    page: str  # of docs/methods, without .md
    needs: tuple[Need, ...] = ()  # what it cannot do without; a request that lacks it is refused
    kernels: tuple[str, ...] = ()  # what a release by it has to compile
    objectives: tuple[str, ...] = ()  # what it can search by, of `method.objective`; empty: it does not read it
    keys: tuple[str, ...] = ()  # keys of [method] that are refused with a method that does not declare them
    auto: str = ""  # why `auto` takes it where a request has what it needs; empty: it never does
    auto_up_to: int | None = None  # records beyond which `auto` does not take it, for the time it would need
    sets_aside: bool = False  # partition: the file defines set_aside(task), which marks records not to release
    average: str = ""  # of a column that names none, where it is not that of the family
    cost: tuple[float, float] = (1.0, 1.5)  # partition: seconds for 100,000 by 8 at k = 10, and by what power they grow
    one_by_one: bool = False  # generalize: rows of the domain are records, also equal ones
    order: int = 100  # its place among those of its family; those of one place go by name

    def __post_init__(self) -> None:
        if self.family not in get_args(Family) or not set(self.needs) <= set(get_args(Need)):
            raise ValueError(f"the method '{self.name}' declares a family or a need that nobody knows")


def names() -> tuple[str, ...]:
    """Return what a policy may say as `method.name`."""
    return (AUTO, *registry())


@cache
def registry() -> Mapping[str, Declaration]:
    """Return every method by its name: those that partition, then those that generalize, each in its place."""
    families = get_args(Family)
    every = sorted(_declared().values(), key=lambda each: (families.index(each.family), each.order, each.name))
    found = {each.name: each for each in every}
    if len(found) < len(every) or AUTO in found:
        raise ValueError("two files of kinfold.methods declare a method of the same name, or one called auto")
    return found


def everyday() -> Declaration:
    """Return the method that `auto` takes of a request for k and nothing else: it needs nothing."""
    return next(each for each in registry().values() if each.auto and not each.needs)


def needs(name: str) -> tuple[Need, ...]:
    """Return what a method needs; `auto` needs nothing, for it takes what fits."""
    return registry()[name].needs if name in registry() else ()


def generalizes(name: str) -> bool:
    """Whether a method replaces values by coarser, true ones: what `auto` does is not known before the table is."""
    return name in registry() and registry()[name].family == "generalize"


def natural_average(name: str, *, quasi: bool = True) -> str:
    """Return the average of a column whose policy names none; empty: it is the one that its kind has."""
    if not generalizes(name):
        return ""
    return (registry()[name].average if quasi else "") or "generalize"


def strangers(name: str) -> dict[str, list[str]]:
    """Return the keys of [method] that a method does not take, with the methods that do."""
    owners: dict[str, list[str]] = {}
    for each in registry().values():
        for key in each.keys:
            owners.setdefault(key, []).append(each.name)
    return {key: of for key, of in owners.items() if name not in of}


def module_of(name: str) -> str:
    """Return the module that holds a method."""
    return next(module for module, each in _declared().items() if each.name == name)


@cache
def _declared() -> dict[str, Declaration]:
    """Read the declarations by the module that they stand in."""
    package = __name__.split(".")[0]
    found = {}
    for path in sorted(_ROOM.glob("*/*.py")):
        _, mark, rest = path.read_text("utf-8").partition(_MARK)
        if mark:
            found[f"{package}.methods.{path.parent.name}.{path.stem}"] = _declaration(rest.partition("\n\n")[0], path)
    return found


def _declaration(text: str, path: Path) -> Declaration:
    """Read a declaration, which ends at an empty line: to parse whole files would take longer than all else here."""
    try:
        call = ast.parse(text, mode="eval").body
        keywords = call.keywords if isinstance(call, ast.Call) else []
        return Declaration(**{str(each.arg): ast.literal_eval(each.value) for each in keywords})
    except (SyntaxError, TypeError, ValueError) as error:
        raise ValueError(f"METHOD in {path.parent.name}/{path.name} is no declaration in literals: {error}") from error
