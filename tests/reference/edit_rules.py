"""Rules drawn at random: a text, and the same as plain Python that answers True, False or None for a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from math import isclose
from typing import Any, NamedTuple

from hypothesis import strategies as st

Row = Mapping[str, Any]
ORDER = ("low", "mid", "high")
DAYS = st.integers(0, 9).map(lambda n: date(2024, 2, 25) + timedelta(days=n))


class Drawn(NamedTuple):
    """A part of a rule: its text, and what it is for a row."""

    text: str
    of: Callable[[Row], Any]


def same(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)


RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": same,
    "!=": lambda a, b: not same(a, b),
    "<": lambda a, b: a < b and not same(a, b),
    "<=": lambda a, b: a < b or same(a, b),
    ">": lambda a, b: a > b and not same(a, b),
    ">=": lambda a, b: a > b or same(a, b),
}
TEXTS = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b}


def column(name: str, quoted: bool = False) -> Drawn:
    return Drawn(f"`{name}`" if quoted else name, lambda row: row[name])


def literal(text: str, value: Any) -> Drawn:
    return Drawn(text, lambda _: value)


def known(compute: Callable[..., Any], *parts: Drawn) -> Callable[[Row], Any]:
    """Compute where everything is known."""

    def of(row: Row) -> Any:
        values = [part.of(row) for part in parts]
        return None if None in values else compute(*values)

    return of


def computed(sign: str, a: Drawn, b: Drawn) -> Drawn:
    compute = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y}[sign]
    return Drawn(f"({a.text} {sign} {b.text})", known(compute, a, b))


def related(sign: str, a: Drawn, b: Drawn) -> Drawn:
    return Drawn(f"{a.text} {sign} {b.text}", known(RELATIONS[sign], a, b))


numbers = st.recursive(
    st.one_of(
        st.sampled_from([column("a"), column("b"), column("the c", quoted=True)]),
        st.integers(0, 9).map(lambda n: literal(str(n), n)),
        st.sampled_from([literal("2.5", 2.5), literal("-3", -3)]),
    ),
    lambda inner: st.builds(computed, st.sampled_from("+-*"), inner, inner),
    max_leaves=4,
)
dates = st.one_of(
    st.sampled_from([column("d"), column("e")]),
    DAYS.map(lambda day: literal(f'"{day}"', day)),
    DAYS.map(lambda day: literal(f"{day}", day)),
)


def ordered_dates(sign: str, first: Drawn, second: Drawn) -> Drawn:
    number = [
        Drawn("", lambda row, p=part: None if p.of(row) is None else p.of(row).toordinal()) for part in (first, second)
    ]
    return Drawn(f"{first.text} {sign} {second.text}", known(RELATIONS[sign], *number))


def apart(limit: int) -> Drawn:
    return Drawn(f"e - d <= {limit}", known(lambda e, d: (e - d).days <= limit, column("e"), column("d")))


def ranked(sign: str, name: str) -> Drawn:
    place = known(lambda text: ORDER.index(text), column("level"))
    return Drawn(f'level {sign} "{name}"', known(RELATIONS[sign], Drawn("", place), literal("", ORDER.index(name))))


def named(sign: str, text: str) -> Drawn:
    written = "'" + text.replace("'", "''") + "'"
    return Drawn(f"town {sign} {written}", known(TEXTS[sign], column("town"), literal("", text)))


def among(texts: list[str], denied: bool) -> Drawn:
    items = ", ".join(f'"{text}"' for text in texts)
    return Drawn(
        f"town {'not ' if denied else ''}in ({items})", known(lambda t: (t in texts) != denied, column("town"))
    )


def missing(name: str, denied: bool) -> Drawn:
    return Drawn(f"{name} is {'not ' if denied else ''}missing", lambda row: (row[name] is None) != denied)


TOWNS = st.sampled_from(["x", "y", "o'k", "--"])
relations = st.one_of(
    st.builds(related, st.sampled_from([*RELATIONS]), numbers, numbers),
    st.builds(ordered_dates, st.sampled_from([*RELATIONS]), st.sampled_from([column("d"), column("e")]), dates),
    st.integers(-3, 5).map(apart),
    st.builds(ranked, st.sampled_from([*RELATIONS]), st.sampled_from(ORDER)),
    st.builds(named, st.sampled_from([*TEXTS]), TOWNS),
    st.builds(among, st.lists(TOWNS, min_size=1, max_size=3), st.booleans()),
    st.builds(missing, st.sampled_from(["a", "town", "d"]), st.booleans()),
)


def denial(part: Drawn) -> Drawn:
    return Drawn(f"not ({part.text})", lambda row: None if part.of(row) is None else not part.of(row))


def junction(word: str, a: Drawn, b: Drawn) -> Drawn:
    def of(row: Row) -> bool | None:
        x, y = a.of(row), b.of(row)
        if word == "implies":
            x = None if x is None else not x
        stops = word == "and"  # what decides: a False of `and`, a True of `or`
        if (x is not None and x != stops) or (y is not None and y != stops):
            return not stops
        return None if x is None or y is None else stops

    return Drawn(f"({a.text}) {word} ({b.text})", of)


rules = st.recursive(
    relations,
    lambda inner: st.one_of(
        inner.map(denial), st.builds(junction, st.sampled_from(["and", "or", "implies"]), inner, inner)
    ),
    max_leaves=5,
)
rows = st.fixed_dictionaries(
    {
        "a": st.one_of(st.none(), st.integers(-5, 9)),
        "b": st.one_of(st.none(), st.integers(-5, 9)),
        "the c": st.one_of(st.none(), st.sampled_from([0.5, 2.5, 3.0, -1.25])),
        "d": st.one_of(st.none(), DAYS),
        "e": st.one_of(st.none(), DAYS),
        "level": st.one_of(st.none(), st.sampled_from(ORDER)),
        "town": st.one_of(st.none(), TOWNS),
    }
)
