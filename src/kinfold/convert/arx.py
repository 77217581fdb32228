"""ARX projects (`.deid`): data, roles, types, hierarchies and privacy models.

A project is a zip archive. These parts are read, as ARX 2.0 to 3.7 write them, and as any other ARX 2 or 3 with the
same XML vocabulary (1.0 or 2.0) does:

    metadata.xml              the version of ARX and of its vocabulary (1.0 if not given)
    project.xml               the project's name and the separator of its CSV parts
    data/input.csv            the table, with a header; double quotes, doubled inside
    input/definition.xml      one `assigment` (sic) per column: name, role, data type and format, the hierarchy's part,
                              the lowest and the highest level, the microaggregation function
    input/config.xml          the suppression limit, the quality measure, weights, and the privacy models as text:
                              `5-anonymity`, `distinct-2-diversity for attribute 'x'`, ...
    input/hierarchies/*.csv   one row per value, ever coarser, no header

All other parts, above all the `.dat` parts, hold serialized Java objects and are never opened. What only they hold is
not converted: a research subset, the settings of local recoding, the output.

An archive is not trusted. Parts are read by name into memory, within limits, and nothing is unpacked:

    size       every part is read up to its limit, whatever its header claims; all parts share one limit
    methods    stored and deflated, which can be read piece by piece; no passwords
    names      a name is looked up in the archive and never used as a path
    XML        read by defusedxml without a document type: nothing in it can expand or load a file
"""

from __future__ import annotations

import csv
import io
import math
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DTDForbidden
from defusedxml.ElementTree import fromstring

from kinfold.errors import DataError
from kinfold.tables.schema import Role

MAX_XML_BYTES = 1 << 24  # of one document
MAX_ARCHIVE_BYTES = 1 << 30  # of all parts together: more than ARX writes, less than exhausts a machine
MAX_ARCHIVE_PARTS = 10_000  # in an archive
READABLE_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED_FLAG = 1  # a flag of the zip format
LEVEL = r"(?P<level>[0-9.]+(?:E-?[0-9]+)?)"
COLUMN = r" for attribute '(?P<column>.*)'"
PATTERNS = tuple(
    (letter, re.compile(pattern, re.DOTALL))
    for letter, pattern in (
        ("k", r"(?P<level>[0-9]{1,9})-anonymity"),
        ("l", rf"(?P<how>distinct)-{LEVEL}-diversity{COLUMN}"),
        ("l", rf"(?:shannon-)?(?P<how>entropy)-{LEVEL}-diversity{COLUMN}"),
        ("l", rf"(?P<how>recursive)-\((?P<c>[0-9.E-]+),(?P<level>[0-9]+)\)-diversity{COLUMN}"),
        ("t", rf"{LEVEL}-closeness with (?P<how>equal|ordered|hierarchical) distance{COLUMN}"),
        ("beta", rf"{LEVEL}-(?P<how>basic) likeness{COLUMN}"),
        ("beta", rf"(?P<how>enhanced)-{LEVEL}-likeness{COLUMN}"),
        ("delta", rf"{LEVEL}-disclosure privacy{COLUMN}"),
        ("average_risk", rf"\({LEVEL}(?:, (?P<above>[0-9.E-]+), (?P<most>[0-9.E-]+))?\)-avg-reidentification-risk"),
    )
)


@dataclass(frozen=True)
class Criterion:
    """A promise: k, an average risk, or the l, t, beta or delta of a column in one of its kinds."""

    letter: str  # k, l, t, beta, delta, average_risk
    level: float
    column: str = ""
    how: str = ""  # l: distinct, entropy, recursive; t: equal, ordered, hierarchical; beta: basic, enhanced
    c: float | None = None  # of recursive l-diversity
    text: str = ""  # the sentence of ARX
    share: tuple[float, float] | None = None  # average_risk: the records above a risk, and how many there may be


def parse_criterion(text: str) -> Criterion | None:
    """Return the promise that a sentence of ARX states, or None if kinfold has no such promise.

    >>> parse_criterion("5-anonymity").level
    5.0
    >>> parse_criterion("0.2-closeness with equal distance for attribute 'a'").how
    'equal'
    >>> parse_criterion("(0.1, 0.5)-presence") is None
    True
    """
    for letter, pattern in PATTERNS:
        if match := pattern.fullmatch(text):
            groups = match.groupdict()
            try:
                level, c = float(groups["level"]), float(groups["c"]) if groups.get("c") else None
                share = (float(groups["above"]), float(groups["most"])) if groups.get("above") else None
            except ValueError:  # 1.2.3
                return None
            criterion = Criterion(letter, level, groups.get("column", ""), groups.get("how", ""), c, text, share)
            return criterion if _is_valid(criterion) else None
    return None


NUMBER = r"([0-9.E-]+)"
POPULATION = (  # of ARX's sentences about a population: the key that says the same
    (r"\(([0-9]+)\)-map", 'table = "PEOPLE.csv", k = {}'),
    (r"\(([0-9]+)\)-map estimated as .*", "size = PEOPLE, k = {}, alpha = RISK"),
    (rf"\({NUMBER}, ?{NUMBER}\)-presence", 'table = "PEOPLE.csv", presence = [{}, {}]'),
    (rf"\({NUMBER}\)-population-uniqueness \(([a-z]+)\)", 'size = PEOPLE, uniques = {}, estimator = "{}"'),
)


def explain_omission(text: str) -> str:
    """Return a note on a sentence of ARX that no key is made of.

    >>> explain_omission("(5)-map")
    'left out, because a project keeps its population in serialized form only: (5)-map; add to [privacy]: \
population = { table = "PEOPLE.csv", k = 5 }'
    """
    for pattern, key in POPULATION:
        if match := re.fullmatch(pattern, text):
            what = f"left out, because a project keeps its population in serialized form only: {text}"
            return f"{what}; add to [privacy]: population = {{ {key.format(*match.groups())} }}"
    return f"left out, because kinfold has no such model: {text}"


def _is_valid(criterion: Criterion) -> bool:
    """Whether a policy can promise it: k from 2, l from 1, t and a risk above 0 and at most 1, others above 0."""
    if criterion.letter in ("t", "average_risk"):
        above, most = criterion.share or (1.0, 0.0)
        return 0 < criterion.level <= 1 and 0 < above <= 1 and 0 <= most < 1
    if criterion.letter in ("beta", "delta"):
        return 0 < criterion.level < math.inf
    if criterion.c is not None and not 0 < criterion.c < math.inf:
        return False
    return (2 if criterion.letter == "k" else 1) <= criterion.level < math.inf


def convert_criteria(
    criteria: Iterable[Criterion], confidential: Iterable[str]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]], list[str]]:
    """Return the keys of `[privacy]`, those of each confidential column, and notes; the strictest criterion counts.

    >>> convert_criteria([Criterion("k", 5), Criterion("l", 2, "illness", "distinct")], ["illness"])
    ({'k': 5}, {'illness': {'l': 2}}, [])
    """
    listed = list(criteria)
    notes = []
    ks = [int(each.level) for each in listed if each.letter == "k"]
    if not ks:
        notes.append("the project has no readable k-anonymity, but a policy needs one: k = 2 is set")
    privacy: dict[str, Any] = {"k": max(ks, default=2)}
    columns: dict[str, dict[str, Any]] = {name: {} for name in confidential}
    kind = next(((each.how, each.c) for each in listed if each.letter == "l" and each.column in columns), None)
    if kind and kind[0] != "distinct":
        privacy |= {"l_kind": kind[0]} | ({"c": kind[1]} if kind[1] else {})
    for each in listed:
        column = columns.get(each.column)
        if each.letter == "k":
            continue
        if each.letter == "average_risk":
            notes += _add_average_risk(privacy, each)
        elif column is not None and each.letter in ("beta", "delta"):
            notes += _add_likeness(privacy, each, len(columns))
        elif column is None:
            notes.append(f"left out, because its column is not confidential: {each.text}")
        elif each.letter == "l" and (each.how, each.c) != kind:
            notes.append(f"left out, because a policy has one kind of l-diversity: {each.text}")
        elif each.letter == "l":
            l = float(max(each.level, column.get("l", 1.0)))
            column["l"] = int(l) if l.is_integer() else l
        elif column.get("distance", each.how) != each.how:
            notes.append(f"left out, because a column has one distance: {each.text}")
        else:
            column |= {"t": min(each.level, column.get("t", 1.0)), "distance": each.how}
    return privacy, columns, notes


def _add_average_risk(privacy: dict[str, Any], criterion: Criterion) -> Iterator[str]:
    """Add an average risk, and a share of records at risk, to `[privacy]`; the strictest counts."""
    privacy["average_risk"] = min(criterion.level, privacy.get("average_risk", 1.0))
    if criterion.share is not None:
        if "risk_share" in privacy:
            yield f"left out, because a policy has one share of records at risk: {criterion.text}"
        else:
            privacy["risk_share"] = dict(zip(("above", "most"), criterion.share, strict=True))


def _add_likeness(privacy: dict[str, Any], criterion: Criterion, columns: int) -> Iterator[str]:
    """Add beta-likeness or delta-disclosure to `[privacy]`; the strictest counts, for every confidential column."""
    key = criterion.letter
    if key == "beta" and privacy.get("beta_kind", criterion.how) != criterion.how:
        yield f"left out, because a policy has one kind of beta-likeness: {criterion.text}"
        return
    privacy[key] = min(criterion.level, privacy.get(key, math.inf))
    if key == "beta":
        privacy["beta_kind"] = criterion.how
    else:
        yield "delta is stricter than in ARX: a value that a class lacks counts too (docs/models/delta-disclosure.md)"
    if columns > 1:
        yield f"privacy.{key} is for every confidential column, in ARX for one: {criterion.text}"


@dataclass(frozen=True)
class ArxAttribute:
    """A column as ARX defines it; `lowest` and `highest` limit its levels."""

    name: str
    role: Role
    datatype: str = "String"  # String, Ordinal, Integer, Decimal, Date
    format: str = ""  # Java format of numbers and dates; categories of an ordinal column, one per line
    hierarchy: tuple[tuple[str, ...], ...] = ()  # one row per value, ever coarser
    lowest: int | None = None
    highest: int | None = None
    weight: float | None = None
    averaged: str = ""  # microaggregation function of ARX


@dataclass(frozen=True)
class ArxProject:
    """The content of a `.deid` file: data as CSV in UTF-8, columns in the order of the data, configuration."""

    name: str
    version: str  # of ARX
    data: bytes
    separator: str
    attributes: tuple[ArxAttribute, ...]
    criteria: tuple[Criterion, ...] = ()
    others: tuple[str, ...] = ()  # sentences of criteria that kinfold does not have
    suppression: float = 0.0  # share of the records
    metric: str = ""
    notes: tuple[str, ...] = ()  # on reading the file

    def select_role(self, role: Role) -> tuple[ArxAttribute, ...]:
        """Return the columns of a role."""
        return tuple(attribute for attribute in self.attributes if attribute.role is role)

    def rows(self) -> Iterator[list[str]]:
        """Yield the records; raise if one has not a field for each column."""
        width = len(self.attributes)
        for number, row in enumerate(read_csv(self.data.decode(), self.separator, "the data")):
            if len(row) != width:
                what = f"the data: record {number} has {len(row)} fields, and the header {width}"
                raise DataError(what, fix="save the project again")
            if number:
                yield row

    def values(self) -> dict[str, set[str]]:
        """Return the distinct values of each column; a missing value is the empty text."""
        values: dict[str, set[str]] = {attribute.name: set() for attribute in self.attributes}
        for row in self.rows():
            for column, value in zip(values.values(), row, strict=True):
                column.add(value)
        return values


def read_csv(text: str, separator: str, where: str) -> Iterator[list[str]]:
    """Yield the records of a CSV text that are not empty."""
    try:
        yield from (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row)
    except csv.Error:
        raise DataError(f"{where}: a quote is open, or a field is very long", fix="save the project again") from None


VERSION = re.compile(r"[23](\.[0-9]+)*\b.*")
VOCABULARIES = ("1.0", "2.0")
SEPARATOR = ";"  # default
ROLES = {
    "IDENTIFYING_ATTRIBUTE": Role.IDENTIFIER,
    "QUASI_IDENTIFYING_ATTRIBUTE": Role.QUASI,
    "SENSITIVE_ATTRIBUTE": Role.CONFIDENTIAL,
    "INSENSITIVE_ATTRIBUTE": Role.OTHER,
}
DATATYPES = ("String", "Ordinal", "Integer", "Decimal", "Date")
UNBOUNDED = "All"


class Archive:
    """The parts of a zip archive by name."""

    def __init__(self, path: Path) -> None:
        self.name = f"'{path.name}'"
        self._left = MAX_ARCHIVE_BYTES
        try:
            self._zip = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, struct.error, RuntimeError, ValueError):
            raise DataError(f"{self.name} is not a zip archive", fix="check that the file is complete") from None
        except OSError as error:
            raise DataError(f"'{path}': {error.strerror}", fix="check the path and its permissions") from None
        self._parts = {part.filename: part for part in self._zip.infolist()}
        if len(self._parts) < len(self._zip.infolist()) or len(self._parts) > MAX_ARCHIVE_PARTS:
            self._zip.close()
            what = f"{self.name} has two parts with the same name, or more than {MAX_ARCHIVE_PARTS:,} parts"
            raise DataError(what, fix="save the project again")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    def read_part(self, name: str, largest: int = MAX_ARCHIVE_BYTES) -> bytes:
        """Return the bytes of a part."""
        if name not in self._parts:
            raise DataError(f"{self.name} has no part '{name}'", fix="check that it is a complete ARX project")
        part, limit = self._parts[name], min(largest, self._left)
        if part.compress_type not in READABLE_METHODS or part.flag_bits & ENCRYPTED_FLAG:
            what = f"'{name}' in {self.name} is encrypted, or packed with an unknown method"
            raise DataError(what, fix="save the project again, as ARX does")
        try:
            with self._zip.open(part) as file:
                data = file.read(limit + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError):
            raise DataError(f"'{name}' in {self.name} is damaged", fix="check that the file is complete") from None
        if len(data) > limit:
            what = f"'{name}' in {self.name} is larger than the limit ({limit:,} bytes)"
            raise DataError(what, fix="export the data from ARX as CSV, and write a policy for it")
        self._left -= len(data)
        return data

    def read_text(self, name: str) -> str:
        """Return a part as text: UTF-8, or Windows-1252 as older versions of ARX write it."""
        data = self.read_part(name)
        for encoding in ("utf-8-sig", "cp1252"):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError:
                continue
        raise DataError(f"'{name}' in {self.name} is not text in UTF-8 or Windows-1252", fix="save the project again")

    def read_xml(self, name: str) -> Element:
        """Return the root of a part that is XML without a document type."""
        return parse_xml(self.read_part(name, MAX_XML_BYTES), f"'{name}' in {self.name}")


def parse_xml(data: bytes, where: str) -> Element:
    """Return the root of an XML document; raise if it is not XML or declares a document type."""
    try:
        root: Element = fromstring(data, forbid_dtd=True)
    except DTDForbidden:
        what = f"{where} declares a document type, which no supported tool writes"
        raise DataError(what, fix="do not trust this file") from None
    except (ParseError, ValueError, LookupError):
        raise DataError(f"{where} is not XML", fix="check that the file is complete") from None
    return root


def read_deid(path: str | Path) -> ArxProject:
    """Return the content of a project; nothing is deserialized or unpacked."""
    with Archive(Path(path)) as archive:
        version, vocabulary = _read_versions(archive)
        name, separator = _read_syntax(archive)
        text = archive.read_text("data/input.csv")
        defined = _read_definitions(archive, vocabulary, separator)
        config = _read_configuration(archive)
    where = f"the data in {archive.name}"
    columns, notes = _order_columns(next(read_csv(text, separator, where), []), defined, where)
    weights = config.pop("weights", {})
    attributes = tuple(replace(each, weight=weights.get(each.name)) for each in columns)
    return ArxProject(name, version, text.encode(), separator, attributes, notes=notes, **config)


def _read_versions(archive: Archive) -> tuple[str, str]:
    if "metadata.xml" not in archive:
        raise DataError(f"{archive.name} is a zip archive, but not an ARX project", fix="name a .deid file of ARX")
    metadata = archive.read_xml("metadata.xml")
    version, vocabulary = _read_text(metadata, "version"), _read_text(metadata, "vocabulary") or VOCABULARIES[0]
    if vocabulary not in VOCABULARIES or not VERSION.fullmatch(version):
        what = f"{archive.name} is of ARX '{version[:20]}' with vocabulary '{vocabulary[:20]}'"
        fix = f"open it in ARX 2 or 3 and save it again; kinfold reads vocabularies {' and '.join(VOCABULARIES)}"
        raise DataError(what, fix=fix)
    return version, vocabulary


def _read_syntax(archive: Archive) -> tuple[str, str]:
    if "project.xml" not in archive:
        return "", SEPARATOR
    project = archive.read_xml("project.xml")
    separator = project.findtext("separator", SEPARATOR)  # as it is: it may be a tab
    if len(separator) != 1 or separator in '"\r\n':
        raise DataError(f"{archive.name} does not separate fields by a single character", fix="save the project again")
    return _read_text(project, "name"), separator


def _read_definitions(archive: Archive, vocabulary: str, separator: str) -> list[tuple[ArxAttribute, str]]:
    """Return each defined column, with a note or an empty text."""
    definition = archive.read_xml("input/definition.xml")
    columns = [_read_attribute(archive, element, vocabulary, separator) for element in definition.iter("assigment")]
    repeated = [name for name, count in Counter(each.name for each, _ in columns).items() if count > 1]
    if repeated:
        raise DataError(f"{archive.name} defines '{repeated[0]}' more than once", fix="save the project again")
    return columns


def _read_attribute(archive: Archive, element: Element, vocabulary: str, separator: str) -> tuple[ArxAttribute, str]:
    name, role = element.findtext("name", ""), ROLES.get(_read_text(element, "type"))
    if not name or role is None:
        what = f"{archive.name} defines a column without a name, or with an unknown type"
        raise DataError(what, fix="open it in ARX and save it again")
    datatype, form = _read_text(element, "datatype") or "String", element.findtext("format") or ""
    if vocabulary == "1.0" and datatype not in ("String", "Decimal"):
        datatype, form = "Date", datatype  # the format stands in the place of the name
    if datatype not in DATATYPES:
        raise DataError(f"{archive.name}: '{name}' has an unknown data type", fix="choose a data type of ARX")
    part = element.findtext("ref")
    attribute = ArxAttribute(name, role, datatype, form, averaged=_read_text(element, "microaggregationFunction"))
    if not part or role not in (Role.QUASI, Role.CONFIDENTIAL):
        return attribute, ""
    if f"input/{part}" not in archive:  # as in projects of ARX 3.4.1
        return attribute, f"'{name}': the project names a hierarchy but does not contain it"
    text = archive.read_text(f"input/{part}")
    rows = tuple(tuple(row) for row in read_csv(text, separator, f"the hierarchy of '{name}'"))
    lowest, highest = (_read_level(element, bound, name) for bound in ("min", "max"))
    return replace(attribute, hierarchy=rows, lowest=lowest, highest=highest), ""


def _read_level(element: Element, bound: str, name: str) -> int | None:
    text = _read_text(element, bound) or UNBOUNDED
    if text == UNBOUNDED:
        return None
    if not re.fullmatch(r"[0-9]{1,6}", text):
        raise DataError(f"'{name}': the {bound} of its levels is not a number", fix="open it in ARX and save it again")
    return int(text)


def _read_configuration(archive: Archive) -> dict[str, Any]:
    """Return fields of the project, and the weights of columns by name."""
    if "input/config.xml" not in archive:
        return {}
    config = archive.read_xml("input/config.xml")
    texts = [(element.text or "").strip() for element in config.iterfind("criteria/criterion")]
    read = [(text, parse_criterion(text)) for text in texts]
    weights = {
        element.findtext("attribute", ""): _read_number(element, "weight", archive.name)
        for element in config.iterfind("attributeWeights/attributeWeight")
    }
    suppression = _read_number(config, "relativeMaxOutliers", archive.name)
    if not 0 <= suppression <= 1:
        what = f"{archive.name}: the suppression limit is not between 0 and 1"
        raise DataError(what, fix="set it in ARX from 0 to 100 %")
    return {
        "criteria": tuple(criterion for _, criterion in read if criterion),
        "others": tuple(text for text, criterion in read if not criterion),
        "suppression": suppression,
        "metric": _read_text(config, "metric"),
        "weights": weights,
    }


def _read_number(element: Element, name: str, where: str) -> float:
    text = _read_text(element, name) or "0"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        what = f"{where}: '{name}' of the configuration is not a number"
        raise DataError(what, fix="open it in ARX and save it again")
    return number


def _order_columns(
    header: list[str], defined: list[tuple[ArxAttribute, str]], where: str
) -> tuple[tuple[ArxAttribute, ...], tuple[str, ...]]:
    """Return the columns in the order of the data; undefined columns are identifiers, as in ARX."""
    by_name = {attribute.name: attribute for attribute, _ in defined}
    if not header or len(set(header)) < len(header):
        raise DataError(f"{where} has no header, or its header has a column twice", fix="save the project again")
    if absent := [name for name in by_name if name not in header]:
        raise DataError(f"{where} has no column '{absent[0]}', which is defined", fix="save the project again")
    undefined = [name for name in header if name not in by_name]
    notes = [note for _, note in defined if note]
    notes += [f"'{name}': the project does not define it; it is removed as an identifier" for name in undefined]
    return tuple(by_name.get(name, ArxAttribute(name, Role.IDENTIFIER)) for name in header), tuple(notes)


def _read_text(element: Element, name: str) -> str:
    return (element.findtext(name) or "").strip()
