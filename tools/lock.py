"""The lock of the development environment, with hashes, by pip-tools. Takes ten minutes where the registry is slow.

    python -m tools.lock FOLDER         FOLDER is that of an environment with pip-tools in it

No address of a registry is written: whoever installs brings their own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

LOCK = Path(__file__).parents[1] / "requirements" / "dev.txt"
LEFT_OUT = {"spark"}  # half a gigabyte, for some: requirements/spark.txt, which 'make spark' installs on top
HEAD = """\
# The development environment: kinfold with all its extras but Spark, and what builds it. Made by 'make lock' for
# Python 3.11 on Linux; 'make setup' installs it with its hashes there, and the ranges of pyproject.toml elsewhere.
"""
QUIET = ("--quiet", "--no-header", "--no-annotate", "--strip-extras", "--allow-unsafe")
NAMELESS = ("--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host")
WHAT = ("--generate-hashes", "--all-build-deps", "pyproject.toml")


def main() -> None:
    """Resolve, and put the head on top."""
    compiler, house = Path(sys.argv[1]) / "bin" / "pip-compile", LOCK.parents[1]
    project = tomllib.loads((house / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [f"--extra={name}" for name in project["optional-dependencies"] if name not in LEFT_OUT]
    subprocess.run([compiler, *QUIET, *NAMELESS, "--output-file", LOCK, *extras, *WHAT], cwd=house, check=True)  # noqa: S603
    lines = re.sub(r"^#.*\n", "", LOCK.read_text("utf-8"), flags=re.MULTILINE)
    LOCK.write_text(HEAD + lines.lstrip("\n"), "utf-8")


if __name__ == "__main__":
    main()
