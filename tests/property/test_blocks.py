"""Classes made in blocks: every method, every kind of table; k and the promises of the whole table; always the same."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kinfold
from everyday import pairwise
from kinfold.methods import classes
from kinfold.methods.blocks import pool
from kinfold.methods.blocks.cutting import choose_block_size, cut, number_layers
from kinfold.methods.partition import refine as large
from kinfold.methods.partition.geometry import compute_cost, renumber_by_first_record
from kinfold.methods.partition.mdav import mdav
from kinfold.methods.partition.requirement import Requirement, measure_misses
from kinfold.methods.plan import estimate_partition_seconds
from kinfold.models import TCloseness
from kinfold.policy.registry import list_methods
from kinfold.progress import no_progress
from kinfold.tables.points import Points
from mixed_tables import SCALES
from reference.partitions import sse_plain

K, BLOCK, N = 4, 60, 420
PARTITIONERS = [name for name, each in list_methods().items() if each.family == "partition"]


@pytest.fixture(autouse=True)
def many_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let some blocks be worth a thread of their own."""
    monkeypatch.setattr(pool, "BATCH_RECORDS", 100)


def table(kind: str, n: int = N) -> pd.DataFrame:
    """A table of one kind; `wage` goes with the first column."""
    random = np.random.default_rng(7)
    x = random.normal(size=(n, 3)).round(2)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    frame["wage"] = (1000 * np.exp(x[:, 0] + random.normal(size=n))).round()
    frame["ill"] = random.choice(["flu", "cold", "none"], n, p=[0.2, 0.3, 0.5])
    if kind == "equal":
        frame[["a", "b", "c"]] = 1.5
    elif kind == "ties":
        frame[["a", "b", "c"]] = random.integers(0, 2, (n, 3))
    elif kind == "skewed":
        frame["a"] = np.where(np.arange(n) < n - 9, 0.0, 1e6)
    elif kind == "giant":  # nearly everybody alike in everything
        frame.loc[: n - 20, ["a", "b", "c"]] = 0.0
    elif kind == "mixed":
        frame["b"] = random.choice(["low", "middle", "high"], n)
        frame["c"] = random.choice([None, "x", "y", "z"], n)
    elif kind == "nulls":
        frame.loc[random.random(n) < 0.3, "a"] = np.nan
    return frame


KINDS = ("plain", "equal", "ties", "skewed", "giant", "mixed", "nulls")


def asked(method: str, kind: str, **more: Any) -> dict[str, Any]:
    """A policy for a method and a kind of table."""
    quasi = ("a",) if "one number" in list_methods()[method].needs else ("a", "b", "c")
    columns: dict[str, Any] = {name: {"role": "quasi-identifier"} for name in quasi}
    columns["a"] |= {"type": "continuous"}
    if kind == "mixed" and len(quasi) > 1:
        columns["b"] |= {"type": "ordinal", "order": ["low", "middle", "high"]}
    if kind == "nulls":
        columns["a"] |= {"missing": "separate"}
    privacy: dict[str, Any] = {"k": K}
    if "t" in list_methods()[method].needs or "t" in more:
        privacy["t"] = more.pop("t", 0.25)
        columns |= {"wage": {"role": "confidential"}, "ill": {"role": "confidential"}}
    options = {"name": method, "block": BLOCK, **more}
    return {"privacy": privacy, "method": options, "columns": columns, "output": {"others": "drop"}}


EVERYDAY = {*product(("mdav",), KINDS[::2]), *product(("t-first",), ("mixed",))}  # the others take a second each


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("method", "kind"),
    [pytest.param(*both, marks=() if both in EVERYDAY else pytest.mark.slow) for both in product(PARTITIONERS, KINDS)],
)
def test_every_method_keeps_its_promises_in_blocks(method: str, kind: str) -> None:
    policy = asked(method, kind)
    release = kinfold.anonymize(table(kind), policy)
    assert release.plan.blocks >= N // BLOCK
    assert release.verdict.k >= K
    assert kinfold.verify(release.frame, policy).holds
    assert any(f"in {release.plan.blocks} blocks of at most {BLOCK} records" in note for note in release.plan.notes)
    assert any(f"in {release.plan.blocks} blocks" in told for told in release.plan.public_notes)


@pytest.mark.slow
@pytest.mark.compiled
@pairwise(kind=["mixed", "plain", "nulls"], refined=[False, True], t=[None, 0.15])
def test_the_number_of_threads_changes_nothing(
    kind: str, refined: bool, t: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, pools = [], []
    more = ({"t": t} if t else {}) | ({"refine_steps": 500 if t else 50} if refined else {})
    monkeypatch.setattr(pool, "ThreadPoolExecutor", counting(pools))
    monkeypatch.setattr(large, "ThreadPoolExecutor", counting(pools))
    for threads in (1, 2, 5):
        limited = asked("mdav", kind, **more) | {"engine": {"threads": threads}}
        found.append(kinfold.anonymize(table(kind), limited).labels)
        assert set(pools) <= {threads}
        assert pools or threads == 1
        pools.clear()
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def counting(pools: list[int]) -> Callable[[int], ThreadPoolExecutor]:
    """Return what opens a pool of threads, and writes down how many it has."""

    def opened(threads: int) -> ThreadPoolExecutor:
        pools.append(threads)
        return ThreadPoolExecutor(threads)

    return opened


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("more", [{}, {"t": 0.2}], ids=["k", "t"])
@pytest.mark.parametrize("kind", ["plain", "mixed"])
def test_a_large_table_is_refined_round_by_round(kind: str, more: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kinfold.methods.classes.MAX_TABLED_RECORDS", 100)
    monkeypatch.setattr(large, "RECORDS_SWEPT", 80)
    monkeypatch.setattr(large, "RECORDS_UNDER_PROMISES", 80)
    plain = kinfold.anonymize(table(kind), asked("mdav", kind, **more))
    better = kinfold.anonymize(table(kind), asked("mdav", kind, refine_steps=24, **more))
    assert better.plan.steps == 24
    assert better.verdict.k >= K
    assert better.measures["loss"]["overall"] < plain.measures["loss"]["overall"]


def test_blocks_are_forbidden_by_0_and_not_needed_by_small_tables() -> None:
    labels = []
    for block in (0, None, N):
        policy = asked("mdav", "plain") | {"method": {"name": "mdav"} | ({} if block is None else {"block": block})}
        release = kinfold.anonymize(table("plain"), policy)
        assert release.plan.blocks == 0
        assert not [note for note in release.plan.notes if "block" in note]
        labels.append(release.labels)
    assert (labels[0] == labels[1]).all()
    assert (labels[0] == labels[2]).all()


def test_a_block_has_at_least_twice_k_records_whatever_is_asked() -> None:
    policy = asked("mdav", "plain") | {"method": {"name": "mdav", "block": 1}}
    release = kinfold.anonymize(table("plain"), policy)
    assert release.plan.blocks == -(-N // (2 * K))
    assert release.verdict.k >= K


def test_the_folder_says_that_there_were_blocks(tmp_path) -> None:
    import json

    release = kinfold.anonymize(table("plain"), asked("mdav", "plain"))
    release.save(tmp_path / "out")
    certificate = json.loads((tmp_path / "out" / "public" / "certificate.json").read_text())
    audit = json.loads((tmp_path / "out" / "internal" / "audit.json").read_text())
    assert certificate["release"]["blocks"] == audit["blocks"] == release.plan.blocks > 1
    assert f"in {release.plan.blocks} blocks" in (tmp_path / "out" / "public" / "report.html").read_text()
    assert kinfold.verify(tmp_path / "out" / "public").holds


# What is promised is compared with the whole table


@pytest.mark.parametrize("distance", ["ordered", "equal"])
def test_a_class_of_a_block_is_judged_as_in_the_whole_table(distance: str) -> None:
    random = np.random.default_rng(0)
    wage = random.integers(0, 12, 300)
    rows = np.sort(random.choice(300, 90, replace=False))
    labels = random.integers(0, 9, 90).astype(np.int32)
    labels[:9] = np.arange(9)
    whole = Requirement.of(TCloseness(0.01, "wage", distance), wage)
    everybody = np.full(300, 9, np.int32)
    everybody[rows] = labels
    inside = measure_misses([whole.within(rows)], labels)
    assert inside == pytest.approx(measure_misses([whole], everybody)[:9])
    own = measure_misses([Requirement.of(TCloseness(0.01, "wage", distance), wage[rows])], labels)
    assert not np.allclose(inside, own)


def test_a_hierarchy_of_what_is_promised_is_that_of_the_whole_table() -> None:
    random = np.random.default_rng(1)
    words = np.array(["a1", "a2", "b1", "b2", "c1"])
    values, paths = words[random.integers(0, 5, 200)], np.array([[0, 0], [1, 0], [2, 1], [3, 1], [4, 2]])
    from kinfold.models.model import ClassCriterion

    whole = Requirement(ClassCriterion("nested", 0.01, paths=paths), np.searchsorted(words, values))
    rows = np.flatnonzero(values != "c1")[:50]  # a block without one of the values
    labels = (np.arange(50) % 5).astype(np.int32)
    everybody = np.full(200, 5, np.int32)
    everybody[rows] = labels
    assert measure_misses([whole.within(rows)], labels) == pytest.approx(measure_misses([whole], everybody)[:5])


def test_blocks_that_have_their_share_leave_little_to_repair() -> None:
    random = np.random.default_rng(2)
    x = random.normal(size=(3000, 2))
    wage = x[:, 0] + 0.1 * random.normal(size=3000)  # which a plain cut would part
    required = Requirement.close(wage, 0.1)
    shared = number_layers([required], 5, 300)
    blocks = cut(Points.from_array(x), np.arange(3000), 300, shared)
    whole = [measure_misses([required.within(rows)], np.zeros(len(rows), np.int32))[0] for rows in blocks]
    assert max(whole) == 0.0
    apart = cut(Points.from_array(x), np.arange(3000), 300)
    assert max(measure_misses([required.within(rows)], np.zeros(len(rows), np.int32))[0] for rows in apart) > 0.1


# Borders


@pytest.mark.parametrize("scales", SCALES, ids=len)
def test_borders_cost_no_more_than_before_and_keep_k(scales: Any) -> None:
    random = np.random.default_rng(3)
    codes = [random.integers(0, scale.codes, 600) for scale in scales]
    points = Points(
        random.normal(size=(600, 2)), np.column_stack([np.empty((600, 0), int), *codes]).astype(np.int32), scales
    )
    labels, block = in_blocks(points, 5, 100)
    better = classes.improve_borders(points, labels, block, 5, (), no_progress)
    assert np.bincount(better).min() >= 5
    assert compute_cost(points, better) < compute_cost(points, labels)


def in_blocks(points: Points, k: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The classes of mdav in blocks, and the block of each record."""
    labels, block = np.empty(len(points), np.int32), np.empty(len(points), np.int32)
    for number, rows in enumerate(cut(points, np.arange(len(points)), size)):
        labels[rows] = mdav(points.take(rows), k) + number * len(points)
        block[rows] = number
    return renumber_by_first_record(labels), block


def test_classes_far_from_every_border_stay_as_they_are() -> None:
    random = np.random.default_rng(4)
    x = np.column_stack([np.sort(random.uniform(0, 100, 900)), random.uniform(0, 1, 900)])
    labels, block = in_blocks(Points.from_array(x), 4, 450)
    better = classes.improve_borders(Points.from_array(x), labels, block, 4, (), no_progress)
    moved = np.flatnonzero(changed(labels, better))
    assert len(moved) > 0
    assert 400 < moved.min() <= moved.max() < 500  # records are in order, and the cut is at 450


def changed(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Mark the records whose class has other members now."""
    together = [frozenset(np.flatnonzero(labels == label)) for labels in (one,) for label in range(int(one.max()) + 1)]
    before = {row: group for group in together for row in group}
    after = [frozenset(np.flatnonzero(other == other[row])) for row in range(len(other))]
    return np.array([before[row] != after[row] for row in range(len(other))])


@pytest.mark.compiled
def test_borders_win_back_most_of_what_blocks_lose() -> None:
    x = np.random.default_rng(5).normal(size=(4000, 3))
    points = Points.from_array(x)
    whole = sse_plain(x, mdav(points, 5))
    labels, block = in_blocks(points, 5, 500)
    cut_up = sse_plain(x, labels)
    better = sse_plain(x, classes.improve_borders(points, labels, block, 5, (), no_progress))
    assert cut_up > whole
    assert better < whole + 0.5 * (cut_up - whole)


@pytest.mark.compiled
@pytest.mark.parametrize("t", [0.1, 0.3])
def test_borders_keep_promises(t: float) -> None:
    random = np.random.default_rng(6)
    points = Points.from_array(random.normal(size=(800, 2)))
    required = [Requirement.close(random.normal(size=800), t)]
    labels, block = in_blocks(points, 10, 200)
    from kinfold.methods.partition.repair import repair

    kept = repair(points, labels, 10, required).labels
    better = classes.improve_borders(points, kept, block, 10, required, no_progress)
    assert measure_misses(required, better).max() == 0.0
    assert np.bincount(better).min() >= 10
    assert compute_cost(points, better) <= compute_cost(points, kept)


def test_the_note_on_blocks_counts_what_promises_take():
    """300,000 records by 8 at k = 5 under a starter policy: 40 to 90 processor seconds for the classes, as measured."""
    auto, named = (SimpleNamespace(block=None, uses_several_starts=starts) for starts in (True, False))
    eight = SimpleNamespace(with_role=lambda _: range(8))

    def seconds(method, *promises):
        task = SimpleNamespace(method=method, records=300_000, k=5, policy=eight, requirements=lambda: promises)
        found = choose_block_size(list_methods()["t-first"], task)
        assert found.records == 20_000  # whatever is promised
        return int(re.search(r"would take about (\d+) s", found.reason)[1])

    assert seconds(auto) == 14
    assert 40 <= seconds(auto, "t") <= 90
    assert seconds(auto) < seconds(named, "t") < seconds(auto, "t")


def test_the_expected_time_counts_repair_and_borders():
    """Within a factor of two: that table took 40 processor seconds with 12 promises, on a busy machine."""
    auto = SimpleNamespace(block=None, uses_several_starts=True, refinement_limits=None)
    eight = SimpleNamespace(with_role=lambda _: range(8))
    task = SimpleNamespace(method=auto, records=300_000, k=5, policy=eight, requirements=lambda: ("t",))
    assert 20 <= estimate_partition_seconds(list_methods()["t-first"], task) <= 80
