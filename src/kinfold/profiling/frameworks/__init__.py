"""Frameworks: what a rule or an opinion on anonymity asks for, as policies that bind and run.

A framework is a TOML file here. Its `policy` has the sections of a policy as they are to be; its `columns` are tried
one after the other on each column of a table, and the first whose `when` fits says what becomes of it:

    when         kind, role, form of hierarchy and words of the reason that a profile found, a hint or words in the
                 name; all must fit
    role, type, hierarchy, keys    of the column; what is left out is as the profile proposes
    level, left  of a hierarchy: the level to release, or how many characters of a masked value stay
    example      the name of such a column in a policy that was not fitted to a table

`confidential.t` is the level for numbers that are not to be learnt. No framework is legal advice, and each policy says
so at its top.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kinfold.errors import PolicyError

NO_ADVICE = """\
This is a template and no legal advice. It says in a policy what the text asks for as far as a program can; whether it
fits your data, your recipients and your law is for you, and for whoever answers for the release, to decide."""


@dataclass(frozen=True)
class Framework:
    """What is asked for, by name."""

    name: str
    title: str
    summary: str
    about: str
    policy: Mapping[str, Mapping[str, Any]]
    columns: tuple[Mapping[str, Any], ...]
    confidential: Mapping[str, Any]

    @property
    def head(self) -> str:
        """What stands at the top of the policy."""
        return f"{self.title}\n\n{NO_ADVICE}\n\n{self.about.strip()}\n"


@cache
def frameworks() -> Mapping[str, Framework]:
    """Return every framework by its name."""
    return {path.stem: _read(path) for path in sorted(Path(__file__).parent.glob("*.toml"), key=lambda path: path.stem)}


def framework(name: str) -> Framework:
    """Return a framework, or say which there are."""
    if name not in frameworks():
        raise PolicyError(f"there is no template '{name}'", fix=f"name one of {', '.join(frameworks())}")
    return frameworks()[name]


def _read(path: Path) -> Framework:
    told = tomllib.loads(path.read_text("utf-8"))
    texts = (told["title"], told["summary"], told["about"])
    return Framework(path.stem, *texts, told["policy"], tuple(told["columns"]), told.get("confidential", {}))
