"""Whatever bytes come, a reader ends in a result or in an error of kinfold that tells no value of the data."""

import copy
import json
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.readers import (
    MARKER,
    POLICY,
    SETTINGS,
    TABLE,
    certificate,
    packed,
    read_certificate,
    read_csv,
    read_hierarchy,
    read_policy,
    read_project,
    read_settings,
    sealed,
    study,
)

SCALE = float(os.environ.get("KINFOLD_TRUST_SCALE", "1"))
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
pytestmark = pytest.mark.timeout(600)


def some(cases: int) -> settings:
    return settings(max_examples=max(1, int(cases * SCALE)), suppress_health_check=SLOW)


FIELDS = st.one_of(
    st.sampled_from(["", " ", '""', '"', '"a', 'a"b', "NULL", "nan", "-inf", "-0.0", "1e400", "0x1F", "007", "1_000"]),
    st.sampled_from(["2024-02-30", "0000-00-00", "99999-01-01", "2024-01-01T25:00", "12:60", "=1+1", "\x1b[31m", "\0"]),
    st.sampled_from(
        [MARKER, f'"{MARKER}\n{MARKER}"', "9" * 400, "1" * 20, "1." + "0" * 50 + "1", "é", "\u202e", "\ufeff"]
    ),
    st.integers(-(10**6), 10**6).map(str),
    st.floats(allow_nan=True).map(repr),
    st.text(max_size=4),
)
LINES = st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=12)


@some(40)
@given(LINES, st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n", "\r", "\n\n"]), st.booleans())
def test_any_rows_under_a_header(lines: list[list[str]], separator: str, end: str, marked: bool) -> None:
    rows = [["a", "b", "c"], *lines]
    text = end.join(separator.join(row) for row in rows)
    read_csv(text.encode("utf-8-sig" if marked else "utf-8", "surrogatepass"))


@pytest.mark.slow
@some(30)
@given(st.binary(max_size=200), st.integers(0, len(TABLE)))
def test_any_bytes_in_a_table(junk: bytes, place: int) -> None:
    data = TABLE.encode()
    first = data.index(b"\n") + 1  # a header that is none is another matter
    place = max(place, first)
    read_csv(data[:place] + junk + data[place:])


@some(20)
@given(st.binary(max_size=300))
def test_any_bytes_as_a_table(junk: bytes) -> None:
    read_csv(junk)


VALUES = st.sampled_from(
    """
    0; -1; 3; 0.5; 1e308; nan; inf; true; 1979-05-27; 99999999999999999999; ""; "x"; []; {}; [[]]; ["low"]
    ["low", "low"]
    { mask = 2 }; { mask = 1000000000 }; { intervals = [1e-9] }; { intervals = [] }; { dates = ["month"] }
    { levels = [["a"], ["b", "c"]] }; { tree = { a = { b = {} } } }; { file = "/" }; { file = "policy.toml" }
    { file = "\\u0000" }; "generalize"; "quasi"; "date"; "star"; "entropy"; "lattice"; "median"; "separate"; "ordered"
    """.replace("\n", ";").split(";")
)
KEYS = st.sampled_from(
    [
        *("k", "t", "l", "p", "c", "alpha", "unit", "joint", "l_kind"),
        *("name", "refine", "refine_steps", "suppression", "seed", "objective", "levels", "choices", "prove"),
        *("role", "type", "missing", "order", "average", "hierarchy", "weight", "distance"),
        *("round", "preserve", "others", "suppressed", "format"),
    ]
)
SECTIONS = st.sampled_from(
    ["privacy", "method", "output", "columns", "columns.age", "columns.zip", "columns.level", "columns.disease"]
)


@some(60)
@given(st.lists(st.tuples(SECTIONS, KEYS, VALUES), min_size=1, max_size=4))
def test_a_policy_with_odd_values(changes: list[tuple[str, str, str]]) -> None:
    lines = POLICY.splitlines()
    for section, key, value in changes:
        if f"[{section}]" not in lines:
            lines.append(f"[{section}]")
        start = lines.index(f"[{section}]") + 1
        end = next((i for i in range(start, len(lines)) if lines[i].startswith("[")), len(lines))
        kept = [line for line in lines[start:end] if not line.startswith(f"{key} =")]
        lines[start:end] = [*kept, f"{key} = {value}"]
    read_policy("\n".join(lines).encode())


@some(40)
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")), st.data())
def test_a_policy_with_any_bytes_in_it(junk: bytes, data: st.DataObject) -> None:
    whole = POLICY.encode()
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 40, len(whole))))
    read_policy(whole[:start] + junk + whole[end:])


LABELS = st.sampled_from(["*", "", "a", "b", "a*", '"', '"a;b"', "\n", "é", "\0", "1-2"]) | st.text(max_size=3)


@some(60)
@given(st.lists(st.lists(LABELS, max_size=4), max_size=8), st.sampled_from(";,"), st.binary(max_size=3))
def test_any_hierarchy_file(rows: list[list[str]], separator: str, junk: bytes) -> None:
    text = "\n".join(separator.join(row) for row in rows)
    read_hierarchy(text.encode("utf-8", "surrogatepass") + junk)


PARTS = study()


@some(50)
@given(st.data())
def test_any_project_of_arx(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(PARTS)))
    whole = PARTS[name]
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 60, len(whole))))
    junk = data.draw(
        st.sampled_from([b"", b"<a/>", b"<!DOCTYPE x>", b"&#0;", b"-1", b"1e999", b";", b"\xff\xfe", b'"'])
    )
    read_project(packed({**PARTS, name: whole[:start] + junk + whole[end:]}))


@some(60)
@given(st.data())
def test_any_settings_of_other_tools(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from(SETTINGS))
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(start + 60, len(whole))))
    odd = [b"", b"<a/>", b"<li>", b"&#0;", b"nan", b"1e999", b'"', b"c(", b")", b"\xff\xfe", b"\0", b"createSdcObj("]
    junk = data.draw(st.sampled_from(odd))
    read_settings(whole[:start] + junk + whole[end:])


@some(30)
@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=8))
def test_any_bytes_of_an_archive(place: int, junk: bytes) -> None:
    whole = packed(PARTS)
    place %= len(whole)
    read_project(whole[:place] + junk + whole[place + len(junk) :])


@some(40)
@given(
    st.binary(max_size=100) | st.recursive(st.none() | st.integers() | st.text(max_size=3), st.lists).map(json.dumps)
)
def test_any_certificate(text: bytes | str) -> None:
    read_certificate(text if isinstance(text, bytes) else text.encode())


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 10**20)
    | st.floats()
    | st.sampled_from(["", "age", "disease", "ordered"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["k", "t", "name"]), inner, max_size=2),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in inside for place in places(part, (*path, key)))]


def test_the_certificate_that_is_changed_below_is_good() -> None:
    read_certificate(sealed(certificate()))


@some(60)
@given(st.data())
def test_a_certificate_with_a_checksum_of_its_own_and_odd_values(data: st.DataObject) -> None:
    content = copy.deepcopy(certificate())
    *way, last = data.draw(st.sampled_from(places(content)[1:]))
    holder: Any = content
    for key in way:
        holder = holder[key]
    if data.draw(st.booleans()):
        del holder[last]
    else:
        holder[last] = data.draw(JSON)
    read_certificate(sealed(content))
