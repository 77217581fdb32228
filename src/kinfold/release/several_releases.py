"""Several releases of the same people: what they disclose together, and the file that says who is in which class.

`internal/people.parquet` lists the class and the confidential values of each person of a release whose policy names
people (`privacy.unit`). With it the holder compares releases exactly, and a later release keeps the classes of an
earlier one (`anonymize --after`). It holds a hash of each person's number, which can be reversed by trying numbers.

A recipient has only `public/`. Surrogates that link the releases say who is in which class. Without them every class is
compared with its nearest class in the other release, by the quasi-identifiers of both: an estimate.

What they disclose: the attacker knows the quasi-identifiers of a person, and in which of the releases the person is.

    candidates   the people who are in every class, of every release, that the person is in. k-anonymity of each
                 release sets no lower bound on their number
    values       what the confidential value of the person can be: the class of the person holds it in every release.
                 If keys link the rows of the releases, one of the candidates holds it

Cost: O(n s) for n people with s classes each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from kinfold.errors import DataError, PolicyError, Problem, VerifyError
from kinfold.methods.task import EarlierClasses
from kinfold.models.verdict import JointDisclosure
from kinfold.policy.model import Policy
from kinfold.policy.table import Table
from kinfold.release.certificate import read_form, read_terms
from kinfold.release.inspection import (
    find_public_folder,
    find_released,
    read_certificate,
    read_checked_certificate,
)
from kinfold.release.release import Release
from kinfold.tables import frames
from kinfold.tables.engine import Engine
from kinfold.tables.queries import number_rows
from kinfold.tables.recoding import NO_CLASS
from kinfold.tables.schema import AS_TEXT, Role, normalize_category
from kinfold.tables.tally import Ints, Spread, Tally, encode_values

ValueSet: TypeAlias = frozenset[int]


@dataclass(frozen=True, eq=False)
class PeopleInClasses:
    """A release as rows: the person and the class of each row, and the code of each confidential value."""

    person: Ints
    label: Ints
    values: Mapping[str, Ints] = field(default_factory=dict)

    def list_places(self) -> list[list[int]]:
        """Return the distinct pairs of a person and a class."""
        return np.unique(np.column_stack([self.person, self.label]), axis=0).tolist()  # type: ignore[no-any-return]

    def list_value_sets(self, name: str) -> list[ValueSet]:
        """Return the set of values of each class."""
        pairs = np.unique(np.column_stack([self.label, self.values[name]]), axis=0)
        cuts = np.searchsorted(pairs[:, 0], np.arange(1, int(self.label.max(initial=-1)) + 1))
        return [frozenset(part[:, 1].tolist()) for part in np.split(pairs, cuts)]


def find_candidates(releases: Sequence[PeopleInClasses]) -> dict[int, frozenset[int]]:
    """Return for each person in several of the releases the people who are in all of the person's classes.

    >>> march = PeopleInClasses(np.array([1, 2, 3, 4]), np.array([0, 0, 1, 1]))
    >>> april = PeopleInClasses(np.array([1, 2, 3, 5]), np.array([0, 1, 1, 0]))
    >>> {person: [*others] for person, others in find_candidates([march, april]).items()}
    {1: [1], 2: [2], 3: [3]}
    """
    members: dict[tuple[int, int], set[int]] = {}
    places: dict[int, list[tuple[int, int]]] = {}
    for number, release in enumerate(releases):
        for person, label in release.list_places():
            members.setdefault((number, label), set()).add(person)
            places.setdefault(person, []).append((number, label))
    shared: dict[tuple[tuple[int, int], ...], frozenset[int]] = {}
    candidates = {}
    for person, classes in sorted(places.items()):
        if classes[0][0] != classes[-1][0]:  # in several releases
            key = tuple(classes)
            if key not in shared:
                shared[key] = frozenset.intersection(*(frozenset(members[place]) for place in key))
            candidates[person] = shared[key]
    return candidates


def list_candidate_values(releases: Sequence[PeopleInClasses], name: str) -> dict[int, ValueSet]:
    """Return for each person in several releases the values of their candidates.

    That is what a reader concludes who can tell which rows of the releases are of one person.

    >>> march = PeopleInClasses(np.array([1, 2]), np.array([0, 0]), {"ill": np.array([7, 8])})
    >>> list_candidate_values([march, PeopleInClasses(np.array([1]), np.array([0]), {"ill": np.array([7])})], "ill")
    {1: frozenset({7})}
    """
    held: dict[int, set[int]] = {}
    for release in releases:
        for person, value in zip(release.person.tolist(), release.values[name].tolist(), strict=True):
            held.setdefault(person, set()).add(value)
    candidates = find_candidates(releases)
    values = {each: frozenset[int]().union(*map(held.__getitem__, each)) for each in {*candidates.values()}}
    return {person: values[each] for person, each in candidates.items()}


def list_value_sets(releases: Sequence[PeopleInClasses], name: str) -> dict[int, list[ValueSet]]:
    """Return for each person, for each release that they are in, the values that their class holds.

    A person with several classes in one release may hold the values of any of them.

    >>> march = PeopleInClasses(np.array([1, 2]), np.array([0, 0]), {"ill": np.array([7, 8])})
    >>> list_value_sets([march], "ill") == {1: [{7, 8}], 2: [{7, 8}]}
    True
    """
    sets: dict[int, list[ValueSet]] = {}
    for release in releases:
        classes, of_person = release.list_value_sets(name), dict[int, ValueSet]()
        for person, label in release.list_places():
            of_person[person] = of_person.get(person, frozenset()) | classes[label]
        for person, values in of_person.items():
            sets.setdefault(person, []).append(values)
    return sets


PEOPLE_FILE = "people.parquet"
DIGEST_BYTES = 16  # of a person: two of 10^12 people are equal with a probability of 10^-15
PERSON, CLASS = "person", "class"  # columns of the file; confidential columns follow as "value of NAME"
VALUE_PREFIX = "value of "
MAX_RECORDS_WITH_PEOPLE = 2_000_000  # more are not held in one place
MAX_DISTANCES_HELD = 10_000_000  # pairs of classes whose distances are held at a time: some 100 MB


@dataclass(frozen=True, eq=False)
class ReleasedPeople:
    """Who is in which class of a release: one row for each row of the release that has a person."""

    name: str
    checksum: str  # of the released file
    person: NDArray[Any]  # hashes, or surrogates
    label: NDArray[np.int64]
    values: Mapping[str, NDArray[Any]]  # text, normalized: 1 and 1.0 are equal
    keyed: bool = False  # whether its surrogates are the same in every release with its secret

    def take(self, rows: NDArray[Any]) -> ReleasedPeople:
        """Return some of the rows."""
        values = {name: texts[rows] for name, texts in self.values.items()}
        return replace(self, person=self.person[rows], label=self.label[rows], values=values)


def hash_people(texts: Sequence[str]) -> list[str]:
    """Return a hash of each person's number; equal texts of numbers (1 and 1.0) are one person.

    >>> hash_people(["7", "7.0"])[0] == hash_people(["7.0"])[0]
    True
    """
    return [hashlib.blake2b(normalize_category(t).encode(), digest_size=DIGEST_BYTES).hexdigest() for t in texts]


def collect_people(engine: Engine, original: Any, prepared: Any, unit: str, names: Sequence[str]) -> ReleasedPeople:
    """Return the people of a table and their confidential values, without classes; rows without a person have "".

    People are those of the original: surrogates may have replaced them in the prepared table.
    """
    people = [text or "" for text in engine.collect(original, {unit: AS_TEXT}).column(0).to_pylist()]
    texts = engine.collect(prepared, dict.fromkeys(names)) if names else None
    hashes = dict(zip({*people} - {""}, hash_people([*{*people} - {""}]), strict=True))
    person = np.array([hashes.get(text, "") for text in people], object)
    values = {} if texts is None else {name: _normalize(texts.column(name).to_pylist()) for name in names}
    return ReleasedPeople("", "", person, np.zeros(len(person), np.int64), values)


def list_people(release: Release) -> ReleasedPeople | None:
    """Return who is in which class; None if the policy names no people, or a cluster or a very large table has them."""
    unit, spark = release.policy.request.privacy.unit, release.policy.request.engine.name == "spark"
    if unit is None or spark or frames.is_spark(release.source) or release.verdict.records > MAX_RECORDS_WITH_PEOPLE:
        return None
    names = [column.name for column in release.terms.confidential]
    everyone = collect_people(release.engine, release.original, release.prepared.frame, unit, names)
    people = everyone.take(release.recoding.kept)
    people = replace(people, label=release.labels, keyed=release.policy.request.output.surrogate_secret is not None)
    return people.take(people.person != "")


def write_people(people: ReleasedPeople | None, internal: Path) -> None:
    """Write who is in which class, if the policy names people."""
    if people is not None:
        columns = {PERSON: pa.array(people.person), CLASS: pa.array(people.label)}
        columns |= {VALUE_PREFIX + name: pa.array(texts) for name, texts in people.values.items()}
        parquet.write_table(pa.table(columns), internal / PEOPLE_FILE)


def read_earlier_people(folders: Sequence[str | Path], policy: Policy, source: Any) -> list[ReleasedPeople]:
    """Return who is in which class of earlier releases; raise if one of them or the policy does not say who is who."""
    if not folders:
        return []
    if policy.privacy.unit is None:
        what = "a release after earlier ones must know who is who, and the policy has no privacy.unit"
        raise PolicyError(what, fix='name the column that identifies people: unit = "patient_id"')
    if policy.engine.name == "spark" or frames.is_spark(source):
        what = "a release after earlier ones needs all people in one place, and a cluster has them"
        raise PolicyError(what, fix='use engine.name = "duckdb"')
    if policy.method.people == "together":
        what = 'method.people = "together" cannot keep the classes of earlier releases yet'
        raise PolicyError(what, fix="leave out method.people, or release without earlier ones")
    tables = {str(folder): read_people(Path(folder)) for folder in folders}
    problems = [
        Problem(
            f"'{name}' does not say who is in which class", "name a release folder that has internal/people.parquet"
        )
        for name, table in tables.items()
        if table is None
    ]
    if problems:
        raise PolicyError(problems)
    return [table for table in tables.values() if table is not None]


def read_people(folder: Path) -> ReleasedPeople | None:
    """Return who is in which class of a release folder; None if it has no file of people."""
    file = find_public_folder(folder).resolve().parent / "internal" / PEOPLE_FILE
    if not file.is_file():
        return None
    try:
        table = _require_people(parquet.ParquetFile(file).read())
        person, label = (table.column(name).to_numpy(zero_copy_only=False) for name in (PERSON, CLASS))
        names = [name for name in table.column_names if name.startswith(VALUE_PREFIX)]
        values = {name.removeprefix(VALUE_PREFIX): _normalize(table.column(name).to_pylist()) for name in names}
    except (OSError, ValueError, KeyError):
        raise DataError(f"'{file}' cannot be read", fix="make the earlier release again") from None
    entry = read_certificate(find_public_folder(folder)).content["release"]
    return ReleasedPeople(folder.name, entry["sha256"], person, label.astype(np.int64), values, _is_keyed(entry))


def _is_keyed(entry: Mapping[str, Any]) -> bool:
    return (entry.get("people") or {}).get("surrogate") == "keyed"


def _require_people(table: pa.Table) -> pa.Table:
    """Return a table of people; raise if it has other types, or if a person or a class is missing."""
    person, label = table.column(PERSON), table.column(CLASS)
    texts = [person, *(table.column(name) for name in table.column_names if name.startswith(VALUE_PREFIX))]
    if not (pa.types.is_integer(label.type) and all(t.type in (pa.string(), pa.null()) for t in texts)):
        raise ValueError("other types")
    if person.null_count or label.null_count:
        raise ValueError("missing values")
    return table


def read_surrogates(folder: Path) -> ReleasedPeople | None:
    """Return who is in which class by the keyed surrogates in the released file; None if there are none."""
    from kinfold.tables.duckdb.engine import DuckDB

    public = find_public_folder(folder)
    certificate = read_certificate(public)
    entry, terms = certificate.content["release"], read_terms(certificate)
    if not _is_keyed(entry) or terms.unit is None:
        return None
    names = [column.name for column in terms.confidential]
    with DuckDB() as engine:
        frame = engine.read(find_released(public, certificate), form=read_form(entry))
        people = collect_people(engine, frame, frame, terms.unit, names)
        label = number_rows(engine, frame, terms.quasi).astype(np.int64)
    known = people.person != ""
    return replace(people, name=folder.name, checksum=entry["sha256"], label=label, keyed=True).take(known)


def _normalize(texts: Sequence[str | None]) -> NDArray[Any]:
    return np.array([text if text is None else normalize_category(text) for text in texts], object)


def build_earlier_classes(earlier: Sequence[ReleasedPeople], current: ReleasedPeople) -> EarlierClasses:
    """Return who of a table was in which class of earlier releases; `current` has no classes yet."""
    releases = number_releases([*earlier, current])
    people, places = releases[-1], [release.list_places() for release in releases[:-1]]
    classes: dict[int, list[tuple[int, int]]] = {}
    for number, pairs in enumerate(places):
        for person, label in pairs:
            classes.setdefault(person, []).append((number, label))
    groups: dict[tuple[tuple[int, int], ...], int] = {}
    present = [tuple(classes.get(person, ())) for person in people.person.tolist()]
    group = np.array([groups.setdefault(key, len(groups)) if key else NO_CLASS for key in present], np.int64)
    value_sets = {name: [release.list_value_sets(name) for release in releases[:-1]] for name in people.values}
    sets = [
        {name: frozenset().union(*(value_sets[name][n][c] for n, c in key if n == key[-1][0])) for name in value_sets}
        for key in groups
    ]
    return EarlierClasses(group, sets, people.values)


def number_releases(tables: Sequence[ReleasedPeople]) -> list[PeopleInClasses]:
    """Return releases with the same number for the same person and the same code for the same value."""
    people = np.unique(np.concatenate([table.person for table in tables]), return_inverse=True)[1]
    names = [name for name in tables[0].values if all(name in table.values for table in tables)]
    codes = {name: encode_values(np.concatenate([table.values[name] for table in tables]))[1] for name in names}
    ends = np.cumsum([0, *(len(table.person) for table in tables)])
    return [
        PeopleInClasses(people[a:b], table.label, {name: code[a:b] for name, code in codes.items()})
        for table, a, b in zip(tables, ends, ends[1:], strict=False)
    ]


def find_earlier_classes(table: Table, original: Any, earlier: Sequence[ReleasedPeople]) -> EarlierClasses:
    """Return who of a table was in which class of earlier releases."""
    policy = table.policy
    categories = [c.name for c in policy.with_role(Role.CONFIDENTIAL) if not c.kind.is_numeric]
    unit = policy.request.privacy.unit
    assert unit is not None  # noqa: S101  required by `read_earlier_people`
    return build_earlier_classes(earlier, collect_people(table.engine, original, table.frame, unit, categories))


def check_after(release: Release, earlier: Sequence[ReleasedPeople]) -> Release:
    """Return a release with what it discloses together with earlier ones; raise if a class has other values."""
    people = list_people(release)
    assert people is not None  # noqa: S101  the policy names people
    joint = summarize_disclosure([people, *earlier], release.policy.request.privacy.k)
    for name, figures in joint.values.items():
        if not release.policy[name].kind.is_numeric and figures["same_set"] < joint.people:
            changed = joint.people - figures["same_set"]
            what = f"{changed:,} people are in a class with other values of '{name}' than before"
            raise VerifyError(what, fix="nothing was released; please report this")
    plan = release.plan.prepend_notes(joint.sentences, ())
    return replace(release, plan=plan, verdict=replace(release.verdict, disclosure=joint), earlier=tuple(earlier))


def compare_releases(new: Path, earlier: Sequence[Path]) -> JointDisclosure:
    """Return what a release discloses together with earlier releases of the same people."""
    certificates = [read_checked_certificate(find_public_folder(folder)) for folder in (new, *earlier)]
    k = min(certificate.content["found"]["k"] for certificate in certificates)
    tables = [table for folder in (new, *earlier) if (table := read_people(folder)) is not None]
    if len(tables) <= len(earlier):
        tables = [table for folder in (new, *earlier) if (table := read_surrogates(folder)) is not None]
    if len(tables) > len(earlier):
        return summarize_disclosure(tables, k)
    if len(earlier) > 1:
        what = "these releases do not say who is in which class, so that only two of them can be compared"
        raise PolicyError(what, fix="name one other release: --with DIR")
    return estimate_disclosure(new, earlier[0], k)


def summarize_disclosure(tables: Sequence[ReleasedPeople], k: int) -> JointDisclosure:
    """Return what releases disclose together; the first one is the new release."""
    releases = number_releases(tables)
    linked = [release for release, table in zip(releases, tables, strict=True) if table.keyed]
    candidates = np.array([len(each) for each in find_candidates(releases).values()], np.int64)
    sizes, counts = np.unique(candidates, return_counts=True)
    values = {}
    for name in releases[0].values:
        possible = list_candidate_values(linked, name)
        values_of = {person: classes for person, classes in list_value_sets(releases, name).items() if len(classes) > 1}
        sets = [*values_of.values()]
        remaining = [
            len(frozenset.intersection(*classes, possible.get(person, classes[0])))
            for person, classes in values_of.items()
        ]
        values[name] = {
            "smallest": min(remaining, default=None),
            "one_left": sum(count <= 1 for count in remaining),
            "same_set": sum(len({*of_person}) == 1 for of_person in sets),
        }
    small = {int(size): int(count) for size, count in zip(sizes, counts, strict=True) if size < k}
    least = int(candidates.min()) if len(candidates) else None
    names = tuple(table.name for table in tables[1:])
    return JointDisclosure(names, len(candidates), k, least, small, values, linked=len(linked) > 1)


def estimate_disclosure(new: Path, other: Path, k: int) -> JointDisclosure:
    """Estimate what two releases disclose together: a person's class is the nearest one in the new release.

    Someone who is in both classes holds a value of both. So the people in both are at most the sum over the values of
    the smaller count, by the column for which it is smallest; a pair of classes without a common value has no people.
    """
    new_tally, other_tally = _tally_folder(new), _tally_folder(other)
    nearest = _find_nearest_classes(new_tally, other_tally)
    names = [name for name in other_tally.spreads if name in new_tally.spreads]
    shared = {name: _count_shared(new_tally.spreads[name], other_tally.spreads[name], nearest) for name in names}
    most = other_tally.sizes.copy()
    for counts, _, _ in shared.values():
        most = np.minimum(most, counts)
    both = most > 0
    values = {
        name: {
            "smallest": int(left[both].min()) if both.any() else None,
            "one_left": int(other_tally.sizes[both & (left == 1)].sum()),
            "same_set": int(other_tally.sizes[both & same].sum()),
        }
        for name, (_, left, same) in shared.items()
    }
    sizes = {int(n): int(other_tally.sizes[most == n].sum()) for n in np.unique(most[both & (most < k)])}
    least, people = int(most[both].min()) if both.any() else None, int(other_tally.sizes[both].sum())
    return JointDisclosure((other.name,), people, k, least, sizes, values, estimated=True)


def _tally_folder(folder: Path) -> Tally:
    """Return the classes of a release folder, with the counts of its confidential values."""
    from kinfold.tables.duckdb.engine import DuckDB

    public = find_public_folder(folder)
    certificate = read_certificate(public)
    entry, terms = certificate.content["release"], read_terms(certificate)
    with DuckDB() as engine:
        frame = engine.read(find_released(public, certificate), form=read_form(entry))
        return engine.tally(frame, terms.quasi, {column.name: AS_TEXT for column in terms.confidential})


def _find_nearest_classes(new_tally: Tally, other_tally: Tally) -> NDArray[np.int64]:
    """Return for each class of the other release the nearest class of the new one, by their common columns."""
    pairs = [_read_keys(other_tally, new_tally, name) for name in other_tally.keys if name in new_tally.keys]
    step, nearest = max(1, MAX_DISTANCES_HELD // max(len(new_tally), 1)), np.zeros(len(other_tally), np.int64)
    for start in range(0, len(other_tally), step):
        distances = np.zeros((len(nearest[start : start + step]), len(new_tally)))
        for one, other in pairs:
            part = one[start : start + step, None]
            distances += (part - other) ** 2 if part.dtype.kind == "f" else part != other
        nearest[start : start + step] = distances.argmin(axis=1)
    return nearest


def _read_keys(other_tally: Tally, new_tally: Tally, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a column of the classes of both releases: numbers in standard deviations, else texts."""
    texts = [["" if text is None else str(text) for text in tally.keys[name]] for tally in (other_tally, new_tally)]
    try:
        one, other = (np.array([float(text) for text in part]) for part in texts)
    except ValueError:  # not numbers
        return np.array(texts[0]), np.array(texts[1])
    spread = np.concatenate([one, other]).std() or 1.0
    return one / spread, other / spread


def _count_shared(new_spread: Spread, other_spread: Spread, nearest: NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """Return for each class the records and the values that it can share with its nearest class, and if all are."""
    counts = [dict[int, dict[str, int]](), dict[int, dict[str, int]]()]
    for spread, by_class in zip((new_spread, other_spread), counts, strict=True):
        for group, code, count in zip(spread.group, spread.code, spread.count, strict=True):
            by_class.setdefault(int(group), {})[str(spread.values[code])] = int(count)
    rows = [(counts[0][int(near)], counts[1][place]) for place, near in enumerate(nearest)]
    common = [[min(one[v], other[v]) for v in one.keys() & other.keys()] for one, other in rows]
    same = np.array([one.keys() == other.keys() for one, other in rows], np.bool_)
    return np.array([sum(each) for each in common]), np.array([len(each) for each in common]), same
