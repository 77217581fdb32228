"""The models at their limits: one record, one value or one share more or less decides, and nothing else does."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kinfold.errors import PolicyError
from kinfold.hierarchy import Hierarchy
from kinfold.models import AlphaK, Finding, KAnonymity, LDiversity, PSensitive, TCloseness, emd
from kinfold.models.class_criterion import ClassCriterion
from kinfold.models.l_diversity import distinct, effective
from kinfold.rows.tally import Spread, Tally, of_labels


def tally_of(*classes: str) -> Tally:
    """A tally of classes, each written as the values of its records."""
    labels = np.repeat(np.arange(len(classes)), [len(values) for values in classes])
    return of_labels(labels, {"v": list("".join(classes))})


@pytest.mark.parametrize(("k", "failing"), [(2, 0), (3, 0), (4, 1), (5, 1), (6, 2)])
def test_a_class_of_k_records_keeps_k_and_one_of_fewer_does_not(k: int, failing: int) -> None:
    found = KAnonymity(k).check(tally_of("aab", "abcde"))
    assert (found.found, found.failing, found.holds) == (3, failing, failing == 0)
    assert KAnonymity(k).failing(tally_of("aab", "abcde")).sum() == failing


def test_which_models_absorb_and_which_only_grow() -> None:
    hierarchy = Hierarchy.of([("a", "x"), ("b", "x")])
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
    assert distinct(spread, 1).tolist() == [1]
    assert effective(spread, np.array([2])).tolist() == [1.0]


def test_a_class_without_records_has_no_effective_value() -> None:
    spread = Spread(np.array([0]), np.array([0]), np.array([2]), np.array(["a"], object))
    assert effective(spread, np.array([2, 0])).tolist() == [1.0, 0.0]


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
    hierarchy, values = Hierarchy.of([("a", "x"), ("b", "x"), ("c", "y")]), np.array(["a", "b", "c"], object)
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
        TCloseness(0.2, "v", "equal", Hierarchy.of([("a", "x"), ("b", "x")]))


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
    assert emd.ordered_work(*heavy(*sizes)).moved.dtype.kind == kind
    assert emd.ordered(*heavy(*sizes)).tolist() == [0.5, 0.5]


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
    assert work.moved.dtype.kind == kind
    assert work.shares().tolist() == pytest.approx([1 - size / sum(sizes) for size in sizes])


def test_values_that_nobody_holds_do_not_count() -> None:
    spread = Spread(np.array([0, 1]), np.array([0, 1]), np.array([1, 1]), np.arange(3))
    assert emd.ordered(spread, np.array([1, 1])).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("moved", "unit"), [(21461764540187894, 172684251209479402), (202306337559954800, 280401395683725124)]
)
def test_a_quotient_that_doubles_round_up_is_looked_at_exactly(moved: int, unit: int) -> None:
    work = emd.ClassDistances(np.array([moved]), np.array([1]), unit)
    limit = float(Fraction(moved, unit))
    assert work.shares()[0] > limit  # rounded three times instead of once
    assert work.above(limit).tolist() == [False]
    assert work.above(np.nextafter(limit, 0.0)).tolist() == [True]


def test_a_class_without_records_is_not_far_from_anything() -> None:
    work = emd.ClassDistances(np.array([0, 1]), np.array([0, 1]), 1)
    assert work.shares().tolist() == [0.0, 1.0]
    assert work.above(0.0).tolist() == [False, True]


def test_what_is_forgiven_of_floats_is_forgiven_whole() -> None:
    work = emd.ClassDistances(np.array([0.5 + emd.ROUNDING, 0.5 + 3 * emd.ROUNDING]), np.array([1, 1]), 1)
    assert work.above(0.5).tolist() == [False, True]


def test_what_is_forgiven_of_logarithms_is_forgiven_whole() -> None:
    hair = 1 / (1 - 1e-12)  # less the tolerance this is one again
    alike = tally_of("aaa")
    assert LDiversity(hair, "v", "entropy").check(alike).holds
    assert not LDiversity(hair, "v", "entropy").failing(alike).any()
    assert LDiversity(1, "v", "recursive", hair).check(tally_of("a")).found == 0  # equality is a miss
