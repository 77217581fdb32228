"""ARX's `.deid` projects, read for data, roles, types, hierarchies and privacy models.

A project is a zip archive. What is read of it, as ARX 2.0 to 3.7 write it, and any other ARX 2 or 3 that names the same
vocabulary of XML (1.0 or 2.0):

    metadata.xml              the version of ARX and of its vocabulary (1.0 where it is not named)
    project.xml               the project's name and the separator of its CSV parts
    data/input.csv            the table, with a header; double quotes, doubled inside
    input/definition.xml      an `assigment` (so spelt) a column: name, role, data type and format, the hierarchy's
                              part, the least and the greatest level, the function of microaggregation
    input/config.xml          the suppression limit, the measure of quality, weights, and the privacy models in words
    input/hierarchies/*.csv   a row a value, ever coarser, no header

Everything else, the `.dat` parts above all, holds serialized Java objects: it is never opened. What is only there
cannot be carried over: a research subset, the settings of local recoding, the output.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree.ElementTree import Element

from kinfold.errors import DataError
from kinfold.interchange.archive import Archive
from kinfold.interchange.criteria import Criterion, parse_criterion
from kinfold.interchange.project import Attribute, Project, csv_rows
from kinfold.rows.schema import Role

VERSION = re.compile(r"[23](\.[0-9]+)*\b.*")
VOCABULARIES = ("1.0", "2.0")
SEPARATOR = ";"  # where the project names none
ROLES = {
    "IDENTIFYING_ATTRIBUTE": Role.IDENTIFIER,
    "QUASI_IDENTIFYING_ATTRIBUTE": Role.QUASI,
    "SENSITIVE_ATTRIBUTE": Role.CONFIDENTIAL,
    "INSENSITIVE_ATTRIBUTE": Role.OTHER,
}
DATATYPES = ("String", "Ordinal", "Integer", "Decimal", "Date")
UNBOUNDED = "All"


@dataclass(frozen=True)
class Configuration:
    """What `input/config.xml` says."""

    criteria: tuple[Criterion, ...] = ()
    others: tuple[str, ...] = ()
    suppression: float = 0.0
    metric: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)


def read_deid(path: str | Path) -> Project:
    """Return what a project says in XML and CSV; nothing in it is deserialized or unpacked."""
    with Archive(Path(path)) as archive:
        version, vocabulary = _versions(archive)
        name, separator = _syntax(archive)
        text = archive.text("data/input.csv")
        defined = _defined(archive, vocabulary, separator)
        asked = _configuration(archive)
    where = f"the data in {archive.name}"
    header = next(csv_rows(text, separator, where), [])
    columns, notes = _columns(header, defined, where)
    return Project(
        name=name,
        version=version,
        data=text.encode(),
        separator=separator,
        attributes=tuple(replace(each, weight=asked.weights.get(each.name)) for each in columns),
        criteria=asked.criteria,
        others=asked.others,
        suppression=asked.suppression,
        metric=asked.metric,
        notes=notes,
    )


def _versions(archive: Archive) -> tuple[str, str]:
    if "metadata.xml" not in archive:
        raise DataError(f"{archive.name} is a zip archive, but no ARX project", fix="name a .deid file of ARX")
    metadata = archive.xml("metadata.xml")
    version, vocabulary = _said(metadata, "version"), _said(metadata, "vocabulary") or VOCABULARIES[0]
    if vocabulary not in VOCABULARIES or not VERSION.fullmatch(version):
        what = f"{archive.name} is of ARX '{version[:20]}' with vocabulary '{vocabulary[:20]}'"
        fix = f"open it in ARX 2 or 3 and save it again; vocabularies {' and '.join(VOCABULARIES)} are read"
        raise DataError(what, fix=fix)
    return version, vocabulary


def _syntax(archive: Archive) -> tuple[str, str]:
    if "project.xml" not in archive:
        return "", SEPARATOR
    project = archive.xml("project.xml")
    separator = project.findtext("separator", SEPARATOR)  # as it is: it may be a tab
    if len(separator) != 1 or separator in '"\r\n':
        raise DataError(f"{archive.name} separates fields by no single character", fix="save the project again")
    return _said(project, "name"), separator


def _defined(archive: Archive, vocabulary: str, separator: str) -> list[tuple[Attribute, str]]:
    """Return each column that is defined, with what is odd about it."""
    definition = archive.xml("input/definition.xml")
    found = [_attribute(archive, element, vocabulary, separator) for element in definition.iter("assigment")]
    twice = [name for name, count in Counter(each.name for each, _ in found).items() if count > 1]
    if twice:
        raise DataError(f"{archive.name} defines '{twice[0]}' more than once", fix="save the project again")
    return found


def _attribute(archive: Archive, element: Element, vocabulary: str, separator: str) -> tuple[Attribute, str]:
    name, role = element.findtext("name", ""), ROLES.get(_said(element, "type"))
    if not name or role is None:
        what = f"{archive.name} defines a column without a name, or with a type that is not known"
        raise DataError(what, fix="open it in ARX and save it again")
    datatype, form = _datatype(element, vocabulary)
    if datatype not in DATATYPES:
        raise DataError(f"{archive.name}: '{name}' has a data type that is not known", fix="choose one of ARX's own")
    part = element.findtext("ref")
    attribute = Attribute(name, role, datatype, form, averaged=_said(element, "microaggregationFunction"))
    if not part or role not in (Role.QUASI, Role.CONFIDENTIAL):
        return attribute, ""
    if f"input/{part}" not in archive:  # as in projects of ARX 3.4.1
        return attribute, f"'{name}': the project names a hierarchy and does not hold it"
    text = archive.text(f"input/{part}")
    rows = tuple(tuple(row) for row in csv_rows(text, separator, f"the hierarchy of '{name}'"))
    lowest, highest = (_level(element, bound, name) for bound in ("min", "max"))
    return replace(attribute, hierarchy=rows, lowest=lowest, highest=highest), ""


def _datatype(element: Element, vocabulary: str) -> tuple[str, str]:
    datatype = _said(element, "datatype") or "String"
    if vocabulary == "1.0" and datatype not in ("String", "Decimal"):
        return "Date", datatype  # the format stands in the place of the name
    return datatype, element.findtext("format") or ""


def _level(element: Element, bound: str, name: str) -> int | None:
    text = _said(element, bound) or UNBOUNDED
    if text == UNBOUNDED:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise DataError(f"'{name}': the {bound} of its levels is no number", fix="open it in ARX and save it again")
    return int(text)


def _configuration(archive: Archive) -> Configuration:
    if "input/config.xml" not in archive:
        return Configuration()
    config = archive.xml("input/config.xml")
    texts = [(element.text or "").strip() for element in config.iterfind("criteria/criterion")]
    read = [(text, parse_criterion(text)) for text in texts]
    weights = {
        element.findtext("attribute", ""): _number(element, "weight", archive.name)
        for element in config.iterfind("attributeWeights/attributeWeight")
    }
    suppression = _number(config, "relativeMaxOutliers", archive.name)
    if not 0 <= suppression <= 1:
        raise DataError(f"{archive.name}: the suppression limit is no share", fix="set it in ARX from 0 to 100 %")
    return Configuration(
        tuple(criterion for _, criterion in read if criterion),
        tuple(text for text, criterion in read if not criterion),
        suppression,
        _said(config, "metric"),
        weights,
    )


def _number(element: Element, name: str, where: str) -> float:
    text = _said(element, name) or "0"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where}: '{name}' of the configuration is no number", fix="open it in ARX and save it again")
    return number


def _columns(
    header: list[str], defined: list[tuple[Attribute, str]], where: str
) -> tuple[tuple[Attribute, ...], tuple[str, ...]]:
    """Put what is defined into the order of the data; ARX takes a column that is not defined for identifying."""
    by_name = {attribute.name: attribute for attribute, _ in defined}
    if not header or len(set(header)) < len(header):
        raise DataError(f"{where} has no header, or one that names a column twice", fix="save the project again")
    if absent := [name for name in by_name if name not in header]:
        raise DataError(f"{where} has no column '{absent[0]}', which is defined", fix="save the project again")
    undefined = [name for name in header if name not in by_name]
    notes = [note for _, note in defined if note]
    notes += [f"'{name}': the project does not define it; it is removed as an identifier" for name in undefined]
    return tuple(by_name.get(name, Attribute(name, Role.IDENTIFIER)) for name in header), tuple(notes)


def _said(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()
