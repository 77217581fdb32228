"""Values planted where they must not leave from, and every byte of what leaves searched for them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kinfold
from command import text

# One word for each place where a value of the original, or of what was declared about it, could slip out.
PLACES = {
    "a category of dropped rows": "zqdropped",
    "an order of a quasi-identifier": "zqquasiorder",
    "an order of a confidential column": "zqheldorder",
    "a leaf of a quasi-identifier's hierarchy": "zqquasileaf",
    "a leaf of a confidential column's hierarchy": "zqheldleaf",
    "an identifier": "zqname",
    "a column nobody named": "zqother",
    "the name of a dropped column": "zqcolumn",
    "the index": "zqindex",
    "the name of the index": "zqlevel",
    "metadata": "zqmeta",
    "a category that no row has": "zqunused",
}
N = 40


def table() -> pd.DataFrame:
    """Forty people; those without an age are dropped, and are alone in having some values."""
    gone = [i % 10 == 9 for i in range(N)]
    levels = ["low", "mid", "high", "mid"]
    word = PLACES["a category of dropped rows"]

    def column(values: list[str]) -> list[str]:
        return [word + str(i) if out else values[i % len(values)] for i, out in enumerate(gone)]

    frame = pd.DataFrame(
        {
            "name": [f"{PLACES['an identifier']}{i}" for i in range(N)],
            "age": [None if out else 20 + i for i, out in enumerate(gone)],
            "level": pd.Categorical(column(levels), [*levels[:3], PLACES["a category that no row has"], *_dropped()]),
            "zip": [word if out else ["a1", "a2", "b1", "b2"][i % 4] for i, out in enumerate(gone)],
            "grade": column(["good", "fair", "poor"]),
            "disease": [word if out else ["flu", "cold", "gout"][i % 3] for i, out in enumerate(gone)],
            "kept": pd.Categorical(column(["x", "y"]), ["x", "y", PLACES["a category that no row has"], *_dropped()]),
            PLACES["the name of a dropped column"]: [f"{PLACES['a column nobody named']}{i}" for i in range(N)],
        },
        index=pd.Index([f"{PLACES['the index']}{i}" for i in range(N)], name=PLACES["the name of the index"]),
    )
    frame.attrs["from"] = PLACES["metadata"]
    return frame


def _dropped() -> list[str]:
    return [f"{PLACES['a category of dropped rows']}{i}" for i in range(N) if i % 10 == 9]


def policy(method: str, form: str, order: bool) -> dict[str, Any]:
    gone = PLACES["a category of dropped rows"]
    zips = {"a": ["a1", "a2"], "b": ["b1", "b2"], "q": [PLACES["a leaf of a quasi-identifier's hierarchy"], gone]}
    tree = {"lung": ["flu", "cold"], "rest": ["gout"]}
    tree["none"] = [PLACES["a leaf of a confidential column's hierarchy"], gone]
    levels = ["low", PLACES["an order of a quasi-identifier"], "mid", "high", *_dropped()]
    grades = ["poor", PLACES["an order of a confidential column"], "fair", "good", *_dropped()]
    grade: dict[str, Any] = {"role": "confidential"}
    grade |= {"type": "ordinal", "order": grades} if order else {}
    columns = {
        "name": {"role": "identifier"},
        "age": {"role": "quasi", "type": "continuous", "missing": "drop", "hierarchy": {"intervals": [10]}},
        "level": {"role": "quasi", "type": "ordinal", "order": levels},
        "zip": {"role": "quasi", "type": "nominal", "hierarchy": {"tree": zips}},
        "grade": grade,
        "disease": {"role": "confidential", "hierarchy": {"tree": tree}},
        "kept": {"role": "other"},
    }
    if method in ("mdav", "k-first"):
        columns["level"]["average"] = "median"
    return {
        "privacy": {"k": 3, "t": 0.9, "l": 1},
        "method": {"name": method, "suppression": 0.2},
        "columns": columns,
        "output": {"others": "drop", "format": form},
    }


def found_in(folder: Path) -> dict[str, set[str]]:
    """The files in which each planted word is, compressed or not."""
    found: dict[str, set[str]] = {}
    for path in folder.rglob("*"):
        content = path.read_bytes()
        if path.suffix == ".parquet":  # a page may be compressed
            plain = path.with_suffix(".plain")
            pq.write_table(pq.read_table(path), plain, compression="none")
            content += plain.read_bytes()
            plain.unlink()
        for place, word in PLACES.items():
            if re.search(word.encode(), content):
                found.setdefault(place, set()).add(path.name)
    return found


METHODS = ["mdav", "k-first", "mingen-cell", "lattice", "datafly", "mu-argus"]


@pytest.fixture(scope="module", params=[(m, f) for m in METHODS for f in ("csv", "parquet")], ids="-".join)
def planted(request: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    method, form = request.param
    out = tmp_path_factory.mktemp("planted") / "out"
    kinfold.anonymize(table(), policy(method, form, order=True)).save(out)
    assert found_in(out / "internal")  # they are somewhere
    return found_in(out / "public")


def test_nothing_planted_is_in_public(planted: dict[str, set[str]]) -> None:
    assert planted == {}


@pytest.mark.parametrize("method", ["mdav", "mingen-cell"])
def test_nothing_planted_is_in_public_where_no_confidential_column_is_ordered(method: str, tmp_path: Path) -> None:
    kinfold.anonymize(table(), policy(method, "csv", order=False)).save(tmp_path / "out")
    assert found_in(tmp_path / "out" / "public") == {}


def test_a_parquet_file_carries_no_metadata_of_its_source(tmp_path: Path) -> None:
    source = tmp_path / "source.parquet"
    frame = table().reset_index(drop=True).drop(columns=PLACES["the name of a dropped column"])
    held = pa.Table.from_pandas(frame).replace_schema_metadata({"pandas": PLACES["metadata"]})
    pq.write_table(held, source)
    kinfold.anonymize(source, policy("mdav", "parquet", order=False)).save(tmp_path / "out")
    file = tmp_path / "out" / "public" / "release.parquet"
    assert not {*(pq.read_schema(file).metadata or {})} - {b"duckdb_schema"}
    assert found_in(tmp_path / "out" / "public") == {}


def test_a_csv_source_leaves_nothing_either(tmp_path: Path) -> None:
    data = text(tmp_path, "t.csv", table().to_csv())
    release = kinfold.anonymize(data, policy("mdav", "csv", order=False))
    release.save(tmp_path / "out")
    assert found_in(tmp_path / "out" / "public") == {}
    assert not re.search("zq", release.frame.to_pandas().to_csv())
