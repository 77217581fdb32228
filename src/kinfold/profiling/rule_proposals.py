"""Rule proposals: edit rules that hold in almost all sampled records, to switch on in the policy.

order    one date is never after another: discharge >= admission
sum      a number or date is the sum of two others: discharge = admission + stay, gross = net + tax
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, permutations

import numpy as np

from kinfold.profiling.dependencies import Numbers, RowSample
from kinfold.tables.schema import Kind

MIN_SHARE = 0.99  # of the records with all values in which a rule holds
MIN_RECORDS = 20
MIN_VARIED_SHARE = 0.2  # of records in which a term of a sum is not zero
MAX_SUMMED = 20  # numbers that are tested for sums
MAX_RULES = 6
WORD = re.compile(r"[^\W\d]\w*")
KEYWORDS = frozenset(("and", "or", "not", "implies", "in", "is", "missing", "true", "false"))


@dataclass(frozen=True)
class ProposedRule:
    """A rule as the policy writes it, and the share of the records in which it holds."""

    check: str
    share: float


def propose_rules(sample: RowSample, kinds: Mapping[str, Kind]) -> tuple[ProposedRule, ...]:
    """Return rules between columns of these types, sums first."""
    numbers = {name: sample.numbers[name][sample.compared] for name in kinds if name in sample.numbers}
    return tuple(islice((*_find_sums(numbers, kinds), *_find_orders(numbers, kinds)), MAX_RULES))


def _find_orders(numbers: Mapping[str, Numbers], kinds: Mapping[str, Kind]) -> Iterator[ProposedRule]:
    for one, other in permutations([name for name in numbers if kinds[name] is Kind.DATE], 2):
        kept = np.isfinite(numbers[one]) & np.isfinite(numbers[other])
        if kept.sum() < MIN_RECORDS or (numbers[one][kept] == numbers[other][kept]).all():
            continue
        share = float((numbers[one] <= numbers[other])[kept].mean())
        if share >= MIN_SHARE:
            yield ProposedRule(f"{_quote(other)} >= {_quote(one)}", share)


def _find_sums(numbers: Mapping[str, Numbers], kinds: Mapping[str, Kind]) -> Iterator[ProposedRule]:
    names = [name for name in numbers if np.isfinite(numbers[name]).any()][:MAX_SUMMED]
    for one, other in combinations(names, 2):
        total = numbers[one] + numbers[other]
        for name in (name for name in names if name not in (one, other)):
            dates = [kinds[each] is Kind.DATE for each in (name, one, other)]
            if sum(dates) not in (0, 2) or not (dates[0] or not any(dates)):
                continue  # a date is a date and days
            share = _measure_equal(numbers[name], total, (numbers[one], numbers[other]))
            if share >= MIN_SHARE:
                first, second = (other, one) if dates[2] else (one, other)
                yield ProposedRule(f"{_quote(name)} = {_quote(first)} + {_quote(second)}", share)


def _measure_equal(values: Numbers, total: Numbers, terms: Sequence[Numbers]) -> float:
    kept = np.isfinite(values) & np.isfinite(total)
    if kept.sum() < MIN_RECORDS or min((term[kept] != 0).mean() for term in terms) < MIN_VARIED_SHARE:
        return 0.0
    return float(np.isclose(values[kept], total[kept], rtol=1e-9, atol=1e-6).mean())


def _quote(name: str) -> str:
    """Return a name as a rule writes it.

    >>> _quote("stay"), _quote("length of stay"), _quote("in")
    ('stay', '`length of stay`', '`in`')
    """
    plain = WORD.fullmatch(name) and name.lower() not in KEYWORDS
    return name if plain else f"`{name.replace('`', '``')}`"
