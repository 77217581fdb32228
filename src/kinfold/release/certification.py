"""Terms and certificates: what a policy promises, written down for a recipient and read back.

A certificate tells roles, kinds, orders, ground distances, models with the values asked and found, the method, the
versions and the checksums of the release and its report. Nothing in it speaks of the original. Whoever reads one back
trusts nothing in it: its shape is checked before its words are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kinfold import __version__, models
from kinfold.errors import DataError, KinfoldError, Problem, VerifyError
from kinfold.hierarchy import by_rows
from kinfold.models import KAnonymity, Model, TCloseness
from kinfold.models.terms import Confidential, Terms
from kinfold.models.verdict import Verdict
from kinfold.release.certificate import CERTIFICATE_FORMAT, Certificate
from kinfold.request.binding import BoundColumn, BoundPolicy
from kinfold.rows.schema import Kind, Role
from kinfold.rows.source_form import ReleasedForm

MODELS = {name: getattr(models, name) for name in ("KAnonymity", "LDiversity", "TCloseness", "PSensitive", "AlphaK")}

Found = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**53, strict=True)]
Parameter = str | Annotated[int, Field(ge=-(2**53), le=2**53, strict=True)] | Annotated[float, Field(strict=True)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _File(_Part):
    file: Annotated[str, Field(pattern=r"^[^/\\]+$")]  # a name, not a way out of the folder
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _CountedPromise(_Part):
    promise: str
    asked: Found
    found: Found


class _People(_Part):
    counted_by: str
    checked: str
    promises: tuple[_CountedPromise, ...]


class _Released(_File):
    order: Literal["sorted", "kept"]
    separator: Annotated[str, Field(pattern=r"^[,;|:^~!#&\t ]$")] | None = None
    decimal: Literal[","] | None = None
    records: Count
    classes: Count
    people: _People | None = None
    within: Found | None = None
    blocks: Count | None = None

    @model_validator(mode="after")
    def _fields_told_apart(self) -> Self:
        if self.separator is None and not self.file.endswith(".parquet"):
            raise ValueError("separator: what stands between the fields of a CSV file")
        return self


class _Column(_Part):
    name: str
    role: Role
    type: Kind
    average: str | None = None
    distance: Literal["ordered", "hierarchical", "equal"] | None = None
    order: tuple[str, ...] | None = None
    hierarchy: tuple[tuple[str, ...], ...] | None = None
    dates: Annotated[str, Field(pattern=r"^[%A-Za-z0-9 ./:,+-]+$")] | None = None  # becomes part of a query


class _Promised(_CountedPromise):
    model: Literal["KAnonymity", "LDiversity", "TCloseness", "PSensitive", "AlphaK"]
    parameters: dict[str, Parameter]


class _Figures(_Part):
    k: Count
    l: dict[str, Count]
    t: dict[str, Found]


class _Shape(_Part):
    format: Literal[2]
    made_with: dict[str, str]
    release: _Released
    report: _File | None = None
    method: str
    columns: tuple[_Column, ...]
    promises: tuple[_Promised, ...]
    joint: bool
    found: _Figures


def certify(policy: BoundPolicy, terms: Terms, verdict: Verdict, files: Mapping[str, Any], method: str) -> Certificate:
    """Write down a release: its columns, its promises with what was found, and its files."""
    content = {
        "format": CERTIFICATE_FORMAT,
        "made_with": {"kinfold": __version__},
        **files,
        "release": {**files["release"], "records": verdict.records, "classes": verdict.classes},
        "method": method,
        **stated(terms, verdict),
        "columns": [_column(column, terms) for column in policy.columns if column.role is not Role.IDENTIFIER],
    }
    return Certificate(content)


def stated(terms: Terms, verdict: Verdict) -> dict[str, Any]:
    """Return the terms and what was found in the words of a certificate."""
    promises = [
        {
            "model": type(model).__name__,
            "parameters": _parameters(model),
            "promise": f.promise,
            "asked": f.asked,
            "found": f.found,
        }
        for model, f in zip(terms.models, verdict.findings, strict=True)
    ]
    roles = {Role.QUASI: terms.quasi, Role.OTHER: terms.other}
    columns = [{"name": name, "role": str(role)} for role, names in roles.items() for name in names]
    columns += [_told(column) for column in terms.confidential]
    found = {"k": verdict.k, "l": dict(verdict.l), "t": dict(verdict.t)}
    return {"columns": columns, "promises": promises, "joint": terms.joint, "found": found}


def check_shape(certificate: Certificate) -> None:
    """Refuse a certificate that is not of the expected shape, promises nothing, or is about no column."""
    try:
        _Shape.model_validate(certificate.content)
    except ValidationError as error:
        places = {".".join(str(part) for part in detail["loc"][:2]) for detail in error.errors(include_url=False)}
        what = f"the certificate is not of the expected shape: {', '.join(sorted(places)[:5])}"
        raise DataError(what, fix="ask for the release again") from None
    columns, promises = certificate.content["columns"], certificate.content["promises"]
    names = [column["name"] for column in columns]
    problems = []
    if not any(promise["model"] == KAnonymity.__name__ for promise in promises):
        problems.append(Problem("the certificate promises no k-anonymity", "do not rely on it"))
    if not any(column["role"] == Role.QUASI for column in columns):
        problems.append(Problem("the certificate names no quasi-identifier", "do not rely on it"))
    if len({*names}) < len(names):
        problems.append(Problem("the certificate names a column twice", "do not rely on it"))
    if problems:
        raise VerifyError(problems)


def terms_in(certificate: Certificate) -> Terms:
    """Return the terms that a certificate states."""
    columns = certificate.content["columns"]
    people = certificate.content["release"].get("people")
    try:
        confidential = {c["name"]: _confidential(c) for c in columns if c["role"] == Role.CONFIDENTIAL}
        promised = tuple(_model(promise, confidential) for promise in certificate.content["promises"])
    except (KinfoldError, ArithmeticError, LookupError, TypeError, ValueError):
        raise DataError("the certificate states terms that make no sense", fix="ask for the release again") from None
    return Terms(
        quasi=tuple(c["name"] for c in columns if c["role"] == Role.QUASI),
        confidential=tuple(confidential.values()),
        other=tuple(c["name"] for c in columns if c["role"] == Role.OTHER),
        removed=tuple(c["name"] for c in columns if c["role"] == Role.IDENTIFIER),
        models=promised,
        joint=certificate.content["joint"],
        unit=people["counted_by"] if people else None,
    )


def form_in(told: Mapping[str, Any]) -> ReleasedForm:
    """Return how a released file is written, by what its certificate says of it."""
    return ReleasedForm(separator=told.get("separator"), decimal=told.get("decimal", "."))


def policy_in(certificate: Certificate) -> dict[str, Any]:
    """Return what a certificate says of columns as the values of a policy, for a recipient to ask for more."""
    columns = {column["name"]: _asked(column) for column in certificate.content["columns"]}
    k = next(p["parameters"]["k"] for p in certificate.content["promises"] if p["model"] == KAnonymity.__name__)
    return {"privacy": {"k": k}, "columns": columns}


def _asked(told: Mapping[str, Any]) -> dict[str, Any]:
    asked = {key: told[key] for key in ("role", "type", "distance", "order") if key in told}
    return asked | ({"hierarchy": {"levels": told["hierarchy"]}} if "hierarchy" in told else {})


def _column(column: BoundColumn, terms: Terms) -> dict[str, Any]:
    for confidential in terms.confidential:
        if confidential.name == column.name:
            return _told(confidential)
    told: dict[str, Any] = {"name": column.name, "role": str(column.role), "type": str(column.kind)}
    return told | ({"average": column.average} if column.role is Role.QUASI else {})


def _told(column: Confidential) -> dict[str, Any]:
    told: dict[str, Any] = {"name": column.name, "role": str(Role.CONFIDENTIAL), "type": column.kind}
    told["distance"] = column.distance
    told |= {"order": list(column.order)} if column.order is not None else {}
    told |= {"hierarchy": column.hierarchy.labels.tolist()} if column.hierarchy else {}
    return told | ({"dates": column.date_format} if column.date_format else {})


def _confidential(told: Mapping[str, Any]) -> Confidential:
    order = tuple(told["order"]) if "order" in told else None
    hierarchy = by_rows(told["hierarchy"]) if "hierarchy" in told else None
    distance = told["distance"]
    if (distance == "ordered" and told["type"] == Kind.NOMINAL) or (distance == "hierarchical") != (
        hierarchy is not None
    ):
        raise ValueError("a distance that the values do not have")
    return Confidential(told["name"], told["type"], told["distance"], order, hierarchy, told.get("dates"))


def _parameters(model: Model) -> dict[str, Any]:
    """Return what was asked; the ground distance is the column's, and told with it."""
    return {name: value for name, value in vars(model).items() if name not in ("distance", "hierarchy")}


def _model(promise: Mapping[str, Any], confidential: Mapping[str, Confidential]) -> Model:
    parameters = dict(promise["parameters"])
    column = confidential[parameters["column"]] if "column" in parameters else None
    if column is not None and promise["model"] == TCloseness.__name__:
        parameters |= {"distance": column.distance, "hierarchy": column.hierarchy}
    model: Model = MODELS[promise["model"]](**parameters)
    return model
