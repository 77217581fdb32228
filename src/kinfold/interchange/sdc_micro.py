"""sdcMicro's key variables: from a report, or from a script that calls `createSdcObj`.

A report (`report(sdc)`, HTML or the Markdown it is made from) lists what was chosen as its template has it:

    Categorical Key-Variable(s): urbrur | roof        Continuous Key-Variable(s)    Weight-Variable    householdID
    strataVariable(s)    sensitive Variable(s) for l-diversity

A script says the same in a call, with names or with variables that were given names before:

    createSdcObj(dat, keyVars = c("urbrur", "roof"), numVars = "income", weightVar = "w", hhId = "hh")

k is that of `kAnon`, `localSuppression` and `microaggregation` (`aggr`), in the script or in a report that has it. An
object that R saved (`.rds`, `.RData`) is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from kinfold.errors import DataError
from kinfold.interchange.described import LEAST, Described
from kinfold.rows.schema import Kind, Role

LABELS = {  # in a report, and the argument that it is of
    "Categorical Key-Variable(s)": "keyVars",
    "Continuous Key-Variable(s)": "numVars",
    "Weight-Variable": "weightVar",
    "householdID": "hhId",
    "strataVariable(s)": "strataVar",
    "sensitive Variable(s) for l-diversity": "sensibleVar",
}
DELETED = "(direct identifying) variables have been deleted"
COLUMNS: Mapping[str, Mapping[str, Any]] = {  # by the argument; the first that names a column counts
    "excludeVars": {"role": Role.IDENTIFIER},
    "hhId": {"role": Role.IDENTIFIER},
    "weightVar": {"role": Role.IDENTIFIER},
    "sensibleVar": {"role": Role.CONFIDENTIAL, "l": 2},
    "keyVars": {"role": Role.QUASI, "type": Kind.NOMINAL},
    "numVars": {"role": Role.QUASI, "type": Kind.CONTINUOUS},
    "pramVars": {"role": Role.OTHER},
    "strataVar": {"role": Role.OTHER},
}
TOLD = {
    "hhId": "{}: a household; with privacy.unit = {} k counts households, not rows",
    "pramVars": "{}: PRAM is not done here; the role is other, released as it is: choose another",
    "strataVar": "{}: strata are not kept apart here; the role is other, released as it is: choose another",
    "ghostVars": "{}: ghost variables are not known here; give each a role",
}
NAME = r"[A-Za-z.][\w.]*"
ASSIGNED = re.compile(rf"({NAME})\s*(?:<-|=)\s*(c\([^()]*\)|\"[^\"\n]*\"|'[^'\n]*')")
SIZES = re.compile(r"\b(?:kAnon|localSuppression|microaggregation)\s*\([^()]*?\b(?:k|aggr)\s*=\s*(\d{1,9})")


class _Lines(HTMLParser):
    """The text of a page, a line for each of its blocks."""

    BLOCKS = ("li", "p", "br", "div", "pre", "tr", "ul", "h1", "h2", "h3", "h4")

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002
        """Begin a line."""
        self._line(tag)

    def handle_endtag(self, tag: str) -> None:
        """End a line."""
        self._line(tag)

    def handle_data(self, data: str) -> None:
        """Add text."""
        self.parts.append(data)

    def _line(self, tag: str) -> None:
        if tag in self.BLOCKS:
            self.parts.append("\n")


def is_sdc_micro(text: str) -> bool:
    """Whether a text is a report or a script of sdcMicro."""
    return "createSdcObj" in text or any(label in text for label in LABELS)


def read_sdc_micro(text: str, where: str) -> Described:
    """Return what a report or a script says."""
    plain = _plain(text)
    reported = dict(_reported(plain))
    chosen = reported if any(reported.values()) else _scripted(plain, where)
    if not any(chosen.values()):
        what = f"{where} names no variables"
        raise DataError(what, fix='name them in createSdcObj, as in keyVars = c("age", "sex"), or use report(sdc)')
    columns: dict[str, dict[str, Any]] = {}
    for argument, keys in COLUMNS.items():
        for name in chosen.get(argument, ()):
            columns.setdefault(name, {key: str(value) if key != "l" else value for key, value in keys.items()})
    comments = {name: f"sdcMicro: {argument}" for argument in reversed([*COLUMNS]) for name in chosen.get(argument, ())}
    k, notes = _size(plain)
    return Described("sdcMicro", columns, _sections(chosen, k), comments, (*notes, *_notes(chosen)))


def _plain(text: str) -> str:
    """Return the text of a page, or of a script as it is."""
    if not re.search(r"<(html|li|p|div)\b", text, re.IGNORECASE):
        return text
    page = _Lines()
    page.feed(text)
    return "".join(page.parts)


def _reported(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what a report lists, by the argument that it is of."""
    lines = [line.strip().lstrip("-* ").replace("**", "") for line in text.splitlines()]
    for line in lines:
        label, colon, names = line.partition(":")
        if colon and label in LABELS:
            yield LABELS[label], [name for part in names.split("|") if (name := part.strip(" *_")) and name != "NULL"]
    deleted = next((place for place, line in enumerate(lines) if DELETED in line), len(lines))
    listed = next((line for line in lines[deleted + 1 :] if line), "")
    yield "excludeVars", [name for part in listed.split("|") if (name := part.strip(" *"))]


def _scripted(text: str, where: str) -> dict[str, list[str]]:
    """Return the arguments of `createSdcObj` that name columns."""
    code = re.sub(r"#[^\n]*", "", text)
    call = _call(code, "createSdcObj")
    known: dict[str, str] = dict(ASSIGNED.findall(code[: code.find("createSdcObj")]))
    found: dict[str, list[str]] = {}
    for argument in (*COLUMNS, "ghostVars"):
        if said := re.search(rf"\b{argument}\s*=\s*(c\([^()]*\)|\"[^\"]*\"|'[^']*'|{NAME}|[^,]+)", call):
            found[argument] = _names(known.get(said[1], str(said[1])), argument, where)
    return found


def _call(code: str, function: str) -> str:
    """Return what stands in the parentheses of the first call of a function."""
    start = code.find(function + "(") + len(function) + 1
    depth = 1
    for place in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[place], 0)
        if depth == 0:
            return code[start:place]
    return code[start:]


def _names(value: str, argument: str, where: str) -> list[str]:
    if value.strip() == "NULL":
        return []
    names = [one or other for one, other in re.findall(r"\"([^\"]*)\"|'([^']*)'", value)]
    if not names:
        what = f"{where}: {argument} names its columns by numbers, or by a variable that is made elsewhere"
        raise DataError(what, fix=f'write their names: {argument} = c("age", "sex")')
    return names


def _size(text: str) -> tuple[int, list[str]]:
    sizes = [int(size) for size in SIZES.findall(text)]
    if max(sizes, default=0) >= LEAST:
        return max(sizes), []
    return LEAST, [f"no k of kAnon, localSuppression or microaggregation is named: k = {LEAST} was put in"]


def _sections(chosen: Mapping[str, Sequence[str]], k: int) -> dict[str, dict[str, Any]]:
    """Return the sections of the policy: categories alone are suppressed cell by cell, as sdcMicro does."""
    method = "auto" if chosen.get("numVars") else "local-suppression"
    sections: dict[str, dict[str, Any]] = {"privacy": {"k": k}, "method": {"name": method}}
    if chosen.get("weightVar"):
        sections["report"] = {"sampling_weights": chosen["weightVar"][0]}
    return sections


def _notes(chosen: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for argument, told in TOLD.items():
        for name in chosen.get(argument, ()):
            yield told.format(f"'{name}'", f'"{name}"')
    if chosen.get("keyVars") and chosen.get("numVars"):
        yield "sdcMicro protects categorical and continuous key variables apart; here k holds for all of them together"
    if chosen.get("sensibleVar"):
        yield "sdcMicro measures l-diversity; here l = 2 is promised: say another, or leave it out"
    yield "columns that are not listed stop the run: name each, or leave them out with --others drop"
