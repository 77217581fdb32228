"""The project itself: CI, the lock, the licences, the bill of materials and the page of promises."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import chromium
import postgres
from kinfold.release.report.page import write_page
from kinfold.release.report.sentences import LIMITS
from ledger import SCALE
from report_facts import hospital
from tools.coverage import judged
from tools.licences import licence, page, problems
from tools.materials import LOCK, bill, checksums
from tools.shipped import needs, shipped

ROOT = Path(__file__).parents[2]


def test_generated_cases_are_the_same_in_every_run_but_those_of_the_long_form() -> None:
    assert settings.default.derandomize == (SCALE <= 1)
    assert "test quick coverage: export PYTHONHASHSEED := 0" in (ROOT / "Makefile").read_text("utf-8")


@pytest.mark.parametrize(("find", "name"), [(chromium.found, "chromium"), (postgres.programs, "PostgreSQL")])
def test_without_a_browser_or_a_database_tests_are_skipped_but_fail_in_ci(
    monkeypatch: pytest.MonkeyPatch, find: Any, name: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(postgres, "PLACES", ())
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception):
        find()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=f"no {name} in CI"):
        find()


def test_the_run_of_ci_fails_and_says_so_where_no_browser_can_be_had(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "Makefile").write_text("test spark:\n\t@:\n")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "env", "dirname", "make"):
        (tools / name).symlink_to(str(shutil.which(name)))
    for missing, next_tools in (
        ("chromium", ("chromium", "initdb", "java")),
        ("node", ("node", "npm")),
        ("axe-core", ()),
    ):
        ran = _run(tmp_path, tools)
        assert (ran.returncode, f"no {missing}" in ran.stderr) == (1, True)
        for name in next_tools:
            (tools / name).symlink_to(str(shutil.which("true")))
    (tmp_path / "Makefile").write_text("test spark axe:\n\t@:\n")
    assert _run(tmp_path, tools).returncode == 0


def _run(folder: Path, tools: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": str(tools)}
    command = [str(tools / "bash"), str(folder / ".ci" / "run")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)


# The tools of those who work on kinfold: the lock, the licences, the bill of materials.


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


def test_the_locks_of_spark_and_the_site_hold_what_they_need_and_the_site_agrees_with_the_other() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    site, spark, locked = (
        dict(checksums((ROOT / "requirements" / name).read_text()).keys())
        for name in ("docs.txt", "spark.txt", "dev.txt")
    )
    for lock, needed in ((site, extras["docs"]), (locked | spark, extras["spark"])):
        for need in map(Requirement, needed):
            assert lock.get(canonicalize_name(need.name), "nothing") in need.specifier, f"run `make lock`: {need}"
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
    *("models__t_closeness", "tables__tally", "verification", "checker"),
    *("release__release", "release__publication", "release__certificate"),
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
    assert judged(measured(**whole | {"tables__tally": ([3], [])}))[1] == ["tables/tally.py is not whole: lines 3"]
    assert judged(measured(**whole | {"models__t_closeness": ([], [[1, 2]])}))[1] == [
        "models/t_closeness.py is not whole: branches 1->2"
    ]
    del whole["checker"]
    assert judged(measured(**whole))[1] == ["checker.py was not measured"]


def test_coverage_fails_where_all_together_is_too_little() -> None:
    report = measured(**{name: ([], []) for name in JUDGES})
    report["totals"]["percent_covered"] = 92.9
    assert judged(report)[1] == ["all: 92.90 % is below 93 %"]


# The page of promises: its numbers follow each other, its tests exist, and the reports say what it says.


PROMISE = (ROOT / "docs" / "promise.md").read_text("utf-8")


def test_sentences_are_numbered_one_after_the_other_on_a_page_that_can_be_read_at_once() -> None:
    numbers = [int(number) for number in re.findall(r"^(\d+)\. \*\*", PROMISE, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(PROMISE.splitlines()) <= 170


def test_every_test_that_the_page_names_exists() -> None:
    written = "\n".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(test_\w+)`", PROMISE)
    assert named
    assert [name for name in named if f"def {name}(" not in written] == []


@pytest.mark.parametrize("number", LIMITS)
def test_the_sentences_of_the_reports_are_sentences_of_the_page(number: int) -> None:
    _, limits = PROMISE.split("## What is not promised")
    assert f"\n{number}. **{LIMITS[number]}**" in limits


@pytest.mark.parametrize("internal", [True, False])
def test_both_reports_name_the_page_and_say_what_is_not_promised(internal: bool) -> None:
    html = write_page(hospital() if internal else hospital().public())
    assert "docs/promise.md" in html
    assert all(f'<li value="{number}">{sentence}</li>' in html for number, sentence in LIMITS.items())


def test_the_readme_and_the_security_page_lead_to_it() -> None:
    assert all("(docs/promise.md)" in (ROOT / name).read_text("utf-8") for name in ("README.md", "SECURITY.md"))
