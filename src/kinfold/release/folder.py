"""The release folder: written beside the old one, verified from its file as a recipient would, then exchanged with it.

public/     release.csv · certificate.json · report.html      what may leave
internal/   report.html · audit.json · policy.toml            what must not
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold import __version__
from kinfold.errors import KinfoldError, PolicyError, Problem, VerifyError
from kinfold.hierarchy import Hierarchy
from kinfold.models.terms import Confidential
from kinfold.progress import Stage, attended
from kinfold.release.certificate import Certificate
from kinfold.release.certification import certify, form_in
from kinfold.release.database_table import write_table
from kinfold.release.inspection import check_read, figures, same
from kinfold.release.publication import publish
from kinfold.release.release import Release
from kinfold.request.terms import held_texts
from kinfold.rows.categories import category
from kinfold.rows.databases.address import DatabaseAddress
from kinfold.rows.engines import Engine
from kinfold.rows.engines.source import digest
from kinfold.rows.frames import Snapshot
from kinfold.verification import verify

if TYPE_CHECKING:
    from kinfold.rows.databases.target import TargetTable

CHECKED_TWICE = 100_000  # records up to which a second checker, in plain Python, has to agree


def save(
    release: Release,
    folder: Path,
    force: bool = False,
    into: DatabaseAddress | None = None,
    progress: Stage | None = None,
) -> Path:
    """Write a release folder and return where it is; raise, and leave everything as it was, if its file fails.

    Where a table of a database is named it is written too, and what was written verified before anybody sees it.
    What somebody listens to is made in a thread of its own; it gets its name in the calling one, where nobody stops it.
    """
    fill = partial(_fill_alone, release, into)
    made = fill if progress is None else partial(_heeded, fill, progress)
    if into is None:
        publish(folder, made, force=force)
    else:
        _save_both(release, folder, into, made, force=force)
    return folder


def _heeded(fill: Callable[[Path, Stage], None], progress: Stage, made: Path) -> None:
    from kinfold.rows.engines.connection import watched

    with watched() as watch:
        attended(partial(fill, made), progress, watch)


def _save_both(
    release: Release, folder: Path, into: DatabaseAddress, made: Callable[[Path], None], *, force: bool
) -> None:
    """Make the folder, then the table in a transaction that stays open until the folder is about to get its name."""
    from kinfold.rows.databases.target import check_target, opened_target

    check_target(into, force=force)
    targets: list[TargetTable] = []
    with ExitStack() as stack:

        def fill(place: Path) -> None:
            made(place)
            targets.append(stack.enter_context(opened_target(into, force=force)))
            with release.lock:
                write_table(release, targets[0])

        try:
            publish(folder, fill, force=force, elsewhere=lambda: targets[0].commit())
        except KinfoldError as error:
            if not targets or not targets[0].committed:
                raise
            what = f"{into.described} of {into.place} is written and verified, but its folder is not"
            raise PolicyError([*error.problems, Problem(what, "release again with --force")]) from None


def _unheard(stage: str, done: int, total: int) -> None:
    """Listen to nothing."""


def _fill_alone(release: Release, into: DatabaseAddress | None, made: Path, tell: Stage = _unheard) -> None:
    """Write everything while no other thread asks the engine."""
    with release.lock:
        _fill(release, into, made, tell)


def _fill(release: Release, into: DatabaseAddress | None, made: Path, tell: Stage) -> None:
    """Write everything, the certificate last of the public part, and check it as a recipient would, twice."""
    public, internal = made / "public", made / "internal"
    public.mkdir()
    internal.mkdir()
    output = release.policy.request.output
    file = public / f"release.{output.format}"
    tell("write", 0, 1)
    release.engine.write(release.released, file, release.written, ordered=output.order == "sorted")
    tell("report", 0, 1)
    _write_reports(release, public, internal)
    tell("check", 0, 1)
    twice = release.verdict.records <= CHECKED_TWICE
    _certify(release, file, public, twice=twice)
    more: dict[str, Any] = {"checked_twice": twice} | ({"into": str(into)} if into else {})
    (internal / "audit.json").write_text(_json(audit(release, file) | more), encoding="utf-8")
    (internal / "policy.toml").write_text(
        release.policy.applied(release.plan.method, release.plan.steps).toml(), encoding="utf-8"
    )


def _certify(release: Release, file: Path, public: Path, *, twice: bool) -> None:
    """Read the file as written, write down what is found on it, and check the whole as a recipient would."""
    from kinfold.rows.engines.duckdb import DuckDB

    form = form_in(_marks(release) if file.suffix == ".csv" else {})
    limits = release.policy.request.engine.resources.of(file)
    release.engine.forget_counts()  # the check counts anew, and holds as much
    with DuckDB(limits) as engine:
        frame = engine.read(file, form=form)  # values may hold what separates fields elsewhere
        certificate = _certified(release, engine, frame, public / "report.html")
        (public / "certificate.json").write_text(certificate.text(), encoding="utf-8")
        check_read(public, engine, frame, twice=twice).require()


def _certified(release: Release, engine: Engine, frame: Any, report: Path) -> Certificate:
    """Verify the file as written, compare that with what was found on the rows, and write it down."""
    verdict = verify(engine, frame, release.terms).require()
    shown = tuple(_shown(column, engine, frame) for column in release.terms.confidential)
    if not same(figures(verdict), figures(release.verdict)):
        what = "what is found on the file is not what was found on the rows before they were written"
        raise VerifyError(what, fix="nothing was released; please report this")
    output = release.policy.request.output
    told: dict[str, Any] = {"file": f"release.{output.format}", "sha256": engine.checksum(frame), "order": output.order}
    told |= _marks(release) if output.format == "csv" else {}
    if release.verdict.people:
        unit = release.policy.request.privacy.unit
        counted = [{"promise": f.promise, "asked": f.asked, "found": f.found} for f in release.verdict.people]
        told |= {"people": {"counted_by": unit, "checked": "before that column was removed", "promises": counted}}
    if release.plan.gap is not None:
        told["within"] = float(f"{release.plan.gap:.6f}")  # of the least loss possible
    if release.plan.blocks:
        told["blocks"] = release.plan.blocks  # that the classes were made in: not what the method makes of the whole
    files = {"release": told, "report": {"file": report.name, "sha256": digest(report)}}
    return certify(release.policy, replace(release.terms, confidential=shown), verdict, files, release.plan.method)


def _marks(release: Release) -> dict[str, str]:
    """Return what stands between the fields of a CSV file, and in its numbers where that is no point."""
    decimal = release.engine.form(release.released).decimal
    told = {"separator": release.engine.separator(release.released)}
    return told | ({"decimal": decimal} if decimal != "." else {})


def _shown(column: Confidential, engine: Engine, frame: Any) -> Confidential:
    """Return a confidential column whose order and hierarchy have the released values and no other."""
    if column.hierarchy is None and column.order is None:
        return column
    values = {*map(category, held_texts(engine, frame, column.name))}
    if column.order is not None:
        column = replace(column, order=tuple(text for text in column.order if category(text) in values))
    if column.hierarchy is None:
        return column
    if not values:
        return replace(column, distance="equal", hierarchy=None)
    rows = [row for row in column.hierarchy.labels if category(row[0]) in values]
    return replace(column, hierarchy=Hierarchy(np.array(rows, object)))


def _write_reports(release: Release, public: Path, internal: Path) -> None:
    from kinfold.measures.catalogue import CATALOGUE
    from kinfold.release.description import Contents, describe
    from kinfold.release.report.page import page

    contents = Contents(release)
    (public / "report.html").write_text(page(describe(contents, internal=False)), encoding="utf-8")
    (internal / "report.html").write_text(page(describe(contents, internal=True), CATALOGUE), encoding="utf-8")


def audit(release: Release, file: Path | None = None) -> dict[str, Any]:
    """Return everything there is to know about how a release was made; it must not leave."""
    policy = release.policy.request
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "kinfold": __version__,
        "source": _source(release),
        "release": {"file": file.name, "sha256": digest(file)} if file else None,
        "seed": policy.method.seed,
        "method": release.plan.method,
        "reason": release.plan.reason,
        "repaired": release.plan.repaired,
        "steps": release.plan.steps,
        "refined": round(release.plan.refined, 3),
        "gap": release.plan.gap,
        "blocks": release.plan.blocks,
        "notes": list(release.plan.notes),
        "seconds": round(release.seconds, 3),
        "verdict": release.verdict.to_dict(),
        "measures": release.measures.to_dict(),
        "statistics": release.measures.statistics.to_dict(),
        "warnings": list(release.measures.warnings),
        "rules": [asdict(rule) for rule in release.rules],
        "policy": policy.model_dump(mode="json", exclude_none=True),
    }


def _source(release: Release) -> dict[str, Any]:
    """Say what the original was: a file or rows of a database with their checksum, or what kind of frame."""
    source, checksum = release.source, release.engine.checksum(release.original)
    if isinstance(source, Path):
        return {"file": source.name, "sha256": checksum}
    if isinstance(source, DatabaseAddress):
        return {"database": str(source), "rows": checksum}
    return {"frame": source.module if isinstance(source, Snapshot) else type(source).__module__}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
