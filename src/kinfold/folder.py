"""The release folder: written beside the old one, verified from its file as a recipient would, then exchanged with it.

public/     release.csv · certificate.json · report.html      what may leave
internal/   report.html · audit.json · policy.toml            what must not
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kinfold import __version__
from kinfold.certificate import certify, terms_in
from kinfold.engines import Engine
from kinfold.errors import DataError, KinfoldError, Problem, VerifyError
from kinfold.hierarchy import Hierarchy
from kinfold.publication import publish
from kinfold.release import Certificate, Confidential, Verdict
from kinfold.verification import verify

if TYPE_CHECKING:
    from kinfold.flow import Release

CHUNK = 1 << 20


def save(release: Release, folder: Path, *, force: bool = False) -> Path:
    """Write a release folder and return where it is; raise, and leave everything as it was, if its file fails."""
    publish(folder, lambda made: _fill(release, made), force=force)
    return folder


def check_folder(folder: Path) -> tuple[Verdict, Certificate]:
    """Verify a release from its public folder alone: the checksums, the promises, and what the certificate found."""
    from kinfold.engines.duckdb import DuckDB

    public = folder / "public" if (folder / "public").is_dir() else folder
    certificate = _certificate(public)
    told = certificate.content["release"]
    path = public / Path(told["file"]).name
    if not path.is_file():
        raise DataError(f"'{told['file']}' is not in '{public}'", fix="ask for the release again")
    if digest(path) != told["sha256"]:
        raise VerifyError(f"'{path.name}' was changed after its certificate was made", fix="do not use this file")
    with DuckDB() as engine:
        verdict = verify(engine, engine.read(path), terms_in(certificate))
    if not _same(_found(verdict), certificate.content["found"]):
        missed = [Problem(finding.promise + " does not hold") for finding in verdict.findings if not finding.holds]
        differs = Problem("what the certificate says was found is not what is there", "do not use this file")
        raise VerifyError([differs, *verdict.problems, *missed])
    return verdict, certificate


def was_sorted(path: Path) -> bool:
    """Whether a certificate beside a file says that the rows of that file were sorted."""
    try:
        told = Certificate.read((path.parent / "certificate.json").read_text(encoding="utf-8")).content["release"]
    except (OSError, KinfoldError):
        return False
    return bool(told["file"] == path.name and told["order"] == "sorted")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _certificate(public: Path) -> Certificate:
    try:
        return Certificate.read((public / "certificate.json").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise DataError(
            f"no certificate can be read in '{public}'", fix="name the folder of a release: DIR or DIR/public"
        ) from None


def _fill(release: Release, made: Path) -> None:
    public, internal = made / "public", made / "internal"
    public.mkdir()
    internal.mkdir()
    output = release.policy.policy.output
    file = public / f"release.{output.format}"
    release.engine.write(release.released, file, release.schema, ordered=output.order == "sorted")
    certificate = _certified(release, file)
    (public / "certificate.json").write_text(certificate.text(), encoding="utf-8")
    verdict, _ = check_folder(public)
    verdict.require()
    _write_reports(release, public, internal)
    (internal / "audit.json").write_text(_json(audit(release, file)), encoding="utf-8")
    (internal / "policy.toml").write_text(
        release.policy.applied(release.plan.method, release.plan.steps).toml(), encoding="utf-8"
    )


def _certified(release: Release, file: Path) -> Certificate:
    """Verify the file as written, then write down what was found on it."""
    from kinfold.engines.duckdb import DuckDB

    with DuckDB() as engine:
        frame = engine.read(file)
        verdict = verify(engine, frame, release.terms).require()
        shown = tuple(_shown(column, engine, frame) for column in release.terms.confidential)
    told: dict[str, Any] = {"file": file.name, "sha256": digest(file), "order": release.policy.policy.output.order}
    if release.verdict.people:
        unit = release.policy.policy.privacy.unit
        counted = [{"promise": f.promise, "asked": f.asked, "found": f.found} for f in release.verdict.people]
        told |= {"people": {"counted_by": unit, "checked": "before that column was removed", "promises": counted}}
    if release.plan.gap is not None:
        told["within"] = float(f"{release.plan.gap:.6f}")  # of the least loss possible
    return certify(release.policy, replace(release.terms, confidential=shown), verdict, told, release.plan.method)


def _shown(column: Confidential, engine: Engine, frame: Any) -> Confidential:
    """Return a confidential column whose hierarchy has the released values and no other."""
    if column.hierarchy is None:
        return column
    values = engine.collect(frame, {column.name: None}).column(0).drop_null().unique().to_pylist()
    if not values:
        return replace(column, distance="equal", hierarchy=None)
    rows = np.sort(column.hierarchy.index(values))
    return replace(column, hierarchy=Hierarchy(column.hierarchy.labels[rows]))


def _write_reports(release: Release, public: Path, internal: Path) -> None:
    from kinfold.description import describe
    from kinfold.measures.catalogue import CATALOGUE
    from kinfold.report.page import page

    (public / "report.html").write_text(page(describe(release, internal=False)), encoding="utf-8")
    (internal / "report.html").write_text(page(describe(release, internal=True), CATALOGUE), encoding="utf-8")


def audit(release: Release, file: Path | None = None) -> dict[str, Any]:
    """Return everything there is to know about how a release was made; it must not leave."""
    source = release.source if isinstance(release.source, Path) else None
    policy = release.policy.policy
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "kinfold": __version__,
        "source": {"file": source.name, "sha256": digest(source)}
        if source
        else {"frame": type(release.source).__module__},
        "release": {"file": file.name, "sha256": digest(file)} if file else None,
        "seed": policy.method.seed,
        "method": release.plan.method,
        "reason": release.plan.reason,
        "repaired": release.plan.repaired,
        "steps": release.plan.steps,
        "gap": release.plan.gap,
        "notes": list(release.plan.notes),
        "seconds": round(release.seconds, 3),
        "verdict": release.verdict.to_dict(),
        "measures": release.measures.to_dict(),
        "statistics": release.measures.statistics.to_dict(),
        "warnings": list(release.measures.warnings),
        "policy": policy.model_dump(mode="json", exclude_none=True),
    }


def _found(verdict: Verdict) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps({"k": verdict.k, "l": dict(verdict.l), "t": dict(verdict.t)}))
    return found


def _same(found: Any, told: Any) -> bool:
    """Whether two findings agree; numbers with decimals to nine digits: another machine may round the last ones."""
    if isinstance(found, dict) and isinstance(told, dict):
        return found.keys() == told.keys() and all(_same(found[key], told[key]) for key in found)
    if isinstance(found, float) and isinstance(told, int | float):
        return math.isclose(found, told, rel_tol=1e-9, abs_tol=1e-12)
    return bool(found == told)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
