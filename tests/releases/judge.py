"""A judge of releases that uses nothing of kinfold's own: run it with `python -I -S judge.py CHECKER PACKAGES`.

It loads the plain checker from its file (where kinfold is forbidden), takes a line of JSON for each release (its public
folder and what was asked for, in the words of whoever asked, not of the certificate) and answers with a line: every way
in which the release is false. What was asked for is held against what the checker finds, and k, l and the columns
against an even simpler count of the file's lines. Where people are counted, whose each row was is among what was asked,
by the number of the row, which such a release holds: then every promise is computed again for people.
PACKAGES is where pyarrow is found, for tables in Parquet.
"""

import csv
import importlib.util
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

Row = dict[str, str]  # nothing is the empty text
ROW = "row number"  # a column that says which row of the original each is
ONCE = ", each person counted once"
KNOWING = f"{ONCE}, given the other confidential columns"
NUMBER = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def load(path: Path) -> ModuleType:
    """Load the checker as a file of its own."""
    sys.modules["kinfold"] = None  # type: ignore[assignment]  # whoever imports it fails
    spec = importlib.util.spec_from_file_location("plain_checker", path)
    assert spec is not None
    assert spec.loader is not None
    checker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(checker)
    return checker


def falsehoods(checker: ModuleType, folder: Path, asked: Mapping[str, Any]) -> Iterator[str]:
    """Yield every way in which a release is not what was asked for."""
    said = checker.check_release(folder)
    if not said["holds"]:
        yield f"the checker: {said['problems'] or [p for p in said['promises'] if not p['holds']]}"
        return
    told = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    yield from _roles(told, asked)
    yield from _levels(said["found"], asked)
    yield from _counts(rows_in(folder, told), said, asked)
    if asked["people"]:
        yield from _people(rows_in(folder, told), told, asked)


def _roles(told: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """The certificate speaks of the columns that were asked for, as what they were said to be."""
    for role in ("quasi-identifier", "confidential"):
        names = [column["name"] for column in told["columns"] if column["role"] == role]
        if sorted(names) != sorted(asked[role]):
            yield f"other {role} columns than asked for"
    distances = {column["name"]: column.get("distance") for column in told["columns"]}
    for name, distance in asked["distance"].items():
        if distances.get(name) != distance:
            yield f"{name}: the distance is {distances.get(name)}, not {distance}"
    if told["joint"] != asked["joint"]:
        yield "joint promises were asked for, or were not"


def _levels(found: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """The figures that the checker found reach what was asked for."""
    if found["k"] < asked["k"]:
        yield f"k is {found['k']}"
    for name, level in asked["t"].items():
        if found["t"][name] > level:
            yield f"t of {name} is {found['t'][name]}"
    for name in asked["confidential"]:
        if found["l"][name] < max(asked.get("l", {}).get(name, 1), asked.get("p", 1)):
            yield f"l of {name} is {found['l'][name]}"
        if found["alpha"][name] > asked.get("alpha", 1):
            yield f"alpha of {name} is {found['alpha'][name]}"


def _counts(rows: list[Row], said: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the file, counted: nothing that must not be there, nothing lost, k and every kind of l."""
    if len(rows) != said["records"] or not asked["least"] <= len(rows) <= asked["most"]:
        yield f"{len(rows)} records"
    if {*rows[0]} & {*asked["gone"]} or not {*asked["kept"]} <= {*rows[0]}:
        yield "a column that must not be there, or one lost"
    sizes = Counter(tuple(row[name] for name in asked["quasi-identifier"]) for row in rows)
    if min(sizes.values()) != said["found"]["k"] or len(sizes) != said["classes"]:
        yield f"k is {min(sizes.values())} in {len(sizes)} classes"
    if len(sizes) > asked.get("average_risk", 1) * len(rows) + 1e-9:
        yield f"the average risk is {len(sizes) / len(rows)}"
    share = asked.get("risk_share", {"above": 1, "most": 1})
    if sum(size for size in sizes.values() if 1 / size > share["above"]) > share["most"] * len(rows) + 1e-9:
        yield "too many records are at risk"
    for name, values in asked["values"].items():
        if released := Counter(row[name] for row in rows) - Counter(values):
            yield f"{name}: {released.total()} values that the original has not"
    for name in asked["confidential"]:
        yield from _diversity(rows, name, said, asked)


def _diversity(rows: list[Row], name: str, said: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    known = [*asked["quasi-identifier"], *(n for n in asked["confidential"] if asked["joint"] and n != name)]
    classes: dict[tuple[str, ...], Counter[str]] = {}
    for row in rows:
        classes.setdefault(tuple(row[n] for n in known), Counter())[row[name]] += 1
    if name in asked["told apart by text"] and min(map(len, classes.values())) != said["found"]["l"][name]:
        yield f"{name} has {min(map(len, classes.values()))} values in a class"
    if name not in asked["told apart by text"]:
        return
    for held in classes.values():
        counts = sorted(held.values(), reverse=True)
        n = sum(counts)
        yield from _likeness(held, sum(classes.values(), Counter()), name, asked)
        if math.exp(-sum(c / n * math.log(c / n) for c in counts)) < asked.get("entropy", {}).get(name, 1) - 1e-9:
            yield f"{name}: the entropy of a class is too low"
        if name in asked.get("recursive", {}):
            l, c = asked["recursive"][name]
            if not counts[0] < Fraction(repr(c)) * sum(counts[l - 1 :]):
                yield f"{name}: a class is not recursively diverse"


def _likeness(
    held: Counter[Any], whole: Counter[Any], name: str, asked: Mapping[str, Any], who: str = ""
) -> Iterator[str]:
    """The share of each value in a class, beside its share in the table."""
    p = {value: Fraction(count, whole.total()) for value, count in whole.items()}
    for value, share in p.items():
        quotient, most = Fraction(held[value], held.total()) / share, asked.get("beta", math.inf)
        if asked.get("beta_kind") == "enhanced":
            most = min(most, -math.log(share))
        if quotient - 1 > most + 1e-9:
            yield f"{who}{name}: a value gains {float(quotient - 1)}"
        if "delta" in asked and not (quotient and abs(math.log2(quotient)) < asked["delta"] + 1e-9):
            yield f"{who}{name}: a class has a value in another share, or lacks it"


def _people(rows: list[Row], told: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """Each person counted once in a class, and once in what others know of it: by the original's own column."""
    whose = {row[ROW]: asked["people"][row[ROW]] for row in rows}
    quasi = asked["quasi-identifier"]
    if min(map(len, _grouped(rows, quasi, lambda row: whose[row[ROW]]))) < asked["k"]:
        yield "a class has fewer than k people"
    said = {promise["promise"]: promise["found"] for promise in told["release"]["people"]["promises"]}
    for name in asked["confidential"]:
        others = [other for other in asked["confidential"] if asked["joint"] and other != name]
        for words, known in {ONCE: quasi, KNOWING: [*quasi, *others]}.items() if others else ((ONCE, quasi),):
            pairs = _grouped(rows, known, lambda row, name=name: (whose[row[ROW]], _value(row[name])))
            held = [Counter(value for _, value in each) for each in pairs]
            yield from _held(held, name, asked)
            found = {t: f for t, f in said.items() if t.endswith(f" of {name}{words}")}
            for text, figure in found.items():
                if abs(figure - _figure(held, text, name, asked)) > 1e-9:
                    yield f"the certificate says {figure} of {text}"


def _held(classes: list[Counter[Any]], name: str, asked: Mapping[str, Any]) -> Iterator[str]:
    """What was asked for of a column, held against classes by what they hold."""
    limits = {
        "closeness": asked["t"].get(name, 1),
        "limit": asked.get("alpha", 1),
        "distinct": max(asked.get("l", {}).get(name, 1), asked.get("p", 1)),
        "entropy": asked.get("entropy", {}).get(name, 1),
        "recursive": asked.get("recursive", {}).get(name, [0, 1])[0],
    }
    for model, limit in limits.items():
        found = _figure(classes, model, name, asked)
        if found < limit - 1e-9 if model in ("distinct", "entropy", "recursive") else found > limit + 1e-9:
            yield f"people: {model} of {name} is {found}"
    for each in classes:
        yield from _likeness(each, sum(classes, Counter()), name, asked, "people: ")


def _figure(classes: list[Counter[Any]], model: str, name: str, asked: Mapping[str, Any]) -> float:
    """What the worst class has, by the words of a promise."""
    if "closeness" in model:
        whole = sum(classes, Counter())
        return float(max(_distance(held, whole, name, asked) for held in classes))
    if "likeness" in model or "disclosure" in model:
        whole = sum(classes, Counter())
        pairs = [(held[v] * whole.total() / (whole[v] * held.total())) for held in classes for v in whole]
        logs = [abs(math.log2(each)) if each else math.inf for each in pairs]
        return max(*pairs, 1.0) - 1 if "likeness" in model else max(logs)
    if "limit" in model:
        return max(max(held.values()) / held.total() for held in classes)
    if "entropy" in model:
        shares = [[count / held.total() for count in held.values()] for held in classes]
        return min(math.exp(-sum(p * math.log(p) for p in each)) for each in shares)
    if "recursive" in model:
        c = Fraction(repr(asked.get("recursive", {}).get(name, [0, 1])[1]))
        return min(_recursive(sorted(held.values(), reverse=True), c) for held in classes)
    return min(map(len, classes))


def _recursive(counts: list[int], c: Fraction) -> int:
    return max((l for l in range(1, len(counts) + 1) if counts[0] < c * sum(counts[l - 1 :])), default=0)


def _distance(held: Counter[Any], whole: Counter[Any], name: str, asked: Mapping[str, Any]) -> Fraction:
    """How far a class is from the table, by the distance that was asked for."""
    gaps = {v: Fraction(held[v], held.total()) - Fraction(whole[v], whole.total()) for v in whole}
    if asked["distance"][name] == "ordered":
        order = [v for v in map(_value, asked["ordered"][name]) if v in whole]
        return sum(map(abs, accumulate(gaps[v] for v in order)), Fraction(0)) / max(len(order) - 1, 1)
    levels = [{v: v for v in whole}]
    if asked["distance"][name] == "hierarchical":
        groups = {_value(text): group for text, group in asked["groups"][name].items()}
        levels.append({v: groups.get(v, ("", v)) for v in whole})
    moved = Fraction(0)
    for level in levels:
        labels: dict[Any, Fraction] = {}
        for v, gap in gaps.items():
            labels[level[v]] = labels.get(level[v], Fraction(0)) + gap
        moved += sum(map(abs, labels.values())) / 2
    return moved / len(levels)


def _grouped(rows: list[Row], known: list[str], of: Callable[[Row], Any]) -> list[set[Any]]:
    """What the rows that share some columns hold, each once."""
    found: dict[tuple[str, ...], set[Any]] = {}
    for row in rows:
        found.setdefault(tuple(row[n] for n in known), set()).add(of(row))
    return list(found.values())


def _value(text: str) -> Any:
    """A number as a number, but a code with a leading zero."""
    return Decimal(text.strip(" ")) if NUMBER.fullmatch(text.strip(" ")) else text


def rows_in(folder: Path, told: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a released file as text."""
    file = folder / told["release"]["file"]
    if file.suffix == ".parquet":
        from pyarrow import parquet

        table = parquet.ParquetFile(file).read()
        return [{k: "" if v is None else str(v) for k, v in row.items()} for row in table.to_pylist()]
    with file.open(encoding="utf-8", newline="") as lines:
        header, *rows = csv.reader(lines, delimiter=told["release"]["separator"])
    return [dict(zip(header, row or [""], strict=True)) for row in rows]


def main(checker_file: str, packages: str) -> None:
    """Answer every line."""
    checker = load(Path(checker_file))
    sys.path.append(packages)  # last, and without the hooks of site: pyarrow
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(list(falsehoods(checker, Path(asked["folder"]), asked))), flush=True)  # noqa: T201
    assert not [name for name, module in sys.modules.items() if name.startswith("kinfold") and module]


if __name__ == "__main__":
    main(*sys.argv[1:])
