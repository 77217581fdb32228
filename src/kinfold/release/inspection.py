"""Inspection: a release checked from its public folder alone, as its recipient does, by one checker or by two.

files       those that the certificate lists, unchanged, and no others
certificate of the expected shape, with promises; its figures are those that are found
rows        grouped again from the file, every promise asked; by a recipient's own policy too, where one is given
twice       the plain checker, which shares no code with this one, finds the same
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from kinfold import checker
from kinfold.errors import DataError, KinfoldError, PolicyError, Problem, VerifyError
from kinfold.models.terms import Terms
from kinfold.models.verdict import Verdict
from kinfold.release.certificate import Certificate
from kinfold.release.certification import check_shape, form_in, stated, terms_in
from kinfold.release.recoded_values import with_recoded_values
from kinfold.request.policy import Policy
from kinfold.request.terms import terms_of_release
from kinfold.rows.engines import Engine
from kinfold.rows.engines.source import digest
from kinfold.rows.text_warnings import formulas
from kinfold.verification import verify

AskMore: TypeAlias = Callable[[Certificate], Policy]


class Checked(NamedTuple):
    """What was found, and the certificate that said it."""

    verdict: Verdict
    certificate: Certificate


def check_folder(
    folder: Path,
    policy: AskMore | None = None,
    *,
    rows_only: bool = False,
    require_people: bool = False,
    twice: bool = False,
) -> Checked:
    """Verify a release from its public folder alone: checksums, promises, and what the certificate says was found.

    `policy` makes a recipient's own policy of the certificate: the release is judged by it as well. What is promised of
    people cannot be checked without the column that names them: the verdict says so, unless `rows_only` leaves it
    aside, and fails if `require_people`, or if the recipient asks for people and the certificate does not mention any.
    """
    from kinfold.rows.engines.duckdb import DuckDB
    from kinfold.rows.resources import Resources

    public = public_part(folder)
    certificate = read_certificate(public)
    _check_files(public, certificate)
    told = certificate.content["release"]
    with DuckDB(Resources().of(public / told["file"])) as engine:
        frame = engine.read(public / told["file"], form=form_in(told))
        verdict, terms = _checked(public, certificate, engine, frame, twice=twice), terms_in(certificate)
        if policy is not None:
            asked = policy(certificate)
            more = terms_of_release(asked, engine, frame)
            require_people |= more.unit is not None and terms.unit is None
            verdict, terms = verdict.also(verify(engine, frame, more)), replace(terms, unit=terms.unit or more.unit)
            verdict = with_recoded_values(verdict, engine, frame, asked)
            verdict = spreadsheet_safe(verdict, engine, frame) if asked.output.spreadsheet_safe else verdict
    return Checked(verdict if rows_only else verdict.of_rows(terms.unit, required=require_people), certificate)


def check_read(public: Path, engine: Engine, frame: Any, *, twice: bool) -> Verdict:
    """Verify a release whose file an engine has read already, as its recipient does; people are left aside."""
    certificate = read_certificate(public)
    _check_files(public, certificate)
    return _checked(public, certificate, engine, frame, twice=twice)


def _checked(public: Path, certificate: Certificate, engine: Engine, frame: Any, *, twice: bool) -> Verdict:
    """Hold what was read against the certificate, by one checker or by two."""
    if engine.checksum(frame) != certificate.content["release"]["sha256"]:
        raise VerifyError("the release was changed while it was read", fix="do not use this file")
    verdict = verify(engine, frame, terms_in(certificate))
    _require_same(verdict, certificate)
    if twice:
        require_agreement(verdict, checker.examine(public))
    return verdict


def spreadsheet_safe(verdict: Verdict, engine: Engine, frame: Any) -> Verdict:
    """Add what a spreadsheet would run of a table to what is wrong with it."""
    found = [Problem(told, "do not open this file in a spreadsheet") for told in formulas(engine, frame, safe=False)]
    return replace(verdict, problems=(*verdict.problems, *found))


def check_table(source: Any, engine: Engine, frame: Any, verdict: Verdict, terms: Terms) -> None:
    """Ask the plain checker about a table that has no certificate; raise unless it finds the same."""
    form, plain = engine.form(frame), isinstance(source, str | Path) and Path(source).suffix in (".csv", ".parquet")
    if not plain or form.encoding not in (None, "utf-8") or form.thousands or engine.blanked(frame):
        raise PolicyError(
            "the second checker reads CSV and Parquet files in UTF-8, without words for missing or marks for thousands",
            fix="save the table as one, or leave --twice",
        )
    if verdict.problems:
        return
    release = {"separator": form.between_fields, "decimal": form.decimal, "records": verdict.records}
    release["classes"] = verdict.classes
    told = {**stated(terms, verdict), "release": release}
    require_agreement(verdict, checker.consider(Path(source), told))


def was_sorted(path: Path) -> bool:
    """Whether a certificate beside a file says that the rows of that file were sorted."""
    try:
        told = read_certificate(path.parent).content["release"]
    except KinfoldError:
        return False
    return bool(told["file"] == path.name and told["order"] == "sorted")


def public_part(folder: Path) -> Path:
    """Return the public part of a release folder, or the folder itself where it is that part."""
    return folder / "public" if (folder / "public").is_dir() else folder


def read_certificate(public: Path) -> Certificate:
    """Read the certificate of a public folder, and check that it is one."""
    file = public / "certificate.json"
    try:
        if not file.is_file():  # a device or a pipe may never end
            raise FileNotFoundError
        certificate = Certificate.read(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        raise DataError(
            f"no certificate can be read in '{public}'", fix="name the folder of a release: DIR or DIR/public"
        ) from None
    check_shape(certificate)
    return certificate


def _check_files(public: Path, certificate: Certificate) -> None:
    """Compare the files of a public folder with those that the certificate lists."""
    listed = {
        certificate.content[key]["file"]: certificate.content[key]
        for key in ("release", "report")
        if certificate.content.get(key)
    }
    released = certificate.content["release"]["file"]
    if not (public / released).is_file():
        raise DataError(f"'{released}' is not in '{public}'", fix="ask for the release again")
    problems = [
        Problem(
            f"'{entry.name}' is in '{public}', but the certificate does not list it",
            "remove it, or find out what it is",
        )
        for entry in sorted(public.iterdir())
        if entry.name not in {*listed, "certificate.json"}
    ]
    problems += [
        Problem(f"'{name}' was changed after its certificate was made", "do not use this file")
        for name, told in listed.items()
        if (public / name).exists() and not _is(public / name, told["sha256"])
    ]
    if problems:
        raise VerifyError(problems)


def _is(file: Path, checksum: str) -> bool:
    """Whether a file holds these bytes; what is no file holds none: a pipe may never end."""
    return file.is_file() and digest(file) == checksum


def _require_same(verdict: Verdict, certificate: Certificate) -> None:
    """Raise if what a certificate says was found is not what is there."""
    content = certificate.content
    told = {"found": content["found"], "promises": [_words(promise) for promise in content["promises"]]}
    told |= {key: content["release"][key] for key in ("records", "classes")}
    if not verdict.problems and not same(figures(verdict), told):
        fix = "do not use this file"
        missed = [Problem(finding.promise + " does not hold", fix) for finding in verdict.findings if not finding.holds]
        differs = Problem("what the certificate says was found is not what is there", fix)
        raise VerifyError([differs, *missed])


def figures(verdict: Verdict) -> dict[str, Any]:
    """Return every figure of a verdict that a certificate repeats."""
    promises = [{"promise": f.promise, "asked": f.asked, "found": f.found} for f in verdict.findings]
    found = {"k": verdict.k, "l": dict(verdict.l), "t": dict(verdict.t)}
    return {"found": found, "promises": promises, "records": verdict.records, "classes": verdict.classes}


def _words(promise: Mapping[str, Any]) -> dict[str, Any]:
    return {key: promise[key] for key in ("promise", "asked", "found")}


def require_agreement(verdict: Verdict, plain: Mapping[str, Any]) -> None:
    """Raise unless the plain checker found what the engine found."""
    ours = figures(verdict) | {"holds": not verdict.problems and all(f.holds for f in verdict.findings)}
    promises = [_words(promise) for promise in plain["promises"]]
    found = {key: plain["found"].get(key) for key in ours["found"]}
    theirs = {key: plain[key] for key in ours} | {"promises": promises, "found": found}
    if not same(ours, theirs):
        differ = [key for key in ours if not same(ours[key], theirs[key])]
        second = f" (the second says: {'; '.join(plain['problems'])})" if plain["problems"] else ""
        what = f"the two checkers do not agree on {', '.join(differ)}{second}"
        raise VerifyError(what, fix="do not use this file; please report this")


def same(found: Any, told: Any) -> bool:
    """Whether two findings agree; numbers with decimals to nine digits: another machine may round the last ones."""
    if isinstance(found, dict) and isinstance(told, dict):
        return found.keys() == told.keys() and all(same(found[key], told[key]) for key in found)
    if isinstance(found, list) and isinstance(told, list):
        return len(found) == len(told) and all(map(same, found, told))
    if isinstance(found, float) and isinstance(told, int | float):
        return math.isclose(found, told, rel_tol=1e-9, abs_tol=1e-12)
    return bool(found == told)
