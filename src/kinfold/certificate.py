"""Terms and certificates: what a policy promises, written down for a recipient and read back.

A certificate tells roles, kinds, orders, ground distances, models with the values asked and found, the method, the
versions and the checksum of the release. Nothing in it speaks of the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from kinfold import __version__, models
from kinfold.binding import BoundColumn, BoundPolicy
from kinfold.hierarchy import Hierarchy, by_rows
from kinfold.models import Model, TCloseness
from kinfold.release import CERTIFICATE_FORMAT, Certificate, Confidential, Terms, Verdict
from kinfold.schema import Role

MODELS = {name: getattr(models, name) for name in ("KAnonymity", "LDiversity", "TCloseness", "PSensitive", "AlphaK")}


def certify(policy: BoundPolicy, terms: Terms, verdict: Verdict, file: Mapping[str, Any], method: str) -> Certificate:
    """Write down a release: its columns, its promises with what was found, and its file."""
    kept = [column for column in policy.columns if column.role is not Role.IDENTIFIER]
    promises = [
        {
            "model": type(model).__name__,
            "parameters": _parameters(_as_shown(model, terms)),
            "promise": f.promise,
            "asked": f.asked,
            "found": f.found,
        }
        for model, f in zip(terms.models, verdict.findings, strict=True)
    ]
    content = {
        "format": CERTIFICATE_FORMAT,
        "made_with": {"kinfold": __version__},
        "release": {**file, "records": verdict.records, "classes": verdict.classes},
        "method": method,
        "columns": [_column(column, terms) for column in kept],
        "promises": promises,
        "joint": terms.joint,
        "found": {"k": verdict.k, "l": dict(verdict.l), "t": dict(verdict.t)},
    }
    return Certificate(content)


def terms_in(certificate: Certificate) -> Terms:
    """Return the terms that a certificate states."""
    columns = certificate.content["columns"]
    confidential = {c["name"]: _confidential(c) for c in columns if c["role"] == Role.CONFIDENTIAL}
    return Terms(
        quasi=tuple(c["name"] for c in columns if c["role"] == Role.QUASI),
        confidential=tuple(confidential.values()),
        other=tuple(c["name"] for c in columns if c["role"] == Role.OTHER),
        removed=(),
        models=tuple(_model(promise, confidential) for promise in certificate.content["promises"]),
        joint=certificate.content["joint"],
    )


def _column(column: BoundColumn, terms: Terms) -> dict[str, Any]:
    told: dict[str, Any] = {"name": column.name, "role": str(column.role), "type": str(column.kind)}
    if column.role is Role.QUASI:
        told["average"] = column.average
    for c in terms.confidential:
        if c.name == column.name:
            told["distance"] = c.distance
            told |= {"order": list(c.order)} if c.order else {}
            told |= {"hierarchy": c.hierarchy.labels.tolist()} if c.hierarchy else {}
    return told


def _confidential(told: Mapping[str, Any]) -> Confidential:
    order = tuple(told["order"]) if "order" in told else None
    hierarchy = by_rows(told["hierarchy"]) if "hierarchy" in told else None
    return Confidential(told["name"], told["type"], told["distance"], order, hierarchy)


def _as_shown(model: Model, terms: Terms) -> Model:
    """Return a promise by the ground distance that its column is shown with: nothing but nulls need no hierarchy."""
    shown = {column.name: column for column in terms.confidential}
    if not isinstance(model, TCloseness) or model.hierarchy is None or shown[model.column].hierarchy is not None:
        return model
    return replace(model, distance="equal", hierarchy=None)


def _parameters(model: Model) -> dict[str, Any]:
    values = {field.name: getattr(model, field.name) for field in fields(model)}  # type: ignore[arg-type]
    return {name: value for name, value in values.items() if value is not None and not isinstance(value, Hierarchy)}


def _model(promise: Mapping[str, Any], confidential: Mapping[str, Confidential]) -> Model:
    parameters = dict(promise["parameters"])
    column = confidential.get(parameters.get("column", ""))
    if column is not None and parameters.get("distance") == "hierarchical":
        parameters["hierarchy"] = column.hierarchy
    model: Model = MODELS[promise["model"]](**parameters)
    return model
