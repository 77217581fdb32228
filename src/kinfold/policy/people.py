"""Households and surrogates: columns that number the people of a table.

Households: an attribute of a household has at most one value in each household of the original; a column says otherwise
with `household = true` (then two values are an error) or `false`. A missing cell of such an attribute counts as the
value that another member shows, because a reader sees who lives together.

Surrogates: keys in the place of the numbers of people, so that a recipient can follow a person without a name. A key is
random and fresh in each release, and the table that links it to the original is not kept. With a secret file it is a
keyed hash of the original (BLAKE2b): releases with one secret have the same keys. It cannot be computed or tested by
anyone who does not have the secret. Nothing else about the original goes into a key. A missing value stays missing: all
rows without a number count as one person.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfold.errors import DataError, PolicyError, Problem, plural
from kinfold.models.terms import HouseholdTerms, Terms
from kinfold.policy.model import Policy
from kinfold.policy.preparation import PreparedTable
from kinfold.tables.engine import Engine
from kinfold.tables.queries import (
    count_value_pairs,
    fill_from_group,
    number_texts,
    replace_categories,
    unify_numbers,
)
from kinfold.tables.schema import Role
from kinfold.tables.tally import Ints


@dataclass(frozen=True, eq=False)
class Households:
    """The number of the household of each record, and the quasi-identifiers that belong to households."""

    attributes: tuple[str, ...]
    numbers: Ints
    groups: Ints | None = None  # the class of households of each record, once they are partitioned

    def take(self, rows: NDArray[np.intp]) -> Households:
        """Return the households of some records."""
        return replace(self, numbers=self.numbers[rows], groups=None if self.groups is None else self.groups[rows])

    def count(self, labels: NDArray[np.integer[Any]]) -> Ints:
        """Return the number of households in each class.

        >>> Households((), np.array([0, 0, 1, 2])).count(np.array([0, 0, 0, 1])).tolist()
        [2, 1]
        """
        numbers = np.unique(self.numbers, return_inverse=True)[1]
        width = int(numbers.max(initial=0)) + 1
        pairs = np.unique(np.asarray(labels, np.int64) * width + numbers)
        return np.bincount(pairs // width, minlength=int(labels.max(initial=-1)) + 1).astype(np.int64)


def unify_households(engine: Engine, prepared: PreparedTable, policy: Policy) -> PreparedTable:
    """Return the table in which 1 and 1.0 number one household."""
    name = policy.privacy.household
    if name is None or name not in prepared.frame.names:
        return prepared
    return replace(prepared, frame=unify_numbers(engine, prepared.frame, name))


def find_household_terms(engine: Engine, frame: Any, policy: Policy) -> HouseholdTerms | None:
    """Return what belongs to households in a table; None if the policy names no households."""
    name = policy.privacy.household
    schema = engine.schema(frame)
    if name is None or name not in schema:
        return None
    if nulls := schema[name].nulls:
        what = f"privacy.household: {plural(nulls, 'record has', 'records have')} no household number"
        raise DataError(what, fix="give each a number: a person who lives alone is a household")
    problems: list[Problem] = []
    attributes = tuple(_list_attributes(engine, frame, policy, problems))
    if problems:
        raise DataError(problems)
    return HouseholdTerms(name, attributes, policy.privacy.household_k)


def _list_attributes(engine: Engine, frame: Any, policy: Policy, problems: list[Problem]) -> Iterator[str]:
    household = str(policy.privacy.household)
    for name, column in policy.for_columns(frame.names).columns.items():
        if column.role is not Role.QUASI or name not in frame.names or column.household is False:
            continue
        pairs, present = count_value_pairs(engine, frame, household, name)
        if pairs == present:
            yield name
        elif column.household:
            where = plural(pairs - present, "value too many", "values too many")
            what = f"columns.{name}: household is true, but not every household has one value: {where}"
            problems.append(Problem(what, "correct the values, or leave household out"))


def fill_households(engine: Engine, prepared: PreparedTable, terms: HouseholdTerms | None) -> PreparedTable:
    """Return the table in which a missing cell has the value that another member of the household shows."""
    if terms is None:
        return prepared
    schema = engine.schema(prepared.frame)
    names = [name for name in terms.attributes if schema[name].nulls]
    frame, counts = fill_from_group(engine, prepared.frame, terms.column, names)
    notes = tuple(
        f"'{name}': {plural(cells, 'missing cell is', 'missing cells are')} filled from another member of the household"
        for name, cells in counts.items()
    )
    changed = {**dict.fromkeys(counts, True), **prepared.changed}
    return replace(prepared, frame=frame, changed=changed, notes=(*prepared.notes, *notes))


def number_households(engine: Engine, frame: Any, terms: Terms) -> Households | None:
    """Return the household of each record, if the policy names households."""
    if terms.household is None:
        return None
    return Households(terms.household.attributes, number_texts(engine, frame, terms.household.column))


RANDOM_BYTES = 10  # 80 bits: two of a billion people have one key with a probability below one in a million
HASH_BYTES = 16  # 128 bits: no two people get one key by chance
MIN_SECRET_BYTES = 32  # 128 bits, if they are written as hexadecimal digits
MAX_SECRET_BYTES = 1 << 20  # a larger file is hardly a secret
MAKE_SECRET = "make one with: python -c 'import secrets; print(secrets.token_hex(32))'"  # noqa: S105  a hint
RANDOM_NOTE = "random, fresh in this release"
KEYED_NOTE = "a keyed hash, the same in every release with this secret"


def add_surrogates(engine: Engine, prepared: PreparedTable, policy: Policy) -> PreparedTable:
    """Return the table with a surrogate in the place of each number of a person, if the policy wants them."""
    names = [name for name in policy.surrogates if name in prepared.frame.names]
    if not names:
        return prepared
    secret = policy.output.surrogate_secret
    note = RANDOM_NOTE if secret is None else KEYED_NOTE
    notes = tuple(f"'{name}': each value is replaced by a surrogate ({note})" for name in names)
    frame = prepared.frame
    for name in names:
        whose = b"" if name == policy.privacy.unit else b"household"
        frame = replace_categories(engine, frame, name, make_keys(secret, name, whose))
    return replace(
        prepared,
        frame=frame,
        changed={**prepared.changed, **dict.fromkeys(names, False)},
        notes=(*prepared.notes, *notes),
        public_notes=(*prepared.public_notes, *notes),
    )


def make_keys(secret: Path | None, name: str, whose: bytes = b"") -> Callable[[str], str]:
    """Return a function that gives each text its key: always the same one; other texts have others.

    A key starts with a letter, so that it is never a number, a date or a formula. `whose` keeps people and households
    apart: a person and a household with one number have other keys.
    """
    letter = next((char for char in name.casefold() if "a" <= char <= "z"), "p")
    if secret is not None:
        key = hashlib.blake2b(_read_secret(secret)).digest()
        return lambda text: (
            letter + hashlib.blake2b(text.encode(), digest_size=HASH_BYTES, key=key, person=whose).hexdigest()
        )
    known: dict[str, str] = {}

    def draw(text: str) -> str:
        if text not in known:
            known[text] = letter + secrets.token_hex(RANDOM_BYTES)
        return known[text]

    return draw


def _read_secret(path: Path) -> bytes:
    where = "output.surrogate_secret"
    try:
        if not path.is_file():  # reading a device or a pipe may never end
            raise FileNotFoundError
        with path.open("rb") as file:
            secret = file.read(MAX_SECRET_BYTES).strip()
    except OSError:
        raise PolicyError(f"{where}: the file '{path}' cannot be read", fix=MAKE_SECRET) from None
    if len(secret) < MIN_SECRET_BYTES:
        what = f"{where}: the file '{path}' has fewer than {MIN_SECRET_BYTES} bytes, so that it could be guessed"
        raise PolicyError(what, fix=MAKE_SECRET)
    return secret
