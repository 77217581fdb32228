"""A pipe, a device or a folder where a file should be: said at once, for a pipe may never end."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from command import run, text

pytestmark = pytest.mark.timeout(60)

POLICY = '[privacy]\nk = 3\n[columns.age]\nrole = "quasi"\n'
ENTRIES: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    text(folder, "t.csv", "age\n" + "".join(f"{i // 4}\n" for i in range(24)))
    text(folder, "policy.toml", POLICY)
    assert run("anonymize", folder / "t.csv", "--policy", folder / "policy.toml", "--out", folder / "out").code == 0
    return folder


@pytest.mark.parametrize("kind", ENTRIES)
def test_what_is_no_file_is_refused_by_every_command(release: Path, kind: str, tmp_path: Path) -> None:
    odd, table, policy = tmp_path / "odd.csv", release / "t.csv", release / "policy.toml"
    ENTRIES[kind](odd)
    asked = [
        ("profile", odd),
        ("anonymize", odd, "--policy", policy, "--out", tmp_path / "a"),
        ("anonymize", table, "--policy", odd, "--out", tmp_path / "b"),
        ("measure", table, odd, "--policy", policy),
        ("measure", table, table, "--policy", policy, "--weights", odd),
        ("compare", odd, "--policy", policy, "--methods", "mdav", "--k", "3", "--out", tmp_path / "c"),
        ("convert", odd, "--out", tmp_path / "d"),
    ]
    for arguments in asked:
        ran = run(*arguments)
        assert ran.code in (2, 3), arguments
        assert "fix:" in ran.err


@pytest.mark.parametrize("kind", ENTRIES)
@pytest.mark.parametrize("name", ["release.csv", "certificate.json", "report.html"])
def test_what_is_no_file_in_a_release_fails_it(release: Path, name: str, kind: str, tmp_path: Path) -> None:
    public = shutil.copytree(release / "out" / "public", tmp_path / "public")
    (public / name).unlink()
    ENTRIES[kind](public / name)
    ran = run("verify", public)
    assert ran.code in (3, 5)
    assert "fix:" in ran.err + ran.out


@pytest.mark.parametrize("kind", ENTRIES)
def test_a_folder_whose_certificate_is_no_file_is_not_replaced(release: Path, kind: str, tmp_path: Path) -> None:
    folder = shutil.copytree(release / "out", tmp_path / "out")
    (folder / "public" / "certificate.json").unlink()
    ENTRIES[kind](folder / "public" / "certificate.json")
    ran = run("anonymize", release / "t.csv", "--policy", release / "policy.toml", "--out", folder, "--force")
    assert ran.code == 2
    assert (folder / "public" / "release.csv").exists()
