"""The release folder: written next to the old one, verified from its file as a recipient would, then swapped in.

public/     release.csv · certificate.json · report.html · dictionary.json, .md · datapackage.json     may be shared
internal/   report.html · audit.json · policy.toml · people.parquet, with `privacy.unit`              stay private
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold import __version__
from kinfold.errors import KinfoldError, PolicyError, Problem, VerifyError
from kinfold.hierarchies import Hierarchy
from kinfold.models import CombinationAnonymity, CombinationConfidence
from kinfold.models.terms import ConfidentialColumn, Terms
from kinfold.policy.events import refuse_tables
from kinfold.policy.terms import list_texts
from kinfold.progress import StageProgress, run_in_thread
from kinfold.release.certificate import Certificate, certify, describe_people, read_form
from kinfold.release.inspection import check_frame, figures_agree, get_figures
from kinfold.release.publication import publish
from kinfold.release.release import Release
from kinfold.release.several_releases import list_people, write_people
from kinfold.tables import frames
from kinfold.tables.databases.address import DatabaseAddress
from kinfold.tables.engine import Engine, PartFolder, open_spark_engine
from kinfold.tables.frames import Snapshot
from kinfold.tables.points import Labels
from kinfold.tables.queries import number_texts
from kinfold.tables.readers.files import hash_file, hash_rows
from kinfold.tables.readers.linked_tables import LinkedFile, LinkedFiles
from kinfold.tables.recoding import NO_CLASS, Drop, Keep, Recoding, Treatment
from kinfold.tables.resources import parse_memory
from kinfold.tables.schema import normalize_category
from kinfold.verification import verify

if TYPE_CHECKING:
    from kinfold.tables.databases.transfer import TargetTable

MAX_ROWS_GROUPED_TWICE = 20_000_000  # of combinations of quasi-identifiers, all together: about half a minute
MAX_RECORDS_CHECKED_TWICE = 100_000  # larger releases are checked once: the plain Python checker takes too long


def save(
    release: Release,
    folder: Path,
    *,
    force: bool = False,
    into: DatabaseAddress | None = None,
    progress: StageProgress | None = None,
) -> Path:
    """Write a release folder and return its path; raise and change nothing if its file fails the check.

    `into` is a database table that is written and verified as well. With `progress`, the folder is written in a thread;
    it gets its name in the calling thread, which is not interrupted.
    """
    fill = partial(_fill, release, into)
    if progress is not None:
        fill = partial(_fill_in_thread, fill, progress)
    if into is None:
        publish(folder, fill, force=force)
    else:
        _save_with_table(release, folder, into, fill, force=force)
    return folder


def _fill_in_thread(fill: Callable[[Path, StageProgress], None], progress: StageProgress, folder: Path) -> None:
    run_in_thread(partial(fill, folder), progress)


def _save_with_table(
    release: Release, folder: Path, into: DatabaseAddress, fill: Callable[[Path], None], *, force: bool
) -> None:
    """Write the folder, then the table in a transaction that is committed just before the folder gets its name."""
    from kinfold.tables.databases.transfer import check_target, open_target

    refuse_tables(
        release.policy.request, "a release of several tables is not written to a database", "leave out --into"
    )
    check_target(into, force=force)
    targets: list[TargetTable] = []
    with ExitStack() as stack:

        def fill_both(new: Path) -> None:
            fill(new)
            targets.append(stack.enter_context(open_target(into, force=force)))
            with release.lock:
                _write_table(release, targets[0])

        try:
            publish(folder, fill_both, force=force, elsewhere=lambda: targets[0].commit())
        except KinfoldError as error:
            if not targets or not targets[0].committed:
                raise
            what = f"{into.description} of {into.place} is written and verified, but its folder is not"
            raise PolicyError([*error.problems, Problem(what, "release again with --force")]) from None


def _write_table(release: Release, target: TargetTable) -> None:
    """Write the released rows to a database table; raise unless the same rows are read back and keep every promise."""
    from kinfold.tables.duckdb.engine import DuckDB

    ordered = release.policy.request.output.order == "sorted"
    checksum = release.engine.write(release.released, target, release.output_schema, ordered=ordered)
    with DuckDB() as engine:
        frame = engine.read(target.rows)
        people = bool(release.terms.surrogates)
        figures = get_figures(verify(engine, frame, release.terms).require(), people=people)
        unchanged = frame.checksum == checksum and figures_agree(figures, get_figures(release.verdict, people=people))
    if not unchanged:
        what = f"the rows read back from {target.address.description} are not those that were written"
        raise VerifyError(what, fix="nothing was released; check whether the database changes values, and report this")


def _fill(release: Release, into: DatabaseAddress | None, folder: Path, progress: StageProgress | None = None) -> None:
    """Write all files, the certificate last of the public ones, and check them as a recipient would."""
    report = progress or (lambda *_: None)
    public, internal = folder / "public", folder / "internal"
    public.mkdir()
    internal.mkdir()
    output = release.policy.request.output
    target = _choose_target(release, public)
    file = target.folder if isinstance(target, PartFolder) else target
    with release.lock:
        report("write", 0, 1)
        ordered, quoted = output.order == "sorted", output.spreadsheet_safe
        for written, rows in _split_released(release, target):
            release.engine.write(rows, written, release.output_schema, ordered=ordered, quoted=quoted)
        report("report", 0, 1)
        documents = _write_documents(release, file, internal)
        report("check", 0, 1)
        twice = release.verdict.records * _count_groupings(release.terms) <= MAX_ROWS_GROUPED_TWICE
        twice &= release.verdict.records <= MAX_RECORDS_CHECKED_TWICE
        _certify_file(release, file, documents, twice=twice)
        audit = _build_audit(release, file) | {"checked_twice": twice} | ({"into": str(into)} if into else {})
        text = json.dumps(audit, indent=2, ensure_ascii=False) + "\n"
        (internal / "audit.json").write_text(text, encoding="utf-8")
        policy = release.policy.record_choices(release.plan.method, release.plan.steps)
        (internal / "policy.toml").write_text(policy.toml(), encoding="utf-8")
        write_people(list_people(release), internal)


def _choose_target(release: Release, public: Path) -> Path | PartFolder:
    """Return the file to write, or the new folder of part files."""
    output = release.policy.request.output
    if output.parts is None:
        return public / f"release.{output.format}"
    (public / "release").mkdir()
    size = parse_memory(output.parts) if isinstance(output.parts, str) else None
    return PartFolder(public / "release", f".{output.format}", None if size else int(output.parts), size)


def _split_released(release: Release, target: Path | PartFolder) -> Iterator[tuple[Path | PartFolder, Any]]:
    """Yield each file to write and its rows: those of the main table, then of each linked table, one for a person."""
    frame, parts = release.released, release.original.parts
    if parts is None or isinstance(target, PartFolder):
        yield target, frame
        return
    file = target
    unit, policy = release.terms.unit, release.policy.request
    linked = {name for columns in parts.columns for name in columns}
    _, first = np.unique(number_texts(release.engine, frame, str(unit)), return_index=True)
    main = np.where(np.flatnonzero(release.recoding.kept) < parts.rows, 0, NO_CLASS).astype(np.int32)
    once = np.full(len(main), NO_CLASS, np.int32)
    once[first] = 0
    yield file, _select(release, main, {*frame.names} - linked)
    for name, columns in zip(policy.tables, parts.columns, strict=True):
        yield file.with_stem(name), _select(release, once, {unit, *columns})


def _select(release: Release, labels: Labels, names: Collection[str | None]) -> Any:
    """Return some columns of the released rows that have a label."""
    frame = release.released
    treated: dict[str, Treatment] = {name: Keep() if name in names else Drop() for name in frame.names}
    return release.engine.apply(frame, Recoding(labels, treated), release.engine.schema(frame))


def _count_groupings(terms: Terms) -> int:
    """Return how often the plain checker groups all rows for the promises about combinations, or 1."""
    sizes = [model.size for model in terms.models if isinstance(model, CombinationAnonymity | CombinationConfidence)]
    return max(sum(math.comb(len(terms.quasi), min(size, len(terms.quasi))) for size in sizes), 1)


def _certify_file(release: Release, file: Path, documents: Sequence[Path], *, twice: bool) -> None:
    """Read the written file, certify it, and check the public folder as a recipient would."""
    form = replace(read_form(_describe_form(release)), parts=file.is_dir())
    release.engine.close(only_counts=True)  # frees memory: the check counts again
    with _open_checker(release, file) as engine:
        frame = engine.read(_find_written(release, file), form=form)
        certificate = _build_certificate(release, engine, frame, documents, file)
        (file.parent / "certificate.json").write_text(certificate.text(), encoding="utf-8")
        check_frame(file.parent, engine, frame, twice=twice).require()


def _open_checker(release: Release, file: Path) -> Any:
    """Start the engine that reads what was written; the parts of a cluster are checked in the cluster."""
    from kinfold.tables.duckdb.engine import DuckDB

    policy, in_cluster = release.policy.request, frames.is_spark(release.source)
    if file.is_dir() and (in_cluster or policy.engine.name == "spark"):
        master = policy.engine.master
        return open_spark_engine(release.source if in_cluster else None, master, policy.engine.resources)
    return DuckDB(policy.engine.resources.for_sources(_find_written(release, file)))


def _find_written(release: Release, file: Path) -> Path | LinkedFiles:
    """Return the written file, or the files that a recipient joins."""
    unit, names = str(release.terms.unit), release.policy.request.tables
    others = tuple(LinkedFile(file.with_stem(name), unit) for name in names)
    return LinkedFiles(file, unit, others) if others else file


def _build_certificate(
    release: Release, engine: Engine, frame: Any, documents: Sequence[Path], file: Path
) -> Certificate:
    """Verify the written file, compare the figures with those of the rows in memory, and return the certificate."""
    verdict = verify(engine, frame, release.terms).require()
    people = bool(release.terms.surrogates)
    if not figures_agree(get_figures(verdict, people=people), get_figures(release.verdict, people=people)):
        what = "the figures of the file are not those of the rows before they were written"
        raise VerifyError(what, fix="nothing was released; please report this")
    output, plan = release.policy.request.output, release.plan
    entry: dict[str, Any] = {"file": file.name, "sha256": frame.checksum, "order": output.order}
    if frame.files:
        entry["parts"] = [{"file": part.name, "sha256": part.checksum, "records": part.rows} for part in frame.files]
    if frame.parts is not None:
        linked = [file.with_stem(name) for name in release.policy.request.tables]
        entry["sha256"] = hash_file(file)  # the check that follows reads the same bytes
        entry["tables"] = [
            {"file": each.name, "sha256": hash_file(each), "columns": list(columns)}
            for each, columns in zip(linked, frame.parts.columns, strict=True)
        ]
    entry |= _describe_form(release)
    entry |= describe_people(release.terms, release.verdict, keyed=output.surrogate_secret is not None)
    if plan.gap is not None:
        entry["within"] = float(f"{plan.gap:.6f}")  # share above the lowest possible loss
    if plan.blocks:
        entry["blocks"] = plan.blocks  # the method ran on blocks, not on the whole table
    report, *others = ({"file": document.name, "sha256": hash_file(document)} for document in documents)
    files: dict[str, Any] = {"release": entry, "report": report, "documents": others}
    confidential = tuple(_restrict_to_released(column, engine, frame) for column in release.terms.confidential)
    if release.earlier:
        files["earlier"] = [table.checksum for table in release.earlier]
    return certify(release.policy, replace(release.terms, confidential=confidential), verdict, files, plan.method)


def _describe_form(release: Release) -> dict[str, Any]:
    """Return the separator of a CSV file, its decimal mark if it is not a point, and whether formulas are quoted."""
    form, output = release.released.form, release.policy.request.output
    entry: dict[str, Any] = {}
    if output.format == "csv":
        entry = {"separator": release.released.separator} | ({"decimal": form.decimal} if form.decimal != "." else {})
    return entry | ({"quoted": True} if output.spreadsheet_safe else {})


def _restrict_to_released(column: ConfidentialColumn, engine: Engine, frame: Any) -> ConfidentialColumn:
    """Return a confidential column whose order and hierarchy hold only released values."""
    if column.hierarchy is None and column.order is None:
        return column
    values = {*map(normalize_category, list_texts(engine, frame, column.name))}
    if column.order is not None:
        column = replace(column, order=tuple(text for text in column.order if normalize_category(text) in values))
    if column.hierarchy is None:
        return column
    if not values:
        return replace(column, distance="equal", hierarchy=None)
    rows = [row for row in column.hierarchy.labels if normalize_category(row[0]) in values]
    return replace(column, hierarchy=Hierarchy(np.array(rows, object)))


def _write_documents(release: Release, file: Path, internal: Path) -> tuple[Path, ...]:
    """Write both reports and the data dictionary; return the public files, the report first."""
    from kinfold.release.dictionary import write_dictionary
    from kinfold.release.report.description import ReleaseContents, describe
    from kinfold.release.report.page import write_page

    contents, report = ReleaseContents(release), file.parent / "report.html"
    report.write_text(write_page(describe(contents, internal=False)), encoding="utf-8")
    (internal / "report.html").write_text(write_page(describe(contents, internal=True)), encoding="utf-8")
    return report, *write_dictionary(contents, file, _describe_form(release))


def _build_audit(release: Release, file: Path) -> dict[str, Any]:
    """Return a complete record of how a release was made. It must stay private."""
    policy, plan, measures = release.policy.request, release.plan, release.measures
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "kinfold": __version__,
        "source": _describe_source(release),
        "release": {"file": file.name, "sha256": hash_rows(file)},
        "seed": policy.method.seed,
        **{key: getattr(plan, key) for key in ("method", "reason", "repaired", "steps")},
        "refined": round(plan.refine_seconds, 3),
        "gap": plan.gap,
        "curve": [[round(seconds, 3), share, bound] for seconds, share, bound in plan.curve],
        "blocks": plan.blocks,
        "notes": list(plan.notes),
        "seconds": round(release.seconds, 3),
        "verdict": release.verdict.to_dict(),
        "measures": measures.to_dict(),
        "statistics": measures.statistics.to_dict(),
        "warnings": list(measures.warnings),
        "rules": [asdict(rule) for rule in release.rules],
        "policy": policy.model_dump(mode="json", exclude_none=True),
        **({"review": release.policy.describe_review()} if policy.review.model_fields_set else {}),
    }


def _describe_source(release: Release) -> dict[str, Any]:
    """Return the name and checksum of a file, the address and checksum of database rows, or the kind of frame."""
    source, checksum = release.source, release.original.checksum
    if isinstance(source, Path):
        linked = [each.file.name for each in release.policy.request.tables.values()]
        return {"file": source.name, **({"tables": linked} if linked else {}), "sha256": checksum}
    if isinstance(source, DatabaseAddress):
        return {"database": str(source), "rows": checksum}
    return {"frame": source.module if isinstance(source, Snapshot) else type(source).__module__}
