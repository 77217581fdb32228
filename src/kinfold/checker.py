"""A second opinion on a release: one file of plain Python that knows nothing of kinfold.

    python checker.py FOLDER          with certificate.json and the released table in it; this folder if none is named

It needs Python 3.11 and nothing else (for Parquet: pyarrow), groups rows by the text of their quasi-identifiers, and
says what it finds, in exact arithmetic:

    k       the size of the smallest class: records that share all their quasi-identifier values
    l, p    the fewest different values of a confidential column in a class
    t       the largest earth mover's distance between a confidential column in a class and in the whole table
    alpha   the largest share that one value of a confidential column has in a class

An empty field is missing: a value like any other, first in an order, alone in a hierarchy. Numbers may have a decimal
comma, as the certificate says. The exit code is 0 if all promises hold and the figures are those found, else 5.
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
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

Column = list[str | None]  # the text of each field, None where it is empty
Class = Mapping[Any, int]  # how many records of a class hold each value
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
CODE = re.compile(r"[+-]?0[0-9].*")  # no number but a name, where nothing says that it is one
MOMENT = re.compile(
    r"([0-9]{4,6})-([0-9]{1,2})-([0-9]{1,2})( \(BC\))?(?:[ T]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?)?"
    r"(?: ?(?:Z|([+-])([0-9]{2}):?([0-9]{2})?))?( \(BC\))?"
)


class Wrong(Exception):  # noqa: N818
    """Something in a table that is not as its certificate says."""


def examine(folder: Path) -> dict[str, Any]:
    """Return what a public folder holds: figures, promises, problems, and whether all is well."""
    try:
        certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
        found = consider(folder / certificate["release"]["file"], certificate)
        untouched = _untouched(folder, certificate)
    except MemoryError:
        raise
    except Exception:  # a certificate may hold anything
        return _nothing("the certificate cannot be read, or is not of the expected shape")
    changed = [] if untouched else ["the table or the certificate was changed afterwards"]
    return found | {"holds": found["holds"] and not changed, "problems": [*changed, *found["problems"]]}


def consider(path: Path, certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table holds, and whether that is what a certificate says."""
    try:
        found = judge(read(path, certificate), certificate)
        told = _as_told(found, certificate)
    except Wrong as wrong:
        return _nothing(str(wrong))
    problems = [] if told else ["the certificate tells other figures than those found"]
    kept = bool(found["records"]) and all(promise["holds"] for promise in found["promises"])
    return found | {"holds": kept and not problems, "problems": problems}


def _nothing(problem: str) -> dict[str, Any]:
    return {"found": {}, "promises": [], "records": 0, "classes": 0, "holds": False, "problems": [problem]}


def judge(table: Mapping[str, Column], certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Group the rows, and compare every class with every promise."""
    columns = {column["name"]: column for column in certificate["columns"]}
    quasi = [name for name, column in columns.items() if column["role"] == "quasi-identifier"]
    confidential = [name for name, column in columns.items() if column["role"] == "confidential"]
    sizes, spreads, distances = [len(rows) for rows in group(table, quasi)], {}, {}
    for name in confidential:
        values = ordered_values(table[name], columns[name])
        known = [*quasi, *(other for other in confidential if certificate["joint"] and other != name)]
        spreads[name] = [Counter(values[row] for row in rows) for rows in group(table, known)]
        distances[name] = list(map(distance(values, columns[name]), spreads[name]))
    found = {
        "k": min(sizes, default=0),
        "l": {name: min(map(len, spreads[name]), default=0) for name in confidential},
        "t": {name: float(max(distances[name], default=0)) for name in confidential},
        "alpha": {name: float(max(map(share, spreads[name]), default=0)) for name in confidential},
    }
    promises = [answer(p, sizes, spreads, distances) for p in certificate["promises"]]
    return {"found": found, "promises": promises, "records": sum(sizes), "classes": len(sizes)}


def group(table: Mapping[str, Column], by: Sequence[str]) -> list[list[int]]:
    """Return the rows of each class: those whose fields in the columns `by` have the same text."""
    classes: defaultdict[tuple[str | None, ...], list[int]] = defaultdict(list)
    for row, key in enumerate(zip(*(table[name] for name in by), strict=True)):
        classes[key].append(row)
    return list(classes.values())


def answer(promise: Mapping[str, Any], sizes: list[int], spreads: Any, distances: Any) -> dict[str, Any]:
    """Return one promise with what is found and whether it holds."""
    asked = promise["parameters"]
    kind, name = asked.get("kind", promise["model"]), asked.get("column")
    want = next(asked[key] for key in ("k", "t", "alpha", "p", "l") if key in asked)
    if kind == "KAnonymity":
        found: float = min(sizes, default=0)
    elif kind in ("TCloseness", "AlphaK"):
        found = float(max(distances[name] if kind == "TCloseness" else map(share, spreads[name]), default=0))
    elif kind == "entropy":
        found = min(map(effective, spreads[name]), default=0.0)
    elif kind == "recursive":
        found = min((recursive(held, Fraction(repr(asked["c"]))) for held in spreads[name]), default=0)
    else:  # distinct diversity, p-sensitivity
        found = min(map(len, spreads[name]), default=0)
    holds = found <= want if kind in ("TCloseness", "AlphaK") else found >= want
    holds = all(entropy_reaches(held, want) for held in spreads[name]) if kind == "entropy" else holds
    return {"promise": promise["promise"], "asked": want, "found": found, "holds": holds}


def share(held: Class) -> Fraction:
    """Share of the most frequent value."""
    return Fraction(max(held.values()), sum(held.values()))


def effective(held: Class) -> float:
    """The exponential of the entropy: as many values as if all were equally frequent."""
    n = sum(held.values())
    return math.exp(-sum(count / n * math.log(count / n) for count in held.values()))


def entropy_reaches(held: Class, l: float) -> bool:
    """Whether exp(entropy) is at least l; where that is close, by n^n ≥ l^n · Π count^count in whole numbers."""
    if abs(effective(held) - l) > 1e-9 * l:
        return effective(held) > l
    n, exact = sum(held.values()), Fraction(repr(l))
    return bool(n**n * exact.denominator**n >= exact.numerator**n * math.prod(c**c for c in held.values()))


def recursive(held: Class, c: Fraction) -> int:
    """The largest l with r₁ < c·(r_l + … + r_m), r being the counts from the most frequent value down."""
    counts = sorted(held.values())
    return sum(counts[-1] < c * tail for tail in accumulate(counts))


def distance(values: Sequence[Any], column: Mapping[str, Any]) -> Callable[[Class], Fraction]:
    """Return what measures how far a class is from the whole table."""
    if column["distance"] == "ordered":
        return over_an_order(values)
    levels: list[Mapping[Any, Any]] = [{value: value for value in set(values)}]
    if column["distance"] == "hierarchical":
        rows = column["hierarchy"]
        levels = [{category(row[0]): row[level] for row in rows} | {None: None} for level in range(len(rows[0]) - 1)]
        if missing := len({*values} - {*levels[0]}):
            raise Wrong(f"the hierarchy of '{column['name']}' lacks {missing} of its values")
    return over_levels(values, levels)


def over_levels(values: Sequence[Any], levels: Sequence[Mapping[Any, Any]]) -> Callable[[Class], Fraction]:
    """Mean over the levels of ½ Σ |share of a label in the class - in the table|; one level: all values equally far."""
    n, totals = len(values), [(level, _relabelled(Counter(values), level)) for level in levels]

    def measured(held: Class) -> Fraction:
        size, moved = sum(held.values()), 0
        for level, total in totals:
            moved += n * size  # a label that the class lacks: all of its share in the table
            for label, count in _relabelled(held, level).items():
                moved += abs(count * n - total[label] * size) - total[label] * size
        return Fraction(moved, 2 * n * size * len(levels))

    return measured


def _relabelled(held: Class, level: Mapping[Any, Any]) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for value, count in held.items():
        found[level[value]] += count
    return found


def over_an_order(values: Sequence[int]) -> Callable[[Class], Fraction]:
    """Sum over the m distinct values v of |share up to v in the class - in the table|, divided by m - 1."""
    n, m, totals = len(values), len({*values}), Counter(values)
    place = {value: at for at, value in enumerate(sorted(totals))}
    below = list(accumulate(totals[value] for value in sorted(totals)))
    area = [0, *accumulate(below)]

    def stretch(first: int, last: int, have: int, size: int) -> int:
        """Σ |have·n - below(v)·size| from first to before last: the class stands still there, the table grows."""
        turn = bisect_right(below, have * n // size, first, last)
        behind = have * n * (turn - first) - size * (area[turn] - area[first])
        return behind + size * (area[last] - area[turn]) - have * n * (last - turn)

    def measured(held: Class) -> Fraction:
        size, have, at, moved = sum(held.values()), 0, 0, 0
        for value in sorted(held):
            moved += stretch(at, place[value], have, size)
            have, at = have + held[value], place[value]
        return Fraction(moved + stretch(at, m, have, size), size * n * (m - 1)) if m > 1 else Fraction(0)

    return measured


def ordered_values(fields: Column, column: Mapping[str, Any]) -> list[Any]:
    """Return the values of a column: places in its order (0 is missing), or texts where it has none."""
    if column["type"] == "nominal" or "hierarchy" in column:
        return [None if text is None else category(text) for text in fields]
    order = {category(text): at for at, text in enumerate(column.get("order", ()))}
    keys = {text: _key(text, column, order) for text in {*fields} if text is not None}
    if wrong := sum(key is None for key in keys.values()):
        raise Wrong(f"{wrong} of the values of '{column['name']}' are not {column['type']}, or not in its order")
    place = {key: at for at, key in enumerate(sorted(set(keys.values())), 1)}
    return [0 if text is None else place[keys[text]] for text in fields]


def category(text: str) -> Any:
    """Return what a category is told apart by: the number that it says, however it is written, or else its text."""
    bare = text.strip(" ")
    return Decimal(bare) if NUMBER.fullmatch(bare) and not CODE.fullmatch(bare) else text


def _key(text: str, column: Mapping[str, Any], order: Mapping[Any, int]) -> Any:
    """Return what a text is ordered by; None if it cannot be read."""
    if "order" in column:
        return order.get(category(text))
    if column["type"] == "date":
        return moment(text.strip(" "), column.get("dates"))
    return Decimal(text.strip(" ")) if NUMBER.fullmatch(text.strip(" ")) else None


def moment(text: str, form: str | None) -> Any:
    """Return a date or time as something that can be ordered, to the last digit; None if it is none."""
    try:
        if text.lstrip("-").isdigit():  # ticks of a clock
            return Fraction(text)
        if form:
            return _by_form(text, form)
        year, month, day, bc, hour, minute, second, beyond, sign, ahead, more, last = MOMENT.fullmatch(text).groups()  # type: ignore[union-attr]
        era, of_era = divmod(1 - int(year) if bc or last else int(year), 400)  # the calendar repeats after 400 years
        minutes = int(hour or 0) * 60 + int(minute or 0)
        minutes -= (int(ahead or 0) * 60 + int(more or 0)) * (-1 if sign == "-" else 1)
        days = era * 146097 + date(2000 + of_era, int(month), int(day)).toordinal()
        return Fraction(days * 86400 + minutes * 60 + int(second or 0)) + Fraction(f"0.{beyond or 0}")
    except (AttributeError, ValueError):
        return None


def _by_form(text: str, form: str) -> timedelta:
    """Return a moment in some format; Python has no year 0, but the calendar repeats after 400 years."""
    try:
        found, earlier = datetime.strptime(text, form), 0
    except ValueError:
        found, earlier = datetime.strptime(text.replace("0000", "2000", 1), form), 5 * 146097
    return found.replace(tzinfo=None) - datetime.min - (found.utcoffset() or timedelta()) - timedelta(earlier)


def read(path: Path, certificate: Mapping[str, Any]) -> dict[str, Column]:
    """Return the columns of a released table as text, and make sure that they are those of the certificate."""
    table = _parquet(path) if path.suffix == ".parquet" else _csv(path, certificate["release"])
    if sorted(table) != sorted(c["name"] for c in certificate["columns"] if c["role"] != "identifier"):
        raise Wrong("the table has other columns than the certificate names")
    return table


def _csv(path: Path, told: Mapping[str, Any]) -> dict[str, Column]:
    limit = csv.field_size_limit(0x7FFFFFFF)  # of the whole process: put back below
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header, *lines = csv.reader(file, delimiter=told["separator"], strict=True)
    except (csv.Error, ValueError):
        raise Wrong("the table is no CSV file in UTF-8") from None
    finally:
        csv.field_size_limit(limit)
    rows = [line or [""] for line in lines]  # a single empty field is an empty line
    if len({*header}) < len(header) or any(len(row) != len(header) for row in rows):
        raise Wrong("the table is broken: a line has other fields than the header, or two columns share a name")
    table = {name: [row[i] or None for row in rows] for i, name in enumerate(header)}
    swap = str.maketrans(".,", ",.") if told.get("decimal") == "," else None
    plain = {n: [t and t.translate(swap) for t in fields] for n, fields in table.items() if swap}
    return table | {n: c for n, c in plain.items() if all(NUMBER.fullmatch(t.strip(" ")) for t in c if t)}


def _parquet(path: Path) -> dict[str, Column]:
    try:
        from pyarrow import parquet, types

        table = parquet.ParquetFile(path).read()
    except ImportError:
        raise SystemExit("a table in Parquet needs pyarrow: pip install pyarrow") from None
    except (OSError, ValueError):
        raise Wrong("the table is no Parquet file") from None
    for i, field in enumerate(table.schema):
        short = types.is_boolean(field.type) or types.is_float16(field.type) or types.is_float32(field.type)
        if types.is_temporal(field.type) or short:  # all ticks of the clock: a datetime has not as many
            kind = "string" if short else f"int{field.type.bit_width}"
            table = table.set_column(i, field.name, table.column(i).cast(kind))
    return {name: [None if v is None else str(v) for v in values] for name, values in table.to_pydict().items()}


def _untouched(folder: Path, certificate: dict[str, Any]) -> bool:
    content = {key: value for key, value in certificate.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    found = [hashlib.sha256(part).hexdigest() for part in (text, (folder / content["release"]["file"]).read_bytes())]
    return found == [certificate["checksum"], content["release"]["sha256"]]


def _as_told(found: Mapping[str, Any], certificate: Mapping[str, Any]) -> bool:
    """Whether a certificate tells the figures that were found, but for the last digits of quotients."""
    pairs = zip_longest(_figures(certificate, certificate["release"]), _figures(found, found), fillvalue=math.inf)
    return all(abs(one - other) <= 1e-9 * max(abs(other), 1) for one, other in pairs)


def _figures(content: Mapping[str, Any], counts: Mapping[str, Any]) -> list[float]:
    k, l, t = (content["found"][key] for key in ("k", "l", "t"))
    promised = (promise["found"] for promise in content["promises"])
    return [k, *l.values(), *t.values(), counts["records"], counts["classes"], *promised]


if __name__ == "__main__":
    result = examine(Path(*sys.argv[1:]))
    print(json.dumps(result, indent=2))  # noqa: T201
    raise SystemExit(0 if result["holds"] else 5)
