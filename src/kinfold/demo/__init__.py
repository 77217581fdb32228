"""The demo: a table made on the spot, its policy, and its release, in one folder that is made again each time."""

from __future__ import annotations

from pathlib import Path

from kinfold.demo.table import patients
from kinfold.disk import journal
from kinfold.errors import PolicyError
from kinfold.flow import anonymize
from kinfold.progress import Stage
from kinfold.release.release import Release
from kinfold.request.policy import Policy

PARTS = {"patients.csv", "policy.toml", "release"}


def show(folder: Path, progress: Stage | None = None) -> Release:
    """Write the demo table and its policy, and take them the whole way."""
    if folder.exists() and not {entry.name for entry in folder.iterdir()} <= PARTS:
        raise PolicyError(f"'{folder}' holds other things than the demo", fix="name another folder: --out DIR")
    table, rules = folder / "patients.csv", folder / "policy.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        journal.tell("kept", f"'{folder}' has been begun anew")
        demo_table(table)
        rules.write_text(demo_policy(), encoding="utf-8")
    except OSError as error:
        raise PolicyError(f"cannot write '{folder}': {error.strerror}", fix="name another folder: --out DIR") from error
    release = anonymize(table, Policy.load(rules), progress=progress)
    release.save(folder / "release", force=True)
    return release


def demo_policy() -> str:
    """Return the policy of the demo table."""
    return Path(__file__).with_name("policy.toml").read_text("utf-8")


def demo_table(path: Path) -> None:
    """Write the demo table."""
    from pyarrow import csv

    csv.write_csv(patients(), path)
