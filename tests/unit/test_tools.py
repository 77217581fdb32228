"""The tools of those who work on kinfold: the lock, the licences, the bill of materials."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.coverage import judged
from tools.licences import licence, page, problems
from tools.materials import LOCK, bill, checksums
from tools.shipped import needs, shipped

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_every_line_of_a_lock_has_hashes_and_none_names_a_registry(lock: Path) -> None:
    text = lock.read_text()
    assert checksums(text)
    assert all(checksums(text).values())
    assert not re.search(r"://|index-url|find-links|trusted-host", text)


def test_the_lock_holds_what_the_project_asks_for_in_the_versions_that_it_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    asked = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *extras["frames"],
        *extras["dev"],
    ]
    locked = dict(checksums(LOCK.read_text()).keys())
    for need in map(Requirement, asked):
        assert locked.get(canonicalize_name(need.name), "nothing") in need.specifier, f"run `make lock`: {need}"


def test_the_lock_of_spark_holds_what_its_extra_asks_for() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    locked = dict(checksums((ROOT / "requirements" / "spark.txt").read_text()).keys()) | dict(
        checksums(LOCK.read_text()).keys()
    )
    for need in map(Requirement, extras["spark"]):
        assert locked.get(canonicalize_name(need.name), "nothing") in need.specifier, need


def test_the_lock_of_the_site_holds_what_it_asks_for_and_agrees_with_the_other() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    site, locked = (
        dict(checksums((ROOT / "requirements" / name).read_text()).keys()) for name in ("docs.txt", "dev.txt")
    )
    for need in map(Requirement, extras["docs"]):
        assert site.get(canonicalize_name(need.name), "nothing") in need.specifier, f"run `make lock`: {need}"
    assert {name: site[name] for name in site.keys() & locked} == {name: locked[name] for name in site.keys() & locked}


def test_what_is_shipped_is_free_and_known() -> None:
    assert problems({name: licence(package) for name, package in shipped().items()}) == []


@pytest.mark.parametrize("text", ["GPL-3.0-or-later", "GNU Affero General Public License v3", "", "Do what I say"])
def test_a_binding_or_unknown_licence_is_a_problem(text: str) -> None:
    assert len(problems({"part": text})) >= 1


def test_what_is_shipped_holds_the_needs_of_needs_and_nothing_of_the_developers() -> None:
    names = set(shipped())
    assert {"numpy", "numba", "llvmlite", "pydantic-core", "pandas"} <= names
    assert names.isdisjoint({"pytest", "mypy", "hypothesis", "kinfold"})
    assert all(name in names for package in shipped().values() for name, _ in needs(package))


@pytest.mark.slow
def test_the_page_of_licences_lists_every_package() -> None:
    packages = shipped()
    listed = re.findall(r"^\| ([a-z0-9.-]+) \|", (ROOT / "docs" / "licences.md").read_text(), re.MULTILINE)
    assert set(listed) - {"package", "---"} == set(packages), "run `make licences`"
    assert all(f"| {name} | {package.version} |" in page(packages) for name, package in packages.items())


def test_the_bill_of_materials_names_each_part_once_and_every_reference_leads_somewhere() -> None:
    made = bill()
    references = [part["bom-ref"] for part in [made["metadata"]["component"], *made["components"]]]
    assert len(references) == len(set(references)) == len(shipped()) + 1
    assert {entry["ref"] for entry in made["dependencies"]} == set(references)
    assert {ref for entry in made["dependencies"] for ref in entry["dependsOn"]} <= set(references)
    assert references[0] == f"pkg:pypi/kinfold@{distribution('kinfold').version}"
    assert bill() == made


JUDGES = (
    *("models__emd", "rows__tally", "verification", "checker"),
    *("release__release", "release__publication", "release__certificate", "release__certification"),
)


def measured(**files: tuple[list[int], list[list[int]]]) -> dict[str, Any]:
    """A report of coverage, as `coverage json` writes it."""
    told = {
        f"src/kinfold/{name.replace('__', '/')}.py": {
            "summary": {"missing_lines": len(lines), "missing_branches": len(branches)},
            "missing_lines": lines,
            "missing_branches": branches,
        }
        for name, (lines, branches) in files.items()
    }
    return {"files": told, "totals": {"percent_covered": 95.0, "num_statements": 10}}


def test_coverage_fails_where_a_judge_is_not_whole_or_was_not_measured() -> None:
    whole: dict[str, Any] = {name: ([], []) for name in JUDGES}
    assert judged(measured(**whole))[1] == []
    assert judged(measured(**whole | {"rows__tally": ([3], [])}))[1] == ["rows/tally.py is not whole: lines 3"]
    assert judged(measured(**whole | {"models__emd": ([], [[1, 2]])}))[1] == [
        "models/emd.py is not whole: branches 1->2"
    ]
    del whole["checker"]
    assert judged(measured(**whole))[1] == ["checker.py was not measured"]


def test_coverage_fails_where_all_together_is_too_little() -> None:
    report = measured(**{name: ([], []) for name in JUDGES})
    report["totals"]["percent_covered"] = 92.9
    assert judged(report)[1] == ["all: 92.90 % is below 93 %"]
