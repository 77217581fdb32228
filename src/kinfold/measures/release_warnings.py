"""Warnings about a release: what can go wrong although all promises hold.

    k alone         a class with one confidential value reveals it for all its members
    dominance       the average of a class reveals its largest record, see `formulas.attribute_disclosure`
    singling out    a column that is released unchanged distinguishes records inside their class

Plausibility counts what the release has and the original has not:

    outside         released numbers below the smallest or above the largest original number
    combinations    released records with two categories that never occur together in the original, such as a pregnant
                    man. One column is a quasi-identifier released as categories; the other is one too, or a column with
                    few categories that is released unchanged

Labels of several values are left out. Null is one more category. Cost: one pass over the records for each pair of
columns.

Structure lists the relations between columns that the release breaks. Relations are found on a sample of the original
(`tables.relations`) and counted on both tables, or on the sample of a large table. Only relations of a column that was
recoded are looked for: others stay as they are. A label or a range in the release is not judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import plural
from kinfold.measures.formulas.arrays import Floats, Ints
from kinfold.measures.formulas.attribute_disclosure import ClassOrder, are_amounts, find_revealing_classes
from kinfold.measures.pairing import Pair, PairedColumn, TablePair, TupleRows
from kinfold.policy.binding import BoundPolicy
from kinfold.policy.encoding import CategoricalAttribute, NumericAttribute
from kinfold.policy.model import Rule
from kinfold.policy.rule_checks import count_violations
from kinfold.policy.rules import bind_rules
from kinfold.policy.terms import get_reading
from kinfold.tables.column_names import YEAR_WORDS, Hint, find_hints, mentions
from kinfold.tables.engine import Engine
from kinfold.tables.queries import count_new_pairs, count_unique_rows, limit_sample, sample_positions
from kinfold.tables.relations import RELATION_SAMPLE_ROWS, Relation, SampledColumn, find_relations
from kinfold.tables.schema import Kind, Role, Schema

DOMINANCE_PERCENT = 75.0  # of the total of a class for one record: the (1,75) rule of Hundepool et al. 2012
P_PERCENT = 10.0  # of the p% rule: usual values are 10 to 15
MAX_COLUMNS_LISTED = 3  # in separate warnings
MAX_KEPT_CATEGORIES = 100  # of a column that is released unchanged: with more, most combinations are new by chance
MAX_PAIRED_CATEGORIES = 20_000_000  # in one array of 20 MB; columns with more are not checked
NEEDS_ALL_RECORDS = "it needs all records of the original at once, and the table is too large for that"


def check_dominance(tables: TablePair, pair: Pair) -> Iterator[str]:
    """Yield warnings of averaged amounts whose class averages reveal the largest record."""
    amounts = _select_amounts(pair)
    if tables.sample is not None:  # the classes of the whole table are counted
        counts = {name: each for name, each in tables.sample.dominant_classes.items() if name in amounts}
    elif amounts and pair.kept.any():
        classes = ClassOrder.from_classes(pair.masked)
        counts = {name: _count_revealing(classes, values) for name, values in amounts.items()}
    else:
        counts = {}
    for name, (dominated, within) in counts.items():
        if dominated:
            yield (
                f"'{name}': one record makes more than {DOMINANCE_PERCENT:g}% of the total in "
                f"{plural(dominated, 'class', 'classes')}, so that the average reveals it ((n,k) rule)"
            )
        if within:
            yield (
                f"'{name}': in {plural(within, 'class', 'classes')} the second largest record can estimate the "
                f"largest to within {P_PERCENT:g}% (p% rule)"
            )


def _count_revealing(classes: ClassOrder, values: Floats) -> tuple[int, int]:
    dominated, within = find_revealing_classes(classes, values, DOMINANCE_PERCENT, P_PERCENT)
    return int(dominated.sum()), int(within.sum())


def _select_amounts(pair: Pair) -> dict[str, Floats]:
    """Return the averaged columns that hold amounts, not ages or years, judged by their names and values."""
    amounts = {}
    for column in pair.columns:
        name, attribute = column.name, column.attribute
        averaged = column.numbers is not None and attribute.bound.kind is Kind.CONTINUOUS and not column.generalized
        if averaged and isinstance(attribute, NumericAttribute):
            age_or_year = find_hints(name) & {Hint.AGE, Hint.BIRTH} or mentions(name, YEAR_WORDS)
            if not age_or_year and are_amounts(attribute.numbers):
                amounts[name] = attribute.numbers
    return amounts


def check_k_alone(engine: Engine, released: Any, policy: BoundPolicy) -> Iterator[str]:
    """Yield a warning of each confidential column that no promise but k protects."""
    privacy, quasi = policy.request.privacy, policy.quasi
    confidence = privacy.combinations and privacy.combinations.confidence
    levels = (privacy.t, privacy.l, privacy.p, privacy.alpha, privacy.beta, privacy.delta, confidence)
    if any(level is not None for level in levels):
        return
    for column in policy.with_role(Role.CONFIDENTIAL):
        if column.request.t is None and column.request.l is None:
            tally = engine.tally(released, quasi, {column.name: get_reading(column)})
            values = np.bincount(tally.spreads[column.name].group, minlength=len(tally))
            share = tally.sizes[values == 1].sum() / max(tally.records, 1)
            yield (
                f"'{column.name}' is confidential and protected by k alone: {share:.1%} of the records are in classes "
                "with one value of it, which reveals the value of each member; set t or l"
            )


def check_linked_rows(engine: Engine, released: Any, policy: BoundPolicy) -> Iterator[str]:
    """Yield a warning if surrogates link rows of different classes: their combination can be rarer than a class."""
    for name in policy.surrogates:
        people = Counter(engine.tally(released, [name, *policy.quasi], {}).keys[name].tolist())
        linked = sum(classes > 1 for classes in people.values())
        if name == policy.request.privacy.household:
            yield (
                f"the key in '{name}' shows how many members a household has, and links the members of "
                f"{plural(linked, 'household')} who are in several classes: together they can be rarer than a class. "
                "Leave out output.surrogate if others may know several members"
            )
        elif linked:
            yield (
                f"{plural(linked, 'person has', 'people have')} rows in several classes, and their key in '{name}' "
                'links them: together they can be rarer than a class. Set method.people = "together"'
            )


def check_singling_out(tables: TablePair, quasi: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """Yield warnings of columns that are released unchanged and make records unique in their class."""
    engine, released = tables.engine, tables.released
    counts = {name: unique for name in names if (unique := count_unique_rows(engine, released, [*quasi, name]))}
    rows = engine.tally(released, quasi, {}).records if counts else 0
    if len(counts) <= MAX_COLUMNS_LISTED:
        for name, number in counts.items():
            yield f"'{name}' is released unchanged and makes {number:,} of {rows:,} records unique in their class"
        return
    worst = sorted(counts.items(), key=lambda pair: -pair[1])[:MAX_COLUMNS_LISTED]
    listed = ", ".join(f"'{name}' {number:,}" for name, number in worst)
    yield (
        f"{len(counts)} columns are released unchanged and make some of the {rows:,} records unique in their class, "
        f"most of them {listed}"
    )


@dataclass(frozen=True, eq=False)
class CategoryCodes:
    """A column of both tables as codes from 0 up, each in the row order of its table."""

    name: str
    before: Ints
    after: Ints
    codes: int

    @classmethod
    def from_column(cls, column: PairedColumn, rows: NDArray[np.intp]) -> CategoryCodes:
        """Return a column of categories; null has the last code."""
        assert isinstance(column.attribute, CategoricalAttribute)  # noqa: S101  the caller checks
        null = column.attribute.null_code
        before, after = column.before, column.after[rows]
        return cls(column.name, np.where(before < 0, null, before), np.where(after < 0, null, after), null + 1)


Plausibility: TypeAlias = tuple[dict[str, dict[str, int]], list[str]]  # counts by column or pair of columns; notes


def check_plausibility(tables: TablePair, pair: Pair, others: Sequence[str]) -> Plausibility:
    """Count what is not plausible; `others` are the categorical columns that are released unchanged."""
    coded = [c for c in pair.columns if isinstance(c.attribute, CategoricalAttribute) and not c.generalized]
    if tables.sample is not None:
        return {}, [f"plausibility: {NEEDS_ALL_RECORDS}"]
    rows = tables.rows if isinstance(tables.rows, np.ndarray) else np.arange(int(pair.kept.sum()))
    usable = [] if isinstance(tables.rows, TupleRows) else [CategoryCodes.from_column(column, rows) for column in coded]
    outside = {c.name: _count_outside(c, pair.weight) for c in pair.columns if c.compares_numbers}
    counts = {(a.name, b.name): _count_new_pairs(a, b) for a, b in combinations(usable, 2)}
    counts |= _count_new_pairs_with_kept(tables, usable, others)
    place = [*(each.name for each in usable), *others].index
    ordered = sorted(counts, key=lambda pair: (place(pair[0]), place(pair[1])))
    new = {f"{one} + {other}": counts[one, other] for one, other in ordered if counts[one, other]}
    return {"outside": outside, "combinations": new}, [*_describe_findings(outside, new)]


def _count_new_pairs_with_kept(
    tables: TablePair, own: Sequence[CategoryCodes], others: Sequence[str]
) -> dict[tuple[str, str], int]:
    """Count new pairs with columns that are released unchanged, in the engine."""
    schemas = [tables.engine.schema(frame) for frame in (tables.original, tables.released)]
    few = {
        name: max(schema[name].distinct for schema in schemas) + 1
        for name in others
        if all(name in schema and schema[name].distinct <= MAX_KEPT_CATEGORIES for schema in schemas)
    }
    pairs = [
        (each.name, name) for each in own for name, codes in few.items() if each.codes * codes <= MAX_PAIRED_CATEGORIES
    ]
    counts = count_new_pairs(tables.engine, tables.original, tables.released, pairs) if pairs else []
    return dict(zip(pairs, counts, strict=True))


def _count_outside(column: PairedColumn, weight: Ints | None) -> int:
    assert isinstance(column.attribute, NumericAttribute)  # noqa: S101  the caller checks
    assert column.numbers is not None  # noqa: S101  the caller checks
    known = column.attribute.numbers[~column.attribute.null]
    if not len(known):
        return 0
    outside = (column.numbers < known.min()) | (column.numbers > known.max())
    return int(outside.sum() if weight is None else weight[outside].sum())


def _count_new_pairs(one: CategoryCodes, other: CategoryCodes) -> int:
    """Count the released records with two categories that never occur together in the original."""
    if one.codes * other.codes > MAX_PAIRED_CATEGORIES:
        return 0
    known = np.zeros(one.codes * other.codes, np.bool_)
    known[one.before * other.codes + other.before] = True
    return int((~known[one.after * other.codes + other.after]).sum())


def _describe_findings(outside: dict[str, int], new: dict[str, int]) -> Iterator[str]:
    for name, cells in outside.items():
        if cells:
            yield f"'{name}': {plural(cells, 'released value')} outside the range of the original"
    for names, records in new.items():
        count = plural(records, "released record")
        yield f"{names}: {count} with a combination of values that the original does not have"


MAX_RELATED_COLUMNS = 60  # compared with each other
MAX_RELATED_ROWS = 240_000  # of larger tables, about so many rows of each
MAX_RELATIONS_LISTED = 20  # relations that break, the worst first


def measure_structure(tables: TablePair, policy: BoundPolicy) -> dict[str, Any]:
    """Return the number of relations found, and those that more records of the release break than of the original."""
    engine, sample = tables.engine, tables.sample
    original, released = tables.inspected
    rows, note = engine.schema(original).rows, {"estimated": sample.note} if sample else {}
    if rows > (most := limit_sample(engine, MAX_RELATED_ROWS)):  # rules are counted on columns in memory
        original, released = (_take_sample(engine, frame) for frame in (original, released))
        note = note or {"estimated": f"estimated from {most:,} of {rows:,} records"}
    schemas = [engine.schema(frame) for frame in (original, released)]
    names = [c.name for c in policy.columns if c.role is not Role.IDENTIFIER and all(c.name in s for s in schemas)]
    known = {relation.check: relation for relation in _find(engine, original, policy, names[:MAX_RELATED_COLUMNS])}
    # a relation that cannot be an edit rule is left out
    rules = [rule for check in known for rule in bind_rules([Rule(check=check)], policy.columns)[0]]
    counts = count_violations(replace(policy, rules=tuple(rules)), engine, original, released)
    sizes = [max(schema.rows, 1) for schema in schemas]
    broken = [each for each in counts if each.after / sizes[1] > each.before / sizes[0]]
    broken.sort(key=lambda each: (each.before / sizes[0] - each.after / sizes[1], each.check))
    listed = [
        {"kind": known[each.check].kind, "columns": list(known[each.check].columns), **asdict(each)}
        for each in broken[:MAX_RELATIONS_LISTED]
    ]
    return {"found": len(counts), "broken": listed, "records": schemas[1].rows, **note}


def _take_sample(engine: Engine, frame: Any) -> Any:
    rows = engine.schema(frame).rows
    return engine.take(frame, sample_positions(rows, limit_sample(engine, min(rows, MAX_RELATED_ROWS))))[0]


def _find(engine: Engine, frame: Any, policy: BoundPolicy, names: Sequence[str]) -> list[Relation]:
    schema = engine.schema(frame)
    if not names:
        return []
    if schema.rows > (size := limit_sample(engine, RELATION_SAMPLE_ROWS)):
        frame = engine.take(frame, sample_positions(schema.rows, size))[0]
    recoded = {*policy.quasi}
    return find_relations([*_read_columns(engine, frame, schema, policy, names)], recoded)


def _read_columns(
    engine: Engine, frame: Any, schema: Schema, policy: BoundPolicy, names: Sequence[str]
) -> Iterator[SampledColumn]:
    numeric = [n for n in names if schema[n].storage.kind.is_numeric and policy[n].kind.is_numeric]
    table = engine.collect(frame, {name: schema[name] if name in numeric else None for name in names})
    for name in names:
        if name in numeric:
            numbers = np.asarray(table.column(name).to_numpy(zero_copy_only=False), np.float64)
            finite = np.where(np.isfinite(numbers), numbers, np.nan)
            yield SampledColumn.from_numbers(name, finite, dates=policy[name].kind == "date")
        else:
            yield SampledColumn.from_texts(name, table.column(name))
