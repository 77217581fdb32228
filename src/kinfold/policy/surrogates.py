"""Surrogates: keys in the place of the numbers of people, so that a recipient can follow a person without a name.

A key is random and fresh in each release, and the table that links it to the original is not kept. With a secret file
it is a keyed hash of the original (BLAKE2b): releases with one secret have the same keys. It cannot be computed or
tested by anyone who does not have the secret. Nothing else about the original goes into a key. A missing value stays
missing: all rows without a number count as one person.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kinfold.errors import PolicyError
from kinfold.policy.model import Policy
from kinfold.policy.preparation import PreparedTable
from kinfold.tables.engine import Engine
from kinfold.tables.queries import replace_categories

RANDOM_BYTES = 10  # 80 bits: two of a billion people have one key with a probability below one in a million
HASH_BYTES = 16  # 128 bits: no two people get one key by chance
MIN_SECRET_BYTES = 32
MAX_SECRET_BYTES = 1 << 20
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
