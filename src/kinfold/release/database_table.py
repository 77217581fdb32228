"""The release as a table of a database: written, read back in the same transaction, and verified as a file is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinfold.errors import VerifyError
from kinfold.release.inspection import figures, same
from kinfold.release.release import Release
from kinfold.verification import verify

if TYPE_CHECKING:
    from kinfold.rows.databases.target import TargetTable


def write_table(release: Release, target: TargetTable) -> None:
    """Write the rows as they leave, and raise unless what can be read back is that and keeps every promise."""
    from kinfold.rows.engines.duckdb import DuckDB

    sort = release.policy.request.output.order == "sorted"
    handed = release.engine.hand_out(release.released, release.written, target.fitted, ordered=sort)
    written = target.write(handed)
    with DuckDB() as engine:
        frame = engine.read(written)
        verdict = verify(engine, frame, release.terms).require()
        kept = engine.checksum(frame) == handed.checksum and same(figures(verdict), figures(release.verdict))
    if not kept:
        what = f"what can be read back from {target.address.described} is not what was written"
        raise VerifyError(what, fix="nothing was released; see whether the database changes values, and report this")
