"""Rare patterns of missing values: the fewest values given up, every promise kept, every loss counted."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kinfold
from everyday import first
from kinfold.methods import missing_values
from kinfold.methods.missing_values import assign_patterns
from kinfold.policy.registry import list_methods
from ledger import tally_up
from reference.null_patterns import fewest

PARTITIONERS = [name for name, method in list_methods().items() if method.family == "partition"]
PROMISES: tuple[dict[str, Any], ...] = ({}, {"t": 0.35}, {"l": 2}, {"p": 2}, {"alpha": 0.7}, {"unit": "who"})


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.integers(0, 3), st.integers(1, 5), min_size=1), st.integers(2, 4))
def test_the_fewest_values_are_given_up(sizes: dict[int, int], k: int) -> None:
    flow = assign_patterns(sizes, k)
    if sum(sizes.values()) < k:
        assert flow is None
        return
    assert flow is not None
    assert all(end & start == start for start, end in flow)
    left, arrived = Counter[int](), Counter[int]()
    for (start, end), number in flow.items():
        left[start] += number
        arrived[end] += number
    assert left == sizes
    assert min(arrived.values()) >= k
    assert sum(number * (end ^ start).bit_count() for (start, end), number in flow.items()) == fewest(sizes, k)


def test_too_many_patterns_are_left_to_the_greedy_rule() -> None:
    assert assign_patterns({1 << bit: 1 for bit in range(12)}, 3) is None


def table(seed: int, n: int = 60, nulls: float = 0.06) -> pa.Table:
    random = np.random.default_rng(seed)

    def some(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=random.random(n) < nulls)

    return pa.table(
        {
            "who": pa.array([f"p{i}" for i in random.integers(0, n // 2, n)]),
            "age": some(random.integers(18, 80, n)),
            "wage": some(random.normal(3000, 500, n).round(1)),
            "day": some(np.datetime64("2024-01-01") + random.integers(0, 300, n)),
            "sex": some(random.choice(["f", "m"], n)),
            "ill": pa.array(random.choice(["a", "b", "c"], n)),
        }
    )


def asked(method: str, rare: str, promise: dict[str, Any]) -> dict[str, Any]:
    number = {"role": "quasi", "missing": "separate", "missing_rare": rare}
    columns: dict[str, Any] = {name: dict(number) for name in ("age", "wage", "day")}
    if method == "univariate":
        columns |= {"wage": {"role": "other"}, "day": {"role": "other"}, "sex": {"role": "other"}}
    columns["sex"] = columns.get("sex", {"role": "quasi"})
    columns |= {"who": {"role": "identifier"}, "ill": {"role": "confidential"}}
    more = {"t": 0.4} if "t" in list_methods()[method].needs and "t" not in promise else {}
    return {"privacy": {"k": 4, **promise, **more}, "method": {"name": method}, "columns": columns}


def blanked(release: Any, source: pa.Table) -> int:
    """Values of the source that are missing in the release, counted on the rows themselves."""
    kept = source.filter(pa.array(release.recoding.kept))
    return sum(
        release.frame.column(name).null_count - kept.column(name).null_count
        for name in ("age", "wage", "day")
        if release.policy[name].role == "quasi-identifier"
    )


def told(release: Any) -> int:
    found = [re.match(r"([\d,]+) values of", note) for note in release.plan.notes]
    return sum(int(match[1].replace(",", "")) for match in found if match)


@pytest.mark.slow
@pytest.mark.parametrize("method", first(PARTITIONERS, 3))
def test_no_table_with_missing_values_is_refused(method: str) -> None:
    for seed, promise in enumerate(PROMISES):
        released_well(seed, method, promise, "drop" if seed % 3 == 1 else "blank")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("method", PARTITIONERS)
def test_no_table_with_missing_values_is_refused_ever(method: str, promise: dict[str, Any]) -> None:
    for seed in range(2):
        for rare in ("blank", "drop"):
            released_well(seed, method, promise, rare)


def released_well(seed: int, method: str, promise: dict[str, Any], rare: str) -> None:
    source = table(seed)
    release = kinfold.anonymize(source, asked(method, rare, promise))
    assert release.verdict.holds
    assert all(finding.holds for finding in release.verdict.people)
    assert blanked(release, source) == told(release)
    left = [note for note in release.plan.public_notes if "left out" in note]
    assert bool(left) == (release.measures["suppressed"] > 0)
    if rare == "blank":
        assert release.measures["suppressed"] == 0
    tally_up("releases with rare patterns")


def test_patterns_beyond_the_exact_assignment_are_joined_too(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = kinfold.anonymize(table(5, 200), asked("mdav", "blank", {}))
    monkeypatch.setattr(missing_values, "MAX_PATTERNS", 0)
    greedy = kinfold.anonymize(table(5, 200), asked("mdav", "blank", {}))
    assert greedy.verdict.holds
    assert 0 < told(exact) <= told(greedy) == blanked(greedy, table(5, 200))


def test_a_refusal_has_its_counts() -> None:
    with pytest.raises(
        kinfold.Unreachable, match=r"patterns of missing values are shared by fewer than k = 4 .* in all"
    ):
        kinfold.anonymize(table(1), asked("mdav", "refuse", {}))


@pytest.mark.compiled
def test_records_that_lack_what_nobody_else_lacks_get_company() -> None:
    """Nobody lacks more than they do: others come to them, as few as k wants."""
    wage = [None, *range(100)]
    source = pa.table({"age": list(range(101)), "wage": wage})
    number = {"role": "quasi", "missing": "separate"}
    policy = {"privacy": {"k": 3}, "columns": {"age": {"role": "quasi"}, "wage": number}}
    release = kinfold.anonymize(source, policy)
    assert release.frame.column("wage").null_count == 3
    assert "2 values of 2 records were blanked" in release.plan.public_notes[0]


def test_too_few_records_even_together_are_said() -> None:
    source = pa.table({"age": [1, 2, None, None, 3, None], "wage": [None, 1, 2, None, None, 3]})
    number = {"role": "quasi", "type": "continuous", "missing": "separate", "missing_rare": "drop"}
    policy = {"privacy": {"k": 5}, "columns": {"age": number, "wage": number}}
    with pytest.raises(kinfold.Unreachable, match="k is 5, but only 1 of 6 records lack the same values"):
        kinfold.anonymize(source, policy)


@pytest.mark.compiled
def test_columns_may_answer_differently() -> None:
    """Who lacks what may not be blanked is left out; nobody else loses that value."""
    source = pa.table({"age": [None, *range(40)], "wage": [*range(39), None, None]})
    columns = {
        "age": {"role": "quasi", "missing": "separate", "missing_rare": "drop"},
        "wage": {"role": "quasi", "missing": "separate"},
    }
    release = kinfold.anonymize(source, {"privacy": {"k": 3}, "columns": columns})
    assert release.measures["suppressed"] == 1
    assert release.frame.column("age").null_count == 0
    assert release.frame.column("wage").null_count == 3


def test_both_pages_and_the_console_say_what_was_given_up(tmp_path: Path) -> None:
    release = kinfold.anonymize(table(1), asked("mdav", "blank", {}))
    release.save(tmp_path / "out")
    sentence = release.plan.public_notes[0].replace("'", "&#39;")
    for page in ("public", "internal"):
        assert sentence in (tmp_path / "out" / page / "report.html").read_text()


def test_a_value_given_up_is_a_loss() -> None:
    """A blanked value of a generalized column says no more than `*` does."""
    source = pa.table({"age": [None, *range(40)], "wage": [1] * 41})
    number = {"role": "quasi", "missing": "separate", "average": "generalize"}
    policy = {"privacy": {"k": 3}, "method": {"name": "mdav"}, "columns": {"age": number, "wage": {"role": "other"}}}
    release = kinfold.anonymize(source, policy)
    measured = kinfold.measure(source, release.frame, policy)
    nothing = kinfold.measure(source, source, policy)
    assert measured["loss"]["granularity"] < nothing["loss"]["granularity"] == 1
    starred = pa.table({"age": ["*" if v is None else v for v in release.frame.column("age").to_pylist()]})
    hidden = kinfold.measure(source.select(["age"]), starred, {**policy, "columns": {"age": number}})
    assert hidden["loss"]["granularity"] <= measured["loss"]["granularity"]
