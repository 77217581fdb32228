"""The certificate: everything a recipient needs to check the promises, and nothing about the original.

It holds roles, types, orders, ground distances, models with required and measured values, the method, versions, and
checksums of the release, its report and its data dictionary. A certificate is untrusted input when it is read back: its
shape is checked before its values are used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kinfold import __version__, models
from kinfold.errors import DataError, KinfoldError, Problem, VerifyError
from kinfold.hierarchies import build_from_rows
from kinfold.models import CombinationAnonymity, CombinationConfidence, KAnonymity, Model, TCloseness
from kinfold.models.known_events import KnownEvents
from kinfold.models.terms import ConfidentialColumn, HouseholdTerms, Terms
from kinfold.models.verdict import Verdict
from kinfold.policy.binding import BoundColumn, BoundPolicy
from kinfold.policy.perturbation import PerturbationKind
from kinfold.policy.review import Review
from kinfold.tables.readers.files import combine_checksums
from kinfold.tables.schema import MAX_EXACT_INTEGER, SURROGATE, Kind, Role
from kinfold.tables.source_form import ReleasedForm
from kinfold.tables.tally import HOUSEHOLD_WORDS

CERTIFICATE_FORMAT = 2  # raised when a key changes its meaning


@dataclass(frozen=True)
class Certificate:
    """The content of a certificate as JSON values."""

    content: Mapping[str, Any]

    @classmethod
    def read(cls, text: str) -> Certificate:
        """Read a certificate and check it against its own checksum."""
        try:
            content = json.loads(text, parse_constant=_refuse_constant)
            checksum = content.pop("checksum")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
            raise DataError("the certificate cannot be read", fix="ask for the release again") from None
        if checksum != _hash_content(content):
            raise VerifyError("the certificate was changed after it was made", fix="ask for the release again")
        if content.get("format") != CERTIFICATE_FORMAT:
            raise DataError("the certificate has the format of another version of kinfold", fix="update kinfold")
        return cls(content)

    def text(self) -> str:
        """Return the certificate as JSON, with its checksum."""
        content = {**self.content, "checksum": _hash_content(self.content)}
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _refuse_constant(constant: str) -> Any:
    raise ValueError(constant)  # NaN and Infinity are not JSON


def _hash_content(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


ModelName = Literal[
    "KAnonymity",
    "LDiversity", "TCloseness", "PSensitive", "AlphaK", "BetaLikeness", "DeltaDisclosure", "AverageRisk", "RiskShare",
    "CombinationAnonymity", "CombinationConfidence",
    "EstimatedKMap",
]  # fmt: skip
MODELS = {name: getattr(models, name) for name in get_args(ModelName)}

NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=MAX_EXACT_INTEGER, strict=True)]
WholeNumber = Annotated[int, Field(ge=-MAX_EXACT_INTEGER, le=MAX_EXACT_INTEGER, strict=True)]
ParameterValue = str | WholeNumber | Annotated[float, Field(strict=True)]


class _CertificatePart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _CertificateFile(_CertificatePart):
    file: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}$")]  # a name without folders
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _CertificateFigure(_CertificatePart):
    promise: str
    asked: NonNegative
    found: NonNegative


class _CertificateEvents(_CertificatePart):
    known: Annotated[int, Field(ge=1, le=100, strict=True)]
    days: Count
    shift: Count


class _CertificatePeople(_CertificatePart):
    counted_by: str
    checked: str
    surrogate: Literal["random", "keyed"] | None = None  # of each person in the file, if there is one
    events: _CertificateEvents | None = None  # that others may know, of each person
    promises: tuple[_CertificateFigure, ...]


class _CertificateHouseholds(_CertificatePeople):
    attributes: tuple[str, ...]


class _CertificateTable(_CertificateFile):
    columns: tuple[str, ...]  # other than the surrogate of the person


class _CertificatePartFile(_CertificateFile):
    records: Count


class _CertificatePopulation(_CertificatePart):
    checked: str
    promises: tuple[_CertificateFigure, ...]


class _CertificateRelease(_CertificateFile):
    order: Literal["sorted", "kept"]
    separator: Annotated[str, Field(pattern=r"^[,;|:^~!#&\t ]$")] | None = None
    decimal: Literal[","] | None = None
    quoted: Literal[True] | None = None  # formulas are, with an apostrophe
    records: Count
    classes: Count
    people: _CertificatePeople | None = None
    households: _CertificateHouseholds | None = None
    parts: tuple[_CertificatePartFile, ...] = ()  # the files of a folder, in the order of the rows
    tables: tuple[_CertificateTable, ...] = ()  # further files with one row for each person
    population: _CertificatePopulation | None = None  # statements of the data holder
    within: NonNegative | None = None
    blocks: Count | None = None

    @model_validator(mode="after")
    def _require_separator(self) -> Self:
        written = [part.file for part in self.parts] or [self.file]
        if self.separator is None and not all(name.endswith(".parquet") for name in written):
            raise ValueError("a CSV file needs a separator")
        return self

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        if not self.parts:
            return self
        ending = self.parts[0].file.rpartition(".")[2]
        names = [f"part-{number:05}.{ending}" for number in range(len(self.parts))]
        sums = combine_checksums((part.file, part.sha256) for part in self.parts)
        if self.file != "release" or ending not in ("csv", "parquet") or self.tables:
            raise ValueError("parts are CSV or Parquet files in the folder 'release'")
        if names != [part.file for part in self.parts] or self.sha256 != sums:
            raise ValueError("the list of parts is not complete")
        if self.records != sum(part.records for part in self.parts):
            raise ValueError("the parts have other records than the release")
        return self


class _CertificatePerturbation(_CertificatePart):
    kind: PerturbationKind
    categories: tuple[str, ...] | None = None
    matrix: tuple[tuple[NonNegative, ...], ...] | None = None
    share: NonNegative | None = None
    variance: NonNegative | None = None
    percent: NonNegative | None = None
    size: Count | None = None


class _CertificateColumn(_CertificatePart):
    name: str
    role: Role | Literal["surrogate"]
    type: Kind
    of: Literal["event"] | None = None  # a quasi-identifier of the events of a person
    average: str | None = None
    distance: Literal["ordered", "hierarchical", "equal"] | None = None
    order: tuple[str, ...] | None = None
    hierarchy: tuple[tuple[str, ...], ...] | None = None
    dates: Annotated[str, Field(pattern=r"^[%A-Za-z0-9 ./:,+-]+$")] | None = None  # becomes part of a query
    perturbed: _CertificatePerturbation | None = None


class _CertificatePromise(_CertificateFigure):
    model: ModelName
    parameters: dict[str, ParameterValue]


class _CertificateFigures(_CertificatePart):
    k: Count
    l: dict[str, Count]
    t: dict[str, NonNegative]


class _CertificateReview(_CertificatePart):
    questions: Count
    accepted: Count
    statement: str


class _CertificateSchema(_CertificatePart):
    format: Literal[2]
    made_with: dict[str, str]
    release: _CertificateRelease
    report: _CertificateFile | None = None
    documents: tuple[_CertificateFile, ...] = ()  # the data dictionary
    earlier: tuple[Annotated[str, Field(pattern="^[0-9a-f]{64}$")], ...] = ()  # releases of the same people
    method: str
    review: _CertificateReview | None = None
    columns: tuple[_CertificateColumn, ...]
    promises: tuple[_CertificatePromise, ...]
    joint: bool
    found: _CertificateFigures


def certify(policy: BoundPolicy, terms: Terms, verdict: Verdict, files: Mapping[str, Any], method: str) -> Certificate:
    """Return the certificate of a release: its columns, its promises with their figures, and its files."""
    content = {
        "format": CERTIFICATE_FORMAT,
        "made_with": {"kinfold": __version__},
        **files,
        "release": {**files["release"], "records": verdict.records, "classes": verdict.classes},
        "method": method,
        **_describe_review(policy.request.review),
        **describe_terms(terms, verdict),
        "columns": [_describe_column(column, terms) for column in policy.columns if not column.removed],
    }
    return Certificate(content)


def _describe_review(review: Review) -> dict[str, Any]:
    """Return the statement that proposals were accepted without review, if any were."""
    if not review.accepted:
        return {}
    counts = {"questions": len(review.questions), "accepted": review.accepted}
    return {"review": {**counts, "statement": review.statement}}


def describe_terms(terms: Terms, verdict: Verdict) -> dict[str, Any]:
    """Return the terms and the figures of a verdict with the keys of a certificate."""
    promises = [
        {
            "model": type(model).__name__,
            # the ground distance stands with its column
            "parameters": {key: value for key, value in vars(model).items() if key not in ("distance", "hierarchy")},
            "promise": f.promise,
            "asked": f.asked,
            "found": f.figure,
        }
        for model, f in zip(terms.models, verdict.findings, strict=True)
    ]
    roles = {Role.QUASI: terms.quasi, Role.OTHER: terms.other, SURROGATE: terms.surrogates}
    columns = [{"name": name, "role": str(role)} for role, names in roles.items() for name in names]
    columns += [_describe_confidential(column) for column in terms.confidential]
    if terms.events is not None:
        columns += [_describe_event(name, terms.events) for name in terms.events.columns]
    levels = {"k": verdict.k, "l": dict(verdict.l), "t": dict(verdict.t)}
    return {"columns": columns, "promises": promises, "joint": terms.joint, "found": levels}


def describe_people(terms: Terms, verdict: Verdict, *, keyed: bool = False) -> dict[str, Any]:
    """Return the figures about people, households and the population with the keys of a certificate."""
    figures: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for f in verdict.people:
        figures[f.promise.endswith(HOUSEHOLD_WORDS)].append({"promise": f.promise, "asked": f.asked, "found": f.found})
    checked: dict[str, Any] = {"checked": "before that column was removed"}
    if terms.surrogates:
        checked = {"checked": "on the file", "surrogate": "keyed" if keyed else "random"}
    entries: dict[str, Any] = {}
    if figures[False]:
        events = terms.events
        known = {"known": events.known, "days": events.days, "shift": events.shift} if events is not None else None
        more = {"events": known} if known is not None else {}
        entries["people"] = {"counted_by": terms.unit, **checked, **more, "promises": figures[False]}
    if verdict.statements:
        promises = [{"promise": f.promise, "asked": f.asked, "found": f.figure} for f in verdict.statements]
        entries["population"] = {"checked": "by the data holder, whose statement it is", "promises": promises}
    if terms.household is not None:
        household = {"counted_by": terms.household.column, "attributes": list(terms.household.attributes)}
        entries["households"] = {**household, **checked, "promises": figures[True]}
    return entries


def check_shape(certificate: Certificate) -> None:
    """Raise if a certificate has another shape, promises no k-anonymity, or names no quasi-identifier."""
    try:
        _CertificateSchema.model_validate(certificate.content)
    except ValidationError as error:
        places = {".".join(str(part) for part in detail["loc"][:2]) for detail in error.errors(include_url=False)}
        what = f"the certificate is not of the expected shape: {', '.join(sorted(places)[:5])}"
        raise DataError(what, fix="ask for the release again") from None
    content, columns, promises = certificate.content, certificate.content["columns"], certificate.content["promises"]
    names = [column["name"] for column in columns]
    problems = []
    if not any(promise["model"] in (KAnonymity.__name__, CombinationAnonymity.__name__) for promise in promises):
        problems.append(Problem("the certificate promises no k-anonymity", "do not rely on it"))
    if not any(column["role"] == Role.QUASI and "of" not in column for column in columns):
        problems.append(Problem("the certificate names no quasi-identifier", "do not rely on it"))
    entries = [content["release"].get(key) or {} for key in ("people", "households")]
    counted = {entry.get("counted_by") for entry in entries}
    surrogates = {column["name"] for column in columns if column["role"] == SURROGATE}
    if any("of" in column for column in columns) != bool(entries[0].get("events")):
        problems.append(Problem("the certificate does not say what others know about events", "do not rely on it"))
    if not surrogates <= counted:
        problems.append(Problem("the certificate has a surrogate, but counts no people by it", "do not rely on it"))
    tables = content["release"].get("tables", ())
    of_people = [name for table in tables for name in table["columns"]]
    if tables and (entries[0].get("counted_by") not in surrogates or not {*of_people} <= {*names} - surrogates):
        problems.append(Problem("the certificate does not say how its tables are linked", "do not rely on it"))
    if len({*names}) < len(names) or len({*of_people}) < len(of_people):
        problems.append(Problem("the certificate names a column twice", "do not rely on it"))
    if problems:
        raise VerifyError(problems)


def read_terms(certificate: Certificate) -> Terms:
    """Return the terms that a certificate states."""
    columns = certificate.content["columns"]
    people = certificate.content["release"].get("people") or {}
    try:
        confidential = {c["name"]: _read_confidential(c) for c in columns if c["role"] == Role.CONFIDENTIAL}
        promises = tuple(_build_model(promise, confidential) for promise in certificate.content["promises"])
    except (KinfoldError, ArithmeticError, LookupError, TypeError, ValueError):
        raise DataError("the certificate states contradictory terms", fix="ask for the release again") from None
    return Terms(
        quasi=tuple(c["name"] for c in columns if c["role"] == Role.QUASI and "of" not in c),
        confidential=tuple(confidential.values()),
        other=tuple(c["name"] for c in columns if c["role"] in (Role.OTHER, Role.WEIGHT)),
        removed=tuple(c["name"] for c in columns if c["role"] in (Role.IDENTIFIER, Role.REMOVE)),
        models=promises,
        joint=certificate.content["joint"],
        unit=people.get("counted_by"),
        household=_read_household(certificate.content["release"].get("households")),
        surrogates=tuple(c["name"] for c in columns if c["role"] == SURROGATE),
        events=_read_events(people.get("events"), columns, promises),
    )


def _read_events(entry: Any, columns: Sequence[Mapping[str, Any]], promises: Sequence[Model]) -> KnownEvents | None:
    """Return what the certificate says that others know about events."""
    if entry is None:
        return None
    of_events = [column for column in columns if "of" in column]
    dates = [column for column in of_events if column["type"] == Kind.DATE]
    codes, names = (tuple(c["name"] for c in each) for each in ([c for c in of_events if c not in dates], dates))
    k = next(model.k for model in promises if isinstance(model, KAnonymity))
    formats = tuple(column.get("dates") for column in dates)
    return KnownEvents(k, entry["known"], codes, names, formats, entry["days"], entry["shift"])


def _read_household(entry: Mapping[str, Any] | None) -> HouseholdTerms | None:
    if entry is None:
        return None
    k = next((int(promise["asked"]) for promise in entry["promises"]), None)
    return HouseholdTerms(entry["counted_by"], tuple(entry["attributes"]), k)


def read_form(entry: Mapping[str, Any]) -> ReleasedForm:
    """Return the format of a released file from its entry in the certificate."""
    quoted = entry.get("quoted", False)
    parts = bool(entry.get("parts"))
    return ReleasedForm(separator=entry.get("separator"), decimal=entry.get("decimal", "."), quoted=quoted, parts=parts)


def read_policy_values(certificate: Certificate) -> dict[str, Any]:
    """Return k and the columns of a certificate as values of a policy, to which a recipient can add keys."""
    columns: dict[str, dict[str, Any]] = {}
    terms, privacy = read_terms(certificate), {}
    if terms.counted_by is not None:
        columns, privacy = {terms.counted_by: {"role": str(Role.IDENTIFIER)}}, {"unit": terms.counted_by}
    if terms.released_household is not None:
        columns[terms.released_household.column] = {"role": str(Role.IDENTIFIER)}
        privacy["household"] = terms.released_household.column
    for entry in (each for each in certificate.content["columns"] if each["role"] != SURROGATE and "of" not in each):
        keys = {key: entry[key] for key in ("role", "type", "distance", "order") if key in entry}
        columns[entry["name"]] = keys | ({"hierarchy": {"levels": entry["hierarchy"]}} if "hierarchy" in entry else {})
    output = {"output": {"surrogate": True}} if privacy else {}
    return {"privacy": {**_read_k(terms.models), **privacy}, "columns": columns, **output}


def _read_k(promises: Sequence[Model]) -> dict[str, Any]:
    """Return k, and the combinations on which it holds if those are not all quasi-identifiers."""
    keys: dict[str, Any] = {}
    for model in promises:
        if isinstance(model, KAnonymity):
            keys = {"k": model.k}
        elif isinstance(model, CombinationAnonymity):
            keys = {"k": model.k, "combinations": {"size": model.size}}
        elif isinstance(model, CombinationConfidence):
            keys["combinations"]["confidence"] = model.confidence
    return keys


def _describe_column(column: BoundColumn, terms: Terms) -> dict[str, Any]:
    perturbed = {"perturbed": column.perturbed.describe()} if column.perturbed else {}
    for confidential in terms.confidential:
        if confidential.name == column.name:
            return _describe_confidential(confidential) | perturbed
    if terms.events is not None and column.name in terms.events.columns:
        return _describe_event(column.name, terms.events)
    if column.surrogate:
        return {"name": column.name, "role": SURROGATE, "type": str(Kind.NOMINAL)}
    entry: dict[str, Any] = {"name": column.name, "role": str(column.role), "type": str(column.kind)}
    return entry | ({"average": column.average} if column.role is Role.QUASI else {}) | perturbed


def _describe_event(name: str, events: KnownEvents) -> dict[str, Any]:
    """Describe a quasi-identifier of events: a date with its format, or a code."""
    entry: dict[str, Any] = {"name": name, "role": str(Role.QUASI), "of": "event", "type": str(Kind.NOMINAL)}
    if name not in events.dates:
        return entry
    form = events.formats[events.dates.index(name)]
    return entry | {"type": str(Kind.DATE)} | ({"dates": form} if form else {})


def _describe_confidential(column: ConfidentialColumn) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": column.name, "role": str(Role.CONFIDENTIAL), "type": column.kind}
    entry["distance"] = column.distance
    entry |= {"order": list(column.order)} if column.order is not None else {}
    entry |= {"hierarchy": column.hierarchy.labels.tolist()} if column.hierarchy else {}
    return entry | ({"dates": column.date_format} if column.date_format else {})


def _read_confidential(entry: Mapping[str, Any]) -> ConfidentialColumn:
    order = tuple(entry["order"]) if "order" in entry else None
    hierarchy = build_from_rows(entry["hierarchy"]) if "hierarchy" in entry else None
    kind, distance = entry["type"], entry["distance"]
    if (distance == "ordered" and kind == Kind.NOMINAL) or (distance == "hierarchical") != (hierarchy is not None):
        raise ValueError("the distance does not fit the values")
    return ConfidentialColumn(entry["name"], kind, distance, order, hierarchy, entry.get("dates"))


def _build_model(promise: Mapping[str, Any], confidential: Mapping[str, ConfidentialColumn]) -> Model:
    parameters = dict(promise["parameters"])
    column = confidential[parameters["column"]] if "column" in parameters else None
    if column is not None and promise["model"] == TCloseness.__name__:
        parameters |= {"distance": column.distance, "hierarchy": column.hierarchy}
    model: Model = MODELS[promise["model"]](**parameters)
    return model
