"""Inspection: check a release from its public folder alone, as its recipient does, with one checker or two.

files        the files that the certificate lists, unchanged, and no others
certificate  of the expected shape, with promises; its figures equal those measured on the file
rows         grouped again from the file, every promise checked; also by the recipient's own policy, if given
output keys  no value that the policy maps, limits or rounds is left unrecoded; no formulas in a spreadsheet-safe file
twice        the plain checker, which shares no code with this one, finds the same
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from kinfold import checker
from kinfold.errors import DataError, KinfoldError, PolicyError, Problem, VerifyError, plural
from kinfold.models.terms import Terms
from kinfold.models.verdict import Verdict
from kinfold.policy.model import ColumnPolicy, Policy
from kinfold.policy.terms import build_release_terms
from kinfold.release.certificate import Certificate, check_shape, describe_people, describe_terms, read_form, read_terms
from kinfold.tables.engine import Engine, open_spark_engine
from kinfold.tables.readers.files import combine_checksums, hash_file
from kinfold.tables.readers.linked_tables import LinkedFile, LinkedFiles
from kinfold.tables.recoding import ValueLimits, ValueMap, ValueRecoding
from kinfold.tables.schema import Column, Kind, Role, Storage
from kinfold.tables.text_values import describe_formulas
from kinfold.verification import verify

RecipientPolicy: TypeAlias = Callable[[Certificate], Policy]


def check_folder(
    folder: Path,
    policy: RecipientPolicy | None = None,
    *,
    rows_only: bool = False,
    require_people: bool = False,
    twice: bool = False,
) -> Verdict:
    """Verify a release from its public folder alone: checksums, promises, and the figures of the certificate.

    `policy` builds the recipient's own policy from the certificate; the release is checked against it as well. Promises
    about people cannot be checked without the column that names them. A note of the verdict says so, unless `rows_only`
    is set. The check fails if `require_people` is set, or if only the recipient's policy has a unit.
    """
    public = find_public_folder(folder)
    certificate = read_checked_certificate(public)
    own_policy = None if policy is None else policy(certificate)
    source, form = find_released(public, certificate), read_form(certificate.content["release"])
    with _open_engine(own_policy, source) as engine:
        frame = engine.read(source, form=form)
        verdict, terms = _check_rows(public, certificate, engine, frame, twice=twice), read_terms(certificate)
        if own_policy is not None:
            if own_policy.output.spreadsheet_safe and not form.quoted:
                frame = engine.read(source, form=replace(form, quoted=True))
            own_terms = build_release_terms(own_policy.expect_surrogates(terms.surrogates), engine, frame)
            require_people |= own_terms.unit is not None and terms.unit is None
            verdict = verdict.merge(verify(engine, frame, own_terms))
            terms = replace(terms, unit=terms.unit or own_terms.unit)
            verdict = check_output_keys(verdict, engine, frame, own_policy)
    verdict = replace(verdict, people=()) if rows_only else verdict
    verdict = verdict.add_people_note(None if rows_only else terms.unchecked_unit, required=require_people)
    stated = (certificate.content["release"].get("population") or {"promises": ()})["promises"]
    verdict = verdict.add_statement_notes(each["promise"] for each in stated)
    if review := certificate.content.get("review"):
        verdict = replace(verdict, notes=(*verdict.notes, review["statement"]))
    return verdict


def _open_engine(policy: Policy | None, source: Path | LinkedFiles) -> Any:
    """Start the engine that a recipient asks for; files that are joined are read by the embedded one."""
    from kinfold.tables.duckdb.engine import DuckDB
    from kinfold.tables.resources import Resources

    resources = Resources() if policy is None else policy.engine.resources
    if policy is not None and policy.engine.name == "spark" and isinstance(source, Path):
        return open_spark_engine(None, policy.engine.master, resources)
    return DuckDB(resources.for_sources(source))


def check_frame(public: Path, engine: Engine, frame: Any, *, twice: bool) -> Verdict:
    """Verify a release whose file is read already, as its recipient does; people are not checked."""
    return _check_rows(public, read_checked_certificate(public), engine, frame, twice=twice)


def _check_rows(public: Path, certificate: Certificate, engine: Engine, frame: Any, *, twice: bool) -> Verdict:
    entry = certificate.content["release"]
    sums = [(each["file"], each["sha256"]) for each in (entry, *entry.get("tables", ()))]
    if frame.checksum != (combine_checksums(sums) if len(sums) > 1 else sums[0][1]):
        raise VerifyError("the release was changed while it was read", fix="do not use this file")
    stated = certificate.content["release"].get("parts", ())
    if wrong := [one.name for one, part in zip(frame.files, stated, strict=False) if one.rows != part["records"]]:
        what = f"{', '.join(map(repr, wrong))}: the certificate states another number of records"
        raise VerifyError(what, fix="do not use this file")
    terms = read_terms(certificate)
    verdict = verify(engine, frame, terms)
    _require_certified_figures(verdict, certificate)
    if twice:
        require_agreement(verdict, checker.check_release(public), people=bool(terms.surrogates))
    return verdict


def check_table(source: Any, frame: Any, verdict: Verdict, terms: Terms) -> None:
    """Run the plain checker on a table without a certificate; raise unless it finds the same."""
    form = frame.form
    plain = isinstance(source, str | Path) and Path(source).is_file() and Path(source).suffix in (".csv", ".parquet")
    if not plain or form.encoding not in (None, "utf-8") or form.thousands or frame.blanked:
        raise PolicyError(
            "the second checker reads only CSV and Parquet files in UTF-8, "
            "without words for missing values or thousands separators",
            fix="save the table as such a file, or leave out --twice",
        )
    if verdict.problems:
        return
    release: dict[str, Any] = {"separator": form.field_separator, "decimal": form.decimal}
    release |= {"records": verdict.records, "classes": verdict.classes, "quoted": form.quoted}
    release |= describe_people(terms, verdict)
    content = {**describe_terms(terms, verdict), "release": release}
    require_agreement(verdict, checker.check_table(Path(source), content), people=bool(terms.surrogates))


def check_output_keys(verdict: Verdict, engine: Engine, frame: Any, policy: Policy) -> Verdict:
    """Add a problem for values that the policy recodes to others, and for formulas in a spreadsheet-safe release."""
    schema = engine.schema(frame)
    policy = policy.for_columns(schema.names)
    problems = []
    for name, keys in policy.columns.items():
        if name in schema:
            for key, recoding in _list_recodings(keys, schema[name], policy.output.preserve == "variance"):
                if count := engine.recode(frame, {name: recoding}, schema).changed[name]:
                    what = f"column '{name}' holds {plural(count, 'value')} that columns.{name}.{key} recodes"
                    problems.append(Problem(what, "do not use this file"))
    for name, count in frame.formulas:  # in a file that should not have any
        warnings = describe_formulas(replace(schema[name], formulas=count))
        problems += [Problem(warning, "do not open this file in a spreadsheet") for warning in warnings]
    return replace(verdict, problems=(*verdict.problems, *problems))


def _list_recodings(keys: ColumnPolicy, column: Column, stretched: bool) -> Iterator[tuple[str, ValueRecoding]]:
    """Yield the recodings that a released column must already satisfy, by key of the policy.

    A mapped value is gone, unless another value is mapped to it. Averages of limited values are within the limits,
    unless they are stretched to preserve the variance; averages need not be multiples of `round_to`.
    """
    averaged = keys.role is Role.QUASI
    names = keys.map or {}
    gone = {old: new for old, new in names.items() if old not in {*names.values()}}
    if gone:
        yield "map", ValueMap(gone)
    if column.storage.kind is Kind.NOMINAL or (averaged and stretched):
        return
    whole = column.storage is Storage.INTEGER
    # a limit of another type than the column does not apply: text is for dates
    text = column.storage.kind is Kind.DATE
    top, bottom = (limit if isinstance(limit, str) == text else None for limit in (keys.top, keys.bottom))
    if top is not None:
        yield "top", ValueLimits(top=math.floor(top) if whole else top)  # type: ignore[arg-type]
    if bottom is not None:
        yield "bottom", ValueLimits(bottom=math.ceil(bottom) if whole else bottom)  # type: ignore[arg-type]
    if keys.round_to is not None and column.storage.kind is Kind.CONTINUOUS and not averaged:
        yield "round_to", ValueLimits(bottom, top, keys.round_to)


def is_sorted(path: Path) -> bool:
    """Whether a certificate next to a file says that the rows of the file are sorted."""
    try:
        entry = read_certificate(path.parent).content["release"]
    except KinfoldError:
        return False
    return bool(entry["file"] == path.name and entry["order"] == "sorted")


def find_released(public: Path, certificate: Certificate) -> Path | LinkedFiles:
    """Return the released file, or the files that are joined by the surrogates of people."""
    entry = certificate.content["release"]
    if not entry.get("tables"):
        return public / str(entry["file"])
    unit = entry["people"]["counted_by"]
    others = tuple(LinkedFile(public / table["file"], unit) for table in entry["tables"])
    return LinkedFiles(public / entry["file"], unit, others)


def find_public_folder(folder: Path) -> Path:
    """Return the public part of a release folder, or the folder itself if it is that part."""
    return folder / "public" if (folder / "public").is_dir() else folder


def read_certificate(public: Path) -> Certificate:
    """Read the certificate of a public folder and check its shape."""
    file = public / "certificate.json"
    try:
        if not file.is_file():  # reading a device or a pipe may never end
            raise FileNotFoundError
        certificate = Certificate.read(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        what = f"no certificate can be read in '{public}'"
        raise DataError(what, fix="name the folder of a release: DIR or DIR/public") from None
    check_shape(certificate)
    return certificate


def read_checked_certificate(public: Path) -> Certificate:
    """Read the certificate of a public folder; raise unless the folder holds the files that it lists, unchanged."""
    certificate = read_certificate(public)
    content, release = certificate.content, certificate.content["release"]
    folder = f"{release['file']}/" if release.get("parts") else ""
    released = release.get("parts") or [release, *release.get("tables", ())]
    rows = {folder + entry["file"]: entry["sha256"] for entry in released}
    documents = [*content.get("documents", ()), *filter(None, [content.get("report")])]
    checksums = {entry["file"]: entry["sha256"] for entry in documents} | rows
    if missing := [name for name in rows if not (public / name).is_file()]:
        fix = "ask for the release again"
        raise DataError(Problem(f"'{name}' is not in '{public}'", fix) for name in missing)
    present = {file.name for file in public.iterdir()}
    if folder:
        present = present - {release["file"]} | {folder + file.name for file in (public / folder).iterdir()}
    unlisted = sorted(present - {*checksums, "certificate.json"})
    problems = [
        Problem(f"'{name}' is in '{public}', but the certificate does not list it", "remove it, or find its origin")
        for name in unlisted
    ]
    problems += [
        Problem(f"'{name}' was changed after its certificate was made", "do not use this file")
        for name, checksum in checksums.items()
        if (file := public / name).exists() and not (file.is_file() and hash_file(file) == checksum)
    ]
    if problems:
        raise VerifyError(problems)
    return certificate


def _require_certified_figures(verdict: Verdict, certificate: Certificate) -> None:
    """Raise unless the figures of a certificate are those of the file."""
    content = certificate.content
    certified = {"found": content["found"], "promises": [_get_promise_figures(each) for each in content["promises"]]}
    certified |= {key: content["release"][key] for key in ("records", "classes")}
    people = bool(read_terms(certificate).surrogates)
    if people:
        entries = [content["release"].get(key) or {"promises": ()} for key in ("people", "households")]
        certified |= {"people": [_get_promise_figures(each) for entry in entries for each in entry["promises"]]}
    if not verdict.problems and not figures_agree(get_figures(verdict, people=people), certified):
        fix, findings = "do not use this file", (*verdict.findings, *verdict.people)
        failed = [Problem(finding.promise + " does not hold", fix) for finding in findings if not finding.holds]
        raise VerifyError([Problem("the figures of the certificate are not those of the file", fix), *failed])


def get_figures(verdict: Verdict, *, people: bool = False) -> dict[str, Any]:
    """Return every figure of a verdict that a certificate repeats; those of people if the file has surrogates."""
    promises, persons = (
        [{"promise": f.promise, "asked": f.asked, "found": f.figure} for f in findings]
        for findings in (verdict.findings, verdict.people)
    )
    levels = {"k": verdict.k, "l": dict(verdict.l), "t": dict(verdict.t)}
    counts = {"records": verdict.records, "classes": verdict.classes}
    return {"found": levels, "promises": promises, **counts} | ({"people": persons} if people else {})


def _get_promise_figures(promise: Mapping[str, Any]) -> dict[str, Any]:
    return {key: promise[key] for key in ("promise", "asked", "found")}


def require_agreement(verdict: Verdict, plain: Mapping[str, Any], *, people: bool = False) -> None:
    """Raise unless the plain checker found what the engine found; about people too, if the file has surrogates."""
    findings = (*verdict.findings, *(verdict.people if people else ()))
    ours = get_figures(verdict, people=people) | {"holds": not verdict.problems and all(f.holds for f in findings)}
    levels = {key: plain["found"].get(key) for key in ours["found"]}
    theirs = {key: plain[key] for key in ours} | {"found": levels}
    theirs |= {key: [*map(_get_promise_figures, plain[key])] for key in ("promises", "people") if key in ours}
    if not figures_agree(ours, theirs):
        different = [key for key in ours if not figures_agree(ours[key], theirs[key])]
        second = f" (the second says: {'; '.join(plain['problems'])})" if plain["problems"] else ""
        what = f"the two checkers do not agree on {', '.join(different)}{second}"
        raise VerifyError(what, fix="do not use this file; please report this")


def figures_agree(ours: Any, theirs: Any) -> bool:
    """Whether figures are equal; decimals to nine digits, because another machine may round the last ones."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(figures_agree(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(figures_agree, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, int | float):
        return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)
    return bool(ours == theirs)
