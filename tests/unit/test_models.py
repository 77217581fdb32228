"""The models: what they refuse, the edges of what they answer, and their limits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kinfold.errors import DataError, PolicyError
from kinfold.hierarchies import Hierarchy
from kinfold.models import AlphaK, Finding, KAnonymity, LDiversity, PSensitive, TCloseness
from kinfold.models import t_closeness as emd
from kinfold.models.diversity import count_distinct, effective_values
from kinfold.models.model import ClassCriterion
from kinfold.tables.tally import Spread, Tally, encode_values, tally_labels

TREE = Hierarchy.from_rows([("flu", "lungs"), ("cold", "lungs"), ("ulcer", "stomach")])


@pytest.mark.parametrize(
    "make",
    [
        lambda: TCloseness(0.0, "x"),
        lambda: TCloseness(1.01, "x"),
        lambda: TCloseness(float("nan"), "x"),
        lambda: TCloseness(0.2, "x", "euclid"),
        lambda: LDiversity(0, "x"),
        lambda: LDiversity(2.5, "x"),
        lambda: LDiversity(float("nan"), "x", "entropy"),
        lambda: LDiversity(2, "x", "some"),
        lambda: LDiversity(2, "x", "recursive", 0.0),
        lambda: PSensitive(0, "x"),
        lambda: PSensitive(1.5, "x"),
        lambda: AlphaK(0.0, "x"),
        lambda: AlphaK(1.5, "x"),
    ],
)
def test_a_model_that_means_nothing_is_a_policy_error(make):
    with pytest.raises(PolicyError):
        make()


@pytest.mark.parametrize(
    "model",
    [
        KAnonymity(2),
        TCloseness(0.2, "x"),
        TCloseness(0.2, "x", "equal"),
        LDiversity(2, "x"),
        LDiversity(2, "x", "entropy"),
        LDiversity(2, "x", "recursive"),
        PSensitive(2, "x"),
        AlphaK(0.5, "x"),
    ],
)
def test_a_table_without_records_promises_nothing(model):
    none = np.zeros(0, np.int64)
    finding = model.check(Tally({}, none, {"x": Spread(none, none, none, np.zeros(0))}))
    assert not finding.holds
    assert (finding.failing, finding.found) == (0, 0)


def test_a_constant_column_is_close_everywhere_and_diverse_nowhere():
    tally = tally_labels(np.array([0, 0, 1]), {"x": [7, 7, 7]})
    assert TCloseness(0.01, "x").check(tally).found == 0
    assert TCloseness(0.01, "x", "equal").check(tally).found == 0
    assert LDiversity(2, "x").check(tally).failing == 2


def test_null_is_one_more_value_and_sorts_first():
    tally = tally_labels(np.array([0, 0, 1, 1]), {"x": np.array([np.nan, np.nan, 1.0, 2.0])})
    # null, 1, 2: the first class has to move half its weight by 1.5 steps of two on average
    assert TCloseness(0.1, "x").distances(tally).tolist() == [0.375, 0.375]
    assert LDiversity(2, "x").levels(tally).tolist() == [1.0, 2.0]


def test_null_stands_under_nothing_but_the_top_of_a_hierarchy():
    tally = tally_labels(np.array([0, 1]), {"x": np.array([None, "flu"], object)})
    assert TCloseness(0.1, "x", "hierarchical", TREE).distances(tally).tolist() == [0.5, 0.5]


def test_a_value_outside_the_hierarchy_is_counted_and_not_named():
    tally = tally_labels(np.array([0, 1]), {"x": np.array(["mumps", "flu"])})
    with pytest.raises(DataError, match="lacks 1 of its 2 values") as caught:
        TCloseness(0.1, "x", "hierarchical", TREE).check(tally)
    assert "mumps" not in caught.value.text()


def test_values_that_no_record_holds_any_more_do_not_lengthen_the_way():
    tally = tally_labels(np.array([0, 0, 1, 1, 2]), {"x": [1, 3, 1, 3, 2]}).drop(np.array([False, False, True]))
    assert TCloseness(0.1, "x").distances(tally).tolist() == [0.0, 0.0]
    whole = tally_labels(np.array([0, 1]), {"x": [1, 3]})
    assert TCloseness(0.1, "x").distances(whole).tolist() == [0.5, 0.5]


def test_classes_and_values_may_come_in_any_order():
    tally = tally_labels(np.array([0, 0, 1, 1]), {"x": [1, 2, 3, 4]})
    spread = tally.spreads["x"]
    back = Spread(spread.group[::-1], spread.code[::-1], spread.count[::-1], spread.values)
    for work in (emd.ordered_work, emd.equal_work):
        assert work(back, tally.sizes).distances().tolist() == work(spread, tally.sizes).distances().tolist()


def test_whole_numbers_and_floats_agree(monkeypatch):
    chance = np.random.default_rng(0)
    tally = tally_labels(chance.integers(0, 9, 500), {"x": chance.integers(0, 90, 500)})
    exact = [work(tally.spreads["x"], tally.sizes).distances() for work in (emd.ordered_work, emd.equal_work)]
    monkeypatch.setattr(emd, "MAX_EXACT_SUM", 0)
    rounded = [work(tally.spreads["x"], tally.sizes).distances() for work in (emd.ordered_work, emd.equal_work)]
    assert np.allclose(exact, rounded, rtol=1e-12)


def test_a_class_at_the_limit_is_at_the_limit(monkeypatch):
    tally = tally_labels(np.array([0, 0, 1, 1]), {"x": [1, 2, 3, 4]})
    assert [TCloseness(1 / 3 - less, "x").check(tally).holds for less in (0, 1e-13, 1e-9)] == [True, False, False]
    with monkeypatch.context() as floats:
        floats.setattr(emd, "MAX_EXACT_SUM", 0)
        assert [TCloseness(1 / 3 - less, "x").check(tally).holds for less in (1e-13, 1e-9)] == [True, False]
    tenth = tally_labels(np.repeat([0, 1], 10), {"x": ["a"] * 6 + ["b"] * 4 + ["a"] * 4 + ["b"] * 6})
    assert TCloseness(0.1, "x", "equal").check(tenth).holds  # a tenth is 0.1, whatever binary makes of it


@pytest.mark.parametrize("k", [0, -1, 2.5, "5", True, None])
def test_k_is_a_whole_number_from_one_up(k):
    with pytest.raises(PolicyError, match="k is"):
        KAnonymity(k)


# The models at their limits: one record, one value or one share more or less decides, and nothing else does.


def tally_of(*classes: str) -> Tally:
    """A tally of classes, each written as the values of its records."""
    labels = np.repeat(np.arange(len(classes)), [len(values) for values in classes])
    return tally_labels(labels, {"v": list("".join(classes))})


@pytest.mark.parametrize(("k", "failing"), [(2, 0), (3, 0), (4, 1), (5, 1), (6, 2)])
def test_a_class_of_k_records_keeps_k_and_one_of_fewer_does_not(k: int, failing: int) -> None:
    found = KAnonymity(k).check(tally_of("aab", "abcde"))
    assert (found.found, found.failing, found.holds) == (3, failing, failing == 0)
    assert KAnonymity(k).failing(tally_of("aab", "abcde")).sum() == failing


def test_which_models_absorb_and_which_only_grow() -> None:
    hierarchy = Hierarchy.from_rows([("a", "x"), ("b", "x")])
    assert [m.absorbing for m in (KAnonymity(2), PSensitive(2, "v"), LDiversity(2, "v"))] == [True] * 3
    others = (AlphaK(0.5, "v"), TCloseness(0.5, "v"), LDiversity(2, "v", "entropy"), LDiversity(2, "v", "recursive"))
    assert [m.absorbing for m in others] == [False] * 4
    assert all(m.monotone for m in (KAnonymity(2), PSensitive(2, "v"), *others))
    assert TCloseness(0.5, "v", "hierarchical", hierarchy).monotone


def test_a_finding_says_nothing_that_was_not_found() -> None:
    finding = Finding("2-anonymity", "k", None, 2, 2, holds=True)
    assert (finding.failing, finding.smallest) == (0, 0)


def test_the_limits_of_what_may_be_asked_belong_to_it() -> None:
    assert (TCloseness(1, "v").t, AlphaK(1, "v").alpha, LDiversity(1, "v").l, PSensitive(1, "v").p) == (1, 1, 1, 1)
    assert LDiversity(2, "v", "recursive").c == 1.0
    for l, c in ((np.inf, 1.0), (0.5, 1.0), (2, np.inf), (2, 0.0)):
        with pytest.raises(PolicyError):
            LDiversity(l, "v", "entropy", c)


@pytest.mark.parametrize(("kind", "l", "text", "found"), [("distinct", 2, "2", 2), ("recursive", 2, "(1,2)", 2)])
def test_words_and_numbers_of_diversity(kind: str, l: int, text: str, found: int) -> None:
    finding = LDiversity(l, "v", kind).check(tally_of("aabbc", "ababc"))  # type: ignore[arg-type]
    assert finding.promise == f"{kind} {text}-diversity of v"
    assert isinstance(finding.found, int)
    assert finding.found >= found
    assert finding.holds


def test_entropy_is_told_with_its_digits_and_equality_holds() -> None:
    finding = LDiversity(2, "v", "entropy").check(tally_of("aab", "abc"))
    assert finding.found == pytest.approx(3 / 4 ** (1 / 3), rel=1e-12)
    assert not finding.holds
    assert LDiversity(2, "v", "entropy").check(tally_of("ab", "aabb")).holds
    assert LDiversity(2, "v").failing(tally_of("ab", "aa")).tolist() == [False, True]


def test_a_cell_without_records_is_no_value() -> None:
    spread = Spread(np.array([0, 0]), np.array([0, 1]), np.array([2, 0]), np.array(["a", "b"], object))
    assert count_distinct(spread, 1).tolist() == [1]
    assert effective_values(spread, np.array([2])).tolist() == [1.0]


def test_a_class_without_records_has_no_effective_value() -> None:
    spread = Spread(np.array([0]), np.array([0]), np.array([2]), np.array(["a"], object))
    assert effective_values(spread, np.array([2, 0])).tolist() == [1.0, 0.0]


def test_recursive_diversity_is_strict() -> None:
    assert not LDiversity(2, "v", "recursive", 1.0).check(tally_of("aabb")).holds  # 2 < 1·2 does not hold
    assert LDiversity(2, "v", "recursive", 1.01).check(tally_of("aabb")).holds
    assert LDiversity(1, "v", "recursive", 1.01).check(tally_of("aaa")).holds


def test_a_share_at_alpha_holds_and_one_above_does_not() -> None:
    assert AlphaK(0.5, "v").check(tally_of("ab", "aabb")).holds
    assert AlphaK(0.5, "v").failing(tally_of("ab", "aab")).tolist() == [False, True]


def test_a_distance_at_t_holds_and_one_above_does_not() -> None:
    tally = tally_of("aa", "ab")
    assert TCloseness(0.25, "v", "equal").check(tally).holds
    assert not TCloseness(0.2499999, "v", "equal").check(tally).holds
    assert TCloseness(0.25, "v", "equal").failing(tally).tolist() == [False, False]
    assert TCloseness(0.2499999, "v", "equal").failing(tally).tolist() == [True, True]


def test_a_search_is_told_the_distance_that_is_judged_by() -> None:
    hierarchy, values = Hierarchy.from_rows([("a", "x"), ("b", "x"), ("c", "y")]), np.array(["a", "b", "c"], object)
    told = [
        TCloseness(0.2, "v").criterion(values),
        TCloseness(0.2, "v", "equal").criterion(values),
        TCloseness(0.2, "v", "hierarchical", hierarchy).criterion(values),
    ]
    assert all(isinstance(criterion, ClassCriterion) for criterion in told)
    assert [criterion.statistic for criterion in told] == ["ordered", "nested", "nested"]
    assert told[1].paths is not None
    assert told[2].paths is not None
    assert (told[1].paths.shape, told[2].paths.shape) == ((3, 1), (3, 2))


def test_a_hierarchy_where_none_belongs_and_none_where_one_does() -> None:
    with pytest.raises(PolicyError, match="'v' has no hierarchy"):
        TCloseness(0.2, "v", "hierarchical")
    with pytest.raises(PolicyError, match="'v' has a hierarchy"):
        TCloseness(0.2, "v", "equal", Hierarchy.from_rows([("a", "x"), ("b", "x")]))


# Where sums of whole numbers end, and what is rounded


def heavy(*sizes: int) -> tuple[Spread, np.ndarray]:
    """One class for each size, and a value of its own for each: sums as large as one likes without the records."""
    places = np.arange(len(sizes))
    return Spread(places, places, np.array(sizes), places), np.array(sizes)


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [
        ((2**29, 2**29), "i"),  # 2 values · 2^30 records · 2^29 in the largest class = 2^60
        ((2**30, 2**30), "f"),  # 2 · 2^31 · 2^30 = 2^62: no room for one more addition
        ((2**30 - 1, 2**30 - 1), "i"),
    ],
)
def test_over_an_order_sums_are_whole_as_long_as_they_fit(sizes: tuple[int, int], kind: str) -> None:
    assert emd.ordered_work(*heavy(*sizes)).work.dtype.kind == kind
    assert emd.ordered_work(*heavy(*sizes)).distances().tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("sizes", "height", "kind"),
    [
        ((2**30, 2**29), 1, "i"),  # 2 levels' worth · 1.5 · 2^30 · 2^30 = 1.5 · 2^61
        ((2**30, 2**30), 1, "f"),  # 2 · 2^31 · 2^30 = 2^62
        ((2**30 - 1, 2**30 - 1), 1, "i"),
        ((2**29, 2**29), 4, "f"),  # 8 · 2^30 · 2^29 = 2^62
        ((2**29, 2**29), 3, "i"),
        ((2**30 - 2**27, 2**30 - 2**27), 1, "i"),  # thrice instead of twice would not fit
    ],
)
def test_over_levels_sums_are_whole_as_long_as_they_fit(sizes: tuple[int, int], height: int, kind: str) -> None:
    paths = np.repeat(np.arange(2)[:, None], height, axis=1)
    work = emd.nested_work(*heavy(*sizes), paths)
    assert work.work.dtype.kind == kind
    assert work.distances().tolist() == pytest.approx([1 - size / sum(sizes) for size in sizes])


def test_values_that_nobody_holds_do_not_count() -> None:
    spread = Spread(np.array([0, 1]), np.array([0, 1]), np.array([1, 1]), np.arange(3))
    assert emd.ordered_work(spread, np.array([1, 1])).distances().tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("moved", "unit"), [(21461764540187894, 172684251209479402), (202306337559954800, 280401395683725124)]
)
def test_a_quotient_that_doubles_round_up_is_looked_at_exactly(moved: int, unit: int) -> None:
    work = emd.ClassDistances(np.array([moved]), np.array([1]), unit)
    limit = float(Fraction(moved, unit))
    assert work.distances()[0] > limit  # rounded three times instead of once
    assert work.exceeds(limit).tolist() == [False]
    assert work.exceeds(np.nextafter(limit, 0.0)).tolist() == [True]


def test_a_class_without_records_is_not_far_from_anything() -> None:
    work = emd.ClassDistances(np.array([0, 1]), np.array([0, 1]), 1)
    assert work.distances().tolist() == [0.0, 1.0]
    assert work.exceeds(0.0).tolist() == [False, True]


def test_what_is_forgiven_of_floats_is_forgiven_whole() -> None:
    work = emd.ClassDistances(np.array([0.5 + emd.FLOAT_TOLERANCE, 0.5 + 3 * emd.FLOAT_TOLERANCE]), np.array([1, 1]), 1)
    assert work.exceeds(0.5).tolist() == [False, True]


def test_what_is_forgiven_of_logarithms_is_forgiven_whole() -> None:
    hair = 1 / (1 - 1e-12)  # less the tolerance this is one again
    alike = tally_of("aaa")
    assert LDiversity(hair, "v", "entropy").check(alike).holds
    assert not LDiversity(hair, "v", "entropy").failing(alike).any()
    assert LDiversity(1, "v", "recursive", hair).check(tally_of("a")).found == 0  # equality is a miss


@pytest.mark.parametrize("column", [["b", "a", "", "b", "ä"], ["b", None, "a"], [None], [], ["a\0", "a", "A"]])
def test_texts_are_numbered_in_order_null_first(column):
    values, codes = encode_values(np.array(column, object))
    distinct = sorted({text for text in column if text is not None})
    expected = [*([None] if None in column else []), *distinct]
    assert values.dtype == object
    assert values.tolist() == expected
    assert codes.tolist() == [expected.index(text) for text in column]
