"""sdcMicro key variables: from a report, or from a script that calls `createSdcObj`.

A report (`report(sdc)`, as HTML or the Markdown it is made from) lists the variables as its template has them:

    Categorical Key-Variable(s): urbrur | roof        Continuous Key-Variable(s)    Weight-Variable    householdID
    strataVariable(s)    sensitive Variable(s) for l-diversity

A script names them in a call, directly or through variables that are assigned before:

    createSdcObj(dat, keyVars = c("urbrur", "roof"), numVars = "income", weightVar = "w", hhId = "hh")

k is that of `kAnon`, `localSuppression` and `microaggregation` (`aggr`). Further calls of a script are converted by
`sdc_calls`. Objects saved by R (`.rds`, `.RData`) are not
read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from typing import Any

from kinfold.convert.conversion import MIN_K, TableDescription
from kinfold.convert.sdc_calls import convert_calls
from kinfold.errors import DataError
from kinfold.tables.schema import Kind, Role

REPORT_LABELS = {  # label in a report: argument of createSdcObj
    "Categorical Key-Variable(s)": "keyVars",
    "Continuous Key-Variable(s)": "numVars",
    "Weight-Variable": "weightVar",
    "householdID": "hhId",
    "strataVariable(s)": "strataVar",
    "sensitive Variable(s) for l-diversity": "sensibleVar",
}
DELETED_HEADING = "(direct identifying) variables have been deleted"
ARGUMENT_KEYS: Mapping[str, Mapping[str, Any]] = {  # by argument; the first one that names a column counts
    "excludeVars": {"role": Role.IDENTIFIER},
    "hhId": {"role": Role.IDENTIFIER},
    "weightVar": {"role": Role.WEIGHT},
    "sensibleVar": {"role": Role.CONFIDENTIAL, "l": 2},
    "keyVars": {"role": Role.QUASI, "type": Kind.NOMINAL},
    "numVars": {"role": Role.QUASI, "type": Kind.CONTINUOUS},
    "pramVars": {"role": Role.OTHER},
    "strataVar": {"role": Role.OTHER},
}
ARGUMENT_NOTES = {
    "hhId": "{}: a household; with privacy.household = {} its members show the same",
    "strataVar": "{}: kinfold has no strata; the role is other, released as it is: choose another",
    "ghostVars": "{}: kinfold has no ghost variables; give each a role",
}
BLOCK_TAG = re.compile(r"</?(?:li|p|br|div|pre|tr|ul|h[1-4])\b[^>]*>", re.IGNORECASE)
TAG = re.compile(r"<[a-z/!][^>]*>", re.IGNORECASE)
NAME = r"[A-Za-z.][\w.]*"
ASSIGNMENT = re.compile(rf"({NAME})\s*(?:<-|=)\s*(c\([^()]*\)|\"[^\"\n]*\"|'[^'\n]*')")
K_CALL = re.compile(r"\b(?:kAnon|localSuppression|microaggregation)\s*\([^()]*?\b(?:k|aggr)\s*=\s*(\d{1,9})")


def is_sdc_micro(text: str) -> bool:
    """Whether a text is a report or a script of sdcMicro."""
    return "createSdcObj" in text or any(label in text for label in REPORT_LABELS)


def read_sdc_micro(text: str, where: str) -> TableDescription:
    """Return the settings in a report or a script."""
    plain = _extract_text(text)
    reported = dict(_read_report(plain))
    chosen = reported if any(reported.values()) else _read_script(plain, where)
    if not any(chosen.values()):
        what = f"{where} names no variables"
        raise DataError(what, fix='name them in createSdcObj, as in keyVars = c("age", "sex"), or use report(sdc)')
    columns: dict[str, dict[str, Any]] = {}
    for argument, keys in ARGUMENT_KEYS.items():
        for name in chosen.get(argument, ()):
            columns.setdefault(name, {key: str(value) if key != "l" else value for key, value in keys.items()})
    sizes = [int(size) for size in K_CALL.findall(plain)]
    notes = list(_list_notes(chosen))
    code = re.sub(r"#[^\n]*", "", plain)
    notes += convert_calls(code, columns, chosen)
    notes += [
        f"'{name}': a PRAM variable without perturb, because pram is not called with it; it is released as it is"
        for name in chosen.get("pramVars", ())
        if columns[name]["role"] == Role.OTHER and "perturb" not in columns[name]
    ]
    comments = {
        name: f"sdcMicro: {argument}" for argument in reversed([*ARGUMENT_KEYS]) for name in chosen.get(argument, ())
    }
    comments |= {name: "sdcMicro: treated, not in createSdcObj" for name in columns if name not in comments}
    if max(sizes, default=0) < MIN_K:
        sizes = [MIN_K]
        notes.insert(0, f"there is no k of kAnon, localSuppression or microaggregation: k = {MIN_K} is set")
    method = "auto" if chosen.get("numVars") else "local-suppression"  # which suppresses cells, as sdcMicro does
    sections: dict[str, dict[str, Any]] = {"privacy": {"k": max(sizes)}, "method": {"name": method}}
    return TableDescription("sdcMicro", columns, sections, comments, tuple(notes))


def _extract_text(text: str) -> str:
    """Return the text of a page, with a line for each block, or a script unchanged."""
    if not re.search(r"<(html|li|p|div)\b", text, re.IGNORECASE):
        return text
    return unescape(TAG.sub("", BLOCK_TAG.sub("\n", text)))


def _read_report(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the columns that a report lists, by argument of `createSdcObj`."""
    lines = [line.strip().lstrip("-* ").replace("**", "") for line in text.splitlines()]
    for line in lines:
        label, colon, names = line.partition(":")
        if colon and label in REPORT_LABELS:
            listed = [part.strip(" *_") for part in names.split("|")]
            yield REPORT_LABELS[label], [name for name in listed if name not in ("", "NULL")]
    deleted = next((place for place, line in enumerate(lines) if DELETED_HEADING in line), len(lines))
    following = next((line for line in lines[deleted + 1 :] if line), "")
    yield "excludeVars", [name for part in following.split("|") if (name := part.strip(" *"))]


def _read_script(text: str, where: str) -> dict[str, list[str]]:
    """Return the arguments of `createSdcObj` that name columns."""
    code = re.sub(r"#[^\n]*", "", text)
    call = _find_call(code, "createSdcObj")
    known: dict[str, str] = dict(ASSIGNMENT.findall(code[: code.find("createSdcObj")]))
    arguments: dict[str, list[str]] = {}
    for argument in (*ARGUMENT_KEYS, "ghostVars"):
        if match := re.search(rf"\b{argument}\s*=\s*(c\([^()]*\)|\"[^\"]*\"|'[^']*'|{NAME}|[^,]+)", call):
            arguments[argument] = _read_names(known.get(match[1], str(match[1])), argument, where)
    return arguments


def _find_call(code: str, function: str) -> str:
    """Return the arguments of the first call of a function as text."""
    start = code.find(function + "(") + len(function) + 1
    depth = 1
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return code[start:place]
    return code[start:]


def _read_names(value: str, argument: str, where: str) -> list[str]:
    if value.strip() == "NULL":
        return []
    names = [one or other for one, other in re.findall(r"\"([^\"]*)\"|'([^']*)'", value)]
    if not names:
        what = f"{where}: {argument} names its columns by numbers, or by a variable that is not assigned in the script"
        raise DataError(what, fix=f'write their names: {argument} = c("age", "sex")')
    return names


def _list_notes(chosen: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for argument, note in ARGUMENT_NOTES.items():
        for name in chosen.get(argument, ()):
            yield note.format(f"'{name}'", f'"{name}"')
    if chosen.get("keyVars") and chosen.get("numVars"):
        yield "sdcMicro protects categorical and continuous key variables separately; kinfold protects all together"
    if chosen.get("sensibleVar"):
        yield "sdcMicro measures l-diversity; the policy promises l = 2: change it, or leave it out"
    yield "columns that are not listed stop the run: give each a role, or drop them with --others drop"
