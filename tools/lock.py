"""The locks of the development environment and of the documentation's site, with hashes, by pip-tools.

    python -m tools.lock FOLDER         FOLDER is that of an environment with pip-tools in it
    python -m tools.lock FOLDER docs    the site's alone

Takes ten minutes where the registry is slow. What both locks hold they hold in one version.

No address of a registry is written: whoever installs brings their own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "dev.txt"
SITE = ROOT / "requirements" / "docs.txt"
LEFT_OUT = {
    "docs",  # the site's own lock
    "spark",  # half a gigabyte, for some: requirements/spark.txt, which 'make spark' installs on top
}
HEAD = """\
# The development environment: kinfold with all its extras but Spark, and what builds it. Made by 'make lock' for
# Python 3.11 on Linux; 'make setup' installs it with its hashes there, and the ranges of pyproject.toml elsewhere.
"""
SITE_HEAD = """\
# What builds the documentation's site, beside the development environment: by 'make lock', for 'make docs'.
"""
QUIET = ("--quiet", "--no-header", "--no-annotate", "--strip-extras", "--allow-unsafe")
NAMELESS = ("--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host")
WHAT = ("--generate-hashes", "--all-build-deps", "pyproject.toml")


def main() -> None:
    """Resolve both."""
    compiler = Path(sys.argv[1]).absolute() / "bin" / "pip-compile"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    if sys.argv[2:] != ["docs"]:
        extras = [f"--extra={name}" for name in sorted(project) if name not in LEFT_OUT]
        lock(compiler, LOCK, HEAD, [*extras, *WHAT])
    with tempfile.NamedTemporaryFile("w", suffix=".in") as wanted:
        wanted.write("\n".join([f"-c {LOCK}", *project["docs"]]))
        wanted.flush()
        lock(compiler, SITE, SITE_HEAD, ["--generate-hashes", wanted.name])


def lock(compiler: Path, path: Path, head: str, what: list[str]) -> None:
    """Resolve what is wanted into a file, and put the head on top."""
    subprocess.run([compiler, *QUIET, *NAMELESS, "--output-file", path, *what], cwd=ROOT, check=True)  # noqa: S603
    lines = re.sub(r"^(#|-c|--constraint).*\n", "", path.read_text("utf-8"), flags=re.MULTILINE)
    path.write_text(head + lines.lstrip("\n"), "utf-8")


if __name__ == "__main__":
    main()
