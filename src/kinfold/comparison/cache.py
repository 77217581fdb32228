"""The cache of results: one file a setting, named by what it was made of, written beside and then renamed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from kinfold import __version__
from kinfold.comparison.outcome import Outcome, Setting
from kinfold.disk.exchange import naming
from kinfold.errors import DataError, PolicyError, require_ordinary
from kinfold.request.policy import Policy
from kinfold.rows.databases.address import DatabaseAddress, located
from kinfold.rows.frames import to_arrow


@dataclass(frozen=True)
class ResultCache:
    """A folder of results and the fingerprint of what they are results of."""

    folder: Path
    key: str

    @classmethod
    def of(cls, folder: Path, source: Any, policy: Policy) -> ResultCache:
        """Take the fingerprint of a table and a policy."""
        found = hashlib.sha256(__version__.encode())
        for part in (*_policy_parts(policy), *_table_parts(source)):
            found.update(len(part).to_bytes(8, "big"))
            found.update(part)
        return cls(folder, found.hexdigest()[:16])

    def recall(self, setting: Setting) -> Outcome | None:
        """Return what is kept of a setting; a file that cannot be read is as good as none."""
        try:
            told = json.loads(self._place(setting).read_text(encoding="utf-8"))
            return Outcome(setting, told["measures"], told["failure"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def remember(self, outcome: Outcome) -> None:
        """Keep an outcome; whoever is stopped meanwhile leaves no half of it."""
        place = self._place(outcome.setting)
        beside = place.with_suffix(".part")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps({"measures": outcome.measures, "failure": outcome.failure}), encoding="utf-8")
            with naming(place, f"what was compared so far is kept in '{self.folder}'"):
                beside.replace(place)
        except OSError as error:
            raise PolicyError(f"cannot write '{self.folder}': {error.strerror}", fix="choose another folder") from error

    def _place(self, setting: Setting) -> Path:
        t = "" if setting.t is None else f"-t{setting.t!r}"
        return self.folder / f"{self.key}-{setting.method}-k{setting.k}{t}.json"


def _policy_parts(policy: Policy) -> Iterator[bytes]:
    """Yield the policy without what settings decide (method, k), and the hierarchy files that it names."""
    method = policy.method.model_copy(update={"name": "auto"})
    privacy = policy.privacy.model_copy(update={"k": 2})
    yield policy.model_copy(update={"method": method, "privacy": privacy}).model_dump_json().encode()
    for column in policy.columns.values():
        if column.hierarchy and column.hierarchy.file:
            yield _digest(column.hierarchy.file)


def _table_parts(source: Any) -> Iterator[bytes]:
    found = located(source) if isinstance(source, str) else source
    if isinstance(found, Path):
        yield _digest(found)
        return
    if isinstance(found, DatabaseAddress):
        yield _rows_in(found)
        return
    table = to_arrow(source)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    yield hashlib.sha256(sink.getvalue()).digest()


def _rows_in(address: DatabaseAddress) -> bytes:
    from kinfold.flow import open_engine

    with open_engine() as engine:
        return str(engine.checksum(engine.read(address))).encode()


def _digest(path: Path) -> bytes:
    require_ordinary(path, DataError(f"'{path}' is no ordinary file", fix="save the table to a file first"))
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise DataError(f"'{path}' cannot be read: {error.strerror}", fix="check the path and its rights") from None
