"""What an attacker who knows the parameters of a perturbation links: the table of docs/perturbation.md.

python -m benchmarks.perturbation            Census (1,080 records) and sdcMicro's testdata (4,580), from KINFOLD_DATA,
                                             and the 3,000 households of recordswap_in.csv beside it

The attacker knows the true values of the perturbed columns of everybody, and how they were perturbed. A row: what is
done, how many columns, the share of records linked, and what stays (see docs/measures/perturbation.md).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd

import kinfold

DATA = Path(os.environ.get("KINFOLD_DATA", Path(__file__).parents[2] / "shared" / "data"))
NUMBERS = ["AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "STATETAX"]
CATEGORIES = ["roof", "walls", "water", "electcon", "relat"]
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("noise = 0.1", {"noise": 0.1}),
    ("noise = 0.5", {"noise": 0.5}),
    ("correlated_noise = 0.01", {"correlated_noise": 0.01}),
    ("correlated_noise = 0.25", {"correlated_noise": 0.25}),
    ("rank_swap = 5", {"rank_swap": 5}),
    ("rank_swap = 15", {"rank_swap": 15}),
    ("micro = 3", {"micro": 3}),
    ("micro = 10", {"micro": 10}),
    ("pram = 0.9", {"pram": 0.9}),
    ("pram = 0.8", {"pram": 0.8}),
    ("pram = 0.5", {"pram": 0.5}),
]


def link(table: pd.DataFrame, quasi: str, columns: list[str], how: dict[str, Any]) -> dict[str, Any]:
    """Return the measures of a release whose columns are perturbed."""
    keys: dict[str, Any] = {name: {"role": "other", "perturb": how} for name in columns}
    policy = {"privacy": {"k": 3}, "method": {"name": "mdav", "seed": 1}, "output": {"others": "drop"}}
    release = kinfold.anonymize(table, {**policy, "columns": {quasi: {"role": "quasi"}, **keys}})
    measures = release.measures
    return {**measures["loss"]["perturbed"][columns[0]], "linked": measures["risk"]["perturbed_linkage"]}


def swap(households: pd.DataFrame, rate: float) -> dict[str, Any]:
    """Return the measures of a release whose households exchanged two levels of their region."""
    how = {"record_swap": rate, "similar": ["hsize"]}
    columns: dict[str, Any] = {
        name: {"role": "other", "type": "nominal", "perturb": how} for name in ("nuts1", "nuts2")
    }
    columns |= {"hid": {"role": "identifier"}, "hincome": {"role": "quasi"}, "hsize": {"role": "other"}}
    policy = {"privacy": {"k": 3, "unit": "hid"}, "method": {"name": "mdav", "seed": 1}, "output": {"others": "drop"}}
    measures = kinfold.anonymize(households, {**policy, "columns": columns}).measures
    return {**measures["loss"]["perturbed"]["nuts2"], "linked": measures["risk"]["perturbed_linkage"]}


def main() -> None:
    """Print the table."""
    census, testdata = (pd.read_csv(DATA / name) for name in ("census.csv", "sdcmicro_testdata.csv"))
    for title, how in WAYS:
        pram = "pram" in how
        table, quasi, names = (testdata, "age", CATEGORIES) if pram else (census, "WSALVAL", NUMBERS)
        for count in (1, 2, 5):
            if count > 1 or "correlated_noise" not in how:
                found = link(table, quasi, names[:count], how)
                rest = {key: round(value, 4) for key, value in found.items() if isinstance(value, float)}
                print(f"{title:28} {count} columns: {found['linked']:.1%} linked; {rest}", flush=True)
    households = pd.read_csv(DATA.parent / "parity" / "data" / "recordswap_in.csv")
    for rate in (0.0, 0.05, 0.2, 0.5):
        print(f"record_swap = {rate}", swap(households, rate), flush=True)


if __name__ == "__main__":
    main()
