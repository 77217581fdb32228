"""Projects of ARX: whatever they hold, they become a policy that can be read, or an error that says why not."""

from __future__ import annotations

import csv
import io
import tempfile
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from arx_projects import project, study
from kinfold.errors import DataError
from kinfold.interchange import Attribute, Project, convert, read_deid
from kinfold.request.policy import Policy
from kinfold.rows.schema import Role

TEXTS = st.text(max_size=8)
VALUES = TEXTS | st.sampled_from(["1", "2.5", "2024-01-02", "NULL", ""])
LEVELS = st.none() | st.integers(0, 2)


@st.composite
def projects(draw: Any) -> Project:
    names = draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3, unique=True))
    rows = draw(st.lists(st.tuples(*(VALUES for _ in names)), min_size=1, max_size=4))
    data = io.StringIO(newline="")
    csv.writer(data, delimiter=";", lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([names, *rows])
    attributes = []
    for place, name in enumerate(names):
        tree = tuple((value, draw(TEXTS)) for value in {row[place] for row in rows}) if draw(st.booleans()) else ()
        attributes.append(
            Attribute(
                name,
                draw(st.sampled_from(list(Role))),
                draw(st.sampled_from(["String", "Ordinal", "Integer", "Decimal", "Date"])),
                draw(TEXTS),
                tree,
                lowest=draw(LEVELS),
                highest=draw(LEVELS),
                weight=draw(st.sampled_from([None, 0.0, 0.5])),
                averaged=draw(st.sampled_from(["", "Median"])),
            )
        )
    return Project(draw(TEXTS), "3.7.0", data.getvalue().encode(), ";", tuple(attributes), metric=draw(TEXTS))


@given(given_project=projects())
@settings(deadline=None)
def test_every_project_becomes_a_policy_that_is_read_back_with_its_columns(given_project: Project) -> None:
    made = convert(given_project)
    policy = Policy.parse(tomllib.loads(made.policy))
    assert list(policy.columns) == [attribute.name for attribute in given_project.attributes]
    assert [column.role for column in policy.columns.values()] == [each.role for each in given_project.attributes]
    files = {str(column.hierarchy.file) for column in policy.columns.values() if column.hierarchy}
    assert files == {f"hierarchies/{name}" for name in made.hierarchies}
    assert not any("/" in name or name.startswith(".") for name in made.hierarchies)


@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_file_with_broken_bytes_is_read_or_refused_and_nothing_else(flips: list[tuple[float, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = project(Path(folder), study())
        data = bytearray(path.read_bytes())
        for place, change in flips:
            data[int(place * len(data))] ^= change
        path.write_bytes(data)
        with suppress(DataError):
            assert convert(read_deid(path)).policy
