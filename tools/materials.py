"""The bill of materials: what a release of kinfold is made of, as CycloneDX 1.6, from what is installed.

    python -m tools.materials FILE

The same environment gives the same bytes: no clock and no random number is in it. Checksums are those of the lock.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from tools.licences import licence
from tools.shipped import extras_shipped, needs, shipped

LOCK = Path(__file__).parents[1] / "requirements" / "dev.txt"


def bill() -> dict[str, Any]:
    """Return the bill: kinfold, its components, and who needs whom."""
    packages, root = shipped(), distribution("kinfold")
    locked = checksums(LOCK.read_text("utf-8"))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(root, "application", [])},
        "components": [
            component(package, "library", locked.get((name, package.version), [])) for name, package in packages.items()
        ],
        "dependencies": [
            needed(root, packages, extras_shipped()),
            *(needed(package, packages, ("",)) for package in packages.values()),
        ],
    }


def component(package: Distribution, kind: str, hashes: list[str]) -> dict[str, Any]:
    """Describe one distribution. Every file of the lock is named: one of them is installed, by platform."""
    told = {
        "type": kind,
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
        "licenses": [{"license": {"name": licence(package)}}],
        "purl": reference(package),
    }
    return told | ({"properties": [{"name": "kinfold:sha256", "value": value} for value in hashes]} if hashes else {})


def needed(package: Distribution, packages: dict[str, Distribution], extras: tuple[str, ...]) -> dict[str, Any]:
    """Say what a distribution needs directly."""
    names = {name for name, _ in needs(package, extras) if name in packages}
    return {"ref": reference(package), "dependsOn": sorted(reference(packages[name]) for name in names)}


def reference(package: Distribution) -> str:
    """Return the package URL."""
    return f"pkg:pypi/{canonicalize_name(package.name)}@{package.version}"


def checksums(lock: str) -> dict[tuple[str, str], list[str]]:
    """Return the checksums of a lock by name and version."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in re.split(r"\n(?=\S)", lock):
        named = re.match(r"([A-Za-z0-9._-]+)==(\S+)", entry)
        if named:
            found[canonicalize_name(named[1]), named[2]] = re.findall(r"sha256:([0-9a-f]{64})", entry)
    return found


def main() -> None:
    """Write the bill to the file that is named."""
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(bill(), indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
