"""The registry: what the files of the methods declare, and that nobody else tells methods apart."""

from __future__ import annotations

import ast
import importlib
import inspect
import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

import kinfold
from kinfold import kernels
from kinfold.errors import PolicyError
from kinfold.kernels import MODULES
from kinfold.measures import formulas as measures
from kinfold.methods.plan import list_kernels
from kinfold.papers.data import generate_census
from kinfold.policy.model import Method, Policy
from kinfold.policy.registry import METHOD_MODULES, Declaration, Family, list_method_names, list_methods
from tools.methods import problems

SRC = Path(kinfold.__file__).parent
FILES = sorted(SRC.rglob("*.py"))
OWN = {SRC.parent / Path(*METHOD_MODULES[name].split(".")).with_suffix(".py") for name in list_methods()}
RUNS = {"partition": ["records", "task", "progress"], "generalize": ["task", "domain"]}


@pytest.mark.parametrize("name", list_methods())
def test_what_is_read_of_a_file_is_what_it_declares(name: str) -> None:
    module = importlib.import_module(METHOD_MODULES[name])
    assert list_methods()[name] is module.METHOD
    assert module.METHOD.name == name
    assert list(inspect.signature(module.run).parameters) == RUNS[module.METHOD.family]
    assert hasattr(module, "set_aside") == module.METHOD.sets_aside


def test_every_file_that_declares_a_method_is_registered() -> None:
    declaring = {path for path in (SRC / "methods").rglob("*.py") if "\nMETHOD = " in path.read_text("utf-8")}
    assert declaring == OWN


def test_methods_stand_in_the_order_that_they_declare() -> None:
    first = [each.family for each in list_methods().values()]
    assert first == sorted(first, key=get_args(Family).index)
    assert list_method_names()[:2] == ("auto", "mdav")
    assert set(get_args(Family)) == set(RUNS) == set(first)


REFINEMENT_KERNELS = (
    "draws",
    "search",
    "promised_search",
    "promises",
    "t_merge",
    "repair",
    "geometry",
    "pricing",
)


def test_every_kernel_is_claimed_by_a_method_by_refinement_or_by_measures() -> None:
    claimed = {kernel for each in list_methods().values() for kernel in each.kernels}
    claimed |= {*REFINEMENT_KERNELS, *measures.KERNELS}
    assert claimed == set(MODULES)


@pytest.mark.slow
@pytest.mark.parametrize("name", list_methods())
def test_a_method_declares_no_kernel_that_it_never_loads(name: str) -> None:
    module = METHOD_MODULES[name]
    loaded = {kernel for each in reached(module) for kernel in loads(path_of(each))}
    repair = {
        kernel for kernel in loads(path_of("kinfold.methods.partition.repair")) if "t" in list_methods()[name].needs
    }
    assert set(list_methods()[name].kernels) <= loaded | repair


def path_of(module: str) -> Path:
    path = SRC.parent / Path(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def reached(module: str) -> set[str]:
    """The modules of methods that a module imports, directly or not, wherever in it."""
    found, waiting = set(), [module]
    while waiting:
        here = waiting.pop()
        if here in found or not here.startswith("kinfold.methods."):
            continue
        found.add(here)
        for node in ast.walk(ast.parse(path_of(here).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                waiting += [node.module, *(name for name in names if path_of(name).is_file())]
    return found - {module.rpartition(".")[0]}


def loads(path: Path) -> set[str]:
    """The kernels that a file loads by name, and names that it hands to what loads them."""
    words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
    return words & set(MODULES)


def test_an_everyday_warm_up_is_what_the_plain_method_promises_and_the_measures_need() -> None:
    assert list_kernels("mdav") == (*list_methods()["mdav"].kernels, *measures.KERNELS)
    assert set(list_kernels()) == {*list_kernels("mdav"), "promises", "repair"}
    assert set(list_kernels("lattice")) < set(MODULES)
    with pytest.raises(PolicyError, match="no method 'mda'"):
        list_kernels("mda")


def test_the_kernels_of_a_method_are_compiled_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    from command import run

    loaded: list[str] = []
    monkeypatch.setattr(kernels, "prepare", loaded.append)
    assert run("warmup", "--method", "univariate").code == 0
    assert tuple(loaded) == list_kernels("univariate")
    assert run("warmup", "--method", "nobody").code == 2


@pytest.mark.slow
def test_no_other_module_has_a_case_by_the_name_of_a_method() -> None:
    allowed = {*OWN, SRC / "policy" / "registry.py", SRC / "studio" / "worker.py"}  # a job of the studio is a lattice
    for path in (path for path in FILES if path not in allowed):
        cases = [
            part.value
            for node in ast.walk(ast.parse(path.read_text()))
            for part in compared(node)
            if isinstance(part, ast.Constant)
        ]
        assert not {case for case in cases if isinstance(case, str)} & set(list_methods()), path


def compared(node: ast.AST) -> list[ast.expr]:
    """What a node compares with, or looks up by."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return [each for side in sides for each in (getattr(side, "elts", None) or [side])]
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    if isinstance(node, ast.MatchValue):
        return [node.value]
    return [node.slice] if isinstance(node, ast.Subscript) else []


@pytest.mark.slow
def test_models_are_not_asked_what_attributes_they_have() -> None:
    for path, node in ((each, node) for each in FILES for node in ast.walk(ast.parse(each.read_text()))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            assert ast.unparse(node.args[0]) not in ("model", "self.model"), path


def test_every_method_has_a_page_and_the_table_of_the_documentation_is_theirs() -> None:
    assert problems() == []


def test_a_page_that_is_missing_is_told(tmp_path: Path) -> None:
    told = problems(tmp_path)
    assert len(told) == len(list_methods()) + 1
    assert any("`t-first`" in line for line in told)


@pytest.mark.parametrize("wrong", [{"needs": ("money",)}, {"family": "clusters"}])
def test_a_declaration_of_an_unknown_need_or_family_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="unknown family or need"):
        Declaration(**{"name": "toy", "family": "partition", "summary": "", "page": "toy", **wrong})


def test_a_key_of_its_own_reaches_the_method() -> None:
    codes = generate_census(400, 0.5)
    frame = pa.table({f"a{i}": column.astype(np.int64) for i, column in enumerate(codes.T)})
    columns = {name: {"role": "quasi-identifier", "type": "continuous"} for name in frame.column_names}
    asked = {"privacy": {"k": 10}, "columns": columns}
    classes = [
        kinfold.anonymize(frame, {**asked, "method": {"name": "v-mdav", "gamma": gamma}}).measures["classes"]
        for gamma in (0.0, 3.0)
    ]
    assert classes[1] < classes[0]


def test_refine_0_is_no_refinement_for_any_method_and_left_out_only_auto_decides() -> None:
    for name in ("auto", *list_method_names()):
        assert Method(name=name, refine=0).refinement_limits is None
        assert (Method(name=name).refinement_limits is None) == (name != "auto")
    assert Method(name="auto").refinement_limits == Method(name="mdav", refine="auto").refinement_limits


@pytest.mark.parametrize("method", ["mingen-cell", "local-suppression"])
@pytest.mark.parametrize("none", [{"refine": 0}, {"refine_steps": 0}])
def test_refine_0_keeps_a_search_of_cells_from_rebuilding_which_it_does_if_nothing_is_said(
    method: str, none: dict[str, int]
) -> None:
    draw = np.random.default_rng(3).integers
    frame = pa.table({name: [str(value) for value in draw(0, 4, 60)] for name in "abc"})
    kept = {"average": "suppress"} if method == "local-suppression" else {"hierarchy": {"mask": 1}}
    columns = {name: {"role": "quasi-identifier", "type": "nominal", **kept} for name in "abc"}
    asked = {"privacy": {"k": 3}, "columns": columns}
    said = kinfold.anonymize(frame, {**asked, "method": {"name": method, **none}})
    left_out = kinfold.anonymize(frame, {**asked, "method": {"name": method}})
    assert not said.plan.steps
    assert (left_out.plan.steps or 0) > 0
    assert left_out.measures["loss"]["overall"] <= said.measures["loss"]["overall"]


def test_gamma_reaches_v_mdav_and_is_refused_elsewhere_and_below_zero() -> None:
    frame = pa.table({"x": [0.0, 1.0, 2.0, 2.1, 3.1, 3.2, 3.3, 20.0, 21.0, 22.0]})
    columns = {"x": {"role": "quasi-identifier", "type": "continuous"}}

    def classes(**method: object) -> list[int]:
        asked = {"privacy": {"k": 3}, "columns": columns, "method": {"name": "v-mdav", **method}}
        return kinfold.anonymize(frame, asked).labels.tolist()

    assert classes() == classes(gamma=0.2) != classes(gamma=0.05)
    for name, gamma in (("mdav", 0.2), ("v-mdav", -0.1), ("v-mdav", math.inf)):
        with pytest.raises(PolicyError, match="gamma"):
            Policy.parse({"privacy": {"k": 2}, "method": {"name": name, "gamma": gamma}})
