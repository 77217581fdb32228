"""A released frame is a snapshot of what was verified, whatever happens to its source."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold

pytestmark = pytest.mark.filterwarnings("ignore:The inplace keyword")  # which is how callers change a frame in place

ROWS = 8
STAGES = ("read", "plan", "apply", "verify", "measure", "done", "afterwards")
POLICY = {
    "privacy": {"k": 2},
    "method": {"name": "mdav"},
    "output": {"order": "kept", "others": "release"},
    "columns": {
        "age": {"role": "quasi-identifier"},
        "name": {"role": "identifier"},
        "disease": {"role": "confidential", "type": "nominal"},
    },
}


class Source:
    """A frame and the memory that its columns of numbers, texts and categories share with other objects."""

    def __init__(self, library: str) -> None:
        self.numbers = np.arange(2.0 * ROWS).reshape(2, ROWS).copy()
        self.texts = bytearray(b"".join(b"text%d" % i for i in range(ROWS)))
        self.names = bytearray(b"lowhighnone")
        offsets = pa.py_buffer(np.arange(0, 5 * ROWS + 1, 5, dtype=np.int32))
        texts = pa.Array.from_buffers(pa.string(), ROWS, [None, offsets, pa.py_buffer(self.texts)])
        ends = pa.py_buffer(np.array([0, 3, 7, 11], np.int32))
        levels = pa.Array.from_buffers(pa.string(), 3, [None, ends, pa.py_buffer(self.names)])
        codes = pa.array([0, 1] * (ROWS // 2), pa.int8())
        arrow = {
            "age": pa.array(self.numbers[0]),
            "name": pa.array([f"name {i}" for i in range(ROWS)]),
            "disease": texts,
            "weight": pa.array(self.numbers[1]),
            "level": pa.DictionaryArray.from_arrays(codes, levels, ordered=True),
            "day": pa.array(range(ROWS), pa.date32()),
        }
        self.frame: Any = pa.table(arrow)
        if library == "polars":
            self.frame = pl.from_arrow(self.frame)
        if library == "pandas":
            self.frame = _pandas(arrow, self.numbers)

    def overwrite(self) -> None:
        """Write into the memory under the frame."""
        self.numbers[:] = -1.0
        self.texts[:] = b"X" * len(self.texts)
        self.names[:] = b"Y" * len(self.names)


def _pandas(arrow: dict[str, pa.Array], numbers: np.ndarray) -> pd.DataFrame:
    kinds = {name: pd.Series(arrow[name].to_pandas(types_mapper=pd.ArrowDtype)) for name in ("disease", "level")}
    frame = pd.DataFrame({"age": numbers[0], "weight": numbers[1]}, copy=False)
    assert np.shares_memory(frame["weight"].to_numpy(), numbers)
    frame["name"] = arrow["name"].to_pylist()
    frame = frame.assign(**kinds)
    frame["kind"] = pd.Categorical(["b", "a"] * (ROWS // 2), ["c", "b", "a"], ordered=True)
    frame["late"] = pd.date_range("2020-03-29", periods=ROWS, freq="31min", tz="Europe/Berlin")
    frame["some"] = pd.Series([1, None] * (ROWS // 2), dtype="Int64")
    frame["any"] = pd.Series(["1", None] * (ROWS // 2), dtype=object)
    return frame


def rename(source: Source) -> None:
    if isinstance(source.frame, pd.DataFrame):
        source.frame.columns = [f"other {i}" for i in range(source.frame.shape[1])]
        source.frame.index.name = "ssn"
    elif isinstance(source.frame, pl.DataFrame):
        source.frame.columns = [f"other {i}" for i in range(source.frame.width)]


def leak(source: Source) -> None:
    """Put the names into a column that is released."""
    if isinstance(source.frame, pd.DataFrame):
        source.frame["disease"] = "the name of somebody"
        source.frame.loc[:, "weight"] = 99.0
    elif isinstance(source.frame, pl.DataFrame):
        place = source.frame.get_column_index("disease")
        source.frame.replace_column(place, source.frame["name"].alias("disease"))
        source.frame[0, "weight"] = 99.0


def sort(source: Source) -> None:
    if isinstance(source.frame, pd.DataFrame):
        source.frame.sort_values("weight", ascending=False, inplace=True)


def drop(source: Source) -> None:
    if isinstance(source.frame, pd.DataFrame):
        source.frame.drop(index=source.frame.index[2:], inplace=True)
    elif isinstance(source.frame, pl.DataFrame):
        source.frame.drop_in_place("weight")


CHANGES: dict[str, Callable[[Source], None]] = {
    "memory": Source.overwrite,
    "leak": leak,
    "sort": sort,
    "drop": drop,
    "rename": rename,
}


def changed_at(stage: str, change: Callable[[Source], None], source: Source) -> Callable[[str, int, int], None]:
    """Return a listener that changes the source once, when the run reaches a stage."""
    left = [change]

    def listen(name: str, done: int, total: int) -> None:
        if name == stage and left:
            left.pop()(source)

    return listen


def plain(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame as Python values."""
    table = frame if isinstance(frame, pa.Table) else None
    if isinstance(frame, pl.DataFrame):
        return frame.to_dicts()
    return (
        table.to_pylist() if table is not None else frame.astype(object).where(frame.notna(), None).to_dict("records")
    )


EXPECTED: dict[str, Any] = {}


def expected(library: str) -> Any:
    if library not in EXPECTED:
        EXPECTED[library] = kinfold.anonymize(Source(library).frame, POLICY).frame
    return EXPECTED[library]


def spoil(frame: Any) -> None:
    """Change a released frame."""
    if isinstance(frame, pd.DataFrame):
        frame.iloc[:, 1] = frame.iloc[0, 1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame["weight"].array._ndarray.setflags(write=True)
            frame["weight"].array._ndarray[:] = -7
    elif isinstance(frame, pl.DataFrame):
        frame[0, "weight"] = -7.0


@pytest.mark.slow
@settings(max_examples=40)
@given(
    library=st.sampled_from(["pandas", "polars", "pyarrow"]),
    stage=st.sampled_from(STAGES),
    change=st.sampled_from(sorted(CHANGES)),
)
def test_a_released_frame_is_what_was_verified(library: str, stage: str, change: str) -> None:
    source, change_source = Source(library), CHANGES[change]
    release = kinfold.anonymize(source.frame, POLICY, progress=changed_at(stage, change_source, source))
    if stage == "afterwards":
        change_source(source)
    first = release.frame
    wanted = expected(library)
    assert plain(first) == plain(wanted)
    assert [str(kind) for kind in _types(first)] == [str(kind) for kind in _types(wanted)]
    spoil(first)
    assert plain(release.frame) == plain(wanted)


def _types(frame: Any) -> list[Any]:
    return list(frame.schema.types if isinstance(frame, pa.Table) else frame.dtypes)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_what_is_saved_and_labelled_is_what_was_verified(library: str, tmp_path: Path) -> None:
    source = Source(library)
    release = kinfold.anonymize(source.frame, POLICY)
    labels, before = release.labels, plain(release.frame)
    for change in ("memory", "leak", "drop"):
        CHANGES[change](source)
    spoil(release.frame)
    release.labels[:] = 0
    release.save(tmp_path / "after")
    kinfold.anonymize(Source(library).frame, POLICY).save(tmp_path / "untouched")
    files = [(tmp_path / name / "public" / "release.csv").read_bytes() for name in ("after", "untouched")]
    assert files[0] == files[1]
    assert (release.labels == labels).all()
    assert plain(release.frame) == before


def test_a_released_index_is_that_of_the_verified_rows() -> None:
    source = Source("pandas")
    ages = np.arange(100, 100 + ROWS)
    frame = source.frame.set_index(pd.Index(ages, name="visit", copy=False))
    release = kinfold.anonymize(frame, POLICY)
    ages[:] = 0
    frame.index.name = "ssn"
    frame.sort_index(ascending=False, inplace=True)
    assert release.frame.index.tolist() == list(range(100, 100 + ROWS))
    assert release.frame.index.name == "visit"


def test_only_columns_that_are_released_untouched_stay_in_memory() -> None:
    kept = kinfold.anonymize(Source("pandas").frame, POLICY).source.columns
    assert "name" not in kept
    assert {name: len(column) for name, column in kept.items() if len(column) != ROWS} == {"age": 0}


def test_a_frame_that_changes_while_it_is_copied_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from kinfold.tables import frames

    def torn(library: str, frame: Any) -> dict[str, Any]:
        return {name: frame[name].iloc[:at] for at, name in enumerate(frame.columns)}

    monkeypatch.setattr(frames, "_copy_columns", torn)
    with pytest.raises(kinfold.DataError, match="was changed while it was read"):
        kinfold.anonymize(Source("pandas").frame, POLICY)
