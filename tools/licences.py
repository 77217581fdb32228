"""The licences of what kinfold needs at run time, from the metadata of what is installed.

python -m tools.licences            writes docs/licences.md
python -m tools.licences --check    says what is wrong and ends with code 1: an unknown licence, or one that binds
"""

from __future__ import annotations

import sys
from importlib.metadata import Distribution
from pathlib import Path

from tools.shipped import shipped

PAGE = Path(__file__).parents[1] / "docs" / "licences.md"

# Words of licences that ask nothing of a user but to keep their notice (MPL: to share changes to its own files).
FREE = ("MIT", "BSD", "APACHE", "ISC", "PSF", "PYTHON SOFTWARE FOUNDATION", "MPL", "0BSD", "ZLIB", "UNLICENSE", "CC0")
BINDING = ("GPL", "GENERAL PUBLIC", "AGPL", "SSPL", "BUSL", "COMMONS CLAUSE", "PROPRIETARY")

# What the wheels of a package hold besides it, where that is under a binding licence, and why it binds nobody here.
FORTRAN = "its Linux wheels hold libgfortran and libquadmath, whose GPL has the exception for run-time libraries"
BUNDLED = {"numpy": FORTRAN, "scipy": FORTRAN}
EXPLAINED: dict[str, str] = {}  # packages that may have a binding licence themselves, and why: none


def licence(package: Distribution) -> str:
    """Return the licence in as few words as the metadata allow: the expression, the classifiers, the first line."""
    said = package.metadata
    if said["License-Expression"]:
        return str(said["License-Expression"])
    classified = [line.split(" :: ")[-1] for line in said.get_all("Classifier") or () if line.startswith("License ::")]
    named = [text for text in classified if text != "OSI Approved"]
    return ", ".join(named) or (str(said["License"] or "").strip().splitlines() or [""])[0]


def problems(packages: dict[str, str]) -> list[str]:
    """Name the packages whose licence binds, or is not known."""
    wrong = []
    for name, text in packages.items():
        binds = any(word in text.upper() for word in BINDING)
        if binds and name not in EXPLAINED:
            wrong.append(f"{name}: {text} restricts users of kinfold")
        if not any(word in text.upper() for word in FREE):
            wrong.append(f"{name}: {text or 'no licence in its metadata'} is not known")
    return wrong


def page(packages: dict[str, Distribution]) -> str:
    """Return the list as a page."""
    rows = [f"| {name} | {package.version} | {licence(package)} |" for name, package in packages.items()]
    notes = [f"- {name}: {why}." for name, why in {**BUNDLED, **EXPLAINED}.items() if name in packages]
    return "\n".join(
        [
            "# Licences",
            "",
            "What kinfold needs at run time (with its extras), as its metadata say; made by `make licences`,",
            "which fails if one is unknown or restricts users of kinfold. kinfold itself is under the MIT licence.",
            "What is installed on your machine says it, too:",
            "",
            *("```python", ">>> from importlib.metadata import metadata"),
            *(">>> metadata('kinfold')['License-Expression']", "'MIT'", "```", ""),
            *("| package | version | licence |", "| --- | --- | --- |", *rows, ""),
            *(["## Explained", "", *notes, ""] if notes else []),
        ]
    )


def main() -> int:
    """Write the page, or check only."""
    packages = shipped()
    wrong = problems({name: licence(package) for name, package in packages.items()})
    if "--check" not in sys.argv:
        PAGE.write_text(page(packages), "utf-8")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
