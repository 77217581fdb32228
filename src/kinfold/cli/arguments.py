"""Arguments and options that several commands have, and those that are keys of a policy or questions to a release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from kinfold.cli.source_options import TableSource, as_named
from kinfold.request.methods import names


def table(help_: str) -> Any:
    """An argument that names a table."""
    return typer.Argument(parser=as_named, help=help_, show_default=False)


def _given(kind: Any, help_: str, *flags: str) -> Any:
    return Annotated[kind | None, typer.Option(*flags, help=help_, show_default=False)]


Data = Annotated[TableSource, table("CSV, Parquet, JSON, Excel, Stata, SPSS or SAS; or postgresql://… or sqlite:///…")]
SourceOptions: TypeAlias = Mapping[str, Any]  # by `reads`
PolicyFile = Annotated[Path | None, typer.Option("--policy", help="Policy file (TOML).", show_default=False)]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Any key of the policy: method.refine=5", show_default=False)
]
Values = Annotated[bool, typer.Option("--show-values", help="Show the offending categories in error messages.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]

ROLES = {  # roles of a policy, each a list of columns
    "quasi": _given(str, "Columns that somebody else may know: a,b,c"),
    "confidential": _given(str, "Columns to protect from inference."),
    "identifier": _given(str, "Columns to remove."),
}
ROLE_OF = {"quasi": "quasi-identifier", "confidential": "confidential", "identifier": "identifier"}

KEYS = {  # keys of a policy
    "k": _given(int, "Records that share each combination, at least.", "-k"),
    "t": _given(float, "Closeness of each confidential column.", "-t"),
    "l": _given(float, "Diversity of each confidential column.", "-l"),
    "method": _given(str, ", ".join(names()) + "."),
    "seed": _given(int, "Seed of the search."),
    "others": _given(str, "Columns nobody named: refuse, release or drop."),
    "keep_order": Annotated[bool, typer.Option("--keep-order", help="Do not sort the released rows.")],
    "format_": _given(str, "csv or parquet.", "--format"),
    "engine": _given(str, "Where rows live: duckdb or spark."),
    "master": _given(str, "Cluster of Spark: local[*], spark://host:7077."),
    "memory": _given(str, "Memory for the run: 4GB."),
    "spill": _given(Path, "Folder for what memory cannot hold."),
    "threads": _given(int, "Threads of the engine."),
}
KEY_OF = {
    **{name: f"privacy.{name}" for name in ("k", "t", "l")},
    "method": "method.name",
    "seed": "method.seed",
    "others": "output.others",
    "keep_order": "output.order",
    "format_": "output.format",
    **{"engine": "engine.name"} | {name: f"engine.{name}" for name in ("master", "memory", "spill", "threads")},
}


def by_role(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that were given by the roles of a policy."""
    return {ROLE_OF[name]: columns for name, columns in given.items()}


def by_key(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given by the dotted keys of a policy."""
    order = {KEY_OF["keep_order"]: "kept" if given["keep_order"] else None} if "keep_order" in given else {}
    return {KEY_OF[name]: value for name, value in given.items()} | order


QUESTIONS = {  # what a release and its original can be asked
    "measures": _given(str, "standard, or all of them; as the policy says."),
    "columns": Annotated[str, typer.Option(help="Measure loss over: quasi or all.")],
    "weights": Annotated[str, typer.Option(help="Weights of the weighted risk: k, or a CSV matrix.")],
    "population": Annotated[
        TableSource | None,
        typer.Option(parser=as_named, help="Table of the people the records were drawn from.", show_default=False),
    ],
    "sampling_weights": _given(str, "Column: how many people a record stands for."),
    "threshold": _given(float, "Give the share of records with a risk above this."),
    "linkage_subsets": Annotated[
        bool, typer.Option("--linkage-subsets", help="Attack the most telling quasi-identifiers too.")
    ],
    "linkage_untouched": Annotated[
        bool, typer.Option("--linkage-untouched", help="Attack with the columns released untouched too.")
    ],
    "task": _given(str, "regression:COLUMN or classification:COLUMN."),
}
UNASKED = {"columns": "quasi", "weights": "k", "linkage_subsets": False, "linkage_untouched": False}
