"""Pages of rows and sizes of classes, as the engine counts them, against plain Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from kinfold.evaluation.chosen_columns import risk_of_columns
from kinfold.rows.engines.duckdb import DuckDB

ROWS = [(str(i % 7), "" if i % 5 == 0 else f"t{i % 3}", "x" * (i % 300)) for i in range(500)]


def table(folder: Path) -> Path:
    path = folder / "table.csv"
    path.write_text("a,b,c\n" + "".join(",".join(row) + "\n" for row in ROWS))
    return path


def test_pages_are_the_rows_in_their_order_cut_where_texts_are_long(tmp_path: Path) -> None:
    plain = [[cell[:200] or None for cell in row] for row in ROWS]
    with DuckDB() as engine:
        frame = engine.read(table(tmp_path), ("",))
        pages = [engine.page(frame, start, 64) for start in range(0, 560, 64)]
    assert [row for page in pages for row in page] == plain


def test_sizes_of_classes_are_counted_with_nulls_alike(tmp_path: Path) -> None:
    sizes = Counter(Counter((a, b) for a, b, _ in ROWS).values())
    with DuckDB() as engine:
        frame = engine.read(table(tmp_path), ("",))
        assert engine.sizes(frame, ["a", "b"]) == sorted(sizes.items())
        assert engine.sizes(frame, ["a"]) == sorted(Counter(Counter(a for a, _, _ in ROWS).values()).items())
        tally = engine.tally(frame, ["a", "b"], {})
        assert sorted(Counter(tally.sizes.tolist()).items()) == sorted(sizes.items())
        assert engine.sizes(frame, []) == [(500, 1)]
        found = risk_of_columns(engine, frame, ["a", "b"], 24)
    small = sum(size * many for size, many in sizes.items() if size < 24)
    assert found["classes"] == sum(sizes.values())
    assert found["below_k"] == small / 500
    assert found["prosecutor_max"] == 1 / min(sizes)
    assert found["prosecutor_mean"] == sum(sizes.values()) / 500
