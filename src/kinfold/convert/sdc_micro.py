"""sdcMicro: key variables from a report, or from a script that calls `createSdcObj`, and the treatments of a script.

A report (`report(sdc)`, as HTML or the Markdown it is made from) lists the variables as its template has them:

    Categorical Key-Variable(s): urbrur | roof        Continuous Key-Variable(s)    Weight-Variable    householdID
    strataVariable(s)    sensitive Variable(s) for l-diversity

A script names them in a call, directly or through variables that are assigned before:

    createSdcObj(dat, keyVars = c("urbrur", "roof"), numVars = "income", weightVar = "w", hhId = "hh")

k is the largest of `kAnon`, `localSuppression` and `microaggregation` (`aggr`). Treatments become keys of columns:

    pram(sdc, variables, pd)             perturb = { pram = pd } of a column that is not a key variable
    addNoise(sdc, variables, noise)      perturb = { noise = noise / 100 }; correlated: a share of the covariances
    rankSwap(sdc, variables, P)          perturb = { rank_swap = P }
    recordSwap(hierarchy, similar, swaprate, risk_variables, k_anonymity)    perturb = { record_swap = swaprate }
    topBotCoding(column, value, kind)    top or bottom
    kAnon, localSuppression(importance)  weight: the most important variable is blanked last
    kAnon, localSuppression(combs)       privacy.combinations, if no other call is about all key variables
    groupAndRename(var, before, after)   map
    removeDirectID(var)                  role = "identifier"
    localSupp(sdc, threshold)            privacy.individual_risk, with a weight variable

Arguments are read if they are numbers, texts or vectors of them, written in the call. Everything else becomes a note.
Objects saved by R (`.rds`, `.RData`) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import unescape
from typing import Any, TypeAlias

from kinfold.convert.conversion import MIN_K, TableDescription
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
    notes = list(_list_notes(chosen))
    code = re.sub(r"#[^\n]*", "", plain)
    sizes: list[int] = []
    privacy: dict[str, Any] = {}
    notes += _convert_sizes(code, sizes, privacy)
    notes += convert_calls(code, columns, chosen)
    notes += [
        f"'{name}': a PRAM variable that the script does not pass to pram; it is released as it is"
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
    privacy = {"k": max(sizes), **privacy}
    notes += _convert_thresholds(code, privacy, weighted=bool(chosen.get("weightVar")))
    sections: dict[str, dict[str, Any]] = {"privacy": privacy, "method": {"name": method}}
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
    call = next(find_calls(code, "createSdcObj"), "")
    known: dict[str, str] = dict(ASSIGNMENT.findall(code[: code.find("createSdcObj")]))
    arguments: dict[str, list[str]] = {}
    for argument in (*ARGUMENT_KEYS, "ghostVars"):
        if match := re.search(rf"\b{argument}\s*=\s*(c\([^()]*\)|\"[^\"]*\"|'[^']*'|{NAME}|[^,]+)", call):
            arguments[argument] = _read_names(known.get(match[1], str(match[1])), argument, where)
    return arguments


def _read_names(value: str, argument: str, where: str) -> list[str]:
    if value.strip() == "NULL":
        return []
    names = _list_texts(value)
    if not names:
        what = f"{where}: {argument} names its columns by numbers, or by a variable that is not assigned in the script"
        raise DataError(what, fix=f'write their names: {argument} = c("age", "sex")')
    return names


def _list_texts(code: str) -> list[str]:
    """Return the quoted texts in an argument."""
    return [one or other for one, other in re.findall(r"\"([^\"]*)\"|'([^']*)'", code)]


def _list_notes(chosen: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for argument, note in ARGUMENT_NOTES.items():
        for name in chosen.get(argument, ()):
            yield note.format(f"'{name}'", f'"{name}"')
    if chosen.get("keyVars") and chosen.get("numVars"):
        yield "sdcMicro protects categorical and continuous key variables separately; kinfold protects all together"
    if chosen.get("sensibleVar"):
        yield "sdcMicro measures l-diversity; the policy promises l = 2: change it, or leave it out"
    yield "columns that are not listed stop the run: give each a role, or drop them with --others drop"


Columns: TypeAlias = dict[str, dict[str, Any]]
Arguments: TypeAlias = Mapping[str, str]
Notes: TypeAlias = Iterator[str]

NO_COUNTERPART = ("shuffle", "mafast", "mergeHouseholdData", "createNewID", "dataGen", "mvTopCoding")
LEFT_OUT = {
    "globalRecode": "give the column a hierarchy, such as { intervals = [10, 20] }, or a map",
    "LocalRecProg": "choose a method that generalizes, such as mingen-cell",
}
NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
DEFAULTS = {"pd": 0.8, "noise": 150.0, "P": 5.0, "swaprate": 0.05, "k_anonymity": 3.0}  # of sdcMicro
ARGUMENT = re.compile(r"\b([A-Za-z_]+)\s*=\s*(c\([^()]*\)|\"[^\"\n]*\"|'[^'\n]*'|[^,()]+)")


def convert_calls(code: str, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> list[str]:
    """Add the keys of the treatments in a script to its columns, and return notes."""
    notes: list[str] = []
    for function, convert in CONVERTERS.items():
        for call in find_calls(code, function):
            notes += convert(dict(ARGUMENT.findall(call)), columns, chosen)
    notes += [f"{name} has no counterpart in a policy" for name in NO_COUNTERPART if any(find_calls(code, name))]
    notes += [f"{name} is left out: {fix}" for name, fix in LEFT_OUT.items() if any(find_calls(code, name))]
    return list(dict.fromkeys(notes))


def find_calls(code: str, function: str) -> Iterator[str]:
    """Yield the arguments of each call of a function as text.

    >>> list(find_calls("a <- pram(x, b = c(1, 2)); pram(y)", "pram"))
    ['x, b = c(1, 2)', 'y']
    """
    for match in re.finditer(rf"(?<![\w.]){function}\(", code):
        depth, start = 1, match.end()
        for place in range(start, len(code)):
            depth += {"(": 1, ")": -1}.get(code[place], 0)
            if depth == 0:
                yield code[start:place]
                break
        else:  # a script that was cut off
            yield code[start:]


def _read_argument(arguments: Arguments, key: str, otherwise: Sequence[str]) -> list[str]:
    return _list_texts(arguments.get(key, "")) or list(otherwise)


def _read_number(arguments: Arguments, key: str) -> float:
    match = NUMBER.fullmatch(arguments.get(key, "").strip())
    return float(match[0]) if match else DEFAULTS[key]


def _convert_pram(arguments: Arguments, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> Notes:
    pd = _read_number(arguments, "pd")
    for name in _read_argument(arguments, "variables", chosen.get("pramVars", ())):
        keys = columns.setdefault(name, {"role": str(Role.OTHER)})
        if keys["role"] == Role.QUASI:
            yield f"'{name}': PRAM of a key variable is left out: kinfold suppresses or averages key variables"
        elif 0 <= pd < 1:
            keys["perturb"] = {"pram": pd}
            yield (
                f"'{name}': in sdcMicro pd is not a lower bound; with pram = {pd:g} a value stays with at least "
                "this probability"
            )


def _convert_noise(arguments: Arguments, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> Notes:
    names = _read_argument(arguments, "variables", chosen.get("numVars", ()))
    method = "".join(_read_argument(arguments, "method", ["additive"]))
    share, known = _read_number(arguments, "noise") / 100, {"additive": "noise", "correlated": "correlated_noise"}
    if method not in known or not share > 0:
        yield f"addNoise by '{method}' is left out: kinfold adds normal noise, correlated or not"
        return
    kind = known[method]
    if kind == "correlated_noise" and len(names) < 2:
        yield "correlated noise of one column is left out: it needs two or more"
        return
    for name in names:
        columns.setdefault(name, {"role": str(Role.OTHER)})["perturb"] = {kind: share}


def _convert_swaps(arguments: Arguments, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> Notes:
    percent = _read_number(arguments, "P")
    if not 0 < percent <= 100:
        yield "rankSwap is left out: its P is a percentage above 0"
        return
    for name in _read_argument(arguments, "variables", chosen.get("numVars", ())):
        columns.setdefault(name, {"role": str(Role.OTHER)})["perturb"] = {"rank_swap": percent}
        yield f"'{name}': rankSwap replaces 5 % at each end by their mean, unless set otherwise; kinfold does not"


def _convert_exchanges(arguments: Arguments, columns: Columns, _chosen: Mapping[str, Sequence[str]]) -> Notes:
    rate, least = _read_number(arguments, "swaprate"), int(_read_number(arguments, "k_anonymity"))
    names = _read_argument(arguments, "hierarchy", ())
    if not names or not 0 <= rate <= 1:
        yield "recordSwap is left out: its hierarchy and rate are not written in the call"
        return
    similar, rare = (_read_argument(arguments, key, ()) for key in ("similar", "risk_variables"))
    how = {"record_swap": rate, "similar": similar} | (
        {"rare": rare, "rare_below": least} if rare and least > 0 else {}
    )
    for name in names:
        columns.setdefault(name, {"role": str(Role.OTHER)})["perturb"] = how
    yield "recordSwap exchanges the regions of the households of privacy.household: set it"


def _convert_limits(arguments: Arguments, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> Notes:
    number = NUMBER.fullmatch(arguments.get("value", "").strip())
    kind = "".join(_read_argument(arguments, "kind", ["top"]))
    for name in _read_argument(arguments, "column", chosen.get("numVars", ())[:1]):
        if number is None or kind not in ("top", "bottom"):
            yield f"'{name}': topBotCoding is left out, because its value is not a number in the call"
            continue
        columns.setdefault(name, {"role": str(Role.OTHER)})["top" if kind == "top" else "bottom"] = float(number[0])
        if arguments.get("replacement", number[0]).strip() != number[0]:
            yield f"'{name}': values past {kind} become {number[0]}, not the replacement of topBotCoding"


def _convert_importance(arguments: Arguments, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> Notes:
    ranks = _list_counts(arguments.get("importance", "").partition("(")[2])
    names = list(chosen.get("keyVars", ()))
    if ranks and len(ranks) == len(names) and min(ranks) > 0:
        for name, rank in zip(names, ranks, strict=True):
            columns[name]["weight"] = float(max(ranks) - rank + 1)
        yield "the importance became weights: the most important variable has the largest"
    elif "importance" in arguments:
        yield "the importance is left out: give the columns a weight"


def _convert_sizes(code: str, sizes: list[int], privacy: dict[str, Any]) -> Notes:
    """Add the k of each call that has one, and the size of combinations if no call is about all key variables."""
    calls = [
        dict(ARGUMENT.findall(call))
        for name in ("kAnon", "localSuppression", "microaggregation")
        for call in find_calls(code, name)
    ]
    several = [_list_counts(call.get("combs", "")) for call in calls]
    for call in calls:
        sizes += _list_counts(call.get("k") or call.get("aggr", ""))
    if several and all(several):
        privacy["combinations"] = {"size": max(map(max, several))}
        yield "combs became privacy.combinations, for the largest of its sizes and the largest k"
    elif any(several):
        yield "combs is left out: another call asks for k of all key variables together"


def _list_counts(code: str) -> list[int]:
    return [int(each) for each in re.findall(r"\d+", code)]


def _convert_thresholds(code: str, privacy: dict[str, Any], *, weighted: bool) -> Notes:
    """Add the smallest threshold of `localSupp` to the promises."""
    for call in find_calls(code, "localSupp"):
        number = NUMBER.fullmatch(dict(ARGUMENT.findall(call)).get("threshold", "0.15").strip())
        if number is None or not 0 < float(number[0]) <= 1:
            yield "localSupp is left out, because its threshold is not a number from 0 to 1 in the call"
        elif not weighted:
            yield f"localSupp is left out: without weights a risk of at most {number[0]} is k = 1 / {number[0]}"
        else:
            privacy["individual_risk"] = min(float(number[0]), privacy.get("individual_risk", 1.0))
            yield "localSupp empties one variable; privacy.individual_risk holds for every record, whatever it takes"


def _convert_groups(arguments: Arguments, columns: Columns, _chosen: Mapping[str, Sequence[str]]) -> Notes:
    before, after = (_read_argument(arguments, key, ()) for key in ("before", "after"))
    for name in _read_argument(arguments, "var", ()):
        if before and len(after) == 1:
            keys = columns.setdefault(name, {"role": str(Role.OTHER)})
            keys["map"] = keys.get("map", {}) | dict.fromkeys(before, after[0])
        else:
            yield f"'{name}': groupAndRename is left out, because its values are not texts in the call"


def _convert_identifiers(arguments: Arguments, columns: Columns, _chosen: Mapping[str, Sequence[str]]) -> Notes:
    columns |= {name: {"role": str(Role.IDENTIFIER)} for name in _read_argument(arguments, "var", ())}
    return iter(())


CONVERTERS: Mapping[str, Callable[[Arguments, Columns, Mapping[str, Sequence[str]]], Notes]] = {
    "pram": _convert_pram,
    "addNoise": _convert_noise,
    "rankSwap": _convert_swaps,
    "recordSwap": _convert_exchanges,
    "topBotCoding": _convert_limits,
    "localSuppression": _convert_importance,
    "kAnon": _convert_importance,
    "groupAndRename": _convert_groups,
    "removeDirectID": _convert_identifiers,
}
