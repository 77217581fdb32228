"""Projects of ARX, put together part by part as ARX 3.7 writes them (XML vocabulary 2.0); no file of ARX is copied."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

QUASI, SENSITIVE = "QUASI_IDENTIFYING_ATTRIBUTE", "SENSITIVE_ATTRIBUTE"
IDENTIFYING, INSENSITIVE = "IDENTIFYING_ATTRIBUTE", "INSENSITIVE_ATTRIBUTE"
SERIALIZED = b"\xac\xed\x00\x05sr\x00\x11java.util.HashMap"  # how a Java object stream begins


@dataclass(frozen=True)
class Defined:
    """A column with its values and what the project says of it."""

    name: str
    values: Sequence[str]
    type: str = INSENSITIVE
    datatype: str = "String"
    format: str = ""
    hierarchy: Sequence[Sequence[str]] = ()
    least: str = "All"
    most: str = "All"
    averaged: str = ""


def project(
    folder: Path,
    columns: Sequence[Defined],
    criteria: Sequence[str] = ("2-anonymity",),
    *,
    separator: str = ";",
    config: str = "",
    parts: Mapping[str, bytes | None] | None = None,
) -> Path:
    """Write a project; `config` is more of its configuration, `parts` replace those made here, None leaves one out."""
    made: dict[str, bytes | None] = {
        "metadata.xml": element("metadata", text("version", "3.7.0") + text("vocabulary", "2.0")),
        "project.dat": SERIALIZED,
        "project.xml": element("project", text("name", "a study") + text("separator", separator) + text("quote", '"')),
        "data/input.csv": table(zip(*([c.name, *c.values] for c in columns), strict=True), separator),
        "input/config.dat": SERIALIZED,
        "input/config.xml": configuration(criteria, config),
        "input/definition.xml": element("definition", "".join(assignment(column) for column in columns)),
    }
    for column in columns:
        if column.hierarchy:
            made[f"input/hierarchies/{column.name}.csv"] = table(column.hierarchy, separator)
    path = folder / "study.deid"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**made, **(parts or {})}.items():
            if data is not None:
                archive.writestr(name, data)
    return path


def element(name: str, inside: str) -> bytes:
    """An element as the root of a document without a declaration, non-ASCII characters as references."""
    return f"<{name}>\n{inside}</{name}>\n".encode("ascii", "xmlcharrefreplace")


def text(name: str, value: str) -> str:
    return f"\t<{name}>{escape(value)}</{name}>\n"


def configuration(criteria: Sequence[str], more: str = "") -> bytes:
    told = "".join(text("criterion", criterion) for criterion in criteria)
    return element("config", text("practicalMonotonicity", "false") + more + f"<criteria>\n{told}</criteria>\n")


def weights(**of: float) -> str:
    each = [f"<attributeWeight>{text('attribute', n)}{text('weight', str(w))}</attributeWeight>" for n, w in of.items()]
    return f"<attributeWeights>{''.join(each)}</attributeWeights>"


def assignment(column: Defined) -> str:
    inside = text("name", column.name) + text("type", column.type) + text("datatype", column.datatype)
    if column.format:
        inside += text("format", column.format)
    if column.hierarchy:
        inside += text("ref", f"hierarchies/{column.name}.csv") + text("min", column.least) + text("max", column.most)
    if column.averaged:
        inside += text("microaggregationFunction", column.averaged)
        inside += text("microaggregationIgnoreMissingData", "true")
    return f"<assigment>\n{inside}</assigment>\n"


def table(rows: object, separator: str) -> bytes:
    lines = io.StringIO(newline="")
    csv.writer(lines, delimiter=separator, lineterminator="\n").writerows(rows)  # type: ignore[arg-type]
    return lines.getvalue().encode()


AGES = ["21", "22", "23", "24", "31", "32", "33", "34"]
ZIPS = ["02138", "02138", "02139", "02139", "02141", "02141", "02142", "02142"]
ILLNESSES = ["flu", "cold", "gout", "flu", "flu", "cold", "flu", "gout"]


def age(**more: str) -> Defined:
    return Defined("age", AGES, QUASI, "Integer", hierarchy=[(a, f"{a[0]}0s", "*") for a in AGES], **more)


def zip_code(**more: str) -> Defined:
    rows = [(z, f"{z[:4]}*", f"{z[:3]}**", "*") for z in sorted(set(ZIPS))]
    return Defined("zip", ZIPS, QUASI, hierarchy=rows, **more)


def illness(**more: object) -> Defined:
    rows = (("flu", "airways", "*"), ("cold", "airways", "*"), ("gout", "joints", "*"))
    return Defined("illness", ILLNESSES, SENSITIVE, hierarchy=rows, **more)  # type: ignore[arg-type]


def study() -> list[Defined]:
    """A column of each role: eight people."""
    names = Defined("name", [f"person {i}" for i in range(8)], IDENTIFYING)
    return [names, age(), zip_code(), illness(), Defined("visits", list("12121212"), INSENSITIVE, "Integer")]
