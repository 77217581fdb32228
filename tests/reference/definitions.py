"""The models by their definitions: rows as tuples, exact fractions, no shortcut."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction

Value = Hashable
Held = Counter[Value]


def classes(keys: Sequence[Hashable], values: Sequence[Value]) -> list[Held]:
    """Return how often each class of equal keys holds each value."""
    found: dict[Hashable, Held] = {}
    for key, value in zip(keys, values, strict=True):
        found.setdefault(key, Counter())[value] += 1
    return list(found.values())


def entropy(held: Held) -> float:
    n = held.total()
    return math.exp(-math.fsum(c / n * math.log(c / n) for c in held.values()))


def recursive(held: Held, c: float) -> int:
    """The largest l with r₁ < c (r_l + … + r_m); 0 if there is none."""
    counts = sorted(held.values(), reverse=True)
    reached = [l for l in range(1, len(counts) + 1) if counts[0] < Fraction(repr(c)) * sum(counts[l - 1 :])]
    return max(reached, default=0)


def alpha(held: Held) -> Fraction:
    return Fraction(max(held.values()), held.total())


def gain(held: Held, whole: Held, *, enhanced: bool = False) -> float:
    """The largest (q - p) / p of a value; infinite if one is above its -ln p and that counts."""
    gains = {v: _share(held, v) / _share(whole, v) - 1 for v in held}
    beyond = enhanced and any(gains[v] > -math.log(_share(whole, v)) for v in held)
    return math.inf if beyond else float(max(gains.values()))


def disclosure(held: Held, whole: Held) -> float:
    """The largest |log2(q / p)| of a value of the table; infinite if the class lacks it."""
    return max(abs(math.log2(_share(held, v) / _share(whole, v))) if held[v] else math.inf for v in whole if whole[v])


def k_map_size(n: int, people: int, k: int, alpha: float) -> int:
    """The least k' with P(X ≥ k' | X > 0) ≤ alpha, X Poisson with the mean n k / N; at most k."""
    mean = n * k / people
    chances = [math.exp(-mean) * mean**x / math.factorial(x) for x in range(k)]
    limit = alpha * (1 - chances[0])
    return next((least for least in range(1, k) if 1 - math.fsum(chances[:least]) <= limit), k)


def individual_risk(f: int, weight: int) -> float:
    """The mean of 1 / F, with F negative binomial: f successes of probability f / weight."""
    p = Fraction(f, weight)
    if p == 1:
        return 1 / f
    terms, chance, people = [], float(p) ** f, f
    while people < 2 * weight or chance > 1e-18:
        terms.append(chance / people)
        chance *= people / (people - f + 1) * float(1 - p)
        people += 1
    return math.fsum(terms)


def zayatz(sizes: Sequence[int], people: int) -> float:
    """The sample uniques that are unique among all people, by Bayes' rule, scaled up to the population."""
    n, numbers = sum(sizes), Counter(sizes)
    one_drawn = {size: size * Fraction(math.comb(people - size, n - 1), math.comb(people, n)) for size in numbers}
    total = sum((number * one_drawn[size] for size, number in numbers.items()), Fraction(0))
    return float(numbers[1] * (numbers[1] * one_drawn[1] / total) * Fraction(people, n)) if numbers[1] else 0.0


def equal_emd(held: Held, whole: Held) -> Fraction:
    """Half the sum of the differences between the shares of each value."""
    return sum((abs(_share(held, v) - _share(whole, v)) for v in whole), Fraction(0)) / 2


def ordered_emd(held: Held, whole: Held, order: Sequence[Value]) -> Fraction:
    """The sum of the differences between the shares up to each value of the table, over m - 1."""
    known = [value for value in order if whole[value]]
    gap, moved = Fraction(0), Fraction(0)
    for value in known:
        gap += _share(held, value) - _share(whole, value)
        moved += abs(gap)
    return moved / (len(known) - 1) if len(known) > 1 else Fraction(0)


def farthest(found: Iterable[Held], measured: Callable[[Held], float | Fraction]) -> float:
    return float(max(map(measured, found)))


def _share(held: Held, value: Value) -> Fraction:
    return Fraction(held[value], held.total())


def size(held: Held) -> int:
    return held.total()
