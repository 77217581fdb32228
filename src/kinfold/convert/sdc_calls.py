"""The treatments that a script of sdcMicro calls after `createSdcObj`, as keys of columns.

    pram(sdc, variables, pd)             perturb = { pram = pd } of a column that is no key variable
    addNoise(sdc, variables, noise)      perturb = { noise = noise / 100 }; correlated: a share of the covariances
    rankSwap(sdc, variables, P)          perturb = { rank_swap = P }
    topBotCoding(column, value, kind)    top or bottom
    localSuppression(importance)         weight: the most important variable is blanked last

Arguments are read if they are numbers, texts or vectors of them, written in the call. Everything else becomes a note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from kinfold.tables.schema import Role

Columns: TypeAlias = dict[str, dict[str, Any]]
Arguments: TypeAlias = Mapping[str, str]
Notes: TypeAlias = Iterator[str]

NO_COUNTERPART = ("shuffle", "recordSwap", "mafast", "mergeHouseholdData", "createNewID")
NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
DEFAULTS = {"pd": 0.8, "noise": 150.0, "P": 5.0}  # of sdcMicro
ARGUMENT = re.compile(r"\b([A-Za-z_]+)\s*=\s*(c\([^()]*\)|\"[^\"\n]*\"|'[^'\n]*'|[^,()]+)")


def convert_calls(code: str, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> list[str]:
    """Add the keys of the treatments in a script to its columns, and return notes."""
    notes: list[str] = []
    for function, convert in CONVERTERS.items():
        for call in find_calls(code, function):
            notes += convert(dict(ARGUMENT.findall(call)), columns, chosen)
    notes += [f"{name} has no counterpart in a policy" for name in NO_COUNTERPART if any(find_calls(code, name))]
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


def _read_names(arguments: Arguments, key: str, otherwise: Sequence[str]) -> list[str]:
    names = [one or other for one, other in re.findall(r"\"([^\"]*)\"|'([^']*)'", arguments.get(key, ""))]
    return names or list(otherwise)


def _read_number(arguments: Arguments, key: str) -> float:
    match = NUMBER.fullmatch(arguments.get(key, "").strip())
    return float(match[0]) if match else DEFAULTS[key]


def _convert_pram(arguments: Arguments, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> Notes:
    pd = _read_number(arguments, "pd")
    for name in _read_names(arguments, "variables", chosen.get("pramVars", ())):
        keys = columns.setdefault(name, {"role": str(Role.OTHER)})
        if keys["role"] == Role.QUASI:
            yield f"'{name}': PRAM of a key variable is left out, because a suppressed or averaged one stays true"
        elif 0 <= pd < 1:
            keys["perturb"] = {"pram": pd}
            yield f"'{name}': pd of sdcMicro is no lower bound; with pram = {pd:g} a value stays at least so often"


def _convert_noise(arguments: Arguments, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> Notes:
    names = _read_names(arguments, "variables", chosen.get("numVars", ()))
    method = "".join(_read_names(arguments, "method", ["additive"]))
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
    for name in _read_names(arguments, "variables", chosen.get("numVars", ())):
        columns.setdefault(name, {"role": str(Role.OTHER)})["perturb"] = {"rank_swap": percent}
        yield f"'{name}': rankSwap replaces 5 % at each end by their mean, unless set otherwise; kinfold does not"


def _convert_limits(arguments: Arguments, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> Notes:
    number = NUMBER.fullmatch(arguments.get("value", "").strip())
    kind = "".join(_read_names(arguments, "kind", ["top"]))
    for name in _read_names(arguments, "column", chosen.get("numVars", ())[:1]):
        if number is None or kind not in ("top", "bottom"):
            yield f"'{name}': topBotCoding is left out, because its value is not a number in the call"
            continue
        columns.setdefault(name, {"role": str(Role.OTHER)})["top" if kind == "top" else "bottom"] = float(number[0])
        if arguments.get("replacement", number[0]).strip() != number[0]:
            yield f"'{name}': values past {kind} become {number[0]}, not the replacement of topBotCoding"


def _convert_importance(arguments: Arguments, columns: Columns, chosen: Mapping[str, Sequence[str]]) -> Notes:
    ranks = [int(each) for each in re.findall(r"[0-9]+", arguments.get("importance", "").partition("(")[2])]
    names = list(chosen.get("keyVars", ()))
    if ranks and len(ranks) == len(names) and min(ranks) > 0:
        for name, rank in zip(names, ranks, strict=True):
            columns[name]["weight"] = float(max(ranks) - rank + 1)
        yield "the importance of localSuppression became weights: the most important variable has the largest"
    elif "importance" in arguments:
        yield "the importance of localSuppression is left out: give the columns a weight"


CONVERTERS: Mapping[str, Callable[[Arguments, Columns, Mapping[str, Sequence[str]]], Notes]] = {
    "pram": _convert_pram,
    "addNoise": _convert_noise,
    "rankSwap": _convert_swaps,
    "topBotCoding": _convert_limits,
    "localSuppression": _convert_importance,
}
