"""The data dictionary of a release, for recipients: computed from the released rows and the policy alone.

dictionary.json    each column: type, role, what was done, values or range as released, missing values
dictionary.md      the same as a table to read
datapackage.json   the same as a tabular data package of Frictionless (specs.frictionlessdata.io), to load with types

The same release gives the same bytes. Only values that occur in the release are listed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kinfold.measures.measurement import MAX_VALUES_LISTED
from kinfold.measures.pairing import NumberCounts, max_distinct_counted
from kinfold.policy.binding import BoundColumn
from kinfold.policy.encoding import format_value
from kinfold.policy.preparation import describe_recoding
from kinfold.release.report.description import ReleaseContents, describe_treatment, order_labels
from kinfold.release.report.wording import format_count, make_visible
from kinfold.tables.readers.files import hash_file
from kinfold.tables.recoding import Drop
from kinfold.tables.schema import MAX_EXACT_INTEGER, Column, Kind, Storage, normalize_category

QUOTED_NOTE = "An apostrophe stands before each text that a spreadsheet would take for a formula."
FIELD_TYPES = {
    Storage.INTEGER: "integer",
    Storage.NUMBER: "number",
    Storage.DATE: "date",
    Storage.TIMESTAMP: "datetime",
    Storage.BOOLEAN: "boolean",
    Storage.TEXT: "string",
}
PLAIN_DATES = re.compile(r"(%[dmyYbBHMSjp]|[^%])+")  # codes that Frictionless reads too
MARKDOWN_SIGNS = re.compile(r"([\\`*_{}\[\]<>|#~])")


def write_dictionary(contents: ReleaseContents, file: Path, form: Mapping[str, Any]) -> tuple[Path, ...]:
    """Write the three files next to the released file and return their paths; `form` is how the file is written."""
    columns = [*_describe_columns(contents)]
    parts = {"parts": len([*file.iterdir()])} if file.is_dir() else {}
    counts = {**parts, "records": contents.schema.rows}
    dictionary: dict[str, Any] = {"file": file.name, **counts, **form, "columns": columns}
    if tables := [*_list_tables(contents, file)]:
        dictionary = {"tables": tables, **dictionary}
    texts = {
        "dictionary.json": _dump(dictionary),
        "dictionary.md": _write_markdown(dictionary),
        "datapackage.json": _dump(_build_package(contents, file, dictionary)),
    }
    for name, text in texts.items():
        (file.parent / name).write_text(text.encode("utf-8", "replace").decode("utf-8"), encoding="utf-8")
    return tuple(file.parent / name for name in texts)


def _dump(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _list_tables(contents: ReleaseContents, file: Path) -> Iterator[dict[str, Any]]:
    """Yield each file of a release of several tables, with its columns; nothing for a single table."""
    parts, policy = contents.release.original.parts, contents.release.policy.request
    if parts is None:
        return
    linked = {name for columns in parts.columns for name in columns}
    present = [column.name for column in contents.schema]
    yield {"file": file.name, "columns": [name for name in present if name not in linked]}
    for name, columns in zip(policy.tables, parts.columns, strict=True):
        names = [policy.privacy.unit, *(each for each in present if each in columns)]
        yield {"file": file.with_stem(name).name, "columns": names}


def _describe_columns(contents: ReleaseContents) -> Iterator[dict[str, Any]]:
    """Yield what is known about each released column, in the order of the file."""
    release = contents.release
    counted = max_distinct_counted(release.engine)
    for column in contents.schema:
        bound, treatment = release.policy[column.name], release.plan.recoding.columns[column.name]
        assert not isinstance(treatment, Drop)  # noqa: S101  the column is in the release
        done = filter(None, (describe_recoding(bound.request), describe_treatment(bound, treatment)))
        filled, different = contents.count_filled(bound)
        yield {
            "name": column.name,
            "type": FIELD_TYPES[column.storage],
            "scale": str(bound.kind),
            "role": bound.released_role,
            "treatment": ", then ".join(done),
            "missing": column.rows - filled,
            "distinct": different,
            **_describe_values(bound, column, contents.values(bound), exact=column.distinct <= counted),
            **list_labels(contents.before.get(column.name), contents.values(bound)),
        }


def list_labels(source: Column | None, values: NumberCounts | Counter[str | None]) -> dict[str, Any]:
    """Return the value labels of the source, by code, as far as the code or its label occurs in the release."""
    declared = source.labels if source is not None else {}
    if not declared:  # of most sources: their values are not read
        return {}
    texts = values if isinstance(values, Counter) else values.finite.tolist()
    present = {normalize_category(str(text)) for text in texts if text is not None}
    labels = {code: label for code, label in declared.items() if {normalize_category(code), label} & present}
    return {"labels": labels} if labels else {}


def _describe_values(
    bound: BoundColumn, column: Column, values: NumberCounts | Counter[str | None], *, exact: bool
) -> dict[str, Any]:
    """Return the range of numbers and dates, the values of categories if they are few, or nothing.

    Values that are not `exact` are those of a sample.
    """
    if bound.surrogate:
        return {}
    if isinstance(values, Counter):
        present = {value for value in values if value is not None}
        if len(present) > MAX_VALUES_LISTED:
            return {}
        order = order_labels(bound, present) or sorted(present)
        return {"values": [value for value in order if value in present]}
    finite = values.finite[~np.isnan(values.finite)]
    ends = [float(end) for end in (finite.min(), finite.max())] if len(finite) else []
    whole = column.storage is Storage.INTEGER
    if not ends or not exact or (whole and max(map(abs, ends)) >= MAX_EXACT_INTEGER):
        return {}
    if bound.kind is Kind.DATE:
        return {"range": [format_value(bound, end) for end in ends]}
    return {"range": [int(end) if whole else end for end in ends]}


def _build_package(contents: ReleaseContents, file: Path, dictionary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data package; `hash` and `bytes` are those of a CSV file."""
    columns = zip(contents.schema, dictionary["columns"], strict=True)
    fields = {column.name: _build_field(column, entry, dictionary) for column, entry in columns}
    tables = dictionary.get("tables") or [{"file": file.name, "columns": [*fields]}]
    return {
        "profile": "tabular-data-package",
        "name": "release",
        "description": "Made by kinfold. The certificate says what is promised.",
        "resources": [
            _build_resource(file.with_name(table["file"]), dictionary)
            | {"schema": {"fields": [fields[name] for name in table["columns"]], "missingValues": [""]}}
            for table in tables
        ],
    }


def _build_resource(file: Path, dictionary: Mapping[str, Any]) -> dict[str, Any]:
    parts = sorted(file.iterdir()) if file.is_dir() else []
    ending = (parts or [file])[0].suffix
    resource: dict[str, Any] = {
        "profile": "tabular-data-resource",
        "name": file.stem,
        "path": [f"{file.name}/{part.name}" for part in parts] or file.name,
        "format": ending[1:],
        "mediatype": "text/csv" if ending == ".csv" else "application/vnd.apache.parquet",
        **({"description": QUOTED_NOTE} if dictionary.get("quoted") else {}),
    }
    if ending == ".csv":
        dialect = {"delimiter": dictionary["separator"], "quoteChar": '"', "doubleQuote": True, "header": True}
        # Frictionless: only of one text
        checksums = {} if parts else {"bytes": file.stat().st_size, "hash": f"sha256:{hash_file(file)}"}
        resource |= {"encoding": "utf-8", **checksums, "dialect": dialect}
    return resource


def _build_field(column: Column, entry: Mapping[str, Any], dictionary: Mapping[str, Any]) -> dict[str, Any]:
    field: dict[str, Any] = {"name": column.name, "type": entry["type"], "description": entry["treatment"]}
    if column.storage is Storage.NUMBER and dictionary.get("decimal"):
        field["decimalChar"] = dictionary["decimal"]
    if column.storage in (Storage.DATE, Storage.TIMESTAMP):
        form = column.date_format or ""  # a source with types has none, and writes moments with or without a time
        field["format"] = "default" if form == "%Y-%m-%d" else form if PLAIN_DATES.fullmatch(form) else "any"
    if column.storage is Storage.TEXT and entry.get("values") and not dictionary.get("quoted"):
        field["constraints"] = {"enum": entry["values"]}
    return field


def _write_markdown(dictionary: Mapping[str, Any]) -> str:
    tables = dictionary.get("tables") or [{"file": dictionary["file"]}]
    if dictionary.get("parts"):
        tables = [{"file": f"{dictionary['file']}/part-*"}]
    files = ", ".join(f"`{table['file']}`" for table in tables) + (", joined" if len(tables) > 1 else "")
    lines = [
        "# Data dictionary",
        "",
        f"{files}, {format_count(dictionary['records'])} records. An empty field is a missing value."
        + (f" {QUOTED_NOTE}" if dictionary.get("quoted") else ""),
        *(f"\n`{each['file']}`: {', '.join(map(_escape, each['columns']))}" for each in tables if "columns" in each),
        "",
        "| column | type | role | what was done | values | missing |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for column in dictionary["columns"]:
        kind = f"{column['type']}, {column['scale']}"
        done = (_escape(column["name"]), kind, column["role"], _escape(column["treatment"]), _list_values(column))
        lines.append(f"| {' | '.join(done)} | {format_count(column['missing'])} |")
    return "\n".join(lines) + "\n"


def _list_values(column: Mapping[str, Any]) -> str:
    if "labels" in column and len(column["labels"]) <= MAX_VALUES_LISTED:
        return ", ".join(f"{_escape(code)} = {_escape(label)}" for code, label in column["labels"].items())
    if "range" in column:
        return " to ".join(_escape(str(end)) for end in column["range"])
    if column.get("values"):
        return ", ".join(map(_escape, column["values"]))
    return f"{format_count(column['distinct'])} different values"


def _escape(text: str) -> str:
    return MARKDOWN_SIGNS.sub(r"\\\1", make_visible(text))
