"""Who may import whom: data flows one way, and the checker does not know the maker.

Imports inside functions count too; so do those for types alone, but for the ones listed with their reason.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kinfold

SRC = Path(kinfold.__file__).parent

GROUND = {"errors", "progress", "schema"}
MAY_IMPORT: dict[str, set[str]] = {
    # ground
    "errors": set(),
    "progress": set(),
    "gauge": set(),
    "formulas": set(),
    "lookalikes": set(),
    "tally": set(),
    "recoding": set(),
    "aggregate": set(),
    "schema": set(),
    "disk": set(),
    "hierarchy": {"errors"},
    "kernels": {"progress"},
    "annealing": {"progress"},
    # judgement
    "models": {"errors", "gauge", "hierarchy", "tally"},
    "measures": {"errors", "kernels", "progress"},
    "release": {"errors", "hierarchy", "models", "schema"},
    # request
    "header": {"errors", "schema"},
    "written": {"formulas", "hierarchy", "models", "release"},
    "policy": {"errors", "schema"},
    "binding": {"errors", "formulas", "header", "policy", "schema"},
    "ladders": {"binding", "errors", "hierarchy"},
    # rows
    "engines": {"disk", "errors", "formulas", "header", "recoding", "schema", "tally"},
    "fresh": set(),
    "oddities": {"engines", "formulas", "lookalikes", "schema", "tally"},
    "frames": {"errors", "formulas", "fresh", "recoding"},
    # methods: models arrive as arguments
    "partition": {"annealing", "errors", "gauge", "kernels", "progress", "tally"},
    "generalize": {"annealing", "errors", "hierarchy", "kernels", "progress", "tally"},
    # check
    "verification": {"errors", "models", "release", "schema", "tally"},
    "checker": set(),
    # from a bound policy to arrays and back
    "encoding": GROUND | {"binding", "engines", "hierarchy", "ladders", "partition"},
    "covering": {"aggregate", "encoding", "hierarchy", "schema"},
    "averaging": {"aggregate", "covering", "encoding", "policy", "recoding", "schema"},
    "promises": GROUND | {"binding", "engines", "formulas", "ladders", "models", "policy", "release", "written"},
    "planning": GROUND
    | {"averaging", "binding", "covering", "encoding", "generalize", "hierarchy", "measures", "models"}
    | {"partition", "policy", "recoding", "tally"},
    "measurement": GROUND
    | {"binding", "covering", "encoding", "engines", "hierarchy", "measures", "partition", "policy", "release"}
    | {"oddities"},
    # a release on disk
    "report": {"models"},
    "publication": {"disk", "errors"},
    "certificate": {"__version__", "binding", "errors", "hierarchy", "models", "release", "schema"},
    "inspection": {"certificate", "checker", "engines", "errors", "oddities", "policy", "promises", "release"}
    | {"verification"},
    "description": {"__version__", "binding", "encoding", "formulas", "measurement", "oddities", "recoding"}
    | {"report", "schema"},
    "folder": {"__version__", "certificate", "description", "engines", "errors", "hierarchy", "measures"}
    | {"inspection", "publication", "release", "report", "verification"},
    # flow
    "profiling": {"engines", "formulas", "header", "oddities", "progress", "schema", "tally"},
    "starter": {"profiling", "schema"},
    "interchange": {"disk", "errors", "hierarchy", "schema"},
    "flow": GROUND
    | {"binding", "encoding", "engines", "folder", "frames", "measurement", "planning", "policy", "profiling"}
    | {"certificate", "generalize", "header", "hierarchy", "inspection", "oddities", "promises", "recoding"}
    | {"release", "verification", "written"},
    "comparison": GROUND | {"__version__", "disk", "flow", "frames", "measures", "policy", "report"},
    "demo": {"disk", "errors", "flow", "policy"},
    # faces
    "cli": {"__version__", "certificate", "comparison", "demo", "disk", "errors", "inspection"}
    | {"flow", "folder", "kernels", "models", "policy"}
    | {"generalize", "hierarchy", "interchange", "measurement", "profiling", "publication", "release", "report"}
    | {"schema", "starter"},
    "__init__": {"comparison", "errors", "flow", "partition", "policy"},
}
FOR_TYPES = {
    ("folder.py", "flow"): "a release is saved by the room that it lives above",
    ("description.py", "flow"): "a report describes a release",
}
ONLY_IN = {
    "duckdb": {"engines/connection.py", "engines/duckdb.py"},
    "numba": {"kernels"},
    "typer": {"cli"},
    "rich": {"cli"},
    "narwhals": {"frames.py"},
    "polars": {"frames.py", "fresh.py"},
    "pandas": {"frames.py"},
    "pydantic": {"certificate.py", "policy.py"},
    "tomlkit": {"interchange", "policy.py", "starter.py"},
    "vl_convert": {"report"},
    "jinja2": {"report"},
    "markupsafe": {"report"},
    "scipy": {"generalize", "partition"},
    "pyarrow": {
        "averaging.py",
        "checker.py",
        "comparison/kept.py",
        "demo",
        "encoding.py",
        "engines",
        "frames.py",
        "fresh.py",
        "planning",
    },
    "pyspark": {"engines/spark.py"},
    "starlette": {"studio"},
    "uvicorn": {"studio"},
}
ANYWHERE = {"numpy"}
FILES = sorted(SRC.rglob("*.py"))


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module that a file imports, wherever in it, and whether it does so for types alone."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: say whole names, not relative ones"
            names = [f"kinfold.{a.name}" for a in node.names] if node.module == "kinfold" else [str(node.module)]
        else:
            continue
        for name in names:
            yield name, id(node) in for_types


def room(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_a_room_knows_only_the_rooms_below_it(path: Path) -> None:
    place = str(path.relative_to(SRC))
    known = {
        name.split(".")[1]
        for name, for_types in imports(path)
        if name.startswith("kinfold.") and not (for_types and (place, name.split(".")[1]) in FOR_TYPES)
    }
    assert known <= MAY_IMPORT[room(path)] | {room(path)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SRC)))
def test_each_third_party_has_its_room(path: Path) -> None:
    place = str(path.relative_to(SRC))
    for name, _ in imports(path):
        package = name.split(".")[0]
        if package == "kinfold" or package in sys.stdlib_module_names or package in ANYWHERE:
            continue
        rooms = ONLY_IN.get(package, set())
        assert any(place == home or place.startswith(f"{home}/") for home in rooms), f"{package} in {place}"


def test_the_table_has_no_circle() -> None:
    left, order = dict(MAY_IMPORT), []
    while left:
        free = [name for name, known in left.items() if not (known - {"__version__"}) & left.keys() - {name}]
        assert free, f"these know each other: {sorted(left)}"
        order += free
        left = {name: known for name, known in left.items() if name not in free}
    assert set(order) == MAY_IMPORT.keys()


def test_every_room_is_in_the_table() -> None:
    assert {room(path) for path in FILES} <= MAY_IMPORT.keys()


def test_the_checker_loads_no_maker() -> None:
    code = "import sys, kinfold.verification; print(*(name for name in sys.modules if name.startswith('kinfold.')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment())
    makers = {"partition", "generalize", "planning", "averaging", "covering", "encoding", "kernels", "engines"}
    assert {name.split(".")[1] for name in ran.stdout.split()}.isdisjoint(makers)


def _environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": str(SRC.parent)}
