"""The table of README that names every model and method of ARX and sdcMicro: what our cells name exists."""

import importlib
import re
from pathlib import Path

import pytest

from kinfold.measures.measure_table import CATALOGUE
from kinfold.policy.model import ColumnPolicy, Method, Output
from kinfold.policy.perturbation import Perturbation
from kinfold.policy.privacy import Privacy
from kinfold.policy.registry import list_method_names

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
HEADER = "| model or method | kinfold | ARX | sdcMicro |"
SECTIONS = {"privacy": Privacy, "method": Method, "columns": ColumnPolicy, "output": Output, "perturb": Perturbation}
PEERS = (  # the models and methods in the documents of ARX 3.9 and sdcMicro 5.8
    *("k-anonymity", "l-diversity", "t-closeness", "k-map", "δ-presence", "β-likeness", "δ-disclosure", "average risk"),
    *("population uniques", "profitability", "differential privacy", "full-domain", "cell-level", "local suppression"),
    *("microaggregation", "top and bottom coding", "PRAM", "noise", "rank swapping", "record swapping", "shuffling"),
    *("ROMM", "restr", "outdect", "individual", "household risk", "interval disclosure", "information loss"),
)


def rows() -> list[list[str]]:
    lines = README.partition(HEADER)[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def exists(name: str) -> bool:
    section, _, key = name.rpartition(".")
    if section.startswith("kinfold"):
        return callable(getattr(importlib.import_module(section), key, None))
    if section in SECTIONS:
        return key in SECTIONS[section].model_fields
    return name in CATALOGUE or name in list_method_names()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_what_our_row_names_exists(row: list[str]) -> None:
    assert len(row) == 4
    names = re.findall(r"`([^`]+)`", row[1])
    assert bool(names) == (row[1] != "\N{EN DASH}")
    assert [name for name in names if not exists(name)] == []


def test_every_model_and_method_of_the_peers_has_a_row() -> None:
    listed = " ".join(row[0] for row in rows())
    assert [peer for peer in PEERS if peer not in listed] == []


def test_a_name_that_does_not_exist_is_noticed() -> None:
    assert not any(map(exists, ("privacy.q", "kinfold.risk.nothing", "loss.nothing", "mdaw", "perturb.shuffle")))
