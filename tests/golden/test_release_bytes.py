"""Releases to the byte: the same table and policy give the file that they gave before, whatever was made faster since.

A sum that changes here changes what people get: the reason belongs into the changelog. Parquet files name the version
of the library that wrote them, so their sums hold for that version alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import kinfold
from everyday import first
from kinfold.demo import make_patients
from kinfold.policy.model import Policy
from kinfold.release.folder import hash_file
from reference.public_data import found

WRITTEN_BY = "2.0.0"
DEMO = Path(kinfold.__file__).parent / "demo" / "policy.toml"
ADULT = ("age", "sex", "race", "education")
TREES = {
    "age": {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [10, 20, 40]}},
    "area": {"role": "quasi", "type": "nominal", "hierarchy": {"mask": 5}},
    "sex": {"role": "quasi", "type": "nominal"},
}
OTHERS: dict[str, Any] = {
    "id": {"role": "identifier"},
    "disease": {"role": "confidential", "type": "nominal"},
    "pay": {"role": "confidential", "type": "continuous"},
    "note": {"role": "other"},
}
NUMBERS = {
    "age": {"role": "quasi", "type": "continuous", "missing": "separate"},
    "area": {"role": "quasi", "type": "nominal"},
    "sex": {"role": "quasi", "type": "nominal"},
    "day": {"role": "quasi", "type": "date", "average": "median"},
}


def table(records: int = 1_200, *, nulls: float = 0.0) -> pa.Table:
    """Return people who do not exist, some of whose values may be missing."""
    random = np.random.default_rng(14)
    age = np.minimum(random.gamma(6.0, 7.0, records).astype(int), 99)
    gone = random.random((2, records)) < nulls
    return pa.table(
        {
            "id": [f"p{i}" for i in range(records)],
            "age": pa.array(age, pa.int64(), mask=gone[0]),
            "area": pa.array(random.choice(["02138", "02139", "02141", "94040", "94041"], records), mask=gone[1]),
            "sex": random.choice(["f", "m"], records),
            "day": np.datetime64("2020-01-01") + random.integers(0, 700, records).astype("timedelta64[D]"),
            "disease": random.choice(["cold", "flu", "ulcer", "none"], records, p=[0.4, 0.3, 0.1, 0.2]),
            "pay": (age * 311.5 + random.normal(0, 900, records)).round(2),
            "note": random.choice(["=1", "a;b", "ä", ""], records),
        }
    )


def asked(columns: Mapping[str, Any], *, k: int = 5, method: Any, drop: tuple[str, ...] = (), **more: Any) -> Any:
    """Return a policy over the columns of `table`; those to drop are identifiers."""
    gone = {name: {"role": "identifier"} for name in ("day", *drop) if name not in columns}
    privacy = {"k": k, **more.pop("privacy", {})}
    return {"privacy": privacy, "method": method, "columns": {**OTHERS, **gone, **columns}, **more}


CASES: dict[str, tuple[str, float, Any]] = {
    "mdav csv": ("csv", 0, asked(NUMBERS, method={"name": "mdav"})),
    "mdav parquet with nulls": ("parquet", 0.05, asked(NUMBERS, method={"name": "mdav"})),
    "mdav refined": ("csv", 0, asked(NUMBERS, method={"name": "mdav", "refine": 1, "refine_steps": 2_000})),
    "v-mdav kept order": ("csv", 0, asked(NUMBERS, method={"name": "v-mdav"}, output={"order": "kept"})),
    "t-first parquet": (
        *("parquet", 0),
        asked({**NUMBERS, "disease": {"role": "other"}}, method={"name": "t-first"}, privacy={"t": 0.3}),
    ),
    "auto with t and l": ("csv", 0, asked(NUMBERS, method={"name": "auto"}, privacy={"t": 0.4, "l": 2})),
    "lattice csv": ("csv", 0, asked(TREES, method={"name": "lattice", "suppression": 0.02})),
    "lattice parquet with nulls": (
        *("parquet", 0.05),
        asked(
            {**TREES, "age": {**TREES["age"], "missing": "separate"}},
            method={"name": "lattice", "suppression": 0.05},
            output={"format": "parquet", "suppressed": "star"},
        ),
    ),
    "lattice with t": ("csv", 0, asked(TREES, method={"name": "lattice", "suppression": 0.1}, privacy={"t": 0.5})),
    "datafly": ("csv", 0, asked(TREES, method={"name": "datafly", "suppression": 0.01})),
    "mu-argus": ("parquet", 0, asked(TREES, method={"name": "mu-argus"}, output={"spreadsheet_safe": True})),
    "mingen": ("csv", 0, asked(TREES, k=3, method={"name": "mingen", "suppression": 0.05})),
    "mingen-cell": ("csv", 0, asked(TREES, k=3, method={"name": "mingen-cell"})),
    "local-suppression": (
        *("csv", 0.02),
        asked({**TREES, "age": {**TREES["age"], "missing": "separate"}}, k=3, method={"name": "local-suppression"}),
    ),
    "recoded first": (
        *("csv", 0),
        asked({**NUMBERS, "age": {**NUMBERS["age"], "top": 80, "bottom": 20, "round_to": 2}}, method={"name": "mdav"}),
    ),
}
SUMS: dict[str, str] = {
    "mdav csv": "f7647110840bad7962cb9c92e1dd280985450edee6f42919c063430df02176b1",
    "mdav parquet with nulls": "e88e78f993881042e31ed453feab2016e69f46dadd9dfd6b3fa1f8ddc0d1fec1",
    "mdav refined": "14d1f30048284a0c26090496bb3e47e5882ebb84eb2a667cd306d9e830720c84",
    "v-mdav kept order": "6b63ac617f279d4ed9069c2b9bf57cfb36bb4d8f5709d5fbe440927289b6f7a6",
    "t-first parquet": "5068b4af67a568aacf506cfa5afdd0a6361ba35fb533c083130b27dcdd69760b",
    "auto with t and l": "12b427e9ca9320f40221488cae776d524dc695c7284e4f00cbbb6e675aeaa095",
    "lattice csv": "3d5f39c3c635d674bc366bcd660eac226a38413db5267cff2d92eaf6610ecb89",
    "lattice parquet with nulls": "0a673a94fe0c50d573fc339033d3530fa73b4af4d3b5ba9d68f6bad13d51ccfb",
    "lattice with t": "070ff9449c6b1775eca479808a1fcada0801594c610e8dfe119f730185713b18",
    "datafly": "2781194cb9501573f22af2f8548b3c68d65d8944504d58f86376922c87bc404f",
    "mu-argus": "3af0d79d8fc1342177f02d2dcb8dd101bea92d7792e7ba087e25955f7faec94b",
    "mingen": "a0a8582104bbda297f6f2ce588f8f9417fb8ac3db9c18b3b774d2df7886a66b7",
    "mingen-cell": "51d502134ae25fa918adb6d171d23e9602757c823bc002976a54b751e15d0c08",
    "local-suppression": "1e089b86b9846eec370be9de1e556865259fd281a3b5669b2b00f42e6c235642",
    "recoded first": "3fc5f00379c23f020decf6aee0c55f6c018e9ebb4e5295420745b2968439372b",
    "demo": "52f0e9a34f8210ffd05c86b9abd19cdf9620d3862dddc369b3d7c02af5fc0769",
    "adult mdav": "3c6204b90d4933303791900c7780358f8ad21371eee2402188090a3ebda3ca6e",
    "adult lattice": "bc0a8b7302099345a12a9d72cfd497f31408e7b95db1bff30b81e9aa6d29b0e7",
}
DEMO_DOCUMENTS = {
    "dictionary.json": "375abe16e11d0a1e96774a2a4000d3b3d58f64d5ebedfbb9474cb022cda1ea5c",
    "dictionary.md": "5dcf80ff6b7c30b6ad51700b5af4fc4deda1ace726c5589dd389f920507f07f0",
    "datapackage.json": "30bc0e896ee97239bd564dfd4b53ebd9f743b3d54567583567b286f2c2f30160",
}


def sum_of(source: Path, policy: Any, folder: Path) -> str:
    """Make a release, and return the sum of its file."""
    made = kinfold.anonymize(source, policy).save(folder / "out")
    (file,) = (made / "public").glob("release.*")
    if file.suffix == ".parquet" and duckdb.__version__ != WRITTEN_BY:
        pytest.skip(f"Parquet as DuckDB {WRITTEN_BY} writes it; this is {duckdb.__version__}")
    return hash_file(file)


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("name", first(CASES, 4))
def test_a_generated_table_gives_the_bytes_that_it_gave(name: str, tmp_path: Path) -> None:
    kind, nulls, policy = CASES[name]
    source, rows = tmp_path / f"people.{kind}", table(nulls=nulls)
    if kind == "csv":
        pyarrow.csv.write_csv(rows, source)
    else:
        pyarrow.parquet.write_table(rows, source)
    assert sum_of(source, policy, tmp_path) == SUMS[name]


def test_the_demo_gives_the_bytes_that_it_gave(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(make_patients(), tmp_path / "patients.csv")
    assert sum_of(tmp_path / "patients.csv", Policy.load(DEMO), tmp_path) == SUMS["demo"]
    public = tmp_path / "out" / "public"
    assert {name: hash_file(public / name) for name in DEMO_DOCUMENTS} == DEMO_DOCUMENTS


@pytest.mark.parametrize("method", ["mdav", "lattice"])
def test_the_head_of_adult_gives_the_bytes_that_it_gave(method: str, tmp_path: Path) -> None:
    head = tmp_path / "adult.csv"
    head.write_text("".join(found("adult/adult.csv").read_text("utf-8").splitlines(keepends=True)[:2_001]), "utf-8")
    columns: dict[str, Any] = {name: {"role": "quasi", "type": "nominal"} for name in ADULT}
    columns["age"] = {"role": "quasi", "type": "continuous", "hierarchy": {"intervals": [5, 10, 20, 40]}}
    columns["salary-class"] = {"role": "confidential", "t": 0.4}
    policy = {"privacy": {"k": 5}, "method": {"name": method}, "columns": columns, "output": {"others": "drop"}}
    if method == "lattice":
        policy["method"]["suppression"] = 0.05
    assert sum_of(head, policy, tmp_path) == SUMS[f"adult {method}"]
