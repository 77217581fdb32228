"""An independent check of a release: one file of plain Python that imports nothing of kinfold.

    python checker.py FOLDER          the folder with certificate.json and the released table; default: this folder

It needs Python 3.11 (and pyarrow for Parquet). It groups rows by the text of their quasi-identifiers and computes, in
exact arithmetic:

    k       the size of the smallest class: records that share all their quasi-identifier values
    l, p    the smallest number of distinct values of a confidential column in a class
    t       the largest earth mover's distance between a confidential column in a class and in the whole table
    alpha   the largest share of one value of a confidential column in a class
    beta    the largest (q - p)/p of a value with the share p in the table and q in a class
    r       the number of classes over the number of records; the share of records in classes that are too small
    k, confidence of combinations: the same of every combination of a few quasi-identifiers instead of all of them
    k of a population, estimated: the size of a class with which so many of all people share its values
    delta   the largest |log2(q/p)| of these shares, infinite (null) if a class lacks a value

Rows are read one after the other, and only the distinct ones are kept, with their number. A table can be a folder of
part files (`release.parts`), all of which must be there, unchanged, and no others.

Tables of people (`release.tables`) are joined to the table by the surrogates of people. What is checked is what all
files show together.

If the table has surrogates of households, their attributes must be the same for all members, and every class must have
members of the promised number of households. If it has surrogates of people, every promise is checked again with each
person counted once in a class, and once for each value that they hold there.

An empty field is a missing value. It counts as a value: first in an order, with its own branch in a hierarchy. Numbers
have a decimal comma, and formulas an apostrophe before them, if the certificate says so. The exit code is 0 if all
promises hold and the certificate states the same figures, else 5.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
import sys
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, combinations, zip_longest
from pathlib import Path
from typing import Any

Fields = list[str | None]  # the text of each field, None if it is empty
Table = Mapping[Any, Any]  # the fields of each column, by its name; equal rows are one row
ValueCounts = Mapping[Any, int]  # number of records by value
Distance = Callable[[ValueCounts], Fraction]
COUNTS = None  # in the place of a column name: how many records each row of a table stands for
REQUIRED_KEYS = ("k", "t", "alpha", "p", "l", "beta", "delta", "risk", "most")  # of a promise: the first that it has
WRONG_FIELDS = "a line has more or fewer fields than the header, or two columns have the same name"
CHECKED_ROLES = ("quasi-identifier", "confidential", "surrogate")
NUMBER_PATTERN = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
CODE_PATTERN = re.compile(r"[+-]?0[0-9].*")  # leading zero: a code such as a zip code, not a number
MOMENT_PATTERN = re.compile(
    r"([0-9]{4,6})-([0-9]{1,2})-([0-9]{1,2})( \(BC\))?(?:[ T]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?"
    r"(?: ?(?:Z|([+-])([0-9]{2}):?([0-9]{2})?))?( \(BC\))?"
)
BLANKS = " \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
SPACES, SIGNS = "\t\n\x0b\x0c\r \u00a0\u200b\u3000\ufeff", "=+@\uff1d\uff0b\uff20\uff0d\\-"
FORMULA_PATTERN = re.compile(f"(?s)'+[{SPACES}]*[{SIGNS}].*")  # of a spreadsheet, after an apostrophe
PLAIN_PATTERN = re.compile(  # a number or only signs: such a text is not quoted
    f"'+[{SPACES}]*[+-]?(([0-9]+([.,][0-9]*)*|[.,][0-9]+)([eE][+-]?[0-9]+)?%?|(?i:nan|inf|infinity))[{SPACES}]*"
    f"|'+[{SPACES}{SIGNS}]*"
)


class InvalidTable(Exception):  # noqa: N818
    """The table does not match its certificate."""


def check_release(folder: Path) -> dict[str, Any]:
    """Check a public folder; return figures, promises, problems, and whether the release holds."""
    try:
        certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
        result = check_table(folder / certificate["release"]["file"], certificate)
        names = find_changed(folder, certificate)
    except MemoryError:
        raise
    except Exception:  # a certificate can hold any content
        return _failed_result("the certificate cannot be read, or has an unexpected structure")
    changed = [f"a file or the certificate was changed after the release: {', '.join(names)}"] if names else []
    return result | {"holds": result["holds"] and not changed, "problems": [*changed, *result["problems"]]}


def check_table(path: Path, certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Check a table against a certificate; return figures, promises, problems, and whether all promises hold."""
    try:
        result = judge(read_tables(path, certificate), certificate)
        same = _figures_match(result, certificate)
    except InvalidTable as error:
        return _failed_result(str(error))
    problems = [] if same else ["the certificate states other figures than the table has"]
    holds = bool(result["records"]) and all(each["holds"] for each in (*result["promises"], *result["people"]))
    return result | {"holds": holds and not problems, "problems": problems}


def _failed_result(problem: str) -> dict[str, Any]:
    return {
        "found": {},
        "promises": [],
        "people": [],
        "records": 0,
        "classes": 0,
        "holds": False,
        "problems": [problem],
    }


def judge(table: Mapping[str, Fields], certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Group the rows and compare every class with every promise."""
    columns = {column["name"]: column for column in certificate["columns"]}
    quasi = [name for name, column in columns.items() if column["role"] == "quasi-identifier" and "of" not in column]
    confidential = [name for name, column in columns.items() if column["role"] == "confidential"]
    sizes, spreads, distances = [count_records(table, rows) for rows in group_rows(table, quasi)], {}, {}
    table = {**table, **{name: rank_values(table[name], columns[name]) for name in confidential}}  # 1 and 1.0 are one
    for name in confidential:
        known = [*quasi, *(other for other in confidential if certificate["joint"] and other != name)]
        spreads[name] = [count_values(table, table[name], rows) for rows in group_rows(table, known)]
        everyone = count_values(table, table[name], range(len(table[name])))
        distances[name] = list(map(make_distance(everyone, columns[name]), spreads[name]))
    figures = {
        "k": min(sizes, default=0),
        "l": {name: min(map(len, spreads[name]), default=0) for name in confidential},
        "t": {name: float(max(distances[name], default=0)) for name in confidential},
        "alpha": {name: float(max(map(max_share, spreads[name]), default=0)) for name in confidential},
    }
    promises = [
        check_combinations(p, table, quasi)
        if "size" in p["parameters"]
        else check_promise(p, sizes, spreads, distances)
        for p in certificate["promises"]
    ]
    people = [*judge_people(table, columns, certificate), *judge_households(table, columns, certificate)]
    return {"found": figures, "promises": promises, "people": people, "records": sum(sizes), "classes": len(sizes)}


def judge_households(
    table: Mapping[str, Fields], columns: Mapping[str, Any], certificate: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the promise about households, if the table has their surrogates; raise if the members of one differ."""
    entry = certificate.get("release", {}).get("households") or {}
    name = entry.get("counted_by")
    if name is None or columns.get(name, {}).get("role") != "surrogate":
        return
    for attribute in entry["attributes"]:
        if len({*zip(table[name], table[attribute], strict=True)}) > len({*table[name]}):
            raise InvalidTable(f"the members of a household differ in '{attribute}', an attribute of households")
    quasi = [each for each, column in columns.items() if column["role"] == "quasi-identifier"]
    fewest = min((len({table[name][row] for row in rows}) for rows in group_rows(table, quasi)), default=0)
    for promise in entry["promises"]:
        yield {**promise, "found": fewest, "holds": fewest >= promise["asked"]}


def judge_people(
    table: Mapping[str, Fields], columns: Mapping[str, Any], certificate: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield every promise with each person counted once, if the table has the surrogates of people."""
    unit = (certificate.get("release", {}).get("people") or {}).get("counted_by")
    if unit is None or columns.get(unit, {}).get("role") != "surrogate":
        return
    quasi = [name for name, column in columns.items() if column["role"] == "quasi-identifier" and "of" not in column]
    confidential = [name for name, column in columns.items() if column["role"] == "confidential"]
    for promise in certificate["promises"]:
        name, text = promise["parameters"].get("column"), f"{promise['promise']}, each person counted once"
        yield check_people(table, quasi, unit, columns.get(name), promise) | {"promise": text}
        if certificate["joint"] and name is not None:
            known = [*quasi, *(other for other in confidential if other != name)]
            text += ", given the other confidential columns"
            yield check_people(table, known, unit, columns[name], promise) | {"promise": text}
    if events := certificate["release"]["people"].get("events"):
        own = [column for column in certificate["columns"] if "of" in column]
        required = next(each["parameters"]["k"] for each in certificate["promises"] if each["model"] == "KAnonymity")
        yield from check_events(table, quasi, unit, own, {**events, "k": required})


def check_events(
    table: Mapping[str, Fields], quasi: Sequence[str], unit: str, columns: Sequence[Any], required: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Check that known events of a person match k people of the class, and how far first events are apart."""
    dates = [_read_days(table[c["name"]], c) for c in columns if c["type"] == "date"]
    codes = [table[c["name"]] for c in columns if c["type"] != "date"]
    matches, ranges = [], [0]
    for rows in group_rows(table, quasi):
        people: defaultdict[Any, list[int]] = defaultdict(list)
        for row in rows:
            people[table[unit][row]] += [row] * count_records(table, [row])
        shared: Counter[Any] = Counter()
        for own in people.values():
            events = list_events(own, codes, dates, required["days"])
            for size in range(1, min(required["known"], len(events)) + 1):
                shared.update({*combinations(events, size)})
        matches.append(min(len(people), *shared.values(), math.inf))
        first = [day for own in people.values() if (day := _find_first(own, dates)) is not None]
        ranges.append(max(first, default=0) - min(first, default=0))
    least, number, days = int(min(matches, default=0)), required["known"], 2 * required["shift"]
    text = f"{required['k']}-anonymity for {number} known event{'' if number == 1 else 's'}, each person counted once"
    yield {"promise": text, "asked": required["k"], "found": least, "holds": least >= required["k"]}
    if dates:
        text = f"first events of a class within {days} day{'' if days == 1 else 's'}"
        yield {"promise": text, "asked": days, "found": max(ranges), "holds": max(ranges) <= days}


def list_events(
    rows: Sequence[int], codes: Sequence[Fields], dates: Sequence[Sequence[int | None]], period: int
) -> list[Any]:
    """Return the events of a person in order: rows with a code or a date, in periods from the first date."""
    first, events = _find_first(rows, dates) or 0, []
    for row in rows:
        days, values = [date[row] for date in dates], [code[row] for code in codes]
        if any(value is not None for value in (*days, *values)):
            periods = [None if day is None else (day - first) // period for day in days] if period else []
            events.append((*periods, *values))
    return sorted(events, key=repr)


def _find_first(rows: Sequence[int], dates: Sequence[Sequence[int | None]]) -> int | None:
    return min((day for date in dates for row in rows if (day := date[row]) is not None), default=None)


def _read_days(fields: Fields, column: Mapping[str, Any]) -> list[int | None]:
    """Return the dates of events as days."""
    days = {text: None if text is None else _to_day(text, column) for text in {*fields}}
    return [days[text] for text in fields]


def _to_day(text: str, column: Mapping[str, Any]) -> int:
    moment = parse_moment(text.strip(BLANKS), column.get("dates"))
    if moment is None:
        raise InvalidTable(f"a value of '{column['name']}' is not a date")
    return int((moment / timedelta(1) if isinstance(moment, timedelta) else moment / 86400) // 1)


def check_people(
    table: Mapping[str, Fields], by: Sequence[str], unit: str, column: Any, promise: Mapping[str, Any]
) -> dict[str, Any]:
    """Check one promise on classes of people, who count once for each value that they hold."""
    classes = group_rows(table, by)
    sizes = [len({table[unit][row] for row in rows}) for rows in classes]
    if column is None:
        return check_promise(promise, sizes, {}, {})
    name = column["name"]
    held = [Counter(value for _, value in {(table[unit][row], table[name][row]) for row in rows}) for rows in classes]
    everyone = sum(held, Counter[Any]())
    distances = list(map(make_distance(everyone, column), held)) if promise["model"] == "TCloseness" else []
    return check_promise(promise, sizes, {name: held}, {name: distances})


def group_rows(table: Mapping[str, Sequence[Any]], by: Sequence[str]) -> list[list[int]]:
    """Return the rows of each class, which have the same text in the columns `by`."""
    classes: defaultdict[tuple[str | None, ...], list[int]] = defaultdict(list)
    for row, key in enumerate(zip(*(table[name] for name in by), strict=True)):
        classes[key].append(row)
    return list(classes.values())


def count_records(table: Table, rows: Sequence[int]) -> int:
    """Return how many records some rows stand for."""
    return sum(map(table[COUNTS].__getitem__, rows)) if COUNTS in table else len(rows)


def count_values(table: Table, values: Sequence[Any], rows: Sequence[int]) -> Counter[Any]:
    """Return how many records of some rows have each value."""
    if COUNTS not in table:
        return Counter(values[row] for row in rows)
    counts: Counter[Any] = Counter()
    for row in rows:
        counts[values[row]] += table[COUNTS][row]
    return counts


def check_promise(promise: Mapping[str, Any], sizes: list[int], spreads: Any, distances: Any) -> dict[str, Any]:
    """Return a promise with the required value, the value found, and whether it holds."""
    parameters = promise["parameters"]
    kind, name = parameters.get("kind", promise["model"]), parameters.get("column")
    required = next(parameters[key] for key in REQUIRED_KEYS if key in parameters)
    held: list[ValueCounts] = spreads.get(name, [])
    if kind in ("TCloseness", "AlphaK"):
        value: float | None = float(max(distances[name] if kind == "TCloseness" else map(max_share, held), default=0))
        holds = value is not None and value <= required
    elif kind in ("basic", "enhanced", "DeltaDisclosure"):
        value, holds = compare_shares(held, required, kind)
    elif kind in ("AverageRisk", "RiskShare"):
        value = measure_risk(sizes, parameters)
        holds = value <= required
    elif kind == "EstimatedKMap":
        value, required = min(sizes, default=0), find_needed_size(sum(sizes), parameters) if sizes else required
        holds = value >= required
    elif kind == "entropy":
        value, holds = (
            min(map(effective_values, held), default=0.0),
            all(meets_entropy(each, required) for each in held),
        )
    else:
        value = find_least_count(kind, parameters, sizes, held)
        holds = value >= required
    return {"promise": promise["promise"], "asked": required, "found": value, "holds": holds}


def check_combinations(
    promise: Mapping[str, Any], table: Mapping[str, Sequence[Any]], quasi: Sequence[str]
) -> dict[str, Any]:
    """Check k, or the largest share of a confidential value, for every combination of a few quasi-identifiers.

    Those of fewer columns need no check: their records are the union of such combinations.
    """
    parameters = promise["parameters"]
    sets = combinations(quasi, min(parameters["size"], len(quasi)))
    classes = (rows for names in sets for rows in group_rows(table, names))
    if "confidence" in parameters:
        values, required = table[parameters["column"]], parameters["confidence"]
        value = float(max((max_share(count_values(table, values, rows)) for rows in classes), default=0))
        holds = value <= required
    else:
        required, value = parameters["k"], min((count_records(table, rows) for rows in classes), default=0)
        holds = value >= required
    return {"promise": promise["promise"], "asked": required, "found": value, "holds": holds}


def find_needed_size(records: int, parameters: Mapping[str, Any]) -> int:
    """Return the least size of a class that k people of the population have, with a risk of at most alpha.

    The people of a class are a Poisson variable, of which at least one is in the sample: their mean is records · k / N.
    """
    k, population = int(parameters["k"]), parameters["population"]
    mean = records * k / population if k <= population else 0.0  # more people than there are: a class has no size
    chances = [math.exp(x * math.log(mean) - mean - math.lgamma(x + 1)) for x in range(int(2 * mean) + 200) if mean]
    tails = [*accumulate(reversed(chances))][::-1]  # larger numbers have no weight
    limit = -parameters["alpha"] * math.expm1(-mean)
    return next((size for size in range(1, min(k, len(tails))) if tails[size] <= limit), k)


def measure_risk(sizes: list[int], parameters: Mapping[str, Any]) -> float:
    """Return the mean of 1 / (size of the class) over the records, or the share of records above a limit."""
    if not sizes:
        return 1.0
    above = parameters.get("above")
    count = len(sizes) if above is None else sum(size for size in sizes if float(Fraction(1, size)) > above)
    return float(Fraction(count, sum(sizes)))


def find_least_count(kind: str, parameters: Mapping[str, Any], sizes: list[int], held: list[ValueCounts]) -> int:
    """Return the smallest class, recursive l, or number of distinct values."""
    if kind == "KAnonymity":
        return min(sizes, default=0)
    if kind == "recursive":
        return min((recursive_level(each, Fraction(repr(parameters["c"]))) for each in held), default=0)
    return min(map(len, held), default=0)


def compare_shares(spreads: Sequence[ValueCounts], required: float, kind: str) -> tuple[float | None, bool]:
    """Compare the shares q of classes with the shares p of the table; return the largest value and whether it holds.

    basic and enhanced: the largest (q - p)/p, at most `required`, and for enhanced at most -ln p too. Otherwise the
    largest |log2(q/p)|, below `required`. None is infinite.
    """
    total = sum(map(Counter, spreads), Counter())
    n, largest, holds = sum(total.values()), 0.0, True
    for held in spreads:
        size = sum(held.values())
        ratios = {value: Fraction(count * n, total[value] * size) for value, count in held.items()}
        if kind == "DeltaDisclosure":
            largest = max(
                largest,
                *(abs(math.log2(ratio)) for ratio in ratios.values()),
                math.inf if len(held) < len(total) else 0.0,
            )
            continue
        for value, ratio in ratios.items():
            gain, surprise = float(ratio - 1), -math.log(total[value] / n)
            holds = holds and gain <= (min(required, surprise) if kind == "enhanced" else required)
            largest = max(largest, math.inf if kind == "enhanced" and gain > surprise else gain)
    holds = holds and (kind != "DeltaDisclosure" or largest < required)
    return None if largest == math.inf else largest, holds


def max_share(held: ValueCounts) -> Fraction:
    """Return the share of the most frequent value."""
    return Fraction(max(held.values()), sum(held.values()))


def effective_values(held: ValueCounts) -> float:
    """Return the exponential of the entropy."""
    n = sum(held.values())
    return math.exp(-sum(count / n * math.log(count / n) for count in held.values()))


def meets_entropy(held: ValueCounts, l: float) -> bool:
    """Return whether exp(entropy) is at least l; if it is close, compare n^n with l^n · Π count^count exactly."""
    if abs(effective_values(held) - l) > 1e-9 * l:
        return effective_values(held) > l
    n, exact = sum(held.values()), Fraction(repr(l))
    return bool(n**n * exact.denominator**n >= exact.numerator**n * math.prod(c**c for c in held.values()))


def recursive_level(held: ValueCounts, c: Fraction) -> int:
    """Return the largest l with r₁ < c·(r_l + … + r_m), where r are the counts in descending order."""
    counts = sorted(held.values())
    return sum(counts[-1] < c * tail for tail in accumulate(counts))


def make_distance(values: ValueCounts, column: Mapping[str, Any]) -> Distance:
    """Return a function that measures the distance of a class to the whole table."""
    if column["distance"] == "ordered":
        return make_ordered_distance(values)
    levels: list[Mapping[Any, Any]] = [{value: value for value in set(values)}]
    if column["distance"] == "hierarchical":
        rows = column["hierarchy"]
        leaves = [parse_category(row[0]) for row in rows]
        levels = [
            dict(zip([*leaves, None], [*labels, None], strict=True)) for labels in list(zip(*rows, strict=True))[:-1]
        ]
        if missing := len({*values} - {*levels[0]}):
            raise InvalidTable(f"the hierarchy of '{column['name']}' lacks {missing} values of the column")
    return make_nominal_distance(values, levels)


def make_nominal_distance(values: Sequence[Any] | ValueCounts, levels: Sequence[Mapping[Any, Any]]) -> Distance:
    """Return the mean over the levels of ½ Σ |share of a label in the class - in the table|."""
    counts = Counter(values)
    n, totals = counts.total(), [(level, _count_labels(counts, level)) for level in levels]

    def measure(held: ValueCounts) -> Fraction:
        size, moved = sum(held.values()), 0
        for level, total in totals:
            moved += n * size  # a label that the class lacks counts with its share in the table
            for label, count in _count_labels(held, level).items():
                moved += abs(count * n - total[label] * size) - total[label] * size
        return Fraction(moved, 2 * n * size * len(levels))

    return measure


def _count_labels(held: ValueCounts, level: Mapping[Any, Any]) -> Counter[Any]:
    counts: Counter[Any] = Counter()
    for value, count in held.items():
        counts[level[value]] += count
    return counts


def make_ordered_distance(values: Sequence[int] | Mapping[int, int]) -> Distance:
    """Return the sum over the m distinct values v of |share up to v in the class - in the table|, over m - 1."""
    totals = Counter(values)
    n, m = totals.total(), len(totals)
    rank = {value: at for at, value in enumerate(sorted(totals))}
    below = list(accumulate(totals[value] for value in sorted(totals)))
    area = [0, *accumulate(below)]

    def sum_gap(first: int, last: int, count: int, size: int) -> int:
        """Return Σ |count·n - below(v)·size| for v from first to last - 1, between two values of the class."""
        turn = bisect_right(below, count * n // size, first, last)
        ahead = count * n * (turn - first) - size * (area[turn] - area[first])
        return ahead + size * (area[last] - area[turn]) - count * n * (last - turn)

    def measure(held: ValueCounts) -> Fraction:
        size, count, at, moved = sum(held.values()), 0, 0, 0
        for value in sorted(held):
            moved += sum_gap(at, rank[value], count, size)
            count, at = count + held[value], rank[value]
        return Fraction(moved + sum_gap(at, m, count, size), size * n * (m - 1)) if m > 1 else Fraction(0)

    return measure


def rank_values(fields: Fields, column: Mapping[str, Any]) -> list[Any]:
    """Return the values of a column: ranks in its order (0 for a missing value), or categories."""
    if column["type"] == "nominal" or "hierarchy" in column:
        return [None if text is None else parse_category(text) for text in fields]
    order = {parse_category(text): at for at, text in enumerate(column.get("order", ()))}
    keys = {text: _sort_key(text, column, order) for text in {*fields} if text is not None}
    if unknown := sum(key is None for key in keys.values()):
        raise InvalidTable(
            f"{unknown} of the values of '{column['name']}' are not {column['type']}, or not in its order"
        )
    rank = {key: at for at, key in enumerate(sorted(set(keys.values())), 1)}
    return [0 if text is None else rank[keys[text]] for text in fields]


def parse_category(text: str) -> Any:
    """Return the number that a category denotes, or its text: 1 and 1.0 are the same category."""
    bare = text.strip(BLANKS)
    return Decimal(bare) if NUMBER_PATTERN.fullmatch(bare) and not CODE_PATTERN.fullmatch(bare) else text


def _sort_key(text: str, column: Mapping[str, Any], order: Mapping[Any, int]) -> Any:
    """Return the sort key of a text, or None if it cannot be parsed."""
    if "order" in column:
        return order.get(parse_category(text))
    if column["type"] == "date":
        return parse_moment(text.strip(BLANKS), column.get("dates"))
    return Decimal(text.strip(BLANKS)) if NUMBER_PATTERN.fullmatch(text.strip(BLANKS)) else None


def parse_moment(text: str, form: str | None) -> Any:
    """Return an exact sort key of a date or time, or None if it cannot be parsed."""
    try:
        if text.lstrip("-").isdigit():  # clock ticks
            return Fraction(text)
        if form:
            return _parse_with_format(text, form)
        match = MOMENT_PATTERN.fullmatch(text)
        year, month, day, bc, hour, minute, second, fraction, sign, zone, more, last = match.groups()  # type: ignore[union-attr]
        era, of_era = divmod(1 - int(year) if bc or last else int(year), 400)  # the calendar repeats after 400 years
        minutes = int(hour or 0) * 60 + int(minute or 0)
        minutes -= (int(zone or 0) * 60 + int(more or 0)) * (-1 if sign == "-" else 1)
        days = era * 146097 + date(2000 + of_era, int(month), int(day)).toordinal()
        return Fraction(days * 86400 + minutes * 60 + int(second or 0)) + Fraction(f"0.{fraction or 0}")
    except (AttributeError, ValueError):
        return None


def _parse_with_format(text: str, form: str) -> timedelta:
    """Parse a date by its format. Python has no year 0, but the calendar repeats after 400 years."""
    try:
        moment, shift = datetime.strptime(text, form), 0
    except ValueError:
        moment, shift = datetime.strptime(text.replace("0000", "2000", 1), form), 5 * 146097
    return moment.replace(tzinfo=None) - datetime.min - (moment.utcoffset() or timedelta()) - timedelta(shift)


def read_tables(path: Path, certificate: Mapping[str, Any]) -> Table:
    """Return the columns of a release as text, files joined; raise if the certificate names other columns.

    Of a single table, equal rows are one row, and columns that no promise is about are left out.
    """
    release, columns = certificate.get("release", {}), certificate["columns"]
    expected = sorted(c["name"] for c in columns if c["role"] not in ("identifier", "remove"))
    if not release.get("tables"):
        shared = (release.get("households") or {}).get("attributes", ())
        needed = [c["name"] for c in columns if c["role"] in CHECKED_ROLES or c["name"] in shared]
        return read_counted(path, certificate, expected, needed)
    table: dict[str, Fields] = read_table(path, certificate)
    for number, entry in enumerate(release["tables"]):
        unit, people = release["people"]["counted_by"], read_table(path.with_name(entry["file"]), certificate)
        if sorted(people) != sorted([unit, *entry["columns"]]):
            raise InvalidTable("a table has other columns than the certificate names")
        if number and {*people[unit]} != {*table[unit]}:
            raise InvalidTable("the tables are not linked: they have different people")
        table = join_people(table, people, unit)
    if sorted(table) != expected:
        raise InvalidTable("the table has other columns than the certificate names")
    return table


def read_counted(path: Path, certificate: Mapping[str, Any], expected: Sequence[str], needed: Sequence[str]) -> Table:
    """Return the needed columns of a file, or of a folder of parts: every distinct row, and how often it is there."""
    parts, counts, read = certificate["release"].get("parts"), Counter[tuple[str | None, ...]](), 0
    listed = {part["file"]: part["records"] for part in parts or ()}
    for name in sorted({file.name for file in path.iterdir()} ^ {*listed}) if parts else ():
        raise InvalidTable(f"the part '{name}' is missing, or the certificate does not list it")
    for file in [path / name for name in listed] or [path]:
        rows = read_rows(file, certificate["release"])
        header = next(rows)
        if sorted(header) != expected:
            raise InvalidTable("the table has other columns than the certificate names")
        places = [header.index(name) for name in needed]
        counts.update(tuple(row[place] for place in places) for row in rows)
        if parts and counts.total() - read != listed[file.name]:
            raise InvalidTable(f"the part '{file.name}' has another number of records than the certificate states")
        read = counts.total()
    table = {name: [row[i] for row in counts] for i, name in enumerate(needed)}
    return {**restore_values(table, certificate["release"], file), COUNTS: [*counts.values()]}


def join_people(table: dict[str, Fields], people: dict[str, Fields], unit: str) -> dict[str, Fields]:
    """Return the rows with the values of their people, then the people without a row; raise if people do not fit."""
    place = {person: row for row, person in enumerate(people[unit])}
    if None in place or len(place) < len(people[unit]) or not {*table[unit]} <= place.keys():
        raise InvalidTable("the tables are not linked: a person has several rows in a table of people, or none")
    rows = [place[person] for person in table[unit]]
    present = {*table[unit]}
    without = [row for person, row in place.items() if person not in present]
    joined = {name: [*fields, *(None for _ in without)] for name, fields in table.items()}
    return joined | {name: [fields[row] for row in (*rows, *without)] for name, fields in people.items()}


def read_table(path: Path, certificate: Mapping[str, Any]) -> dict[str, Fields]:
    """Return the columns of a file as text."""
    release = certificate.get("release", {})
    header, *rows = read_rows(path, release)
    table = {str(name): [row[i] for row in rows] for i, name in enumerate(header)}
    return restore_values(table, release, path)


def restore_values(table: dict[str, Fields], release: Mapping[str, Any], file: Path) -> dict[str, Fields]:
    """Return columns with decimal points, and without the apostrophes before formulas."""
    if release.get("decimal") == "," and file.suffix != ".parquet":
        swap = str.maketrans(".,", ",.")
        plain = {name: [text and text.translate(swap) for text in fields] for name, fields in table.items()}
        table |= {n: c for n, c in plain.items() if all(NUMBER_PATTERN.fullmatch(t.strip(BLANKS)) for t in c if t)}
    if release.get("quoted"):
        return {name: [text and unquote(text) for text in fields] for name, fields in table.items()}
    return table


def unquote(text: str) -> str:
    """Return a text without the apostrophe that was written before a formula."""
    return text[1:] if FORMULA_PATTERN.fullmatch(text) and not PLAIN_PATTERN.fullmatch(text) else text


def read_rows(path: Path, release: Mapping[str, Any]) -> Iterator[Any]:
    """Return an iterator of the names of the columns, then of the rows as text."""
    return _read_parquet(path) if path.suffix == ".parquet" else _read_csv(path, release["separator"])


def _read_csv(path: Path, separator: str) -> Iterator[Any]:
    limit = csv.field_size_limit(0x7FFFFFFF)  # a global setting, restored below
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file, delimiter=separator, strict=True)
            if (header := next(rows, None)) is None:
                raise csv.Error
            if len({*header}) < len(header):
                raise InvalidTable(WRONG_FIELDS)
            yield header
            for row in rows:
                if len(row or [""]) != len(header):
                    raise InvalidTable(WRONG_FIELDS)
                yield [text or None for text in row] or [None]  # an empty line is a single empty field
    except (csv.Error, ValueError):
        raise InvalidTable("the table is not a CSV file in UTF-8") from None
    finally:
        csv.field_size_limit(limit)


def _read_parquet(path: Path) -> Iterator[Any]:
    try:
        import pyarrow as pa
        from pyarrow import parquet

        file = parquet.ParquetFile(path)
        yield file.schema_arrow.names
        for batch in file.iter_batches():
            table = pa.table(batch)
            for i, field in enumerate(table.schema):
                short = (
                    pa.types.is_boolean(field.type)
                    or pa.types.is_float16(field.type)
                    or pa.types.is_float32(field.type)
                )
                if pa.types.is_temporal(field.type) or short:  # as clock ticks: a datetime has only microseconds
                    kind = "string" if short else f"int{field.type.bit_width}"
                    table = table.set_column(i, field.name, table.column(i).cast(kind))
            columns = ([None if v is None else str(v) for v in column.to_pylist()] for column in table.columns)
            yield from zip(*columns, strict=True)
    except ImportError:
        raise SystemExit("a table in Parquet needs pyarrow: pip install pyarrow") from None
    except (OSError, ValueError):
        raise InvalidTable("the table is not a Parquet file") from None


def find_changed(folder: Path, certificate: dict[str, Any]) -> list[str]:
    """Return the names of the listed files that are there and have other checksums, the certificate among them."""
    content = {key: value for key, value in certificate.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    release = content["release"]
    entries = [*release.get("tables", ()), *filter(None, (content.get("report"), *content.get("documents", ())))]
    listed = {entry["file"]: entry["sha256"] for entry in entries}
    if parts := release.get("parts"):
        listed |= {f"{release['file']}/{part['file']}": part["sha256"] for part in parts}
        lines = "".join(f"{part['sha256']}  {part['file']}\n" for part in parts)
        changed = [release["file"]] if hashlib.sha256(lines.encode()).hexdigest() != release["sha256"] else []
    else:
        listed[release["file"]], changed = release["sha256"], []
    changed += [name for name, sha in listed.items() if (folder / name).is_file() and _hash_file(folder / name) != sha]
    return changed + ["certificate.json"] * (hashlib.sha256(text).hexdigest() != certificate["checksum"])


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _figures_match(report: Mapping[str, Any], certificate: Mapping[str, Any]) -> bool:
    """Return whether a certificate states the figures found, up to rounding of quotients."""
    entries = [certificate["release"].get(key) or {} for key in ("people", "households")]
    people = [promise for each in entries if each.get("surrogate") for promise in each["promises"]]
    stated = _list_figures(certificate, certificate["release"], people)
    pairs = zip_longest(stated, _list_figures(report, report, report.get("people", ())), fillvalue=math.inf)
    return all(one == other or abs(one - other) <= 1e-9 * max(abs(other), 1) for one, other in pairs)


def _list_figures(content: Mapping[str, Any], counts: Mapping[str, Any], people: Sequence[Any]) -> list[float]:
    k, l, t = (content["found"][key] for key in ("k", "l", "t"))
    promises = (*content["promises"], *people)
    required = (promise["asked"] for promise in promises)
    promised = (math.inf if promise["found"] is None else promise["found"] for promise in promises)
    return [k, *l.values(), *t.values(), counts["records"], counts["classes"], *required, *promised]


if __name__ == "__main__":
    result = check_release(Path(*sys.argv[1:]))
    print(json.dumps(result, indent=2))  # noqa: T201
    raise SystemExit(0 if result["holds"] else 5)
