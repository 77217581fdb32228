"""Every promise of a policy on some rows, by its definition: rows as plain values, exact fractions, no shortcut.

A class is all rows that share their quasi-identifiers. With `joint` a promise about a column is asked of the rows that
share the other confidential values as well. With `unit` it is asked again with each person counted once: as a member of
the class, and once for each value that they hold there; with both, once more within the joint classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from reference import definitions

Row = Mapping[str, Hashable]
PEOPLE = ", each person counted once"
HOUSEHOLDS = ", each household counted once"
KNOWING = f"{PEOPLE}, given the other confidential columns"
WEIGHTS = ", each record counted by its weight"


def found(rows: Sequence[Row], quasi: Sequence[str], kinds: Mapping[str, str], privacy: Mapping[str, Any]) -> Any:
    """Return what is found for each promise, by its model, its column and what is counted; `kinds` are distances."""
    unit, joint = privacy.get("unit"), privacy.get("joint", False) and len(kinds) > 1
    known = {name: [*quasi, *(other for other in kinds if joint and other != name)] for name in kinds}
    answers: dict[Any, Any] = {("k", None, ""): min(map(definitions.size, classes(rows, quasi, [])))}
    if "combinations" in privacy:
        answers = dict(few(rows, quasi, [*kinds], privacy["combinations"]))
    if "size" in privacy.get("population", {}):
        answers["estimated_kmap", None, ""] = min(map(definitions.size, classes(rows, quasi, [])))
    if unit:
        answers["k", None, PEOPLE] = min(map(definitions.size, classes(rows, quasi, [unit], once=True)))
    counted = {"": classes(rows, quasi, [])} | ({PEOPLE: classes(rows, quasi, [unit], once=True)} if unit else {})
    for words, held in counted.items():
        for model, value in risks([each.total() for each in held], privacy):
            answers[model, None, words] = value
    if "individual_risk" in privacy:
        answers["individual_risk", None, ""] = max(
            _find_risk([row["w"] for row in each]) for each in members(rows, quasi)
        )
    if "household_k" in privacy:
        homes = classes(rows, quasi, [privacy["household"]], once=True)
        answers["k", None, HOUSEHOLDS] = min(map(definitions.size, homes))
    for name, kind in kinds.items():
        counts = {"": (known[name], False)} | ({PEOPLE: (list(quasi), True)} if unit else {})
        counts |= {KNOWING: (known[name], True)} if unit and joint else {}
        for words, (by, once) in counts.items():
            held = [_values(each) for each in classes(rows, by, [unit, name] if once else [name], once=once)]
            for model, value in figures(held, kind, privacy):
                answers[model, name, words] = value
        if privacy.get("weighted"):
            for model, value in figures([_weigh(each, name) for each in members(rows, quasi)], kind, privacy):
                answers[model, name, WEIGHTS] = value
    return answers


def members(rows: Sequence[Row], quasi: Sequence[str]) -> list[list[Row]]:
    """Return the rows of each class."""
    keys = [tuple(row[name] for name in quasi) for row in rows]
    return [[row for row, other in zip(rows, keys, strict=True) if other == key] for key in dict.fromkeys(keys)]


def _weigh(rows: Sequence[Row], name: str) -> Counter[Any]:
    """Count each row by its weight, which has one decimal."""
    held: Counter[Any] = Counter()
    for row in rows:
        held[row[name]] += round(10 * row["w"])  # type: ignore[arg-type]
    return held


def _find_risk(weights: Sequence[float]) -> float:
    """Return the mean of 1 / F, F people of whom each is in the sample with the chance p = f / (sum of the weights)."""
    f, p = len(weights), len(weights) / sum(weights)
    chance, total, people = p**f, 0.0, f
    while chance > 1e-18 or people < sum(weights):
        total += chance / people
        chance *= (1 - p) * people / (people + 1 - f)
        people += 1
    return total


def few(rows: Sequence[Row], quasi: Sequence[str], confidential: Sequence[str], asked: Any) -> Iterator[Any]:
    """Yield the rarest tuple of values of few quasi-identifiers, and the surest one for each confidential column."""
    sets = [names for count in range(1, asked["size"] + 1) for names in combinations(quasi, count)]
    held = [each for names in sets for each in classes(rows, names, [])]
    yield ("combinations", None, ""), min(each.total() for each in held)
    for name in confidential if "confidence" in asked else ():
        shares = [definitions.alpha(_values(each)) for names in sets for each in classes(rows, names, [name])]
        yield ("confidence", name, ""), float(max(shares))


def risks(sizes: Sequence[int], privacy: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the promises about the risk of all records that are asked for, by the sizes of the classes."""
    if "average_risk" in privacy:
        yield "average_risk", sum(size * (1 / size) for size in sizes) / sum(sizes)
    if "risk_share" in privacy:
        at_risk = [size for size in sizes if 1 / size > privacy["risk_share"]["above"]]
        yield "risk_share", sum(at_risk) / sum(sizes)


def classes(rows: Sequence[Row], by: Sequence[str], of: Sequence[Any], *, once: bool = False) -> list[Counter[Any]]:
    """Count what the rows of each class hold in some columns, or which of that they hold at all."""
    keys = [tuple(row[name] for name in by) for row in rows]
    held = definitions.classes(keys, [tuple(row[name] for name in of) for row in rows])
    return [Counter({*each}) for each in held] if once else held


def _values(held: Counter[Any]) -> Counter[Any]:
    """Count values, of which each stands last."""
    counted: Counter[Any] = Counter()
    for values, count in held.items():
        counted[values[-1]] += count
    return counted


def figures(held: list[Counter[Any]], kind: str, privacy: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield each model that is asked for with what the worst class has."""
    whole = sum(held, Counter())
    order = sorted(whole, key=lambda value: (value is not None, value))
    diversity: dict[str, Callable[[Counter[Any]], float]] = {
        "distinct": len,
        "entropy": definitions.entropy,
        "recursive": lambda each: definitions.recursive(each, privacy["c"]),
    }
    if "t" in privacy:
        ordered = kind == "ordered"
        yield (
            "t",
            definitions.farthest(
                held,
                lambda each: (
                    definitions.ordered_emd(each, whole, order) if ordered else definitions.equal_emd(each, whole)
                ),
            ),
        )
    if "l" in privacy:
        yield "l", min(map(diversity[privacy.get("l_kind", "distinct")], held))
    if "p" in privacy:
        yield "p", min(map(len, held))
    if "alpha" in privacy:
        yield "alpha", definitions.farthest(held, definitions.alpha)
    if "beta" in privacy:
        enhanced = privacy.get("beta_kind") == "enhanced"
        gain = max(definitions.gain(each, whole, enhanced=enhanced) for each in held)
        yield "beta", max(gain, 0.0)
    if "delta" in privacy:
        yield "delta", max(definitions.disclosure(each, whole) for each in held)
