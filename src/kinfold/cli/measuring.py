"""The commands that look at what a release lost and still risks: `measure`, and `compare` for many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kinfold.cli import output
from kinfold.cli.arguments import (
    KEYS,
    QUESTIONS,
    ROLES,
    UNASKED,
    Data,
    Json,
    PolicyFile,
    Settings,
    SourceOptions,
    by_key,
    by_role,
    table,
)
from kinfold.cli.gathered_options import Gathered, gathers, offers
from kinfold.cli.options import numbers, policy_from
from kinfold.cli.source_options import TableSource, reads
from kinfold.cli.terminal import Bar, errors, print_json
from kinfold.errors import PolicyError

if TYPE_CHECKING:
    from kinfold.request.policy import Policy

PROMISED = {name: KEYS[name] for name in ("k", "t", "l", "others")}  # what measures depend on
UNNAMED = "add --policy FILE, or name columns: --quasi a,b --confidential c"


@dataclass(frozen=True)
class MeasureOptions:
    """What the tables are, and how the measures are told."""

    policy: PolicyFile = None
    settings: Settings = None
    json: Json = False


@reads
@gathers("questions", QUESTIONS, UNASKED)
@gathers("keys", PROMISED)
@gathers("roles", ROLES)
@offers("how", MeasureOptions)
def measure(
    original: Annotated[TableSource, table("The table as it was.")],
    released: Annotated[TableSource, table("The table as released.")],
    *,
    how: MeasureOptions,
    roles: Gathered,
    keys: Gathered,
    questions: Gathered,
    source: SourceOptions,
) -> None:
    """Compare a release with its original: what was lost, what is still at risk, what the data is still good for.

    Examples:
    `kinfold measure patients.csv release/public/release.csv --policy policy.toml`

    `kinfold measure patients.csv released.csv --quasi age,sex,zip --confidential disease -k 5 --others drop`

    `kinfold measure patients.csv released.csv --policy policy.toml --population city.csv --threshold 0.1`
    """
    from kinfold.flow import measure as compare

    with errors():
        asked = _asked(how.policy, roles, {**by_key(keys), **source}, how.settings or ())
        found = compare(original, released, asked, **questions)
        if how.json:
            print_json({**found.to_dict(), "statistics": found.statistics.to_dict()})
        else:
            output.tell_measures(found)


@dataclass(frozen=True)
class ComparisonOptions:
    """What is run side by side, what the results are compared by, and how they are told."""

    methods: Annotated[str, typer.Option(help="Methods, comma-separated.")] = "mdav,v-mdav"
    k: Annotated[str, typer.Option("--k", help="Values of k, comma-separated.")] = "3,5,10"
    t: Annotated[str | None, typer.Option("--t", help="Values of t, comma-separated.", show_default=False)] = None
    policy: PolicyFile = None
    risk: Annotated[
        str | None, typer.Option(help="The risk to compare by; the first that applies.", show_default=False)
    ] = None
    loss: Annotated[
        str | None, typer.Option(help="The loss to compare by; the first that applies.", show_default=False)
    ] = None
    weight: Annotated[float, typer.Option(help="Weight of the risk in the score; the loss has the rest.")] = 0.5
    settings: Settings = None
    json: Json = False


@reads
@gathers("keys", {"others": KEYS["others"]})
@gathers("roles", ROLES)
@offers("how", ComparisonOptions)
def compare(
    data: Data,
    out_: Annotated[Path, typer.Option("--out", help="Folder of the comparison.", show_default=False)],
    *,
    how: ComparisonOptions,
    roles: Gathered,
    keys: Gathered,
    source: SourceOptions,
) -> None:
    """Run methods side by side and say which setting to take. A comparison that was stopped goes on where it was.

    Example: `kinfold compare patients.csv --policy policy.toml --methods mdav,v-mdav --k 3,5,10 --out comparison`
    """
    from kinfold import comparison

    with errors(), Bar() as bar:
        comparison.check_measures(how.risk, how.loss, how.weight)
        grid = comparison.settings(how.methods.split(","), numbers(how.k, int, "--k"), numbers(how.t, float, "--t"))
        given = {"privacy.k": grid[0].k, **by_key(keys), **source}
        asked = _asked(how.policy, roles, given, how.settings or ())
        outcomes = comparison.run(data, asked, grid, out_ / "runs", lambda done, total: bar("comparing", done, total))
        found = comparison.rank(outcomes, how.risk, how.loss, how.weight)
        comparison.save(found, out_)
        bar.end()
        if how.json:
            print_json(found.to_dict())
        else:
            output.tell_comparison(found, out_)


def _asked(file: Path | None, roles: Gathered, keys: Gathered, settings: Sequence[str]) -> Policy:
    """Return the policy of a file, of roles on the command line, or of both."""
    if file is None and not any(roles.values()):
        raise PolicyError("nothing says which columns are quasi-identifiers", fix=UNNAMED)
    return policy_from(file, by_role(roles), keys, settings)
